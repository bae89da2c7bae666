"""What an observer looks with: functions that are given to it, as they need files or a project."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass

from infold.core.definition import Redefinition
from infold.core.files import DatedPath, Listed, ListedFile
from infold.core.interval import Granularity
from infold.core.model import Source
from infold.core.trace import CellState, Trace

Files = tuple[Sequence[ListedFile], Sequence[str]]
Listing = Callable[[Source], Files]
"""The files of a source that are there now, and the paths of those that have yet to settle."""


@dataclass(frozen=True, slots=True)
class DatedLook:
    """Looks at sources with dated folders."""

    path: Callable[[Source], DatedPath]
    listing: Callable[[Source, Collection[str]], Listed]
    """Lists a source, as far as they are there without the folders that may be left out."""


EstimateCells = Callable[
    [Source, Sequence[ListedFile], Granularity, int], "tuple[tuple[CellState, ...], int] | None"
]
"""
The rows by cell of new files, from their event times alone, and how many are dated in the future.

The last argument is the clock. None when that costs too much.
"""

Count = Callable[[Source, Sequence[ListedFile]], Mapping[str, int]]
"""How many rows files of a source have, by path, where counting costs little."""

Redefinitions = Callable[[Mapping[str, Trace]], Mapping[str, Redefinition]]
"""The changes of models with a table that another definition built, given all traces."""
