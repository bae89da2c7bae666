"""Queries drawn at random, good and bad, over a few rows around the ends of a month and a week."""

from __future__ import annotations

from collections.abc import Callable

from hypothesis import strategies as st
from tests.analysis.rules.drawn_sides import either, guarded
from tests.analysis.rules.forms import (
    FRAMES,
    LINKS,
    NAMED,
    NEAR,
    NESTED,
    PARTS,
    SUBQUERIES,
    TABLES,
    TIMES,
    VALUES,
)

from infold.core.interval import Ranges, datetime_of, parse_instant_text
from infold.core.project import Node, Reference


def declared(columns: str) -> str:
    """A project with a source ``raw.clicks`` of these columns, ``ts`` among them."""
    return f"""
name: shop
sources:
  raw.clicks:
    path: clicks/*.json
    event_time_column: ts
    columns: {{{columns}}}
"""


LOOKUP = """\
  raw.places:
    path: places.csv
    columns: {code: string, place: string, since: timestamp}
"""
TAKEN = "---\nmaterialization: {}\n---\nSELECT * FROM raw.{}"
EVENTS = "events\nunique_key: id\ntimeseries: {event_time_column: ts}"
FILES = {
    "infold.yml": declared("id: int, who: string, ts: timestamp, code: string") + LOOKUP,
    "models/clicks.sql": TAKEN.format(EVENTS, "clicks"),
    "models/orders.sql": TAKEN.format(EVENTS, "clicks"),
    "models/places.sql": TAKEN.format("table", "places"),
}


@st.composite
def relations(draw: st.DrawFn, depth: int = 2) -> str:
    """A FROM clause that yields id, who, ts, code."""
    table = draw(st.sampled_from(TABLES))
    if depth == 0:
        return f"{table} AS x"
    inner = draw(relations(depth - 1))
    shape = draw(st.sampled_from([*range(32), 12, 12, 19, 21, 30]))
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
        group = draw(st.sampled_from(["who", f"who, {time}", time, f"code, {time}", *PARTS]))
        items = "min(id) AS id, min(who) AS who, max(ts) AS ts, min(code) AS code"
        return f"(SELECT {items} FROM {inner} GROUP BY {group}) AS x"
    if shape == 8:
        group = f"(SELECT count(*) AS id, who, {time} AS ts FROM {inner} GROUP BY 2, 3)"
        return f"(SELECT x.id, x.who, x.ts, x.who AS code FROM {group} AS x) AS x"
    if shape == 9:
        over = draw(st.sampled_from(["who", f"who, {time}", time, *PARTS]))
        number = f"row_number() OVER (PARTITION BY {over} ORDER BY x.ts, x.id)"
        items = f"cast({number} AS int) AS id, x.who, x.ts, x.code"
        return f"(SELECT {items} FROM {inner}) AS x"
    if shape == 10:
        word = draw(st.sampled_from(["UNION ALL", "UNION ALL", "UNION", "EXCEPT", "INTERSECT"]))
        other = draw(relations(depth - 1))
        items = draw(st.sampled_from(["x.id, x.who, x.ts, x.code"] * 3 + ["x.id, x.who, x.code"]))
        left, right = (f"SELECT {items} FROM {one}" for one in (inner, other))
        if "ts" not in items:
            rows = f"({left} {word} {right}) AS d JOIN {draw(relations(0))} ON d.id = x.id"
            return f"(SELECT d.id, d.who, x.ts, d.code FROM {rows}) AS x"
        return f"({left} {word} {right}) AS x"
    if shape == 11:
        items = draw(st.sampled_from(["x.who", f"x.who, {time} AS ts"]))
        rows = f"(SELECT DISTINCT {items} FROM {inner})"
        whole = "1 AS id, d.who, d.ts, d.who AS code" if "ts" in items else "1 AS id, d.who"
        return f"(SELECT {whole} FROM {rows} AS d) AS x"
    if shape == 12:
        test, items = draw(asked(depth)), "x.id, x.who, x.ts, x.code"
        stands = draw(st.integers(0, 5))
        if stands == 0:
            flag = f"CASE WHEN {test} THEN 1 ELSE 0 END AS id"
            return f"(SELECT {flag}, x.who, x.ts, x.code FROM {inner}) AS x"
        if stands == 1:
            other = draw(st.sampled_from([f"NOT ({test})", f"({test} OR x.id < 3)"]))
            return f"(SELECT {items} FROM {inner} WHERE {other}) AS x"
        return f"(SELECT {items} FROM {inner} WHERE {test}) AS x"
    if shape in (19, 20):
        value = draw(values(depth))
        return f"(SELECT {value} AS id, x.who, x.ts, x.code FROM {inner}) AS x"
    if shape == 21:
        test = draw(asked(depth, at="x.day", who="x.most"))
        day = draw(st.sampled_from(["cast(x.ts AS date)", "cast(x.ts AS date)", time]))
        rest = "max(x.who) AS most, max(x.id) AS id, max(x.code) AS code"
        days = f"SELECT {day} AS day, {rest} FROM {inner} GROUP BY 1"
        items = "x.id, x.most AS who, cast(x.day AS timestamp) AS ts, x.code"
        return f"(SELECT {items} FROM ({days}) AS x WHERE {test}) AS x"
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
    if shape == 22:
        return f"({draw(optional(inner, depth))}) AS x"
    if shape == 24:
        return f"({draw(sides(inner, depth))}) AS x"
    if shape == 26:
        return f"({draw(calendar(depth))}) AS x"
    if shape == 27:
        return f"({draw(chained(inner, depth))}) AS x"
    if shape == 25:
        return f"({draw(beside(inner))}) AS x"
    if shape == 28:
        return f"({draw(natural(inner, depth))}) AS x"
    if shape == 29:
        return f"({draw(lateral(inner, depth))}) AS x"
    if shape == 30:
        return f"({draw(either(inner, draw(relations(depth - 1))))}) AS x"
    if shape == 31:
        return f"({draw(guarded(f'{table} AS x'))}) AS x"
    limited = "SELECT id, who, ts, code FROM clicks AS x ORDER BY ts, id LIMIT 4"
    return f"({limited}) AS x"


@st.composite
def optional(draw: st.DrawFn, inner: str, depth: int) -> str:
    """Rows brought together by the time of the optional side of an outer join, NULLs among it."""
    kind = draw(st.sampled_from(["LEFT JOIN", "LEFT JOIN", "RIGHT JOIN", "FULL JOIN", "JOIN"]))
    table = draw(st.sampled_from(["orders AS x", "orders AS x", draw(relations(depth - 1))]))
    right = f"(SELECT x.id AS nr, x.who AS by, x.ts AS at FROM {table}) AS o"
    link = draw(st.sampled_from(["o.at = x.ts", "o.at = x.ts AND o.nr = x.id", *LINKS[:3]]))
    where = draw(st.sampled_from(["true", "true", "true", "o.at IS NOT NULL", "o.nr > x.id - 1"]))
    source = f"{inner} {kind} {right} ON {link} WHERE {where}"
    at, ts = draw(st.sampled_from([("o.at", "x.ts"), ("o.at", "x.ts"), ("x.ts", "o.at")]))
    if draw(st.booleans()):  # the same a query further out
        items = f"x.id, x.who, x.code, {at} AS key, {ts} AS ts"
        again = draw(st.sampled_from(["", "", f" UNION ALL SELECT {items} FROM {source}"]))
        source, at, ts = f"(SELECT {items} FROM {source}{again}) AS x", "x.key", "x.ts"
    key = draw(st.sampled_from(["ts", "ts", *TIMES])).replace("ts", at)
    shown = draw(st.sampled_from([ts, ts, ts, at]))
    form = draw(st.integers(0, 3))
    if form == 0:
        items = f"count(*) AS id, min(x.who) AS who, max({shown}) AS ts, min(x.code) AS code"
        return f"SELECT {items} FROM {source} GROUP BY {key}"
    if form == 1:
        items = f"count(*) AS id, min(x.who) AS who, {key} AS ts, min(x.code) AS code"
        return f"SELECT {items} FROM {source} GROUP BY 3"
    over = f"PARTITION BY {key}"
    if form == 2:
        frame = draw(st.sampled_from(FRAMES[:3]))
        over = f"ORDER BY cast({key} AS timestamp) RANGE BETWEEN {frame}"
    items = f"cast(count(*) OVER ({over}) AS int) AS id, x.who, {shown} AS ts, x.code"
    return f"SELECT {items} FROM {source}"


@st.composite
def sides(draw: st.DrawFn, inner: str, depth: int) -> str:
    """Rows brought together by a column that is another one on each side of a UNION ALL."""
    other = draw(relations(depth - 1))
    here, there = (draw(st.sampled_from(TIMES)).replace("ts", "x.ts") for _ in range(2))
    rows = " UNION ALL ".join(
        f"SELECT x.id, x.who, x.ts, x.code, cast({key} AS timestamp) AS k FROM {source}"
        for key, source in ((here, inner), (there, other))
    )
    form = draw(st.integers(0, 2))
    if form == 0:
        over = draw(
            st.sampled_from(["PARTITION BY x.k", f"ORDER BY x.k RANGE BETWEEN {FRAMES[0]}"])
        )
        items = f"cast(count(*) OVER ({over}) AS int) AS id, x.who, x.ts, x.code"
        return f"SELECT {items} FROM ({rows}) AS x"
    if form == 1:
        items = "count(*) AS id, min(x.who) AS who, max(x.ts) AS ts, min(x.code) AS code"
        return f"SELECT {items} FROM ({rows}) AS x GROUP BY x.k"
    link = draw(st.sampled_from(LINKS[:4])).replace("o.at", "o.ts").replace("o.by", "o.who")
    link = link.replace("x.ts", "x.k")
    return f"SELECT x.id, x.who, x.ts, o.code FROM ({rows}) AS x JOIN orders AS o ON {link}"


@st.composite
def calendar(draw: st.DrawFn, depth: int) -> str:
    """Rows of a lookup that are kept, whether rows of a time go with them or not."""
    right = f"(SELECT x.id AS nr, x.who AS by, x.ts AS at FROM {draw(relations(depth - 1))}) AS o"
    link = draw(st.sampled_from(LINKS)).replace("x.ts", "p.since").replace("x.who", "p.code")
    rows = f"places AS p LEFT JOIN {right} ON {link}"
    if draw(st.booleans()):
        rows = f"{right} RIGHT JOIN places AS p ON {link}"
    at = draw(st.sampled_from(["p.since", "p.since", "p.since", "o.at"]))
    if draw(st.booleans()):
        items = "count(o.nr) AS id, min(p.place) AS who, p.since AS ts, max(o.by) AS code"
        return f"SELECT {items} FROM {rows} GROUP BY p.since"
    return f"SELECT o.nr AS id, p.place AS who, {at} AS ts, p.code FROM {rows}"


@st.composite
def chained(draw: st.DrawFn, inner: str, depth: int) -> str:
    """A join to the optional side of another one."""
    first, second = (draw(st.sampled_from(LINKS)) for _ in range(2))
    kinds = [draw(st.sampled_from(["LEFT JOIN", "LEFT JOIN", "JOIN"])) for _ in range(2)]
    second = second.replace("x.ts", "o.at").replace("x.who", "o.by").replace("o.at", "l.at", 1)
    other = draw(relations(depth - 1))
    right = f"(SELECT x.id AS nr, x.who AS by, x.ts AS at FROM {other}) AS o"
    last = "(SELECT id AS nr, who AS by, ts AS at FROM orders) AS l"
    rows = f"{inner} {kinds[0]} {right} ON {first} {kinds[1]} {last} ON {second}"
    at = draw(st.sampled_from(["x.ts", "x.ts", "o.at", "l.at"]))
    return f"SELECT l.nr AS id, o.by AS who, {at} AS ts, x.code FROM {rows}"


@st.composite
def beside(draw: st.DrawFn, inner: str) -> str:
    """Several windows in one SELECT."""
    calls = []
    for _ in range(draw(st.integers(2, 3))):
        down, frame = draw(st.sampled_from(["", " DESC"])), draw(st.sampled_from(FRAMES[:3]))
        over = [f"ORDER BY cast(x.ts AS timestamp){down} RANGE BETWEEN {frame}"] * 2
        over.append(f"PARTITION BY {draw(st.sampled_from(TIMES)).replace('ts', 'x.ts')}")
        calls.append(f"count(*) OVER ({draw(st.sampled_from(over))})")
    return f"SELECT cast({' + '.join(calls)} AS int) AS id, x.who, x.ts, x.code FROM {inner}"


@st.composite
def natural(draw: st.DrawFn, inner: str, depth: int) -> str:
    """A join by the columns that both sides happen to have."""
    kind = draw(st.sampled_from(["", "", "LEFT ", "RIGHT ", "FULL "]))
    day = draw(st.sampled_from(TIMES[2:])).replace("ts", "x.ts")
    left = f"SELECT x.id, x.who, x.ts, x.code, {day} AS day FROM {inner}"
    shared = ["x.ts", "x.ts", "x.who, x.ts", f"{day} AS day", f"{day} AS day, x.who", "x.who"]
    right = f"SELECT x.id AS nr, {draw(st.sampled_from(shared))} FROM {draw(relations(depth - 1))}"
    if draw(st.integers(0, 5)) == 0:
        right = "SELECT code, place AS nr FROM places"
    shown = draw(st.sampled_from(["id, who, ts, code"] * 3 + ["id, who, day AS ts, code"]))
    return f"SELECT {shown} FROM ({left}) AS l NATURAL {kind}JOIN ({right}) AS r"


@st.composite
def lateral(draw: st.DrawFn, inner: str, depth: int) -> str:
    """Rows beside those of a subquery that names them."""
    link, other = draw(st.sampled_from(LINKS)), draw(others(depth))
    items = draw(
        st.sampled_from(
            [
                "o.nr, o.by, o.at",
                "o.nr, x.who AS by, o.at",
                "count(*) AS nr, max(o.by) AS by, max(o.at) AS at",
                "sum(o.nr) AS nr, min(o.by) AS by, min(o.at) AS at",
            ]
        )
    )
    word = draw(st.sampled_from(["JOIN", "JOIN", "LEFT JOIN"]))
    beside = f"LATERAL (SELECT {items} FROM {other} WHERE {link}) AS l"
    join = f", {beside}" if draw(st.booleans()) else f" {word} {beside} ON true"
    shown = draw(st.sampled_from(["x.ts", "x.ts", "l.at"]))
    return f"SELECT cast(l.nr AS int) AS id, l.by AS who, {shown} AS ts, x.code FROM {inner}{join}"


@st.composite
def others(draw: st.DrawFn, depth: int) -> str:
    """What a subquery reads: nr, by, at."""
    if draw(st.booleans()):
        table = draw(st.sampled_from(TABLES))
        return f"(SELECT id AS nr, who AS by, ts AS at FROM {table}) AS o"
    if draw(st.integers(0, 3)) == 0:  # some times are NULL
        rows = "clicks AS r LEFT JOIN orders AS l ON l.ts = r.ts AND l.id = r.id"
        return f"(SELECT r.id AS nr, r.who AS by, l.ts AS at FROM {rows}) AS o"
    inner = draw(relations(max(depth - 1, 0)))
    return f"(SELECT x.id AS nr, x.who AS by, x.ts AS at FROM {inner}) AS o"


@st.composite
def asked(draw: st.DrawFn, depth: int, at: str = "x.ts", who: str = "x.who") -> str:
    """A predicate over x with a subquery; ``at`` and ``who`` are what x calls these columns."""
    link, form = draw(st.sampled_from(LINKS)), draw(st.sampled_from(NAMED))
    if draw(st.booleans()):
        word = draw(st.sampled_from(["EXISTS", "EXISTS", "NOT EXISTS"]))
        form = f"{word} ({draw(st.sampled_from(SUBQUERIES))})"
    of_place = link.replace("x.ts", "p.since").replace("x.who", "p.code")
    form = form.replace("{link}", link).replace("{near}", draw(st.sampled_from(NEAR)))
    form = (
        form.replace("{nested}", NESTED)
        .replace("x.ts", at)
        .replace("x.who", who)
        .replace("{place_link}", of_place)
    )
    return form.format(other=draw(others(depth)))


@st.composite
def values(draw: st.DrawFn, depth: int) -> str:
    """A number for each x, from a scalar subquery."""
    link, other = draw(st.sampled_from(LINKS)), draw(others(depth))
    return f"cast({draw(st.sampled_from(VALUES)).format(other=other, link=link)} AS int)"


@st.composite
def queries(draw: st.DrawFn) -> str:
    """A query with the columns part and n."""
    if draw(st.integers(0, 7)) == 0:  # a subquery and nothing around it
        if draw(st.booleans()):
            return f"SELECT cast(x.ts AS date) AS part, {draw(values(0))} AS n FROM clicks AS x"
        no = draw(st.sampled_from(["", "", "NOT "]))
        where = f"{no}({draw(asked(0))})"
        return f"SELECT cast(x.ts AS date) AS part, x.id AS n FROM clicks AS x WHERE {where}"
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

PLACES = [
    ("a", "here", "2024-02-01"),
    ("b", "there", "2024-02-04"),
    ("b", "b2", None),
    ("y", "no", None),
]

GRANULARITIES = st.sampled_from(["hour", "day", "day", "week", "month"])


def model(sql: str, granularity: str) -> str:
    """The file of a model of a drawn query."""
    series = f"{{event_time_column: part, partition_column: part, granularity: {granularity}}}"
    return f"---\nmaterialization: table\nincremental: {{}}\ntimeseries: {series}\n---\n{sql}"


def replaced(node: Node, times: Callable[[Reference], Ranges | None], without: int = 0) -> str:
    """
    A model's query over no more of each reference than its rows of certain times.

    None for all rows, as of tables without a time; one row, by its id, may be missing.
    """
    sql = node.model.sql
    for reference in sorted(node.references, key=lambda entry: -entry.start):
        rows, wanted = f"SELECT * FROM {reference.name}", times(reference)
        if wanted is not None:
            parts = [
                f"(ts >= {literal(part.start)} AND ts < {literal(part.end)})" for part in wanted
            ]
            rows += f" WHERE id <> {without} AND ({' OR '.join(parts) or 'false'})"
        sql = f"{sql[: reference.start]}({rows}){sql[reference.end :]}"
    return sql


_FIRST, _LAST = parse_instant_text("1900-01-01"), parse_instant_text("2100-01-01")


def literal(at: int) -> str:
    """An instant as both engines write it in UTC, ends of time cut off."""
    return f"TIMESTAMP '{datetime_of(min(max(at, _FIRST), _LAST)).replace(tzinfo=None)}'"
