"""
What the rules accept really follows from the same cell of the inputs alone.

Queries are drawn at random, good and bad. For each that is accepted, another engine evaluates it
once over everything, and once for each cell over that cell's rows alone: the rows must be the
same. (The other way round nothing is claimed: a good query may be refused.)
"""

from __future__ import annotations

from collections import Counter
from datetime import datetime, timedelta
from functools import cache

import duckdb
from hypothesis import event, given
from hypothesis import strategies as st
from tests.declare.shop import read

from infold.interval import Granularity, instant, moment
from infold.interval import micros as micros_of

PROJECT = """
name: shop
sources:
  raw.clicks:
    path: clicks/*.json
    event_time_column: ts
    columns: {id: int, who: string, ts: timestamp, code: string}
  raw.places:
    path: places.csv
    columns: {code: string, place: string, since: timestamp}
"""
TAKEN = "---\nmaterialization: {}\n---\nSELECT * FROM raw.{}"
EVENTS = "events\nunique_key: id\ntimeseries: {event_time_column: ts}"
FILES = {
    "infold.yml": PROJECT,
    "models/clicks.sql": TAKEN.format(EVENTS, "clicks"),
    "models/orders.sql": TAKEN.format(EVENTS, "clicks"),
    "models/places.sql": TAKEN.format("table", "places"),
}

TIMES = [
    "ts",
    "ts",
    "cast(ts AS date)",
    "cast(ts AS date)",
    "date_trunc('hour', ts)",
    "date_trunc('day', ts)",
    "date_trunc('week', ts)",
    "date_trunc('month', ts)",
    "ts + INTERVAL '1' DAY",
    "cast(ts + INTERVAL '5' HOUR AS date)",
]
TABLES = ["clicks", "clicks", "clicks", "orders"]


@st.composite
def relations(draw: st.DrawFn, depth: int = 2) -> str:
    """A FROM clause that yields id, who, ts, code."""
    table = draw(st.sampled_from(TABLES))
    if depth == 0:
        return f"{table} AS x"
    inner = draw(relations(depth - 1))
    shape = draw(st.integers(0, 13))
    time = draw(st.sampled_from(TIMES))
    if shape <= 3:
        return f"{table} AS x"
    if shape == 4:
        return f"(SELECT x.id, x.who, x.ts, x.code FROM {inner} WHERE x.id % 3 <> 0) AS x"
    if shape == 5:
        kind = draw(st.sampled_from(["JOIN", "JOIN", "LEFT JOIN", "RIGHT JOIN", "FULL JOIN"]))
        lookup = f"{kind} places AS p ON x.code = p.code"
        return f"(SELECT x.id, x.who, x.ts, x.code FROM {inner} {lookup}) AS x"
    if shape == 6:
        lookup = "places AS p LEFT JOIN clicks AS c ON c.code = p.code"
        return f"(SELECT c.id, c.who, c.ts, c.code FROM {lookup}) AS x"
    if shape == 7:
        group = draw(st.sampled_from(["who", f"who, {time}", time, f"code, {time}"]))
        items = "min(id) AS id, min(who) AS who, max(ts) AS ts, min(code) AS code"
        return f"(SELECT {items} FROM {inner} GROUP BY {group}) AS x"
    if shape == 8:
        group = f"(SELECT count(*) AS id, who, {time} AS ts FROM {inner} GROUP BY 2, 3)"
        return f"(SELECT x.id, x.who, x.ts, x.who AS code FROM {group} AS x) AS x"
    if shape == 9:
        over = draw(st.sampled_from(["who", f"who, {time}", time]))
        number = f"row_number() OVER (PARTITION BY {over} ORDER BY x.ts, x.id)"
        items = f"cast({number} AS int) AS id, x.who, x.ts, x.code"
        return f"(SELECT {items} FROM {inner}) AS x"
    if shape == 10:
        word = draw(st.sampled_from(["UNION ALL", "UNION ALL", "UNION", "EXCEPT"]))
        other = draw(relations(depth - 1))
        left, right = (f"SELECT x.id, x.who, x.ts, x.code FROM {one}" for one in (inner, other))
        return f"({left} {word} {right}) AS x"
    if shape == 11:
        items = draw(st.sampled_from(["x.who", f"x.who, {time} AS ts"]))
        rows = f"(SELECT DISTINCT {items} FROM {inner})"
        whole = "1 AS id, d.who, d.ts, d.who AS code" if "ts" in items else "1 AS id, d.who"
        return f"(SELECT {whole} FROM {rows} AS d) AS x"
    if shape == 12:
        test = draw(
            st.sampled_from(
                [
                    "x.code IN (SELECT code FROM places)",
                    "x.id = (SELECT max(id) FROM clicks)",
                    "EXISTS (SELECT 1 FROM orders AS o WHERE o.who = x.who AND o.id > x.id)",
                ]
            )
        )
        return f"(SELECT x.id, x.who, x.ts, x.code FROM {inner} WHERE {test}) AS x"
    limited = "SELECT id, who, ts, code FROM clicks AS x ORDER BY ts, id LIMIT 4"
    return f"({limited}) AS x"


@st.composite
def queries(draw: st.DrawFn) -> str:
    """A query with the columns part and n."""
    source, time = draw(relations()), draw(st.sampled_from(TIMES))
    if draw(st.booleans()):
        return f"SELECT {time} AS part, x.who AS n FROM {source}"
    having = draw(st.sampled_from(["", " HAVING count(*) > 1"]))
    return f"SELECT {time} AS part, count(*) AS n FROM {source} GROUP BY 1{having}"


ROWS = [
    (1, "ann", "2024-01-31T22:10:00", "a"),
    (2, "ann", "2024-01-31T23:50:00", "b"),
    (3, "ann", "2024-02-01T00:10:00", "a"),
    (4, "bob", "2024-02-01T00:20:00", "z"),
    (5, "bob", "2024-02-03T12:00:00", "b"),
    (6, "ann", "2024-02-04T23:30:00", "b"),
    (7, "bob", "2024-02-05T00:00:00", "a"),
    (8, "ann", "2024-02-05T00:00:00", "a"),
    (9, "eve", "2024-02-05T05:00:00", "z"),
    (10, "ann", "2024-02-05T05:30:00", "b"),
]


@cache
def engine() -> duckdb.DuckDBPyConnection:
    """The other engine with a few rows around the ends of a month and of a week."""
    made = duckdb.connect()
    made.execute("SET threads = 1")
    for name, rows in (("clicks", ROWS), ("orders", ROWS[1::2])):
        made.execute(f"CREATE TABLE all_{name} (id int, who text, ts timestamp, code text)")
        made.executemany(f"INSERT INTO all_{name} VALUES (?, ?, ?, ?)", rows)
    made.execute("CREATE TABLE places (code text, place text, since timestamp)")
    places = [
        ("a", "here", "2024-02-01"),
        ("b", "there", "2024-02-04"),
        ("b", "b2", None),
        ("y", "no", None),
    ]
    made.executemany("INSERT INTO places VALUES (?, ?, ?)", places)
    return made


def evaluated(sql: str, start: datetime, end: datetime) -> Counter[tuple[datetime | None, object]]:
    """The rows of a query over the rows of an interval."""
    for name in ("clicks", "orders"):
        where = f"ts >= TIMESTAMP '{start}' AND ts < TIMESTAMP '{end}'"
        engine().execute(f"CREATE OR REPLACE VIEW {name} AS SELECT * FROM all_{name} WHERE {where}")
    rows = engine().execute(f"SELECT cast(part AS timestamp), n FROM ({sql})").fetchall()
    return Counter((part, n) for part, n in rows)


@given(sql=queries(), granularity=st.sampled_from(["hour", "day", "day", "week", "month"]))
def test_accepted_queries_follow_from_their_own_cell(sql: str, granularity: str) -> None:
    """Cell by cell gives the same rows as all at once."""
    series = f"{{event_time_column: part, partition_column: part, granularity: {granularity}}}"
    front = f"---\nmaterialization: table\nincremental: {{}}\ntimeseries: {series}\n---\n"
    _, found = read({**FILES, "models/subject.sql": front + sql})
    event("accepted" if not found else found[0].slug)
    if found:
        return
    whole = evaluated(sql, datetime(2000, 1, 1), datetime(2100, 1, 1))  # noqa: DTZ001 (naive UTC)
    parts = [part for part, _ in whole] + [datetime.fromisoformat(row[2]) for row in ROWS]
    cells = {cell(part, Granularity(granularity)) for part in parts if part is not None}
    built: Counter[tuple[datetime | None, object]] = Counter()
    for start, end in cells:
        rows = evaluated(sql, start, end)
        kept = {row: n for row, n in rows.items() if row[0] is not None and start <= row[0] < end}
        built.update(kept)

    assert built == whole, sql


def cell(part: datetime, granularity: Granularity) -> tuple[datetime, datetime]:
    """The cell that a naive UTC time lies in."""
    found = granularity.cell(instant(part.isoformat()))
    start, end = moment(found.start), moment(found.end)
    assert micros_of(end) - micros_of(start) >= timedelta(hours=1) // timedelta(microseconds=1)
    return start.replace(tzinfo=None), end.replace(tzinfo=None)
