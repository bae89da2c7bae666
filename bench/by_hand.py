"""A run as three plain statements of Spark: what storing its rows takes without any promise."""

from __future__ import annotations

import shutil
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from bench import clicks, runs
from bench.measure import Clock, Line, Size, alternately
from bench.processes import timed
from bench.project import DATA

from infold import api

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

COLUMNS = "event_id string, user_id string, event_ts timestamp, url string, amount decimal(18,2)"
PROPERTIES = ", ".join(
    f"'{key}' = '{value}'"
    for key, value in {
        "format-version": "3",
        "write.delete.mode": "merge-on-read",
        "write.update.mode": "merge-on-read",
        "write.merge.mode": "merge-on-read",
        "write.distribution-mode": "none",
    }.items()
)
SESSIONS = """\
SELECT
  sha2(concat(user_id, cast(session.start AS string)), 256) AS session_id, user_id,
  session.start AS session_start, last_at AS session_end, events, payments, revenue,
  entry_url, exit_url
FROM (
  SELECT
    user_id, session_window(event_ts, '30 minutes') AS session, count(*) AS events,
    count_if(url LIKE '/pay%') AS payments, sum(amount) AS revenue, max(event_ts) AS last_at,
    min_by(url, struct(event_ts, event_id)) AS entry_url,
    max_by(url, struct(event_ts, event_id)) AS exit_url
  FROM {events}
  GROUP BY user_id, session_window(event_ts, '30 minutes')
)"""
DAILY = """\
SELECT cast(session_start AS date) AS day, count(*) AS sessions, sum(revenue) AS revenue
FROM {sessions} GROUP BY 1"""
TABLES = {
    "clicks": "SELECT DISTINCT * FROM by_hand_new WHERE user_id IS NOT NULL",
    "sessions": SESSIONS.format(events="infold.by_hand.clicks"),
    "daily": DAILY.format(sessions="infold.by_hand.sessions"),
}
ADDED = """\
INSERT INTO infold.by_hand.clicks SELECT * FROM by_hand_new n
WHERE user_id IS NOT NULL AND NOT EXISTS (
  SELECT 1 FROM infold.by_hand.clicks c WHERE c.event_id = n.event_id AND c.event_ts = n.event_ts
)"""
MERGED = """\
MERGE INTO infold.by_hand.{table} t USING ({rows}) s ON t.{key} = s.{key}
WHEN MATCHED THEN UPDATE SET * WHEN NOT MATCHED THEN INSERT *"""


def against_plain_statements(size: Size) -> list[Line]:
    """
    A run for one click, against an INSERT and two MERGEs, in one session for small runs.

    The statements take a user's sessions and a day of sessions anew. They know which file is new
    and where it has to be looked, and are right as long as nothing is corrected or deleted, no
    session loses its start, and no statement dies before the others.
    """
    root = clicks.starter("clicks-by-hand")
    runs.run(root)
    spark: SparkSession = api.session(api.open_project(root))
    landing = root / "landing" / "clicks"
    _first_load(spark, landing)
    ours, theirs = Clock(), Clock()
    for number in range(clicks.WARM_CLICKS + max(15, size.repeats)):
        clicks.land(root, number)
        ours.add(runs.run(root).seconds)
        with theirs.timing():
            _one_click(spark, landing / f"{number:05}.json")
    ours.seconds[: clicks.WARM_CLICKS] = theirs.seconds[: clicks.WARM_CLICKS] = []
    counted = [
        spark.table(f"infold.{name}.daily").count() for name in ("by_hand", "clicks_by_hand")
    ]
    same = len(set(counted)) == 1
    return [
        Line(
            "one click in a warm session, against three plain statements",
            ours.median / theirs.median,
            None,
            detail=f"{ours} against {theirs}; {'as many days' if same else '**other days**'}",
        )
    ]


def first_run(size: Size) -> list[Line]:
    """
    The first `infold run` of the starter's project, against three CREATE TABLE AS SELECT.

    Each in a process of its own that starts Spark, with the same settings and archive of classes.
    """
    ours, theirs, spark_alone = Clock(), Clock(), Clock()
    landing = clicks.starter("clicks-landing") / "landing" / "clicks"
    folder = DATA / "clicks-first-by-hand"

    def run() -> None:
        root = clicks.starter("clicks-first")
        ours.add(timed(root, str(clicks.COMMAND), "--no-engine", "run")[0])

    def by_hand(clock: Clock, *files: str) -> None:
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        clock.add(timed(Path.cwd(), sys.executable, "-m", "bench.by_hand", str(folder), *files)[0])

    run()  # makes the archive of classes where there is none
    ours.seconds.clear()
    alternately(
        max(5, size.repeats),
        run,
        lambda: by_hand(theirs, str(landing)),
        lambda: by_hand(spark_alone),
    )
    return [
        Line(
            "first `infold run` of a project, against three plain statements in a fresh process",
            ours.median / theirs.median,
            None,
            detail=f"{ours} against {theirs}; {spark_alone} until Spark has started",
        )
    ]


def _by_hand(folder: Path, *landing: str) -> None:
    """A process of its own: Spark, and the tables of what has landed."""
    from infold.spark.jvm.spark_session import start

    spark = start(folder / "warehouse", folder / "catalog.db", size="small")
    for files in landing:
        _first_load(spark, Path(files))


def _first_load(spark: SparkSession, landing: Path) -> None:
    _new_rows(spark, landing)
    spark.sql("CREATE NAMESPACE IF NOT EXISTS infold.by_hand")
    for table, rows in TABLES.items():
        spark.sql(
            f"CREATE OR REPLACE TABLE infold.by_hand.{table} USING iceberg"
            f" TBLPROPERTIES ({PROPERTIES}) AS {rows}"
        )


def _one_click(spark: SparkSession, file: Path) -> None:
    _new_rows(spark, file)
    spark.sql(ADDED)
    users = "infold.by_hand.clicks WHERE user_id IN (SELECT user_id FROM by_hand_new)"
    days = (
        "infold.by_hand.sessions WHERE cast(session_start AS date) IN"
        " (SELECT cast(event_ts AS date) FROM by_hand_new)"
    )
    sessions, daily = SESSIONS.format(events=users), DAILY.format(sessions=days)
    spark.sql(MERGED.format(table="sessions", key="session_id", rows=sessions))
    spark.sql(MERGED.format(table="daily", key="day", rows=daily))


def _new_rows(spark: SparkSession, path: Path) -> None:
    spark.read.schema(COLUMNS).json(str(path)).createOrReplaceTempView("by_hand_new")


if __name__ == "__main__":
    _by_hand(Path(sys.argv[1]), *sys.argv[2:])
