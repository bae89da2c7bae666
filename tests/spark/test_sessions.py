"""Sessions on Spark: builds and folds against the reference, on drawn tables and at random."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st
from tests.reference import aggregates as agg
from tests.reference.drawn import at, drawn, events_of, history, spread, table
from tests.reference.world import Row
from tests.spark.folding import GAP, Call, Shop

from infold.interval import MINUTE, SECOND

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark

D = Decimal

COUNT = {"events": Call("count(*)", agg.count(), "count")}


def named(call: str, reference: agg.Aggregate, argument: str, **more: Any) -> Call:
    """A call of one argument, with what analysis would make of it."""
    return Call(reference.sql, reference, call, argument, **more)


MERGING = {
    "events": Call("count(*)", agg.count(), "count"),
    "urls": named("count", agg.count_of("url"), "url"),
    "good": named("count_if", agg.count_if("ok", lambda row: row["ok"]), "ok"),
    "ns": named("sum", agg.total("n"), "n"),
    "bigs": named("sum", agg.total("big"), "big"),
    "revenue": named("sum", agg.total("amount"), "amount"),
    "mean_n": named("avg", agg.mean("n"), "n"),
    "mean_amount": named("avg", agg.mean("amount", scale=2), "amount"),
    "least_url": named("min", agg.least("url"), "url"),
    "most_amount": named("max", agg.greatest("amount"), "amount"),
    "least_x": named("min", agg.least("x"), "x"),
    "latest": named("max", agg.greatest("seen"), "seen"),
    "every_ok": named("bool_and", agg.every("ok", lambda row: row["ok"]), "ok"),
    "any_ok": named("bool_or", agg.some("ok", lambda row: row["ok"]), "ok"),
    "entry": named("first", agg.first("url"), "url"),
    "exit": named("last", agg.last("url"), "url"),
    "first_url": named("first", agg.first_known("url"), "url", ignore_nulls=True),
    "last_url": named("last", agg.last_known("url"), "url", ignore_nulls=True),
    "first_seen": named("first", agg.first("seen"), "seen"),
    "paid": Call(
        "count(*) FILTER (WHERE n = 2)",
        agg.count().where("n = 2", lambda row: row["n"] == 2),
        "count",
        None,
        "n = 2",
    ),
    "share": Call(
        "sum(1 / n) FILTER (WHERE n = 2)",
        agg.total("n").where("n = 2", lambda row: row["n"] == 2),
        "sum",
        "n * n / n",
        "n <> 0 AND n = 2",
    ),
    "paid_at": Call(
        "last(url) FILTER (WHERE n = 2)",
        agg.last("url").where("n = 2", lambda row: row["n"] == 2),
        "last",
        "url",
        "n = 2",
    ),
}
del MERGING["share"]  # a sum of doubles: below, among those that are read again

READ_AGAIN = {
    "events": Call("count(*)", agg.count(), "count"),
    "entry": named("first", agg.first("url"), "url"),
    "xs": named("sum", agg.total("x"), "x"),
    "mean_x": named("avg", agg.mean("x"), "x"),
    "ns": Call("count(DISTINCT n)", agg.count_distinct("n"), "other", "n", distinct=True),
    "urls": Call("collect_list(url)", agg.listed("url"), "other", "url"),
    "half": Call("percentile(n, 0.5)", agg.percentile("n", 0.5), "other", "n"),
}


@pytest.fixture
def shop(spark: SparkSession) -> Callable[..., Shop]:
    """A shop with some aggregates and its first events already in sessions."""

    def open_(times: Sequence[int | Row], calls: Any = None, **options: Any) -> Shop:
        rows = [
            event if isinstance(event, dict) else {**events_of([event])[0], "event_id": f"s{i}"}
            for i, event in enumerate(times)
        ]
        return Shop(spark, calls or COUNT, **options).arrive(rows).run()

    return open_


def late(*times: str | int, user: str = "ann") -> list[Row]:
    """Events with ids of their own."""
    instants = [at(time) if isinstance(time, str) else time for time in times]
    return [{**row, "event_id": f"late{row['event_ts']}"} for row in events_of(instants, user)]


def picture(of: Shop) -> list[list[str]]:
    """The stored sessions as a drawn table."""
    return drawn(of.rows(), "events")


OCTOBER_23 = """
    | start | end   | events |
    |-------|-------|-------:|
    | 09:21 | 09:30 |     10 |
    | 10:05 | 10:23 |     15 |
    | 13:25 | 14:10 |     20 |
"""


class TestOneLateEvent:
    """A late event lands in the session it belongs to, whichever sessions that touches."""

    def test_case_1_merges_the_sessions_either_side(self, shop: Callable[..., Shop]) -> None:
        """An event less than 30 minutes from two sessions makes them one."""
        found = shop(history(OCTOBER_23)).arrive(late("09:45")).run()
        assert picture(found) == table("""
            | start | end   | events |
            |-------|-------|-------:|
            | 09:21 | 10:23 |     26 |
            | 13:25 | 14:10 |     20 |
        """)
        assert found.receipt.sessions_merged == 1
        assert found.receipt.read == 3  # the event and two sessions

    def test_case_2_falls_within_a_session(self, shop: Callable[..., Shop]) -> None:
        """An event inside a session only adds to it."""
        found = shop(history(OCTOBER_23)).arrive(late("09:23")).run()
        assert picture(found)[0] == ["09:21", "09:30", "11"]
        assert found.receipt.sessions_extended == 1
        assert (found.receipt.written, found.receipt.removed) == (1, 1)

    def test_case_3_is_a_session_of_its_own(self, shop: Callable[..., Shop]) -> None:
        """An event far from all sessions is a new one, and nothing is merged for it."""
        found = shop(history(OCTOBER_23)).arrive(late("11:15")).run()
        assert picture(found)[2] == ["11:15", "11:15", "1"]
        assert found.receipt.sessions_new == 1
        assert found.tables.commits == ["create", "append"]

    def test_case_4_belongs_to_the_session_of_the_day_before(
        self, shop: Callable[..., Shop]
    ) -> None:
        """An event just after midnight extends the session that ended just before it."""
        evening = spread("22 23:10", "22 23:59", 5)
        found = shop([*evening, *history(OCTOBER_23)]).arrive(late("00:01")).run()
        assert picture(found)[0] == ["22 23:10", "00:01", "6"]

    def test_case_5_drags_in_the_session_of_the_next_day(self, shop: Callable[..., Shop]) -> None:
        """An event just before midnight becomes the start of a session, which changes its cell."""
        night = spread("24 00:01", "24 00:20", 5)
        found = shop([*history(OCTOBER_23), *night]).arrive(late("23:59")).run()
        assert picture(found)[-1] == ["23:59", "24 00:20", "6"]
        assert [change.rows_after for change in found.changes] == [4, 0]


class TestEdges:
    """What nested, truncated and far-away sessions are made of."""

    def test_a_pause_of_exactly_the_gap_is_no_break(self, shop: Callable[..., Shop]) -> None:
        """Events 30 minutes apart are in one session, a microsecond more and they are not."""
        start = at("09:00")
        found = shop([start]).arrive(late(start + GAP, start - GAP - 1)).run()
        assert [row[2] for row in picture(found)] == ["1", "2"]

    def test_one_event_bridges_three_sessions(self, shop: Callable[..., Shop]) -> None:
        """Late events between three sessions make them one, whatever order they come in."""
        found = shop([at("09:00"), at("09:50"), at("10:40")])
        found.arrive(late("09:25", "10:15")).run()
        assert picture(found) == [["09:00", "10:40", "5"]]
        assert found.receipt.sessions_merged == 2

    def test_a_year_old_event(self, shop: Callable[..., Shop]) -> None:
        """An event of last year looks at last year's sessions only."""
        found = shop([*history(OCTOBER_23), at("2018-10-23T10:00:00")])
        found.arrive(late(at("2018-10-23T10:10:00"))).run()
        assert picture(found)[0][2] == "2"
        assert found.receipt.scanned == 1

    def test_nothing_is_nested_or_truncated(self, shop: Callable[..., Shop]) -> None:
        """Days that arrive one by one, split at midnight, leave no piece of a session behind."""
        found = shop([at("22 23:50")])
        found.arrive(late("00:10")).run().arrive(late("00:30", "22 23:30")).run()
        assert picture(found) == [["22 23:30", "00:30", "4"]]

    def test_a_long_session_is_found_from_its_end(self, shop: Callable[..., Shop]) -> None:
        """A session of three days that began long before the late event is extended by it."""
        times = [at("20 12:00") + i * 20 * MINUTE for i in range(3 * 72)]
        found = shop(times).arrive(late(times[-1] + GAP)).run()
        assert [row[2] for row in picture(found)] == [str(3 * 72 + 1)]

    def test_events_without_a_user_are_nobodys(self, shop: Callable[..., Shop]) -> None:
        """They are counted, and never mixed into one session."""
        nobody = [{**row, "user_id": None} for row in events_of([at("09:00"), at("09:01")])]
        found = shop([at("09:00")])
        found.arrive([{**row, "event_id": row["event_id"] + "x"} for row in nobody]).run()
        assert len(found.rows()) == 1
        assert found.receipt.set_aside_by == (("null user", 2),)

    def test_nothing_changes_without_a_commit(self, shop: Callable[..., Shop]) -> None:
        """Events that WHERE leaves out change no session, and nothing is committed."""
        found = shop([at("09:00")], where="url IS NULL", test=lambda row: row["url"] is None)
        found.arrive([{**late("09:01")[0], "url": "/"}]).run()
        assert found.tables.commits == ["create"]

    def test_a_session_that_stays_the_same_is_not_written(self, shop: Callable[..., Shop]) -> None:
        """An event that no aggregate notices leaves the stored row alone."""
        calls = {"most": named("max", agg.greatest("n"), "n")}
        rows = [{**row, "n": 5} for row in events_of([at("09:00"), at("09:10")])]
        found = shop(rows, calls).arrive([{**late("09:05")[0], "n": 3}]).run()
        assert found.tables.commits == ["create"]


@pytest.mark.parametrize("calls", [COUNT, READ_AGAIN | COUNT], ids=["merged", "read again"])
class TestRemovals:
    """An event that is gone takes its part of a session along."""

    def test_a_bridge_falls(self, shop: Callable[..., Shop], calls: Any) -> None:
        """Without the event in the middle there are two sessions."""
        found = shop([at("09:00"), at("09:50")], calls)
        bridge = late("09:25")
        found.arrive(bridge).run().arrive(gone=bridge).run()
        assert [row[2] for row in picture(found)] == ["1", "1"]
        assert found.receipt.sessions_split == 1

    def test_the_whole_session_goes(self, shop: Callable[..., Shop], calls: Any) -> None:
        """A session none of whose events is left is removed."""
        lonely = late("20 09:25", "20 09:26")
        found = shop([at("09:00"), *lonely], calls).arrive(gone=lonely).run()
        assert [row[2] for row in picture(found)] == ["1"]
        assert found.receipt.sessions_removed == 1

    def test_the_start_moves(self, shop: Callable[..., Shop], calls: Any) -> None:
        """Without its first event a session starts later, on another day, under another id."""
        first = late("22 23:59")
        found = shop([*first, at("00:05")], calls).arrive(gone=first).run()
        assert picture(found) == [["00:05", "00:05", "1"]]
        assert [change.rows_after for change in found.changes] == [0, 1]

    def test_a_corrected_event(self, shop: Callable[..., Shop], calls: Any) -> None:
        """The same event with other content replaces what it said before."""
        [old] = late("09:25")
        found = shop([at("09:00"), {**old, "n": 1, "url": "/a"}], calls)
        found.arrive([{**old, "n": 2, "url": "/b"}], gone=[old]).run()
        assert len(found.rows()) == 1


URLS = st.sampled_from([None, "/", "/a", "/pay", "é"])
AMOUNTS = st.one_of(st.none(), st.integers(-(10**6), 10**6).map(lambda cents: D(cents) / 100))
BIG = st.one_of(st.none(), st.sampled_from([2**59, -(2**59), 1, 7]))
DOUBLES = st.one_of(st.none(), st.sampled_from([0.1, 0.2, -0.3, 1e9, 5.0, 0.0]))
SMALL = st.one_of(st.none(), st.integers(-3, 3))
BASE = at("2019-10-22T22:00:00")


@st.composite
def event(draw: st.DrawFn) -> Row:
    """Content and time of one event, on a coarse grid so that ties and exact gaps are common."""
    return {
        "event_ts": BASE
        + draw(st.integers(0, 16)) * 15 * MINUTE
        + draw(st.sampled_from([0, 0, 1, -1])),
        "url": draw(URLS),
        "n": draw(SMALL),
        "big": draw(BIG),
        "amount": draw(AMOUNTS),
        "x": draw(DOUBLES),
        "ok": draw(st.sampled_from([None, True, False])),
        "seen": draw(st.one_of(st.none(), st.integers(0, 5).map(lambda s: BASE + s * SECOND))),
    }


PROGRAM = st.lists(
    st.lists(st.tuples(st.sampled_from("+++-~"), event(), st.integers(0, 50)), max_size=4),
    min_size=3,
    max_size=3,
)
"""What one user's events do in three runs: come (+), go (-), or change (~)."""

UNSHRUNK = (Phase.explicit, Phase.reuse, Phase.generate)
"""A failing example shows one user's difference already; making it smaller takes Spark too long."""

USERS = st.lists(PROGRAM, min_size=12, max_size=12)


def play(shop: Shop, users: list[Any]) -> None:
    """Run every user's program at once, comparing after each of the runs."""
    number = 0
    for run in range(3):
        here = {(row["event_id"], row["event_ts"]): row for row in shop.events}
        added: list[Row] = []
        gone: list[Row] = []
        for who, program in enumerate(users):
            user = f"u{who}"
            for what, content, pick in program[run]:
                own = [row for row in here.values() if row["user_id"] == user]
                if what == "+" or not own:
                    number += 1
                    # Ids in no order, so that ties are not broken by arrival.
                    name = f"e{number * 7919 % 1000:03}.{number}"
                    added.append({"event_id": name, "user_id": user, **content})
                    continue
                old = own[pick % len(own)]
                del here[old["event_id"], old["event_ts"]]
                gone.append(old)
                if what == "~":
                    added.append({**content, **{k: old[k] for k in ("event_id", "user_id")}})
        shop.arrive(added, gone).run()


@settings(max_examples=6, phases=UNSHRUNK)
@given(users=USERS)
def test_folds_that_merge_equal_the_reference(spark: SparkSession, users: list[Any]) -> None:
    """Every mergeable aggregate, over events that come, change and go, equals a rebuild."""
    play(Shop(spark, MERGING), users)


@settings(max_examples=4, phases=UNSHRUNK)
@given(users=USERS)
def test_folds_that_read_again_equal_the_reference(spark: SparkSession, users: list[Any]) -> None:
    """Aggregates without a state equal a rebuild, too."""
    play(Shop(spark, READ_AGAIN), users)


@settings(max_examples=3, phases=UNSHRUNK)
@given(users=USERS)
def test_where_and_outputs_of_several_aggregates(spark: SparkSession, users: list[Any]) -> None:
    """WHERE keeps events out of sessions, and what outputs do not show is in the state."""
    calls = {"events": MERGING["events"], "mean": MERGING["mean_n"], "entry": MERGING["entry"]}
    play(
        Shop(
            spark,
            calls,
            where="n <> 1 OR url = '/'",
            test=lambda row: row["url"] == "/" or (row["n"] is not None and row["n"] != 1),
        ),
        users,
    )
