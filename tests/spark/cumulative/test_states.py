"""
Rows that follow from states equal those of the query itself, with their states.

Each key of a frame is a case of its own: rows that it had, rows that went, rows that came. So one
fold checks hundreds of them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from random import Random
from typing import Any, cast

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from tests.declare.shop import project

from infold.core.interval import Ranges
from infold.core.own_columns import KEY, STATE, VERSION
from infold.core.plan import Action, Step
from infold.core.ports import Ledger
from infold.core.project import Project
from infold.spark.content import user_columns
from infold.spark.cumulative.fold import (
    DOUBT,
    StatedModel,
    StateFold,
    _with_parts,
    states_of,
)
from infold.spark.inputs.feed import Feed
from infold.spark.step_context import Work
from infold.spark.tables.port import Tables

pytestmark = pytest.mark.spark

PROJECT = """
name: shop
sources:
  raw.clicks:
    path: landing/*.json
    format: json
    event_time_column: ts
    columns: {id: int, who: string, ts: timestamp, day: date, amount: "decimal(9,2)", big: bigint,
      wide: "decimal(38,6)", small: smallint, yes: boolean, real: double}
"""
CLICKS = """---
materialization: events
unique_key: [id]
timeseries: {event_time_column: ts, granularity: day}
---
SELECT id, who, ts, day, amount, big, wide, small, yes, real FROM raw.clicks
"""
TYPES = (
    "id int, who string, ts timestamp, day date, amount decimal(9,2), big bigint,"
    " wide decimal(38,6), small smallint, yes boolean, real double"
)
KEYS = 300

SHOWN = """SELECT who, count(*) AS n, count(amount) AS known, sum(small) AS units,
  sum(amount) AS paid, sum(big) AS big, sum(wide) AS wide, avg(small) AS mean,
  avg(amount) AS price, avg(big) AS mid,
  min(ts) AS first_at, max(ts) AS last_at, min(amount) AS least, max(small) AS most,
  min(day) AS first_day, bool_or(yes) AS some, every(yes) AS every, max(yes) AS top,
  min_by(small, struct(ts, id)) AS first_small, max_by(day, struct(id, ts)) AS last_day,
  max(struct(amount, id)) AS best
FROM clicks c GROUP BY c.who"""
"""Every aggregate by itself: most parts are columns of the table."""

HIDDEN = """SELECT upper(c.who) AS name, c.yes,
  sum(c.amount) / nullif(count(c.amount), 0) AS price, -- of what is known
  round(avg(big) FILTER (WHERE small > 0), 3) AS mid,
  count_if(amount > 2 AND 10 / nullif(small, 0) > 1) FILTER (WHERE small <> 0) AS dear,
  concat('x', cast(max(ts) FILTER (WHERE 6 / nullif(small, 0) > 1) AS string)) AS `last one`,
  coalesce(min_by(big, struct(ts, id)) FILTER (WHERE amount IS NOT NULL), -1) AS first_big,
  any(real > 1) AS real, sum(1) AS n, count(real) + count(*) AS both
FROM clicks AS c WHERE big IS NULL OR c.big % 7 <> 3 GROUP BY 1, c.yes
HAVING count(*) > 1 AND coalesce(sum(amount), 1) > 0 AND `name` IS NOT NULL"""
"""Expressions over aggregates, FILTER, two keys and HAVING: all parts are in ``_state``."""


@dataclass
class Changes:
    """Stands for :class:`Feed`: the rows now, and those that came and went."""

    current: DataFrame
    came: DataFrame
    went: DataFrame
    rows: int = 10

    def added(self) -> DataFrame:
        """The rows that came."""
        return self.came

    def removed(self) -> DataFrame:
        """The rows that went."""
        return self.went


@dataclass
class OneTable:
    """Stands for the stored tables: there is one."""

    rows: DataFrame

    def read(self, table: str, snapshot: int | None = None, **_: Any) -> DataFrame:
        """Its rows."""
        assert table == "users"
        assert snapshot is None
        return self.rows


def drawn(rng: Random, who: str | None, at: int) -> tuple[Any, ...]:
    """A row: of few values, so that some tie, and with NULLs."""

    def maybe(value: Any) -> Any:
        return None if rng.random() < 0.25 else value

    start = datetime(2024, 3, 1, tzinfo=UTC)
    return (
        at,
        who,
        start + timedelta(minutes=rng.randrange(6)),
        maybe(date(2024, 3, rng.randrange(1, 4))),
        maybe(Decimal(rng.randrange(-300, 700)) / 100),
        maybe(rng.choice([rng.randrange(-9, 9), rng.randrange(-(2**52), 2**52)])),
        maybe(Decimal(rng.randrange(-(10**37), 10**37)).scaleb(-6)),
        maybe(rng.randrange(-2, 3)),
        maybe(rng.random() < 0.3),
        maybe(rng.choice([0.0, -0.0, 1.5, float("nan")])),
    )


def drawn_changes(rng: Random) -> tuple[list[Any], list[Any], list[Any]]:
    """The rows before; of these, those that went; and those that came."""
    before: list[Any] = []
    went: list[Any] = []
    came: list[Any] = []
    numbers = iter(range(10**9))
    for key in range(KEYS):
        who = None if key == 0 else f"u{key}"
        own = [drawn(rng, who, next(numbers)) for _ in range(rng.choice([0, 1, 1, 2, 3, 6]))]
        lost = [row for row in own if rng.random() < rng.choice([0, 0, 0.3, 1])]
        new = [drawn(rng, who, next(numbers)) for _ in range(rng.choice([0, 0, 1, 2, 4]))]
        back = [row for row in lost if rng.random() < 0.2]  # as where a file is delivered again
        before, went, came = before + own, went + lost, came + new + back
    return before, went, came


HEAD = "---\nmaterialization: cumulative_aggregate\n---\n"


def project_of(users: str) -> Project:
    """The project with a model of users."""
    files = {"infold.yml": PROJECT, "models/clicks.sql": CLICKS, "models/users.sql": users}
    return project(files)


def model_of(spark: SparkSession, sql: str, rows: DataFrame) -> tuple[Work, StatedModel]:
    """The compiled model with its states, over rows of these types."""
    shop = project_of(HEAD + sql)
    node = shop["users"]
    assert node.grouped is not None
    states = states_of(rows, node.grouped, node.fingerprint)
    assert states is not None, "each aggregate has a state"
    tables = cast("Tables", OneTable(rows))
    work = Work(spark, tables, cast("Ledger", None), shop, "run", "step")
    model = StatedModel(_with_parts(node, states), node.grouped, states, rows.schema)
    return work, model


def built(work: Work, model: StatedModel, rows: DataFrame) -> DataFrame:
    """The table as a build makes it."""
    return model.table_rows(work.sql(model.node, {"clicks": rows}), 1)


def as_set(rows: DataFrame) -> set[str]:
    """Rows with their states, to be compared."""
    found = [repr(row) for row in rows.drop(VERSION).collect()]
    assert len(found) == len(set(found))
    return set(found)


def folding_of(work: Work, model: StatedModel, changes: Changes) -> StateFold:
    """The fold of some changes."""
    step = Step("users", Action.FOLD, Ranges.ever(), (), {"clicks": (1, 2)}, version=2)
    folding = StateFold(work, model, step)
    folding.feed = cast("Feed", changes)
    return folding


@pytest.mark.parametrize(("sql", "share"), [(SHOWN, 0.5), (HIDDEN, 1)])
def test_rows_follow_from_states(spark: SparkSession, sql: str, share: float) -> None:
    """Rows with states after any change are those of a build, whatever the aggregates."""
    before, went, came = drawn_changes(Random(7))
    frames = [spark.createDataFrame(rows, TYPES) for rows in (before, went, came)]
    left = [row for row in before if row not in went]
    now = spark.createDataFrame([*left, *came], TYPES)
    work, model = model_of(spark, sql, now)
    work.tables.rows = built(work, model, frames[0]).localCheckpoint()  # type: ignore[attr-defined]
    folding = folding_of(work, model, Changes(now, frames[2], frames[1]))
    rows = folding.followed(folding.changed_keys()).localCheckpoint()
    doubted = rows.where(DOUBT)
    again, _ = folding.read_again(doubted, 1)
    touched = rows.where(~F.col(DOUBT)).select(*again.columns).unionByName(again).localCheckpoint()
    own = [*user_columns(work.tables.read("users")).columns, STATE, KEY]
    made = touched.where(F.col(KEY).isNotNull()).select(*own)
    others = work.tables.read("users").join(
        touched.select(F.col("__touched_key").alias(KEY)), KEY, "left_anti"
    )

    expected = as_set(built(work, model, now))
    assert as_set(made.unionByName(others.select(*own))) == expected
    assert doubted.count() < share * rows.count()
    assert len(expected) > KEYS / 3


def numbers(who: str, big: int | None = None, wide: str | None = None) -> tuple[Any, ...]:
    """A row with these numbers alone."""
    at = datetime(2024, 3, 1, tzinfo=UTC)
    return (1, who, at, None, None, big, wide and Decimal(wide), None, None, None)


@pytest.mark.parametrize(
    ("items", "before", "came", "doubted"),
    [
        (
            "sum(big) AS big, sum(wide) AS wide",
            [numbers("full", 2**63 - 1), numbers("fits", 2**63 - 1), numbers("wide", 1, "9e31")],
            [numbers("full", 1), numbers("fits", -5), numbers("wide", 1, "9e31")],
            {"full": True, "fits": False, "wide": True},
        ),
        (
            "avg(big) AS mid",
            [numbers("rounds", 1), numbers("exact", 1)],
            [numbers("rounds", 2**53), numbers("rounds", -(2**53)), numbers("exact", 2)],
            {"rounds": True, "exact": False},
        ),
    ],
)
def test_what_digits_do_not_tell(
    spark: SparkSession,
    items: str,
    before: Sequence[Any],
    came: Sequence[Any],
    doubted: dict[str, bool],
) -> None:
    """Sums with too many digits, and averages that doubles may round, are left to the query."""
    frames = [spark.createDataFrame(rows, TYPES) for rows in (before, came)]
    work, model = model_of(spark, f"SELECT who, {items} FROM clicks GROUP BY who", frames[0])
    work.tables.rows = built(work, model, frames[0]).localCheckpoint()  # type: ignore[attr-defined]
    folding = folding_of(work, model, Changes(frames[0], frames[1], frames[0].limit(0)))
    rows = folding.followed(folding.changed_keys())

    assert {row[0]: row[1] for row in rows.select("__group_key0", DOUBT).collect()} == doubted


def test_aggregates_without_an_exact_state(spark: SparkSession) -> None:
    """A query has no states where values of its types do not add up, or equal ones differ."""
    rows = spark.createDataFrame([], TYPES)
    calls = (
        *("sum(real)", "avg(real)", "max(real)", "count(DISTINCT big)", "avg(wide)"),
        *("sum(cast(wide AS decimal(38,7)))", "sum(DISTINCT big)"),
        *("max(struct(real))", "median(big)", "min_by(real, struct(ts, id))"),
    )
    for call in calls:
        sql = f"{HEAD}SELECT who, {call} AS v FROM clicks GROUP BY who"
        node = project_of(sql)["users"]
        assert node.grouped is not None
        assert states_of(rows, node.grouped, "") is None, call
