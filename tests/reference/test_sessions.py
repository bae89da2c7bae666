"""The reference for sessions agrees with drawn tables and with the definition of sessions."""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.reference import aggregates as agg
from tests.reference.drawn import at, drawn, events_of, history, spread, table
from tests.reference.tables import sessions
from tests.reference.world import Row

from infold.core.interval import DAY, MINUTE, SECOND

GAP = 30 * MINUTE

OCTOBER_23 = """
    | start | end   | events |
    |-------|-------|-------:|
    | 09:21 | 09:30 |     10 |
    | 10:05 | 10:23 |     15 |
    | 13:25 | 14:10 |     20 |
"""


def found(times: Sequence[int], user: str = "ann") -> list[list[str]]:
    """The sessions of one user's events as a drawn table."""
    return drawn(
        sessions(
            events_of(times, user),
            user="user_id",
            time="event_ts",
            key=["event_id"],
            gap=GAP,
            aggregates={"events": agg.count()},
        ),
        "events",
    )


class TestOneLateEvent:
    """The five cases of a late event: what the sessions of 2019-10-23 are with it."""

    def test_case_1_merges_the_sessions_either_side(self) -> None:
        """An event less than 30 minutes from two sessions makes them one."""
        assert found([*history(OCTOBER_23), at("09:45")]) == table("""
            | start | end   | events |
            |-------|-------|-------:|
            | 09:21 | 10:23 |     26 |
            | 13:25 | 14:10 |     20 |
        """)

    def test_case_2_falls_within_a_session(self) -> None:
        """An event inside a session only adds to its count."""
        assert found([*history(OCTOBER_23), at("09:23")]) == table("""
            | start | end   | events |
            |-------|-------|-------:|
            | 09:21 | 09:30 |     11 |
            | 10:05 | 10:23 |     15 |
            | 13:25 | 14:10 |     20 |
        """)

    def test_case_3_is_a_session_of_its_own(self) -> None:
        """An event far from all sessions is a new one."""
        assert found([*history(OCTOBER_23), at("11:15")]) == table("""
            | start | end   | events |
            |-------|-------|-------:|
            | 09:21 | 09:30 |     10 |
            | 10:05 | 10:23 |     15 |
            | 11:15 | 11:15 |      1 |
            | 13:25 | 14:10 |     20 |
        """)

    def test_case_4_belongs_to_the_session_of_the_day_before(self) -> None:
        """An event just after midnight extends the session that ended just before it."""
        evening = spread("22 23:10", "22 23:59", 5)
        assert found([*evening, *history(OCTOBER_23), at("00:01")]) == table("""
            | start    | end   | events |
            |----------|-------|-------:|
            | 22 23:10 | 00:01 |      6 |
            | 09:21    | 09:30 |     10 |
            | 10:05    | 10:23 |     15 |
            | 13:25    | 14:10 |     20 |
        """)

    def test_case_5_drags_in_the_session_of_the_next_day(self) -> None:
        """An event just before midnight becomes the start of the session that follows."""
        morning = spread("24 00:01", "24 00:20", 3)
        assert found([*history(OCTOBER_23), *morning, at("23:59")]) == table("""
            | start | end      | events |
            |-------|----------|-------:|
            | 09:21 | 09:30    |     10 |
            | 10:05 | 10:23    |     15 |
            | 13:25 | 14:10    |     20 |
            | 23:59 | 24 00:20 |      4 |
        """)


class TestShapes:
    """Sessions that go wrong elsewhere: nested, truncated, merged in several at once."""

    def test_no_session_is_truncated_at_midnight(self) -> None:
        """A session over midnight is one row, of the day on which it started."""
        assert found(spread("22 23:40", "00:40", 7)) == table("""
            | start    | end   | events |
            |----------|-------|-------:|
            | 22 23:40 | 00:40 |      7 |
        """)

    def test_no_session_is_nested_in_another(self) -> None:
        """Events that arrive as a whole session inside a longer one only add to it."""
        outer, inner = spread("09:00", "11:00", 9), spread("09:50", "10:10", 3)
        assert found([*outer, *inner]) == table("""
            | start | end   | events |
            |-------|-------|-------:|
            | 09:00 | 11:00 |     12 |
        """)

    def test_one_event_bridges_only_what_it_reaches(self) -> None:
        """Two late events make three sessions one; one of them alone joins two."""
        three = history("""
            | start | end   | events |
            |-------|-------|-------:|
            | 09:00 | 09:10 |      2 |
            | 10:00 | 10:05 |      2 |
            | 10:50 | 11:00 |      2 |
        """)
        assert found([*three, at("09:35")]) == table("""
            | start | end   | events |
            |-------|-------|-------:|
            | 09:00 | 10:05 |      5 |
            | 10:50 | 11:00 |      2 |
        """)
        assert found([*three, at("09:35"), at("10:30")]) == table("""
            | start | end   | events |
            |-------|-------|-------:|
            | 09:00 | 11:00 |      8 |
        """)

    def test_a_whole_session_arrives_that_bridges_three(self) -> None:
        """A late stretch that lies between three sessions and around one makes all of them one."""
        times = [at("09:00"), at("10:00"), at("11:00"), *spread("09:25", "10:35", 4)]
        assert found(times) == table("""
            | start | end   | events |
            |-------|-------|-------:|
            | 09:00 | 11:00 |      7 |
        """)

    def test_exactly_the_gap_is_still_one_session(self) -> None:
        """Two events exactly 30 minutes apart belong together; a microsecond more parts them."""
        nine = at("09:00")
        assert len(found([nine, nine + GAP])) == 1
        assert len(found([nine, nine + GAP + 1])) == 2

    def test_a_burst_of_equal_times_is_one_instant(self) -> None:
        """Many events of one time are one session, as long as nothing, with all of them."""
        assert found([at("09:00")] * 40) == table("""
            | start | end   | events |
            |-------|-------|-------:|
            | 09:00 | 09:00 |     40 |
        """)

    def test_an_event_of_a_year_ago_is_in_its_own_time(self) -> None:
        """However late it arrives, an event belongs to its own time."""
        assert found([*spread("09:00", "09:10", 3), at("09:05") - 365 * DAY]) == table("""
            | start            | end              | events |
            |------------------|------------------|-------:|
            | 2018-10-23 09:05 | 2018-10-23 09:05 |      1 |
            | 09:00            | 09:10            |      3 |
        """)

    def test_users_do_not_mix(self) -> None:
        """Sessions of two users at the same time are two; events without a user are in none."""
        nine = at("09:00")
        rows = [
            {"event_id": str(n), "user_id": user, "event_ts": nine + n * SECOND}
            for n, user in enumerate(["ann", "bob", None, "ann"])
        ]
        assert sorted(
            (row["user_id"], row["events"])
            for row in sessions(
                rows,
                user="user_id",
                time="event_ts",
                key=["event_id"],
                gap=GAP,
                aggregates={"events": agg.count()},
            )
        ) == [("ann", 2), ("bob", 1)]


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
    """Sorting and cutting at pauses gives the connected components of events closer than the
    gap.
    """
    rows = sessions(
        events_of(times),
        user="user_id",
        time="event_ts",
        key=["event_id"],
        gap=gap,
        aggregates={"events": agg.count()},
    )
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


D = Decimal


class TestAggregates:
    """Each aggregate is as SQL defines it: NULLs, empty input, exactness."""

    ROWS: tuple[Row, ...] = (
        {"n": 3, "d": D("1.10"), "x": 0.1, "s": None, "ok": True},
        {"n": None, "d": D("2.25"), "x": 0.2, "s": "b", "ok": None},
        {"n": 4, "d": None, "x": 0.3, "s": "a", "ok": False},
        {"n": 3, "d": D("0.01"), "x": None, "s": None, "ok": True},
    )

    @pytest.mark.parametrize(
        ("aggregate", "value"),
        [
            (agg.count(), 4),
            (agg.count_of("s"), 2),
            (agg.count_distinct("n"), 2),
            (agg.count_if("ok", lambda row: row["ok"]), 2),
            (agg.total("n"), 10),
            (agg.total("d"), D("3.36")),
            (agg.total("x"), 0.6),
            (agg.mean("n"), 10 / 3),
            (agg.mean("d", scale=2), D("1.120000")),
            (agg.least("s"), "a"),
            (agg.greatest("s"), "b"),
            (agg.first("s"), None),
            (agg.first_known("s"), "b"),
            (agg.last("s"), None),
            (agg.last_known("s"), "a"),
            (agg.every("ok", lambda row: row["ok"]), False),
            (agg.some("ok", lambda row: row["ok"]), True),
            (agg.listed("n"), [3, 4, 3]),
            (agg.percentile("n", 0.5), 3.0),
            (agg.percentile("d", 0.25), 0.555),
            (agg.count().where("ok", lambda row: row["ok"]), 2),
            (agg.total("d").where("n = 4", lambda row: row["n"] == 4), None),
            (agg.first("s").where("s IS NOT NULL", lambda row: row["s"] is not None), "b"),
        ],
        ids=lambda value: value.sql if isinstance(value, agg.Aggregate) else "",
    )
    def test_aggregates_over_four_rows(self, aggregate: agg.Aggregate, value: object) -> None:
        """NULLs are ignored where SQL ignores them, and kept where it keeps them."""
        found = aggregate.value(self.ROWS)
        assert found == pytest.approx(value) if isinstance(value, float) else found == value

    @pytest.mark.parametrize(
        ("aggregate", "value"),
        [
            (agg.count(), 0),
            (agg.total("n"), None),
            (agg.mean("d", scale=2), None),
            (agg.least("n"), None),
            (agg.first("n"), None),
            (agg.last_known("n"), None),
            (agg.every("ok", lambda row: row["ok"]), None),
            (agg.listed("n"), []),
            (agg.percentile("n", 0.9), None),
        ],
        ids=lambda value: value.sql if isinstance(value, agg.Aggregate) else "",
    )
    def test_aggregates_over_no_rows(self, aggregate: agg.Aggregate, value: object) -> None:
        """Over no rows counts are zero, lists are empty, and everything else is NULL."""
        assert aggregate.value([]) == value
