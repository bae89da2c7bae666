"""
Other orders and cuts of a test's arrivals, which must come to the same tables.

At the end the same rows are there, in files that were changed in the same order each: that is all
that a definition knows of. So files may come in any order, in any number of runs; a file that only
came may come in two parts; and what was replaced or deleted may never be seen. Entries of a
quarantine may come before the events they are about; those of one model keep their order, as the
latest counts. The clock is that of the last arrival from the first run on: what is admitted must
not depend on when it came.

What is drawn for a file or an entry is drawn from its content. So tests that begin alike are
ordered and cut alike until something of their own comes, and share their runs until then.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from operator import itemgetter
from random import Random

from infold.core.unit_tests import Change, Delivery, Entry, UnitTest

Change_ = Delivery | Entry
"""What comes before a run."""
_TRIES = 10
_CUT = 0.8
"""From which number on, between 0 and 1, a cut is made; and there is always one."""


@dataclass(frozen=True, slots=True)
class Variant:
    """Runs in this order, each after these changes; ``name`` says what kind of variant it is."""

    name: str
    runs: tuple[tuple[Change_, ...], ...]
    clock: int

    @property
    def order(self) -> tuple[str, ...]:
        """A line for each run."""
        return (
            self.name,
            *(
                f"run {number}: {'; '.join(map(_described, run))}"
                for number, run in enumerate(self.runs, 1)
            ),
        )


def _described(each: Change_) -> str:
    if isinstance(each, Entry):
        return f"quarantine {each.action} {each.of} of {each.owner}"
    verb = "" if each.change is Change.ADD else f"{each.change.value} "
    rows = "" if each.change is Change.DELETE else f" ({len(each.rows)} rows)"
    return f"{verb}{each.of} in {each.file}{rows}".replace("(1 rows)", "(1 row)")


def variants(test: UnitTest, seed: int, number: int) -> Iterator[Variant]:
    """All arrivals at once, if there are several, and a ``number`` of random orders and cuts."""
    runs: list[tuple[Change_, ...]] = [
        (*arrival.deliveries, *arrival.entries) for arrival in test.arrivals
    ]
    every = [each for run in runs for each in run]
    clock = test.arrivals[-1].clock
    assert clock is not None
    if len(runs) > 1 and every:
        yield Variant("all at once", (tuple(every),), clock)
    tried = {_shape(runs), _shape([every])}
    for at in range(number):
        for attempt in range(_TRIES):
            drawn = _Draws(f"{seed} {at} {attempt}")
            found = drawn.cut(drawn.shuffled(drawn.split(every)))
            if _shape(found) not in tried:
                tried.add(_shape(found))
                yield Variant("in another order", tuple(map(tuple, found)), clock)
                break


def _shape(runs: Sequence[Sequence[Change_]]) -> object:
    return tuple(frozenset(each.key for each in run) for run in runs)


@dataclass(frozen=True, slots=True)
class _Draws:
    """What is drawn for changes: for each by its content, whatever test it is in."""

    seed: str

    def _random(self, what: str, each: Change_) -> Random:
        return Random(f"{self.seed} {what} {each.key}")  # noqa: S311 (to be drawn again)

    def split(self, every: Sequence[Change_]) -> Iterator[Change_]:
        """Some of the files that only come, in two parts each."""
        for each in every:
            random = self._random("split", each)
            changes = [one for one in every if (one.of, one.file) == (each.of, each.file)]
            if (
                isinstance(each, Entry)
                or len(changes) > 1
                or len(each.rows) < 2
                or random.random() < 0.5
            ):
                yield each
                continue
            first = set(random.sample(range(len(each.rows)), random.randint(1, len(each.rows) - 1)))
            for part, inside in (("a", True), ("b", False)):
                rows = [row for at, row in enumerate(each.rows) if (at in first) is inside]
                yield replace(each, file=f"{each.file}_{part}", rows=tuple(rows))

    def shuffled(self, every: Iterable[Change_]) -> list[Change_]:
        """All changes, each at a place of its own, those of one file in their order."""
        of_files: dict[tuple[str, str], list[Change_]] = {}
        for each in every:
            of_files.setdefault((each.of, each.file), []).append(each)
        placed: list[tuple[float, Change_]] = []
        for changes in of_files.values():
            places = sorted(self._random("place", each).random() for each in changes)
            placed += zip(places, changes, strict=True)
        return [each for _, each in sorted(placed, key=itemgetter(0))]

    def cut(self, every: Sequence[Change_]) -> list[list[Change_]]:
        """In two runs at least, in order: one run alone would build all of it, and fold nothing."""
        drawn = [self._random("cut", each).random() for each in every[:-1]]
        least = min(_CUT, max(drawn, default=_CUT))
        runs: list[list[Change_]] = [[]]
        for at, each in enumerate(every):
            if at and drawn[at - 1] >= least:
                runs.append([])
            runs[-1].append(each)
        return runs
