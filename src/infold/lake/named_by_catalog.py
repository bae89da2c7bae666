"""Tables that have their names by the catalog in which they are, for everybody."""

from __future__ import annotations

from collections.abc import Collection, Sequence


class NamedByCatalog:
    """A part of ``ports.Lake``: others find a table by its name from the moment it is made."""

    def check_names(self, tables: Collection[str]) -> Collection[str]:
        """See ``ports.Lake``."""
        del tables
        return ()

    def misnamed(self) -> Sequence[str]:
        """See ``ports.Lake``."""
        return ()

    def register(self) -> Sequence[str]:
        """See ``ports.Lake``."""
        return ()
