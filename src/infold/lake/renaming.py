"""
Gives tables other names one after the other, where a storage or a catalog cannot do it at once.

A swap of several takes several changes: whoever reads in between finds some under their new names
and some under their old ones. Intent and order are in the ledger, so one that died in the middle is
finished by the next command.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass

from infold.core import write_points
from infold.core.swap import Renaming
from infold.lake.views import RefusedError


@dataclass(frozen=True, slots=True)
class OneAfterTheOther:
    """
    ``find`` says where the tables of names are; a name that something else has is nowhere, then.

    ``rename_one`` may raise ``RefusedError``. ``lasting`` is the part of a location by which a
    table is known also after a commit to it.
    """

    find: Callable[[Collection[str]], Mapping[str, str]]
    rename_one: Callable[[str, str], None]
    lasting: Callable[[str], str]

    def rename(self, renamings: Sequence[Renaming]) -> bool:
        """Rename tables; False, and nothing is begun, unless all are where they are expected."""
        locations = self._locations(renamings)
        leaving = {renaming.table for renaming in renamings}
        if any(locations.get(renaming.table) != renaming.location for renaming in renamings):
            return False
        if any(renaming.to in locations and renaming.to not in leaving for renaming in renamings):
            return False
        return self._rename_all(renamings, begun=False)

    def finish(self, renamings: Sequence[Renaming]) -> bool:
        """
        Whether renamings were begun; those that are left are done then.

        A table that somebody committed to meanwhile is renamed too: who looks at it next finds out.
        """
        locations = self._locations(renamings)
        tables = {name: self.lasting(location) for name, location in locations.items()}
        if not any(tables.get(one.to) == self.lasting(one.location) for one in renamings):
            return False
        left = [one for one in renamings if tables.get(one.table) == self.lasting(one.location)]
        return self._rename_all(left, begun=True)

    def _locations(self, renamings: Sequence[Renaming]) -> Mapping[str, str]:
        return self.find(sorted({name for one in renamings for name in (one.table, one.to)}))

    def _rename_all(self, renamings: Iterable[Renaming], *, begun: bool) -> bool:
        """
        A name that another table has to leave first is taken after that.

        False where the first change is refused, because somebody else was quicker.
        """
        left = list(renamings)
        while left:
            leaving = {one.table for one in left}
            one = next((one for one in left if one.to not in leaving), left[0])
            write_points.point(f"rename {one.table}: before")
            try:
                self.rename_one(one.table, one.to)
            except RefusedError as error:
                if begun:
                    raise error.named from None
                return False
            begun = True
            write_points.point(f"rename {one.table}: after")
            left.remove(one)
        return True
