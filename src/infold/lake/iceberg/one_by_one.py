"""
Renames tables of a catalog that changes no two of them at one instant.

An exchange of several takes several requests: whoever reads in between finds some under their new
names and some under their old ones. Intent and order are in the ledger, so one that died in the
middle is finished by the next command.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Protocol

from infold.core import write_points
from infold.core.swap import Renaming
from infold.lake.iceberg.table_catalog import Key
from infold.lake.refused import RefusedError


class RenamesOne(Protocol):
    """A catalog that renames one table at a time."""

    def find(self, tables: Collection[Key]) -> Mapping[Key, str]:
        """See ``TableCatalog``."""

    def rename_one(self, namespace: str, table: str, to: str) -> None:
        """Give a table another name. Raises ``RefusedError``."""


def rename_one_by_one(catalog: RenamesOne, namespace: str, renamings: Sequence[Renaming]) -> bool:
    """See ``TableCatalog``: nothing is begun unless all tables are where they are expected."""
    found = _found(catalog, namespace, renamings)
    if any(found.get(one.table) != one.location for one in renamings):
        return False
    leaving = {one.table for one in renamings}
    if any(one.to in found and one.to not in leaving for one in renamings):
        return False
    return _rename_all(catalog, namespace, renamings, begun=False)


def finish_rename(catalog: RenamesOne, namespace: str, renamings: Sequence[Renaming]) -> bool:
    """
    Whether renamings were begun; those that are left are done then.

    A table that somebody committed to meanwhile is renamed too: who looks at it next finds out.
    """
    found = _found(catalog, namespace, renamings)
    if not any(_is_at(found.get(one.to), one) for one in renamings):
        return False
    left = [one for one in renamings if _is_at(found.get(one.table), one)]
    return _rename_all(catalog, namespace, left, begun=True)


def _rename_all(
    catalog: RenamesOne, namespace: str, renamings: Iterable[Renaming], *, begun: bool
) -> bool:
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
            catalog.rename_one(namespace, one.table, one.to)
        except RefusedError as error:
            if begun:
                raise error.named from None
            return False
        begun = True
        write_points.point(f"rename {one.table}: after")
        left.remove(one)
    return True


def _found(catalog: RenamesOne, namespace: str, renamings: Sequence[Renaming]) -> Mapping[str, str]:
    names = {name for one in renamings for name in (one.table, one.to)}
    found = catalog.find([(namespace, name) for name in sorted(names)])
    return {name: at for (_, name), at in found.items()}


def _is_at(location: str | None, one: Renaming) -> bool:
    """
    Whether metadata is of the table that is renamed, also after a commit to it.

    A commit writes its metadata beside that of before, and no two tables have one folder.
    """
    return location is not None and location.rpartition("/")[0] == one.location.rpartition("/")[0]
