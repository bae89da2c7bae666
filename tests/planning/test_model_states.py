"""The four states of a model, with their edge cases as a table."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from tests.planning.strips import (
    DAILY,
    EVENTS,
    SESSIONS,
    USERS,
    built,
    changed,
    day,
    node,
    planned,
    project,
    states,
    with_incremental,
    with_trace,
)

from infold.core.files import ListedFile
from infold.core.interval import DAY, MAX, Interval, Ranges, parse_instant_text, show_instant
from infold.core.model import Incremental, Materialization, Model, Timeseries
from infold.core.plan import (
    Action,
    FileDiff,
    InputDiff,
    ModelObservation,
    Observations,
    PlanOptions,
    Reason,
    Step,
)
from infold.core.project import Input, Node
from infold.core.record import Receipt
from infold.core.report import ModelState, State
from infold.core.trace import UNKNOWN, Cause, Pending, Trace
from infold.planning.model_states import model_states, state_after_run
from infold.planning.planner import plan
from infold.render.status import message

NOW = day(6).end


def hourly(name: str, *tags: str, **more: object) -> Node:
    """A model built cell by cell from the events."""
    made = node(
        Model(
            name,
            Materialization.TABLE,
            "",
            Timeseries("ts", "ts"),
            incremental=Incremental(),
            tags=tags,
        ),
        Input("events", "ts"),
    )
    return replace(made, **more)  # type: ignore[arg-type]


A, B = hourly("a"), hourly("b", "web")
OTHERS = node(
    Model("others", Materialization.EVENTS, "", Timeseries("ts", "ts"), unique_key=("id",)),
    Input("raw.clicks"),
)


def new(strip: str = "# # # # # # #") -> ModelObservation:
    """A model that was never built, over events as drawn."""
    return ModelObservation(inputs=(InputDiff("events", 0, 1, (), states(strip)),))


def files(*names: str) -> FileDiff:
    """New files that are known by name only."""
    return FileDiff("raw.clicks", new=tuple(ListedFile(name, 1, 0, "f") for name in names))


def stand(*nodes: Node, asked: Any = None, **seen: Any) -> dict[str, ModelState]:
    """The state of each model."""
    observed = Observations(NOW, seen)
    made = project(*nodes)
    todo = plan(made, observed, asked or PlanOptions())
    return {entry.model: entry for entry in model_states(made, observed, todo)}


def drawn(found: dict[str, ModelState]) -> list[str]:
    """The states alone."""
    return [entry.state.value for entry in found.values()]


AT_NIGHT = with_incremental(B, cron="0 0 * * *")
PENDING = Trace("b", B.fingerprint, {"events": 1}, (Pending(Cause.MISSING, Ranges((day(2),))),))
WAITS = built(AT_NIGHT, trace=PENDING, as_of=NOW, cells=states("# # # . . . ."))


FIRST_RUN, NEW, STANDARD, SYNC = "first run", "new model", "standard run", "out of sync"
CASES: dict[str, tuple[dict[Node, ModelObservation], list[str], dict[str, str]]] = {
    "nothing was ever built: the first run of every model": (
        {EVENTS: ModelObservation(files=files("x.csv")), A: ModelObservation()},
        [FIRST_RUN, FIRST_RUN],
        {"a": "No data in manifest. Processing data from the first row"},
    ),
    "a model is added: it is new, and nobody else is anything but in a standard run": (
        {EVENTS: built(EVENTS), A: built(A), B: new()},
        [STANDARD, STANDARD, NEW],
        {
            "b": "New incremental model. Backfilling. "
            "Processing data between 2019-10-21 and 2019-10-28",
            "a": "Standard incremental run. Nothing to process",
        },
    ),
    "a run that failed left a part unbuilt, and the next one does not wait for the cron": (
        {EVENTS: built(EVENTS), AT_NIGHT: replace(WAITS, unfinished=True)},
        [STANDARD, SYNC],
        {},
    ),
    "a part that waits for its cron": ({EVENTS: built(EVENTS), AT_NIGHT: WAITS}, [STANDARD] * 2,
        {}),
    "the definition changed": (
        {EVENTS: built(EVENTS), A: with_trace(built(A), fingerprint="another")},
        [STANDARD, SYNC],
        {},
    ),
    "a run died while it replaced the table": (
        {EVENTS: built(EVENTS), A: with_trace(built(A), fingerprint=UNKNOWN)},
        [STANDARD, SYNC],
        {},
    ),
    "an input was built further, and the run ended before this model": (
        {EVENTS: built(EVENTS), A: built(A), B: changed(B, "events", "# # # + # # #")},
        [STANDARD, STANDARD, SYNC],
        {
            "b": "Incremental model out of sync. Syncing: events has changes that it has not read. "
            "Processing data between 2019-10-24 and 2019-10-25"
        },
    ),
    "another model of the same source has taken in a file that this one has not": (
        {
            EVENTS: built(EVENTS, files=files("new.csv")),
            OTHERS: built(OTHERS, files=files("new.csv", "old.csv")),
        },
        [STANDARD, SYNC],
        {},
    ),
    "models whose last events differ, because they keep different rows, are in sync": (
        {
            EVENTS: built(EVENTS),
            A: built(A, cells=states("# # # # # # #")),
            B: built(B, cells=states("# # . . . . .")),
        },
        [STANDARD] * 3,
        {},
    ),
    "what changed lies before the model's start: it is not behind": (
        {
            EVENTS: built(EVENTS),
            hourly("a", start=day(5).start): changed(A, "events", "+ + # # # # #"),
        },
        [STANDARD, STANDARD],
        {},
    ),
}  # fmt: skip


@pytest.mark.parametrize(("seen", "states", "says"), CASES.values(), ids=[*CASES])
def test_states(
    seen: dict[Node, ModelObservation], states: list[str], says: dict[str, str]
) -> None:
    """Each case has its state and message."""
    found = stand(*seen, **{node.name: of for node, of in seen.items()})

    assert drawn(found) == states
    assert {name: message(found[name]) for name in says} == says


def test_sessions_and_whole_tables_have_states_too() -> None:
    """They have no limits, as they process changes of any time."""
    found = stand(
        EVENTS,
        SESSIONS,
        USERS,
        DAILY,
        events=built(EVENTS),
        sessions=changed(SESSIONS, "events", "# # + # # # #"),
        users=ModelObservation(inputs=(InputDiff("raw.users", 0, 1, (), ()),)),
        daily=built(DAILY),
    )

    states = ["standard run", "out of sync", "new model", "standard run"]
    assert drawn(found) == states
    assert (found["users"].lower, found["users"].upper) == (None, None)


class TestLimits:
    """Lower and upper limit are half-open event times, as far as they are known before a run."""

    def test_the_lower_limit_is_never_before_the_start(self) -> None:
        """A first run is from the start on, and a late row from before it moves no limit. With a
        start after all data the table is built empty, and the message says why.
        """
        late = hourly("a", start=day(2).start)
        for seen, upper in ((new(), day(6)), (changed(late, "events", "+ # + # # # #"), day(2))):
            found = stand(EVENTS, late, events=built(EVENTS), a=seen)["a"]
            assert (found.lower, found.upper) == (day(2).start, upper.end)
        far = hourly("a", start=parse_instant_text("2031-01-01"))
        found = stand(EVENTS, far, events=built(EVENTS), a=new())["a"]
        assert message(found) == (
            "New incremental model. Backfilling: it starts on 2031-01-01, after all that it reads. "
            "No data in events from 2031-01-01 on; covered without rows"
        )

    def test_a_window_without_data_is_reported_and_covered(self) -> None:
        """A window without data is built, reported as empty and not planned again."""
        seen = new("# # . . . # #")
        window = Interval(day(2).start, day(5).start)
        asked = PlanOptions(window=window)
        found = stand(EVENTS, A, asked=asked, events=built(EVENTS), a=seen)["a"]
        (step,) = planned(EVENTS, A, now=NOW, asked=asked, events=built(EVENTS), a=seen).steps

        assert message(found).endswith(
            "No data in events between 2019-10-23 and 2019-10-26; covered without rows"
        )
        assert step.trace is not None
        assert not step.trace.pending_ranges.overlaps(window)

    def test_what_is_known_before_a_run(self) -> None:
        """No limits before files are read; a few cells by name, many by number and limits. After it
        the changed cells are the limits of tables that process changes.
        """
        events = stand(EVENTS, events=built(EVENTS, files=files("x.csv")))["events"]
        few = stand(EVENTS, A, events=built(EVENTS), a=changed(A, "events", "+ # # + + # #"))["a"]
        many = stand(EVENTS, A, events=built(EVENTS), a=new("# . # . # . #"))["a"]

        assert (events.lower, events.upper, events.empty) == (None, None, False)
        assert message(events) == "Standard incremental run"
        assert message(few).endswith("Processing data of 2019-10-21, [2019-10-24, 2019-10-26)")
        four = "Processing data of 4 cells between 2019-10-21 and 2019-10-28"
        assert message(many).endswith(four)
        found = stand(EVENTS, SESSIONS, events=built(EVENTS), sessions=new())["sessions"]
        changed_cells = Ranges((day(0), day(6)))
        entry = state_after_run(SESSIONS, found, [(fold(), Receipt(read=9))], changed_cells)
        assert (entry.lower, entry.upper) == (day(0).start, day(6).end)
        assert message(entry).endswith("Processing data of 2019-10-21, 2019-10-27")


def fold(cause: Cause = Cause.ARRIVED, rows: int = 0) -> Step:
    """A step of the sessions, because of so many rows."""
    return Step("sessions", Action.FOLD, Ranges(), (Reason(cause, "", Ranges((day(3),)), rows),))


@pytest.mark.parametrize(
    ("step", "receipt", "empty"),
    [
        (fold(), Receipt(), True),
        (fold(rows=5), Receipt(), False),  # a WHERE lets none of them pass
        (fold(), Receipt(read=5), False),
        (fold(), Receipt(arrived=5, set_aside=5), False),
        (fold(Cause.QUARANTINE), Receipt(), False),
        (fold(Cause.REMOVED), Receipt(), False),
    ],
)
def test_no_data_is_reported_where_there_is_none(step: Step, receipt: Receipt, empty: bool) -> None:
    """An empty result is reported only if no row was left out, removed or unaffected."""
    entry = ModelState("sessions", State.STANDARD_RUN, work=True, reads=("events",))

    found = state_after_run(SESSIONS, entry, [(step, receipt)], Ranges())

    assert found.empty is empty
    assert ("No data in events" in message(found)) is empty


LIMITED = hourly("a", backfill_limit=2 * DAY)
FULL = "# # # # # # #"


def left_of(left: Ranges, strip: str = FULL, changes: str = "") -> ModelObservation:
    """The model once a run has left some of it, with what changed since."""
    base = changed(LIMITED, "events", changes) if changes else built(LIMITED)
    base = replace(base, inputs=(replace(base.inputs[0], cells=states(strip)),))
    return with_trace(base, pending=(Pending(Cause.MISSING, left),))


def part(
    seen: ModelObservation, target: Node = LIMITED, **asked: Any
) -> tuple[str, Ranges, Ranges]:
    """What a run builds, drawn, and its first batch, with what its trace leaves."""
    options = PlanOptions(**asked)
    todo = planned(EVENTS, target, now=NOW, asked=options, events=built(EVENTS), a=seen)
    step = next((step for step in todo.steps if step.model == target.name), None)
    if step is None or step.trace is None:
        return "", Ranges(), Ranges()
    marks = ("B" if step.stale_cells.overlaps(day(i)) else "-" for i in range(7))
    return " ".join(marks), step.cells, step.trace.pending_ranges


AGES = day(0).start - 3650 * DAY
WAITING = left_of(Ranges((Interval(day(3).start, MAX),)))
REDEFINED = with_trace(WAITING, fingerprint="another")
MIXED = with_trace(
    left_of(Ranges((day(3),))), pending=(Pending(Cause.DEFINITION, Ranges((day(3),))),)
)
NEW_DAY = left_of(
    Ranges((Interval(day(2).start, day(6).end + 100 * DAY),)), "# # # # # # +", "# # # # # # +"
)
OTHER = replace(new(), trace=Trace("a", "another", {"events": 1}), version=3)
PARTS: dict[str, tuple[ModelObservation, dict[str, Any], dict[str, Any], str, Interval | None]] = {
    "a start long before the data": (new(), {"start": AGES}, {}, "B B - - - - -", None),
    "shorter than a cell": (new(), {"backfill_limit": 1}, {}, "B - - - - - -", None),
    "a window overrides it": (*(new(), {}, {"window": Interval(day(0).start, day(5).start)}),
        *("B B B B B - -", None)),
    "batches are cut inside it": (new(), {}, {"batch_size": 1}, "B B - - - - -", None),
    "a new day does not wait": (NEW_DAY, {}, {}, "- - B B - - B", day(4)),
    "a changed definition": (OTHER, {}, {}, "B B B B B B B", None),
    "late rows": (changed(LIMITED, "events", "+ + + + + + +"), {}, {}, "B B B B B B B", None),
    "its backlog stays": (REDEFINED, {}, {}, "B B B - - - -", day(3)),
    "but what a dead run had committed": (
        *(replace(REDEFINED, cells=states(". . . . # . .")), {}, {}),
        *("B B B - B - -", day(3)),
    ),
    "what an older infold mixed": (MIXED, {}, {}, "B B B B B B B", None),
}  # fmt: skip


class TestBackfillLimit:
    """One run builds so much of a backlog, and new data never waits for it."""

    @pytest.mark.parametrize(
        ("seen", "changes", "asked", "drawn", "left"), PARTS.values(), ids=PARTS
    )
    def test_a_part(
        self,
        seen: ModelObservation,
        changes: dict[str, Any],
        asked: dict[str, Any],
        drawn: str,
        left: Interval | None,
    ) -> None:
        """From the first row on, at least a cell; not of late rows or changed definitions."""
        made, cells, rest = part(seen, replace(LIMITED, **changes), **asked)

        assert made == drawn
        assert cells.span is not None
        assert cells.span.start == changes.get("start", cells.span.start)
        assert "batch_size" not in asked or cells.span.end == day(0).end
        assert left is None or rest.overlaps(left)
        assert drawn != "B B B B B B B" or rest == Ranges()

    def test_a_first_run_builds_the_limit_and_the_next_continues(self) -> None:
        """From the first row on, one part a run; a long gap is covered on the way."""
        made, _, left = part(new())
        same_run, _, _ = part(left_of(left), backfill_ends={"a": day(1).end})
        then, _, rest = part(left_of(left))

        assert (made, same_run, then) == ("B B - - - - -", "", "- - B B - - -")
        assert not rest.overlaps(Interval(day(0).start, day(4).start))
        assert rest.overlaps(day(4))
        made, _, left = part(new("# . . . . # #"))
        then, _, rest = part(left_of(left, "# . . . . # #"))
        assert (made, then, rest) == ("B B - - - - -", "- - B B B B B", Ranges())

    def test_what_is_left_is_reported(self) -> None:
        """Its cells are skipped, it is out of sync, and the message has the next part."""
        todo = planned(EVENTS, LIMITED, now=NOW, events=built(EVENTS), a=new())
        (skipped,) = (entry for entry in todo.skipped if entry.model == "a")
        assert skipped.why == "beyond its backfill_limit of 2 days"
        assert show_instant(min(skipped.stale).start) == "2019-10-23"

        seen = left_of(Ranges((Interval(day(2).start, day(6).end),)))
        found = stand(EVENTS, LIMITED, events=built(EVENTS), a=seen)["a"]
        assert found.state is State.OUT_OF_SYNC
        assert message(found) == (
            "Incremental model out of sync. Syncing: an earlier run left a part of it unbuilt. "
            "Processing data between 2019-10-23 and 2019-10-25"
        )
        found = stand(EVENTS, LIMITED, events=built(EVENTS), a=MIXED)["a"]
        assert "it has rows of two definitions" in message(found)
