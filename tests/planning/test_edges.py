"""Plans at their edges: the exact tick, the versions that a step reads, dropped tables."""

from __future__ import annotations

from dataclasses import replace

import pytest
from tests.planning.strips import (
    DAILY,
    FIRST,
    USERS,
    built,
    changed,
    day,
    planned,
    strip,
    with_incremental,
    with_trace,
)

from infold.core.interval import DAY, HOUR, Interval, Ranges
from infold.core.plan import Plan, PlanOptions
from infold.core.project import Bound, Input, Node
from infold.core.trace import Cause, Pending, Version, was_dropped

TICK = FIRST + 7 * DAY + 5 * HOUR
FIVE = with_incremental(DAILY, cron="0 5 * * *")
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


class TestBatchesOfOneTick:
    """A run continues its batches, and so does the next one where it came to no good end."""

    def test_of_a_run_that_goes_on_or_failed(self) -> None:
        """What is left of them is due by any clock; what a window or a limit left out waits."""
        left = Ranges.of([day(0)])

        assert at_five(TICK, TICK, left, unfinished=True)
        assert at_five(TICK, TICK + HOUR, left, unfinished=True)
        assert not at_five(TICK, TICK + HOUR, left)

    @pytest.mark.parametrize("left", [day(7), day(5)], ids=["incomplete", "empty"])
    def test_a_failure_elsewhere_makes_no_complete_table_due(self, left: Interval) -> None:
        """Cells that are not over, or have no rows, were not to be built: the rest is there."""
        days = "# + # # # . # #"

        assert not at_five(TICK, TICK + HOUR, Ranges.of([left]), days=days, unfinished=True)

    def test_an_empty_cell_may_have_rows_of_a_calendar(self) -> None:
        """A model that fills its cells has rows in them, whatever its inputs have."""
        fills, left = replace(FIVE, fills_cells=True), Ranges.of([day(5)])

        assert at_five(TICK, TICK + HOUR, left, days="# + # # # .", unfinished=True, node=fills)


def test_a_step_is_between_the_version_that_was_read_and_the_newest() -> None:
    """A step reads each input from the version that was
    read to the newest, which its trace then names.
    """
    [step] = planned(DAILY, daily=changed(DAILY, "sessions", LATE)).steps

    assert step.inputs == {"sessions": (1, 2), "users": (1, 1)}
    assert step.trace is not None
    assert step.trace.inputs == {"sessions": 2, "users": 1}


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


def test_what_was_late_in_a_lookup_shows_in_all_days() -> None:
    """Late rows in a lookup, which has no times, affect all days."""
    made = planned(DAILY, daily=changed(DAILY, "users", LATE))

    assert strip(made, "daily") == "B B B B B B B"


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


def test_the_rows_that_a_step_reads_are_those_within_its_bounds() -> None:
    """The rows a step reads are those within its bounds: a
    day with two days before it reads three days.
    """
    back = replace(DAILY, inputs=(Input("sessions", "session_start", (Bound(before=2 * DAY),)),))
    seen = changed(back, "sessions", "# # # # # # +")

    [step] = planned(back, daily=seen).steps

    assert step.rows_to_read == 30


def test_only_a_version_without_a_snapshot_says_that_a_table_was_dropped() -> None:
    """A version without a snapshot means a dropped table, and one that replaced all rows does
    not.
    """
    rebuilt = Version("daily", 2, 77, "step", "run", 0, 10, whole=True)
    recovered = replace(rebuilt, snapshot=None, whole=False)

    assert not was_dropped([rebuilt])
    assert not was_dropped([recovered])
    assert was_dropped([rebuilt, replace(rebuilt, number=3, snapshot=None)])
