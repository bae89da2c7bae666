"""What a promote or a rollback would do, as it is shown and asked about."""

from __future__ import annotations

from dataclasses import dataclass

from infold.core.swap import Swap


@dataclass(frozen=True, slots=True)
class ExchangedTable:
    """
    A model whose name will point to another table: rows now and then, and cells that differ.

    None where there is no table.
    """

    model: str
    rows_before: int | None
    rows_after: int | None
    cells: int
    cells_differing: int


@dataclass(frozen=True, slots=True)
class Exchange:
    """
    A swap, and what it means.

    ``definitions`` are models that get another definition and keep their table. ``removed`` are
    models that the environment does not have, and that stay. ``readers`` are models that the next
    run brings up to date, as they read something that changes. ``rewritten`` are models with cells
    of earlier definitions, and the end of these: they get rows of the newest one. With
    ``takes_files`` the next run takes the definitions in the files, whatever is applied.
    """

    swap: Swap
    tables: tuple[ExchangedTable, ...]
    definitions: tuple[str, ...] = ()
    removed: tuple[str, ...] = ()
    readers: tuple[str, ...] = ()
    takes_files: bool = False
    rewritten: tuple[tuple[str, int], ...] = ()
    at_once: bool = True
    """Whether the target's catalog can give all tables their names at one instant."""

    @property
    def changes(self) -> bool:
        """Whether it would do anything."""
        return bool(self.tables or self.definitions)
