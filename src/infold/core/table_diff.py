"""What differs between two tables of one model, as values."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from infold.core.definition import Redefinition
from infold.core.interval import Ranges

Row = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class RowDiff:
    """A row that one table has and the other has not; with both, the same row with other values."""

    key: Row
    before: Row | None
    after: Row | None


@dataclass(frozen=True, slots=True)
class TableDiff:
    """
    An environment's table of a model (``after``) against production's (``before``).

    ``columns`` are those with another type or on one side only: name, type before, type after
    (empty: none). Rows are compared in the columns that both have; ``sample`` are some of them.
    ``cells`` are those with other rows. One that production has not is not ``compared``.
    """

    model: str
    rows: tuple[int, int]
    columns: tuple[tuple[str, str, str], ...] = ()
    cells: Ranges = Ranges()
    added: int = 0
    removed: int = 0
    changed: int = 0
    sample: tuple[RowDiff, ...] = ()
    compared: bool = True

    @property
    def equal(self) -> bool:
        """Whether both have the same rows in the same columns."""
        return self.compared and not (self.columns or self.cells)


@dataclass(frozen=True, slots=True)
class EnvironmentDiff:
    """An environment against production: definitions, and the tables of its own."""

    environment: str
    definitions: tuple[Redefinition, ...]
    tables: tuple[TableDiff, ...]

    @property
    def equal(self) -> bool:
        """Whether nothing differs."""
        return not self.definitions and all(table.equal for table in self.tables)
