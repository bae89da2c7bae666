"""Plans at their edges: the exact tick, the versions that a step reads, dropped tables."""

from __future__ import annotations

from dataclasses import replace

from tests.planning.strips import (
    DAILY,
    FIRST,
    USERS,
    built,
    changed,
    project,
    strip,
    with_incremental,
)

from infold.core.interval import DAY, HOUR, Ranges
from infold.core.plan import Observations, Plan, PlanOptions
from infold.core.project import Bound, Input
from infold.core.trace import Cause, Pending, Version, was_dropped
from infold.planning.planner import plan

TICK = FIRST + 7 * DAY + 5 * HOUR
FIVE = with_incremental(DAILY, cron="0 5 * * *")
LATE = "# + # # # # #"


def at_five(built_at: int, now: int, left: Ranges | None = None) -> Plan:
    """A plan of a model that is due at five, one of whose days is late."""
    seen = replace(changed(FIVE, "sessions", LATE), as_of=built_at)
    if left is not None and seen.trace is not None:
        trace = replace(seen.trace, pending=(Pending(Cause.LATE, left),))
        seen = replace(seen, trace=trace)
    return plan(project(FIVE), Observations(now, {"daily": seen}))


def test_a_model_that_was_built_at_the_very_tick_was_built_for_it() -> None:
    """A model built at the exact tick is not due an hour later, and is due at the next tick."""
    assert not at_five(TICK, TICK + HOUR)
    assert at_five(TICK, TICK + DAY)
    assert at_five(TICK - 1, TICK)


def test_a_run_continues_its_own_batches_and_no_other_run_does() -> None:
    """The rest of a run's batches stays due with that run's clock, and not for a later run."""
    left = Ranges.of([DAILY_FIRST])

    assert at_five(TICK, TICK, left)
    assert not at_five(TICK, TICK + HOUR, left)


DAILY_FIRST = next(iter(changed(FIVE, "sessions", LATE).inputs[0].cells)).cell


def test_a_step_is_between_the_version_that_was_read_and_the_newest() -> None:
    """A step reads each input from the version that was
    read to the newest, which its trace then names.
    """
    [step] = plan(
        project(DAILY), Observations(0, {"daily": changed(DAILY, "sessions", LATE)})
    ).steps

    assert step.inputs == {"sessions": (1, 2), "users": (1, 1)}
    assert step.trace is not None
    assert step.trace.inputs == {"sessions": 2, "users": 1}


def test_a_dropped_table_is_not_read() -> None:
    """Readers of a dropped table wait for the run that builds it again."""
    seen = changed(DAILY, "sessions", LATE)
    gone = replace(built(USERS), trace=None)

    made = plan(
        project(USERS, DAILY),
        Observations(0, {"users": gone, "daily": seen}),
        PlanOptions(selected=frozenset({"daily"})),
    )

    assert not made.steps
    assert [(left.model, left.why) for left in made.skipped] == [
        ("users", "not selected"),
        ("daily", "its input users was never built"),
    ]


def test_what_was_late_in_a_lookup_shows_in_all_days() -> None:
    """Late rows in a lookup, which has no times, affect all days."""
    made = plan(project(DAILY), Observations(0, {"daily": changed(DAILY, "users", LATE)}))

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
        made = plan(project(target), Observations(now, {"daily": seen}), asked)

        assert strip(made, "daily") == drawn


def test_the_rows_that_a_step_reads_are_those_within_its_bounds() -> None:
    """The rows a step reads are those within its bounds: a
    day with two days before it reads three days.
    """
    back = replace(DAILY, inputs=(Input("sessions", "session_start", (Bound(before=2 * DAY),)),))
    seen = changed(back, "sessions", "# # # # # # +")

    [step] = plan(project(back), Observations(0, {"daily": seen})).steps

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
