"""
Drawn changes of sessions that follow from stored states: derived tables equal those built afresh.

Rows, values to the last bit, types and stored states are compared with a build by the new
definition over the same events.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from random import Random
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession
from tests.declare.shop import project

from infold.analysis.definitions.compare import compare_projects
from infold.core.definition import Derivation
from infold.core.queries import SessionsQuery
from infold.spark.content import column
from infold.spark.sessions.build import build
from infold.spark.sessions.derived import DerivedSessions
from infold.spark.stored_types import stored_type
from infold.spark.verify import sessions_from_scratch as from_scratch

pytestmark = pytest.mark.spark

PROJECT = """
name: shop
sources:
  raw.clicks:
    path: landing/*.json
    format: json
    event_time_column: ts
    columns: {id: int, who: string, ts: timestamp, day: date, amount: "decimal(18,2)",
      page: smallint, real: double, list: array<smallint>}
"""
CLICKS = """---
materialization: events
unique_key: [id]
timeseries: {event_time_column: ts, granularity: day}
---
SELECT id, who, ts, day, amount, page, real, list FROM raw.clicks
"""
TYPES = (
    "id int, who string, ts timestamp, day date, amount decimal(18,2), page smallint, real double,"
    " list array<smallint>"
)
KEYS = (
    "user: who, gap: 30 minutes",
    "user: who, gap: 30 minutes, session_number: true, quarantine_after: 50 minutes",
    "user: who, gap: 1 hour, quarantine_after: 40 minutes, keep: head",
    "user: who, gap: 1 hour, max_length: 40 minutes",
    "identifier: page, user: who",
    "identifier: page, user: who, gap: 30 minutes, session_number: true",
    "user: page, gap: 1 hour, cuts: {campaign: [day], midnight: Europe/London}",
    "user: real, gap: 1 hour",
    "identifier: [day, page], user: who, without_identifier: {gap: 20 minutes}",
    "user: upper(who), gap: 1 hour",
)
AGGREGATES = (
    "count(*)",
    "count(amount)",
    "count(who) FILTER (WHERE amount > 1)",
    "sum(amount)",
    "sum(page)",
    "sum(id) FILTER (WHERE who LIKE 'a%' AND page > 2)",
    "avg(amount)",
    "avg(id) FILTER (WHERE page > 2 AND who LIKE 'a%')",
    "avg(page)",
    "min(amount)",
    "max(real)",
    "min(page)",
    "bool_or(amount > 2)",
    "max(amount > 2)",
    "count_if(amount > 2)",
    "first(who)",
    "first(page)",
    "last(real)",
    "last(amount, true)",
    "first(list) FILTER (WHERE page > 1)",
    "sum(real)",
    "avg(real)",
    "count(DISTINCT page)",
    "collect_list(page)",
)
SUMS = {"avg(amount)": "sum(amount) / nullif(count(amount), 0)", "sum(page)": "avg(page)"}
"""What else follows from the same states."""
MORE = (
    "isnull({0})",
    "concat('-', cast({0} AS string))",
    "coalesce(cast({0} AS string), '?')",
    "timestampdiff(SECOND, session_start, session_end)",
    "{0}",
)
CONDITIONS = (
    "{0} IS NOT NULL",
    "cast({0} AS string) <> '3'",
    "coalesce(length(cast({0} AS string)), 0) < 4",
    "NOT (cast({0} AS string) LIKE 'b%')",
)


def some(rng: Random, of: Iterable[Any], share: float = 0.4) -> list[Any]:
    """A few of some values, in another order."""
    found = [one for one in of if rng.random() < share]
    rng.shuffle(found)
    return found


def text(keys: str, items: list[str], where: list[str]) -> str:
    """A sessions model."""
    condition = f" WHERE {' AND '.join(where)}" if where else ""
    head = f"---\nmaterialization: sessions\nsessions: {{{keys}}}\n---\n"
    return f"{head}SELECT {', '.join(items)} FROM clicks{condition}\n"


def drawn(rng: Random, keys: str) -> tuple[str, str]:
    """A model before and after a change."""
    calls = some(rng, AGGREGATES) or ["count(*)"]
    shown = [rng.choice(MORE[:3]) if rng.random() < 0.3 else "{0}" for _ in calls]
    pairs = enumerate(zip(calls, shown, strict=True))
    old = [f"{words.format(call)} AS c{at}" for at, (call, words) in pairs]
    new = some(rng, old, 0.7)
    for at, call in enumerate(some(rng, calls)):
        new.append(f"{rng.choice(MORE).format(SUMS.get(call, call))} AS z{at}")
    rng.shuffle(new)
    where = some(rng, ["page <> 7", "ts > TIMESTAMP '2024-03-01 10:20:00'"])
    owner = keys.split()[1].strip(",")
    added = [one.format(owner) for one in some(rng, CONDITIONS, 0.3)] if owner.isalpha() else []
    return text(keys, old, where), text(keys, new or ["count(*) AS n"], [*where, *added])


def clicks(spark: SparkSession, rng: Random) -> DataFrame:
    """Events with many missing values, over three days."""
    reals = [float("nan"), -0.0, 0.0, 1 / 3, None]
    amounts = [None, *(Decimal(one) for one in ("0.00", "1.55", "2.50", "-3.20", "100.01"))]
    rows = []
    for at in range(150):
        hours = timedelta(days=rng.randrange(3), minutes=10 * 60 + rng.randrange(180))
        time = datetime(2024, 3, 1, tzinfo=UTC) + hours
        who = rng.choice(["ann", "Ann", "bob", "zoë", None])
        day = rng.choice([time.date(), None])
        page = rng.choice([None, *range(9)])
        rows.append((at, who, time, day, rng.choice(amounts), page, rng.choice(reals), [page, 1]))
    return spark.createDataFrame(rows, TYPES).localCheckpoint()


def changes(rng: Random) -> Iterator[tuple[str, SessionsQuery, SessionsQuery, Derivation]]:
    """Drawn changes that follow from stored states: what they are, both queries, and how."""
    while True:
        old, new = drawn(rng, rng.choice(KEYS))
        both = [
            project({"infold.yml": PROJECT, "models/clicks.sql": CLICKS, "models/visits.sql": sql})
            for sql in (old, new)
        ]
        before, after = (one["visits"].query for one in both)
        found = compare_projects(both[0].nodes, both[0].sources, both[1].nodes, both[1].sources)
        for one in found:
            if one.derivation is not None and before is not None and after is not None:
                yield f"{old}\n{new}", before, after, one.derivation


def as_stored(rows: DataFrame) -> DataFrame:
    """Rows with the types that their table has."""
    fields = ((field.name, stored_type(field.dataType)) for field in rows.schema)
    return rows.select(*(column(name).cast(type_).alias(name) for name, type_ in fields))


def shown(rows: DataFrame) -> list[str]:
    """Rows as text, without what two builds need not have in common."""
    found = []
    for row in as_stored(rows).toArrow().to_pylist():
        row.pop("_version")
        row["_state"].pop("_silence", None)  # as long as any; not always the longest
        found.append(repr(row))
    return sorted(found)


def test_derived_sessions_are_those_built_afresh(spark: SparkSession) -> None:
    """Whatever follows from states is what a build gives."""
    rng = Random(3)
    events, derived = clicks(spark, rng), 0
    for what, before, after, found in changes(rng):
        stored = as_stored(build(events, before)).localCheckpoint()
        assert found.sessions is not None
        made = DerivedSessions(stored, events, found, found.sessions, after, 2)
        if made.is_exact():
            assert shown(made.rows()) == shown(build(events, after)), what
            derived += 1
        else:
            assert "real" in what, what  # sums of doubles have no state
        if derived == 8:
            break


def test_a_negative_zero_is_a_zero(spark: SparkSession) -> None:
    """0.0 and -0.0 are equal, so min and max give 0.0, in the table and in its rebuild."""
    items = [f"cast({call}(real) AS string) AS {call}_real" for call in ("min", "max")]
    made = project(
        {
            "infold.yml": PROJECT,
            "models/clicks.sql": CLICKS,
            "models/visits.sql": text(KEYS[0], items, ["real = 0"]),
        }
    )
    query = made["visits"].query
    assert query is not None
    events = clicks(spark, Random(1))

    rows = build(events, query).select("min_real", "max_real").distinct().collect()
    again = from_scratch.sessions(events, query).select("min_real", "max_real").distinct()

    assert [tuple(row) for row in rows] == [("0.0", "0.0")]
    assert again.collect() == rows
