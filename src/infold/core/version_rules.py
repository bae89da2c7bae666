"""What makes a version of a key in an ``scd_type_2`` table, as its model declares it."""

from __future__ import annotations

from dataclasses import dataclass

VALID_FROM, VALID_TO = "valid_from", "valid_to"
"""
The columns that such a table has besides those of its query: the half-open stretch of time in which
a version was the one in force. The second is NULL in the newest.
"""

ALL_COLUMNS = "*"
"""In place of columns: all but the key and the time."""


@dataclass(frozen=True, slots=True)
class VersionRules:
    """
    ``updated_at`` is the column with the instant that a row is a version of.

    With ``columns`` a version is one with other values in these than the one before it; ``*`` alone
    means all columns but the key and ``updated_at``. Without, every instant is a version.
    """

    updated_at: str
    columns: tuple[str, ...] = ()
    invalidate_hard_deletes: bool = False
    """
    Whether the rows of an instant are all that there was then: a key that has no row at the next
    instant of any key ends there.
    """
