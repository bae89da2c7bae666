"""Every query that the analysis admits gives the same rows
in batches as in one piece, as Spark evaluates it.

These are the queries of tests/queries. Drawn ones are in tests/analysis/rules/test_soundness.py,
where another engine looks at each cell and at each row that is added or removed.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING, Any

import pytest
from tests.analysis.rules.drawn import literal
from tests.queries.arrivals import TIME, Arrivals
from tests.queries.beside import SEED, Beside, plain, views
from tests.queries.catalog import Query, admitted, project_of_admitted
from tests.reference.compare import difference
from tests.spark.analysis.at_once import interpreted, rows_of

from infold.core.interval import MAX, MIN, Interval, Ranges, parse_instant_text
from infold.core.project import Node, Reference

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark


TIMES = TIME | {"sessions": "session_start", "daily": "day"}
"""The columns by which the tables of the catalog are read."""
CUTS = ("2024-03-01", "2024-03-10", "2024-03-31")
NO_ALIAS = re.compile(
    r"\s*($|[,)]|(ON|USING|WHERE|GROUP|ORDER|LIMIT|HAVING|WINDOW|QUALIFY|UNION|EXCEPT|MINUS|INTERSECT"
    r"|JOIN|LEFT|RIGHT|FULL|INNER|CROSS|NATURAL|LATERAL|SEMI|ANTI|PIVOT|UNPIVOT)\b)",
    re.IGNORECASE,
)
"""What follows a table that has no other name."""


@dataclass(frozen=True)
class Cut:
    """A query as it is, and over what its references need for some cells, batch by batch."""

    name: str
    whole: str
    batches: Sequence[str]


def cut(
    name: str, node: Node, whole: str, ends: Sequence[int], over: Callable[[Interval], str]
) -> Cut:
    """The rows that have a cell: all at once, and those of each batch between two ends."""
    series = node.model.timeseries
    assert series is not None
    part = f"cast(`{series.partition_column}` AS timestamp)"
    return Cut(
        name,
        f"SELECT * FROM ({whole}) WHERE {part} IS NOT NULL",
        [
            f"SELECT * FROM ({over(batch)}) "
            f"WHERE {part} >= {literal(batch.start)} AND {part} < {literal(batch.end)}"
            for batch in (Interval(start, end) for start, end in pairwise(ends))
        ],
    )


def wrong(session: SparkSession, cuts: Sequence[Cut]) -> list[str]:
    """The queries that have other rows in batches than in one piece."""
    found = iter(rows_of(session, [sql for one in cuts for sql in (one.whole, *one.batches)]))
    differing = []
    for one in cuts:
        whole, *batches = (next(found) for _ in range(1 + len(one.batches)))
        if whole is None or None in batches:
            differing.append(f"{one.name}: Spark does not take it")
            continue
        built: Counter[str] = Counter()
        for batch in batches:
            built.update(batch or ())
        if built != whole and (seen := difference(_values(whole), _values(built))):
            differing.append(f"{one.name}: {seen}")
    return differing


def _values(rows: Counter[str]) -> list[dict[str, Any]]:
    return [json.loads(row) for row in rows.elements()]


def test_the_queries_of_the_catalog(spark: SparkSession, tmp_path: Path) -> None:
    """
    Built in two batches, an admitted query of a table by cells keeps the rows of one piece.

    That is every sixth one of each theme; with another INFOLD_QUERY_SEED the others.
    """
    session, arrivals = interpreted(spark), Arrivals(Random(SEED))
    arrivals.first()
    arrivals.later()
    views(session, arrivals)
    project, cuts = project_of_admitted(), []
    for at, query in enumerate(admitted()):
        node = project[query.name]
        if (at + SEED) % 6 or node.model.incremental is None or node.model.granularity is None:
            continue
        end = node.model.granularity.floor(parse_instant_text(CUTS[at // 6 % len(CUTS)]))
        cuts.append(cut(str(query), node, plain(query), [MIN, end, MAX], _over(node, query)))

    assert wrong(session, cuts) == []
    assert len(cuts) > 50


def _over(node: Node, query: Query) -> Callable[[Interval], str]:
    def over(batch: Interval) -> str:
        sql = query.sql
        for one in sorted(node.references, key=lambda entry: -entry.start):
            name, behind = one.name.replace("raw.", "raw__"), sql[one.end :]
            rows = f"SELECT * FROM {name}{_where(one, batch)}"
            alias = f" AS {name}" if NO_ALIAS.match(behind) else ""
            sql = f"{sql[: one.start]}({rows}){alias}{behind}"
        named = {"@start_ts": literal(batch.start), "@end_ts": literal(batch.end)}
        for word, instant in named.items():
            sql = sql.replace(word, instant)
        return sql

    return over


def _where(reference: Reference, batch: Interval) -> str:
    """Which rows a reference needs: all of a table without a time."""
    column = TIMES.get(reference.name.removeprefix("raw."))
    if column is None or reference.bound is None:
        return ""
    parts = reference.bound.times_read(Ranges((batch,)))
    times = [
        f"(cast({column} AS timestamp) >= {literal(part.start)} "
        f"AND cast({column} AS timestamp) < {literal(part.end)})"
        for part in parts
    ]
    return f" WHERE {' OR '.join(times) or 'false'}"


CHOSEN = {
    "last_touch_in_thirty_days",
    "weeks_from_sunday_as_cells",
    "totals_of_two_keys",
    "last_status_with_a_whole_order",
    "month_before_by_add_months",
    "events_joined",
    "visits_of_days",
    "cohorts_by_signup_lookup",
    "except_all",
    "berlin_hours_as_a_key",
}
"""By their names."""


def test_tables_equal_plain_spark(tmp_path: Path, spark: SparkSession) -> None:
    """Tables equal plain Spark after a first load, and after every kind of change to rows."""
    chosen = [query for query in admitted() if query.name in CHOSEN]
    assert {query.name for query in chosen} == CHOSEN
    beside = Beside(tmp_path / "chosen", chosen)
    wrong = []
    for arrive in (Arrivals.first, Arrivals.later):
        arrive(beside.arrivals)
        wrong += beside.run()
    wrong += beside.wrong(interpreted(spark))

    assert not wrong, "\n".join(wrong)
