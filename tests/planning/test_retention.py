"""Which rows are too old, which cells are frozen by that, and who has to read them before."""

from __future__ import annotations

from dataclasses import replace

import pytest
from tests.planning.strips import (
    DAILY,
    EVENTS,
    SESSIONS,
    built,
    changed,
    day,
    planned,
    project,
    states,
    strip,
    with_incremental,
)

from infold.core.interval import DAY, HOUR, MIN, Interval, Ranges
from infold.core.model import FOREVER
from infold.core.plan import Action, FileDiff, ModelObservation, Plan, PlanOptions, Step
from infold.core.project import Bound, Input, Node, Reference
from infold.core.trace import Cause, CellState, Pending, Retention, Trace
from infold.planning.destructive import refused_rebuilds
from infold.planning.retention import FROZEN

NOW = day(5).start
LOST = day(2).start
"""Before this events that are kept for three days are too old."""


def kept(node: Node, length: int | None) -> Node:
    """A model that keeps its rows for so long."""
    return replace(node, model=replace(node.model, retain=length))


CLICKS = kept(EVENTS, 3 * DAY)
OLD = states("# # - - - - -")
OF_EVENTS = replace(
    kept(with_incremental(DAILY), FOREVER), inputs=(Input("events", "ts"), Input("users"))
)
"""Days of events, which are kept forever."""
OF_SESSIONS = replace(OF_EVENTS, inputs=(Input("sessions", "session_start"),))


def lacking(seen: ModelObservation, start: int = LOST, **more: int) -> ModelObservation:
    """What was observed of a model that lacks rows before an instant."""
    assert seen.trace is not None
    retention = Retention(**{"start": start, "lost_until": start, **more})
    return replace(seen, trace=replace(seen.trace, retention=retention))


def only(made: Plan, name: str) -> tuple[Step, Trace]:
    """The step of a model, and its trace."""
    [step] = [step for step in made.steps if step.model == name]
    assert step.trace is not None
    return step, step.trace


def test_cells_that_are_too_old_are_taken_out() -> None:
    """First, by a step about them alone; the table is as it was but for them."""
    left = (Pending(Cause.LATE, Ranges.of([day(1), day(3)])),)
    seen = built(CLICKS, expired=OLD, files=FileDiff("raw.clicks"))
    assert seen.trace is not None
    seen = replace(seen, trace=replace(seen.trace, pending=left, fingerprint="another"))
    step, trace = only(planned(CLICKS, events=seen, now=NOW + HOUR), "events")
    assert (step.action, step.files, step.expected) == (Action.EXPIRE, None, False)
    assert step.cells == Ranges((Interval(day(0).start, LOST),))
    assert [(one.cause, one.detail, one.rows) for one in step.reasons] == [
        (Cause.EXPIRED, "20 rows before 2019-10-23", 0)
    ]
    assert trace.retention == Retention(LOST, LOST)
    assert trace.fingerprint == "another"
    assert [one.ranges for one in trace.pending] == [Ranges.of([day(3)])]


def test_a_start_without_older_rows_moves_with_the_next_step() -> None:
    """And never back, nor where a run by another clock is earlier."""
    for before, start in ((MIN, LOST), (day(1).start, LOST), (day(4).start, day(4).start)):
        seen = lacking(built(CLICKS, newest_entry=3, files=FileDiff("raw.clicks")), before)
        step, trace = only(planned(CLICKS, events=seen, now=NOW), "events")
        assert (step.action, trace.retention.start) == (Action.INGEST, start)


def frozen_days(
    target: Node, seen: ModelObservation, *others: Node, **more: ModelObservation
) -> str:
    """The days that are built of a table, all of whose days changed."""
    made = planned(CLICKS, *others, target, now=NOW, daily=seen, **more)
    [note] = [left.why for left in made.skipped if left.model == "daily"]
    assert note == FROZEN
    return strip(made, "daily")


def test_a_cell_is_frozen_once_a_row_may_be_gone_that_it_was_made_from() -> None:
    """By its bounds, by the last session that reaches over the start, and for good."""
    late = "+ + + + + + +"
    events = lacking(built(CLICKS))
    seen = changed(OF_EVENTS, "events", late)
    assert frozen_days(OF_EVENTS, seen, events=events) == "- - B B B B B"
    wide = replace(OF_EVENTS, inputs=(Input("events", "ts", (Bound(before=2 * DAY),)),))
    assert frozen_days(wide, changed(wide, "events", late), events=events) == "- - - - B B B"
    before = lacking(seen, MIN, frozen_until=day(4).start)
    assert frozen_days(OF_EVENTS, before, events=events) == "- - - - B B B"

    seen = changed(OF_SESSIONS, "sessions", late)
    early = (CellState(day(1), 1, 0, last=day(3).start + HOUR), CellState(day(0), 1, 0))
    visits = replace(changed(SESSIONS, "events", "x x - - - - -"), expired=early)
    of_all = {"events": events, "sessions": visits}
    assert frozen_days(OF_SESSIONS, seen, SESSIONS, **of_all) == "- - - - B B B"
    done = lacking(built(SESSIONS), MIN, lost_until=day(3).start)
    assert frozen_days(OF_SESSIONS, seen, SESSIONS, events=events, sessions=done) == "- - - B B B B"


def test_what_is_frozen_is_as_of_the_newest_versions() -> None:
    """Though it reads none, so that nothing is left to read; cells that no run built are not."""
    events = lacking(built(CLICKS))
    seen = changed(OF_EVENTS, "events", "x + - - - - -")
    step, trace = only(planned(CLICKS, OF_EVENTS, now=NOW, events=events, daily=seen), "daily")
    assert (step.action, step.cells, trace.pending) == (Action.RECOMPUTE, Ranges(), ())
    assert trace.inputs["events"] == 2
    assert trace.retention == Retention(MIN, MIN, LOST)
    assert seen.trace is not None
    never = (Pending(Cause.MISSING, Ranges.of([day(0), day(6)])),)
    seen = replace(seen, trace=replace(seen.trace, pending=never))
    made = planned(CLICKS, OF_EVENTS, now=NOW, events=events, daily=seen)
    assert strip(made, "daily") == "B - - - - - B"


def test_a_table_with_frozen_cells_is_not_replaced() -> None:
    """Whatever its definition is; one that is frozen nowhere is."""
    events = lacking(built(CLICKS))
    for cells, count in (("# # # # - - -", 2), ("- - # # - - -", 0)):
        seen = built(OF_EVENTS, cells=states(cells))
        assert seen.trace is not None
        seen = replace(seen, trace=replace(seen.trace, fingerprint="another"))
        made = planned(CLICKS, OF_EVENTS, now=NOW, events=events, daily=seen)
        why = [left.why for left in made.skipped if left.model == "daily"]
        assert [f"and {count} frozen cells cannot be" in one for one in why] == [True] * bool(count)
        assert ("daily" in {step.model for step in made.steps}) is not bool(count)


def test_a_table_by_cells_that_keeps_less_than_it_reads() -> None:
    """Its cells go like events do, and freeze nothing."""
    short = kept(with_incremental(DAILY), 3 * DAY)
    step, trace = only(planned(short, now=NOW, daily=built(short, expired=OLD)), "daily")
    assert (step.action, trace.retention) == (Action.EXPIRE, Retention(LOST, LOST))
    late = changed(short, "sessions", "+ + + + + + +")
    made = planned(short, now=NOW, daily=late)
    assert strip(made, "daily") == "- - B B B B B"
    assert not made.skipped


@pytest.mark.parametrize("length", [None, DAY, FOREVER])
def test_a_table_that_the_ledger_does_not_know(length: int | None) -> None:
    """It may have frozen cells where it is kept for longer than its events: it is not replaced."""
    target = kept(OF_EVENTS, length)
    of = replace(
        project(CLICKS, target), nodes=(CLICKS, replace(target, references=(_READS_EVENTS,)))
    )
    unknown = ModelObservation(inputs=built(target).inputs)
    made = planned(CLICKS, target, now=NOW, events=built(CLICKS), daily=unknown)
    refused = refused_rebuilds(of, made, PlanOptions(), lambda _: True, allowed=False)
    assert [(name, one.slug) for name, one in refused.items()] == (
        [("daily", "frozen-cells")] if length == FOREVER else []
    )
    for there, allowed in ((True, True), (False, False)):
        exists = {"daily": there}
        assert not refused_rebuilds(of, made, PlanOptions(), exists.__getitem__, allowed=allowed)


_READS_EVENTS = Reference("events", 0, 0)
READ = changed(OF_EVENTS, "events", "- - + - - - -")
"""Days that lack a late row of a day that stays."""


@pytest.mark.parametrize(
    ("target", "seen", "is_behind"),
    [
        pytest.param(OF_EVENTS, READ, False, id="read"),
        pytest.param(OF_EVENTS, ModelObservation(), True, id="never built"),
        pytest.param(OF_EVENTS, changed(OF_EVENTS, "events", "- + - - - - -"), True, id="late"),
        pytest.param(OF_EVENTS, changed(OF_EVENTS, "users", "- - - - - - +"), True, id="lookup"),
        pytest.param(
            replace(OF_EVENTS, fingerprint="another"), READ, True, id="another definition"
        ),
        pytest.param(
            kept(OF_EVENTS, 3 * DAY),
            changed(OF_EVENTS, "events", "- + - - - - -"),
            False,
            id="not for longer",
        ),
        pytest.param(
            kept(OF_EVENTS, None),
            changed(OF_EVENTS, "events", "- + - - - - -"),
            False,
            id="follows",
        ),
    ],
)
def test_rows_wait_for_who_keeps_something_of_them(
    target: Node, seen: ModelObservation, is_behind: bool
) -> None:
    """And has yet to read some of them."""
    events = built(CLICKS, expired=OLD)
    made = planned(CLICKS, target, now=NOW, events=events, daily=seen)
    waits = ("events: its rows before 2019-10-23 are kept until daily has read them",)
    assert made.notes == (waits if is_behind else ())
    expired = [step.model for step in made.steps if step.action is Action.EXPIRE]
    assert expired == ([] if is_behind else ["events"])


FAR = (CellState(day(0), 1, 0, last=day(6).start), CellState(day(1), 1, 0, last=day(6).start))


def test_sessions_lack_no_more_than_their_events_do() -> None:
    """Though cells of them are too old by the clock: their events are kept until all is read."""
    visits = replace(changed(SESSIONS, "events", "- - - + - - -"), expired=FAR[1:])
    events = lacking(built(CLICKS, expired=OLD, newest_entry=1), day(1).start)
    made = planned(
        CLICKS,
        SESSIONS,
        OF_SESSIONS,
        now=NOW,
        events=events,
        sessions=visits,
        daily=built(OF_SESSIONS),
    )
    assert only(made, "sessions")[1].retention.lost_until == day(1).start


def test_a_table_that_keeps_less_is_as_of_what_it_need_not_read() -> None:
    """Older changes of its inputs are before its start; they are not left to read."""
    short = lacking(changed(kept(with_incremental(DAILY), 3 * DAY), "sessions", "+ - - - - - -"))
    step, trace = only(planned(kept(DAILY, 3 * DAY), now=NOW, daily=short), "daily")
    assert (step.action, step.cells, trace.inputs["sessions"]) == (Action.RECOMPUTE, Ranges(), 2)


def test_what_is_lost_stays_so() -> None:
    """Of rows that are kept until somebody has read them nothing is; of sessions it is for good."""
    asked = built(CLICKS, expired=OLD, newest_entry=1, files=FileDiff("raw.clicks"))
    made = planned(CLICKS, OF_EVENTS, now=NOW, events=asked, daily=built(OF_EVENTS))
    step, trace = only(made, "events")
    assert (step.action, trace.retention) == (Action.INGEST, Retention())

    visits = lacking(changed(SESSIONS, "events", "- - - + - - -"), MIN, lost_until=day(3).start)
    made = planned(CLICKS, SESSIONS, now=NOW, events=lacking(built(CLICKS)), sessions=visits)
    assert only(made, "sessions")[1].retention.lost_until == day(3).start


def test_rows_wait_for_what_is_between_and_for_requests() -> None:
    """Sessions that a total is made of, and who asked to be erased; not for what went before."""
    late, gone = (changed(SESSIONS, "events", one) for one in ("- + - - - - -", "x - - - - - -"))
    days, events = built(OF_SESSIONS), built(CLICKS, expired=OLD)
    before = lacking(events, day(1).start)
    asked = replace(events, newest_entry=1)
    pending = built(SESSIONS, newest_entry=1)
    for clicks, visits, waits in (
        (events, late, True),
        (events, pending, True),
        (asked, built(SESSIONS), True),
        (events, built(SESSIONS), False),
        (before, gone, False),
        (before, late, True),
        (before, replace(late, expired=FAR), True),
    ):
        more = {"events": clicks, "sessions": visits, "daily": days}
        made = planned(CLICKS, SESSIONS, OF_SESSIONS, now=NOW, **more)
        assert bool(made.notes) is waits
