"""Projects of other tools, read into one of infold's, with a report of all that did not fit."""
