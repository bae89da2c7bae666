"""Batches of one model that run at the same time commit in order and record what is left to
build.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from types import SimpleNamespace
from typing import Any, cast

import pytest

from infold.core.audits import Audit, AuditKind
from infold.core.interval import DAY, Interval, Ranges, parse_instant_text
from infold.core.model import Kind
from infold.core.plan import Action, Plan, Reason, Step
from infold.core.project import Input
from infold.core.record import Outcome
from infold.core.trace import Cause, Pending, Trace
from infold.running.concurrent_batches import (
    CommitLock,
    CommitTurn,
    concurrent_batches,
    side_by_side,
)

FIRST = parse_instant_text("2024-03-01")


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
    previous_trace=None,
    expected=False,
    batches=3,
    concurrent_batches=(days(2, 3), days(4, 5)),
)


def outcome(*, committed: bool = True) -> Outcome:
    """What a batch came to, before it has its turn."""
    assert STEP.trace is not None
    return Outcome("daily", STEP.version, STEP.trace, committed=committed)


def test_batches_beside_a_step_build_their_own_cells() -> None:
    """A step builds its own cells and each batch its own; together they are all of them, and all
    are pending before the first batch commits.
    """
    assert [batch.cells for batch in concurrent_batches(STEP)] == [
        days(0, 1),
        days(2, 3),
        days(4, 5),
    ]
    assert CommitLock.of(STEP).trace.pending_ranges == days(0, 1, 2, 3, 4, 5)


def committed(*batches: tuple[Ranges, bool]) -> list[Outcome]:
    """What is recorded of batches that commit in this order, where they wrote something."""
    lock, found = CommitLock.of(STEP), []
    for cells, wrote in batches:
        turn = CommitTurn(cells, lock)
        found.append(turn.take(outcome(committed=wrote)))
        turn.release(found[-1])
    return found


def test_each_batch_leaves_pending_what_the_others_have_yet_to_build() -> None:
    """After a batch's commit exactly the cells of uncommitted batches are pending."""
    found = committed((days(2, 3), True), (days(0, 1), True), (days(4, 5), True))

    assert [holds.trace.pending_ranges for holds in found] == [
        days(0, 1, 4, 5),
        days(4, 5),
        Ranges(),
    ]


def test_each_commit_is_the_next_version_and_a_batch_without_one_uses_none() -> None:
    """Each commit is the next version; a batch that commits nothing uses no version."""
    found = committed((days(0, 1), True), (days(2, 3), False), (days(4, 5), True))

    assert [holds.version for holds in found] == [7, 8, 8]


def test_a_batch_that_wrote_nothing_leaves_its_cells_pending() -> None:
    """Cells of a batch that wrote nothing stay pending, so
    that no later batch counts them as built.
    """
    lock = CommitLock.of(STEP)
    failed = CommitTurn(days(0, 1), lock)
    failed.take(outcome())
    failed.release(None)

    holds = CommitTurn(days(2, 3), lock).take(outcome())

    assert (holds.version, holds.trace.pending_ranges) == (7, days(0, 1, 4, 5))


def test_no_batch_follows_a_commit_unknown_to_the_ledger() -> None:
    """If a batch fails between its commit to the table and
    the one to the ledger, the batches after it stop.
    """
    lock = CommitLock.of(STEP)
    cut = CommitTurn(days(0, 1), lock)

    def end_between() -> None:
        with cut.released_after_error():
            cut.take(outcome())
            raise OSError("the disk is full")

    with pytest.raises(OSError, match="disk"):
        end_between()
    with pytest.raises(OSError, match="disk"):
        CommitTurn(days(2, 3), lock).take(outcome())


def test_a_step_without_batches_does_not_wait() -> None:
    """A step without batches records its outcome unchanged and waits for nobody."""
    assert CommitTurn(days(0, 1)).take(outcome()) == outcome()


KINDS = {"clicks": Kind.EVENTS, "orders": Kind.EVENTS, "names": Kind.VIEW}
READ = {"names": "users"}
AUDITS = {"daily": "users", "weekly": "names"}
"""Which models have an audit that reads which other; ``names`` is a view."""


def node(name: str) -> Any:
    """As much of a model as matters to the order of steps."""
    audits = (Audit("known", AuditKind.RELATIONSHIP, to=AUDITS[name]),) if name in AUDITS else ()
    model = SimpleNamespace(kind=KINDS.get(name, Kind.TABLE), audits=audits)
    inputs = (Input(READ[name]),) if name in READ else ()
    return SimpleNamespace(name=name, model=model, stored_inputs=inputs)


def chosen(*steps: Step, jobs: int | None = None, models_at_once: int = 1) -> list[str]:
    """The models of the steps that are carried out together."""
    project: Any = {name: node(name) for name in (*(step.model for step in steps), "names")}
    lake: Any = SimpleNamespace(metadata=lambda _: "it is there")
    found = side_by_side(project, lake, Plan(steps), jobs, models_at_once)
    return [step.model for step, _ in found]


def one(model: str, *, expected: bool = False, batches: tuple[Ranges, ...] = ()) -> Step:
    """A step of a model."""
    return replace(STEP, model=model, expected=expected, concurrent_batches=batches)


class TestSideBySide:
    """Which steps are carried out together."""

    def test_as_many_models_as_the_engine_likes_if_nobody_says(self) -> None:
        """Without a number of steps, the engine's number of models. One that reads one with a step
        comes after it; files are ingested one at a time.
        """
        steps = one("a"), one("b"), one("c")

        assert chosen(*steps) == ["a"]
        assert chosen(*steps, models_at_once=2) == ["a", "b"]
        assert chosen(*steps, models_at_once=4) == ["a", "b", "c"]
        assert chosen(*steps, jobs=1, models_at_once=4) == ["a"]
        assert chosen(*steps, jobs=3, models_at_once=2) == ["a", "b", "c"]
        waits = one("sessions", expected=True)
        found = chosen(one("clicks"), waits, one("orders"), one("b"), models_at_once=4)
        assert found == ["clicks", "b"]

    def test_none_whose_audits_read_a_table_that_is_to_be_built(self) -> None:
        """The table comes first, whether it is ready or waits itself; a view is what it reads."""
        users, waits = one("users"), one("users", expected=True)

        assert chosen(users, one("daily"), one("b"), models_at_once=4) == ["users", "b"]
        assert chosen(users, one("weekly"), one("b"), jobs=4) == ["users", "b"]
        assert chosen(one("clicks"), waits, one("daily"), models_at_once=4) == ["clicks"]
        assert chosen(one("daily"), one("b"), models_at_once=4) == ["daily", "b"]

    def test_no_table_beside_a_model_that_is_judged_on_it(self) -> None:
        """What is planned before it, as it is about stored rows alone, sees the table as it is."""
        steps = one("daily"), one("users"), one("b")

        assert chosen(*steps, models_at_once=4) == ["daily", "b"]

    def test_models_with_batches_at_the_same_time_are_alone(self) -> None:
        """The batches are as many as the model says; no others are computed beside them."""
        batches = one("batches", batches=(days(2, 3), days(4, 5)))

        assert chosen(batches, one("b"), models_at_once=4) == ["batches"] * 3
        assert chosen(one("b"), batches, one("c"), models_at_once=4) == ["b", "c"]
        assert chosen(batches, one("b"), jobs=3) == ["b", "batches", "batches"]


class Reading(dict[str, Any]):
    """Tables of days that read events, one of them through the other."""

    def upstream(self, names: Iterable[str]) -> set[str]:
        """What some of them read."""
        reads = {"daily": {"events"}, "rolling": {"daily", "events"}}
        return set().union(*(reads.get(name, set()) for name in names))


@pytest.mark.parametrize("action", [action for action in Action if action.of_own_rows])
def test_no_input_beside_its_readers(action: Action) -> None:
    """
    Of steps about stored rows, which a plan has readers first, an input comes after all of its
    readers, also after one that has to wait itself. It waits for no reader that is computed from
    it, or that waits for it.
    """
    names = ("rolling", "daily", "events", "other")
    table = SimpleNamespace(kind=Kind.TABLE, audits=())
    project: Any = Reading((name, SimpleNamespace(name=name, model=table)) for name in names)

    def chosen(*steps: Step) -> list[str]:
        found = side_by_side(project, cast("Any", SimpleNamespace()), Plan(steps), None, 4)
        return [step.model for step, _ in found]

    rolling, daily = (replace(one(name), action=Action.DERIVE) for name in ("rolling", "daily"))
    events, other = (replace(one(name), action=action) for name in ("events", "other"))

    assert chosen(rolling, daily, events, other) == ["rolling", "other"]
    assert chosen(daily, events, other) == ["daily", "other"]
    assert chosen(events, other) == ["events", "other"]
    assert chosen(one("daily"), replace(events, action=Action.EVOLVE)) == ["daily", "events"]
    assert chosen(replace(daily, expected=True), events) == ["events"]
