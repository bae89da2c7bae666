"""The stale cells in `infold status`, where they are known."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from tests.ledger.fresh import FreshLedger
from tests.planning.strips import DAILY as WITH_USERS
from tests.planning.strips import EVENTS, SESSIONS, built, changed, day, project, states

from infold.api.states import model_status
from infold.core.interval import MAX, MIN, Interval, Ranges
from infold.core.plan import InputDiff, ModelObservation, Observations
from infold.core.project import Node
from infold.core.trace import Cause, Pending, StoredCells, Trace
from infold.planning.model_states import model_states
from infold.planning.planner import plan
from infold.render.plan import plan_screen
from infold.render.status import status_screen

DAILY = replace(WITH_USERS, inputs=WITH_USERS.inputs[:1])


def stale(node: Node, **seen: ModelObservation) -> str:
    """The word of the screen for what is stale of one model."""
    made = project(EVENTS, SESSIONS, DAILY)
    observed = Observations(
        day(6).end, {"events": built(EVENTS), "sessions": built(SESSIONS), **seen}
    )
    todo = plan(made, observed)
    known = {entry.model: entry for entry in model_states(made, observed, todo)}
    step = next((step for step in todo.steps if step.model == node.name), None)
    book: Any = FreshLedger()
    week = StoredCells(Ranges((Interval(day(0).start, day(6).end),)), 70)
    entry = model_status(
        *(node, book, observed, step, known[node.name]), stored=week, built_at=None, left_out=0
    )
    line = status_screen(made, [entry], {}).splitlines()[3]
    return line.split("2019-10-28", 1)[1].rsplit("never", 1)[0].strip()


def daily(*pending: Interval, definition: str = DAILY.fingerprint) -> ModelObservation:
    """The daily table, with some pending cells."""
    left = (Pending(Cause.MISSING, Ranges.of(pending)),) if pending else ()
    trace = Trace("daily", definition, {"sessions": 1}, left)
    diff = InputDiff("sessions", 1, 1, (), states("# # # # # # #"))
    return ModelObservation(trace=trace, version=1, inputs=(diff,))


@pytest.mark.parametrize(
    ("seen", "word"),
    [
        (daily(), ""),
        (daily(day(2)), "1 cell"),
        (daily(Interval(MIN, day(1).start), Interval(day(4).start, MAX)), "4 cells"),
        (daily(Interval(MIN, MAX)), "all of it"),
        (daily(definition="another"), "all of it"),
    ],
)
def test_a_table_with_cells(seen: ModelObservation, word: str) -> None:
    """Cells that a window left out are stale, although the pending range has open ends."""
    assert stale(DAILY, daily=seen) == word


def test_a_plan_counts_the_same_cells() -> None:
    """A plan does not call what a window left out the whole table either."""
    made = project(EVENTS, SESSIONS, DAILY)
    pending = daily(Interval(MIN, day(1).start), Interval(day(4).start, MAX))
    tables = {"events": built(EVENTS), "sessions": built(SESSIONS), "daily": pending}
    observed = Observations(day(6).end, tables)

    text = plan_screen(made, observed, plan(made, observed), {})
    assert "1. daily  recompute  4 cells  about 40 rows" in text


def test_sessions_with_new_manual_entries() -> None:
    """They are stale, not as a whole table; the run finds which ones."""
    read = (InputDiff("events", 1, 1, (), states("# # # # # # #")),)
    spoken = built(SESSIONS, inputs=read, newest_entry=1)

    assert stale(SESSIONS, sessions=spoken, daily=daily()) == "some of it"
    assert stale(DAILY, sessions=spoken, daily=daily()) == "some of it"
    late = changed(SESSIONS, "events", "# # # + # # #")
    assert stale(SESSIONS, sessions=late, daily=daily()) == "3 cells"
