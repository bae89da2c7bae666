"""What is stale, and why: plans drawn as strips, one character a day."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from types import MappingProxyType
from typing import Any

import pytest
from tests.planning.strips import (
    ALL,
    DAILY,
    EVENTS,
    FIRST,
    MONTHLY,
    SESSIONS,
    USERS,
    built,
    changed,
    changes,
    day,
    node,
    planned,
    project,
    states,
    step_of,
    strip,
    with_incremental,
    with_trace,
)

from infold.core.erasure import ErasureRequest
from infold.core.files import IngestedFile, ListedFile
from infold.core.interval import DAY, EVER, HOUR, MAX, MIN, Interval, Ranges, show_instant
from infold.core.model import DefinitionChange, Materialization, Model, Override
from infold.core.plan import (
    HELD_BACK,
    READS_NO_CHANGE,
    UP_TO_DATE,
    Action,
    ChangedKeyRows,
    FileDiff,
    InputDiff,
    ModelObservation,
    Observations,
    Plan,
    PlanOptions,
    Skipped,
)
from infold.core.project import Bound, Input, Match, Node
from infold.core.trace import Cause, CellChange, CellState, Pending, Trace, Version, was_dropped
from infold.planning.planner import plan
from infold.render.plan import plan_screen


def other(of: Node) -> ModelObservation:
    """A model that was built by another definition."""
    return with_trace(built(of), fingerprint="old")


def pending(seen: ModelObservation) -> ModelObservation:
    """The same with cells that were left out."""
    part = (Pending(Cause.LATE, Ranges((day(1),))),)
    return with_trace(seen, pending=part)


def redefined(
    kept: Mapping[str, str] = MappingProxyType({"daily": "sessions"}), **seen: ModelObservation
) -> Observations:
    """Sessions with another definition, and readers with the inputs that keep what they read."""
    nodes = {"events": EVENTS, "sessions": SESSIONS, "daily": DAILY, "monthly": MONTHLY}
    found = {name: built(node) for name, node in nodes.items()}
    found |= {"sessions": other(SESSIONS)} | seen
    for name, of in kept.items():
        found[name] = replace(found[name], inputs_kept=frozenset({of}))
    return Observations(0, found)


FILE = IngestedFile(1, "a.csv", 10, "one", FIRST, next_due=None, rows=3, waiting=1)
LISTED = ListedFile("a.csv", 10, 0, "one")


def arrived(*estimate: CellState, **more: Any) -> FileDiff:
    """A new file with estimated rows."""
    new = (ListedFile("b.csv", 9, 1, "9:1"),)
    return FileDiff("raw.clicks", new=new, estimate=estimate, **more)


def test_manual_entries() -> None:
    """A new one on sessions is the cause of a step, and the trace has its number. An applied one is
    no cause, and a new one adds none to a model that is built anyway.
    """
    seen = built(SESSIONS, newest_entry=2)
    step, trace = step_of(planned(SESSIONS, sessions=seen))
    [reason] = step.reasons
    assert (step.action, reason.cause) == (Action.FOLD, Cause.QUARANTINE)
    assert reason.detail == "2 manual entries of its quarantine"
    assert trace.applied_entry == 2

    assert not planned(SESSIONS, sessions=with_trace(seen, applied_entry=2))
    step, trace = step_of(planned(SESSIONS, sessions=with_trace(seen, fingerprint="old")))
    assert [reason.cause for reason in step.reasons] == [Cause.DEFINITION]
    assert trace.applied_entry == 2


def test_requests_to_erase() -> None:
    """New ones are the cause of a step on events, which says whom they are about and since when."""
    asked = [
        ErasureRequest(2, "b", "person", made_at=day(2).start + 1),
        ErasureRequest(3, "c", "device", made_at=day(3).start),
    ]
    seen = built(EVENTS, newest_entry=3, erasures=tuple(asked), files=FileDiff("raw.clicks"))
    step, trace = step_of(planned(EVENTS, events=seen))
    [reason] = step.reasons
    assert (step.action, reason.cause) == (Action.INGEST, Cause.ERASED)
    first = show_instant(day(2).start)
    assert reason.detail == f"2 requests to erase (device, person), the first made {first}"
    assert trace.applied_entry == 3

    done = replace(with_trace(seen, applied_entry=3), erasures=())
    assert not planned(EVENTS, events=done)


WIDE = replace(DAILY, inputs=(Input("sessions", "start", (Bound(2 * DAY, 0),)),))
EARLY = PlanOptions(window=Interval(day(0).start, day(3).start))


@pytest.mark.parametrize(
    ("target", "of", "drawn", "asked", "expected"),
    [
        (SESSIONS, "events", "# # + # # # n", None, "- B B B - B B"),
        (SESSIONS, "events", "# + # # + # #", EARLY, "B B B B B B -"),
        (DAILY, "sessions", "# + # # x # #", None, "- B - - B - -"),
        (DAILY, "sessions", "# + # # + # #", EARLY, "- B - - - - -"),
        (replace(DAILY, start=day(3).start), "sessions", "# + # # + # #", None, "- - - - B - -"),
        (WIDE, "sessions", "# + # # # # #", None, "- B B B - - -"),
        (MONTHLY, "daily", "# + # # # # #", None, "B B B B B B B"),
    ],
    ids=["a gap", "a fold", "own cells", "a window", "a start", "looking back", "months"],
)
def test_what_late_rows_make_stale(
    target: Node, of: str, drawn: str, asked: PlanOptions | None, expected: str
) -> None:
    """Those that they can affect: a gap around, looking back, after the start; or pending."""
    made = planned(target, asked=asked, **{target.name: changed(target, of, drawn)})
    step, trace = step_of(made)

    assert strip(made, target.name) == expected
    assert step.action is (Action.FOLD if target is SESSIONS else Action.RECOMPUTE)
    outside = (Pending(Cause.LATE, Ranges((day(4),))),)
    assert trace.pending == (outside if asked is EARLY and target is DAILY else ())
    causes = {"+": Cause.LATE, "x": Cause.REMOVED, "n": Cause.ARRIVED}
    assert {reason.cause for reason in step.reasons} <= {causes[m] for m in drawn if m in causes}


class TestWholeReasons:
    """What makes a whole table stale."""

    def test_first_run_builds_everything(self) -> None:
        """A first run builds a model completely once its inputs exist."""
        unbuilt = ModelObservation(inputs=(InputDiff("events", 0, 0),))
        new = ModelObservation(files=FileDiff("raw.clicks"))
        made = planned(EVENTS, SESSIONS, events=new, sessions=unbuilt)

        assert [(step.model, step.action, step.expected) for step in made.steps] == [
            ("events", Action.BUILD, False),
            ("sessions", Action.BUILD, True),
        ]

    def test_readers_of_columns_that_stay_are_left_alone(self) -> None:
        """Where only a definition changed, and what they read is proven to stay."""
        made = plan(project(SESSIONS, DAILY, MONTHLY), redefined())

        assert [step.model for step in made.steps] == ["sessions"]
        assert {left.model: left.why for left in made.skipped} == {
            "daily": READS_NO_CHANGE.format("sessions"),
            "monthly": UP_TO_DATE,
        }
        both = redefined(daily=other(DAILY), kept={"daily": "sessions", "monthly": "daily"})
        made = plan(project(SESSIONS, DAILY, MONTHLY), both)
        assert [step.model for step in made.steps] == ["sessions", "daily"]
        assert made.skipped[-1].why == READS_NO_CHANGE.format("daily")

    def test_readers_of_a_table_that_is_replaced_by_parts_are_built(self) -> None:
        """Such a table lacks cells for some time, so its readers have other rows."""
        parts = with_incremental(DAILY, on_definition_change=DefinitionChange.REBUILT_CELLS)
        fed = tuple(replace(diff, cells=states("# # # # # # #")) for diff in other(parts).inputs)
        seen = redefined(daily=replace(other(parts), inputs=fed), kept={"monthly": "daily"})

        made = plan(project(parts, MONTHLY), seen)

        assert [step.model for step in made.steps] == ["daily", "monthly"]

    @pytest.mark.parametrize(
        "seen",
        [
            lambda: {"sessions": replace(other(SESSIONS), inputs=(InputDiff("events", 1, 2),))},
            lambda: {"sessions": replace(other(SESSIONS), newest_entry=1)},
            lambda: {"sessions": pending(other(SESSIONS))},
            lambda: {"kept": {}},
            lambda: {"kept": {"daily": "users"}},
            lambda: {"events": replace(other(EVENTS), files=FileDiff("raw.clicks"))},
        ],
        ids=["a newer input", "an entry", "pending", "not kept", "another", "a redefined input"],
    )
    def test_readers_of_rows_that_may_change_are_built(
        self, seen: Callable[[], dict[str, Any]]
    ) -> None:
        """Whatever else may have changed rows reaches the readers as ever."""
        made = plan(project(EVENTS, SESSIONS, DAILY, MONTHLY), redefined(**seen()))

        assert {"sessions", "daily", "monthly"} <= {step.model for step in made.steps}

    @pytest.mark.parametrize(
        ("files", "left"),
        [
            ({}, True),
            ({"removed": (FILE,)}, False),
            ({"new": (replace(LISTED, fingerprint="2"),)}, False),
            ({"ingested": (replace(FILE, next_due=5),), "as_of": 5}, False),
            ({"ingested": (replace(FILE, next_due=5),), "as_of": 4}, True),
        ],
        ids=["same", "removed", "other", "due", "not due"],
    )
    def test_files_that_are_read_again_are_no_change(
        self, files: dict[str, Any], left: bool
    ) -> None:
        """Events with an added column read all their files again; other files are a change."""
        found = FileDiff("raw.clicks", new=(LISTED,), ingested=(FILE,))
        events = replace(other(EVENTS), files=replace(found, **files))
        seen = {
            "events": events,
            "sessions": replace(built(SESSIONS), inputs_kept=frozenset({"events"})),
        }

        made = planned(EVENTS, SESSIONS, **seen)

        assert ("sessions" not in {step.model for step in made.steps}) is left

    def test_changed_keys_of_a_lookup_make_cells_with_them_stale(self) -> None:
        """Those of rows with the keys; all until they are searched, or without times or keys."""
        whole = planned(DAILY, daily=changed(DAILY, "users", "# + # # # # #"))
        assert strip(whole, "daily") == "B B B B B B B"
        daily = replace(DAILY, matches=(Match("users", "sessions", (("user", "user"),)),))
        seen, change = built(daily), CellChange(EVER, 1, 1, 5, 5, 1, 2)
        diff = InputDiff("users", 1, 2, (change,), (CellState(EVER, 5, 2),))

        def searched(found: ChangedKeyRows | None, **more: Any) -> Plan:
            inputs = (seen.inputs[0], replace(diff, changed_keys=found, **more))
            return planned(daily, daily=replace(seen, inputs=inputs))

        unknown = searched(None)
        assert unknown.steps[0].reasons[0].cause is Cause.LOOKUP
        for found in (unknown, searched(ChangedKeyRows(everywhere=True))):
            assert found.steps[0].cells == ALL
        [gone] = searched(ChangedKeyRows(everywhere=True), dropped_since=True).steps
        assert gone.reasons[0].detail == "2 rows in 1 cell of users, dropped since it was read"
        assert unknown.notes == (
            "daily: at most this; a run finds the rows with changed keys of users first",
        )
        [step] = searched(ChangedKeyRows((("sessions", Ranges((day(2),)), 3),), 40)).steps
        assert (step.cells, step.scanned) == (Ranges((day(2),)), 40)
        assert step.reasons[0].detail == "3 rows with changed keys of users"
        [step] = searched(ChangedKeyRows((("sessions", Ranges(), 0),))).steps
        assert (step.action, step.cells, step.trace) == (
            Action.RECOMPUTE,
            Ranges(),
            Trace("daily", daily.fingerprint, {"sessions": 1, "users": 2}),
        )

    def test_files_with_changed_keys_of_a_lookup_are_ingested_again(self) -> None:
        """Those with the keys, or all until they are searched."""
        match = Match("users", "raw.clicks", (("user", "user"),))
        events = replace(EVENTS, inputs=(*EVENTS.inputs, Input("users")), matches=(match,))
        known = tuple(IngestedFile(at, f"{at}.csv", 9, "9:1", 0, rows=4) for at in (1, 2, 3))
        trace = Trace("events", events.fingerprint, {"users": 1})
        change = CellChange(EVER, 1, 1, 5, 5, 1, 2)
        seen = ModelObservation(trace, 1, FileDiff("raw.clicks", removed=known[:1], ingested=known))

        def searched(found: ChangedKeyRows | None) -> Plan:
            diff = InputDiff("users", 1, 2, (change,), changed_keys=found)
            return planned(events, events=replace(seen, inputs=(diff,)))

        def again(found: ChangedKeyRows | None) -> tuple[Action, tuple[int, ...]]:
            [step] = searched(found).steps
            assert step.files is not None
            assert not step.cells, "where the rows are that differ is known once they are read"
            return step.action, tuple(file.id for file in step.files.reingest)

        assert searched(None).notes == (
            "events: at most this; a run finds the rows with changed keys of users first",
        )
        assert again(None) == again(ChangedKeyRows(everywhere=True)) == (Action.INGEST, (2, 3))
        assert again(ChangedKeyRows((("raw.clicks", Ranges(), 3),), files=(1, 3))) == (
            Action.INGEST,
            (3,),
        )
        assert again(ChangedKeyRows((("raw.clicks", Ranges(), 0),))) == (Action.INGEST, ())

    def test_mostly_new_input_is_built_rather_than_folded(self) -> None:
        """More than half of the events are new: that costs less than folding."""
        many = CellChange(day(0), 100, 0, 0, 100, 0, 1)
        diff = InputDiff("events", 1, 2, (many,), (CellState(day(0), 100, 1),))
        made = planned(SESSIONS, sessions=built(SESSIONS, inputs=(diff,)))

        assert made.steps[0].action is Action.BUILD

    @pytest.mark.parametrize(
        ("rows", "new", "definition", "action"),
        [
            (100, 40, "", Action.FOLD),
            (100, 140, "", Action.BUILD),
            (100, 40, "another", Action.BUILD),
            (0, 40, "", Action.FOLD),
        ],
    )
    def test_the_plan_shows_what_the_run_does_after_reading_files(
        self, rows: int, new: int, definition: str, action: Action
    ) -> None:
        """By the known numbers of rows; a rebuilt table changes as a whole."""
        events = built(EVENTS, files=arrived(CellState(day(2), new, 0)), rows=rows)
        if definition:
            events = replace(events, trace=Trace("events", definition))

        made = planned(EVENTS, SESSIONS, events=events, sessions=built(SESSIONS))

        assert made.steps[1].action is action
        assert made.steps[1].expected


BY_USER = node(
    Model("by_user", Materialization.CUMULATIVE_AGGREGATE, ""), Input("sessions", "session_start")
)


class TestCumulative:
    """A cumulative aggregate is one cell that changed rows are folded into."""

    def planned(
        self, seen: ModelObservation, asked: PlanOptions | None = None
    ) -> tuple[Action, list[Cause]]:
        """What a plan does to it, and why; it has one cell, whatever changed."""
        [step] = planned(BY_USER, asked=asked, by_user=seen).steps
        assert step.cells == Ranges.ever()
        return step.action, [reason.cause for reason in step.reasons]

    def test_what_is_done_to_it(self) -> None:
        """Late, new and removed rows are folded in, each with its cause. It is built on a first
        run, for a changed definition, on request, and where most rows are new or the input dropped.
        """
        seen = changed(BY_USER, "sessions", "# + # # x # n")
        assert self.planned(seen) == (Action.FOLD, [Cause.LATE, Cause.REMOVED, Cause.ARRIVED])
        first = ModelObservation(inputs=(InputDiff("sessions", 0, 3, cells=states("# #")),))
        assert self.planned(first) == (Action.BUILD, [Cause.MISSING])
        assert self.planned(other(BY_USER)) == (Action.BUILD, [Cause.DEFINITION])
        asked = PlanOptions(restated={"by_user": Ranges.ever()})
        assert self.planned(built(BY_USER), asked) == (Action.BUILD, [Cause.RESTATED])
        new = changed(BY_USER, "sessions", "n")
        few = replace(new.inputs[0], cells=(CellState(day(0), 1, 1),))
        anew = replace(changed(BY_USER, "sessions", "# + # #").inputs[0], dropped_since=True)
        for diff in (few, anew):
            assert self.planned(replace(new, inputs=(diff,)))[0] is Action.BUILD

    def test_a_plan_says_that_keys_change(self) -> None:
        """The plan of a cumulative table says that keys change and gives no number of cells."""
        seen = Observations(0, {"by_user": changed(BY_USER, "sessions", "# + # # # # #")})
        one = project(BY_USER)
        lines = plan_screen(one, seen, plan(one, seen), {}).splitlines()

        at = lines.index("Steps")
        assert lines[at + 1 : at + 3] == [
            "  1. by_user  fold  changed keys  about 1 row",
            "       late        1 row in 1 cell of sessions",
        ]


class TestBatches:
    """A step is the first batch, and the rest is pending until it is built."""

    LATE = "# + # + + # +"

    def made(self, target: Node, asked: PlanOptions) -> Plan:
        """A plan of a model four of whose days are late."""
        return planned(target, asked=asked, daily=changed(target, "sessions", self.LATE))

    @pytest.mark.parametrize(
        ("size", "first", "batches"),
        [(1, "- B - - - - -", 4), (2, "- B - B - - -", 2), (3, "- B - B B - -", 2), (9, "", 1)],
    )
    def test_the_first_batch_and_how_many_there_are(
        self, size: int, first: str, batches: int
    ) -> None:
        """By the command or the model; the first one is the step."""
        for target, asked in (
            (with_incremental(DAILY, batch_size=size), PlanOptions()),
            (with_incremental(DAILY, batch_size=1), PlanOptions(batch_size=size)),
        ):
            made = self.made(target, asked)
            step, trace = step_of(made)

            assert strip(made, "daily") == (first or "- B - B B - B")
            assert step.batches == batches
            assert step.stale_cells == step.cells | trace.pending_ranges

    @pytest.mark.parametrize(
        ("own", "jobs", "beside"),
        [(None, None, 0), (2, None, 1), (9, None, 3), (None, 3, 2), (2, 3, 1), (3, 1, 0)],
    )
    def test_how_many_batches_are_built_at_once(
        self, own: int | None, jobs: int | None, beside: int
    ) -> None:
        """By the model and the run, each with its own cells in order."""
        target = with_incremental(DAILY, batch_size=1, batch_concurrency=own)
        [step] = self.made(target, PlanOptions(jobs=jobs)).steps

        assert step.batches == 4
        assert [str(part) for part in step.concurrent_batches] == [
            str(Ranges((day(at),))) for at in (3, 4, 6)[:beside]
        ]

    def test_the_first_batch_creates_the_table_alone(self) -> None:
        """The first batch of a new table has none beside it."""
        target = with_incremental(DAILY, batch_size=1, batch_concurrency=4)
        seen = replace(changed(target, "sessions", self.LATE), trace=None)
        [step] = planned(target, daily=seen).steps

        assert step.batches == 7
        assert not step.concurrent_batches

    @pytest.mark.parametrize(("together", "built"), [(31, "- B - B B - B"), (2, "- B - B - - -")])
    def test_cells_built_singly_are_committed_together(
        self, monkeypatch: pytest.MonkeyPatch, together: int, built: str
    ) -> None:
        """Cells built singly are a query each, and a limited number of them is one commit."""
        monkeypatch.setattr("infold.planning.buildable_cells.CELLS_TOGETHER", together)
        made = self.made(replace(DAILY, overrides_used=(Override.LIMIT,)), PlanOptions())

        assert strip(made, "daily") == built


class TestExchange:
    """A changed definition replaces the old table at once, so that a table has one definition."""

    OTHER = with_trace(changed(DAILY, "sessions", "# + # # # # #"), fingerprint="other")

    def made(self, target: Node, asked: PlanOptions | None = None, *others: Node) -> Plan:
        """A plan of a daily model that was built by another definition."""
        seen = {"daily": self.OTHER}
        seen |= {
            other.name: ModelObservation(inputs=(InputDiff("daily", 1, 1),)) for other in others
        }
        return planned(target, *others, asked=asked, **seen)

    def test_batches_of_a_new_definition_are_committed_together(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """Batches of a new definition are computed one by one and committed together."""
        by_cell = replace(DAILY, overrides_used=(Override.LIMIT,))
        monkeypatch.setattr("infold.planning.buildable_cells.CELLS_TOGETHER", 2)
        for target, pieces in ((with_incremental(DAILY, batch_size=3), 3), (by_cell, 4)):
            step, trace = step_of(self.made(target))

            assert (step.action, step.batches, step.cells) == (Action.BUILD, 1, Ranges.ever())
            assert len(step.pieces) == pieces
            assert Ranges.of(part for piece in step.pieces for part in piece) == Ranges.ever()
            assert not trace.pending
        assert self.made(DAILY).steps[0].pieces == ()

    def test_a_partial_window_builds_nothing(self) -> None:
        """And the plan says why; one around all builds all."""
        every = PlanOptions(window=Interval(day(0).start, day(7).start))

        made = self.made(DAILY, EARLY)
        assert not made
        assert [left.why for left in made.skipped] == [HELD_BACK]
        assert made.skipped[0].stale == Ranges((Interval(day(0).start, day(7).start),))
        [step] = self.made(DAILY, every).steps
        assert (step.cells, step.trace.pending if step.trace else None) == (Ranges.ever(), ())

    def test_a_changed_reader_of_a_table_that_waits_also_waits(self) -> None:
        """Its input may lack a new column; other readers go on."""
        reader = node(Model("reader", Materialization.TABLE, ""), Input("daily", "day"))

        made = self.made(DAILY, EARLY, reader)

        assert not made
        assert made.skipped[-1] == Skipped("reader", "its input daily is of an old definition")
        diffs = (InputDiff("daily", 1, 2, changes("+"), states("#")),)
        again = built(reader, inputs=diffs)
        live = planned(DAILY, reader, asked=EARLY, daily=self.OTHER, reader=again)
        assert [step.model for step in live.steps] == ["reader"]

    def test_incomplete_cells_wait_for_their_tick(self) -> None:
        """They are missing until then, not stale for another definition."""
        target = with_incremental(DAILY, cron="0 5 * * *")
        step, trace = step_of(planned(target, now=day(3).start + 5 * HOUR, daily=self.OTHER))

        assert step.action is Action.BUILD
        assert step.cells == Ranges((Interval(MIN, day(3).start),))
        [left] = trace.pending
        assert (left.cause, left.ranges) == (Cause.MISSING, Ranges((Interval(day(3).start, MAX),)))


class TestCron:
    """When a model is due, and which cells are complete."""

    DAILY = with_incremental(DAILY, cron="0 5 * * *")

    def made(self, hours: int, built_at: int) -> Plan:
        """A plan so many hours into the strip, of a model built at another."""
        seen = changed(self.DAILY, "sessions", "# + # # # # +")
        seen = replace(seen, as_of=FIRST + built_at * HOUR)
        return planned(self.DAILY, now=FIRST + hours * HOUR, daily=seen)

    def test_after_a_tick_all_complete_cells_are_built(self) -> None:
        """After the tick all complete days are built, and before it none is."""
        assert strip(self.made(24 * 7 + 5, 24 * 6), "daily") == "- B - - - - B"
        assert strip(self.made(24 * 7 + 4, 24 * 5), "daily") == "- B - - - - -"

    def test_a_tick_without_rows_builds_nothing(self) -> None:
        """A tick without new rows builds nothing, though the day it waited for is complete."""
        seen = built(self.DAILY, as_of=FIRST + 24 * HOUR)
        waits = (Pending(Cause.MISSING, Ranges((Interval(FIRST + 9 * DAY, MAX),))),)
        seen = with_trace(seen, pending=waits)

        made = planned(self.DAILY, now=FIRST + 20 * DAY, daily=seen)

        assert not made
        fills = replace(self.DAILY, fills_cells=True)  # a lookup's rows are there, whatever comes
        [step] = planned(fills, now=FIRST + 20 * DAY, daily=seen).steps
        assert step.cells == Ranges((Interval(FIRST + 9 * DAY, FIRST + 19 * DAY),))


class TestFiles:
    """The plan of an ingest, from the listing of files."""

    @pytest.mark.parametrize(
        ("files", "causes"),
        [
            (arrived(removed=(FILE,), come_due=(replace(FILE, id=2, path="c.csv"),)),
             [(Cause.ARRIVED, 0), (Cause.REMOVED, 3), (Cause.DUE, 1)]),
            (arrived(CellState(day(1), 2, 0), CellState(day(6), 5, 0)),
             [(Cause.LATE, 2), (Cause.ARRIVED, 5)]),
        ],
        ids=["files", "days"],
    )  # fmt: skip
    def test_causes(self, files: FileDiff, causes: list[tuple[Cause, int]]) -> None:
        """Each with its rows; estimated rows of a day that has some are late."""
        seen = built(EVENTS, files=files, cells=states("# # # . . . ."))
        [step] = planned(EVENTS, events=seen).steps

        assert step.action is Action.INGEST
        assert [(reason.cause, reason.rows) for reason in step.reasons] == causes

    def test_readers_of_a_built_table_are_expected(self) -> None:
        """Readers of files are shown as expected steps, planned again once the files are read."""
        events = built(EVENTS, files=arrived(CellState(day(2), 2, 0)))
        made = planned(EVENTS, SESSIONS, events=events, sessions=built(SESSIONS))

        assert [strip(made, name) for name in ("events", "sessions")] == [
            "- - B - - - -",
            "- B B B - - -",
        ]
        assert [step.expected for step in made.steps] == [False, True]


@pytest.mark.parametrize("span", [(MIN, MAX), (MIN, FIRST), (FIRST, MAX)])
def test_open_ranges_survive_planning(span: tuple[int, int]) -> None:
    """Cells with open ends are planned without walking their days."""
    pending = (Pending(Cause.MISSING, Ranges((Interval(*span),))),)
    made = planned(DAILY, daily=with_trace(built(DAILY), pending=pending))

    assert made.steps[0].cells == Ranges((Interval(*span),))


# -- the exact tick, the versions that a step reads, dropped tables

TICK = FIRST + 7 * DAY + 5 * HOUR
FIVE = with_incremental(DAILY, cron="0 5 * * *")
FILLS = replace(FIVE, fills_cells=True)
LATE = "# + # # # # #"


def at_five(
    built_at: int,
    now: int,
    left: Ranges | None = None,
    *,
    days: str = LATE,
    unfinished: bool = False,
    node: Node = FIVE,
) -> Plan:
    """A plan of a model that is due at five, one of whose days is late."""
    seen = replace(changed(node, "sessions", days), as_of=built_at, unfinished=unfinished)
    if left is not None:
        seen = with_trace(seen, pending=(Pending(Cause.LATE, left),))
    return planned(node, now=now, daily=seen)


def test_a_model_that_was_built_at_the_very_tick_was_built_for_it() -> None:
    """A model built at the exact tick is not due an hour later, and is due at the next tick."""
    waits = at_five(TICK, TICK + HOUR)
    assert not waits
    assert waits.skipped[0].why.startswith("not due before")
    assert at_five(TICK, TICK + DAY)
    assert at_five(TICK - 1, TICK)


@pytest.mark.parametrize(
    ("now", "left", "days", "keys", "due"),
    [
        (TICK, day(0), LATE, {"unfinished": True}, True),
        (TICK + HOUR, day(0), LATE, {"unfinished": True}, True),
        (TICK + HOUR, day(0), LATE, {}, False),
        (TICK + HOUR, day(7), "# + # # # . # #", {"unfinished": True}, False),
        (TICK + HOUR, day(5), "# + # # # . # #", {"unfinished": True}, False),
        (TICK + HOUR, day(5), "# + # # # .", {"unfinished": True, "node": FILLS}, True),
    ],
    ids=["of this run", "by any clock", "of a limit", "incomplete", "empty", "of a calendar"],
)
def test_batches_of_one_tick(
    now: int, left: Interval, days: str, keys: dict[str, Any], *, due: bool
) -> None:
    """
    A run continues its batches, and so does the next one where it came to no good end; what a
    window or a limit left out waits. Cells that are not over, or have no rows, were not to be
    built, unless the model fills its cells.
    """
    assert bool(at_five(TICK, now, Ranges.of([left]), days=days, **keys)) is due


def test_what_a_step_reads() -> None:
    """Between the version of each input that was read and the newest, which its trace then names.
    A day with two days before it reads three days.
    """
    [step] = planned(DAILY, daily=changed(DAILY, "sessions", LATE)).steps
    assert step.inputs == {"sessions": (1, 2), "users": (1, 1)}
    assert step.trace is not None
    assert step.trace.inputs == {"sessions": 2, "users": 1}
    back = replace(DAILY, inputs=(Input("sessions", "session_start", (Bound(before=2 * DAY),)),))
    [step] = planned(back, daily=changed(back, "sessions", "# # # # # # +")).steps
    assert step.rows_to_read == 30


def test_a_dropped_table_is_not_read() -> None:
    """Readers of a dropped table wait for the run that builds it again."""
    seen = changed(DAILY, "sessions", LATE)
    gone = replace(built(USERS), trace=None)

    made = planned(
        USERS, DAILY, asked=PlanOptions(selected=frozenset({"daily"})), users=gone, daily=seen
    )

    assert not made.steps
    assert [(left.model, left.why) for left in made.skipped] == [
        ("users", "not selected"),
        ("daily", "its input users was never built"),
    ]


def test_partial_cells_are_built_where_allowed() -> None:
    """A cell that is not complete is built if the model or --ignore-cron allows it."""
    partly = with_incremental(DAILY, cron="0 5 * * *", allow_partials=True)
    now = FIRST + 6 * DAY + 6 * HOUR
    for target, asked, drawn in (
        (FIVE, PlanOptions(), "- - - - - - -"),
        (FIVE, PlanOptions(ignore_cron=True), "- - - - - - B"),
        (partly, PlanOptions(), "- - - - - - B"),
    ):
        seen = replace(changed(target, "sessions", "# # # # # # +"), as_of=FIRST)
        made = planned(target, now=now, asked=asked, daily=seen)

        assert strip(made, "daily") == drawn


def test_only_a_version_without_a_snapshot_says_that_a_table_was_dropped() -> None:
    """One that replaced all rows does not."""
    rebuilt = Version("daily", 2, 77, "step", "run", 0, 10, whole=True)
    recovered = replace(rebuilt, snapshot=None, whole=False)

    assert not was_dropped([rebuilt])
    assert not was_dropped([recovered])
    assert was_dropped([rebuilt, replace(rebuilt, number=3, snapshot=None)])
