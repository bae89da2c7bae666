"""One click through a shop's 31 models of mixed kinds, against making all tables again."""

from __future__ import annotations

import json
import re
import shutil
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING

from bench import runs
from bench.by_hand import PROPERTIES
from bench.measure import Clock, Line, Size, alternately
from bench.project import DATA

from infold import api

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SIZES = {1_000: 1, 6_000: 5, 100_000: 3}
"""Clicks in all, and how often a run and a rebuild are measured with them."""
WARM = 3
"""Rounds that are not counted: the JVM still compiles much of what one takes."""
DAYS = 60
FIRST = datetime(2024, 1, 1, tzinfo=UTC)

PROJECT = """\
name: shop
start: 2024-01-01
sources:
  raw.clicks:
    path: landing/clicks/*.json
    format: json
    event_time_column: event_ts
    columns: {event_id: string, user_id: string, event_ts: timestamp, url: string,
              source: string, amount: "decimal(18,2)"}
  raw.orders:
    path: landing/orders/*.json
    format: json
    event_time_column: ordered_at
    columns: {order_id: string, user_id: string, ordered_at: timestamp, country: string,
              total: "decimal(18,2)"}
"""
SESSION_AGGREGATES = """\
count(*) AS events, count_if(url LIKE '/pay%') AS payments, sum(amount) AS revenue"""
BY_CLICKS = {
    "clicks_by_day": "count(*) AS n, sum(amount) AS revenue",
    "users_by_day": "count(DISTINCT user_id) AS users",
    "payments_by_day": "count_if(url LIKE '/pay%') AS payments, sum(amount) AS revenue",
    "hours_by_day": "min(hour(event_ts)) AS first_hour, max(hour(event_ts)) AS last_hour",
    "amounts_by_day": "avg(amount) AS mean, max(amount) AS most, min(amount) AS least",
}
BY_SOURCE = {
    "sources_by_day": ("source", "count(*) AS n, sum(amount) AS revenue"),
    "pages_by_day": ("url", "count(*) AS n, count(DISTINCT user_id) AS users"),
    "spenders_by_day": ("user_id", "count(*) AS n, sum(amount) AS revenue"),
}
BY_SESSIONS = {
    "sessions_by_day": "count(*) AS sessions, sum(revenue) AS revenue",
    "bounces_by_day": "count_if(events = 1) AS bounces, count(*) AS sessions",
    "depth_by_day": "max(events) AS most, avg(events) AS mean",
    "paying_by_day": "count_if(payments > 0) AS paying, sum(payments) AS payments",
    "visitors_by_day": "count(DISTINCT user_id) AS visitors",
    "long_by_day": "max(timestampdiff(SECOND, session_start, session_end)) AS longest",
}
OF_DAYS = {
    "clicks_by_month": ("clicks_by_day", "sum(n) AS n, sum(revenue) AS revenue"),
    "users_by_month": ("users_by_day", "max(users) AS most, sum(users) AS users"),
    "sessions_by_month": ("sessions_by_day", "sum(sessions) AS sessions, sum(revenue) AS revenue"),
    "bounces_by_month": ("bounces_by_day", "sum(bounces) AS bounces, sum(sessions) AS sessions"),
    "sources_by_month": ("sources_by_day", "sum(n) AS n, count(DISTINCT source) AS sources"),
}
BY_KEY = {
    "users": (
        "sessions",
        "count(*) AS sessions, sum(revenue) AS revenue, min(session_start) AS first_seen",
    ),
    "buyers": ("clicks", "count(*) AS clicks, sum(amount) AS amount, max(event_ts) AS last_seen"),
    "customers": ("orders", "count(*) AS orders, sum(total) AS total"),
}
BY_ORDERS = {
    "orders_by_day": "count(*) AS n, sum(total) AS total",
    "countries_by_day": "count(DISTINCT country) AS countries",
    "largest_by_day": "max(total) AS largest",
}


def _events(source: str, columns: str, key: str, at: str) -> tuple[str, str]:
    """A model of events, and the same by one statement."""
    query = f"SELECT {columns} FROM {source} WHERE user_id IS NOT NULL"
    return (
        (
            f"materialization: events\nunique_key: [{key}]\n"
            f"timeseries: {{event_time_column: {at}, granularity: day}}\n---\n{query}"
        ),
        query.replace("SELECT", "SELECT DISTINCT"),
    )


def _sessions(minutes: int) -> tuple[str, str]:
    """Sessions of clicks, and the same by Spark's `session_window`."""
    window = f"session_window(event_ts, '{minutes} minutes')"
    return (
        (
            f"materialization: sessions\nsessions: {{user: user_id, gap: {minutes} minutes}}\n---\n"
            f"SELECT {SESSION_AGGREGATES} FROM clicks"
        ),
        (
            f"SELECT sha2(concat(user_id, cast({window}.start AS string)), 256) AS session_id, "
            f"user_id, {window}.start AS session_start, max(event_ts) AS session_end, "
            f"{SESSION_AGGREGATES} FROM clicks GROUP BY user_id, {window}"
        ),
    )


def _table(query: str, of: str, partition: str, granularity: str) -> tuple[str, str]:
    """A table of cells, and its query."""
    times = f"partition_column: {partition}, granularity: {granularity}"
    return (
        (
            f"materialization: table\ntimeseries: {{event_time_column: {of}, {times}}}\n"
            f"incremental: {{}}\n---\n{query}"
        ),
        query,
    )


def models() -> dict[str, tuple[str, str]]:
    """Each model's text and the query that makes its table from nothing, in order."""
    made = {
        "clicks": _events(
            "raw.clicks", "event_id, user_id, event_ts, url, source, amount", "event_id", "event_ts"
        ),
        "orders": _events(
            "raw.orders", "order_id, user_id, ordered_at, country, total", "order_id", "ordered_at"
        ),
        "sessions": _sessions(30),
        "visits": _sessions(10),
        "tasks": _sessions(120),
    }
    for of, at, listed in (
        ("clicks", "event_ts", BY_CLICKS),
        ("sessions", "session_start", BY_SESSIONS),
        ("orders", "ordered_at", BY_ORDERS),
    ):
        for name, columns in listed.items():
            query = f"SELECT cast({at} AS date) AS day, {columns} FROM {of} GROUP BY 1"
            made[name] = _table(query, at, "day", "day")
    for name, (by, columns) in BY_SOURCE.items():
        query = f"SELECT cast(event_ts AS date) AS day, {by}, {columns} FROM clicks GROUP BY 1, 2"
        made[name] = _table(query, "event_ts", "day", "day")
    for name, (of, columns) in OF_DAYS.items():
        query = f"SELECT trunc(day, 'MONTH') AS month, {columns} FROM {of} GROUP BY 1"
        made[name] = _table(query, "day", "month", "month")
    for name, (of, columns) in BY_KEY.items():
        query = f"SELECT user_id, {columns} FROM {of} GROUP BY user_id"
        made[name] = (f"materialization: cumulative_aggregate\n---\n{query}", query)
    query = (
        "SELECT day, n, sum(n) OVER (ORDER BY day RANGE BETWEEN INTERVAL 6 DAYS PRECEDING AND "
        "CURRENT ROW) AS week FROM clicks_by_day"
    )
    made["clicks_by_week"] = _table(query, "day", "day", "day")
    return made


def lay_out(root: Path, clicks: int) -> Path:
    """The project with its files, never run."""
    shutil.rmtree(root, ignore_errors=True)
    for folder in ("models", "landing/clicks", "landing/orders"):
        (root / folder).mkdir(parents=True)
    (root / "infold.yml").write_text(PROJECT)
    for name, (text, _) in models().items():
        (root / "models" / f"{name}.sql").write_text(f"---\n{text}\n")
    per_day = max(1, clicks // DAYS)
    for day in range(DAYS):
        land(root, "clicks", day, per_day)
        land(root, "orders", day, max(1, per_day // 20))
    return root


def land(root: Path, source: str, number: int, rows: int = 1) -> None:
    """A file of a source: ``rows`` spread over day ``number``."""
    lines = []
    for row in range(rows):
        at = (FIRST + timedelta(days=number, seconds=86_000 * row // rows)).isoformat()[:-6] + "Z"
        name, user = f"{number}-{row}", f"u{(number * 7 + row * row) % max(20, rows // 4)}"
        pay = row % 9 == 0
        value: dict[str, object] = (
            {
                "event_id": name,
                "user_id": user,
                "event_ts": at,
                "url": "/pay" if pay else f"/{row % 12}",
                "source": f"s{row % 4}",
                "amount": f"{row % 90}.50" if pay else None,
            }
            if source == "clicks"
            else {
                "order_id": name,
                "user_id": user,
                "ordered_at": at,
                "country": f"c{row % 5}",
                "total": f"{row % 300}.00",
            }
        )
        lines.append(json.dumps(value) + "\n")
    written = root / "landing" / f"{number:05}.json"
    written.write_text("".join(lines))
    written.rename(root / "landing" / source / written.name)


def one_click(size: Size) -> list[Line]:
    """One click through 31 models in a warm session, against 31 CREATE TABLE AS SELECT in it."""
    return [
        _against_making_again(int(clicks * size.scale), repeats)
        for clicks, repeats in SIZES.items()
    ]


def _against_making_again(clicks: int, repeats: int) -> Line:
    root = lay_out(DATA / f"many-{clicks}", clicks)
    runs.run(root)
    spark: SparkSession = api.session(api.open_project(root))
    costs: list[runs.Cost] = []
    theirs = Clock()

    def click() -> None:
        land(root, "clicks", DAYS + len(costs))
        costs.append(runs.run(root))

    def make_again() -> None:
        with theirs.timing():
            make_all_again(spark, root)

    alternately(WARM + repeats, click, make_again)
    ours = Clock([cost.seconds for cost in costs[WARM:]])
    del theirs.seconds[:WARM]
    days = {spark.table(f"infold.{name}.clicks_by_day").count() for name in ("again", "shop")}
    steps = f"{len(costs[-1].result.steps)} steps, {costs[-1].jobs} jobs"
    api.close()
    return Line(
        f"one click, {clicks:,} before it, against making 31 tables again",
        ours.median / theirs.median,
        0.8,
        detail=f"{ours} against {theirs}; {steps}; "
        + ("as many days" if len(days) == 1 else f"**other days** {days}"),
    )


def make_all_again(spark: SparkSession, root: Path) -> None:
    """All tables from the files, by a CREATE OR REPLACE TABLE AS SELECT each."""
    types = {
        "clicks": "event_id string, user_id string, event_ts timestamp, url string, source string,"
        " amount decimal(18,2)",
        "orders": "order_id string, user_id string, ordered_at timestamp, country string, total "
        "decimal(18,2)",
    }
    spark.sql("CREATE NAMESPACE IF NOT EXISTS infold.again")
    for name, columns in types.items():
        spark.read.schema(columns).json(str(root / "landing" / name)).createOrReplaceTempView(
            f"raw_{name}"
        )
    made = models()
    for name, (_, query) in made.items():
        stored = re.sub(
            r"FROM (raw\.)?(\w+)",
            lambda found: f"FROM {'raw_' if found[1] else 'infold.again.'}{found[2]}",
            query,
        )
        spark.sql(
            f"CREATE OR REPLACE TABLE infold.again.{name} USING iceberg "
            f"TBLPROPERTIES ({PROPERTIES}) AS {stored}"
        )
