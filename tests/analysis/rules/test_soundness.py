"""
What the rules accept really follows from the stretch of each input that they say.

Queries are drawn at random, good and bad. For each that is accepted, another engine evaluates it
once over everything, and once for each cell over the rows that each reference needs for it: the
rows must be the same. And a row that comes or goes changes only cells that its time reaches.
(The other way round nothing is claimed: a good query may be refused.)
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from datetime import datetime
from functools import cache

import duckdb
import pytest
from hypothesis import event, given
from hypothesis import strategies as st
from tests.analysis.rules.drawn import FILES, GRANULARITIES, PLACES, ROWS, model, queries, replaced
from tests.declare.shop import read

from infold.core.interval import Granularity, Interval, Ranges, parse_instant_text
from infold.core.project import Node, Reference

pytestmark = pytest.mark.deep


@cache
def engine() -> duckdb.DuckDBPyConnection:
    """The other engine with a few rows around the ends of a month and of a week."""
    made = duckdb.connect()
    made.execute("SET threads = 1")
    for name, rows in (("clicks", ROWS), ("orders", ROWS[1::2])):
        made.execute(f"CREATE TABLE {name} (id int, who text, ts timestamp, code text)")
        made.executemany(f"INSERT INTO {name} VALUES (?, ?, ?, ?)", rows)
    made.execute("CREATE TABLE places (code text, place text, since timestamp)")
    made.executemany("INSERT INTO places VALUES (?, ?, ?)", PLACES)
    return made


Rows = Counter[tuple[datetime | None, object]]


def evaluated(node: Node, times: Callable[[Reference], Ranges | None], without: int = 0) -> Rows:
    """The rows of a model over its references' rows of certain times; one row may be missing."""
    sql = replaced(node, times, without)
    found = engine().execute(f"SELECT cast(part AS timestamp), n FROM ({sql})").fetchall()
    return Counter((part, n) for part, n in found)


def everything(reference: Reference) -> Ranges | None:
    """All times."""
    return None if reference.name == "places" else Ranges.ever()


@given(sql=queries(), granularity=GRANULARITIES, without=st.integers(1, 10))
def test_accepted_queries_read_within_their_bounds(
    sql: str, granularity: str, without: int
) -> None:
    """Accepted queries give the same rows cell by cell as
    at once, and changes affect only the predicted cells.
    """
    project, found = read({**FILES, "models/subject.sql": model(sql, granularity)})
    event("accepted" if not found else found[0].slug)
    if project is None or found:
        return
    node, unit = project["subject"], Granularity(granularity)
    whole = evaluated(node, everything)
    parts = [part for part, _ in whole] + [datetime.fromisoformat(row[2]) for row in ROWS]
    built: Rows = Counter()
    for cell in {unit.cell(at(part)) for part in parts if part is not None}:

        def needed(reference: Reference, cell: Interval = cell) -> Ranges | None:
            if reference.name == "places":
                return None
            assert reference.bound is not None, reference
            return reference.bound.times_read(Ranges((cell,)))

        rows = evaluated(node, needed)
        built.update({row: n for row, n in rows.items() if row[0] and at(row[0]) in cell})

    assert built == Counter({row: n for row, n in whole.items() if row[0] is not None}), sql

    fewer = evaluated(node, everything, without)
    gone = at(datetime.fromisoformat(ROWS[without - 1][2]))
    changed = {part for part, _ in (whole - fewer) + (fewer - whole) if part is not None}
    came = Ranges((Granularity.DAY.cell(gone),))
    reached = Ranges.of(part for entry in node.inputs for part in entry.times_affected(came))
    stale = unit.cover(reached)

    assert all(stale.overlaps(Interval(at(part), at(part) + 1)) for part in changed), sql


def at(part: datetime) -> int:
    """The instant of a naive UTC time."""
    return parse_instant_text(part.isoformat())
