"""What a day costs a cumulative aggregate: from states, against reading its keys' rows again."""

from __future__ import annotations

from bench import runs
from bench.first_builds import year_of_events
from bench.measure import Clock, Line, ProcessorTime, Size, ratio
from bench.one_more_day import DAY_EVENTS, WARM
from bench.project import with_history

USERS = """\
---
materialization: cumulative_aggregate
---
SELECT user_id, count(*) AS events, sum(amount) AS revenue, avg(amount) AS mean,
  min(event_ts) AS first_seen, max(event_ts) AS last_seen{more}
FROM events GROUP BY user_id
"""
WITHOUT_STATE = ", sum(cast(0 AS double)) AS nothing"
"""An aggregate that costs little and has no state: so the rows of all keys are read again."""


def one_day_by_key(size: Size) -> list[Line]:
    """One day into users of 10 M events: from stored states, against the rows of their keys."""
    root, deliveries = with_history("w", year_of_events(size))
    for name in ("sessions", "daily"):
        (root / "models" / f"{name}.sql").unlink(missing_ok=True)
    models = {"users": USERS.format(more=""), "users_read": USERS.format(more=WITHOUT_STATE)}
    for name, text in models.items():
        (root / "models" / f"{name}.sql").write_text(text)
    runs.run(root)
    seconds = {name: Clock() for name in models}
    work = {name: Clock() for name in models}
    counts = {}
    for at in range(WARM + size.repeats):
        deliveries.deliver(size.rows(DAY_EVENTS))
        runs.run(root, ["events"])
        for name in sorted(models, reverse=bool(at % 2)):
            before = ProcessorTime()
            cost = runs.run(root, [name])
            if at >= WARM:
                seconds[name].add(cost.step(name))
                work[name].add(before.taken())
            counts[name] = cost.receipt(name)
    ours, theirs = counts["users"], counts["users_read"]
    return [
        Line(
            "one day into users of 10 M events, from states against reading",
            ratio(seconds["users"], seconds["users_read"]),
            0.3,
            detail=f"{seconds['users']} against {seconds['users_read']}; rows read {ours.read:,} "
            f"against {theirs.read:,}, scanned {ours.scanned:,} against {theirs.scanned:,}, "
            f"written {ours.written:,} each",
        ),
        Line(
            "the same, processor time of the run",
            ratio(work["users"], work["users_read"]),
            None,
            detail=f"{work['users']} against {work['users_read']}",
        ),
    ]
