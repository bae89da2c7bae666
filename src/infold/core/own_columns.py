"""The columns of infold's own that stored tables of several kinds have, by name."""

VERSION = "_version"
"""The version of the table that inserted the row."""

FILE = "_source_file"
"""Of events: the id of the version of the file that the row is from."""

KEY = "_key"
"""Of cumulative aggregates: the hash of the row's keys."""
