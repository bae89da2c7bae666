"""The reference for sessions agrees with the definition of sessions, and with that of SQL."""

from __future__ import annotations

from collections.abc import Sequence

from hypothesis import given
from hypothesis import strategies as st
from tests.reference import aggregates as agg
from tests.reference.drawn import at, events_of
from tests.reference.tables import sessions
from tests.reference.world import Row

from infold.core.interval import MINUTE, SECOND

GAP = 30 * MINUTE


def counted(rows: Sequence[Row], gap: int) -> list[Row]:
    """The sessions of events, with their numbers of events."""
    counts = {"events": agg.count()}
    return sessions(
        rows, user="user_id", time="event_ts", key=["event_id"], gap=gap, aggregates=counts
    )


def test_users_do_not_mix() -> None:
    """Sessions of two users at the same time are two; events without a user are in none."""
    users = ["ann", "bob", None, "ann"]
    rows = [
        {"event_id": str(n), "user_id": user, "event_ts": n * SECOND}
        for n, user in enumerate(users)
    ]
    found = counted(rows, GAP)

    assert sorted((row["user_id"], row["events"]) for row in found) == [("ann", 2), ("bob", 1)]


def components(times: Sequence[int], gap: int) -> list[list[int]]:
    """The definition itself: events joined, directly or not, by pauses no longer than the gap."""
    groups: list[list[int]] = []
    for when in times:
        near = [group for group in groups if any(abs(when - other) <= gap for other in group)]
        groups = [group for group in groups if group not in near]
        groups.append([when, *(other for group in near for other in group)])
    return sorted(sorted(group) for group in groups)


@given(st.lists(st.integers(0, 40), max_size=14), st.integers(0, 4))
def test_sessions_are_connected_components(times: list[int], gap: int) -> None:
    """Cutting at pauses gives the connected components of events closer than the gap."""
    rows = counted(events_of(times), gap)
    assert sorted((row["session_start"], row["session_end"], row["events"]) for row in rows) == [
        (group[0], group[-1], len(group)) for group in components(times, gap)
    ]


@given(st.permutations(range(8)))
def test_the_order_of_arrival_does_not_matter(order: list[int]) -> None:
    """Sessions, and first and last among equal times, depend on content alone."""
    nine = at("09:00")
    rows: list[Row] = [
        {"event_id": f"e{n}", "user_id": "ann", "event_ts": nine + n // 3 * MINUTE, "url": f"/{n}"}
        for n in range(8)
    ]
    [row] = sessions(
        [rows[n] for n in order],
        user="user_id",
        time="event_ts",
        key=["event_id"],
        gap=GAP,
        aggregates={"a": agg.first("url"), "b": agg.last("url"), "c": agg.listed("url")},
    )
    assert (row["a"], row["b"]) == ("/0", "/7")
    assert row["c"] == [f"/{n}" for n in range(8)]
