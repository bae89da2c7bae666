"""The row hash tells rows apart where Spark's own hash does not, and hashes of rows add up."""

from __future__ import annotations

from functools import reduce
from typing import TYPE_CHECKING, Any

import pytest
from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql import types as T
from tests.spark.events.clicks_project import MODEL, NewShop

from infold.core.interval import DAY, MIN, Granularity, Interval, Ranges, parse_instant_text
from infold.core.model import Column as Declared
from infold.core.own_columns import STATE
from infold.core.project import Match, Validity
from infold.core.queries import GroupedQuery, Output, VersionedQuery
from infold.core.trace import CellChange, signed
from infold.spark.content import (
    cell_start,
    cell_stats,
    column,
    content,
    range_predicate,
    row_hash,
    rows_in_cells,
    rows_without,
    state_hash,
)
from infold.spark.inputs.changed_keys import changed_lookup_rows, rows_with_changed_key
from infold.spark.inputs.changed_rows import ChangedRows
from infold.spark.reading import fit
from infold.spark.sessions.aggregates import FirstOrLast, differ_in_a_tie
from infold.spark.versions import versions_of

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def levels(message: Any) -> int:
    """How deep a message of Spark Connect is."""
    inner = (
        one
        for field, value in message.ListFields()
        if field.message_type is not None
        for one in ((value,) if hasattr(value, "ListFields") else value)
        if hasattr(one, "ListFields")
    )
    return 1 + max(map(levels, inner), default=0)


@pytest.mark.deep
@pytest.mark.parametrize("width", [50, 300])
def test_expressions_over_all_columns_are_no_deeper_than_over_a_few(
    width: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A client of Spark Connect refuses an expression of a hundred levels. No server is needed."""
    monkeypatch.setenv("SPARK_CONNECT_MODE_ENABLED", "1")
    named = T.StructType().add("a", "string").add("b", T.MapType(T.StringType(), T.IntegerType()))
    types = (T.StringType(), T.LongType(), T.DoubleType(), T.TimestampType(), named)
    schema = T.StructType()
    for number in range(width):
        schema.add(f"c{number}", types[number % len(types)])
    tests = {at: F.col(f"c{at}").isNull() for at in range(width)}
    declared = [Declared(field.name, "bigint") for field in schema]

    expressions: list[Any] = [
        row_hash(schema),
        row_hash(T.StructType().add("one", schema).add("many", T.ArrayType(schema))),
        state_hash(T.StructType().add(STATE, schema)),
        fit.misfit_problem(declared, tests),
        fit.fitted(F.col("text"), schema, ""),
    ]

    for expression in expressions:
        assert levels(expression._expr.to_plan(None)) < 60


@pytest.mark.spark
class TestRowHash:
    """Different rows have different hashes, and equal rows equal ones."""

    TEXT = "CAST(NULL AS STRING)"
    DIFFERENT = (
        (f"'a', 'x', 'b', {TEXT}", f"'a', {TEXT}, 'b', 'x'"),
        ("'a', 'ab', 'b', 'c'", "'a', 'a', 'b', 'bc'"),
    )
    """Columns with their values, of rows that differ."""

    def test_rows_that_differ_hash_differently(self, spark: SparkSession) -> None:
        """
        Rows hash by the position of NULLs and the borders of strings; columns that name file and
        version do not count.
        """
        same = "'a', 1, '_source_file', 7L, '_version', 3L", "'a', 1"
        frames = [
            spark.sql(f"SELECT inline(array(named_struct({row})))")
            for pair in (*self.DIFFERENT, same)
            for row in pair
        ]
        hashed = reduce(DataFrame.union, (frame.select(row_hash(frame.schema)) for frame in frames))
        hashes = [row[0] for row in hashed.collect()]
        *differ, equal = zip(hashes[::2], hashes[1::2], strict=True)

        assert [self.DIFFERENT[at] for at, (one, other) in enumerate(differ) if one == other] == []
        assert equal[0] == equal[1]

    def test_content_adds_up(self, spark: SparkSession) -> None:
        """The content of all rows is the sum of the contents of any parts."""
        rows = spark.range(1000).selectExpr("id", "timestamp_seconds(id) AS ts")
        parts = [rows.where("id % 3 = 0"), rows.where("id % 3 <> 0")]

        def whole(frame: object) -> int:
            found = cell_stats(frame, column("ts"), Granularity.DAY).collect()  # type: ignore[arg-type]
            return content(found[0]["hi"], found[0]["lo"])

        assert whole(rows) == signed(sum(map(whole, parts)))

    SAME = (
        ("boolean", ["true"], ["false"]),
        ("tinyint", ["0Y"], ["1Y"], ["-1Y"]),
        ("int", ["0"], ["1"], ["256"]),
        ("bigint", ["0L"], ["1L"], ["4294967296L"]),
        ("float", ["0.0F"], ["-0.0F"], ["float('NaN')"], ["float('-Infinity')"], ["1.4E-45F"]),
        ("double", ["0.0D", "cast(0 AS double)"], ["double('-0.0')", "0.0D * -1"], ["1D"],
         ["double('NaN')", "double('Infinity') - double('Infinity')"], ["-4.9E-324D"]),
        ("decimal(18,2)", ["1", "1.00", "1.0"], ["0.01"], ["-1"]),
        ("decimal(38,4)", ["1", "1.0000"], ["0.1"], ["100000000000000000000"]),
        ("string", ["''"], ["'a'"], ["'A'"], ["'a '"], ["'\\0'"], ["'é'"], ["'e\\u0301'"],
         ["X'FF'"], ["X'FE'"], ["'\ufffd'"], ["'null'"]),
        ("binary", ["X''"], ["X'00'"], ["X'0000'"], ["X'FF'"]),
        ("date", ["DATE'2024-01-01'"], ["DATE'-0001-01-01'"], ["DATE'0002-01-01'"]),
        ("timestamp", ["TIMESTAMP'2024-01-01 00:00:00.000001Z'",
                       "TIMESTAMP'2024-01-01 01:00:00.000001+01:00'"],
         ["TIMESTAMP'2024-01-01 00:00:00Z'"], ["TIMESTAMP'-0001-01-01 00:00:00Z'"],
         ["TIMESTAMP'0002-01-01 00:00:00Z'"]),
        ("timestamp_ntz", ["TIMESTAMP_NTZ'2024-01-01'"],
         ["TIMESTAMP_NTZ'2024-01-01 00:00:00.000001'"]),
        ("array<double>", ["array()"], ["array(NULL)"], ["array(NULL, NULL)"], ["array(0D)"],
         ["array(double('-0.0'))"], ["array(0D, NULL)"], ["array(NULL, 0D)"]),
        ("struct<a:int,b:string>", ["struct(NULL, NULL)"], ["struct(1, NULL)"], ["struct(1, '')"],
         ["struct(NULL, '1')"]),
        ("map<string,int>", ["map()"], ["map('a', 1)"], ["map('a', NULL)"],
         ["map('a', 1, 'b', 2)"], ["map('b', 2, 'a', 1)"], ["map('a', 2, 'b', 1)"]),
        ("map<binary,string>", ["map(X'FF', 'a')"], ["map(X'FE', 'a')"], ["map(X'FF', X'FF')"]),
        ("map<struct<k:date>,map<int,double>>", ["map(struct(DATE'2024-01-01'), map(1, 0D))"],
         ["map(struct(DATE'2024-01-02'), map(1, 0D))"],
         ["map(struct(DATE'2024-01-01'), map(1, double('-0.0')))"]),
    )  # fmt: skip
    """Of each type values as SQL writes them: those of a list are alike, and unlike all others."""

    AROUND = (
        ("{}", "{}"),
        ("array({})", "array<{}>"),
        ("named_struct('n', 1, 'v', {})", "struct<n:int,v:{}>"),
        ("map(7, {})", "map<int,{}>"),
        ("array(named_struct('m', map('k', {})))", "array<struct<m:map<string,{}>>>"),
    )
    """Where a value can be, and the type of that."""

    @pytest.mark.parametrize("type_", [type_ for type_, *_ in SAME])
    def test_as_many_hashes_as_values(self, spark: SparkSession, type_: str) -> None:
        """
        Values that a query can tell apart hash differently, be they columns or inside of others:
        the signs of zeros, NULLs, borders, bytes that are no text, entries in another order. Those
        that are written otherwise and are the same hash alike.
        """
        [groups] = [groups for one, *groups in self.SAME if one == type_]
        values = [(at, value) for at, group in enumerate([["NULL"], *groups]) for value in group]
        places = [
            f"cast({around.format(f'cast({{0}} AS {type_})')} AS {whole.format(type_)}) AS v{place}"
            for place, (around, whole) in enumerate(self.AROUND)
        ]
        rows = [f"SELECT {at} AS at, {', '.join(places).replace('{0}', v)}" for at, v in values]
        frame = spark.sql(" UNION ALL ".join(rows))
        hashes = [row_hash(T.StructType([field])) for field in frame.schema.fields[1:]]
        found = frame.select("at", *hashes).collect()
        for place, (_, whole) in enumerate(self.AROUND):
            pairs = {(row[0], row[1 + place]) for row in found}
            assert len(pairs) == len(groups) + 1, whole
            assert len({hash_ for _, hash_ in pairs}) == len(groups) + 1, whole

    def test_texts_by_a_collation_hash_by_their_letters(self, spark: SparkSession) -> None:
        """A source may have texts that are equal by their collation: they are other texts."""
        frame = spark.sql("SELECT v COLLATE UTF8_LCASE AS v FROM VALUES ('a'), ('A') AS t(v)")

        assert len({row[0] for row in frame.select(row_hash(frame.schema)).collect()}) == 2


@pytest.mark.spark
class TestCells:
    """Spark and the plan agree on the cell of an instant."""

    def test_cell_start_is_the_granularitys_floor(self, spark: SparkSession) -> None:
        """The start of a cell is the granularity's floor
        for every granularity, before and after 1970.
        """
        texts = [
            "1969-12-31 23:59:59.999999",
            "1970-01-01",
            "2024-02-29 12:00",
            "2024-03-31",
            "2024-12-30 00:00:00",
            "2023-01-01",
            "1900-03-01 05:06:07.000008",
        ]
        at = F.col("t").cast("timestamp")
        rows = spark.createDataFrame([(text,) for text in texts], "t string").select(
            F.unix_micros(at), *(cell_start(at, granularity) for granularity in Granularity)
        )

        for micros, *starts in rows.collect():
            assert starts == [granularity.floor(micros) for granularity in Granularity]

    def test_within_selects_the_ranges(self, spark: SparkSession) -> None:
        """A range of timestamps or dates includes its start and excludes its end."""
        first = parse_instant_text("2024-01-01")
        ranges = Ranges.of(
            [Interval(first, first + 2 * DAY), Interval(first + 5 * DAY, first + 6 * DAY)]
        )
        at = F.timestamp_micros(F.lit(first) + F.col("id") * DAY)
        days = spark.range(8).select(at.alias("a`b.c"), at.cast("date").alias("d`e.f"), "id")

        kept = days.where(range_predicate("a`b.c", "timestamp", ranges)).union(
            days.where(range_predicate("d`e.f", "date", ranges))
        )

        assert [row["id"] for row in kept.collect()] == [0, 1, 5, 0, 1, 5]

    def test_any_number_of_cells(self, spark: SparkSession) -> None:
        """Rows of thousands of cells are selected, and none between them."""
        first = parse_instant_text("2020-01-01")
        cells = [Interval(first + at * DAY, first + (at + 1) * DAY) for at in range(0, 600, 2)]
        days = spark.range(600).select(
            F.timestamp_micros(F.lit(first) + F.col("id") * DAY + 7).alias("a`t"), "id"
        )
        for some in (cells[:9], cells):
            kept = rows_in_cells(days, "a`t", some, Granularity.DAY)
            assert kept.columns == ["a`t", "id"]
            assert [row["id"] for row in kept.collect()] == [2 * at for at in range(len(some))]

    def test_many_ranges_become_a_superset_unless_exact(self, spark: SparkSession) -> None:
        """Beyond 24 ranges the nearest are joined into a
        superset, unless the filter has to be exact.
        """
        first = parse_instant_text("2020-01-01")
        ranges = Ranges.of(
            Interval(first + 2 * i * DAY, first + (2 * i + 1) * DAY) for i in range(300)
        )
        days = spark.range(600).select(
            F.timestamp_micros(F.lit(first) + F.col("id") * DAY).alias("t")
        )

        assert days.where(range_predicate("t", "timestamp", ranges, exact=True)).count() == 300
        assert days.where(range_predicate("t", "timestamp", ranges)).count() > 300


SOURCE = "    event_time_column: at\n    columns: {id: string, at: timestamp, v: double}\n"
BY_DAY = "timeseries: {event_time_column: at, partition_column: day}\nincremental: {}\n"
MODELS = {
    "texts": "---\nmaterialization: table\n---\nSELECT id, cast(v AS string) AS v FROM clicks",
    "days": f"---\nmaterialization: table\n{BY_DAY}---\n"
    "SELECT cast(at AS date) AS day, id, cast(v AS string) AS v FROM clicks",
    "values": "---\nmaterialization: cumulative_aggregate\n---\n"
    "SELECT v, count(*) AS n, max(id) AS id FROM clicks GROUP BY v",
    "visits": "---\nmaterialization: sessions\nsessions: {user: id, gap: 1 hour}\n---\n"
    "SELECT first(v) AS v, count(*) AS n FROM clicks",
}


ZEROS = {
    "double": ("0D", "double('-0.0')"),
    "array<float>": ("array(0.0F)", "array(-0.0F)"),
    "struct<a:double>": ("named_struct('a', 0D)", "named_struct('a', double('-0.0'))"),
    "text": ("'a' COLLATE UTF8_LCASE", "'A' COLLATE UTF8_LCASE"),
}
"""Values by their type that are equal to Spark, and not the same."""


@pytest.mark.spark
@pytest.mark.parametrize(("one", "other"), ZEROS.values(), ids=ZEROS)
def test_values_that_spark_takes_for_equal(spark: SparkSession, one: str, other: str) -> None:
    """
    Rows of a lookup that differ in them are other rows, also as of a time; which of two versions at
    one instant counts is a matter of their values, and two events at one instant differ.
    """
    instant = "TIMESTAMP'2024-03-01'"
    old, new = (
        spark.sql(f"SELECT 'k' AS k, {value} AS v, {instant} AS f, CAST(NULL AS TIMESTAMP) AS t")
        for value in (one, other)
    )
    change = CellChange(Interval(MIN, MIN + DAY), 1, 1, 1, 1, 0, 1)
    changed = ChangedRows(old, new, [change], 1, None)
    assert repr(changed.added().collect()) == repr(new.collect())
    assert changed_lookup_rows(changed).count() == 2
    assert rows_without(old.unionAll(old), old).count() == 1
    match = Match("l", "e", (("k", "k"),), Validity("f", "f", "t", open=True, passed_on=False))
    assert rows_with_changed_key(new, [match], {"l": changed}).count() == 1

    query = VersionedQuery(GroupedQuery("rates", (Output("k", "k"),)), "f", ("v",))
    orders = (old.unionAll(new), new.unionAll(old))
    first, second = (repr(versions_of(rows, query).toArrow().to_pylist()) for rows in orders)
    assert first == second

    pick = FirstOrLast("f", "v", last=False, argument="v", where="", edge=True, alike=True)
    stored = old.withColumn("known", F.lit(True))
    tied = [
        stored.unionAll(event.withColumn("known", F.lit(False))).agg(differ_in_a_tie(pick, "known"))
        for event in (new, old)
    ]
    assert [[*map(bool, *answer.collect())] for answer in tied] == [[True], [False]]


@pytest.mark.spark
def test_a_correction_of_the_sign_alone(new_shop: NewShop) -> None:
    """
    The sign of a zero is corrected in a file, and arrives in each table; groups have both zeros. Of
    copies that differ in it alone the same one is kept, whichever came first.
    """
    shop = new_shop(MODEL, SOURCE)
    for name, text in MODELS.items():
        shop.model(name, text)
    header = "id,at,v"

    shop.put("1.csv", "1,2024-03-01,0.0", header=header)
    shop.put("2.csv", "2,2024-03-02,0.0", "3,2024-03-02,0.0", "4,2024-03-02,-0.0", header=header)
    shop.run()
    shop.put("1.csv", "1,2024-03-01,-0.0", header=header)
    shop.put("3.csv", "3,2024-03-02,-0.0", "4,2024-03-02,0.0", header=header)
    shop.run()

    texts = dict(shop.rows("texts"))
    assert (texts["1"], texts["2"], texts["3"]) == ("-0.0", "0.0", texts["4"])
    assert dict(row[1:] for row in shop.rows("days")) == texts
    assert {row["id"]: str(row["v"]) for row in shop.records("visits")} == texts
    assert shop.rows("values") == [(0.0, 4, "4")]
    assert shop.proven()
