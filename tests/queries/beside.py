"""Models of one project, run by arrivals, beside plain Spark over all the rows."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING, Any

import yaml
from tests.queries.arrivals import EVENTS, Arrivals, Row
from tests.queries.catalog import Query
from tests.queries.world import MODELS, PROJECT, SCHEMAS
from tests.reference.compare import difference, stored

from infold import api
from infold.messages.errors import InfoldError, InfoldErrors

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

SEED = int(os.environ.get("INFOLD_QUERY_SEED", "1"))
SESSIONS = """
    SELECT md5(concat(user_id, '|', unix_micros(min(ts)))) AS session_id, user_id,
      min(ts) AS session_start, max(ts) AS session_end, {items}
    FROM (
      SELECT *, sum(starts) OVER (PARTITION BY user_id ORDER BY ts, event_id) AS nr FROM (
        SELECT *, if(ts - lag(ts) OVER (PARTITION BY user_id ORDER BY ts, event_id)
          <= INTERVAL {gap}, 0, 1) AS starts
        FROM (SELECT * FROM {events}) WHERE user_id IS NOT NULL))
    GROUP BY user_id, nr"""
"""Sessions as one writes them by hand: a flag where one begins, and how many there were so far."""

EVENTS_KEPT = """
    SELECT * EXCEPT (copy) FROM (
      SELECT *, row_number() OVER (PARTITION BY event_id, ts ORDER BY revision DESC) AS copy
      FROM ({rows}))
    WHERE copy = 1"""
"""Of the copies of an event the newest revision."""

PLAIN = {
    "sessions": SESSIONS.format(
        gap="30 minutes",
        events="clicks",
        items="count(*) AS events, sum(amount) AS revenue, "
        "min(struct(ts, event_id, url)).url AS entry_url",
    ),
    "daily": MODELS["daily"].rpartition("---\n")[2],
}
"""Of the tables between the rows and the queries."""


class Beside:
    """A folder with a project of some queries, and what arrives."""

    def __init__(self, root: Path, chosen: Sequence[Query]) -> None:
        self.root, self.chosen = root, chosen
        self.arrivals = Arrivals(Random(f"{SEED} {root.name}"))
        (root / "models").mkdir(parents=True)
        (root / "infold.yml").write_text(PROJECT, encoding="utf-8")
        files = MODELS | {query.name: query.model for query in chosen}
        for name, text in files.items():
            (root / "models" / f"{name}.sql").write_text(text, encoding="utf-8")

    def run(self) -> list[str]:
        """Take in what lies there; which models failed, and why."""
        self.arrivals.write(self.root / "landing")
        try:
            api.run(api.open_project(self.root), allow_removals=True)
        except InfoldErrors as failed:
            return [str(error) for error in failed.errors]
        return []

    def wrong(self, session: SparkSession) -> list[str]:
        """What differs from plain Spark, query by query."""
        views(session, self.arrivals)
        lake, found = api.lake_of(api.open_project(self.root)), []
        for name in (*EVENTS, "sessions"):
            differing = difference(_rows(session.table(name).toArrow()), _rows(lake.rows(name)))
            found += [f"{name}: {differing}"] if differing else []
        for query in self.chosen:
            wanted = _rows(session.sql(plain(query)).toArrow())
            try:
                differing = difference(wanted, _rows(lake.rows(query.name)))
            except InfoldError as error:
                differing = error.slug
            found += [f"{query}: {differing}"] if differing else []
        return found


def views(session: SparkSession, arrivals: Arrivals) -> None:
    """The tables, each computed once: all queries read the same rows of them."""
    for name in EVENTS:
        _view(session, name, _frame(session, name, arrivals.events(name)))
        _view(session, f"raw__{name}", _frame(session, name, arrivals.landed(name)))
    for name, lookup in arrivals.lookups.items():
        for view in (name, f"raw__{name}"):
            _view(session, view, _frame(session, name, lookup))
    for name, sql in PLAIN.items():
        _view(session, name, session.sql(sql))


def _frame(session: SparkSession, name: str, rows: Sequence[Row]) -> DataFrame:
    return session.createDataFrame([tuple(row.values()) for row in rows], SCHEMAS[name])


def _view(session: SparkSession, name: str, rows: DataFrame) -> None:
    rows.coalesce(1).localCheckpoint().createOrReplaceTempView(name)


def plain(query: Query) -> str:
    """A query as Spark takes it: sources are views, and a run has no interval."""
    sql = re.sub(r"\braw\.", "raw__", query.sql)
    front = yaml.safe_load(query.front)
    if front["materialization"] == "events":
        return EVENTS_KEPT.format(rows=sql)
    if front["materialization"] == "sessions":
        items, _, events = sql.removeprefix("SELECT ").partition(" FROM ")
        picked = re.sub(r"\b(first|last)\((\w+)\)", _picked, items)
        return SESSIONS.format(gap=front["sessions"]["gap"], items=picked, events=events)
    return sql.replace("@start_ts", "TIMESTAMP '0001-01-01'").replace(
        "@end_ts", "TIMESTAMP '9999-01-01'"
    )


def _picked(call: re.Match[str]) -> str:
    """The first or last value of a session, by time and then by id."""
    return f"{'min' if call[1] == 'first' else 'max'}(struct(ts, event_id, {call[2]})).{call[2]}"


def _rows(table: Any) -> list[dict[str, Any]]:
    names = [name for name in table.column_names if not name.startswith("_")]
    return stored({name: _counted(row[name]) for name in names} for row in table.to_pylist())


def _counted(value: Any) -> Any:
    """Structs and maps as lists, times without a zone as UTC, so that rows can be counted."""
    if isinstance(value, datetime) and value.tzinfo is None:
        return value.replace(tzinfo=UTC)
    if isinstance(value, dict):
        return [_counted(one) for one in value.values()]
    if isinstance(value, list | tuple):
        return [_counted(one) for one in value]
    return "NaN" if isinstance(value, float) and value != value else value  # noqa: PLR0124
