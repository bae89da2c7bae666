"""
What a version of a table left unchanged for those who do not read all of its columns.

A version that replaces a table gives every cell other content once a column is added, removed or
computed in another way. A reader of other columns has the same rows as before. Such columns are
compared by value when the version is committed, and these functions find what is left to build.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from infold.core.interval import Ranges
from infold.core.trace import CellChange


@dataclass(frozen=True, slots=True)
class Unchanged:
    """
    The ``cells`` that have the same rows as before in some ``columns``, named in lower case.

    So they have in any of these columns.
    """

    columns: frozenset[str]
    cells: Ranges


def changes_of_columns(
    columns: frozenset[str],
    changes: Mapping[int, Sequence[CellChange]],
    unchanged: Mapping[int, Sequence[Unchanged]],
) -> dict[int, tuple[CellChange, ...]]:
    """
    The changes that a reader of some columns may see, by version; versions without any left out.

    ``changes`` and ``unchanged`` are by version.
    """
    found = {}
    for version in sorted(changes):
        wide = [one.cells for one in unchanged.get(version, ()) if columns <= one.columns]
        left = tuple(
            change
            for change in changes[version]
            if all(Ranges((change.cell,)) - cells for cells in wide)
        )
        if left:
            found[version] = left
    return found
