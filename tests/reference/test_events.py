"""The reference for events: which rows are usable, and which copy is kept."""

from __future__ import annotations

from decimal import Decimal
from itertools import permutations
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.reference import aggregates as agg
from tests.reference.compare import difference, stored
from tests.reference.tables import events, grouped, left_joined
from tests.reference.world import Aside, Broken, Row, Rules, World, frozen, usable

from infold.core import interval
from infold.core.interval import HOUR, Granularity

NOW = 1_000 * HOUR


def row(key: str | None, time: int | None, revision: int = 0, url: str = "/") -> Row:
    """One click."""
    return {"event_id": key, "event_ts": time, "revision": revision, "url": url}


class TestUsable:
    """A row's content decides whether it is used, set aside or waits, and not when it arrived."""

    def test_each_reason(self) -> None:
        """Unparsable records and rows without a time are set aside, and rows of the future wait."""
        found = usable(
            [row("a", 1), Broken("{"), row("b", None), row("c", NOW), row("d", NOW + 1)],
            Rules("event_ts"),
            NOW,
        )
        assert [each["event_id"] for each in found.rows] == ["a", "c"]
        assert found.aside == {Aside.UNPARSABLE: 1, Aside.NO_TIME: 1}
        assert [each["event_id"] for each in found.waiting] == ["d"]

    def test_with_a_received_column_the_future_is_a_matter_of_content(self) -> None:
        """With a received column, a row dated more than the
        tolerance after it is set aside for good.
        """
        rows: list[Row] = [{"t": 10 * HOUR + late, "r": 10 * HOUR} for late in (HOUR, HOUR + 1)]
        for as_of in (0, NOW):
            found = usable(rows, Rules("t", received="r"), as_of)
            assert found.rows == rows[:1]
            assert found.aside == {Aside.FUTURE: 1}

    def test_a_lookup_uses_all_that_parses(self) -> None:
        """A source without event time uses every row that parses."""
        found = usable([row("a", None), Broken("?")], Rules(), NOW)
        assert len(found.rows) == 1
        assert found.aside == {Aside.UNPARSABLE: 1}

    def test_a_world_is_its_files(self) -> None:
        """A world has the records of its files, and a copy of a world does not change with it."""
        world = World({"clicks/a": (row("a", 1),), "pages/b": (row("b", 1),)}, NOW)
        copy = world.copy()
        del world.files["clicks/a"]
        assert world.under("clicks") == []
        assert copy.under("clicks") == [row("a", 1)]


class TestDeduplicated:
    """One row for each key and event time is kept, chosen by content."""

    def kept(self, *rows: Row, prefer: tuple[str, ...] = ("revision desc",)) -> list[Row]:
        """The rows of an events table keyed by event_id."""
        return events(rows, key=["event_id"], time="event_ts", prefer=prefer).rows()

    def test_equal_copies_are_one_event(self) -> None:
        """An event delivered three times is one event."""
        assert self.kept(row("a", 1), row("a", 1), row("a", 1)) == [row("a", 1)]

    def test_identity_is_key_and_time(self) -> None:
        """The same key at another time is another event."""
        assert len(self.kept(row("a", 1), row("a", 2))) == 2

    def test_the_preferred_copy_wins(self) -> None:
        """The declared order decides among conflicting copies, in any order of arrival."""
        old, new = row("a", 1, revision=1), row("a", 1, revision=2)
        assert self.kept(old, new) == self.kept(new, old) == [new]
        assert self.kept(old, new, prefer=("revision",)) == [old]

    def test_among_equally_preferred_copies_any_is_right(self) -> None:
        """Among equally preferred copies any is right, and a row that is no copy is wrong."""
        a, b, worse = row("a", 1, 2, "/a"), row("a", 1, 2, "/b"), row("a", 1, 1, "/c")
        found = events([a, b, worse], key=["event_id"], time="event_ts", prefer=["revision desc"])
        assert found.rows([a]) == [a]
        assert found.rows([b]) == [b]
        assert found.rows([worse])[0] in (a, b)
        assert found.copies == 2

    def test_everywhere_identity_is_the_key(self) -> None:
        """Everywhere, one row for each key is kept: by
        preference, then the earliest time, in any order.
        """
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

    def test_everywhere_copies_of_one_time_are_equally_right(self) -> None:
        """Everywhere, copies of the earliest time are equally right, and a later one never is."""
        a, b, late = row("a", 1, url="/a"), row("a", 1, url="/b"), row("a", 2, url="/a")
        found = events([late, b, a], key=["event_id"], time="event_ts", everywhere=True)
        assert found.groups == {("a",): [a, b]}
        assert found.rows([late])[0] in (a, b)

    def test_a_row_without_key_is_set_aside(self) -> None:
        """A row with a NULL key is set aside."""
        found = events([row(None, 1), row("a", 1)], key=["event_id"], time="event_ts")
        assert (len(found.groups), found.without_key) == (1, 1)

    def test_the_query_comes_before_the_key(self) -> None:
        """Rows that WHERE removes are no candidates, and projections decide which copies are
        equal.
        """
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


class TestGroupsAndJoins:
    """Daily tables and lookups, as GROUP BY and LEFT JOIN define them."""

    def test_grouping_by_cells(self) -> None:
        """Rows are grouped into the cells of their time, and a row in no cell is in no table."""
        start = interval.parse_instant_text("2024-03-09")
        rows: list[Row] = [{"t": start + hour * HOUR} for hour in (0, 23, 24)] + [{"t": None}]
        found = grouped(
            rows,
            {"day": lambda each: None if each["t"] is None else Granularity.DAY.floor(each["t"])},
            {"n": agg.count()},
            cell="day",
        )
        assert found == [{"day": start, "n": 2}, {"day": start + 24 * HOUR, "n": 1}]

    def test_grouping_by_nothing_is_one_row(self) -> None:
        """An aggregate without GROUP BY has a row even over nothing."""
        assert grouped([], {}, {"n": agg.count()}) == [{"n": 0}]

    def test_a_left_join_keeps_every_row(self) -> None:
        """A left join keeps unmatched rows with NULLs, doubles
        those with two matches, and NULL matches nothing.
        """
        lookup: list[Row] = [{"k": 1, "v": "a"}, {"k": 1, "v": "b"}, {"k": None, "v": "c"}]
        found = left_joined([{"k": 1}, {"k": 2}, {"k": None}], lookup, "k", ["v"])
        assert found == [
            {"k": 1, "v": "a"},
            {"k": 1, "v": "b"},
            {"k": 2, "v": None},
            {"k": None, "v": None},
        ]


class TestDifference:
    """Tables are compared as multisets, exactly except for the last digits of doubles."""

    def test_order_does_not_matter_and_copies_do(self) -> None:
        """Tables with the same rows in another order are
        equal, and one more copy of a row is a difference.
        """
        assert difference([{"a": 1}, {"a": 2}], [{"a": 2}, {"a": 1}]) == ""
        assert "too many" in difference([{"a": 1}], [{"a": 1}, {"a": 1}])

    @pytest.mark.parametrize("other", [0.3, 0.3 + 5e-17, 0.3 * (1 + 1e-12)])
    def test_doubles_may_differ_in_their_last_digits(self, other: float) -> None:
        """Doubles are equal within a tolerance, wherever they are rounded."""
        assert difference([{"a": 0.1 + 0.2}], [{"a": other}]) == ""
        assert difference([{"a": 0.3, "b": [1.0]}], [{"a": 0.3, "b": [1.0 + 1e-6]}])

    def test_decimals_and_strings_may_not(self) -> None:
        """Decimals and strings have to be exactly equal."""
        assert difference([{"a": Decimal("0.3")}], [{"a": Decimal("0.30")}]) == ""
        assert difference([{"a": Decimal("0.3")}], [{"a": Decimal("0.3000000001")}])
        assert difference([{"a": None}], [{"a": ""}])

    def test_columns_are_part_of_a_table(self) -> None:
        """A missing or additional column is a difference that names it."""
        assert "columns differ" in difference([{"a": 1}], [{"b": 1}])

    def test_stored_rows_become_reference_rows(self) -> None:
        """Timestamps of stored rows become instants, and columns may be left out."""
        rows = [{"t": interval.datetime_of(5), "l": [interval.datetime_of(6)], "session_id": "x"}]
        assert stored(rows, leave_out=["session_id"]) == [{"t": 5, "l": [6]}]
        assert frozen({"b": [1], "a": None}) == (("a", None), ("b", (1,)))
