"""
Where each table's metadata is: the port behind which a target's catalog is, whatever its type.

A catalog is opened by what ``targets.NAME.catalog`` of infold.yml says, without a JVM (see
``open_catalog``). Spark has the same one by the settings of ``spark.tables.iceberg.catalogs``.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from infold.core import write_points
from infold.core.swap import Renaming
from infold.lake.views import RefusedError

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


# A swap of several takes several requests: whoever reads in between finds some under their new
# names and some under their old ones. Intent and order are in the ledger, so one that died in the
# middle is finished by the next command.


class OneByOne(ABC):
    """A catalog on a server, which changes one table at a time."""

    __slots__ = ()

    @property
    def at_once(self) -> bool:
        """See ``TableCatalog``."""
        return False

    @abstractmethod
    def find(self, tables: Collection[Key]) -> Mapping[Key, str]:
        """See ``TableCatalog``."""

    @abstractmethod
    def rename_one(self, namespace: str, table: str, to: str) -> None:
        """Give a table another name. Raises ``RefusedError``."""

    def rename(self, namespace: str, renamings: Sequence[Renaming]) -> bool:
        """See ``TableCatalog``: nothing is begun unless all tables are where they are expected."""
        found = self._find_all(namespace, renamings)
        if any(found.get(one.table) != one.location for one in renamings):
            return False
        leaving = {one.table for one in renamings}
        if any(one.to in found and one.to not in leaving for one in renamings):
            return False
        return self._rename_all(namespace, renamings, begun=False)

    def finish_rename(self, namespace: str, renamings: Sequence[Renaming]) -> bool:
        """
        See ``TableCatalog``.

        A table that somebody committed to meanwhile is renamed too: who looks at it next finds out.
        """
        found = self._find_all(namespace, renamings)
        if not any(_is_at(found.get(one.to), one) for one in renamings):
            return False
        left = [one for one in renamings if _is_at(found.get(one.table), one)]
        return self._rename_all(namespace, left, begun=True)

    def _rename_all(self, namespace: str, renamings: Iterable[Renaming], *, begun: bool) -> bool:
        """
        One after the other; a name that another one has to leave first comes after that.

        False where the catalog refuses before any was renamed, because somebody else was quicker.
        """
        left = list(renamings)
        while left:
            taken = {one.table for one in left}
            one = next((one for one in left if one.to not in taken), left[0])
            write_points.point(f"rename {one.table}: before")
            try:
                self.rename_one(namespace, one.table, one.to)
            except RefusedError as error:
                if begun:
                    raise error.named from None
                return False
            begun = True
            write_points.point(f"rename {one.table}: after")
            left.remove(one)
        return True

    def _find_all(self, namespace: str, renamings: Sequence[Renaming]) -> Mapping[str, str]:
        names = {name for one in renamings for name in (one.table, one.to)}
        found = self.find([(namespace, name) for name in sorted(names)])
        return {name: at for (_, name), at in found.items()}


def _is_at(location: str | None, one: Renaming) -> bool:
    """
    Whether metadata is of the table that is renamed, also after a commit to it.

    A commit writes its metadata beside that of before, and no two tables have one folder.
    """
    return location is not None and location.rpartition("/")[0] == one.location.rpartition("/")[0]
