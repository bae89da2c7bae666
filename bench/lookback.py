"""
What a lookback costs in right rows, on the demo's real data, in plain Python.

Replays the data by the day of arrival and keeps a table of sessions (30 minutes) by the rules that
tools ask a person to choose from; afterwards compares it with the truth. These are the *rules*,
re-implemented, not runs of any product. The second table counts the rows that must be read to stay
exact, by how finely one knows what a new row touches.

    python bench/lookback.py
"""

from __future__ import annotations

import csv
import gzip
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from datetime import UTC, datetime
from importlib.resources import files
from itertools import groupby
from typing import NamedTuple

DAY = 86_400
GAP = 1_800


class Event(NamedTuple):
    """One event: its user, when it happened, when it arrived."""

    user: str
    at: int
    received: int


Session = tuple[str, int, int, int]  # user, start, end, events


def events() -> list[Event]:
    """All events of the demo's data in order of arrival."""
    found = []
    for path in (files("infold.demo") / "data").iterdir():
        if path.name.endswith(".gz"):
            with path.open("rb") as raw, gzip.open(raw, "rt", newline="") as file:
                found += [
                    Event(row["user_id"], int(row["event_ts"]), int(row["received_ts"]))
                    for row in csv.DictReader(file)
                ]
    return sorted(found, key=lambda event: event.received)


def by_arrival(some: Sequence[Event]) -> Iterator[tuple[int, list[Event]]]:
    """The days of arrival, each with its events."""
    for day, group in groupby(some, key=lambda event: event.received // DAY):
        yield day, list(group)


def sessions(some: Iterable[Event]) -> set[Session]:
    """The sessions of some events; two events exactly one gap apart share one."""
    times = defaultdict(list)
    for event in some:
        times[event.user].append(event.at)
    found = set()
    for user, instants in times.items():
        run: list[int] = []
        for at in sorted(instants):
            if run and at - run[-1] > GAP:
                found.add((user, run[0], run[-1], len(run)))
                run = []
            run.append(at)
        found.add((user, run[0], run[-1], len(run)))
    return found


def day_batches(some: Sequence[Event], lookback: int) -> set[Session]:
    """Each daily run rebuilds today and the last ``lookback`` days, each from its own events."""
    known: dict[int, list[Event]] = defaultdict(list)
    table: dict[int, set[Session]] = {}
    for today, new in by_arrival(some):
        for event in new:
            known[event.at // DAY].append(event)
        for day in range(today - lookback, today + 1):
            if day in known:
                table[day] = sessions(known[day])
    return set().union(*table.values())


def watermark(some: Sequence[Event], days: int) -> set[Session]:
    """A stream with a daily trigger: rows ``days`` behind the newest event time are dropped."""
    newest, kept = 0, []
    for _, new in by_arrival(some):
        kept += [event for event in new if event.at >= newest - days * DAY]
        newest = max(newest, *(event.at for event in new))
    return sessions(kept)


def wrong(truth: set[Session], table: set[Session]) -> str:
    """The share of true sessions missing or different, of rows that are no session, events lost."""
    lost = sum(row[3] for row in truth) - sum(row[3] for row in table)
    missing, false = len(truth - table) / len(truth), len(table - truth) / len(table)
    return f"{missing:7.1%} | {false:6.1%} | {lost:7,}"


def rows_read(some: Sequence[Event]) -> dict[str, int]:
    """Rows read over all daily runs to stay exact, by what is read again for a new row."""
    days: dict[int, int] = defaultdict(int)
    users: dict[str, int] = defaultdict(int)
    total, read = 0, dict.fromkeys(("days", "around", "users", "all"), 0)
    for _, new in by_arrival(some):
        for event in new:
            days[event.at // DAY] += 1
            users[event.user] += 1
        total += len(new)
        touched = {event.at // DAY for event in new}
        around = {day + shift for day in touched for shift in (-1, 0, 1)}
        read["days"] += sum(days[day] for day in touched)
        read["around"] += sum(days.get(day, 0) for day in around)
        read["users"] += sum(users[user] for user in {event.user for event in new})
        read["all"] += total
    return read


def main() -> None:
    """Prints both tables as Markdown, for its ordinary years and for all of it."""
    everything = events()
    # work arrived late in two stretches: as patches until 2021, and at once in June 2026
    patches = [
        event
        for event in everything
        if event.received < datetime(2022, 1, 1, tzinfo=UTC).timestamp()
    ]
    for title, some in (("2016 to 2021", patches), ("2016 to 2026", everything)):
        report(title, some)


def report(title: str, some: Sequence[Event]) -> None:
    """Prints both tables for these events."""
    truth = sessions(some)
    print(f"\n{title}: {len(some):,} events, {len(truth):,} sessions\n")
    print("| rule | wrong or missing | false rows | events lost |\n|---|--:|--:|--:|")
    for n in (1, 3, 7, 30):
        print(f"| day batches, lookback {n} d | {wrong(truth, day_batches(some, n))} |")
    for n in (1, 7, 30):
        print(f"| watermark {n} d, daily trigger | {wrong(truth, watermark(some, n))} |")
    print("\n| to stay exact, read | rows | per new row |\n|---|--:|--:|")
    names = {
        "days": "the days of event time touched (wrong at midnight)",
        "around": "those and the days beside them",
        "users": "all of the history of the users touched",
        "all": "everything, every day",
    }
    for key, rows in rows_read(some).items():
        print(f"| {names[key]} | {rows:,} | {rows / len(some):,.1f} |")


if __name__ == "__main__":
    main()
