"""The contract of the ports ``Tables`` and ``MaintainedTables``, for every storage."""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from infold.core.interval import Granularity, Interval, Ranges, parse_instant_text
from infold.core.model import table_name
from infold.core.ports import Lake
from infold.core.project import Project
from infold.core.storages import Storage
from infold.core.swap import Renaming
from infold.core.target import Target
from infold.spark.content import range_predicate
from infold.spark.storages import storage_of
from infold.spark.tables.port import Layout, MaintainedTables, Stamp

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

pytestmark = pytest.mark.spark

JANUARY = Ranges((Interval(parse_instant_text("2024-01-01"), parse_instant_text("2024-02-01")),))


@pytest.fixture(params=list(Storage), ids=str)
def project(warehouse: Path, request: pytest.FixtureRequest) -> Project:
    """A project whose name needs quoting, with tables of each storage."""
    target = Target("dev", warehouse=str(warehouse), storage=request.param)
    return Project("my-shop", warehouse, None, {}, (), target)


@pytest.fixture
def lake(project: Project) -> Lake:
    """The project's tables, read without a JVM."""
    return storage_of(project).lake(project)


@pytest.fixture
def tables(spark: SparkSession, project: Project, lake: Lake) -> MaintainedTables:
    """The project's tables, read and written with Spark."""
    return storage_of(project).tables(spark, project, lake)


def rows(spark: SparkSession, *days: str) -> DataFrame:
    """One row for each day, with a column name that needs quoting."""
    return spark.createDataFrame(
        [(day, i) for i, day in enumerate(days)], "d string, i int"
    ).selectExpr("CAST(d AS TIMESTAMP) AS `t.s`", "i AS `select`")


def days(tables: MaintainedTables, table: str, snapshot: int | None = None) -> list[str]:
    """The days that a table holds, in order."""
    frame = tables.read(table, snapshot).selectExpr("CAST(CAST(`t.s` AS DATE) AS STRING) AS d")
    return sorted(row["d"] for row in frame.collect())


def jobs(spark: SparkSession) -> int:
    """How many jobs Spark has begun."""
    return max(spark.sparkContext.statusTracker().getJobIdsForGroup(None), default=-1) + 1


MONTHS = Layout("t.s", Granularity.MONTH)


def test_each_write_is_one_commit_with_its_step(
    spark: SparkSession, tables: MaintainedTables, lake: Lake
) -> None:
    """
    Creating over a table leaves only the new rows and columns. A merge removes rows equal on the
    keys within the predicate and adds rows, equal ones included; a replacement of cells keeps all
    others of the partition. Each is in the history with its step, as is one that changes nothing,
    and what was before can be read.

    Files of a partition are put into one by a commit without a step; the oldest snapshots expire.
    """
    table = "a.b"
    stored = table_name(table)
    tables.create(table, spark.sql("SELECT 1 AS x"), Layout(), Stamp("r", "r-1", 1))
    first = rows(spark, "2024-01-05", "2024-01-06", "2024-03-05")
    made = [tables.create(table, first, MONTHS, Stamp("r", "s-1", 1))]
    assert tables.read(table).columns == ["t.s", "select"]

    january, jobs_before = range_predicate("t.s", "timestamp", JANUARY), jobs(spark)
    made.append(
        tables.merge(
            table,
            insert=rows(spark, "2024-01-05", "2024-04-01"),
            delete=rows(spark, "2024-01-05", "2024-03-05").select("`t.s`"),
            on=["t.s"],
            condition=january,
            stamp=Stamp("r", "s-2", 2),
            column="t.s",
            ranges=JANUARY,
        )
    )
    # Delta's own MERGE takes twelve, most of which look for files.
    assert jobs(spark) - jobs_before <= 5
    assert tables.read(table, column="t.s", ranges=JANUARY).where(january).count() == 2
    merged = ["2024-01-05", "2024-01-06", "2024-03-05", "2024-04-01"]
    alone = [at.date().isoformat() for at in lake.rows(stored)["t.s"].to_pylist()]
    assert sorted(alone) == days(tables, table) == merged

    none = rows(spark, "2024-01-05").where("false")
    made.append(tables.append(table, none, Stamp("r", "s-3", 3)))
    made.append(
        tables.merge(
            table,
            insert=none,
            delete=none.select("`t.s`"),
            on=["t.s"],
            condition="true",
            stamp=Stamp("r", "s-4", 4),
        )
    )
    cells = Interval(parse_instant_text("2024-01-05"), parse_instant_text("2024-01-06"))
    made.append(
        tables.replace(
            table,
            column="t.s",
            ranges=Ranges((cells,)),
            rows=rows(spark, "2024-01-05", "2024-01-05"),
            stamp=Stamp("r", "s-5", 5),
        )
    )
    made.append(tables.append(table, rows(spark, "2024-01-30"), Stamp("r", "s-6", 6)))
    now = ["2024-01-05", *merged, "2024-01-30"]
    assert days(tables, table) == sorted(now)
    assert days(tables, table, made[1]) == merged
    head = lake.metadata(stored)
    assert head is not None
    steps = {f"s-{number}": snapshot for number, snapshot in enumerate(made, 1)}
    assert steps.items() <= dict(head.steps).items()
    assert head.foreign is None

    before = max(tables.partition_files(table), key=lambda part: part.data)
    assert before.data > 1
    sizes = lake.file_sizes(stored, JANUARY)
    assert (len(sizes), sum(sizes)) == (before.data, before.bytes)
    tables.rewrite(table, before.partition)
    [after] = [one for one in tables.partition_files(table) if one.partition == before.partition]
    assert (after.data, after.deletes) == (1, 0)
    assert days(tables, table) == sorted(now)
    head = lake.metadata(stored)
    assert head is not None
    assert head.foreign is None

    newest = lake.history(stored).main[0]
    tables.expire(table, before=time.time() + 1, keep=2)
    assert lake.history(stored).main == (newest, made[-1])
    assert days(tables, table) == sorted(now)


def test_many_rows_are_written_by_several_tasks(
    spark: SparkSession, tables: MaintainedTables
) -> None:
    """The more rows are said to be written, the more tasks write; few are written by one."""
    made = rows(spark, *(f"2024-01-{day:02}" for day in range(1, 11))).repartition(5)
    files = []
    tables.create("many", rows(spark, "2024-01-05"), MONTHS, Stamp("r", "m-1", 1))
    for step, about in enumerate((0, 1_200_000)):
        stamp = Stamp("r", f"n-{step}", 2 + step)
        tables.replace("many", column="t.s", ranges=JANUARY, rows=made, stamp=stamp, about=about)
        files.append(sum(part.data for part in tables.partition_files("many")))

    assert files == [1, 3]
    assert len(days(tables, "many")) == 10


def test_partitions_of_hours_are_replaced_and_rewritten_alone(
    spark: SparkSession, tables: MaintainedTables
) -> None:
    """An hour is a partition of its own: it is replaced without others, and put into one file."""
    hours = Layout("at", Granularity.HOUR)

    def at(*times: str) -> DataFrame:
        return spark.createDataFrame([(time,) for time in times], "t string").selectExpr(
            "CAST(t AS TIMESTAMP) AS at"
        )

    tables.create("hours", at("2024-01-05 09:10", "2024-01-05 10:10"), hours, Stamp("r", "h-1", 1))
    tables.append("hours", at("2024-01-05 10:20"), Stamp("r", "h-2", 2))
    nine = Interval(parse_instant_text("2024-01-05T09:00"), parse_instant_text("2024-01-05T10:00"))
    tables.replace(
        "hours",
        column="at",
        ranges=Ranges((nine,)),
        rows=at("2024-01-05 09:30"),
        stamp=Stamp("r", "h-3", 3),
    )
    crowded = [part for part in tables.partition_files("hours") if part.data > 1]

    (ten,) = crowded
    tables.rewrite("hours", ten.partition)

    assert [part.data for part in tables.partition_files("hours")] == [1, 1]
    found = tables.read("hours").selectExpr("date_format(at, 'HH:mm') AS t").collect()
    assert sorted(row["t"] for row in found) == ["09:30", "10:10", "10:20"]


def test_states_are_kept_as_they_are_and_read_many_at_a_time(
    spark: SparkSession, tables: MaintainedTables
) -> None:
    """
    Every write takes the parts of states, whatever their types, and every read gives them. Reading
    one of them, the rest of the row is not read one by one.
    """
    state = "named_struct('`n`', 1L, '_in', named_struct('x', {0}), 'Map', map(1, {0})) AS _state"

    def stated(at: int) -> DataFrame:
        day = f"TIMESTAMP '2024-01-0{at}' AS at"
        return spark.sql(f"SELECT 'u{at}' AS id, {day}, {state.format(at)}, 7L AS _version")

    layout, stamp = Layout("at", Granularity.MONTH), Stamp("r", "r-1", 1)
    tables.create("seen", stated(1), layout, stamp)
    tables.append("seen", stated(2), stamp)
    gone = stated(1).select("id")
    tables.merge("seen", insert=stated(3), delete=gone, on=["id"], condition="true", stamp=stamp)
    merged = tables.read("seen").collect()
    assert sorted(merged) == sorted(stated(2).union(stated(3)).collect())
    tables.replace("seen", column="at", ranges=JANUARY, rows=stated(4), stamp=stamp)
    tables.append("seen", stated(5), stamp)
    found = tables.read("seen")
    assert found.schema.simpleString() == stated(1).schema.simpleString()
    assert sorted(found.collect()) == sorted(stated(4).union(stated(5)).collect())
    one = found.select("id", found["_state"]["`n`"])
    whole = spark.conf.get("spark.sql.codegen.wholeStage")
    spark.conf.set("spark.sql.codegen.wholeStage", "true")  # Spark's own reader asks for it
    try:
        plan = one._jdf.queryExecution().executedPlan().toString()
    finally:
        spark.conf.set("spark.sql.codegen.wholeStage", str(whole))
    assert "ColumnarToRow" in plan


@pytest.mark.parametrize("project", [Storage.ICEBERG], indirect=True)
def test_no_process_is_started_for_a_file(spark: SparkSession, tables: MaintainedTables) -> None:
    """Java sets the permissions of a table's files itself, as Hadoop would, and sums are kept."""
    tables.create("made", rows(spark, "2024-01-05"), Layout(), Stamp("r", "m-1", 1))
    jvm: Any = spark._jvm
    load = jvm.org.apache.iceberg.spark.Spark3Util.loadIcebergTable
    loaded = load(spark._jsparkSession, "infold.`my-shop`.made")
    made = loaded.io().newOutputFile(f"{loaded.location()}/data/of-another-name")

    assert made.getFileSystem().getClass().getSimpleName() == "BareLocalFileSystem"
    files = list(Path(loaded.location()).rglob("*.parquet*"))
    assert {file.stat().st_mode & 0o777 for file in files} == {0o644}
    assert sorted(file.suffix for file in files) == [".crc", ".parquet"]


def test_values_of_every_type_come_back(
    spark: SparkSession, tables: MaintainedTables, lake: Lake
) -> None:
    """Times of all years and all other types are read as they were written, without a JVM too."""
    made = spark.sql(
        "SELECT DATE'0001-01-01' AS d, TIMESTAMP'0001-01-01 00:00:00' AS first,"
        " TIMESTAMP'9999-12-31 23:59:59.999999' AS last, TIMESTAMP_NTZ'1582-10-10' AS n,"
        " CAST(1 AS DECIMAL(38, 6)) AS m, X'00' AS r, map('k', array(named_struct('a', 1L))) AS p,"
        " CAST(0.5 AS FLOAT) AS f, true AS b, 'é' AS s"
    )
    tables.create("types", made, Layout("first", Granularity.YEAR), Stamp("r", "t-1", 1))

    assert tables.read("types").schema.simpleString() == made.schema.simpleString()
    assert tables.read("types").drop("p").exceptAll(made.drop("p")).count() == 0
    (alone,) = lake.rows("types").to_pylist()
    (by_spark,) = tables.read("types").toArrow().to_pylist()
    assert alone == by_spark
    assert lake.column_times("types", "first", tables.append("types", made, Stamp("r", "t-2", 2)))


def test_a_session_that_lives_on_writes_the_table_of_that_name(
    spark: SparkSession, tables: MaintainedTables, lake: Lake, project: Project
) -> None:
    """
    After two tables changed places, a session that knew both reads and writes the new ones.

    A table that is replaced stays in its folder, and one that is made where a renamed table
    lies gets a folder of its own (in Delta Lake a folder has the name): either is dropped
    without harm to the other.
    """
    tables.create("daily", rows(spark, "2024-01-01"), MONTHS, Stamp("r", "o-1", 1))
    tables.create("daily__b", rows(spark, "2024-01-02"), MONTHS, Stamp("r", "b-1", 1))
    assert (days(tables, "daily"), days(tables, "daily__b")) == (["2024-01-01"], ["2024-01-02"])
    old, new = lake.location("daily"), lake.location("daily__b")
    assert old is not None
    assert new is not None

    renamed = lake.rename([Renaming("daily", "daily__a", old), Renaming("daily__b", "daily", new)])
    tables.append("daily", rows(spark, "2024-01-03"), Stamp("r", "d-2", 2))
    tables.merge(
        "daily",
        insert=rows(spark, "2024-02-01"),
        delete=rows(spark, "2024-01-03").select("`t.s`"),
        on=["t.s"],
        condition=range_predicate("t.s", "timestamp", JANUARY),
        stamp=Stamp("r", "d-3", 3),
    )
    tables.rewrite("daily", None)
    tables.expire("daily", before=time.time() + 5, keep=1)

    assert renamed
    assert days(tables, "daily") == ["2024-01-02", "2024-02-01"]
    by_name = project.target.storage is Storage.DELTA
    assert by_name or lake.location("daily__a") == old

    tables.create("daily", rows(spark, "2024-01-04"), MONTHS, Stamp("r", "d-4", 4))
    assert by_name or folder_of(lake, "daily") == Path(new.removeprefix("file:")).parent.parent
    lake.drop("daily")
    assert days(tables, "daily__a") == ["2024-01-01"]

    tables.create("daily", rows(spark, "2024-01-05"), MONTHS, Stamp("r", "d-5", 5))
    assert folder_of(lake, "daily").name.startswith("daily" if by_name else "daily__")
    lake.drop("daily__a")
    assert days(tables, "daily") == ["2024-01-05"]


def folder_of(lake: Lake, table: str) -> Path:
    """Where a table lies."""
    location = lake.location(table)
    assert location is not None
    return Path(location.removeprefix("file:")).parent.parent
