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
from hypothesis import event, given
from hypothesis import strategies as st
from tests.declare.shop import read

from infold.interval import Granularity, Interval, Ranges, instant, moment
from infold.project import Node, Reference

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
    "ts - INTERVAL '90' MINUTE",
    "cast(ts + INTERVAL '5' HOUR AS date)",
    "cast(cast(ts AS date) - INTERVAL '7' DAY AS date)",
    "cast(date_trunc('month', ts) + INTERVAL '1' MONTH AS date)",
]
FRAMES = [
    "INTERVAL '36' HOUR PRECEDING AND CURRENT ROW",
    "INTERVAL '2' DAY PRECEDING AND INTERVAL '1' HOUR PRECEDING",
    "CURRENT ROW AND INTERVAL '1' DAY FOLLOWING",
    "UNBOUNDED PRECEDING AND CURRENT ROW",
]
LINKS = [
    "o.at BETWEEN x.ts - INTERVAL '1' DAY AND x.ts",
    "cast(o.at AS date) = cast(x.ts AS date)",
    "cast(o.at AS date) = cast(x.ts AS date) - INTERVAL '1' DAY",
    "o.at > x.ts - INTERVAL '2' DAY AND x.ts + INTERVAL '3' HOUR > o.at AND o.by = x.who",
    "o.at >= cast(x.ts AS date) AND o.at < cast(x.ts AS date) + INTERVAL '1' DAY",
    "o.at - x.ts <= INTERVAL '1' DAY AND o.at >= x.ts",
    "o.at >= cast(x.ts AS date) AND o.at <= x.ts",
    "o.at <= x.ts",
    "o.by = x.who",
]
TABLES = ["clicks", "clicks", "clicks", "orders"]


@st.composite
def relations(draw: st.DrawFn, depth: int = 2) -> str:
    """A FROM clause that yields id, who, ts, code."""
    table = draw(st.sampled_from(TABLES))
    if depth == 0:
        return f"{table} AS x"
    inner = draw(relations(depth - 1))
    shape = draw(st.integers(0, 18))
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
    if shape == 14:
        by = draw(st.sampled_from(["", "", "PARTITION BY x.who "]))
        down = draw(st.sampled_from(["", "", " DESC"]))
        between = draw(st.sampled_from(FRAMES))
        frame = f"{by}ORDER BY cast(x.ts AS timestamp){down} RANGE BETWEEN {between}"
        items = f"cast(count(*) OVER ({frame}) AS int) AS id, x.who, x.ts, x.code"
        return f"(SELECT {items} FROM {inner}) AS x"
    if shape <= 16:
        kind = draw(
            st.sampled_from(
                ["JOIN", "JOIN", "LEFT JOIN", "LEFT JOIN", "RIGHT JOIN", "SEMI JOIN", "ANTI JOIN"]
            )
        )
        other = draw(relations(depth - 1))
        right = f"(SELECT x.id AS nr, x.who AS by, x.ts AS at FROM {other}) AS o"
        link = draw(st.sampled_from(LINKS))
        where = draw(st.sampled_from(LINKS)) if kind == "JOIN" and draw(st.booleans()) else "true"
        at = (
            "x.ts"
            if kind in ("SEMI JOIN", "ANTI JOIN")
            else draw(st.sampled_from(["x.ts", "x.ts", "o.at"]))
        )
        items = f"x.id, x.who, {at} AS ts, x.code"
        return f"(SELECT {items} FROM {inner} {kind} {right} ON {link} WHERE {where}) AS x"
    if shape == 18:
        call = draw(st.sampled_from(["lag", "lag", "lead"]))
        at = "cast(x.ts AS timestamp)"
        over = f"{call}({at}) OVER (PARTITION BY x.who ORDER BY {at})"
        apart = f"{at} - {over}" if call == "lag" else f"{over} - {at}"
        near = f"{apart} <= INTERVAL '{draw(st.sampled_from([1, 30]))}' HOUR"
        if draw(st.booleans()):
            items = f"CASE WHEN {near} THEN 0 ELSE x.id END AS id, x.who, x.ts, x.code"
            return f"(SELECT {items} FROM {inner}) AS x"
        inside = f"SELECT x.id, x.who, x.ts, x.code, {at} AS t, {over} AS p FROM {inner}"
        ends = "x.p >= x.t - INTERVAL '5' HOUR AND x.t >= x.p - INTERVAL '30' HOUR"
        return f"(SELECT x.id, x.who, x.ts, x.code FROM ({inside}) AS x WHERE {ends}) AS x"
    if shape == 17:
        table = f"WITH c AS (SELECT x.id, x.who, x.ts, x.code FROM {inner})"
        link = draw(st.sampled_from(LINKS)).replace("o.at", "o.ts").replace("o.by", "o.who")
        kind = draw(st.sampled_from(["JOIN", "LEFT JOIN"]))
        items = f"{table} SELECT x.id, x.who, x.ts, o.code FROM c AS x {kind} c AS o ON {link}"
        return f"({items}) AS x"
    limited = "SELECT id, who, ts, code FROM clicks AS x ORDER BY ts, id LIMIT 4"
    return f"({limited}) AS x"


@st.composite
def queries(draw: st.DrawFn) -> str:
    """A query with the columns part and n."""
    source, time = draw(relations()), draw(st.sampled_from(TIMES))
    if draw(st.booleans()):
        shown = draw(st.sampled_from(["x.id", "x.id", "x.who", "x.code"]))
        return f"SELECT {time} AS part, {shown} AS n FROM {source}"
    counted = draw(st.sampled_from(["count(*)", "sum(x.id)", "sum(x.id)", "max(x.code)"]))
    having = draw(st.sampled_from(["", " HAVING count(*) > 1"]))
    return f"SELECT {time} AS part, {counted} AS n FROM {source} GROUP BY 1{having}"


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
        made.execute(f"CREATE TABLE {name} (id int, who text, ts timestamp, code text)")
        made.executemany(f"INSERT INTO {name} VALUES (?, ?, ?, ?)", rows)
    made.execute("CREATE TABLE places (code text, place text, since timestamp)")
    places = [
        ("a", "here", "2024-02-01"),
        ("b", "there", "2024-02-04"),
        ("b", "b2", None),
        ("y", "no", None),
    ]
    made.executemany("INSERT INTO places VALUES (?, ?, ?)", places)
    return made


Rows = Counter[tuple[datetime | None, object]]


def evaluated(node: Node, times: Callable[[Reference], Ranges], without: int = 0) -> Rows:
    """The rows of a model over its references' rows of certain times; one row may be missing."""
    sql = node.model.sql
    for reference in sorted(node.references, key=lambda entry: -entry.start):
        rows = f"SELECT * FROM {reference.name}"
        if reference.name != "places":
            parts = [
                f"(ts >= {_literal(part.start)} AND ts < {_literal(part.end)})"
                for part in times(reference)
            ]
            rows += f" WHERE id <> {without} AND ({' OR '.join(parts) or 'false'})"
        sql = f"{sql[: reference.start]}({rows}){sql[reference.end :]}"
    found = engine().execute(f"SELECT cast(part AS timestamp), n FROM ({sql})").fetchall()
    return Counter((part, n) for part, n in found)


def _literal(at: int) -> str:
    """An instant as the other engine writes it, ends of time cut off."""
    return f"TIMESTAMP '{moment(min(max(at, FIRST), LAST)).replace(tzinfo=None)}'"


FIRST, LAST = instant("1900-01-01"), instant("2100-01-01")


def everything(_: Reference) -> Ranges:
    """All times."""
    return Ranges.ever()


@given(
    sql=queries(),
    granularity=st.sampled_from(["hour", "day", "day", "week", "month"]),
    without=st.integers(1, 10),
)
def test_accepted_queries_follow_from_what_they_are_said_to_read(
    sql: str, granularity: str, without: int
) -> None:
    """Cell by cell gives the same rows as all at once, and changes show where they should."""
    series = f"{{event_time_column: part, partition_column: part, granularity: {granularity}}}"
    front = f"---\nmaterialization: table\nincremental: {{}}\ntimeseries: {series}\n---\n"
    project, found = read({**FILES, "models/subject.sql": front + sql})
    event("accepted" if not found else found[0].slug)
    if project is None or found:
        return
    node, unit = project["subject"], Granularity(granularity)
    whole = evaluated(node, everything)
    parts = [part for part, _ in whole] + [datetime.fromisoformat(row[2]) for row in ROWS]
    built: Rows = Counter()
    for cell in {unit.cell(at(part)) for part in parts if part is not None}:

        def needed(reference: Reference, cell: Interval = cell) -> Ranges:
            assert reference.bound is not None, reference
            return reference.bound.read(Ranges((cell,)))

        rows = evaluated(node, needed)
        built.update({row: n for row, n in rows.items() if row[0] and at(row[0]) in cell})

    assert built == Counter({row: n for row, n in whole.items() if row[0] is not None}), sql

    fewer = evaluated(node, everything, without)
    gone = at(datetime.fromisoformat(ROWS[without - 1][2]))
    changed = {part for part, _ in (whole - fewer) + (fewer - whole) if part is not None}
    came = Ranges((Granularity.DAY.cell(gone),))
    reached = Ranges.of(part for entry in node.inputs for part in entry.reached(came))
    stale = unit.cover(reached)

    assert all(stale.overlaps(Interval(at(part), at(part) + 1)) for part in changed), sql


def at(part: datetime) -> int:
    """The instant of a naive UTC time."""
    return instant(part.isoformat())
