"""
The first build of sessions, way by way: which algorithm is quick, with what it is compared.

    python -m bench.sessions_kernel [--events 10_000_000] [--users 300_000] [--repeats 2] [WAY …]

Every way reads the same stored events and writes the same Iceberg table in one session with the
settings of a large build. ``session_window`` is Spark's own; ``sorted`` sorts all events by user
and time; ``build`` is what infold does, and ``identifier``, ``midnight`` and ``max_length`` are the
same for sessions of an identifier (a user and a day), cut at midnight, and of at most an hour.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from bench.first_builds import SESSION_WINDOW
from bench.generate import Shape, history
from bench.project import DATA
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from infold.core.interval import HOUR, MINUTE, Granularity
from infold.core.queries import Aggregate, Output, SessionsQuery
from infold.core.sessions import MaxLength, Midnight
from infold.lake.iceberg.sql_catalog import sqlite_catalog
from infold.lake.iceberg.tables import IcebergLake
from infold.spark.content import cell_stats, micros
from infold.spark.jvm.spark_session import start
from infold.spark.sessions import build, islands
from infold.spark.sessions.stored import table_rows
from infold.spark.tables.iceberg.tables import IcebergTables
from infold.spark.tables.port import Layout, Stamp

QUERY = SessionsQuery(
    input="events",
    time_column="event_ts",
    user="user_id",
    gap=30 * MINUTE,
    key=("event_id",),
    where=None,
    aggregates=(
        Aggregate("_a0", "count", None, None, False, "count(*)"),
        Aggregate("_a1", "sum", "amount", None, False, "sum(amount)"),
        Aggregate("_a2", "first", "url", None, False, "first(url)"),
        Aggregate("_a3", "last", "url", None, False, "last(url)"),
    ),
    outputs=(
        Output("events", "_a0"),
        Output("revenue", "_a1"),
        Output("entry_url", "_a2"),
        Output("exit_url", "_a3"),
    ),
)


def by_session_window(spark: SparkSession, tables: IcebergTables) -> DataFrame:
    """Spark's own."""
    return spark.sql(SESSION_WINDOW.format(events=tables.identifier("events")))


def by_sorting(_: SparkSession, tables: IcebergTables) -> DataFrame:
    """All events sorted by user and time."""
    events = tables.read("events")
    over = islands.compiled_aggregates(events, QUERY)
    found = islands.islands_of(islands.prepared_events(events, QUERY, over), QUERY, over)
    return table_rows(found, QUERY, over, events.schema["event_ts"].dataType, 1)


def built(query: SessionsQuery) -> Way:
    """What infold does for a query."""
    return lambda _, tables: build.build(tables.read("events"), query, size=10_000_000)


Way = Callable[[SparkSession, IcebergTables], DataFrame]

WAYS: dict[str, Way] = {
    "session_window": by_session_window,
    "sorted": by_sorting,
    "build": built(QUERY),
    "identifier": built(
        replace(
            QUERY,
            user="session_identifier",
            owner_sql="concat(user_id, '-', cast(event_ts AS date))",
            gap=None,
        )
    ),
    "midnight": built(replace(QUERY, cuts=(Midnight("Europe/Berlin"),))),
    "max_length": built(replace(QUERY, cuts=(MaxLength(HOUR),))),
}


def tables_with_events(folder: Path, shape: Shape) -> IcebergTables:
    """A warehouse with a history in its table of events; made once."""
    landing, warehouse = folder / "landing", folder / "warehouse"
    if not landing.exists():
        print(f"{history(landing, shape):,} rows generated")
    warehouse.mkdir(exist_ok=True)
    spark = start(warehouse, warehouse / "catalog.db", size="large")
    tables = IcebergTables(
        spark, "kernel", IcebergLake(sqlite_catalog(warehouse / "catalog.db"), "kernel", warehouse)
    )
    if not tables.exists("events"):
        events = spark.read.parquet(str(landing)).selectExpr(
            "*", "1L AS _source_file", "1L AS _version"
        )
        # As an events model writes them: a month in a task, sorted by time.
        near = events.repartition(12, F.date_trunc("month", "event_ts"))
        events = near.sortWithinPartitions("event_ts", "event_id")
        tables.create("events", events, Layout("event_ts", Granularity.MONTH), Stamp("r", "e", 1))
    return tables


def main() -> None:
    """Reads the command line, measures, prints."""
    parser = argparse.ArgumentParser(description="Time ways of building sessions.")
    parser.add_argument("ways", nargs="*", default=[*WAYS])
    parser.add_argument("--events", type=int, default=10_000_000)
    parser.add_argument("--users", type=int, default=300_000)
    parser.add_argument("--repeats", type=int, default=2)
    parser.add_argument("--no-write", action="store_true")
    options = parser.parse_args()
    shape = Shape(options.events, options.users)
    tables = tables_with_events(DATA / f"kernel-{options.events}", shape)
    spark = tables.spark
    best: dict[str, float] = {}
    for repeat in range(options.repeats + 1):
        for way in options.ways:
            started = time.perf_counter()
            frame = WAYS[way](spark, tables)
            if options.no_write:
                frame.write.format("noop").mode("overwrite").save()
            else:
                tables.create(
                    way, frame, Layout("session_start", Granularity.MONTH), Stamp("r", way, 1)
                )
            seconds = time.perf_counter() - started
            print(f"{way:16}{seconds:7.1f} s{'  (warming up)' if not repeat else ''}", flush=True)
            if repeat:
                best[way] = min(seconds, best.get(way, seconds))
    for way, seconds in best.items():
        against = seconds / best.get("session_window", seconds)
        print(f"{way:16}{seconds:7.1f} s  {against:.2f}x")
    if not options.no_write and "build" in options.ways:
        started = time.perf_counter()
        table = tables.read("build")
        stats = cell_stats(
            table, table["session_start"], Granularity.DAY, last=micros(table["session_end"])
        ).collect()
        print(f"reading back {len(stats)} cells: {time.perf_counter() - started:.1f} s")


if __name__ == "__main__":
    main()
