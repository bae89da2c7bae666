"""`on_definition_change: rebuilt_cells` builds a changed definition like a new table."""

from __future__ import annotations

from dataclasses import replace
from random import Random

import pytest
from tests.planning.strips import (
    DAILY,
    DAYS,
    changed,
    day,
    node,
    planned,
    project,
    states,
    step_of,
    with_incremental,
)

from infold.core.interval import DAY, MAX, MIN, Interval, Ranges
from infold.core.model import DefinitionChange, Materialization, Model
from infold.core.plan import (
    NOT_EMPTIED,
    Action,
    InputDiff,
    ModelObservation,
    Observations,
    Plan,
    PlanOptions,
    Skipped,
    Step,
)
from infold.core.project import Input, Node
from infold.core.trace import Cause, CellState, Pending, Trace
from infold.planning.planner import plan
from infold.render.plan import plan_screen

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
    """Without a limit, a window or batches the whole table is replaced in one commit; where parts
    are, a plan says that readers lose rows.
    """
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
    """Changes, windows, limits and batches in any order
    leave one definition, and runs without them complete it.
    """
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
