"""Sessions on Spark: builds and folds equal the reference, on drawn tables and random events."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest
from hypothesis import given, settings
from tests.reference import aggregates as agg
from tests.reference.drawn import at, drawn, spread
from tests.reference.world import Row
from tests.spark.sessions.folding import GAP, Call, FoldedSessions
from tests.spark.sessions.random_folds import (
    COUNT,
    MERGING,
    READ_AGAIN,
    SEEDS,
    UNSHRUNK,
    large_builds_equal_the_reference,
    named,
    named_events,
    play,
    programs,
    rows_of,
)

from infold.core.interval import DAY, HOUR, MINUTE, SECOND

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark


@dataclass(frozen=True)
class Case:
    """Events of one user that are there, that come late and that go, and what is left of them."""

    claim: str
    given: Sequence[int]
    then: str
    """The sessions, each ``start - end (events)``."""
    late: Sequence[int] = ()
    gone: Sequence[int] = ()


OCTOBER_23 = [
    *spread("09:21", "09:30", 10),
    *spread("10:05", "10:23", 15),
    *spread("13:25", "14:10", 20),
]

CASES = (
    Case(
        "1: an event less than 30 minutes from two sessions makes them one",
        given=OCTOBER_23,
        late=[at("09:45")],
        then="09:21 - 10:23 (26), 13:25 - 14:10 (20)",
    ),
    Case(
        "2: an event inside a session only adds to it",
        given=OCTOBER_23,
        late=[at("09:23")],
        then="09:21 - 09:30 (11), 10:05 - 10:23 (15), 13:25 - 14:10 (20)",
    ),
    Case(
        "3: an event far from all sessions is a new one",
        given=OCTOBER_23,
        late=[at("11:15")],
        then="09:21 - 09:30 (10), 10:05 - 10:23 (15), 11:15 - 11:15 (1), 13:25 - 14:10 (20)",
    ),
    Case(
        "4: an event just after midnight extends the session that ended just before it",
        given=[*spread("22 23:10", "22 23:59", 5), *OCTOBER_23[:10]],
        late=[at("00:01")],
        then="22 23:10 - 00:01 (6), 09:21 - 09:30 (10)",
    ),
    Case(
        "5: an event just before midnight becomes the start of the next day's session",
        given=spread("24 00:01", "24 00:20", 5),
        late=[at("23:59")],
        then="23:59 - 24 00:20 (6)",
    ),
    Case(
        "a pause of exactly the gap is no break, a microsecond more is one",
        given=[at("09:00")],
        late=[at("09:00") + GAP, at("09:00") - GAP - 1],
        then="08:29 - 08:29 (1), 09:00 - 09:30 (2)",
    ),
    Case(
        "two late events bridge three sessions",
        given=[at("09:00"), at("09:50"), at("10:40")],
        late=[at("10:15"), at("09:25")],
        then="09:00 - 10:40 (5)",
    ),
    Case(
        "late events just before and just after a session bind it to its neighbours",
        given=[at("09:00"), at("09:31"), at("10:01") + 30 * SECOND],
        late=[at("09:30"), at("09:32")],
        then="09:00 - 10:01 (5)",
    ),
    Case(
        "a burst of equal times is one session",
        given=[at("09:00")] * 3,
        late=[at("09:00")] * 2,
        then="09:00 - 09:00 (5)",
    ),
    Case(
        "a session of three days is extended at its end",
        given=[at("20 12:00") + i * 20 * MINUTE for i in range(216)],
        late=[at("20 12:00") + 215 * 20 * MINUTE + GAP],
        then="20 12:00 - 12:10 (217)",
    ),
    Case(
        "without the event in the middle there are two sessions",
        given=[at("09:00"), at("09:25"), at("09:50")],
        gone=[at("09:25")],
        then="09:00 - 09:00 (1), 09:50 - 09:50 (1)",
    ),
    Case(
        "a session none of whose events is left is removed",
        given=[at("09:00"), at("12:00"), at("12:01")],
        gone=[at("12:00"), at("12:01")],
        then="09:00 - 09:00 (1)",
    ),
    Case(
        "without its first event a session starts later, on another day",
        given=[at("22 23:59"), at("00:05")],
        gone=[at("22 23:59")],
        then="00:05 - 00:05 (1)",
    ),
    Case(
        "an event that goes while another comes moves the session",
        given=[at("09:00"), at("09:20")],
        gone=[at("09:00")],
        late=[at("09:40")],
        then="09:20 - 09:40 (2)",
    ),
    Case(
        "a user without new events keeps the sessions",
        given=[at("09:00"), at("12:00")],
        then="09:00 - 09:00 (1), 12:00 - 12:00 (1)",
    ),
)


@pytest.mark.parametrize("calls", [COUNT, READ_AGAIN], ids=["merged", "read again"])
def test_late_and_removed_events_change_the_sessions_that_they_belong_to(
    spark: SparkSession, calls: Mapping[str, Call]
) -> None:
    """The stored sessions of each case are those drawn in its table, and the receipt counts them.

    All cases are folded at once, each by a user of its own: with aggregates that merge, and with
    some that have to be read again.
    """
    given: list[Row] = []
    late: list[Row] = []
    gone: list[Row] = []
    for number, case in enumerate(CASES):
        own = named_events("s", f"u{number}", case.given)
        given += own
        late += named_events("late", f"u{number}", case.late)
        gone += [row for row in own if row["event_ts"] in case.gone]
    made = FoldedSessions(spark, calls).arrive(given).run().arrive(late, gone).run()

    rows = made.rows()
    for number, case in enumerate(CASES):
        own = [row for row in rows if row["user_id"] == f"u{number}"]
        found = [f"{start} - {end} ({events})" for start, end, events in drawn(own, "events")]
        assert ", ".join(found) == case.then, case.claim
    receipt = made.receipt
    assert (receipt.sessions_new, receipt.sessions_merged) == (2, 5)
    assert (receipt.sessions_split, receipt.sessions_removed) == (1, 1)
    assert made.tables.commits == ["create", "merge"]


class TestSmallFolds:
    """Folds that read little or write nothing."""

    def test_an_event_that_returns_among_many_changes(self, spark: SparkSession) -> None:
        """An event that returns is found among more changed days than a predicate has literals."""
        days = [named_events("s", f"u{n}", [at("10:00") + 2 * n * DAY]) for n in range(220)]
        [back] = named_events("back", "ann", [at("10:00") + 401 * DAY])
        made = FoldedSessions(spark, COUNT).arrive([*(row for [row] in days), back]).run()
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

    def test_values_that_are_compared_or_cannot_be(self, spark: SparkSession) -> None:
        """Sessions that differ only by a microsecond in a list of times are different.

        A first value that cannot be compared, such as a map, makes its session read again.
        """
        calls = {
            "n": Call("first(map('k', n))", agg.first("n"), "first", "map('k', n)"),
            "times": Call("collect_list(seen)", agg.listed("seen"), "other", "seen"),
        }
        made = FoldedSessions(spark, calls)
        n, times = made.query.outputs
        made.query = replace(made.query, outputs=(replace(n, sql=f"({n.sql})['k']"), times))
        [ann] = named_events("s", "ann", [at("09:00")])
        [bob] = named_events("s", "bob", [at("09:10")])
        made.arrive([{**ann, "seen": at("09:00")}, {**bob, "n": 1}]).run()
        [before] = named_events("t", "bob", [at("09:05")])
        made.arrive([{**ann, "seen": at("09:00") + 1}, {**before, "n": 2}], gone=[ann]).run()
        assert made.receipt.written == 2
        assert [row["n"] for row in made.rows() if row["user_id"] == "bob"] == [2]

    def test_only_sessions_in_reach_are_read(self, spark: SparkSession) -> None:
        """A year-old event reads that year's sessions only; one far from all is appended.

        Events that WHERE removes, or without a user, commit nothing, and any other event changes
        its session. A sum that fits BIGINT is computed though a part of it overflows.
        """
        year_old = at("2018-10-23T10:00:00")
        values = [2**62, 2**62, 2**62, -(2**62), -(2**62)]
        rows = [
            {**row, "big": value}
            for row, value in zip(
                named_events("s", "bob", spread("09:00", "09:04", 5)), values, strict=True
            )
        ]
        made = FoldedSessions(
            spark,
            {
                "most": named("max", agg.greatest("n"), "n"),
                "total": named("sum", agg.total("big"), "big"),
            },
            where="url IS NULL",
            test=lambda row: row["url"] is None,
        )
        made.arrive([*named_events("s", "ann", [*OCTOBER_23, year_old]), rows[0], *rows[3:]]).run()

        made.arrive(named_events("a", "ann", [year_old + MINUTE])).run()
        # Looked through: the two events of that day, and its session.
        assert (made.receipt.scanned, made.receipt.read, made.receipt.written) == (3, 2, 1)

        [left_out] = named_events("x", "ann", [at("10:00")])
        nobodys = [
            {**row, "user_id": None} for row in named_events("n", "", spread("09:00", "09:01", 2))
        ]
        made.arrive([{**left_out, "url": "/"}, *nobodys]).run()
        assert made.tables.commits == ["create", "merge"]
        assert made.receipt.set_aside_by == (("null user", 2),)

        made.arrive(named_events("b", "ann", [year_old + 3 * GAP])).run()
        assert (made.receipt.read, made.receipt.removed) == (1, 0)
        assert made.tables.commits == ["create", "merge", "append"]

        made.arrive([*rows[1:3], *named_events("w", "ann", [at("09:25")])]).run()
        assert made.receipt.written == 2
        assert [row["total"] for row in made.rows() if row["user_id"] == "bob"] == [2**62]


QUICK = {name: call for name, call in MERGING.items() if name != "least_url"}
"""Those for which a large build knows words: their buffers have a fixed width, but for picks."""


@settings(max_examples=1, phases=UNSHRUNK)
@given(seed=SEEDS)
@pytest.mark.parametrize(
    ("calls", "gap", "known"),
    [
        (QUICK, GAP, True),
        (QUICK, 0, False),
        (MERGING, 15 * MINUTE, True),
        (MERGING, 3 * HOUR, False),
    ],
    ids=["strings as numbers", "no gap", "no words", "long gap"],
)
def test_a_large_build_equals_the_reference(
    spark: SparkSession, seed: int, calls: Mapping[str, Call], gap: int, known: bool
) -> None:
    """A large build, whatever its optimisations and gap, equals the reference."""
    shop = FoldedSessions(spark, calls, gap=gap).arrive(rows_of(programs(seed, users=200)))

    def values(sql: str) -> pa.Array | None:
        urls = ["/", "/a", "/pay", "/gone", "é"]
        return pa.array(urls) if sql == "(url)" and known else None

    large_builds_equal_the_reference(shop, shop.query, seed, values)


@settings(max_examples=1, phases=UNSHRUNK)
@given(seed=SEEDS)
@pytest.mark.parametrize("calls", [MERGING, READ_AGAIN], ids=["merged", "read again"])
def test_folds_equal_the_reference(
    spark: SparkSession, calls: Mapping[str, Call], seed: int
) -> None:
    """Folds equal a rebuild, for events that arrive, change and leave, and that WHERE leaves out.

    So they do with every aggregate that can be merged, and with those that need all events.
    """
    made = FoldedSessions(
        spark,
        calls,
        where="n <> 1 OR url = '/'",
        test=lambda row: row["url"] == "/" or (row["n"] is not None and row["n"] != 1),
    )
    play(made, programs(seed))
