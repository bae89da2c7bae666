"""Sessions on Spark: builds and folds equal the reference, on drawn tables and random events."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from random import Random
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st
from tests.reference import aggregates as agg
from tests.reference.compare import difference
from tests.reference.drawn import at, drawn, events_of, history, spread, table
from tests.reference.world import Row
from tests.spark.sessions.folding import GAP, Call, Shop

from infold.core.interval import DAY, MINUTE, SECOND
from infold.core.queries import SessionsQuery
from infold.spark.sessions.build import LARGE, build
from infold.spark.sessions.words import ColumnValues, no_column_values
from infold.spark.tables.port import Layout, Stamp

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


def named_events(prefix: str, user: str, times: Iterable[int]) -> list[Row]:
    """Events of one user with ids of their own."""
    return [
        {**row, "event_id": f"{user}.{prefix}{number}"}
        for number, row in enumerate(events_of(times, user))
    ]


@dataclass(frozen=True)
class Case:
    """Events of one user that are there, that come late and that go, and what is left of them."""

    claim: str
    given: Sequence[int]
    then: str
    late: Sequence[int] = ()
    gone: Sequence[int] = ()


OCTOBER_23 = history("""
    | start | end   | events |
    |-------|-------|-------:|
    | 09:21 | 09:30 |     10 |
    | 10:05 | 10:23 |     15 |
    | 13:25 | 14:10 |     20 |
""")

CASES = (
    Case(
        "1: an event less than 30 minutes from two sessions makes them one",
        given=OCTOBER_23,
        late=[at("09:45")],
        then="""
            | start | end   | events |
            |-------|-------|-------:|
            | 09:21 | 10:23 |     26 |
            | 13:25 | 14:10 |     20 |
        """,
    ),
    Case(
        "2: an event inside a session only adds to it",
        given=OCTOBER_23,
        late=[at("09:23")],
        then="""
            | start | end   | events |
            |-------|-------|-------:|
            | 09:21 | 09:30 |     11 |
            | 10:05 | 10:23 |     15 |
            | 13:25 | 14:10 |     20 |
        """,
    ),
    Case(
        "3: an event far from all sessions is a new one",
        given=OCTOBER_23,
        late=[at("11:15")],
        then="""
            | start | end   | events |
            |-------|-------|-------:|
            | 09:21 | 09:30 |     10 |
            | 10:05 | 10:23 |     15 |
            | 11:15 | 11:15 |      1 |
            | 13:25 | 14:10 |     20 |
        """,
    ),
    Case(
        "4: an event just after midnight extends the session that ended just before it",
        given=[*spread("22 23:10", "22 23:59", 5), *OCTOBER_23[:10]],
        late=[at("00:01")],
        then="""
            | start    | end   | events |
            |----------|-------|-------:|
            | 22 23:10 | 00:01 |      6 |
            | 09:21    | 09:30 |     10 |
        """,
    ),
    Case(
        "5: an event just before midnight becomes the start of the next day's session",
        given=spread("24 00:01", "24 00:20", 5),
        late=[at("23:59")],
        then="""
            | start | end      | events |
            |-------|----------|-------:|
            | 23:59 | 24 00:20 |      6 |
        """,
    ),
    Case(
        "a pause of exactly the gap is no break, a microsecond more is one",
        given=[at("09:00")],
        late=[at("09:00") + GAP, at("09:00") - GAP - 1],
        then="""
            | start | end   | events |
            |-------|-------|-------:|
            | 08:29 | 08:29 |      1 |
            | 09:00 | 09:30 |      2 |
        """,
    ),
    Case(
        "two late events bridge three sessions",
        given=[at("09:00"), at("09:50"), at("10:40")],
        late=[at("10:15"), at("09:25")],
        then="""
            | start | end   | events |
            |-------|-------|-------:|
            | 09:00 | 10:40 |      5 |
        """,
    ),
    Case(
        "late events just before and just after a session bind it to its neighbours",
        given=[at("09:00"), at("09:31"), at("10:01") + 30 * SECOND],
        late=[at("09:30"), at("09:32")],
        then="""
            | start | end   | events |
            |-------|-------|-------:|
            | 09:00 | 10:01 |      5 |
        """,
    ),
    Case(
        "a burst of equal times is one session",
        given=[at("09:00")] * 3,
        late=[at("09:00")] * 2,
        then="""
            | start | end   | events |
            |-------|-------|-------:|
            | 09:00 | 09:00 |      5 |
        """,
    ),
    Case(
        "a session of three days is extended at its end",
        given=[at("20 12:00") + i * 20 * MINUTE for i in range(216)],
        late=[at("20 12:00") + 215 * 20 * MINUTE + GAP],
        then="""
            | start    | end   | events |
            |----------|-------|-------:|
            | 20 12:00 | 12:10 |    217 |
        """,
    ),
    Case(
        "without the event in the middle there are two sessions",
        given=[at("09:00"), at("09:25"), at("09:50")],
        gone=[at("09:25")],
        then="""
            | start | end   | events |
            |-------|-------|-------:|
            | 09:00 | 09:00 |      1 |
            | 09:50 | 09:50 |      1 |
        """,
    ),
    Case(
        "a session none of whose events is left is removed",
        given=[at("09:00"), at("12:00"), at("12:01")],
        gone=[at("12:00"), at("12:01")],
        then="""
            | start | end   | events |
            |-------|-------|-------:|
            | 09:00 | 09:00 |      1 |
        """,
    ),
    Case(
        "without its first event a session starts later, on another day",
        given=[at("22 23:59"), at("00:05")],
        gone=[at("22 23:59")],
        then="""
            | start | end   | events |
            |-------|-------|-------:|
            | 00:05 | 00:05 |      1 |
        """,
    ),
    Case(
        "an event that goes while another comes moves the session",
        given=[at("09:00"), at("09:20")],
        gone=[at("09:00")],
        late=[at("09:40")],
        then="""
            | start | end   | events |
            |-------|-------|-------:|
            | 09:20 | 09:40 |      2 |
        """,
    ),
    Case(
        "whoever has no news keeps the sessions there are",
        given=[at("09:00"), at("12:00")],
        then="""
            | start | end   | events |
            |-------|-------|-------:|
            | 09:00 | 09:00 |      1 |
            | 12:00 | 12:00 |      1 |
        """,
    ),
)


def played(spark: SparkSession, calls: Mapping[str, Call]) -> Shop:
    """All cases at once, each by a user of its own: a build, then one fold."""
    given: list[Row] = []
    late: list[Row] = []
    gone: list[Row] = []
    for number, case in enumerate(CASES):
        own = named_events("s", f"u{number}", case.given)
        given += own
        late += named_events("late", f"u{number}", case.late)
        gone += [row for row in own if row["event_ts"] in case.gone]
    return Shop(spark, calls).arrive(given).run().arrive(late, gone).run()


@pytest.fixture(scope="module", params=["merged", "read again"])
def cases(request: pytest.FixtureRequest, spark: SparkSession) -> Shop:
    """The cases, with aggregates that merge and with some that have to be read again."""
    return played(spark, COUNT if request.param == "merged" else READ_AGAIN)


class TestCases:
    """A late or removed event changes the sessions it belongs to."""

    @pytest.mark.parametrize("number", range(len(CASES)), ids=lambda at: CASES[at].claim)
    def test_case(self, cases: Shop, number: int) -> None:
        """The stored sessions of the case's user are those drawn in the table."""
        own = [row for row in cases.rows() if row["user_id"] == f"u{number}"]
        assert drawn(own, "events") == table(CASES[number].then)

    def test_the_receipt_counts_session_changes(self, cases: Shop) -> None:
        """The receipt counts new, extended, merged, split and removed sessions."""
        receipt = cases.receipt
        assert (receipt.sessions_new, receipt.sessions_merged) == (2, 5)
        assert (receipt.sessions_split, receipt.sessions_removed) == (1, 1)
        assert cases.tables.commits == ["create", "merge"]


class TestSmallFolds:
    """Folds that read little or write nothing."""

    def test_an_event_that_comes_back_among_many_changes(self, spark: SparkSession) -> None:
        """An event that returns is found among more changed days than a predicate has literals."""
        days = [named_events("s", f"u{n}", [at("10:00") + 2 * n * DAY]) for n in range(220)]
        [back] = named_events("back", "ann", [at("10:00") + 401 * DAY])
        made = Shop(spark, COUNT).arrive([*(row for [row] in days), back]).run()
        made.arrive(gone=[back])
        made.arrive(
            [
                back,
                *(
                    {**row, "event_id": f"late{n}", "event_ts": row["event_ts"] + MINUTE}
                    for n, [row] in enumerate(days)
                ),
            ]
        )
        made.run()
        assert made.receipt.sessions_extended == 220

    def test_times_in_lists_count_to_the_microsecond(self, spark: SparkSession) -> None:
        """Sessions that differ only by a microsecond in a list of times are different."""
        calls = {"times": Call("collect_list(seen)", agg.listed("seen"), "other", "seen")}
        [row] = named_events("s", "ann", [at("09:00")])
        made = Shop(spark, calls).arrive([{**row, "seen": at("09:00")}]).run()
        made.arrive([{**row, "seen": at("09:00") + 1}], gone=[{**row}]).run()
        assert made.receipt.written == 1

    def test_first_of_values_that_cannot_be_compared(self, spark: SparkSession) -> None:
        """A first value that cannot be compared, such as a map, makes its session read again."""
        first = Call("first(map('k', n))", agg.first("n"), "first", "map('k', n)")
        made = Shop(spark, {**COUNT, "n": first})
        events, n = made.query.outputs
        made.query = replace(made.query, outputs=(events, replace(n, sql=f"({n.sql})['k']")))
        made.arrive([{**row, "n": 1} for row in named_events("s", "ann", [at("09:10")])]).run()
        made.arrive([{**row, "n": 2} for row in named_events("t", "ann", [at("09:05")])]).run()
        assert [row["n"] for row in made.rows()] == [2]

    def test_only_sessions_in_reach_are_read(self, spark: SparkSession) -> None:
        """A year-old event reads that year's sessions only, and an event far from all is an
        append.
        """
        year_old = at("2018-10-23T10:00:00")
        shop = Shop(spark, COUNT).arrive(named_events("s", "ann", [*OCTOBER_23, year_old])).run()

        shop.arrive(named_events("a", "ann", [year_old + MINUTE])).run()
        # Looked through: the two events of that day, and its session.
        assert (shop.receipt.scanned, shop.receipt.read, shop.receipt.written) == (3, 2, 1)

        shop.arrive(named_events("b", "ann", [year_old + 3 * GAP])).run()
        assert (shop.receipt.read, shop.receipt.removed) == (1, 0)
        assert shop.tables.commits == ["create", "merge", "append"]

    def test_a_sum_that_fits_though_a_part_overflows(self, spark: SparkSession) -> None:
        """A sum that fits BIGINT is computed though a part of it overflows, in any order of
        events.
        """
        values = [2**62, 2**62, 2**62, -(2**62), -(2**62)]
        rows = named_events("s", "ann", [at("09:00") + n * MINUTE for n in range(5)])
        given = [{**row, "big": value} for row, value in zip(rows, values, strict=True)]
        shop = Shop(spark, {"total": named("sum", agg.total("big"), "big")})
        shop.arrive([given[0], *given[3:]]).run()
        shop.arrive(given[1:3]).run()
        assert [row["total"] for row in shop.rows()] == [2**62]

    def test_events_in_no_session_commit_nothing(self, spark: SparkSession) -> None:
        """Events that WHERE removes, or without a user,
        commit nothing; any other event changes its session.
        """
        calls = {"most": named("max", agg.greatest("n"), "n")}
        rows = [{**row, "n": 5} for row in named_events("s", "ann", [at("09:00"), at("09:10")])]
        shop = Shop(spark, calls, where="url IS NULL", test=lambda row: row["url"] is None)
        shop.arrive(rows).run()
        [left_out] = named_events("x", "ann", [at("10:00")])
        [within] = named_events("w", "ann", [at("09:05")])
        nobodys = [
            {**row, "user_id": None} for row in named_events("n", "bob", [at("09:00"), at("09:01")])
        ]

        shop.arrive([{**left_out, "url": "/"}, *nobodys]).run()
        assert shop.tables.commits == ["create"]
        assert shop.receipt.set_aside_by == (("null user", 2),)
        shop.arrive([{**within, "n": 3}]).run()
        assert shop.tables.commits == ["create", "merge"]


BASE = at("2019-10-22T22:00:00")

SEEDS = st.integers(0, 2**32 - 1).filter(bool)
"""
What a test's random cases follow from: Hypothesis draws few large values, and the least first.
"""


def event(random: Random) -> Row:
    """Content and time of one event, on a coarse grid so that ties and exact gaps are common."""
    pick = random.choice
    return {
        "event_ts": BASE + random.randint(0, 16) * 15 * MINUTE + pick([0, 0, 1, -1]),
        "url": pick([None, "/", "/a", "/pay", "é"]),
        "n": pick([None, *range(-3, 4)]),
        "big": pick([None, 2**55, -(2**55), 1, 7]),  # a hundred of them fit
        "amount": pick([None, D(random.randint(-(10**6), 10**6)) / 100]),
        "x": pick([None, 0.1, 0.2, -0.3, 1e9, 5.0, 0.0]),
        "ok": pick([None, True, False]),
        "seen": pick([None, BASE + random.randint(0, 5) * SECOND]),
    }


Program = list[list[tuple[str, Row, int]]]
"""What one user's events do in each of some runs: come (+), go (-), or change (~)."""


def programs(seed: int, *, users: int = 60, runs: int = 3) -> list[Program]:
    """Programs of many users: their number costs next to nothing, a run of Spark's does."""
    random = Random(seed)

    def step() -> tuple[str, Row, int]:
        return random.choice("+++-~"), event(random), random.randint(0, 50)

    return [
        [[step() for _ in range(random.randint(0, 4))] for _ in range(runs)] for _ in range(users)
    ]


UNSHRUNK = (Phase.explicit, Phase.reuse, Phase.generate)
"""A failing example shows one user's difference already; making it smaller takes Spark too long."""


def play(
    shop: Shop,
    users: list[Program],
    speak: Mapping[int, Callable[[Shop], None]] = MappingProxyType({}),
) -> None:
    """Run every user's program at once, comparing after each of the runs."""
    number = 0
    whose = [None if who % 20 == 7 else f"u{who}" for who in range(len(users))]
    for run in range(len(users[0])):
        here = {(row["event_id"], row["event_ts"]): row for row in shop.events}
        added: list[Row] = []
        gone: list[Row] = []
        for who, program in enumerate(users):
            user = whose[who]
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
        if run in speak:
            speak[run](shop)
        shop.arrive(added, gone).run()


def rows_of(users: list[Program]) -> list[Row]:
    """All events that come, whatever becomes of them."""
    found: list[Row] = []
    for who, program in enumerate(users):
        for _, content, _ in (step for run in program for step in run):
            name = f"e{len(found) * 7919 % 1000:03}.{len(found)}"
            found.append({"event_id": name, "user_id": f"u{who}", **content})
    return found


QUICK = {name: call for name, call in MERGING.items() if name != "least_url"}
"""Those for which a large build knows words: their buffers have a fixed width, but for picks."""


@settings(max_examples=1, phases=UNSHRUNK)
@given(seed=SEEDS)
@pytest.mark.parametrize("calls", [QUICK, MERGING], ids=["words", "no words"])
@pytest.mark.parametrize("gap", [GAP, 15 * MINUTE, 0, 3 * 60 * MINUTE])
def test_a_large_build_equals_the_reference(
    spark: SparkSession, seed: int, calls: Any, gap: int
) -> None:
    """A large build, whatever its optimisations and gap, equals the reference."""
    shop = Shop(spark, calls, gap=gap).arrive(rows_of(programs(seed, users=200)))

    def values(sql: str) -> pa.Array | None:
        urls = ["/", "/a", "/pay", "/gone", "é"]
        return pa.array(urls) if sql == "(url)" and seed % 2 else None

    large_builds_equal_the_reference(shop, shop.query, seed, values)


def large_builds_equal_the_reference(
    shop: Shop, query: SessionsQuery, seed: int, values: ColumnValues = no_column_values
) -> None:
    """In one piece, and in slices of time with sessions across their borders."""
    times = sorted({row["event_ts"] for row in shop.events})
    for borders in ((), sorted(Random(seed).sample(times, 3))):
        table = build(shop.frame(1), query, size=LARGE, values=values, borders=borders)
        shop.tables.create("sessions", table, Layout(), Stamp("r", "s", 1))
        found = shop.rows()
        for row in found:
            row.pop("session_id")
        assert difference(shop.expected(), found) == "", borders


@settings(max_examples=1, phases=UNSHRUNK)
@given(seed=SEEDS)
def test_folds_that_merge_equal_the_reference(spark: SparkSession, seed: int) -> None:
    """Folds with every mergeable aggregate equal a rebuild,
    for events that arrive, change and leave.
    """
    play(Shop(spark, MERGING), programs(seed))


@settings(max_examples=1, phases=UNSHRUNK)
@given(seed=SEEDS)
def test_folds_that_read_again_equal_the_reference(spark: SparkSession, seed: int) -> None:
    """Folds with aggregates that need all events equal a rebuild, too."""
    play(Shop(spark, READ_AGAIN), programs(seed))


@settings(max_examples=1, phases=UNSHRUNK)
@given(seed=SEEDS)
def test_where_and_outputs_of_several_aggregates(spark: SparkSession, seed: int) -> None:
    """WHERE keeps events out of sessions, and outputs of
    several aggregates keep what they need in the state.
    """
    calls = {"events": MERGING["events"], "mean": MERGING["mean_n"], "entry": MERGING["entry"]}
    play(
        Shop(
            spark,
            calls,
            where="n <> 1 OR url = '/'",
            test=lambda row: row["url"] == "/" or (row["n"] is not None and row["n"] != 1),
        ),
        programs(seed),
    )
