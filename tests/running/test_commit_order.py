"""Batches of one model side by side: whose turn it is, and what each leaves behind."""

from __future__ import annotations

import pytest

from infold.core.interval import DAY, Interval, Ranges, instant
from infold.core.plan import Action, Reason, Step
from infold.core.record import Outcome
from infold.core.trace import Cause, Pending, Trace
from infold.running.commit_order import CommitLock, CommitTurn, concurrent_batches

FIRST = instant("2024-03-01")


def days(*numbers: int) -> Ranges:
    """The days of a month, from 0."""
    return Ranges.of(Interval(FIRST + n * DAY, FIRST + (n + 1) * DAY) for n in numbers)


STEP = Step(
    model="daily",
    action=Action.RECOMPUTE,
    cells=days(0, 1),
    reasons=(Reason(Cause.LATE, "rows", days(0, 1, 2, 3, 4, 5)),),
    inputs={"events": (1, 2)},
    files=None,
    version=7,
    trace=Trace("daily", "fp", {"events": 2}, (Pending(Cause.LATE, days(2, 3, 4, 5)),)),
    before=None,
    expected=False,
    batches=3,
    beside=(days(2, 3), days(4, 5)),
)


def outcome(*, committed: bool = True) -> Outcome:
    """What a batch came to, before it has its turn."""
    assert STEP.trace is not None
    return Outcome("daily", STEP.version, STEP.trace, committed=committed)


def test_batches_beside_a_step_build_their_own_cells() -> None:
    """The step's cells first, then those of each batch beside it; together all of them."""
    assert [batch.cells for batch in concurrent_batches(STEP)] == [
        days(0, 1),
        days(2, 3),
        days(4, 5),
    ]


def test_before_any_batch_all_of_their_cells_are_pending() -> None:
    """Those of the step itself, too: which batch ends first is not known."""
    assert CommitLock.of(STEP).trace.unbuilt == days(0, 1, 2, 3, 4, 5)


def test_each_batch_leaves_pending_what_the_others_have_yet_to_build() -> None:
    """And no more: what was committed before it holds."""
    lock = CommitLock.of(STEP)
    left = []
    for cells in (days(2, 3), days(0, 1), days(4, 5)):
        turn = CommitTurn(cells, lock)
        holds = turn.take(outcome())
        turn.release(holds)
        left.append(holds.trace.unbuilt)

    assert left == [days(0, 1, 4, 5), days(4, 5), Ranges()]


def test_each_commit_is_the_next_version_and_a_batch_without_one_uses_none() -> None:
    """A batch whose cells came out as they were commits nothing."""
    lock = CommitLock.of(STEP)
    versions = []
    for cells, committed in ((days(0, 1), True), (days(2, 3), False), (days(4, 5), True)):
        turn = CommitTurn(cells, lock)
        holds = turn.take(outcome(committed=committed))
        turn.release(holds)
        versions.append(holds.version)

    assert versions == [7, 8, 8]


def test_a_batch_that_wrote_nothing_leaves_its_cells_pending() -> None:
    """Whoever comes next must not count them as built."""
    lock = CommitLock.of(STEP)
    failed = CommitTurn(days(0, 1), lock)
    failed.take(outcome())
    failed.release(None)

    holds = CommitTurn(days(2, 3), lock).take(outcome())

    assert (holds.version, holds.trace.unbuilt) == (7, days(0, 1, 4, 5))


def test_nobody_builds_on_a_commit_that_the_ledger_does_not_know() -> None:
    """A turn that ends between table and ledger ends the turns of all."""
    lock = CommitLock.of(STEP)
    cut = CommitTurn(days(0, 1), lock)

    def end_between() -> None:
        with cut.held():
            cut.take(outcome())
            raise OSError("the disk is full")

    with pytest.raises(OSError, match="disk"):
        end_between()
    with pytest.raises(OSError, match="disk"):
        CommitTurn(days(2, 3), lock).take(outcome())


def test_a_step_by_itself_needs_no_turn() -> None:
    """What it says holds as it is."""
    alone = CommitTurn(days(0, 1))

    assert alone.take(outcome()) == outcome()
