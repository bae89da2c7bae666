"""
Where each table's metadata is: the port behind which a target's catalog is, whatever its type.

A catalog is opened by what ``targets.NAME.catalog`` of infold.yml says, without a JVM (see
``open_catalog``). Spark has the same one by the settings of ``spark.tables.iceberg.catalogs``.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Protocol

from infold.core.swap import Renaming
from infold.lake.renaming import OneAfterTheOther

Key = tuple[str, str]
"""Namespace and name of a table."""


class TableCatalog(Protocol):
    """The tables of a catalog. Every method is one look, or one change that happens or does not."""

    @property
    def at_once(self) -> bool:
        """Whether several tables can change at one instant."""

    @property
    def place(self) -> str:
        """Where it is, without any secret."""

    def find(self, tables: Collection[Key]) -> Mapping[Key, str]:
        """Where the metadata is of those of these tables that are there."""

    def locations(self, namespace: str) -> Mapping[str, str]:
        """Where the metadata is of all tables of a namespace, by name."""

    def names(self, namespace: str) -> Collection[str]:
        """The names of all tables of a namespace."""

    def drop(self, namespace: str, names: Sequence[str]) -> None:
        """Take tables out of the catalog, as far as they are there; their files stay."""

    def rename(self, namespace: str, renamings: Sequence[Renaming]) -> bool:
        """
        Give tables other names; False, and nothing is changed, if one moved.

        A table moved if its metadata is not where it is expected, so also if it is gone, or if
        another one has its new name. A catalog that is not ``at_once`` renames one table after the
        other, once it has found all of them where they are expected.
        """

    def set_back(self, table: Key, location: str, snapshot: int) -> bool:
        """
        Let a table have the rows of an earlier snapshot of its main branch again.

        False, and nothing is changed, if its metadata is no longer at ``location``.
        """

    def finish_rename(self, namespace: str, renamings: Sequence[Renaming]) -> bool:
        """Whether renamings happened that a process may have died in; what is left is done."""


@dataclass(frozen=True, slots=True)
class Row:
    """A name in a catalog in SQL; ``previous`` is the location before an engine's last commit."""

    location: str
    previous: str | None = None
    type: str = "TABLE"
    """What it is to be, or ``VIEW``; that is not read."""


class OneByOne(ABC):
    """A catalog on a server, which changes one table at a time."""

    __slots__ = ()

    @property
    def at_once(self) -> bool:
        """Never: there is no transaction over several tables."""
        return False

    @abstractmethod
    def find(self, tables: Collection[Key]) -> Mapping[Key, str]:
        """See ``TableCatalog``."""

    @abstractmethod
    def rename_one(self, namespace: str, table: str, to: str) -> None:
        """Give a table another name. Raises ``RefusedError``."""

    def rename(self, namespace: str, renamings: Sequence[Renaming]) -> bool:
        """Each by itself, in an order in which no name is taken twice."""
        return self._one_by_one(namespace).rename(renamings)

    def finish_rename(self, namespace: str, renamings: Sequence[Renaming]) -> bool:
        """By the folders of the tables, which renaming leaves as they are."""
        return self._one_by_one(namespace).finish(renamings)

    def _one_by_one(self, namespace: str) -> OneAfterTheOther:
        """
        The tables of a namespace, known by their folders.

        A commit writes its metadata beside that of before, and no two tables have one folder.
        """

        def find(names: Collection[str]) -> Mapping[str, str]:
            locations = self.find([(namespace, name) for name in names])
            return {name: location for (_, name), location in locations.items()}

        return OneAfterTheOther(
            find, partial(self.rename_one, namespace), lambda location: location.rpartition("/")[0]
        )
