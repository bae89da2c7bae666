"""
Where each table's metadata is: the port behind which a target's catalog is, whatever its type.

A catalog is opened by what ``targets.NAME.catalog`` of infold.yml says, without a JVM (see
``open_catalog``). Spark has the same one by the settings of ``spark.tables.iceberg.catalogs``.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from infold.core.swap import Renaming

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
    """A row of a catalog in SQL; ``previous`` is the location before an engine's last commit."""

    location: str
    previous: str | None
