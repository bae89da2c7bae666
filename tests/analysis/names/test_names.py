"""
Columns are resolved as Spark resolves them; an unknown one is an error at its place.

Those that declarations name are found in any case. A star over a struct has unknown columns.
References are the exact positions of table names in a query: «these marks» are around each one that
is to be found, and are not part of the query.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.analysis.rules.drawn import EVENTS, TAKEN, declared
from tests.declare.shop import CLICKS, DAILY, SHOP, project, read

from infold.analysis.names import column_types
from infold.analysis.names.relation import Table
from infold.analysis.names.resolve import Resolved, resolve
from infold.analysis.sql.parse import parse
from infold.core.interval import DAY
from infold.core.project import Bound, Reference
from infold.declare.load import check

# ruff: noqa: E501 (one case is one row of a table)


KNOWN = {
    "clicks": Table("clicks", ("id", "User_Id", "ts", "payload", "tags")),
    "raw.countries": Table("raw.countries", ("code", "name")),
    "lake": Table("lake", None),
}


def look_up(sql: str) -> Resolved:
    """A query with its names looked up."""
    parsed = parse("m.sql", sql)
    return resolve(parsed.text, parsed.tree, KNOWN)


@pytest.mark.parametrize(
    ("sql", "columns"),
    [
        ("SELECT * FROM clicks", "id User_Id ts payload tags"),
        ("SELECT c.*, 1 AS one FROM clicks AS c", "id User_Id ts payload tags one"),
        ("SELECT * EXCEPT (payload, TAGS) FROM clicks", "id User_Id ts"),
        ("SELECT USER_ID, clicks.ts FROM clicks", "USER_ID ts"),
        ("SELECT name, countries.code FROM raw.countries", "name code"),
        ("SELECT payload.url, c.payload.size.x AS x FROM clicks c", "url x"),
        ("SELECT id AS a, a + 1 AS b FROM clicks", "a b"),
        ("SELECT id AS a FROM clicks GROUP BY a HAVING a > 1 ORDER BY a", "a"),
        ("SELECT x.id FROM (SELECT id FROM clicks) AS x", "id"),
        ("SELECT a, b FROM (SELECT id, ts FROM clicks) AS x(a, b)", "a b"),
        ("WITH x(a) AS (SELECT id FROM clicks) SELECT a FROM x", "a"),
        ("SELECT * FROM clicks JOIN raw.countries ON code = id", "id User_Id ts payload tags code name"),
        ("SELECT * FROM clicks a JOIN (SELECT id, ts AS t FROM clicks) b USING (id)", "id User_Id ts payload tags t"),
        ("SELECT * FROM clicks LEFT SEMI JOIN raw.countries ON code = id", "id User_Id ts payload tags"),
        ("SELECT * FROM (SELECT id, ts FROM clicks) NATURAL JOIN (SELECT ts, id FROM clicks)", "id ts"),
        ("SELECT id, tag FROM clicks LATERAL VIEW explode(tags) t AS tag", "id tag"),
        ("SELECT id, pos, col FROM clicks LATERAL VIEW posexplode(tags) t", "id pos col"),
        ("SELECT id, explode(tags) AS tag FROM clicks", "id tag"),
        ("SELECT id FROM clicks WHERE EXISTS (SELECT 1 FROM raw.countries WHERE code = clicks.id)", "id"),
        ("SELECT transform(tags, x -> concat(x, id)) AS t FROM clicks", "t"),
        ("SELECT aggregate(tags, 0, (acc, x) -> acc + size(x)) AS t FROM clicks", "t"),
        ("SELECT timestampdiff(MINUTE, ts, ts) AS m, extract(year FROM ts) AS y FROM clicks", "m y"),
        ("SELECT a, col2 FROM (VALUES (1, 2)) AS v(a, col2)", "a col2"),
        ("SELECT col1, col2 FROM VALUES (1, 2)", "col1 col2"),
        ("SELECT id FROM range(10)", "id"),
        ("SELECT anything FROM lake JOIN clicks USING (id)", "anything"),
        ("SELECT id FROM clicks UNION ALL SELECT name FROM raw.countries", "id"),
        ("SELECT sum(id) OVER w AS s FROM clicks WINDOW w AS (PARTITION BY ts)", "s"),
        ("SELECT id FROM clicks QUALIFY row_number() OVER (PARTITION BY id ORDER BY ts) = 1", "id"),
        ("SELECT DATE '2024-01-01' AS d, INTERVAL 1 DAY AS i, true AS t, 1L AS n", "d i t n"),
        ("SELECT named_struct('a', id) AS s, s.a FROM clicks", "s a"),
    ],
)  # fmt: skip
def test_columns_of_a_right_query(sql: str, columns: str) -> None:
    """Every column of a valid query is resolved, and the output columns are in their order; those
    of a table without declared ones are unknown, and so is a star over it.
    """
    assert look_up("SELECT * FROM lake").relation.columns is None
    found = look_up(sql)

    assert [str(error) for error in found.errors] == []
    assert list(found.relation.columns or ()) == columns.split()


@pytest.mark.parametrize(
    ("sql", "wrong", "nearest"),
    [
        ("SELECT idd FROM clicks", "idd", "id"),
        ("SELECT c.usr_id FROM clicks c", "c.usr_id", "User_Id"),
        ("SELECT x.id FROM clicks c", "x.id", "id"),
        ("SELECT clicks.id FROM clicks c", "clicks.id", "id"),
        ("SELECT id AS a FROM clicks WHERE a > 1", "a", ""),
        ("SELECT id FROM clicks JOIN raw.countries ON cod = id", "cod", "code"),
        ("SELECT id FROM clicks LEFT SEMI JOIN raw.countries ON true GROUP BY idd", "idd", "id"),
        ("SELECT count(*) AS n FROM clicks GROUP BY tz", "tz", "ts"),
        ("SELECT n FROM (SELECT count(*) AS m FROM clicks)", "n", ""),
        ("SELECT max(n) AS n FROM clicks", "n", ""),
        ("SELECT b AS a, 1 AS b FROM clicks", "b", ""),
        ("WITH x AS (SELECT id FROM clicks) SELECT ts FROM x", "ts", ""),
        ("SELECT transform(tags, x -> x + y) AS t FROM clicks", "y", ""),
        ("SELECT id FROM clicks WHERE id IN (SELECT cod FROM raw.countries)", "cod", "code"),
        ("SELECT sum(id) OVER (PARTITION BY tz) AS s FROM clicks", "tz", "ts"),
    ],
)
def test_an_unknown_column(sql: str, wrong: str, nearest: str) -> None:
    """An unknown column is one error with the caret under its name and the nearest names."""
    (error,) = look_up(sql).errors

    assert error.slug == "unknown-column"
    assert error.at is not None
    assert error.at.text[error.at.column - 1 :][: error.at.width] == wrong
    assert dict(error.facts).get("nearest", "").split(", ")[0] == nearest


def test_all_unknown_names_are_reported() -> None:
    """Unknown tables and columns are reported in every part of a query."""
    found = look_up(
        "SELECT a, b FROM clicks JOIN nowhere ON c = id UNION ALL SELECT d, e FROM elsewhere"
    )

    assert [error.slug for error in found.errors] == ["unknown-table", "unknown-table"]

    found = look_up("SELECT a, id FROM clicks UNION ALL SELECT d, e FROM raw.countries")
    assert [error.slug for error in found.errors] == ["unknown-column"] * 3


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT * FROM (clicks JOIN raw.countries ON code = id)",
        "SELECT * FROM clicks PIVOT (count(id) FOR ts IN (1, 2))",
        "SELECT * FROM clicks VERSION AS OF 3",
        "SELECT * FROM clicks TIMESTAMP AS OF '2024-01-01'",
    ],
)
def test_sql_that_cannot_be_analysed_is_refused(sql: str) -> None:
    """SQL that cannot be analysed is refused."""
    assert {error.slug for error in look_up(sql).errors} == {"unsupported-sql"}


def test_declared_names_are_spelled_as_the_table_has_them() -> None:
    """A declared column name is spelled as the table's, so that readers by name find it."""
    clicks = CLICKS.replace(
        "SELECT event_id, user_id, event_ts", "SELECT Event_Id, user_id, event_ts AS AT"
    )
    clicks = clicks.replace("column: event_ts", "column: at").replace("[event_id]", "[EVENT_ID]")
    daily = DAILY.replace("AS day,", "AS Day,").replace("{}", "{unique_key: [DAY]}")
    found = project({**SHOP, "models/clicks.sql": clicks, "models/daily.sql": daily})
    events, days = found["clicks"].model, found["daily"].model

    assert events.timeseries is not None
    assert (events.timeseries.event_time_column, events.unique_key) == ("AT", ("Event_Id",))
    assert days.timeseries is not None
    assert days.timeseries.partition_column == "Day"
    assert days.incremental is not None
    assert days.incremental.unique_key == ("Day",)
    assert found["sessions"].query is not None
    assert found["sessions"].query.time_column == "AT"
    assert found["daily"].input("sessions").time_column == "session_start"


FILES = {
    "infold.yml": declared(
        'id: int, ts: timestamp, place: "struct<city: string, country: string>"'
    ),
    "models/clicks.sql": TAKEN.format(EVENTS, "clicks"),
}
DAYS = """---
materialization: table
incremental: {}
timeseries: {event_time_column: ts, partition_column: ts, granularity: day}
---
"""
WINDOW = "count(*) OVER (ORDER BY ts RANGE BETWEEN INTERVAL 3 DAYS PRECEDING AND CURRENT ROW)"


@pytest.mark.parametrize(
    ("sql", "bound"),
    [
        ("SELECT ts, place.* FROM clicks", Bound(0, 0)),
        ("SELECT ts + INTERVAL 3 DAYS AS ts, place.* FROM clicks", Bound(3 * DAY, -3 * DAY)),
        (f"SELECT ts, place.*, {WINDOW} AS n FROM clicks", Bound(3 * DAY, 0)),
        (f"SELECT c.*, place.*, {WINDOW} AS n FROM clicks AS c", Bound(3 * DAY, 0)),
    ],
)
def test_what_is_read_follows_from_columns_beside_the_star(sql: str, bound: Bound) -> None:
    """Columns beside a star over a struct decide what is
    read, also one with the name of an input's column.
    """
    project, errors = read({**FILES, "models/subject.sql": DAYS + sql})

    assert project is not None, errors
    assert [entry.bounds for entry in project["subject"].inputs] == [(bound,)]


@pytest.mark.parametrize("items", ["id, place.*", "c.* EXCEPT (ts), place.*"])
def test_a_time_column_that_is_not_selected_is_no_partition_column(items: str) -> None:
    """The input's time column is no partition column of a query that does not select it."""
    _, errors = read({**FILES, "models/subject.sql": f"{DAYS}SELECT {items} FROM clicks AS c"})

    assert [error.slug for error in errors] == ["partition-not-proven"]


DEPTH = 12


def test_each_level_of_nested_queries_is_asked_once_for_each_column(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A chain of CTEs with two columns is not asked for 2^12 of them."""
    ctes = [f"c{i} AS (SELECT a, b FROM {f'c{i - 1}' if i else 'raw.t'})" for i in range(DEPTH)]
    (tmp_path / "models").mkdir()
    (tmp_path / "infold.yml").write_text(
        "name: deep\nsources: {raw.t: {path: t/*.json, columns: {a: string, b: string}}}\n"
    )
    query = f"WITH {', '.join(ctes)} SELECT a, b FROM c{DEPTH - 1}"
    (tmp_path / "models/m.sql").write_text(f"---\nmaterialization: table\n---\n{query}\n")
    asked = 0
    real: Callable[..., str | None] = column_types._type_of_origin

    def counted(*words: object) -> str | None:
        nonlocal asked
        asked += 1
        return real(*words)

    monkeypatch.setattr(column_types, "_type_of_origin", counted)

    assert check(tmp_path) == []
    assert 0 < asked < 200


# ruff: noqa: E501 (one case is one row of a table)


TABLES = {
    "clicks": Table("clicks", ("id", "user_id", "ts")),
    "order": Table("order", ("id", "ts")),
    "raw.clicks": Table("raw.clicks", ("id", "user_id", "ts")),
}

QUERIES = [
    "SELECT * FROM «clicks»",
    "select * from «CLICKS» as c",
    "SELECT * FROM «`clicks`» c, «raw.clicks», «`raw`.`clicks`» AS d",
    "SELECT * FROM «raw . clicks» /* raw.clicks */ WHERE id = 'clicks' -- clicks",
    "SELECT * FROM «`raw.clicks`»",
    "SELECT * FROM «order» JOIN «`order`» AS o ON o.id = `order`.id",
    "SELECT clicks.id FROM «clicks» JOIN «clicks» AS other ON clicks.id = other.id",
    "WITH clicks AS (SELECT * FROM «clicks») SELECT * FROM clicks",
    "WITH a AS (SELECT * FROM «clicks»), clicks AS (SELECT * FROM a) SELECT * FROM clicks, «raw.clicks» r",
    "SELECT * FROM (WITH clicks AS (SELECT 1 AS one) SELECT * FROM clicks) x, «clicks»",
    "WITH RECURSIVE clicks(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM clicks) SELECT * FROM clicks",
    "SELECT * FROM «clicks» UNION ALL (SELECT * FROM «clicks» WHERE id IN (SELECT id FROM «order»))",
    "SELECT (SELECT max(ts) FROM «clicks») AS m, EXISTS (SELECT 1 FROM «order» o WHERE o.id = c.id) AS e FROM «raw.clicks» c",
    "SELECT id, tag FROM «clicks» LATERAL VIEW explode(split(user_id, ',')) clicks AS tag",
    "SELECT id FROM «clicks» JOIN LATERAL (SELECT ts AS t FROM «order» WHERE id = clicks.id)",
    "SELECT 'é€😀' AS s, id FROM «clicks» -- «not this»".replace(" -- «not this»", ""),
    "SELECT\r\n\t*\r\nFROM\r\n\t«clicks»",
    "FROM «clicks» SELECT id",
]  # fmt: skip


def marked(query: str) -> tuple[str, list[tuple[int, int]]]:
    """The query without marks, and the ranges that they stood around."""
    spans, plain, at = [], [], 0
    for piece in re.split("([«»])", query):
        if piece == "«":
            spans.append((at, at))
        elif piece == "»":
            spans[-1] = (spans[-1][0], at)
        else:
            plain.append(piece)
            at += len(piece)
    return "".join(plain), spans


def references(sql: str) -> tuple[Reference, ...]:
    """The references of a query that has nothing wrong with it."""
    parsed = parse("m.sql", sql)
    found = resolve(parsed.text, parsed.tree, TABLES)
    assert not found.errors, str(found.errors[0])
    return found.references


@pytest.mark.parametrize("query", QUERIES)
def test_references_are_found_at_their_positions(query: str) -> None:
    """References are found at their positions, whatever the quoting, the CTEs and the aliases
    around them, with the model's declared name, not the name as written in the query.
    """
    sql, spans = marked(query)

    found = references(sql)
    assert [(one.start, one.end) for one in found] == spans
    for one in found:
        assert re.sub(r"[`\s]", "", sql[one.start : one.end]).lower() == one.name


SPACE = st.sampled_from([" ", "\n", "\t ", " /* clicks */ ", " -- clicks\n", "\r\n"])


@given(
    query=st.sampled_from([query for query in QUERIES if "--" not in query]),
    spaces=st.lists(SPACE, min_size=80, max_size=80),
)
def test_references_can_be_replaced_in_place(query: str, spaces: list[str]) -> None:
    """Replacing the names at their positions makes a valid
    query over other tables, whatever is between them.
    """
    words = re.split(" ", query)
    sql, spans = marked("".join(word + space for word, space in zip(words, spaces, strict=False)))
    found = references(sql)

    assert [(one.start, one.end) for one in found] == spans
    for one in reversed(found):
        sql = sql[: one.start] + "replaced" + sql[one.end :]
    tree = parse("m.sql", sql).tree
    resolved = resolve(parse("m.sql", sql).text, tree, {"replaced": Table("replaced", None)})
    assert [one.name for one in resolved.references] == ["replaced"] * len(found)
    assert not resolved.errors
