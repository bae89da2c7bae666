"""Changes that leave cells alone, or build them in parts: which definition holds where."""

from __future__ import annotations

from dataclasses import replace
from random import Random
from typing import Any

import pytest
from tests.planning.strips import (
    DAILY,
    DAYS,
    MONTHLY,
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

from infold.core.definition import Category, How, Redefinition, SameEvents
from infold.core.files import IngestedFile, ListedFile
from infold.core.interval import DAY, MAX, MIN, Granularity, Interval, Ranges
from infold.core.model import DefinitionChange, Late, Materialization, Model, Timeseries
from infold.core.plan import (
    NOT_EMPTIED,
    Action,
    ChangedKeyRows,
    FileDiff,
    InputDiff,
    ModelObservation,
    Observations,
    Plan,
    PlanOptions,
    Skipped,
    Step,
)
from infold.core.project import Bound, Input, Node, Stretch
from infold.core.trace import UNKNOWN, Cause, CellState, EarlierCells, Pending, Trace, merge_earlier
from infold.planning.buildable_cells import cells_with_rows
from infold.planning.forward_only import forward_only
from infold.planning.planner import plan
from infold.render.plan import plan_screen

OLD = replace(DAILY, fingerprint="old", columns=("day", "n"))
NEW = replace(DAILY, columns=("Users", "N", "day"))
TRACE = Trace("daily", "old", {"sessions": 1, "users": 1}, definition="first")


def before(number: int) -> Ranges:
    """All cells before a day of the strip."""
    return Ranges((Interval(MIN, day(number).start),))


def change(old: Node = OLD, new: Node = NEW, how: How = How.REBUILD) -> Redefinition:
    """A change of the daily table."""
    return Redefinition("daily", Category.BREAKING, (), how, old, new)


def asked(since: int | None = None, held: str = "# # # # # . .", **kept: object) -> Redefinition:
    """The change as it is carried out forward-only, over days that are held."""
    made = change(**kept)  # type: ignore[arg-type]
    return forward_only(made, TRACE, since, states(held))


WEEKLY = Timeseries("day", "day", Granularity.WEEK)


def declared(**keys: Any) -> Node:
    """The new definition, with other keys."""
    return replace(NEW, model=replace(NEW.model, **keys))


class TestTheChange:
    """What a forward-only change does, and what it cannot do."""

    def test_it_holds_after_the_last_cell_with_rows(self) -> None:
        """From the first cell without rows; new columns are NULL before, the others stored."""
        found, how = asked(), (Category.FORWARD_ONLY, How.DERIVE, None)

        assert (found.category, found.how, found.refused) == how
        assert found.effective_from == day(5).start
        assert found.derivation is not None
        assert found.derivation.columns == (("Users", "NULL"), ("N", "`n`"), ("day", "`day`"))
        assert found.derivation.added == {"Users"}
        assert found.derivation.stored == ("day", "n")
        for since in (day(2).start, day(6).end):
            assert asked(since).effective_from == since

    def test_without_rows_there_is_nothing_to_keep(self) -> None:
        """Empty or unknown tables are built as ever; another comment or cron ends no definition."""
        for how in (How.NOTHING, How.RESTAMP):
            assert asked(how=how) == change(how=how)
        assert asked(held=". . .") == change()
        unknown = replace(TRACE, fingerprint=UNKNOWN)
        assert forward_only(change(), unknown, None, states("# #")) == change()

    @pytest.mark.parametrize(
        ("made", "why"),
        [
            (change(new=replace(NEW, columns=("day", "users"))), "it lacks: n"),
            (change(new=replace(NEW, start=day(1).start)), "its start changed"),
            (change(new=declared(timeseries=WEEKLY)), "its timeseries changed"),
            (change(new=replace(NEW, downgraded=("why",))), "builds it whole"),
            (change(new=declared(materialization=Materialization.SESSIONS)),
             "its kind changed, from incremental table to sessions"),
            (change(new=declared(materialization=Materialization.VIEW)),
             "only events, sessions, and tables that are built cell by cell"),
            (change(new=with_incremental(NEW), old=replace(OLD, fingerprint="x")), "is not known"),
            (replace(change(), before=None), "is not known"),
        ],
        ids=lambda value: value if isinstance(value, str) else "",
    )  # fmt: skip
    def test_what_would_change_earlier_cells_is_refused(self, made: Redefinition, why: str) -> None:
        """Dropped columns, other cells, another kind, a definition that nobody knows."""
        found = forward_only(made, TRACE, None, states("# #"))

        assert found.refused is not None
        assert found.refused.slug == "not-forward-only"
        assert why in str(found.refused)
        assert found.effective_from is None

    def test_what_is_not_done_at_an_instant(self) -> None:
        """A cell has one definition; the message names the nearest instants that fit. Where a
        row of events may be another event, or at another time, the table stays as it is.
        """
        found = asked(day(2).start + 1)
        assert found.refused is not None
        assert "2019-10-23 or 2019-10-24" in str(found.refused)
        other = replace(events_change(rows=True), events=SameEvents("its unique_key changed"))
        found = forward_only(other, EVENTS_TRACE, None, states("# #"))
        assert found.refused is not None
        assert "unique_key" in str(found.refused)


def observed(
    redefined: Redefinition | None = None, pending: tuple[Pending, ...] = ()
) -> ModelObservation:
    """The daily table by the old definition."""
    seen = changed(NEW, "sessions", "# # + # # # #")
    trace = replace(TRACE, pending=pending)
    return replace(seen, trace=trace, cells=states("# # # # # . ."), redefined=redefined)


def made(seen: ModelObservation, node: Node = NEW, options: PlanOptions | None = None) -> Plan:
    """The plan for the daily table."""
    return planned(node, asked=options, daily=seen)


class TestTheStep:
    """The change is one step that reads nothing and leaves the cells from then on pending."""

    def test_what_holds_after_it(self) -> None:
        """The new fingerprint, old versions, both definitions; what was pending stays so."""
        options = PlanOptions(window=day(1))  # no cell of another definition is written
        assert [one.action for one in made(observed(asked()), options=options).steps] == [
            Action.DERIVE
        ]
        left = Pending(Cause.LATE, Ranges((day(6),)))
        step, trace = step_of(made(observed(asked(day(4).start), (left,))))

        assert (step.action, step.rows_to_read) == (Action.DERIVE, 0)
        assert step.reasons[0].detail == "forward-only: cells before 2019-10-25 keep their rows"
        assert (trace.fingerprint, trace.inputs) == (NEW.fingerprint, {"sessions": 1, "users": 1})
        assert trace.earlier == (EarlierCells(before(4), "first"),)
        newly_read = with_trace(observed(asked()), inputs={"users": 1})
        assert step_of(made(newly_read))[1].inputs == {"sessions": 2, "users": 1}
        assert {entry.cause: entry.ranges for entry in trace.pending} == {
            Cause.LATE: Ranges((day(6),)),
            Cause.DEFINITION: Ranges(
                (Interval(day(4).start, day(5).end), Interval(day(6).end, MAX))
            ),
        }

    def test_it_waits_for_columns_of_its_inputs(self) -> None:
        """The new definition may name a column that an input gets in the same run."""
        reader = replace(MONTHLY, fingerprint="new", columns=("month", "more"))
        old = replace(MONTHLY, columns=("month",))
        trace = Trace("monthly", old.fingerprint, {"daily": 1}, definition="m")
        later = forward_only(change(old, reader), trace, None, states("# #"))
        later = replace(later, effective_from=day(0).start)
        seen = replace(built(reader), trace=trace, redefined=later)

        models = {"daily": observed(asked(day(4).start)), "monthly": seen}
        first, second = planned(NEW, reader, **models).steps

        assert [(one.model, one.expected) for one in (first, second)] == [
            ("daily", False),
            ("monthly", True),
        ]


def stretched(
    earlier: Node, marks: str, late: Late = Late.EARLIER, of: str = "sessions", upto: int = 4
) -> tuple[ModelObservation, Node]:
    """The table with two definitions, the border before a day, and an input that changed."""
    newest = with_incremental(NEW, late=late)
    trace = replace(TRACE, fingerprint=NEW.fingerprint, definition="second")
    trace = replace(trace, earlier=(EarlierCells(before(upto), "first"),))
    stretch = Stretch(before(upto), "daily", project(earlier))
    names = dict.fromkeys(entry.name for one in (newest, earlier) for entry in one.inputs)
    inputs = tuple(
        InputDiff(name, 1, 2, changes(marks), states(marks))
        if name == of
        else InputDiff(name, 1, 1, cells=states("# # # # # # #"))
        for name in names
    )
    seen = ModelObservation(trace, 1, inputs=inputs, earlier=(stretch,), cells=states(marks))
    return seen, newest


def test_readers_of_an_unchanged_table() -> None:
    """Without a new column the change itself writes no row, so readers follow from its instant."""
    old = replace(DAILY, fingerprint="old", columns=("day", "n"))
    same = forward_only(
        change(old, replace(DAILY, columns=old.columns)), TRACE, day(4).start, states("# # # # #")
    )
    seen = replace(built(DAILY), trace=TRACE, redefined=same, rows=50)
    reader = replace(MONTHLY, inputs=(Input("daily", "day", (Bound(0, DAY),)),))
    daily = replace(reader.model, timeseries=Timeseries("day", "day"))
    reader = replace(reader, model=daily)

    found = planned(DAILY, reader, daily=seen, monthly=built(reader))

    assert strip(found, "monthly") == "- - - B B B B"


class TestStaleCells:
    """A cell is stale as the definition in force there reads."""

    @pytest.mark.parametrize(
        ("inputs", "of", "marks", "expected"),
        [
            # The earlier one looks two days back, the newest one does not.
            (("sessions", 2), "sessions", "# + # # # # #", "- B B B - - -"),
            (("sessions", 2), "sessions", "# # # + # # #", "- - - B - - -"),
            (("sessions", 2), "sessions", "# # # # + # #", "- - - - B - -"),
            # The earlier one reads another table.
            (("clicks", 0), "clicks", "+ # # # # + #", "B - - - - - -"),
            (("clicks", 0), "sessions", "+ # # # # + #", "- - - - - B -"),
            # A lookup that only the newest one reads.
            (("sessions", 0), "users", "+ # # # # # #", "- - - - B B B"),
        ],
    )
    def test_by_its_own_inputs_and_bounds(
        self, inputs: tuple[str, int], of: str, marks: str, expected: str
    ) -> None:
        """What a definition does not read, or not so far, makes none of its cells stale."""
        name, days = inputs
        earlier = replace(OLD, inputs=(Input(name, "session_start", (Bound(days * DAY),)),))
        seen, newest = stretched(earlier, marks, of=of)

        assert strip(made(seen, newest), "daily") == expected

    def test_cells_with_rows_are_those_of_the_inputs_read_there(self) -> None:
        """Rows of an input that only the earlier definition reads fill none of the newest's."""
        seen, newest = stretched(
            replace(OLD, inputs=(Input("clicks", "ts"),)), "# # # # # # #", of="clicks"
        )
        none = tuple(
            replace(diff, cells=()) if diff.name == "sessions" else diff for diff in seen.inputs
        )
        assert cells_with_rows(newest, replace(seen, inputs=none)) == [day(n) for n in range(4)]

    def test_late_rows_by_the_newest_definition(self) -> None:
        """With `late: new` in stale cells alone; else those are built by the earlier one."""
        for late, held in ((Late.NEW, before(4) - Ranges((day(1),))), (Late.EARLIER, before(4))):
            step, trace = step_of(made(*stretched(OLD, "# + # # # + #", late)))
            assert step.action is Action.RECOMPUTE
            assert trace.earlier == (EarlierCells(held, "first"),)

    @pytest.mark.parametrize("size", [None, 2])
    @pytest.mark.parametrize("late", Late)
    def test_all_cells_again_replace_no_table(self, size: int | None, late: Late) -> None:
        """Were it built as new, and died, nobody would know which cells are whose."""
        seen, newest = stretched(OLD, "# # # # # # #", late)
        options = PlanOptions(restated={"daily": Ranges.ever()}, batch_size=size)
        step, trace = step_of(made(seen, newest, options))
        assert step.action is Action.RECOMPUTE
        assert step.batches == (1 if size is None else 4)
        held = Ranges.of(part for one in trace.earlier for part in one.cells)
        assert held == (before(4) - step.cells if late is Late.NEW else before(4))

    def test_pending_cells_of_the_change_are_built(self) -> None:
        """The cells from the instant on are built, and the table is not taken for a mixed one."""
        seen, newest = stretched(OLD, "# # # # # # #")
        left = Pending(Cause.DEFINITION, Ranges((Interval(day(4).start, MAX),)))
        seen = with_trace(seen, pending=(left,))
        found = made(seen, newest)
        assert strip(found, "daily") == "- - - - B B B"
        assert found.steps[0].action is Action.RECOMPUTE
        assert seen.trace is not None
        assert (seen.trace.mixed, replace(seen.trace, earlier=()).mixed) == (False, True)


def clicks(fingerprint: str, *columns: str) -> Node:
    """A definition of events."""
    model = replace(
        DAILY.model,
        name="clicks",
        materialization=Materialization.EVENTS,
        unique_key=("id",),
        timeseries=Timeseries("ts", "ts", Granularity.DAY),
        incremental=None,
    )
    return Node(model, (), (), fingerprint, columns, source="raw.clicks")


EVENTS = clicks("new", "id", "ts", "url")
EVENTS_TRACE = Trace("clicks", "old", {}, definition="first")


def file(id_: int, waiting: int = 0) -> IngestedFile:
    """A file that was ingested."""
    return IngestedFile(id_, f"{id_}.json", 1, "x", 0, rows=10, waiting=waiting)


def events_change(rows: bool, since: int | None = None) -> Redefinition:
    """A change of the events, which are filled on five days."""
    made = change(clicks("old", "id", "ts"), EVENTS)
    made = replace(made, model="clicks", events=SameEvents(rows=rows))
    return forward_only(made, EVENTS_TRACE, since, states("# # # # # . ."))


class TestEvents:
    """Files are read again where they may have rows that follow another definition now."""

    @pytest.mark.parametrize(
        ("rows", "since", "waiting", "pending"),
        [
            (True, None, 0, Ranges()),
            (True, 3, 0, Ranges((Interval(day(3).start, day(4).end),))),
            (True, None, 1, Ranges((day(5),))),
            (False, None, 0, Ranges((Interval(day(5).start, MAX),))),
            (False, 3, 0, Ranges((Interval(day(3).start, MAX),))),
        ],
    )
    def test_what_the_change_leaves_pending(
        self, rows: bool, since: int | None, waiting: int, pending: Ranges
    ) -> None:
        """Where the same rows are kept, cells that have some; else all from the instant on."""
        change = events_change(rows, None if since is None else day(since).start)
        files = FileDiff(
            "raw.clicks", ingested=(file(1, waiting),), new=(ListedFile("2", 1, 0, ""),)
        )
        seen = ModelObservation(
            EVENTS_TRACE, 1, files=files, cells=states("# # # # # . ."), redefined=change
        )
        step, trace = step_of(planned(EVENTS, clicks=seen))

        assert (step.action, step.files) == (Action.DERIVE, None)
        assert trace.pending_ranges == pending
        assert trace.earlier == (EarlierCells(before(5 if since is None else since), "first"),)

    def seen(self, trace: Trace, earlier: Node, **files: tuple[IngestedFile, ...]) -> Any:
        """Two files that were ingested, the cells before a day by an earlier definition."""
        stretch = Stretch(before(5), "clicks", project(earlier))
        diff = FileDiff("raw.clicks", ingested=(file(1), file(2)), **files)  # type: ignore[arg-type]
        return ModelObservation(trace, 1, files=diff, earlier=(stretch,))

    def test_files_are_read_again_once(self) -> None:
        """With what arrived, and nothing is pending after it; restated events are ingested too."""
        left = (Pending(Cause.DEFINITION, Ranges((Interval(day(5).start, MAX),))),)
        held = (EarlierCells(before(5), "first"),)
        old = clicks("old", "id", "ts")
        stale = Trace("clicks", "new", {}, left, definition="second", earlier=held)
        step, trace = step_of(planned(EVENTS, clicks=self.seen(stale, old, redefined=(file(2),))))

        assert step.action is Action.INGEST
        assert step.files is not None
        assert step.files.reingest == (file(2),)
        [reason] = step.reasons
        assert reason.detail == "1 file read again: its definition is in force from there on"
        assert reason.rows == 10
        assert (trace.pending, trace.earlier) == ((), held)

        quiet = self.seen(replace(stale, pending=()), old)
        assert not planned(EVENTS, clicks=quiet).steps
        asked = PlanOptions(restated={"clicks": Ranges.ever()})
        step, trace = step_of(planned(EVENTS, asked=asked, clicks=quiet))
        assert step.files is not None
        assert (step.action, step.files.reingest) == (Action.INGEST, (file(1), file(2)))
        assert trace.earlier == held

    @pytest.mark.parametrize(("reads", "again"), [(True, (1, 2)), (False, (2,))])
    def test_a_lookup_of_an_earlier_definition(self, reads: bool, again: tuple[int, ...]) -> None:
        """Which files have its changed keys is known for the newest definition only."""
        held = (EarlierCells(before(5), "first"),)
        trace = Trace("clicks", "new", {"pages": 1}, definition="second", earlier=held)
        earlier = replace(clicks("old", "id", "ts"), inputs=(Input("pages"),) if reads else ())
        keys = ChangedKeyRows(files=(2,))
        diff = InputDiff("pages", 1, 2, changes("+ . . . . . ."), changed_keys=keys)
        seen = replace(self.seen(trace, earlier), inputs=(diff,))
        [step] = planned(replace(EVENTS, inputs=(Input("pages"),)), clicks=seen).steps
        assert step.files is not None
        assert tuple(one.id for one in step.files.reingest) == again


class TestTraces:
    """Which definition holds where, as values."""

    def test_several_changes(self) -> None:
        """Each ends the newest, or takes cells of those before; one that returns joins its own."""
        first = EarlierCells(before(2), "first")
        second = replace(
            TRACE, definition="second", earlier=TRACE.redefined_from(day(2).start, "second")
        )
        between = EarlierCells(before(4) - before(2), "second")
        assert second.redefined_from(day(4).start, "third") == (first, between)
        assert second.redefined_from(day(1).start, "third") == (EarlierCells(before(1), "first"),)
        assert second.redefined_from(day(4).start, "first") == (between,)
        parts = (EarlierCells(Ranges((day(n),)), "ab"[n % 2]) for n in range(DAYS))
        [one] = merge_earlier(parts, "b")
        assert (one.definition, len(one.cells.parts)) == ("a", 4), "without those of the newest"


# -- `on_definition_change


CELLS = DefinitionChange.REBUILT_CELLS
FULL = "# # # # # # #"


def of_old(target: Node, input_rows: str = FULL, held: str = FULL) -> ModelObservation:
    """The model, with the rows of another definition in its table."""
    seen = changed(target, "sessions", input_rows)
    trace = Trace(target.name, "other", {entry.name: 1 for entry in target.inputs})
    return replace(seen, trace=trace, cells=states(held))


def carried_out(
    target: Node, seen: ModelObservation, asked: PlanOptions | None = None
) -> tuple[Step, Trace]:
    """The one step of a plan, and what holds after it."""
    return step_of(planned(target, asked=asked, **{target.name: seen}))


def left(trace: Trace) -> dict[Cause, Ranges]:
    """What a trace says is not built, by cause."""
    return {entry.cause: entry.ranges for entry in trace.pending}


def test_a_limit_cuts_it_like_a_first_build() -> None:
    """With a limit the first commit replaces the table, and the other days with rows wait."""
    target = replace(with_incremental(DAILY, on_definition_change=CELLS), backfill_limit=2 * DAY)
    step, after = carried_out(target, of_old(target))

    assert (step.action, step.backfill_end) == (Action.BUILD, day(1).end)
    assert step.cells == Ranges((Interval(MIN, day(1).end),))
    assert left(after) == {
        Cause.REDEFINED: Ranges((Interval(day(2).start, day(6).end),)),
        Cause.MISSING: Ranges((Interval(day(6).end, MAX),)),
    }
    seen = replace(of_old(target), trace=after, version=2)
    seen = replace(seen, inputs=tuple(replace(n, changes=()) for n in seen.inputs))
    step, after = carried_out(target, seen)
    assert step.action is Action.RECOMPUTE
    assert step.cells == Ranges((Interval(day(2).start, day(3).end),))
    assert left(after)[Cause.REDEFINED] == Ranges((Interval(day(4).start, day(6).end),))


def test_a_plan_says_that_readers_lose_rows() -> None:
    """Where it is replaced in parts: without a limit, a window or batches it is one commit."""
    whole = with_incremental(DAILY, on_definition_change=CELLS)
    parts = with_incremental(DAILY, on_definition_change=CELLS, batch_size=3)
    step, after = carried_out(whole, of_old(whole))
    assert (step.action, step.cells, after.pending) == (Action.BUILD, Ranges.ever(), ())

    seen = Observations(0, {"daily": of_old(parts)})
    made = plan(project(parts), seen)
    assert any("nothing of its old definition stays" in note for note in made.notes)
    assert "7 cells in 3 batches" in plan_screen(project(parts), seen, made, {})
    assert not plan(project(whole), seen).notes


def test_a_window_without_rows_replaces_nothing() -> None:
    """A window without rows replaces nothing, and changed readers wait."""
    target = with_incremental(DAILY, on_definition_change=CELLS)
    reader = node(Model("reader", Materialization.TABLE, ""), Input("daily", "day"))
    made = planned(
        target,
        reader,
        asked=PlanOptions(window=Interval(day(5).start, MAX)),
        daily=of_old(target, "# # # # # - -"),
        reader=ModelObservation(inputs=(InputDiff("daily", 1, 1),)),
    )

    assert not made.steps
    assert made.skipped == (
        Skipped("daily", NOT_EMPTIED, Ranges((Interval(day(0).start, day(4).end),))),
        Skipped("reader", "its input daily is of an old definition"),
    )


class Played:
    """A table in memory: which definition each of its cells is of, as steps are carried out."""

    def __init__(self, random: Random) -> None:
        self.random = random
        self.rows = {0}
        self.held: dict[int, str] = {}
        self.trace: Trace | None = None
        self.version, self.fingerprint = 0, "1"

    def target(self, limit: int | None, batch: int | None) -> Node:
        """The model as declared now."""
        made = with_incremental(DAILY, on_definition_change=CELLS, batch_size=batch)
        made = replace(made, inputs=made.inputs[:1], fingerprint=self.fingerprint)
        return replace(made, backfill_limit=limit and limit * DAY)

    def seen(self, target: Node) -> Observations:
        """What a run observes of it."""
        known = tuple(CellState(day(at), 10, at) for at in sorted(self.rows))
        diff = InputDiff("sessions", 1, 1, (), known)
        held = tuple(CellState(day(at), 10, at) for at in sorted(self.held))
        return Observations(
            0, {target.name: ModelObservation(self.trace, self.version, inputs=(diff,), cells=held)}
        )

    def carry_out(self, step: Step) -> None:
        """As Spark does: a build replaces the table, anything else its cells."""
        cells = {at for at in range(DAYS) if step.cells.overlaps(day(at))}
        kept = {} if step.action is Action.BUILD else self.held
        kept = {at: of for at, of in kept.items() if at not in cells}
        self.held = kept | dict.fromkeys(cells & self.rows, self.fingerprint)
        self.trace, self.version = step.trace, step.version

    def check(self, made: Plan) -> None:
        """One definition, and every cell is there or known to wait."""
        trace = self.trace
        if trace is None or trace.fingerprint != self.fingerprint:
            return
        assert set(self.held.values()) <= {self.fingerprint}, made
        waiting = {at for at in self.rows if trace.pending_ranges.overlaps(day(at))}
        assert self.held.keys() == self.rows - waiting
        assert not Ranges.of(day(at) for at in self.held) & trace.pending_ranges
        ends = [part for e in trace.pending if e.cause is Cause.REDEFINED for part in e.ranges]
        assert all(part.start > MIN and part.end < MAX for part in ends), "they can be counted"

    def run(self, asked: PlanOptions, limit: int | None, batch: int | None) -> None:
        """Rounds until nothing is left to do."""
        for _ in range(3 * DAYS):
            target = self.target(limit, batch)
            made = plan(project(target), self.seen(target), asked)
            if not made.steps:
                break
            [step] = made.steps
            self.carry_out(step)
            self.check(made)
            if step.backfill_end is not None:
                asked = replace(asked, backfill_ends={target.name: step.backfill_end})
        else:
            pytest.fail("a run that never ends")


@pytest.mark.parametrize("seed", range(40))
def test_the_table_always_has_one_definition(seed: int) -> None:
    """Changes, windows, limits and batches in any order; runs without them complete it."""
    random = Random(seed)
    played = Played(random)
    for _ in range(8):
        first, last = sorted(random.sample(range(DAYS + 1), 2))
        if random.random() < 0.5:
            played.fingerprint = str(int(played.fingerprint) + 1)
            played.rows = set(random.sample(range(DAYS), random.randint(1, DAYS)))
            if played.trace is not None and random.random() < 0.2:
                played.trace = replace(played.trace, fingerprint="unknown")
        window = Interval(day(first).start, day(last - 1).end)
        asked = random.choice([PlanOptions(), PlanOptions(), PlanOptions(window=window)])
        played.run(asked, random.choice([None, 1, 2]), random.choice([None, 1, 3]))
    played.run(PlanOptions(), None, None)

    assert played.held == dict.fromkeys(played.rows, played.fingerprint)


def test_an_older_backlog_keeps_its_cause() -> None:
    """The backlog of an older limit keeps its own cause, as the table was never complete."""
    target = replace(with_incremental(DAILY), backfill_limit=2 * DAY)
    seen = replace(of_old(target), trace=None, cells=())
    _, after = carried_out(target, seen)

    assert after.pending == (Pending(Cause.MISSING, Ranges((Interval(day(2).start, MAX),))),)
