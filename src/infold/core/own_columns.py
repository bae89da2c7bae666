"""The columns of infold's own that stored tables of several kinds have, by name."""

from collections.abc import Iterable

VERSION = "_version"
"""The version of the table that inserted the row."""

FILE = "_source_file"
"""Of events: the id of the version of the file that the row is from."""

KEY = "_key"
"""Of cumulative aggregates: the hash of the row's keys."""

PARTITION = "_partition"
"""The start of a row's partition, in a table that has a column for it."""

STATE_COLUMN = "_state_"
"""
Before the name of a part of a row's state, where a table has a column for each; see
``infold.core.own_columns.STATE``.
"""


def is_own(name: str) -> bool:
    """Whether a column is infold's own in the tables of every storage."""
    return name in (FILE, VERSION, KEY, STATE) or name.startswith(STATE_COLUMN)


def first_state_part(names: Iterable[str]) -> str:
    """The first part of the rows' states, of a table's columns; empty if there are no states."""
    parts = (name.removeprefix(STATE_COLUMN) for name in names if name.startswith(STATE_COLUMN))
    return next(parts, "")


def state_mark(fingerprint: str) -> str:
    """
    The first field of ``_state`` in the rows of a cumulative aggregate; it has no value.

    Its name says which form of states they are, and of which definition: rows with any other cannot
    be folded by them.
    """
    return f"of_2_{fingerprint[:16]}"


ID, FIRST, LAST, STATE = "session_id", "session_start", "session_end", "_state"
