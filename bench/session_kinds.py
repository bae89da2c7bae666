"""Sessions by other rules than user and gap: first builds, a bot of three years, numbers."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
from bench import runs
from bench.first_builds import by_session_window, forget, year_of_events
from bench.generate import DAY, FIRST_DAY, MINUTE, Rows, file_name, write
from bench.measure import Clock, Line, Size, alternately, ratio
from bench.one_more_day import DAY_EVENTS
from bench.project import SESSIONS, with_history

from infold import api
from infold.spark.tables.iceberg.tables import IcebergTables

GAP = "user: user_id, gap: 30 minutes"
WAYS = (
    ("by identifier", "identifier: user_id || cast(cast(event_ts AS date) AS string)", 0.9),
    ("cut at midnight", f"{GAP}, cuts: {{midnight: Europe/Berlin}}", 1.0),
    ("at most 24 hours long", f"{GAP}, max_length: 24 hours", 1.5),
)
BOT = 10**7
"""The number of a user whom no history has."""


def first_builds(size: Size) -> list[Line]:
    """First builds of sessions by identifier, cut at midnight, and of a greatest length."""
    root, _ = with_history(f"o-{size.scale}", year_of_events(size))
    forget(root)
    names = []
    for number, (_, keys, _) in enumerate(WAYS):
        for repeat in range(size.repeats):
            names.append(f"way_{number}_{repeat}")
            declare(root, names[-1], keys)
    runs.run(root, ["events", "sessions"])  # both warm
    project = api.open_project(root)
    spark = runs.large_session(project)
    tables = IcebergTables(spark, project.name, api.lake_of(project))
    theirs, ours = Clock(), [Clock() for _ in WAYS]

    def session_window() -> None:
        writer = by_session_window(tables)
        with theirs.timing():
            writer.createOrReplace()

    session_window()
    theirs.seconds.clear()
    for repeat in range(size.repeats):
        session_window()
        for number, clock in enumerate(ours):
            name = f"way_{number}_{repeat}"
            clock.add(runs.run(root, [name]).step(name))
    return [
        Line(
            f"first build of sessions {what}, against `session_window` alone",
            ratio(clock, theirs),
            target,
            detail=f"{clock} against {theirs}",
        )
        for (what, _, target), clock in zip(WAYS, ours, strict=True)
    ]


def bot_of_three_years(size: Size) -> list[Line]:
    """One more day into sessions of at most 24 hours, with and without a bot of three years."""
    shape = year_of_events(size)
    keys = f"{GAP}, max_length: 24 hours"
    plain_root, plain = with_history(f"p-plain-{size.scale}", shape)
    bot_root, bot = with_history(f"p-bot-{size.scale}", shape)
    for root in (plain_root, bot_root):
        declare(root, "sessions", keys)
    start = FIRST_DAY + shape.days - 3 * 365
    if not (bot_root / "landing" / "bot.parquet").exists():
        write(bot_root / "landing" / "bot.parquet", bot_rows(start, bot.day + FIRST_DAY, 0))
    for root in (plain_root, bot_root):
        runs.run(root)
    day, with_bot = Clock(), Clock()

    def without() -> None:
        plain.deliver(size.rows(DAY_EVENTS))
        day.add(runs.run(plain_root).seconds)

    def beside() -> None:
        today = bot.day
        bot.deliver(size.rows(DAY_EVENTS))
        name = f"bot-{file_name(today)}"
        write(
            bot_root / "landing" / name, bot_rows(FIRST_DAY + today, FIRST_DAY + today + 1, today)
        )
        with_bot.add(runs.run(bot_root).seconds)

    alternately(1, without, beside)
    day.seconds.clear()
    with_bot.seconds.clear()
    alternately(size.repeats, without, beside)
    return [
        Line(
            "one more day, sessions of at most 24 hours, with a bot of three years among them",
            ratio(with_bot, day),
            1.3,
            detail=f"{with_bot} against {day}",
        )
    ]


def one_early_event(size: Size) -> list[Line]:
    """One late event a year old, in a user with 1,000 sessions that are numbered."""
    root, _ = with_history("q", replace(year_of_events(size), events=100_000, users=3_000))
    forget(root)
    (root / "landing" / "late.parquet").unlink(missing_ok=True)
    declare(root, "sessions", f"{GAP}, session_number: true")
    at = (FIRST_DAY * DAY) + np.arange(1_000, dtype=np.int64) * (8 * 60 * MINUTE)
    write(root / "landing" / "user.parquet", user_rows(at + DAY, 1 << 50))
    runs.run(root)
    write(root / "landing" / "late.parquet", user_rows(at[:1], 1 << 51))
    cost = runs.run(root)
    return [
        Line(
            "rows written for one event before a user's 1,000 numbered sessions",
            float(cost.receipt("sessions").written),
            1_001.0,
            " rows",
            f"{cost.by_step}; {cost.jobs} jobs",
        )
    ]


def declare(root: Path, name: str, keys: str) -> None:
    """A sessions model with another ``sessions`` mapping."""
    text = SESSIONS.replace("{user: user_id, gap: 30 minutes}", f"{{{keys}}}")
    (root / "models" / f"{name}.sql").write_text(text)


def bot_rows(first: int, end: int, number: int) -> Rows:
    """An event every 20 minutes, day and night, from a day up to another."""
    return user_rows(np.arange(first * DAY, end * DAY, 20 * MINUTE), (1 << 52) + (number << 20))


def user_rows(at: np.ndarray[tuple[int], np.dtype[np.int64]], number: int) -> Rows:
    """Events of one user at these instants."""
    count = len(at)
    return Rows(
        number=np.arange(number, number + count, dtype=np.int64),
        user=np.full(count, BOT, dtype=np.int64),
        at=at.astype(np.int64),
        url=np.zeros(count, dtype=np.int64),
        cents=np.full(count, 100, dtype=np.int64),
    )
