"""
Repairing a ledger that does not fit its tables: what is found of each, and what is done about it.

A ledger may be lost, older than the tables (a backup of it was put back), newer (one of the
warehouse was), or damaged. What it is right about stays. A table that has more than it knows is set
back to what it knows, where the storage still has that. Every other table is built again.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Protocol


class Repair(StrEnum):
    """What is done about a table."""

    KEEP = "keep"
    """It is as the ledger says."""
    SET_BACK = "set back"
    """It gets the rows again that it had when the ledger last knew it."""
    BUILD = "build"
    """The ledger forgets what it knew of its rows, and the next run builds it."""
    LEAVE = "leave"
    """Somebody else made or wrote it, or it cannot be read: it stays refused."""


WRITTEN = "somebody else wrote to it"
"""Why a table is left alone that the ledger knows."""


@dataclass(frozen=True, slots=True)
class CheckedTable:
    """
    A table, by its model or by its key, with what is done and why.

    ``unknown`` are the steps of its history that the ledger does not know. ``snapshot`` is the one
    that it is set back to. With ``forget``, the ledger knows it and forgets it; with ``erase``, its
    versions too, as what is known of them is not whole. With ``drop``, the table itself goes.
    """

    table: str
    repair: Repair
    why: str
    unknown: tuple[str, ...] = ()
    snapshot: int | None = None
    forget: bool = False
    erase: bool = False
    drop: bool = False


@dataclass(frozen=True, slots=True)
class RepairReport:
    """
    What a ledger and its tables need to fit each other again.

    ``orphans`` are tables that infold made and nothing points to. ``lost`` are sentences: what
    nobody can know any more. ``aside`` is where a damaged ledger was put. ``done`` is false where
    it was only looked at.
    """

    ledger: str
    tables: tuple[CheckedTable, ...]
    orphans: tuple[str, ...] = ()
    lost: tuple[str, ...] = ()
    aside: str = ""
    damage: str = ""
    """Why the ledger cannot be read; empty where it can."""
    entries: int | None = None
    """How many manual entries could be taken out of a damaged ledger; None: they are lost."""
    swaps: tuple[str, ...] = ()
    """The swaps that are forgotten, as nothing can be rolled back to what they replaced."""
    dropped: tuple[str, ...] = ()
    """The orphans that are dropped, as somebody asked for it."""
    shared: str = ""
    """The namespace of the tables, where other projects may have theirs in it, too."""
    misnamed: tuple[str, ...] = ()
    """The names of tables in a metastore that are missing, lead elsewhere, or are of no table."""
    done: bool = False

    @property
    def changes(self) -> bool:
        """Whether there is anything to do besides dropping orphans."""
        wrong = any(one.forget or one.erase or one.repair is Repair.SET_BACK for one in self.tables)
        return wrong or bool(self.damage or self.aside or self.swaps)

    @property
    def unrecorded(self) -> bool:
        """Whether tables have steps that the ledger does not know, and will not lose them."""
        return any(table.unknown for table in self.tables)

    @property
    def written(self) -> tuple[str, ...]:
        """The tables that somebody else wrote to: runs refuse them."""
        return tuple(table.table for table in self.tables if table.why == WRITTEN)

    def of(self, repair: Repair) -> tuple[CheckedTable, ...]:
        """The tables that this is done about."""
        return tuple(table for table in self.tables if table.repair is repair)


class RepairRecords(Protocol):
    """The part of a ledger that is about its own repair."""

    def know_steps(self, steps: Mapping[str, str]) -> None:
        """
        Record steps, with their models, that are in the tables' history and were not known.

        Nothing is known of what they did.
        """

    def erase_tables(self, tables: Iterable[str]) -> None:
        """Remove what is known of tables, also their versions; what people entered stays."""

    def contradictions(self) -> Mapping[str, str]:
        """The tables with rows in the ledger that contradict each other: what is wrong."""


class SetBackTables(Protocol):
    """The part of a storage that is about its tables as they were."""

    def made_tables(self) -> Sequence[str]:
        """
        The names of all tables that infold made and reads by a name of its own, in order.

        Tables in the folder of another warehouse are none of them.
        """

    def can_set_back(self, table: str, snapshot: int) -> bool:
        """Whether a table still has a snapshot, with the columns it has now."""

    def set_back(self, table: str, snapshot: int) -> None:
        """
        Let a table have the rows of an earlier snapshot again.

        Raises ``run_errors.foreign_write`` where somebody else commits to it meanwhile.
        """
