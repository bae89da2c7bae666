"""Oracle 2 without Spark: the planner, the runner and the ledger under hundreds of random programs.

See ``dry``: rows are computed by the reference, and decisions are made by the program.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import cast

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.arrivals.dry import DryPlay, play_through
from tests.arrivals.programs import Op, Program, Round, programs
from tests.arrivals.shapes import SHAPES
from tests.crash.scenario import living

from infold.core.interval import Interval
from infold.core.model import table_name
from infold.core.report import RunResult

pytestmark = pytest.mark.deep

EXAMPLES = settings().max_examples // 5
"""Programs of each shape: a few, three times as many before a change lands, hundreds in a soak."""


def dying(kind: type[DryPlay], deaths: Iterable[Sequence[int]]) -> type[DryPlay]:
    """Plays that die before each run as often as drawn, at the points that were drawn."""
    rest = iter(deaths)

    class Dying(kind):  # type: ignore[valid-type,misc]
        """Dies, and then runs."""

        def _run(self, window: Interval | None, terms: Sequence[str]) -> RunResult:
            for at in next(rest, ()):
                with living(at):
                    super()._run(window, terms)
                self._complete = False
            return cast("RunResult", super()._run(window, terms))

    return Dying


@pytest.mark.parametrize("shape", SHAPES)
@settings(max_examples=EXAMPLES)
@given(program=programs(users=6, rounds=(2, 6)), at_once=st.integers(1, 4))
def test_what_is_planned_is_enough(shape: str, program: Program, at_once: int) -> None:
    """After every run each table equals the reference, however many are built side by side."""
    play_through(DryPlay, SHAPES[shape], program, models_at_once=at_once)


@settings(max_examples=EXAMPLES)
@given(
    program=programs(users=6, rounds=(2, 6)),
    jobs=st.integers(2, 5),
    deaths=st.lists(st.integers(1, 80), max_size=4),
)
def test_concurrent_batches_change_no_row(program: Program, jobs: int, deaths: list[int]) -> None:
    """However many batches are computed at once, end in any order, or die."""
    once = dying(DryPlay, ([at] for at in deaths))
    play_through(once, SHAPES["landed"], program, jobs=jobs)


@pytest.mark.parametrize("shape", SHAPES)
@settings(max_examples=EXAMPLES)
@given(
    program=programs(users=4, rounds=(2, 5)),
    drops=st.lists(st.lists(st.integers(0, 9), max_size=2), max_size=6),
)
def test_dropped_tables_are_rebuilt(shape: str, program: Program, drops: list[list[int]]) -> None:
    """They are whole after the next run; without any table the catalog counts as lost."""
    rest = iter(drops)

    class Losing(DryPlay):
        """Loses the tables that were drawn before a run of everything."""

        def _run(self, window: Interval | None, terms: Sequence[str]) -> RunResult:
            for at in () if window or terms else next(rest, ()):
                tables = sorted(self.memory.tables)
                if len(tables) > 1:
                    del self.memory.tables[tables[at % len(tables)]]
                    self._complete = False
            return super()._run(window, terms)

    play_through(Losing, SHAPES[shape], program)


@pytest.mark.parametrize("shape", SHAPES)
@settings(max_examples=EXAMPLES)
@given(
    program=programs(users=4, rounds=(2, 5)),
    damage=st.lists(st.booleans(), min_size=2, max_size=6),
)
def test_damaged_tables_whose_definition_changed_are_rebuilt(
    shape: str, program: Program, damage: list[bool]
) -> None:
    """A changed definition is built anew where the rows that it follows from are damaged."""
    rest = iter(damage)

    class Damaged(DryPlay):
        """Loses files of each table with a changed definition, or has them unreadable."""

        def round(self, each: Round) -> None:
            for name in self.shape.changeable():
                self._declare(name, self.versions[name] + 1)
            self.changed()
            super().round(replace(each, run=Op("all", each.run.seed)))

        def _run(self, window: Interval | None, terms: Sequence[str]) -> RunResult:
            project, kind = self.project, next(rest, None)
            traces = self.ledger.traces()
            for name, trace in traces.items() if kind is not None else ():
                if trace.fingerprint != project[name].fingerprint:
                    which = self.memory.incomplete if kind else self.memory.unreadable
                    which.add(table_name(name))
            found = super()._run(window, terms)
            self.memory.incomplete.clear()  # what was proven to be the same has not been touched
            self.memory.unreadable.clear()
            return found

    play_through(Damaged, SHAPES[shape], program)
