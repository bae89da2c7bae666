"""What `infold doctor` tries with Spark; each says in words what was found, or raises."""

from __future__ import annotations

from collections.abc import Callable

from pyspark.sql import SparkSession

from infold.core.files import ListedFile
from infold.core.interval import SECOND
from infold.core.model import Source, table_name
from infold.core.ports import Lake
from infold.core.project import Project
from infold.core.target import LOCAL, Engine
from infold.messages import faults
from infold.render.formatting import count
from infold.spark.jvm.cluster import executors
from infold.spark.reading.fit import PROBLEM
from infold.spark.reading.source_rows import read
from infold.spark.session_facts import is_remote
from infold.spark.storages import storage_of
from infold.spark.tables.port import Layout, Stamp

PROBE = "_doctor"
"""The table that is made to be dropped: no model's name begins so."""

MOST_SKEW = 5 * SECOND
"""Clocks that are set by a network differ by less."""

_MILLISECOND = SECOND // 1000
_CLOCK = f"CAST(reflect('java.lang.System', 'currentTimeMillis') AS BIGINT) * {_MILLISECOND}"
"""An executor's clock, in microseconds: Spark computes it where the row is."""


def engine(spark: SparkSession, project: Project) -> str:
    """Version, master and heap of Spark, and the versions of the storage's jars."""
    master = spark.conf.get("spark.master") or LOCAL
    heap = spark.conf.get("spark.driver.memory", "1g")
    if is_remote(spark):
        master = f"the server {project.target.engine.server} ({master})"
    elif Engine(master).is_cluster:
        master = f"{master}, {count(executors(spark), 'executor')}"
    jars = ", ".join(f"{jar.artifact} {jar.version}" for jar in storage_of(project).jars())
    return f"{spark.version} on {master} with {heap}; {jars}"


def table(spark: SparkSession, project: Project, lake: Lake) -> str:
    """Make a table, add to it, read it with Spark and without, and drop it."""
    tables = storage_of(project).tables(spark, project, lake)
    one_row = spark.range(1)
    try:
        tables.create(PROBE, one_row, Layout(), Stamp("doctor", PROBE, 1))
        tables.append(PROBE, one_row, Stamp("doctor", PROBE, 2))
        by_spark, without = tables.read(PROBE).count(), lake.rows(table_name(PROBE)).num_rows
    finally:
        lake.drop(table_name(PROBE))
    if (by_spark, without) != (2, 2):
        why = f"of two rows written Spark read {by_spark}, and infold without Spark {without}"
        raise faults.check_failed(name="catalog", why=why)
    return "a table was made, written, read and dropped"


def clocks(spark: SparkSession, now: Callable[[], int]) -> str:
    """How far the clock of an executor is from this process's (``now``, in microseconds)."""
    before = now()
    # One row.
    executor_clock = spark.range(1).selectExpr(f"{_CLOCK} AS there").collect()[0]["there"]
    after = now()
    skew = max(before - executor_clock - _MILLISECOND, executor_clock - after, 0)
    if skew > MOST_SKEW:
        why = f"an executor's clock is {skew / SECOND:,.1f} s from this machine's"
        raise faults.check_failed(name="clocks", why=why)
    return f"executors within {skew / SECOND:.2f} s of this machine"


def row(spark: SparkSession, project: Project, source: Source, file: ListedFile) -> str:
    """Read a row of a file of a source."""
    # One row.
    rows = read(spark, project, source, [(0, file)]).limit(1).toArrow()
    problem = rows[PROBLEM][0].as_py() if rows.num_rows else None
    if problem:
        return f"the first row of {file.path} cannot be used: {problem}"
    return f"{'a row' if rows.num_rows else 'no row, and no error,'} of {file.path} was read"
