"""Sessions on Spark: builds and folds equal the reference, on drawn tables and random events."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from pyspark.sql import types as T
from tests.reference import aggregates as agg
from tests.reference.drawn import at, drawn, spread
from tests.reference.tables import Ends
from tests.reference.world import Row
from tests.spark.cumulative.clicks_by_user import CLICKS, SOURCE, put
from tests.spark.events.clicks_project import NewShop
from tests.spark.sessions.folding import GAP, USER, Call, FoldedSessions
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

from infold.core.interval import (
    DAY,
    HOUR,
    MINUTE,
    SECOND,
    Granularity,
    Interval,
    datetime_of,
    parse_instant_text,
)
from infold.core.sessions import Keep
from infold.core.trace import CellState
from infold.spark import frame_schema
from infold.spark.frame_schema import ANY, FrameColumn, FrameSchema, returns
from infold.spark.sessions import build
from infold.spark.sessions.aggregates import decimal_average
from infold.spark.sessions.micro_islands import (
    MOST_SLICES,
    SLICE_ROWS,
    slice_borders,
    sliced_events,
)
from infold.spark.tables.iceberg.tables import IcebergTables

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

pytestmark = pytest.mark.spark


@dataclass(frozen=True)
class Case:
    """Events of one user that are there, that come late and that go, and what is left of them."""

    claim: str
    then: str
    """The sessions, each ``start - end (events)``."""
    given: Sequence[int]
    late: Sequence[int] = ()
    gone: Sequence[int] = ()


OCTOBER_23 = [
    *spread("09:21", "09:30", 10),
    *spread("10:05", "10:23", 15),
    *spread("13:25", "14:10", 20),
]

CASES = (
    Case("1: an event less than 30 minutes from two sessions makes them one",
         "09:21 - 10:23 (26), 13:25 - 14:10 (20)", given=OCTOBER_23, late=[at("09:45")]),
    Case("2: an event inside a session only adds to it",
         "09:21 - 09:30 (11), 10:05 - 10:23 (15), 13:25 - 14:10 (20)",
         given=OCTOBER_23, late=[at("09:23")]),
    Case("3: an event far from all sessions is a new one",
         "09:21 - 09:30 (10), 10:05 - 10:23 (15), 11:15 - 11:15 (1), 13:25 - 14:10 (20)",
         given=OCTOBER_23, late=[at("11:15")]),
    Case("4: an event just after midnight extends the session that ended just before it",
         "22 23:10 - 00:01 (6), 09:21 - 09:30 (10)",
         given=[*spread("22 23:10", "22 23:59", 5), *OCTOBER_23[:10]], late=[at("00:01")]),
    Case("5: an event just before midnight becomes the start of the next day's session",
         "23:59 - 24 00:20 (6)", given=spread("24 00:01", "24 00:20", 5), late=[at("23:59")]),
    Case("a pause of exactly the gap is no break, a microsecond more is one",
         "08:29 - 08:29 (1), 09:00 - 09:30 (2)",
         given=[at("09:00")], late=[at("09:00") + GAP, at("09:00") - GAP - 1]),
    Case("two late events bridge three sessions",
         "09:00 - 10:40 (5)",
         given=[at("09:00"), at("09:50"), at("10:40")], late=[at("10:15"), at("09:25")]),
    Case("late events just before and just after a session bind it to its neighbours",
         "09:00 - 10:01 (5)",
         given=[at("09:00"), at("09:31"), at("10:01") + 30 * SECOND],
         late=[at("09:30"), at("09:32")]),
    Case("a burst of equal times is one session",
         "09:00 - 09:00 (5)", given=[at("09:00")] * 3, late=[at("09:00")] * 2),
    Case("a session of three days is extended at its end",
         "20 12:00 - 12:10 (217)",
         given=[at("20 12:00") + i * 20 * MINUTE for i in range(216)],
         late=[at("20 12:00") + 215 * 20 * MINUTE + GAP]),
    Case("without the event in the middle there are two sessions",
         "09:00 - 09:00 (1), 09:50 - 09:50 (1)",
         given=[at("09:00"), at("09:25"), at("09:50")], gone=[at("09:25")]),
    Case("a session none of whose events is left is removed",
         "09:00 - 09:00 (1)",
         given=[at("09:00"), at("12:00"), at("12:01")], gone=[at("12:00"), at("12:01")]),
    Case("without its first event a session starts later, on another day",
         "00:05 - 00:05 (1)", given=[at("22 23:59"), at("00:05")], gone=[at("22 23:59")]),
    Case("an event that goes while another comes moves the session",
         "09:20 - 09:40 (2)",
         given=[at("09:00"), at("09:20")], gone=[at("09:00")], late=[at("09:40")]),
    Case("a user without new events keeps the sessions",
         "09:00 - 09:00 (1), 12:00 - 12:00 (1)", given=[at("09:00"), at("12:00")]),
)  # fmt: skip


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
        (MERGING, 0, True),
        (MERGING, 3 * HOUR, False),
    ],
    ids=["strings as numbers", "no gap, some strings", "long gap, no words"],
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


LATE_CASES: Sequence[tuple[str, str, str, tuple[str, str, int] | None]] = (
    ("a session loaded days after everything newer is there",
     " |  | 02 10:00, 02 10:20", "02 10:00 - 02 10:20 None (2)", None),
    ("a late event of a session that gets nothing new is not lost",
     "05 10:00, 05 10:20 |  | 05 10:10", "05 10:00 - 05 10:20 None (3)", None),
    ("an earlier first event moves the start back, in the run in which it comes",
     "05 10:00 | 05 09:00 bob | 05 08:00", "05 08:00 - 05 10:00 bob (3)", None),
    ("the user is the first that events name, whichever run brought them",
     "05 10:00 zoe | 05 09:00 ann | 05 11:00 zzz", "05 09:00 - 05 11:00 ann (3)", None),
    ("an identifier that returns after months is one session, held as soon as it returns",
     "2019-07-01T10:00 |  | 05 10:00", "2019-07-01 10:00 - 2019-07-01 10:00 None (1)",
     ("2019-07-01T10:00", "05 10:00", 2)),
    ("an event exactly at the limit is kept, and holds nothing",
     "05 10:00 | 08 10:00 | ", "05 10:00 - 08 10:00 None (2)", None),
    ("what lies past the limit is counted though it is not kept",
     "05 10:00 | 08 10:00 | 08 11:00, 20 11:00", "05 10:00 - 08 10:00 None (2)",
     ("05 10:00", "20 11:00", 4)),
    ("an earlier start moves the limit: what it cuts off leaves, and is counted still",
     "05 10:00, 08 09:00 | 04 10:00 | ", "04 10:00 - 05 10:00 None (2)",
     ("04 10:00", "08 09:00", 3)),
    ("a start that moves back by months leaves no second row behind",
     "20 10:00 | 2019-09-30T10:00 | ", "2019-09-30 10:00 - 2019-09-30 10:00 None (1)",
     ("2019-09-30T10:00", "20 10:00", 2)),
    ("a run without anything new leaves everything as it is",
     "05 10:00 |  | ", "05 10:00 - 05 10:00 None (1)", None),
)  # fmt: skip
"""
Cases in which sessions of Snowplow's packages lose or repeat data: the events of one identifier in
three runs, each an instant and perhaps the user that it names; its session, as ``start - end user
(events)``; and first and last instant and number of events of what is in quarantine.
"""


@pytest.mark.parametrize(("digits", "scale"), [(5, 2), (14, 14), (18, 0), (18, 2)])
def test_averages_of_decimals_are_those_of_spark(
    spark: SparkSession, digits: int, scale: int
) -> None:
    """The quotient of a state's sum and count, with the greatest and the least values too."""
    most = 10**digits - 1
    values = [most, -most, 1, -1, 0, most // 3, 2]
    texts = [
        f"({at}, cast('{values[number % 7]}E-{scale}' AS decimal({digits},{scale})))"
        for at in range(40)
        for number in range(at, at + 1 + at % 6)
    ]
    average = decimal_average("sum(x)", "count(x)", T.DecimalType(digits, scale))
    rows = f"VALUES {', '.join(texts)} AS t(g, x)"

    found = spark.sql(f"SELECT avg(x), {average} FROM {rows} GROUP BY g").collect()

    assert [row for row in found if row[0] != row[1]] == []


def test_late_events_of_identifiers(spark: SparkSession) -> None:
    """After three runs table and quarantine have the sessions that each case draws."""
    shop = FoldedSessions(
        spark,
        COUNT,
        user="session_identifier",
        owner_sql="url",
        gap=None,
        quarantine_after=3 * DAY,
        keep=Keep.HEAD,
        chosen_user=USER,
        ends=Ends(whose=lambda row: row["url"], limit=3 * DAY, head=True),
    )
    for run in range(3):
        shop.arrive(
            {
                "event_id": f"{number}.{run}.{n}",
                "user_id": text.split(" ")[2] if len(text.split(" ")) > 2 else None,
                "event_ts": at(" ".join(text.split(" ")[:2])),
                "url": f"case {number}",
            }
            for number, (_, runs, _, _) in enumerate(LATE_CASES)
            for n, text in enumerate(filter(None, runs.split(" | ")[run].split(", ")))
        ).run()

    rows = shop.rows()
    for number, (claim, _, then, session_held) in enumerate(LATE_CASES):
        of = f"case {number}"
        own = [row for row in rows if row["session_identifier"] == of]
        [(start, end, user, count)] = drawn(own, "user_id", "events")
        assert f"{start} - {end} {user} ({count})" == then, claim
        held = [(o.start, o.end, o.events) for o in shop.ledger.held.values() if o.owner == of]
        first, last, events = session_held or ("", "", 0)
        assert held == ([(at(first), at(last), events)] if session_held else []), claim


SCHEMA = FrameSchema(
    "a row",
    (
        FrameColumn("id", "bigint", "a number"),
        FrameColumn("of", ANY, "of any type"),
        FrameColumn("key", "struct<a:…", "a struct"),
        FrameColumn("more", "string", "text", "some models"),
    ),
)

FITS = "1L AS id, 'a' AS of, named_struct('a', 1) AS key"


def test_frames_are_compared_with_schemas(spark: SparkSession) -> None:
    """A missing column, another type and an undeclared column each fail the check.

    A frame may have any type where the schema leaves it open, and may lack optional columns.
    """
    for more in ("", ", 'x' AS more"):
        SCHEMA.check(spark.sql(f"SELECT {FITS}{more}"))
    for columns, what in (
        ("1L AS id, named_struct('a', 1) AS key", "no of"),
        (FITS.replace("1L AS", "1 AS"), "id is int"),
        (FITS.replace("'a', 1", "'b', 1"), "key is struct<b:int>"),
        (f"{FITS}, 1 AS more", "more is int"),
        (f"{FITS}, 1 AS other", "is not declared"),
    ):
        with pytest.raises(AssertionError, match=what):
            SCHEMA.check(spark.sql(f"SELECT {columns}"))


def test_frames_of_these_tests_are_checked(
    spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Frames are checked in the tests with Spark, and not in a run; where there is one."""

    @returns(SCHEMA)
    def wrong() -> DataFrame:
        return spark.range(1)

    @returns(SCHEMA)
    def nothing() -> DataFrame | None:
        return None

    assert nothing() is None
    with pytest.raises(AssertionError, match="no of"):
        wrong()
    monkeypatch.setattr(frame_schema, "CHECKED", False)
    assert wrong().columns == ["id"]


MONTHS = [f"{year}-{month:02}" for year in (2019, 2020, 2021, 2022) for month in range(1, 13)]


def history(*rows: int, days: int = 1) -> list[CellState]:
    """Cells of the first days of successive months, with some rows each."""
    starts = (parse_instant_text(f"{month}-01") for month in MONTHS)
    return [
        CellState(Interval(start + day * DAY, start + (day + 1) * DAY), number, 0)
        for start, number in zip(starts, rows, strict=False)
        for day in range(days)
    ]


class TestBorders:
    """Where the slices of a history begin, and when there are none."""

    def test_each_partition_is_a_slice_of_its_own(self) -> None:
        """Few partitions are one slice each, and no border is before the first."""
        found = slice_borders(history(*[7] * 8, days=3), Granularity.MONTH, HOUR, 2)
        assert found == tuple(parse_instant_text(f"{month}-01") for month in MONTHS[1:8])

    def test_few_rows_make_no_slice(self) -> None:
        """Neighbouring partitions are one slice, up to one and a half shares of the rows."""
        cells = history(12, 1, 1, 12, 12, 12, 12, 12, 2, 2, 2)
        found = slice_borders(cells, Granularity.MONTH, HOUR, 1)
        assert found == tuple(parse_instant_text(f"{MONTHS[at]}-01") for at in (3, 4, 5, 6, 7))

    def test_long_histories_have_so_many_slices_and_no_more(self) -> None:
        """The number of slices is limited, because planning each takes time."""
        found = slice_borders(history(*[100 * SLICE_ROWS] * 48), Granularity.MONTH, HOUR, 2)
        assert MOST_SLICES / 2 < len(found) < 1.5 * MOST_SLICES

    @pytest.mark.parametrize(
        ("cells", "partition", "far", "tasks"),
        [
            (history(*[7] * 8), None, HOUR, 2),
            (history(*[7] * 8), Granularity.DAY, HOUR, 2),
            (history(*[7] * 8), Granularity.MONTH, 3 * DAY, 2),
            (history(*[7] * 8), Granularity.MONTH, HOUR, 5),
            (history(1, 1, 1, 90, 1, 1), Granularity.MONTH, HOUR, 2),
            ([], Granularity.MONTH, HOUR, 2),
        ],
        ids=["no partitions", "short ones", "long gap", "many tasks", "one holds most", "no rows"],
    )
    def test_there_are_no_slices_where_they_do_not_pay(
        self, cells: list[CellState], partition: Granularity | None, far: int, tasks: int
    ) -> None:
        """A history without useful partitions has no slices: all of it is shuffled instead."""
        assert slice_borders(cells, partition, far, tasks) == ()


SESSIONS = """---
materialization: sessions
sessions: {user: user_id, gap: 30 minutes}
---
SELECT count(*) AS events, first(url) AS entry, last(url, true) AS exit, max(amount) AS most,
  first(url) FILTER (WHERE amount > 3) AS paid
FROM clicks"""


@pytest.mark.usefixtures("spark")
def test_a_large_build_of_stored_partitions(
    new_shop: NewShop, monkeypatch: pytest.MonkeyPatch
) -> None:
    """
    With events stored by month, sessions over the midnight of a first are whole.

    The distinct strings come from the files of the input's version:
    values that left it are harmless, new ones count.
    """
    monkeypatch.setattr("infold.spark.events.build.ROWS_FOR_PARTITIONS", 0)
    monkeypatch.setattr("infold.spark.events.build._ROWS_OF_A_MONTH", 0)
    monkeypatch.setattr(build, "QUICK_BUILD_EVENTS", 0)
    used: list[Sequence[int]] = []
    asked: list[tuple[str, list[str]]] = []
    real = IcebergTables.values

    def seen(*given: Any) -> Any:
        used.append(given[-1])
        return sliced_events(*given)

    def values(self: IcebergTables, *given: Any) -> pa.Array | None:
        found = real(self, *given)
        assert found is not None
        asked.append((given[1], sorted(found.to_pylist())))
        return found

    monkeypatch.setattr(build, "sliced_events", seen)
    monkeypatch.setattr(IcebergTables, "values", values)
    made = new_shop(CLICKS, SOURCE)
    rows: list[str] = []
    for number, month in enumerate(MONTHS[:20]):
        first = parse_instant_text(f"{month}-01")
        # ann: over midnight, a gap apart; bob: more than that; cid: two events at one instant
        for who, when in (
            ("ann", first - 20 * MINUTE),
            ("ann", first + 10 * MINUTE),
            ("bob", first - 1),
            ("bob", first + 30 * MINUTE),
            ("cid", first),
            ("cid", first),
            ("dot", first + 9 * DAY),
        ):
            rows.append(f"{len(rows)},{who},{_said(when)},/{number % 5}{len(rows) % 3},1.50")
    put(made, "all.csv", *rows)
    later = "2024-03-02 09:0"
    put(made, "a.csv", f"a1,eve,{later}0:00,/gone,1", f"a2,fay,{later}0:00,/b,2")
    made.run()
    put(made, "a.csv", f"a1,eve,{later}0:00,/a,1", f"a2,fay,{later}0:00,/b,2")
    # two at the first instant of eve's, none known at the last of fay's
    put(
        made,
        "b.csv",
        f"b3,eve,{later}0:00,é,5",
        f"b4,fay,{later}5:00,,9",
        f"b5,fay,{later}4:00,/d,4",
    )
    made.run()
    made.model("sessions", SESSIONS)

    receipt = made.run(model="sessions")

    [borders] = used
    assert set(borders) <= {
        parse_instant_text(f"{month}-01") for month in [*MONTHS[:20], "2024-03"]
    }
    assert len(borders) > 2
    [(column, strings)] = asked
    there = {"/a", "/b", "/d", "é", *(row.split(",")[3] for row in rows)}
    assert column == "url"
    assert there <= set(strings) <= {"/gone", *there}
    assert receipt.sessions_new == 20 * 5 + 2
    found = made.records("sessions")
    assert {(row["user_id"], row["events"]) for row in found} == {
        ("ann", 2),
        ("bob", 1),
        ("cid", 2),
        ("dot", 1),
        ("eve", 2),
        ("fay", 3),
    }
    urls = ("user_id", "entry", "exit", "paid")
    late = [tuple(row[name] for name in urls) for row in found if row["user_id"] in ("eve", "fay")]
    assert sorted(late) == [("eve", "/a", "é", "é"), ("fay", "/b", "/d", "/d")]


def _said(at: int) -> str:
    return datetime_of(at).replace(tzinfo=None).isoformat(sep=" ", timespec="microseconds")
