"""
Tables that take the names of others, all at one instant: what is swapped, and what is kept.

A *swap* gives the names of production's tables to other tables of the same target. The tables that
had the names before are kept under names of their own for some time, so that a *rollback*, which is
a swap as well, can give the names back.

Only names change. The rows of the ledger that describe a table go with it. The versions of a model
go on, as its readers have traces that name them: with a swap the table that was there is dropped,
and another one is built, as far as readers see.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Protocol

from infold.core.model import table_name
from infold.core.record import StepRecord
from infold.core.trace import Unchanged


@dataclass(frozen=True, slots=True)
class Renaming:
    """A stored table that gets another name, if its metadata is still at ``location``."""

    table: str
    to: str
    location: str


class SwapKind(StrEnum):
    """Why tables were swapped; also the action of the step that does it."""

    PROMOTE = "promote"
    """The tables of an environment took the names of production's."""
    ROLLBACK = "rollback"
    """The tables that a promote replaced got their names back."""
    BUILT_APART = "exchange"
    """
    Tables that were built apart, by changed definitions, took the names of production's. The word
    is the one that histories of runs have had for it from the first.
    """


@dataclass(frozen=True, slots=True)
class SwappedTable:
    """
    The swap of one model's table.

    The table with the key ``own`` becomes the model's, and the model's table gets the key ``kept``.
    The locations are those of their metadata. None where there is no such table: a model may be
    new, or go. A key without a location is that of a model that was built and stored nothing.
    """

    model: str
    own: str | None
    kept: str | None
    own_location: str | None = None
    kept_location: str | None = None
    unchanged: tuple[Unchanged, ...] = ()
    """What readers of some columns will not notice."""


@dataclass(frozen=True, slots=True)
class Swap:
    """
    Tables that are swapped together.

    ``applied`` are the digests of the definitions that are applied from then on, by model, of those
    that change; empty for a model that is not applied any more. ``undoes`` is the swap that a
    rollback takes back.
    """

    kind: SwapKind
    environment: str
    tables: tuple[SwappedTable, ...]
    applied: Mapping[str, str] = field(default_factory=dict)
    undoes: str | None = None


@dataclass(frozen=True, slots=True)
class DoneSwap:
    """
    A swap that the ledger remembers, as long as the tables that it replaced are kept.

    ``kept`` has the keys of these tables by model, None for a model that had none; a model that is
    not among ``stored`` had no rows in storage. ``definitions`` are the digests of the definitions
    that were applied before it and after it, empty for none.
    """

    id: str
    kind: SwapKind
    environment: str
    made_at: int
    kept: Mapping[str, str | None]
    stored: frozenset[str]
    definitions: Mapping[str, tuple[str, str]]


class SwapRecords(Protocol):
    """The part of a ledger that is about swaps."""

    def finish_swap(self, step: str, swap: Swap) -> None:
        """
        The step is done: names have moved. What describes a table goes with it, versions go on.

        A step that is done already stays as it is.
        """

    def swaps(self) -> Sequence[DoneSwap]:
        """The swaps whose replaced tables are kept, newest first."""

    def forget_swap(self, id_: str) -> None:
        """The tables that a swap replaced are not kept any more."""


class RenamedTables(Protocol):
    """The part of a storage that is about names and folders of tables."""

    def delete_folder(self, location: str) -> None:
        """Delete the folder where a table's metadata was, if no table lies in it."""

    def rename(self, renamings: Sequence[Renaming]) -> bool:
        """
        Give tables other names, all at one instant for whoever reads the catalog once.

        False, and nothing is changed, if the metadata of one is not where it is expected, or if
        another table has a new name.
        """

    def was_renamed(self, renamings: Sequence[Renaming]) -> bool:
        """
        Whether tables got other names, as a process that died may have begun to give them.

        Where the catalog gives one table another name after the other, what is left is done.
        """

    def refresh_views(self, tables: Collection[str], *, only_new: bool = False) -> Sequence[str]:
        """
        Let there be exactly the views of these tables, for readers, as far as the tables are there.

        With ``only_new``, those that are there already are taken for right. Returns the names that
        something else has, which infold did not make. A storage without views does nothing.
        """

    def check_views(self, tables: Collection[str] | None) -> None:
        """
        Before anything is written: raise where these tables are to have views, and cannot.

        None: there are to be none. Raises ``catalog_errors.without_views`` where the catalog has
        none, ``shared_namespace`` where views would be among the tables of another project, or
        these tables among its views, and ``name_taken`` where names of views follow the rules for
        those of tables (:meth:`check_names`).
        """

    def check_names(self, tables: Collection[str]) -> Collection[str]:
        """
        Those of these tables that are registered under their names, where others look for them.

        Raises ``catalog_errors.name_taken`` where somebody else has one of the names. A storage
        whose catalog is where the tables are registers none.
        """

    def misnamed(self) -> Sequence[str]:
        """The names that :meth:`register` would make right, as far as nobody else has them."""

    def register(self) -> Sequence[str]:
        """
        Let others find exactly the tables that there are by their names.

        Returns the names that somebody else has. Raises ``catalog_errors.not_registered``.
        """

    def folder_for_new(self, table: str) -> str | None:
        """The folder for a table that is made; None for the usual one, where no table lies yet."""

    def location(self, table: str) -> str | None:
        """Where the table's newest metadata is, or None when there is no such table."""

    def is_free(self, table: str) -> bool:
        """Whether no table has this name, and no files are where one would be."""

    def size(self, table: str) -> int:
        """The bytes of all files of a table; 0 when there is no such table."""


def renamings(swap: Swap) -> tuple[Renaming, ...]:
    """What the storage is asked to rename."""
    renamed = []
    for table in swap.tables:
        name = table_name(table.model)
        if table.kept is not None and table.kept_location is not None:
            renamed.append(Renaming(name, table_name(table.kept), table.kept_location))
        if table.own is not None and table.own_location is not None:
            renamed.append(Renaming(table_name(table.own), name, table.own_location))
    return tuple(renamed)


def is_swap(record: StepRecord) -> bool:
    """Whether a step gives tables other names."""
    return record.action in tuple(SwapKind)


def models_of_swaps(unfinished: Iterable[StepRecord]) -> frozenset[str]:
    """The models with a table that may have another name already than the ledger says."""
    return frozenset(
        table["model"]
        for record in unfinished
        if is_swap(record)
        for table in record.detail["tables"]
    )
