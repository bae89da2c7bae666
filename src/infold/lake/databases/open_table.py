"""What extraction asks of a table in a database, whichever database it is in."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime
from typing import Protocol

from infold.lake.databases.columns import Row, StoredColumn, WantedColumn

BATCH = 2_000
"""How many rows are in memory as values of Python."""

KeyValue = int | date | datetime


@dataclass(frozen=True, slots=True)
class KeyRange:
    """
    Rows from ``start`` on by ``key``, None for all, and up to ``end``, None for no end.

    A database may give rows beyond them: whoever asks leaves these out. With ``in_order`` it gives
    them by the days of the key.
    """

    key: StoredColumn
    start: KeyValue | None = None
    end: KeyValue | None = None
    in_order: bool = False


class OpenTable(Protocol):
    """One table in one transaction, which sees one state of it."""

    def columns(self) -> Mapping[str, StoredColumn]:
        """Its columns by name, in their order."""

    def has_null(self, column: StoredColumn) -> bool:
        """Whether a column is NULL in some row."""

    def rows(
        self, wanted: Sequence[WantedColumn], within: KeyRange | None
    ) -> Iterator[Sequence[Row]]:
        """The values of some columns of all rows, or of those ``within``; a batch at a time."""
