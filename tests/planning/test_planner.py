"""What is stale, and why: plans drawn as strips, one character a day."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from infold.core.files import FileKnown, FileSeen
from infold.core.formats import Format
from infold.core.interval import (
    DAY,
    EVER,
    HOUR,
    MAX,
    MIN,
    MINUTE,
    Granularity,
    Interval,
    Ranges,
    instant,
)
from infold.core.model import (
    Column,
    Incremental,
    Materialization,
    Model,
    Override,
    Source,
    Target,
    Timeseries,
)
from infold.core.plan import (
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
from infold.core.project import Bound, Input, Match, Node, Project, SessionsQuery
from infold.core.session_rules import Sessions
from infold.core.trace import Cause, CellChange, CellState, Pending, Trace
from infold.planning.planner import HELD_BACK, plan
from infold.render.plan import plan_screen

FIRST = instant("2019-10-21")
DAYS = 7
ALL = Ranges.ever()


def day(number: int) -> Interval:
    """The cell of the ``number``-th day of the strip, from 0."""
    return Interval(FIRST + number * DAY, FIRST + (number + 1) * DAY)


def node(model: Model, *inputs: Input, query: SessionsQuery | None = None) -> Node:
    """A compiled model with a fingerprint of its own."""
    source = inputs[0].name if model.materialization is Materialization.EVENTS else None
    return Node(model, inputs, (), f"fp-{model.name}", (), source=source, query=query)


EVENTS = node(
    Model("events", Materialization.EVENTS, "", Timeseries("ts", "ts"), unique_key=("id",)),
    Input("raw.clicks"),
)
SESSIONS = node(
    Model("sessions", Materialization.SESSIONS, "", sessions=Sessions("user", 30 * MINUTE)),
    Input("events", "ts"),
    query=SessionsQuery("events", "ts", "user", 30 * MINUTE, ("id",), None, (), ()),
)
USERS = node(Model("users", Materialization.TABLE, ""), Input("raw.users"))
DAILY = node(
    Model(
        "daily",
        Materialization.TABLE,
        "",
        Timeseries("session_start", "day"),
        incremental=Incremental(),
    ),
    Input("sessions", "session_start"),
    Input("users"),
)
MONTHLY = node(
    Model(
        "monthly",
        Materialization.TABLE,
        "",
        Timeseries("day", "month", Granularity.MONTH),
        incremental=Incremental(),
    ),
    Input("daily", "day"),
)


def project(*nodes: Node, start: int | None = None) -> Project:
    """A project of these models over one source."""
    source = Source("raw.clicks", Format.CSV, (Column("id", "string"),), path="landing/*.csv")
    return Project("shop", Path(), start, {source.name: source}, nodes, Target("dev"))


def states(strip: str) -> tuple[CellState, ...]:
    """Ten rows in each day drawn ``#`` or ``+``."""
    return tuple(CellState(day(i), 10, i) for i, mark in enumerate(strip.split()) if mark in "#+")


def changes(strip: str) -> tuple[CellChange, ...]:
    """One row added to each day drawn ``+`` (late), ``n`` (new), removed from ``x``."""
    made = []
    for i, mark in enumerate(strip.split()):
        if mark in "+nx":
            before = 0 if mark == "n" else 10
            removed = 1 if mark == "x" else 0
            after = before - removed + (0 if removed else 1)
            made.append(CellChange(day(i), 1 - removed, removed, before, after, 1, 2))
    return tuple(made)


def built(target: Node, since: int = 1, **extra: object) -> ModelObservation:
    """A model whose trace holds for version ``since`` of all its inputs."""
    inputs = {entry.name: since for entry in target.inputs if target.source is None}
    trace = Trace(target.name, target.fingerprint, inputs)
    news = tuple(InputDiff(name, since, since) for name in inputs)
    return replace(ModelObservation(trace=trace, version=1, inputs=news), **extra)  # type: ignore[arg-type]


def changed(target: Node, name: str, strip: str) -> ModelObservation:
    """A built model one of whose inputs changed as drawn."""
    seen = built(target)
    news = tuple(
        InputDiff(name, 1, 2, changes(strip), states(strip)) if entry.name == name else entry
        for entry in seen.inputs
    )
    return replace(seen, inputs=news)


def strip(made: Plan, name: str) -> str:
    """The days that a plan builds of a model, ``B`` to build, ``-`` leave."""
    cells = Ranges.of(part for step in made.steps if step.model == name for part in step.cells)
    return " ".join("B" if cells.overlaps(day(i)) else "-" for i in range(DAYS))


class TestManualEntries:
    """What people said of sessions makes their table stale, whatever arrived."""

    def test_a_new_entry_is_folded_in(self) -> None:
        """The plan names its cause, and the trace the newest entry."""
        made = plan(project(SESSIONS), Observations(0, {"sessions": built(SESSIONS, entries=2)}))
        [step] = made.steps
        [reason] = step.reasons

        assert (step.action, reason.cause) == (Action.FOLD, Cause.QUARANTINE)
        assert reason.detail == "2 manual entries of its quarantine"
        assert step.trace is not None
        assert step.trace.entries == 2

    def test_an_entry_that_was_heeded_is_no_reason(self) -> None:
        """Nor is one of a model that has to be built anyway a second one."""
        seen = built(SESSIONS, entries=2)
        assert seen.trace is not None
        applied = replace(seen, trace=replace(seen.trace, entries=2))
        assert not plan(project(SESSIONS), Observations(0, {"sessions": applied}))

        changed_query = replace(seen, trace=replace(seen.trace, fingerprint="old"))
        [step] = plan(project(SESSIONS), Observations(0, {"sessions": changed_query})).steps
        assert [reason.cause for reason in step.reasons] == [Cause.DEFINITION]
        assert step.trace is not None
        assert step.trace.entries == 2


class TestLateRows:
    """A late row makes stale what can hold it, and nothing else."""

    def test_sessions_reach_one_gap_beyond_the_touched_days(self) -> None:
        """A late day may extend a session of the day before or reach into the day after."""
        seen = Observations(0, {"sessions": changed(SESSIONS, "events", "# # + # # # n")})

        made = plan(project(SESSIONS), seen)

        assert strip(made, "sessions") == "- B B B - B B"
        assert made.steps[0].action is Action.FOLD

    def test_a_time_range_model_rebuilds_its_own_cells_only(self) -> None:
        """A changed day of the input makes that day stale."""
        seen = Observations(0, {"daily": changed(DAILY, "sessions", "# + # # x # #")})

        made = plan(project(DAILY), seen)

        assert strip(made, "daily") == "- B - - B - -"
        assert {reason.cause for reason in made.steps[0].reasons} == {Cause.LATE, Cause.REMOVED}

    def test_far_apart_days_are_two_ranges(self) -> None:
        """Days far apart never become their hull."""
        old = CellChange(Interval(instant("2009-01-01"), instant("2009-01-02")), 1, 0, 0, 1, 0, 1)
        seen = changed(DAILY, "sessions", "# # # # # # +")
        news = (replace(seen.inputs[0], changes=(old, *seen.inputs[0].changes)), seen.inputs[1])

        made = plan(project(DAILY), Observations(0, {"daily": replace(seen, inputs=news)}))

        assert len(made.steps[0].cells) == 2

    def test_a_months_cell_holds_the_changed_day(self) -> None:
        """A change of a day makes its calendar month stale, exactly."""
        seen = Observations(0, {"monthly": changed(MONTHLY, "daily", "# + # # # # #")})

        made = plan(project(MONTHLY), seen)

        assert made.steps[0].cells == Ranges(
            (Interval(instant("2019-10-01"), instant("2019-11-01")),)
        )

    def test_nothing_changed_is_nothing_to_do(self) -> None:
        """A model whose inputs did not change is left alone, with the reason."""
        made = plan(project(DAILY), Observations(0, {"daily": built(DAILY)}))

        assert not made
        assert [left.why for left in made.left] == ["up to date"]


class TestWholeReasons:
    """What makes all of a table stale."""

    def test_first_run_builds_everything(self) -> None:
        """A model without a trace is built whole, once its inputs are there."""
        nodes = (EVENTS, SESSIONS)
        unbuilt = ModelObservation(inputs=(InputDiff("events", 0, 0),))
        seen = Observations(
            0, {"events": ModelObservation(files=FileDiff("raw.clicks")), "sessions": unbuilt}
        )

        made = plan(project(*nodes), seen)

        assert [(step.model, step.action, step.expected) for step in made.steps] == [
            ("events", Action.BUILD, False),
            ("sessions", Action.BUILD, True),
        ]

    def test_another_definition_builds_everything(self) -> None:
        """A fingerprint that is not the trace's makes the model stale as a whole."""
        seen = built(DAILY)
        assert seen.trace is not None
        seen = replace(seen, trace=replace(seen.trace, fingerprint="old"))

        made = plan(project(DAILY), Observations(0, {"daily": seen}))

        assert made.steps[0].reasons[0].cause is Cause.DEFINITION
        assert made.steps[0].cells == Ranges.ever()

    def test_a_changed_lookup_makes_every_cell_stale(self) -> None:
        """A table without a time column is read whole by every cell."""
        seen = built(DAILY)
        change = CellChange(EVER, 1, 1, 5, 5, 1, 2)
        news = (seen.inputs[0], InputDiff("users", 1, 2, (change,), (CellState(EVER, 5, 2),)))

        made = plan(project(DAILY), Observations(0, {"daily": replace(seen, inputs=news)}))

        assert made.steps[0].cells == Ranges.ever()
        assert made.steps[0].reasons[0].cause is Cause.LOOKUP

    def test_changed_keys_of_a_lookup_make_the_cells_stale_that_hold_them(self) -> None:
        """At most all are, as long as nobody has looked; none where no row has one of the keys."""
        daily = replace(DAILY, matches=(Match("users", "sessions", (("user", "user"),)),))
        seen, change = built(daily), CellChange(EVER, 1, 1, 5, 5, 1, 2)
        news = InputDiff("users", 1, 2, (change,), (CellState(EVER, 5, 2),))

        def planned(found: ChangedKeyRows | None) -> Plan:
            inputs = (seen.inputs[0], replace(news, found=found))
            return plan(project(daily), Observations(0, {"daily": replace(seen, inputs=inputs)}))

        unknown = planned(None)
        assert (
            unknown.steps[0].cells == planned(ChangedKeyRows(everywhere=True)).steps[0].cells == ALL
        )
        assert unknown.notes == (
            "daily: at most this; a run finds the rows with changed keys of users first",
        )
        [step] = planned(ChangedKeyRows((("sessions", Ranges((day(2),)), 3),), 40)).steps
        assert (step.cells, step.scanned) == (Ranges((day(2),)), 40)
        assert step.reasons[0].detail == "3 rows with changed keys of users"
        [step] = planned(ChangedKeyRows((("sessions", Ranges(), 0),))).steps
        assert (step.action, step.cells, step.trace) == (
            Action.RECOMPUTE,
            Ranges(),
            Trace("daily", daily.fingerprint, {"sessions": 1, "users": 2}),
        )

    def test_files_with_changed_keys_of_a_lookup_are_taken_in_again(self) -> None:
        """All that are still there, as long as nobody has looked; none where no row has a key."""
        match = Match("users", "raw.clicks", (("user", "user"),))
        events = replace(EVENTS, inputs=(*EVENTS.inputs, Input("users")), matches=(match,))
        known = tuple(FileKnown(at, f"{at}.csv", 9, "9:1", 0, rows=4) for at in (1, 2, 3))
        trace = Trace("events", events.fingerprint, {"users": 1})
        change = CellChange(EVER, 1, 1, 5, 5, 1, 2)
        seen = ModelObservation(trace, 1, FileDiff("raw.clicks", gone=known[:1], known=known))

        def planned(found: ChangedKeyRows | None) -> Plan:
            news = InputDiff("users", 1, 2, (change,), found=found)
            return plan(project(events), Observations(0, {"events": replace(seen, inputs=(news,))}))

        def again(found: ChangedKeyRows | None) -> tuple[Action, tuple[int, ...]]:
            [step] = planned(found).steps
            assert step.files is not None
            assert not step.cells, "where the rows are that differ is known once they are read"
            return step.action, tuple(file.id for file in step.files.again)

        assert planned(None).notes == (
            "events: at most this; a run finds the rows with changed keys of users first",
        )
        assert again(None) == again(ChangedKeyRows(everywhere=True)) == (Action.INGEST, (2, 3))
        assert again(ChangedKeyRows((("raw.clicks", Ranges(), 3),), files=(1, 3))) == (
            Action.INGEST,
            (3,),
        )
        assert again(ChangedKeyRows((("raw.clicks", Ranges(), 0),))) == (Action.INGEST, ())

    def test_mostly_new_input_is_built_rather_than_folded(self) -> None:
        """When more than half of the events are new, computing all sessions costs less."""
        many = CellChange(day(0), 100, 0, 0, 100, 0, 1)
        seen = built(SESSIONS)
        news = InputDiff("events", 1, 2, (many,), (CellState(day(0), 100, 1),))

        made = plan(project(SESSIONS), Observations(0, {"sessions": replace(seen, inputs=(news,))}))

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
    def test_what_is_shown_is_what_the_run_does_once_files_are_read(
        self, rows: int, new: int, definition: str, action: Action
    ) -> None:
        """By the rows that files are known to hold; a table that is built anew changes whole."""
        news = FileDiff(
            "raw.clicks",
            new=(FileSeen("b.csv", 9, 1, "9:1"),),
            peek=(CellState(day(2), new, 0),),
        )
        events = built(EVENTS, files=news, rows=rows)
        if definition:
            events = replace(events, trace=Trace("events", definition))

        made = plan(
            project(EVENTS, SESSIONS),
            Observations(0, {"events": events, "sessions": built(SESSIONS)}),
        )

        assert made.steps[1].action is action
        assert made.steps[1].expected

    def test_a_model_over_a_table_never_built_waits(self) -> None:
        """Without its input, a model is left alone and says which one is missing."""
        seen = Observations(0, {"daily": ModelObservation(inputs=(InputDiff("sessions", 0, 0),))})

        made = plan(project(DAILY), seen, PlanOptions(selected=frozenset({"daily"})))

        assert not made
        assert "never built" in made.left[0].why


BY_USER = node(
    Model("by_user", Materialization.CUMULATIVE_AGGREGATE, ""), Input("sessions", "session_start")
)


class TestByKey:
    """A cumulative aggregate is one cell that changed rows are folded into."""

    def planned(
        self, seen: ModelObservation, asked: PlanOptions | None = None
    ) -> tuple[Action, list[Cause]]:
        """What a plan does to it, and why; it has one cell, whatever changed."""
        [step] = plan(
            project(BY_USER), Observations(0, {"by_user": seen}), asked or PlanOptions()
        ).steps
        assert step.cells == Ranges.ever()
        return step.action, [reason.cause for reason in step.reasons]

    def test_changed_sessions_are_folded_in(self) -> None:
        """Late, new and removed rows, each with its cause."""
        seen = changed(BY_USER, "sessions", "# + # # x # n")
        assert self.planned(seen) == (Action.FOLD, [Cause.LATE, Cause.REMOVED, Cause.ARRIVED])

    def test_it_is_built_first_and_when_its_definition_changes_or_someone_asks(self) -> None:
        """As any table."""
        assert self.planned(
            ModelObservation(inputs=(InputDiff("sessions", 0, 3, cells=states("# #")),))
        ) == (Action.BUILD, [Cause.MISSING])
        seen = built(BY_USER)
        assert seen.trace is not None
        other = replace(seen, trace=replace(seen.trace, fingerprint="old"))
        assert self.planned(other) == (Action.BUILD, [Cause.DEFINITION])
        asked = PlanOptions(restated={"by_user": Ranges.ever()})
        assert self.planned(seen, asked) == (Action.BUILD, [Cause.RESTATED])

    def test_it_is_built_where_its_input_is_another_one(self) -> None:
        """When most rows are new, or the input was dropped, there is nothing to fold."""
        seen = changed(BY_USER, "sessions", "n")
        few = replace(seen.inputs[0], cells=(CellState(day(0), 1, 1),))
        assert self.planned(replace(seen, inputs=(few,)))[0] is Action.BUILD
        anew = replace(changed(BY_USER, "sessions", "# + # #").inputs[0], anew=True)
        assert self.planned(replace(seen, inputs=(anew,)))[0] is Action.BUILD

    def test_a_plan_says_that_keys_change(self) -> None:
        """Not how many cells: there is one."""
        seen = Observations(0, {"by_user": changed(BY_USER, "sessions", "# + # # # # #")})
        one = project(BY_USER)
        lines = plan_screen(one, seen, plan(one, seen), {}).splitlines()

        at = lines.index("Steps")
        assert lines[at + 1 : at + 3] == [
            "  1. by_user  fold  changed keys  about 1 row",
            "       late        1 rows in 1 cell of sessions",
        ]

    def test_nothing_changed_is_nothing_to_do(self) -> None:
        """No step, however old it is."""
        assert not plan(project(BY_USER), Observations(0, {"by_user": built(BY_USER)}))


class TestWindow:
    """``--start/--end`` bound what is recomputed; what is left out stays pending."""

    def test_stale_days_outside_stay_pending(self) -> None:
        """Only the window is built; the trace remembers the rest with its cause."""
        seen = Observations(0, {"daily": changed(DAILY, "sessions", "# + # # + # #")})
        window = Interval(day(0).start, day(3).start)

        made = plan(project(DAILY), seen, PlanOptions(window=window))

        assert strip(made, "daily") == "- B - - - - -"
        trace = made.steps[0].trace
        assert trace is not None
        assert trace.pending == (Pending(Cause.LATE, Ranges((day(4),))),)

    def test_pending_days_are_built_when_the_window_is_lifted(self) -> None:
        """A later run without a window builds what was left out."""
        seen = built(DAILY)
        assert seen.trace is not None
        pending = (Pending(Cause.LATE, Ranges((day(4),))),)
        seen = replace(seen, trace=replace(seen.trace, pending=pending))

        made = plan(project(DAILY), Observations(0, {"daily": seen}))

        assert strip(made, "daily") == "- - - - B - -"

    def test_folds_take_all_that_arrived(self) -> None:
        """A window does not cut a fold in half."""
        seen = Observations(0, {"sessions": changed(SESSIONS, "events", "# + # # + # #")})
        window = Interval(day(0).start, day(3).start)

        made = plan(project(SESSIONS), seen, PlanOptions(window=window))

        assert strip(made, "sessions") == "B B B B B B -"

    def test_cells_before_the_projects_start_are_never_stale(self) -> None:
        """The project's start bounds what is recomputed, for good."""
        seen = Observations(0, {"daily": changed(DAILY, "sessions", "# + # # + # #")})

        made = plan(project(replace(DAILY, start=day(3).start)), seen)

        assert strip(made, "daily") == "- - - - B - -"
        assert made.steps[0].trace is not None
        assert made.steps[0].trace.pending == ()


def said(target: Node, **keys: object) -> Node:
    """The same model with keys under ``incremental``."""
    return replace(target, model=replace(target.model, incremental=Incremental(**keys)))  # type: ignore[arg-type]


class TestBatches:
    """A step is the first batch; the rest is pending, and nothing is lost on the way."""

    LATE = "# + # + + # +"

    def made(self, target: Node, asked: PlanOptions) -> Plan:
        """A plan of a model four of whose days are late."""
        seen = Observations(0, {target.name: changed(target, "sessions", self.LATE)})
        return plan(project(target), seen, asked)

    @pytest.mark.parametrize(
        ("size", "first", "batches"),
        [(1, "- B - - - - -", 4), (2, "- B - B - - -", 2), (3, "- B - B B - -", 2), (9, "", 1)],
    )
    def test_the_first_batch_and_how_many_there_are(
        self, size: int, first: str, batches: int
    ) -> None:
        """By the size that is asked for, or the model's own."""
        for target, asked in (
            (said(DAILY, batch_size=size), PlanOptions()),
            (said(DAILY, batch_size=1), PlanOptions(batch_size=size)),
        ):
            made = self.made(target, asked)
            [step] = made.steps

            assert strip(made, "daily") == (first or "- B - B B - B")
            assert step.batches == batches
            assert step.trace is not None
            assert step.stale == step.cells | step.trace.unbuilt

    @pytest.mark.parametrize(
        ("own", "jobs", "beside"),
        [(None, None, 0), (2, None, 1), (9, None, 3), (None, 3, 2), (2, 3, 1), (3, 1, 0)],
    )
    def test_how_many_are_built_at_the_same_time(
        self, own: int | None, jobs: int | None, beside: int
    ) -> None:
        """As the model says and the run lets; each holds other cells, in order."""
        target = said(DAILY, batch_size=1, batch_concurrency=own)
        [step] = self.made(target, PlanOptions(jobs=jobs)).steps

        assert step.batches == 4
        assert [str(part) for part in step.beside] == [
            str(Ranges((day(at),))) for at in (3, 4, 6)[:beside]
        ]

    def test_what_makes_the_table_is_built_alone(self) -> None:
        """The first batch of a table has none beside it."""
        target = said(DAILY, batch_size=1, batch_concurrency=4)
        seen = replace(changed(target, "sessions", self.LATE), trace=None)
        [step] = plan(project(target), Observations(0, {"daily": seen})).steps

        assert step.batches == 7
        assert not step.beside

    @pytest.mark.parametrize(("together", "built"), [(31, "- B - B B - B"), (2, "- B - B - - -")])
    def test_cells_by_themselves_are_one_commit_up_to_a_number(
        self, monkeypatch: pytest.MonkeyPatch, together: int, built: str
    ) -> None:
        """Each is a query of its own, and so many are committed at once."""
        monkeypatch.setattr("infold.planning.portions.CELLS_TOGETHER", together)
        made = self.made(replace(DAILY, vouched=(Override.LIMIT,)), PlanOptions())

        assert strip(made, "daily") == built


class TestExchange:
    """One table, one definition: what a changed one makes takes the old table's place at once."""

    SEEN = changed(DAILY, "sessions", "# + # # # # #")
    assert SEEN.trace is not None
    OTHER = replace(SEEN, trace=replace(SEEN.trace, fingerprint="other"))

    def made(self, target: Node, asked: PlanOptions | None = None, *others: Node) -> Plan:
        """A plan of a daily model that was built by another definition."""
        seen = {"daily": self.OTHER}
        seen |= {
            other.name: ModelObservation(inputs=(InputDiff("daily", 1, 1),)) for other in others
        }
        return plan(project(target, *others), Observations(0, seen), asked or PlanOptions())

    def test_batches_are_computed_one_by_one_and_committed_together(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """A failure between them leaves the old table, and no rows of two definitions."""
        by_cell = replace(DAILY, vouched=(Override.LIMIT,))
        monkeypatch.setattr("infold.planning.portions.CELLS_TOGETHER", 2)
        for target, pieces in ((said(DAILY, batch_size=3), 3), (by_cell, 4)):
            [step] = self.made(target).steps

            assert (step.action, step.batches, step.cells) == (Action.BUILD, 1, Ranges.ever())
            assert len(step.pieces) == pieces
            assert Ranges.of(part for piece in step.pieces for part in piece) == Ranges.ever()
            assert step.trace is not None
            assert not step.trace.pending
        assert self.made(DAILY).steps[0].pieces == ()

    def test_a_window_of_a_part_builds_nothing(self) -> None:
        """The old table stays, and the plan says why; one that holds it all is no such window."""
        part = PlanOptions(window=Interval(day(0).start, day(3).start))
        every = PlanOptions(window=Interval(day(0).start, day(7).start))

        made = self.made(DAILY, part)
        assert not made
        assert [left.why for left in made.left] == [HELD_BACK]
        assert made.left[0].stale == Ranges((Interval(day(0).start, day(7).start),))
        [step] = self.made(DAILY, every).steps
        assert (step.cells, step.trace.pending if step.trace else None) == (Ranges.ever(), ())

    def test_what_is_new_over_a_table_that_stayed_waits_for_it(self) -> None:
        """It may name columns that only the new definition has; what was built goes on."""
        part = PlanOptions(window=Interval(day(0).start, day(3).start))
        reader = node(Model("reader", Materialization.TABLE, ""), Input("daily", "day"))

        made = self.made(DAILY, part, reader)

        assert not made
        assert made.left[-1] == Skipped("reader", "its input daily is of an old definition")
        again = built(reader)
        news = (InputDiff("daily", 1, 2, changes("+"), states("#")),)
        seen = {"daily": self.OTHER, "reader": replace(again, inputs=news)}
        live = plan(project(DAILY, reader), Observations(0, seen), part)
        assert [step.model for step in live.steps] == ["reader"]

    def test_cells_that_are_not_over_stay_for_their_tick(self) -> None:
        """They are missing then, not of another definition."""
        target = said(DAILY, cron="0 5 * * *")
        seen = Observations(day(3).start + 5 * HOUR, {"daily": self.OTHER})
        [step] = plan(project(target), seen).steps

        assert step.action is Action.BUILD
        assert step.cells == Ranges((Interval(MIN, day(3).start),))
        assert step.trace is not None
        [left] = step.trace.pending
        assert (left.cause, left.ranges) == (Cause.MISSING, Ranges((Interval(day(3).start, MAX),)))


class TestBounds:
    """Changed cells of an input reach as far as the query looks back."""

    def test_a_late_day_reaches_the_days_that_look_back_at_it(self) -> None:
        """Two days before: the day itself and the two after it."""
        wide = replace(DAILY, inputs=(Input("sessions", "start", (Bound(2 * DAY, 0),)),))
        seen = Observations(0, {"daily": changed(wide, "sessions", "# + # # # # #")})

        assert strip(plan(project(wide), seen), "daily") == "- B B B - - -"


class TestCron:
    """When a model is due, and which cells are over."""

    DAILY = said(DAILY, cron="0 5 * * *")

    def made(self, hours: int, built_at: int | None, strip: str = "# + # # # # +") -> Plan:
        """A plan so many hours into the strip, of a model built at another."""
        seen = changed(self.DAILY, "sessions", strip)
        as_of = None if built_at is None else FIRST + built_at * HOUR
        seen = replace(seen, as_of=as_of)
        return plan(project(self.DAILY), Observations(FIRST + hours * HOUR, {"daily": seen}))

    def test_between_two_ticks_nothing_is_due(self) -> None:
        """It was built at six, and it is seven."""
        made = self.made(24 * 7 + 7, 24 * 7 + 6)

        assert not made
        assert made.left[0].why.startswith("not due before")

    def test_after_a_tick_all_that_is_over_is_built(self) -> None:
        """The last day of the strip ended at midnight; at four nothing has ticked for it."""
        assert strip(self.made(24 * 7 + 5, 24 * 6), "daily") == "- B - - - - B"
        assert strip(self.made(24 * 7 + 4, 24 * 5), "daily") == "- B - - - - -"

    def test_a_tick_without_rows_is_no_work(self) -> None:
        """What was waited for ended, and nothing came."""
        seen = built(self.DAILY, as_of=FIRST + 24 * HOUR)
        assert seen.trace is not None
        waits = (Pending(Cause.MISSING, Ranges((Interval(FIRST + 9 * DAY, MAX),))),)
        seen = replace(seen, trace=replace(seen.trace, pending=waits))

        made = plan(project(self.DAILY), Observations(FIRST + 20 * DAY, {"daily": seen}))

        assert not made
        fills = replace(self.DAILY, fills=True)  # a lookup's rows are there, whatever comes
        [step] = plan(project(fills), Observations(FIRST + 20 * DAY, {"daily": seen})).steps
        assert step.cells == Ranges((Interval(FIRST + 9 * DAY, FIRST + 19 * DAY),))


class TestFiles:
    """What a listing makes of an ingest."""

    def known(self, **extra: object) -> FileKnown:
        """A file taken in before."""
        return replace(FileKnown(1, "a.csv", 9, "9:1", 0, rows=4), **extra)  # type: ignore[arg-type]

    def test_new_gone_and_due_files_are_three_reasons(self) -> None:
        """Each cause is named with the rows that it means."""
        news = FileDiff(
            "raw.clicks",
            new=(FileSeen("b.csv", 9, 1, "9:1"),),
            gone=(self.known(),),
            due=(self.known(id=2, path="c.csv", waiting=3),),
        )
        seen = built(EVENTS, files=news)

        made = plan(project(EVENTS), Observations(0, {"events": seen}))

        assert made.steps[0].action is Action.INGEST
        assert [(reason.cause, reason.rows) for reason in made.steps[0].reasons] == [
            (Cause.ARRIVED, 0),
            (Cause.REMOVED, 4),
            (Cause.DUE, 3),
        ]

    def test_peeked_days_already_covered_are_late(self) -> None:
        """Rows for a day that has rows are late, rows for another day just arrived."""
        news = FileDiff(
            "raw.clicks",
            new=(FileSeen("b.csv", 9, 1, "9:1"),),
            peek=(CellState(day(1), 2, 0), CellState(day(6), 5, 0)),
        )
        seen = built(EVENTS, files=news, cells=states("# # # . . . ."))

        made = plan(project(EVENTS), Observations(0, {"events": seen}))

        assert [(reason.cause, reason.rows) for reason in made.steps[0].reasons] == [
            (Cause.LATE, 2),
            (Cause.ARRIVED, 5),
        ]

    def test_readers_of_a_built_table_are_expected(self) -> None:
        """What follows from a file is shown, and planned again once the file was read."""
        news = FileDiff(
            "raw.clicks",
            new=(FileSeen("b.csv", 9, 1, "9:1"),),
            peek=(CellState(day(2), 2, 0),),
        )
        seen = Observations(0, {"events": built(EVENTS, files=news), "sessions": built(SESSIONS)})

        made = plan(project(EVENTS, SESSIONS), seen)

        assert strip(made, "events") == "- - B - - - -"
        assert strip(made, "sessions") == "- B B B - - -"
        assert [step.expected for step in made.steps] == [False, True]

    def test_models_not_selected_are_left_and_named(self) -> None:
        """Selection leaves models alone and says so."""
        made = plan(
            project(EVENTS),
            Observations(0, {"events": built(EVENTS)}),
            PlanOptions(selected=frozenset()),
        )

        assert [left.why for left in made.left] == ["not selected"]


@pytest.mark.parametrize("span", [(MIN, MAX), (MIN, FIRST), (FIRST, MAX)])
def test_open_ranges_survive_planning(span: tuple[int, int]) -> None:
    """Cells with open ends are planned without walking their days."""
    seen = built(DAILY)
    assert seen.trace is not None
    pending = (Pending(Cause.MISSING, Ranges((Interval(*span),))),)
    seen = replace(seen, trace=replace(seen.trace, pending=pending))

    made = plan(project(DAILY), Observations(0, {"daily": seen}))

    assert made.steps[0].cells == Ranges((Interval(*span),))
