"""The reference: which rows are usable, which copy is kept, sessions, and versions."""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal
from itertools import permutations
from random import Random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.reference import aggregates as agg
from tests.reference.compare import difference, stored
from tests.reference.drawn import at, events_of
from tests.reference.tables import events, sessions, versions
from tests.reference.world import Aside, Broken, Row, Rules, frozen, usable

from infold.core import interval
from infold.core.interval import HOUR, MINUTE, SECOND

NOW = 1_000 * HOUR


def row(key: str | None, time: int | None, revision: int = 0, url: str = "/") -> Row:
    """One click."""
    return {"event_id": key, "event_ts": time, "revision": revision, "url": url}


class TestUsable:
    """A row's content decides whether it is used, set aside or waits, and not when it arrived."""

    def test_each_reason(self) -> None:
        """Unparsable and timeless rows are set aside, those of the future wait."""
        found = usable(
            [row("a", 1), Broken("{"), row("b", None), row("c", NOW), row("d", NOW + 1)],
            Rules("event_ts"),
            NOW,
        )
        assert [each["event_id"] for each in found.rows] == ["a", "c"]
        assert found.aside == {Aside.UNPARSABLE: 1, Aside.NO_TIME: 1}
        assert [each["event_id"] for each in found.waiting] == ["d"]
        lookup = usable([row("a", None), Broken("?")], Rules(), NOW)
        assert (len(lookup.rows), lookup.aside) == (1, {Aside.UNPARSABLE: 1})

    def test_with_a_received_column_the_future_is_a_matter_of_content(self) -> None:
        """A row dated more than the tolerance after its receipt is set aside for good."""
        rows: list[Row] = [{"t": 10 * HOUR + late, "r": 10 * HOUR} for late in (HOUR, HOUR + 1)]
        for as_of in (0, NOW):
            found = usable(rows, Rules("t", received="r"), as_of)
            assert found.rows == rows[:1]
            assert found.aside == {Aside.FUTURE: 1}


class TestDeduplicated:
    """One row for each key and event time is kept, chosen by content."""

    def kept(self, *rows: Row, prefer: tuple[str, ...] = ("revision desc",)) -> list[Row]:
        """The rows of an events table keyed by event_id."""
        return events(rows, key=["event_id"], time="event_ts", prefer=prefer).rows()

    def test_the_preferred_copy_wins(self) -> None:
        """The declared order decides, in any order of arrival; without a key none is kept."""
        old, new, other = row("a", 1, revision=1), row("a", 1, revision=2), row("a", 2)
        assert self.kept(old, new, old) == self.kept(new, old) == [new]
        assert self.kept(old, new, prefer=("revision",)) == [old]
        assert self.kept(old, other) == [old, other]
        found = events([row(None, 1), other], key=["event_id"], time="event_ts")
        assert (len(found.groups), found.without_key) == (1, 1)

    def test_among_equally_preferred_copies_any_is_right(self) -> None:
        """Among equally preferred copies any is right, and a row that is no copy is wrong."""
        a, b, worse = row("a", 1, 2, "/a"), row("a", 1, 2, "/b"), row("a", 1, 1, "/c")
        found = events([a, b, worse], key=["event_id"], time="event_ts", prefer=["revision desc"])
        assert found.rows([a]) == [a]
        assert found.rows([b]) == [b]
        assert found.rows([worse])[0] in (a, b)
        assert found.copies == 2

    def test_everywhere_identity_is_the_key(self) -> None:
        """One row for each key: by preference, then the earliest time, in any order."""
        early, late = row("a", 1, revision=1), row("a", 9, revision=1, url="/late")
        best, other = row("a", 5, revision=2), row("b", 9)
        for rows in permutations([early, late, other]):
            found = events(rows, key=["event_id"], time="event_ts", everywhere=True)
            assert sorted(found.rows(), key=lambda each: each["event_id"]) == [early, other]
            assert found.copies == 1
        for rows in permutations([early, late, best]):
            found = events(
                rows, key=["event_id"], time="event_ts", prefer=["revision desc"], everywhere=True
            )
            assert found.rows() == [best]
        a, b = row("a", 1, url="/a"), row("a", 1, url="/b")
        found = events([late, b, a], key=["event_id"], time="event_ts", everywhere=True)
        assert found.groups == {("a",): [a, b]}, "copies of the earliest time are equally right"
        assert found.rows([late])[0] in (a, b)

    def test_the_query_comes_before_the_key(self) -> None:
        """Rows that WHERE removes are no candidates, and projections decide what is equal."""
        rows = [row("a", 1, revision=2, url="/x"), row("a", 1, revision=1, url="/y")]
        found = events(
            rows,
            key=["event_id"],
            time="event_ts",
            prefer=["revision desc"],
            query=lambda each: each if each["url"] != "/x" else None,
        )
        assert found.rows() == rows[1:]

    @given(
        st.lists(st.tuples(st.integers(0, 2), st.integers(0, 2), st.integers(0, 2)), max_size=9),
        st.randoms(use_true_random=False),
    )
    def test_order_of_arrival_does_not_matter(
        self, drawn: list[tuple[int, int, int]], random: Random
    ) -> None:
        """Shuffled rows give the same groups, and no group is without a row."""
        rows = [row(f"k{key}", 1, revision, f"/{url}") for key, revision, url in drawn]
        shuffled = list(rows)
        random.shuffle(shuffled)
        one, two = (
            events(each, key=["event_id"], time="event_ts", prefer=["revision desc"])
            for each in (rows, shuffled)
        )
        assert one.groups == two.groups
        assert one.copies == len(rows) - len(one.groups)
        for copies in one.groups.values():
            assert len({each["revision"] for each in copies}) == 1


class TestDifference:
    """Tables are compared as multisets, exactly except for the last digits of doubles."""

    @pytest.mark.parametrize(
        ("expected", "found", "equal"),
        [
            ([{"a": 1}, {"a": 2}], [{"a": 2}, {"a": 1}], True),
            ([{"a": 1}], [{"a": 1}, {"a": 1}], False),
            ([{"a": 0.1 + 0.2}], [{"a": 0.3 * (1 + 1e-12)}], True),
            ([{"a": 0.1 + 0.2}], [{"a": 0.3 + 5e-17}], True),
            ([{"a": 0.3, "b": [1.0]}], [{"a": 0.3, "b": [1.0 + 1e-6]}], False),
            ([{"a": Decimal("0.3")}], [{"a": Decimal("0.30")}], True),
            ([{"a": Decimal("0.3")}], [{"a": Decimal("0.3000000001")}], False),
            ([{"a": None}], [{"a": ""}], False),
            ([{"a": 1}], [{"b": 1}], False),
        ],
    )
    def test_what_is_equal(self, expected: list[Row], found: list[Row], equal: bool) -> None:
        """Order does not matter and copies do; the last digits of doubles may differ alone."""
        assert (difference(expected, found) == "") is equal

    def test_stored_rows_become_reference_rows(self) -> None:
        """Timestamps of stored rows become instants, and columns may be left out."""
        rows = [{"t": interval.datetime_of(5), "l": [interval.datetime_of(6)], "session_id": "x"}]
        assert stored(rows, leave_out=["session_id"]) == [{"t": 5, "l": [6]}]
        assert frozen({"b": [1], "a": None}) == (("a", None), ("b", (1,)))


# -- the reference for sessions agrees with the definition of sessions, and with that of SQL


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


# -- the reference's versions of keys, on cases that a person can check


def shown(
    *seen: str,
    compared: list[str] | None = None,
    snapshots: bool = False,
    without_rows: tuple[int, ...] = (),
) -> list[str]:
    """Rows like ``1 ann free`` -> versions like ``ann free 1-3``; ``-`` is NULL."""
    rows = []
    for text in seen:
        at, who, plan = (None if part == "-" else part for part in text.split())
        rows.append({"who": who, "at": None if at is None else int(at), "plan": plan})
    found = versions(
        rows,
        key=["who"],
        time="at",
        compared=compared,
        snapshots=snapshots,
        without_rows=without_rows,
    )
    return sorted(map(_text, found))


def _text(row: dict[str, Any]) -> str:
    return f"{row['who']} {row['plan']} {row['valid_from']}-{row['valid_to'] or ''}"


@pytest.mark.parametrize(
    ("seen", "by_time", "by_plan"),
    [
        (["1 ann a", "3 ann b"], ["ann a 1-3", "ann b 3-"], ["ann a 1-3", "ann b 3-"]),
        (["3 ann b", "1 ann a"], ["ann a 1-3", "ann b 3-"], ["ann a 1-3", "ann b 3-"]),
        (["1 ann a", "2 ann a"], ["ann a 1-2", "ann a 2-"], ["ann a 1-"]),
        (
            ["1 ann a", "5 ann a", "3 ann b"],
            ["ann a 1-3", "ann a 5-", "ann b 3-5"],
            ["ann a 1-3", "ann a 5-", "ann b 3-5"],
        ),
        (["1 ann a", "1 ann b", "1 ann -"], ["ann b 1-"], ["ann b 1-"]),
        (["1 - a", "2 - b", "- ann a"], ["None a 1-2", "None b 2-"], ["None a 1-2", "None b 2-"]),
    ],
)
def test_versions_of_rows(seen: list[str], by_time: list[str], by_plan: list[str]) -> None:
    """Versions are by instant, or by change; the order of rows and equal rows change nothing."""
    assert shown(*seen) == by_time
    assert shown(*seen, *seen, compared=["plan"]) == by_plan


def test_versions_of_snapshots() -> None:
    """A key that is missing at an instant of others ends there, and begins again."""
    seen = ["1 ann a", "1 bob a", "2 bob a", "3 ann a", "3 bob b", "4 bob b"]

    assert shown(*seen, compared=["plan"], snapshots=True) == [
        "ann a 1-2",
        "ann a 3-4",
        "bob a 1-3",
        "bob b 3-",
    ]
    assert shown(*seen, compared=["plan"], snapshots=True, without_rows=(0, 2, 3, 5)) == [
        "ann a 1-2",
        "ann a 3-4",
        "bob a 1-3",
        "bob b 3-5",
    ]
