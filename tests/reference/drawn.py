"""Tables as a person draws them, for cases that are read before they are run."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from tests.reference.world import Row

from infold.core import interval

DAY = "2019-10-23"
"""The day that a time without a date is on."""


def table(text: str) -> list[list[str]]:
    """The cells of a drawn table, without its head and rule."""
    lines = [line.strip() for line in text.strip().splitlines()]
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]
    return [row for row in rows[1:] if not set("".join(row)) <= set("-: ")]


def at(text: str, day: str = DAY) -> int:
    """The instant of ``09:21``, ``22 23:59`` (another day of the month) or a whole timestamp."""
    if len(text) <= 8:
        head, _, clock = text.rpartition(" ")
        if head:
            day = f"{day[:8]}{int(head):02}"
        return interval.parse_instant_text(f"{day}T{clock}")
    return interval.parse_instant_text(text)


def spread(start: str, end: str, events: int) -> list[int]:
    """As many instants as a drawn session has events, evenly from its start to its end."""
    first, last = at(start), at(end)
    return [first + (last - first) * i // max(events - 1, 1) for i in range(events)]


def events_of(times: Iterable[int], user: str = "ann") -> list[Row]:
    """Events of one user at these instants, numbered in the order given."""
    return [
        {"event_id": f"e{number:04}", "user_id": user, "event_ts": when}
        for number, when in enumerate(times)
    ]


def drawn(sessions: Sequence[Row], *columns: str) -> list[list[str]]:
    """Sessions as cells of a drawn table, in order of start."""
    found = []
    for row in sorted(sessions, key=lambda row: row["session_start"]):
        start, end = (_clock(row[name]) for name in ("session_start", "session_end"))
        found.append([start, end, *(str(row[name]) for name in columns)])
    return found


def _clock(when: int) -> str:
    text = interval.datetime_of(when).strftime("%Y-%m-%d %H:%M")
    day, clock = text.split(" ")
    if day == DAY:
        return clock
    if day[:8] == DAY[:8]:
        return f"{day[8:]} {clock}"
    return text
