"""What one more day costs: against a rebuild, into a longer history, and by its rows' age."""

from __future__ import annotations

from dataclasses import replace

from bench import runs
from bench.first_builds import forget, year_of_events
from bench.measure import Clock, Line, Size, alternately, ratio
from bench.project import same_files, with_history

from infold import api

DAY_EVENTS = 168_000
WARM = 4
"""Days that are not counted: the JVM still compiles much of what a day takes."""


def one_more_day(size: Size) -> list[Line]:
    """A day's delivery, ingest and three models, against infold's own rebuild from the files."""
    return [_one_more_day(size, "web", 0.10), _one_more_day(size, "spread", 0.15)]


def _one_more_day(size: Size, profile: str, target: float) -> Line:
    root, deliveries = with_history(f"b-{profile}", year_of_events(size, profile))
    runs.large_session(api.open_project(root))  # the rebuild's JVM, also where a table is there
    runs.run(root)
    for _ in range(WARM):
        deliveries.deliver(size.rows(DAY_EVENTS))
        runs.run(root)
    day, rebuild = Clock(), Clock()
    for _ in range(size.repeats):
        deliveries.deliver(size.rows(DAY_EVENTS))
        cost = runs.run(root)
        day.add(cost.seconds)
    for number in range(2):
        fresh = same_files(f"b-{profile}-fresh-{number}", root)
        rebuild.add(runs.run(fresh).seconds)
        forget(fresh)
    receipt = cost.result.receipt
    return Line(
        f"one more day, `{profile}`, against a rebuild from the files",
        ratio(day, rebuild),
        target,
        detail=f"{day} against {rebuild}; the last day: {cost.by_step}; {cost.jobs} jobs, "
        f"{receipt.commits} commits, {receipt.arrived:,} rows arrived, {receipt.read:,} read, "
        f"{receipt.written:,} written",
    )


def into_longer(size: Size) -> list[Line]:
    """The same day into a history of one year and into one of ten, taking turns."""
    short_root, short = with_history("c-short", year_of_events(size))
    ten = replace(year_of_events(size), events=10 * year_of_events(size).events, days=3650)
    long_root, long = with_history("c-long", ten)
    for root, deliveries in ((short_root, short), (long_root, long)):
        runs.run(root)
        deliveries.deliver(size.rows(DAY_EVENTS))
        runs.run(root)
    short_days, long_days = Clock(), Clock()

    def into_short() -> None:
        short.deliver(size.rows(DAY_EVENTS))
        short_days.add(runs.run(short_root).seconds)

    def into_long() -> None:
        long.deliver(size.rows(DAY_EVENTS))
        long_days.add(runs.run(long_root).seconds)

    alternately(size.repeats, into_short, into_long)
    return [
        Line(
            "one more day, `web`, into a history ten times longer",
            ratio(long_days, short_days),
            1.2,
            detail=f"{long_days} against {short_days}",
        )
    ]


def everywhere(size: Size) -> list[Line]:
    """One more day into 2 M events: copies sought at any time, against at their own time alone."""
    shape = replace(year_of_events(size), events=size.rows(2_000_000), users=size.rows(60_000))
    roots = []
    for name in ("n-same-time", "n-everywhere"):
        root, deliveries = with_history(name, shape)
        if name == "n-everywhere":
            events = root / "models" / "events.sql"
            keys = "deduplicate: everywhere\ntimeseries:"
            events.write_text(events.read_text().replace("timeseries:", keys))
        roots.append((root, deliveries, Clock(), Clock()))
    for root, deliveries, first, _ in roots:
        first.add(runs.run(root, ["events"]).seconds)
        deliveries.deliver(size.rows(DAY_EVENTS // 5))
        runs.run(root, ["events"])
    scanned = 0

    def one_day(at: int) -> None:
        nonlocal scanned
        root, deliveries, _, clock = roots[at]
        deliveries.deliver(size.rows(DAY_EVENTS // 5))
        cost = runs.run(root, ["events"])
        clock.add(cost.seconds)
        scanned = cost.result.receipt.keys_scanned or scanned

    alternately(max(3, size.repeats), lambda: one_day(0), lambda: one_day(1))
    (_, _, built, day), (_, _, built_everywhere, day_everywhere) = roots
    return [
        Line(
            "one more day into 2 M events, `deduplicate: everywhere` against `same_time`",
            ratio(day_everywhere, day),
            None,
            detail=f"ingest alone: {day_everywhere} against {day}; {scanned:,} keys scanned; "
            f"first builds {built_everywhere} (the second in its JVM) against {built}",
        )
    ]


def one_event(size: Size) -> list[Line]:
    """A run with one new event, a year old, against one with an event of today."""
    root, deliveries = with_history("d", year_of_events(size))
    runs.run(root)
    old, new = Clock(), Clock()

    def a_year_old() -> None:
        deliveries.deliver_one(deliveries.shape.days - 5)
        old.add(runs.run(root).seconds)

    def of_today() -> None:
        deliveries.deliver_one(1)
        new.add(runs.run(root).seconds)

    alternately(1, of_today, a_year_old)
    old.seconds.clear()
    new.seconds.clear()
    alternately(max(5, size.repeats), of_today, a_year_old)
    return [
        Line(
            "one event a year old, against one of today",
            ratio(old, new),
            1.3,
            detail=f"{old} against {new}",
        )
    ]
