"""
What is refused is wrong cell by cell: no refusal is laziness.

Each refused query of the `.sql` files is evaluated by another engine over a few rows, once over all
of them and once for each cell over the cell's own rows, and the rows have to differ. Queries whose
rows depend on the order of their inputs are evaluated over both orders instead. Where neither can
show anything, the file says why (`-- alike: reason`), or `REASONS` does for all findings of a kind.
Accepted queries go through the same, over the range that they are expected to read, and must not
differ: what finds a difference everywhere finds nothing.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from functools import cache

import duckdb
import pytest
import sqlglot
from tests.analysis.rules.cases import Case, cases, files
from tests.declare.shop import read

from infold.core.interval import Granularity, Interval, datetime_of, parse_instant_text
from infold.core.project import Bound

pytestmark = pytest.mark.deep

REASONS = {
    "clock": "another value at every run, which no rows show",
    "not-deterministic": "another value at every run or place, which no rows show",
    "collation": "which of equal texts is shown follows from no rows",
    "order-not-total": "rows that tie come as they come; Spark shows some in test_determined.py",
    "not-row-wise": "events are taken in row by row, and are no query over cells",
    "not-by-key": "kept by key, and no query over cells",
    "unknown-column": "no query that can be evaluated",
    "not-a-time": "what has no time is in no cell, so there is no query over cells",
    "not-stored": "a table has no columns of such types",
    "unnamed-column": "a table needs names",
    "duplicate-column": "a table needs names that differ",
    "reserved-column": "a table with names that infold keeps for itself",
    "not-session-wise": "sessions are folded by island, and are no query over cells",
    "column-outside-aggregate": "sessions are folded by island, and are no query over cells",
    "nested-aggregate": "sessions are folded by island, and are no query over cells",
    "session-column": "sessions are folded by island, and are no query over cells",
    "no-event-time": "sessions are folded by island, and are no query over cells",
    "bad-sql": "no query that can be evaluated",
    "not-one-select": "no query that can be evaluated",
    "unsupported-sql": "no query that can be evaluated",
    "unknown-function": "no query that can be evaluated",
    "unknown-table": "no query that can be evaluated",
    "unknown-variable": "no query that can be evaluated",
}
"""Findings that are not about what rows a cell is made from."""

BY_ORDER = frozenset({"order-dependent", "limit-without-order"})

CLICKS = [
    ("1", "ann", "2024-01-30 22:10", "/a", 1, "a", "MONTH", ["t"]),
    ("2", "ann", "2024-01-31 23:50", "/b", 2, "b", "DAY", ["t", "u"]),
    ("3", "ann", "2024-02-01 00:10", "/a", 2, "a", "HOUR", []),
    ("4", "bob", "2024-02-01 09:20", "/a", 3, "z", "MONTH", ["u"]),
    ("5", "bob", "2024-02-01 09:20", "/d", 4, "b", "MONTH", []),
    ("6", "bob", "2024-02-03 23:58", "", 2, "b", "YEAR", ["t"]),
    ("7", "ann", "2024-02-04 00:02", "/a", 1, "a", "MONTH", []),
    ("8", "ann", "2024-02-04 11:00", "/e", 5, "b", "MONTH", []),
    ("9", "bob", "2024-02-05 00:00", "/a", 1, "a", "MONTH", []),
    ("10", "eve", "2024-02-06 05:00", "/b", 0, "z", "MONTH", []),
    ("11", "eve", "2024-02-06 05:30", "/f", 0, "a", "MONTH", []),
    ("12", "ann", "2024-02-06 06:00", "/a", 7, "a", "MONTH", []),
]
SESSIONS = [
    ("s1", "ann", "2024-01-31 23:50", "2024-02-01 00:10", 2, 4),
    ("s2", "bob", "2024-02-03 23:58", "2024-02-03 23:58", 1, 2),
    ("s3", "ann", "2024-02-04 00:02", "2024-02-04 00:02", 1, 1),
    ("s4", "eve", "2024-02-06 05:00", "2024-02-06 05:30", 2, 0),
]
DAILY = [
    ("2024-01-31", "ann", 1),
    ("2024-02-01", "bob", 2),
    ("2024-02-03", "bob", 1),
    ("2024-02-04", "ann", 2),
    ("2024-02-04", "bob", 1),
    ("2024-02-06", "eve", 2),
    ("2024-02-07", "joe", 4),
]
ARRIVALS = [
    (row[2][:10], row[2][:10] if row[2] in [session[2] for session in SESSIONS] else None)
    for row in CLICKS
]
HOLIDAYS = [("2024-02-01", "first"), ("2024-02-05", "fifth")]
COUNTRIES = [
    ("a", "Austria", "b", "2024-01-30 12:00"),
    ("b", "Belgium", "", "2024-02-05 00:00"),
    ("y", "Yemen", "a", "2024-02-03 00:00"),
]
USERS = [("ann", "2024-01-30 22:10"), ("bob", "2024-02-01 09:20"), ("eve", "2024-02-06 05:00")]

COLUMNS = {
    "clicks": "event_id text, user_id text, event_ts timestamp, url text, amount int, code text, "
    "unit text, tags text[]",
    "sessions": "session_id text, user_id text, session_start timestamp, session_end timestamp, "
    "events int, revenue int",
}
TABLES: dict[str, tuple[str, str | None, list[tuple[object, ...]]]] = {
    "clicks": (COLUMNS["clicks"], "event_ts", [*CLICKS]),
    "sessions": (COLUMNS["sessions"], "session_start", [*SESSIONS]),
    "daily": ("day date, user_id text, n int", "day", [*DAILY]),
    "arrivals": ("day date, came date", "day", [*ARRIVALS]),
    "raw.holidays": ("day date, name text", "day", [*HOLIDAYS]),
    "raw.countries": ("code text, country text, parent text, since timestamp", None, [*COUNTRIES]),
    "users": ("user_id text, first_seen timestamp", None, [*USERS]),
}
"""Each table: its columns, the time by whose cells it is read, and its rows."""

Rows = Counter[tuple[object, ...]]


@cache
def engine(*, backwards: bool = False) -> duckdb.DuckDBPyConnection:
    """The other engine; each table shows the rows between two variables named for it."""
    made = duckdb.connect()
    made.execute("SET threads = 1; CREATE SCHEMA raw; CREATE SCHEMA stored")
    for name, (columns, time, rows) in TABLES.items():
        bare = name.rpartition(".")[2]
        made.execute(f"CREATE TABLE stored.{bare} ({columns})")
        marks = ", ".join("?" * len(rows[0]))
        made.executemany(
            f"INSERT INTO stored.{bare} VALUES ({marks})", rows[::-1] if backwards else rows
        )
        where = (
            f" WHERE {time} >= getvariable('{bare}_start') AND {time} < getvariable('{bare}_end')"
            if time is not None
            else ""
        )
        made.execute(f"CREATE VIEW {name} AS SELECT * FROM stored.{bare}{where}")
    made.execute("CREATE VIEW raw.clicks AS SELECT * FROM main.clicks")
    made.execute("CREATE VIEW paid AS SELECT * FROM clicks WHERE amount > 0")
    return made


NOTHING = Bound(0, 0)
EVER = Interval(parse_instant_text("1900-01-01"), parse_instant_text("2100-01-01"))


def evaluated(
    case: Case, cell: Interval, bounds: dict[str, Bound], *, backwards: bool = False
) -> Rows:
    """A query's rows from the rows of one cell; the partition column, if there is one, first."""
    on, query, window = engine(backwards=backwards), words(case), []
    for name, (_, time, _) in TABLES.items():
        bound, bare = bounds.get(name, NOTHING), name.rpartition(".")[2]
        if time is not None and (bare == "clicks" or bare in query):
            ends = {"start": cell.start - bound.before, "end": cell.end + bound.after}
            for end, at in ends.items():
                shown = datetime_of(at).replace(tzinfo=None)
                window.append(f"SET VARIABLE {bare}_{end} = TIMESTAMP '{shown}';")
    column = partition(case)
    first = f"cast({column} AS timestamp), " if column else ""
    on.execute(" ".join(window))
    rows = on.execute(f"SELECT {first}* FROM ({query})").fetchall()
    return Counter(tuple(str(v) if isinstance(v, list) else v for v in row) for row in rows)


def partition(case: Case) -> str | None:
    """The partition column of a case that is built by cells."""
    incremental = case.front.get("incremental")
    series = case.front.get("timeseries")
    if (
        not isinstance(series, dict)
        or not isinstance(incremental, dict)
        or incremental.get("enabled") is False
    ):
        return None
    return str(series.get("partition_column", series["event_time_column"]))


def words(case: Case) -> str:
    """The query in the other engine's words."""
    return case.elsewhere or transpiled(case.sql)


@cache
def transpiled(sql: str) -> str:
    """A query of Spark's in the other engine's words."""
    return sqlglot.transpile(sql, read="spark", write="duckdb")[0]


def instants(whole: Rows) -> Iterator[int]:
    """The times of all rows that are read and of all that come out."""
    for _, time, rows in TABLES.values():
        for row in rows if time is not None else ():
            for value in row:
                if isinstance(value, str) and value.startswith("2024-"):
                    yield parse_instant_text(value)
    for part, *_ in whole:
        if part is not None:
            yield parse_instant_text(str(part))


def differs(case: Case, bounds: dict[str, Bound]) -> bool:
    """Whether the cells by themselves give other rows than the whole; rows of no cell are lost."""
    whole = evaluated(case, EVER, bounds)
    series = case.front["timeseries"]
    assert isinstance(series, dict)
    unit = Granularity(series.get("granularity", "day"))
    if series.get("week_start") == "sunday":
        unit = Granularity.SUNDAY_WEEK
    if any(row[0] is None for row in whole):
        return True
    for cell in {unit.cell(at) for at in instants(whole)}:
        built, expected = (
            Counter(
                {
                    row: n
                    for row, n in rows.items()
                    if row[0] and parse_instant_text(str(row[0])) in cell
                }
            )
            for rows in (evaluated(case, cell, bounds), whole)
        )
        if built != expected:
            return True
    return False


def by_order(case: Case) -> bool:
    """Whether the rows depend on the order in which the inputs' rows come."""
    forwards, backwards = (
        evaluated(case, EVER, {}, backwards=backwards) for backwards in (False, True)
    )
    return forwards != backwards


REFUSED = [case for case in cases() if case.refused]


@pytest.mark.parametrize("case", REFUSED, ids=str)
def test_a_refused_query_is_wrong_cell_by_cell_or_its_file_says_why_not(case: Case) -> None:
    """Every refused query gives other rows cell by cell, or its file says why it cannot be
    shown.
    """
    slugs = {slug for slug, _ in case.refused}
    if slugs <= REASONS.keys():
        assert not case.alike, "REASONS says it for all"
        return
    if slugs & BY_ORDER:
        found = by_order(case)
    else:
        assert partition(case) is not None, "not built by cells: say why in REASONS"
        found = differs(case, {})

    assert found != bool(case.alike), words(case)


ACCEPTED = [case for case in cases() if not case.refused and partition(case) is not None]


@pytest.mark.parametrize("case", ACCEPTED, ids=str)
def test_an_accepted_query_is_right_cell_by_cell(case: Case) -> None:
    """Every accepted query gives the same rows cell by cell,
    from the range of each input that it is expected to read.
    """
    project, errors = read(files(case))
    assert project is not None, errors
    bounds: dict[str, Bound] = {}
    for entry in project["subject"].inputs:
        for bound in entry.bounds:
            name = "clicks" if entry.name == "raw.clicks" else entry.name
            bounds[name] = bound.widest(bounds.get(name, bound))

    assert not differs(case, bounds), words(case)
