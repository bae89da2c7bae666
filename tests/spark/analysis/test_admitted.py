"""Every query that the analysis admits gives the same rows
in batches as in one piece, as Spark evaluates it.

These are the queries of tests/analysis/rules/test_soundness.py, where
another engine looks at each cell and at each row that is added or
removed; here the cells are cut into random batches, and Spark evaluates.
"""

from __future__ import annotations

from collections import Counter
from datetime import UTC, datetime
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.analysis.rules.drawn import FILES, GRANULARITIES, PLACES, ROWS, model, queries, replaced
from tests.declare.shop import read

from infold.core.interval import (
    MAX,
    MIN,
    Granularity,
    Interval,
    Ranges,
    micros_of,
    parse_instant_text,
)
from infold.core.project import Node

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark

EXAMPLES = 25


@pytest.fixture(scope="module")
def tables(spark: SparkSession) -> SparkSession:
    """The rows as views."""
    session = spark.newSession()
    columns = "id int, who string, ts timestamp, code string"
    rows = [(id_, who, _time(ts), code) for id_, who, ts, code in ROWS]
    session.createDataFrame(rows, columns).createOrReplaceTempView("clicks")
    session.createDataFrame(rows[1::2], columns).createOrReplaceTempView("orders")
    places = [(code, place, _time(since)) for code, place, since in PLACES]
    found = session.createDataFrame(places, "code string, place string, since timestamp")
    found.createOrReplaceTempView("places")
    return session


def test_batches_give_the_rows_of_the_whole(tables: SparkSession) -> None:
    """
    Built in any batches, an admitted query keeps the same rows as the query over all data.

    Some queries are admitted and some refused; else this would prove little.
    """
    drawn: Counter[str] = Counter()
    batches_give_the_whole(tables, drawn)
    print(f"analysis: {dict(drawn)}")

    # Some of each: what is drawn is at times much alike.
    assert drawn["admitted"]
    assert drawn["refused"]


@settings(
    max_examples=EXAMPLES,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow],
)
@given(
    sql=queries(),
    granularity=GRANULARITIES,
    cuts=st.lists(st.sampled_from([row[2] for row in ROWS]), max_size=2, unique=True),
)
def batches_give_the_whole(
    tables: SparkSession, drawn: Counter[str], sql: str, granularity: str, cuts: list[str]
) -> None:
    """One query in some batches."""
    project, found = read({**FILES, "models/subject.sql": model(sql, granularity)})
    drawn["refused" if found else "admitted"] += 1
    if project is None or found:
        return
    node, unit = project["subject"], Granularity(granularity)
    ends = [MIN, *sorted({unit.floor(parse_instant_text(cut)) for cut in cuts}), MAX]
    built: Counter[tuple[Any, ...]] = Counter()
    for start, end in pairwise(ends):
        batch = Ranges((Interval(start, end),))
        rows = _evaluated(tables, node, batch)
        built.update({row: n for row, n in rows.items() if row[0] is not None and row[0] in batch})
    whole = _evaluated(tables, node, Ranges.ever())

    assert built == Counter({row: n for row, n in whole.items() if row[0] is not None}), sql


def _evaluated(session: SparkSession, node: Node, cells: Ranges) -> Counter[tuple[Any, ...]]:
    """A query's rows, from what its references need for some cells."""
    sql = replaced(node, lambda one: None if one.bound is None else one.bound.times_read(cells))
    found = session.sql(f"SELECT cast(part AS timestamp) AS part, n FROM ({sql})").toArrow()
    return Counter(
        (None if row["part"] is None else micros_of(row["part"]), row["n"])
        for row in found.to_pylist()
    )


def _time(text: str | None) -> datetime | None:
    return None if text is None else datetime.fromisoformat(text).replace(tzinfo=UTC)
