"""First builds: sessions against Spark's own ``session_window``, and memory."""

from __future__ import annotations

import os
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING
from unittest.mock import patch

from bench import runs
from bench.generate import Shape
from bench.measure import Clock, Line, Size, alternately, largest_child, ratio
from bench.project import DATA, same_files, with_history

from infold import api
from infold.spark.tables.iceberg.tables import IcebergTables

if TYPE_CHECKING:
    from pyspark.sql import DataFrameWriterV2

SESSION_WINDOW = """
SELECT
  sha2(concat(user_id, cast(session.start AS string)), 256) AS session_id, user_id,
  session.start AS session_start, last_at AS session_end, events, revenue, entry_url, exit_url
FROM (
  SELECT
    user_id, session_window(event_ts, '30 minutes') AS session,
    count(*) AS events, sum(amount) AS revenue, max(event_ts) AS last_at,
    min_by(url, struct(event_ts, event_id)) AS entry_url,
    max_by(url, struct(event_ts, event_id)) AS exit_url
  FROM {events}
  GROUP BY user_id, session_window(event_ts, '30 minutes')
)
"""


def year_of_events(size: Size, profile: str = "web") -> Shape:
    """The history of most cases: 10 M events, 2 M sessions, 300 k users, a year."""
    return Shape(size.rows(10_000_000), size.rows(300_000, 100), profile=profile)


def against_session_window(size: Size) -> list[Line]:
    """
    First build of sessions, against ``session_window`` with the same aggregates.

    Both read the stored events and write an Iceberg table of one layout and the same properties,
    one after the other in one session, with the settings of a large build.
    """
    root, _ = with_history("a", year_of_events(size), sessions=size.repeats + 1)
    names = [f"sessions_{number}" for number in range(2, size.repeats + 2)]
    api.forget(api.open_project(root), names)  # what was measured before is there
    runs.run(root, ["events", "sessions"])  # both warm: the first model's build is not counted
    project = api.open_project(root)
    spark = runs.large_session(project)
    tables = IcebergTables(spark, project.name, api.lake_of(project))
    ours, theirs = Clock(), Clock()
    models = iter(names)

    def infold() -> None:
        model = next(models)
        cost = runs.run(root, [model])
        assert [step.model for step, _ in cost.result.steps] == [model]
        ours.add(cost.step(model))

    def session_window() -> None:
        writer = by_session_window(tables)
        with theirs.timing():
            writer.createOrReplace()

    session_window()
    theirs.seconds.clear()
    alternately(size.repeats, session_window, infold)
    same = tables.read("sessions").count() == tables.read("by_session_window").count()
    return [
        Line(
            "first build of sessions, against Spark's `session_window`",
            ratio(ours, theirs),
            0.55,
            detail=f"{ours} against {theirs}; "
            + ("as many sessions" if same else "**other sessions**"),
        )
    ]


def by_session_window(tables: IcebergTables) -> DataFrameWriterV2:
    """Spark's sessions of the events table, to be written with the layout of ``sessions``."""
    from pyspark.sql.functions import partitioning

    rows = tables.spark.sql(SESSION_WINDOW.format(events=tables.identifier("events")))
    writer = rows.writeTo(tables.identifier("by_session_window")).using("iceberg")
    for key, value in _write_properties(tables, "sessions").items():
        writer = writer.tableProperty(key, value)
    writer = writer.tableProperty("format-version", "3")
    if tables.layout("sessions").partition is None:
        return writer
    return writer.partitionedBy(partitioning.months("session_start"))


def against_a_plain_insert(size: Size) -> list[Line]:
    """
    First builds of all three models, against one plain INSERT … SELECT of the same files.

    The insert reads the same Parquet files, sorts their rows into the same partitions of a table
    with the same properties, and stores them all: no copy is left out, nothing is hashed or
    counted. Both have the settings of a large build, in one session, taking turns.
    """
    root, _ = with_history("b-web", year_of_events(size))
    project = api.open_project(root)
    spark = runs.large_session(project)
    tables = IcebergTables(spark, project.name, api.lake_of(project))
    runs.run(root)  # the table that is imitated
    whole, events, plain = Clock(), Clock(), Clock()
    like = _write_properties(tables, "events")

    def insert() -> None:
        with plain.timing():
            plain_insert(tables, root, like)

    def infold() -> None:
        fresh = same_files(f"first-{len(costs)}", root)
        cost = runs.run(fresh)
        whole.add(cost.seconds)
        events.add(cost.step("events"))
        costs.append(cost.by_step)
        forget(fresh)

    costs: list[str] = []
    insert()  # neither is counted: the JVM still compiles
    infold()
    for clock in (whole, events, plain):
        clock.seconds.clear()
    alternately(size.repeats, insert, infold)
    return [
        Line(
            "first build of events, against a plain INSERT of the same files",
            events.median / plain.median,
            1.4,
            detail=f"{events} against {plain}",
        ),
        Line(
            "first build of events, sessions and days, against that insert",
            whole.median / plain.median,
            None,
            detail=f"{whole} against {plain}; the last: {costs[-1]}",
        ),
    ]


def plain_insert(tables: IcebergTables, root: Path, like: Mapping[str, str]) -> None:
    """Store the rows of all files as they are, by month and sorted by time."""
    spark = tables.spark
    spark.sql("CREATE NAMESPACE IF NOT EXISTS infold.plain")
    spark.sql("DROP TABLE IF EXISTS infold.plain.events PURGE")
    properties = ", ".join(f"'{key}' = '{value}'" for key, value in like.items())
    spark.sql(
        "CREATE TABLE infold.plain.events (event_id STRING, user_id STRING, event_ts TIMESTAMP,"
        " url STRING, amount DECIMAL(18, 2)) USING iceberg PARTITIONED BY (months(event_ts))"
        f" TBLPROPERTIES ('format-version' = '3', {properties})"
    )
    spark.sql("ALTER TABLE infold.plain.events WRITE ORDERED BY event_ts")
    spark.read.parquet(f"{root}/landing").createOrReplaceTempView("plain_files")
    spark.sql(
        "INSERT INTO infold.plain.events SELECT event_id, user_id, event_ts, url, amount"
        " FROM plain_files WHERE user_id IS NOT NULL"
    )


def within_heap(size: Size) -> list[Line]:
    """First build of everything from the files, within a heap of 1 GiB and the default of 2 GiB."""
    root, _ = with_history("i", year_of_events(size))
    return [_within(root, gigabytes) for gigabytes in (1, 2)]


def _within(root: Path, gigabytes: int) -> Line:
    forget(root)
    api.close()  # a heap is given as a JVM starts
    with patch.dict(os.environ, INFOLD_MEMORY=f"{gigabytes}g"):
        cost = runs.run(root)
    rows = cost.result.receipt.arrived
    return Line(
        f"first build of {rows / 1e6:,.1f} M events, driver heap of {gigabytes} GiB",
        cost.seconds,
        None,
        "s",
        f"{cost.by_step}; {cost.jobs} jobs; {largest_child()}",
    )


def forget(root: Path) -> None:
    """Leave a project's files and drop its tables and ledger, so that its next run is its first."""
    assert root.is_relative_to(DATA)
    for folder in ("warehouse", ".infold"):
        shutil.rmtree(root / folder, ignore_errors=True)


def _write_properties(tables: IcebergTables, table: str) -> Mapping[str, str]:
    """How a table's files are to be written, as it was made."""
    rows = tables.spark.sql(f"SHOW TBLPROPERTIES {tables.identifier(table)}").collect()
    return {row["key"]: row["value"] for row in rows if row["key"].startswith("write.")}
