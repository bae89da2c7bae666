"""
Lookups: by which equalities they are read, as of which time, and how events are joined with them.

And those whose rows are kept, so that cells without input rows of that time have rows.
"""

from __future__ import annotations

from functools import cache

import pytest
from tests.analysis.rules.cases import MODELS, PROJECT
from tests.declare import shop
from tests.declare.shop import project

from infold.analysis.inputs.ingested import tables_named
from infold.analysis.inputs.lookup_keys import lookup_matches_of
from infold.analysis.names.relation import Table
from infold.analysis.names.resolve import resolve
from infold.analysis.sql.parse import parse
from infold.core.project import Node, Project, Validity

# ruff: noqa: E501 (one case is one row of a table)


USERS = "---\nmaterialization: cumulative_aggregate\n---\nSELECT user_id, count(*) AS n FROM clicks GROUP BY user_id"
VIEW = "---\nmaterialization: view\n---\nSELECT user_id AS who, event_ts AS at, url FROM clicks WHERE amount > 0"
SMALL = "---\nmaterialization: view\n---\nSELECT code AS c FROM raw.countries WHERE country <> ''"
FIRST = "---\nmaterialization: table\n---\nSELECT url, count(*) AS n FROM raw.countries JOIN clicks ON url = code GROUP BY 1"


@cache
def known() -> tuple[dict[str, Table], dict[str, Node]]:
    """The tables and nodes of a small project."""
    models = {"users": USERS, "seen": VIEW, "small": SMALL, "pages": FIRST}
    project = shop.project(
        shop.SHOP | {f"models/{name}.sql": text for name, text in models.items()}
    )
    tables: dict[str, Table] = {}
    for node in project.nodes:
        text = parse("m.sql", node.model.sql)
        view = (
            resolve(text.text, text.tree, tables).relation
            if node.name in ("seen", "small")
            else None
        )
        tables[node.name] = Table(node.name, node.columns, view)
    return tables, {node.name: node for node in project.nodes}


def matched(sql: str) -> list[str]:
    """How lookups are matched, as ``lookup: input.sql = own, …``."""
    tables, nodes = known()
    parsed = parse("m.sql", sql)
    assert list(tables_named(parsed.tree))
    found = resolve(parsed.text, parsed.tree, tables)
    assert not found.errors, found.errors
    return [
        f"{match.lookup}: {match.input} "
        + ", ".join(f"{a} = {b}" for a, b in match.pairs).replace("`", "")
        for match in lookup_matches_of(found.relation, nodes)
    ]


BY_USER = "users: clicks user_id = user_id"
BY_URL = "raw.countries: clicks url = code"


@pytest.mark.parametrize(
    ("sql", "found"),
    [
        ("SELECT n FROM clicks c JOIN users u ON u.user_id = c.user_id", [BY_USER]),
        ("SELECT n FROM clicks c LEFT JOIN users u ON c.user_id = u.user_id AND u.n > 1", [BY_USER]),
        ("SELECT n FROM clicks LEFT JOIN users USING (user_id)", [BY_USER]),
        ("SELECT n FROM users u JOIN clicks c ON u.user_id = c.user_id", [BY_USER]),
        ("SELECT n FROM users RIGHT JOIN clicks USING (user_id)", [BY_USER]),
        ("SELECT n FROM clicks c, users u WHERE (u.user_id = c.user_id) AND n > 1", [BY_USER]),
        ("SELECT url FROM clicks c LEFT SEMI JOIN users u ON u.user_id = c.user_id", [BY_USER]),
        ("SELECT url FROM clicks c LEFT ANTI JOIN users u ON u.user_id = c.user_id", [BY_USER]),
        ("SELECT url FROM clicks WHERE url IN (SELECT code FROM raw.countries)", [BY_URL]),
        ("SELECT url FROM clicks WHERE url IN (SELECT c FROM small)", [BY_URL]),
        ("SELECT (SELECT max(country) FROM raw.countries WHERE code = url) AS m FROM clicks", [BY_URL]),
        ("SELECT url FROM clicks c WHERE NOT EXISTS (SELECT 1 FROM users u WHERE u.user_id = c.user_id)", [BY_USER]),
        ("SELECT * FROM seen s LEFT JOIN users u ON u.user_id = s.who", [BY_USER]),
        ("SELECT * FROM clicks LEFT JOIN small ON lower(url) = upper(c)", ["raw.countries: clicks LOWER(url) = UPPER(code)"]),
        ("SELECT * FROM clicks LEFT JOIN (SELECT country AS k, code FROM raw.countries) r ON k = cast(event_ts AS date)", ["raw.countries: clicks CAST(event_ts AS DATE) = country"]),
        (
            "SELECT * FROM clicks c LEFT JOIN users u ON u.user_id = c.user_id AND u.n = cast(c.url AS int)",
            ["users: clicks CAST(url AS INT) = n, user_id = user_id"],
        ),
        (
            "WITH d AS (SELECT user_id, count(*) AS k FROM clicks GROUP BY 1) SELECT * FROM d JOIN users u ON u.user_id = d.user_id AND d.k = u.n",
            [BY_USER],
        ),
        (
            "SELECT * FROM clicks c LEFT JOIN users u USING (user_id) LEFT JOIN raw.countries r ON r.code = c.url",
            [BY_USER, BY_URL],
        ),
        (
            "SELECT * FROM (SELECT url AS k, 'x' AS s FROM clicks UNION ALL SELECT coalesce(who, 'nobody'), lower(url) FROM seen) e LEFT JOIN raw.countries r ON r.code = e.k AND r.country = e.s",
            ["raw.countries: clicks 'x' = country, url = code", "raw.countries: clicks COALESCE(user_id, 'nobody') = code, LOWER(url) = country"],
        ),
        (
            "SELECT n FROM clicks c JOIN users u ON u.user_id = c.user_id UNION ALL SELECT n FROM seen s JOIN users u ON u.user_id = s.who",
            [BY_USER],
        ),
    ],
)  # fmt: skip
def test_equalities_with_a_row_that_has_a_time(sql: str, found: list[str]) -> None:
    """A lookup joined by equality with a row that has a
    time affects only cells with rows of its key.
    """
    assert matched(sql) == found


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT n FROM clicks c CROSS JOIN users u",
        "SELECT n FROM clicks c JOIN users u ON u.user_id > c.user_id",
        "SELECT n FROM clicks c JOIN users u ON u.user_id = c.user_id OR u.n = 1",
        "SELECT n FROM clicks c JOIN users u ON u.user_id <=> c.user_id",
        "SELECT n FROM clicks c JOIN users u ON u.user_id = coalesce(c.user_id, 'nobody')",
        "SELECT n FROM clicks c JOIN users u ON u.user_id = concat(c.user_id, c.url)",
        "SELECT n FROM clicks c FULL JOIN users u ON u.user_id = c.user_id",
        "SELECT n FROM clicks c RIGHT JOIN users u ON u.user_id = c.user_id",
        "SELECT n FROM users u LEFT JOIN clicks c ON u.user_id = c.user_id",
        "SELECT n FROM clicks NATURAL JOIN users",
        "SELECT n FROM clicks c, users u RIGHT JOIN seen s ON s.who = c.user_id WHERE u.user_id = c.user_id",
        "SELECT url FROM clicks WHERE user_id NOT IN (SELECT user_id FROM users)",
        "SELECT url, user_id IN (SELECT user_id FROM users) AS known FROM clicks",
        "SELECT url FROM clicks WHERE user_id IN (SELECT user_id FROM users) OR amount > 1",
        "SELECT url FROM clicks WHERE amount > (SELECT avg(n) FROM users)",
        "SELECT url FROM clicks c WHERE amount > (SELECT avg(n) FROM users u WHERE u.user_id = c.user_id OR u.n > 1)",
        # on one side the value is not of one row
        "SELECT n FROM (SELECT user_id AS k FROM clicks UNION ALL SELECT max(who) FROM seen) e JOIN users ON user_id = k",
        # the largest of several values is none of them that one row had beside its time
        "WITH d AS (SELECT max(user_id) AS u FROM clicks) SELECT n FROM d JOIN users ON user_id = d.u",
        # one key of several rows of the lookup, seen through a sum over all of them
        "SELECT k FROM clicks JOIN (SELECT sum(n) AS k, max(user_id) AS u FROM users) ON u = user_id",
        "SELECT n FROM clicks c JOIN users u ON u.user_id = c.user_id WHERE c.url IN (SELECT user_id FROM users WHERE n > 1) IS NULL",
        # matched with a lookup alone
        "SELECT u.n FROM clicks c JOIN pages p ON p.url = c.url JOIN users u ON u.n = p.n",
    ],
)
def test_any_other_way(sql: str) -> None:
    """A lookup that is read in any other way can affect any cell."""
    assert [one for one in matched(sql) if one.startswith("users")] == []


# ruff: noqa: E501 (one case is one row of a table)


VERSIONS = """---
materialization: scd_type_2
unique_key: [user_id]
scd_type_2: {updated_at: event_ts}
---
SELECT user_id, url, event_ts FROM clicks"""
HEAD = """---
materialization: table
timeseries: {event_time_column: day}
incremental: {}
---
SELECT cast(c.event_ts AS date) AS day, """
KEY = "v.user_id = c.user_id"
FROM, TO = "c.event_ts >= v.valid_from", "(c.event_ts < v.valid_to OR v.valid_to IS NULL)"
AS_OF = f"ON {KEY} AND {FROM} AND {TO}"
LEFT = f"clicks c LEFT JOIN v {AS_OF}"


def validity(query: str) -> Validity | None:
    """The stretch by which a query finds rows of the lookup."""
    files = {**shop.SHOP, "models/v.sql": VERSIONS, "models/x.sql": HEAD + query}
    [match] = [one for one in shop.project(files)["x"].matches if one.lookup == "v"]
    return match.validity


ENDS = {"ends": (False, False), "open": (True, False), "passed on": (True, True)}
"""Whether the end may be NULL, and whether an end is used otherwise."""


@pytest.mark.parametrize(
    ("query", "ends"),
    [
        (f"v.url FROM {LEFT}", "open"),
        (f"v.url FROM clicks c JOIN v ON {KEY} AND v.valid_from <= c.event_ts AND (v.valid_to IS NULL OR v.valid_to > c.event_ts)", "open"),
        (f"v.url FROM clicks c JOIN v ON {KEY} AND {FROM} AND c.event_ts < v.valid_to", "ends"),
        (f"v.url FROM clicks c JOIN v ON {KEY} WHERE {FROM} AND {TO}", "open"),
        (f"v.url FROM v RIGHT JOIN clicks c {AS_OF}", "open"),
        (f"count(*) AS n FROM clicks c LEFT ANTI JOIN v {AS_OF} GROUP BY 1", "open"),
        (f"v.url, v.valid_to FROM {LEFT}", "passed on"),
        (f"v.url, x.u FROM clicks c JOIN v {AS_OF}, LATERAL (SELECT v.valid_to AS u) x", "passed on"),
        (f"v.* FROM {LEFT}", "passed on"),
        (f"v.url FROM {LEFT} AND v.valid_from > TIMESTAMP '2024-01-01'", "passed on"),
        (f"v.url, (SELECT max(country) FROM raw.countries r WHERE r.code = v.url) AS m FROM {LEFT}", "passed on"),
        # one end, another comparison, another row or another time is no stretch
        (f"v.url FROM clicks c LEFT JOIN v ON {KEY} AND {FROM}", None),
        (f"v.url FROM clicks c LEFT JOIN v ON {KEY} AND c.event_ts > v.valid_from AND {TO}", None),
        (f"v.url FROM clicks c LEFT JOIN v ON {KEY} AND {FROM} AND (c.event_ts <= v.valid_to OR v.valid_to IS NULL)", None),
        (f"v.url FROM clicks c LEFT JOIN v ON {KEY} AND ({FROM} OR c.url = v.url) AND {TO}", None),
        (f"v.url FROM clicks c LEFT JOIN v ON {KEY} AND {FROM} AND (c.event_ts < v.valid_to OR v.valid_from IS NULL)", None),
        (f"v.url FROM clicks c JOIN clicks d ON d.event_ts = c.event_ts JOIN v ON {KEY} AND d.event_ts >= v.valid_from AND (d.event_ts < v.valid_to OR v.valid_to IS NULL)", None),
        (f"v.url FROM clicks c LEFT JOIN v ON {KEY} AND {FROM} AND date_trunc('hour', c.event_ts) < v.valid_to", None),
    ],
)  # fmt: skip
def test_a_lookup_read_as_of_a_time(query: str, ends: str | None) -> None:
    """Both ends in a condition of the join are its stretch; any other use of them is noted."""
    expected = ends and Validity("`event_ts`", "valid_from", "valid_to", *ENDS[ends])
    assert validity(query) == expected


FRONT = """---
materialization: table
timeseries: {event_time_column: event_ts, partition_column: day}
incremental: {}
---
"""
KEPT = (
    "SELECT to_date(k.since) AS day, count(c.event_id) AS n FROM raw.countries AS k "
    "LEFT JOIN clicks AS c ON to_date(c.event_ts) = to_date(k.since) GROUP BY 1"
)
MATCHED = (
    "SELECT to_date(event_ts) AS day, country FROM clicks LEFT JOIN raw.countries USING (code)"
)


@pytest.mark.parametrize(
    ("sql", "fills"),
    [
        (KEPT, True),
        (KEPT.replace("LEFT JOIN", "JOIN"), False),
        (MATCHED, False),
        ("SELECT to_date(event_ts) AS day, count(*) AS n FROM clicks GROUP BY 1", False),
    ],
)  # fmt: skip
def test_unmatched_rows_fill_cells(sql: str, fills: bool) -> None:
    """With rows kept without a match, the day comes from
    the lookup, so a day without events has rows too.
    """
    files = {f"models/{name}.sql": text for name, text in MODELS.items()}
    found = project({"infold.yml": PROJECT, **files, "models/query.sql": FRONT + sql})

    assert found["query"].fills_cells is fills


A_VIEW = "---\nmaterialization: view\n---\n"
TABLE = "---\nmaterialization: table\n---\n"
EVENTS = "\n".join(shop.CLICKS.splitlines()[:5]) + "\n"
JOINED = (
    "SELECT e.*, c.country FROM raw.clicks AS e LEFT JOIN raw.countries AS c ON c.code = lower(url)"
)


def project_of(clicks: str, **others: str) -> Project:
    """A project with such events and some more models."""
    return shop.project(
        shop.SHOP
        | {"models/clicks.sql": EVENTS + clicks}
        | {f"models/{name}.sql": text for name, text in others.items()}
    )


def matches_of(node: Node) -> list[str]:
    """How lookups are matched, as ``lookup: source.sql = own``."""
    return [
        f"{match.lookup}: {match.input} " + ", ".join(f"{a} = {b}" for a, b in match.pairs)
        for match in node.matches
    ]


BY_FOLDED_URL = ["raw.countries: raw.clicks LOWER(`url`) = `code`"]


@pytest.mark.parametrize(
    ("clicks", "others"),
    [
        (JOINED, {}),
        ("SELECT * FROM v", {"v": A_VIEW + JOINED}),
        ("SELECT * FROM w WHERE url <> ''",
         {"v": A_VIEW + JOINED, "w": A_VIEW + "SELECT * FROM v"}),
        ("SELECT v.*, c.country FROM v LEFT JOIN raw.countries AS c ON c.code = folded",
         {"v": A_VIEW + "SELECT *, lower(url) AS folded FROM raw.clicks"}),
    ],
)  # fmt: skip
def test_the_source_is_ingested_and_the_lookup_landed(clicks: str, others: dict[str, str]) -> None:
    """An events model ingests its source directly, or through views that nothing else reads."""
    found = project_of(clicks, **others)
    node = found["clicks"]

    assert node.source == "raw.clicks"
    assert [entry.name for entry in node.stored_inputs] == ["raw.countries"]
    assert matches_of(node) == BY_FOLDED_URL
    assert [one.name for one in found if one.landed] == ["raw.countries"]


def test_a_view_that_a_table_reads_lands_its_source() -> None:
    """The events model still ingests the files itself. A changed join in the view changes the
    events that are ingested through it.
    """
    table = TABLE + "SELECT count(*) AS n FROM v"
    found, other = (
        project_of("SELECT * FROM v", v=A_VIEW + join, t=table)
        for join in (JOINED, JOINED.replace("LEFT JOIN", "JOIN"))
    )

    assert found["clicks"].source == "raw.clicks"
    assert {one.name for one in found if one.landed} == {"raw.clicks", "raw.countries"}
    assert [entry.name for entry in found["clicks"].stored_inputs] == ["raw.countries"]
    assert found["clicks"].fingerprint != other["clicks"].fingerprint


SNAPSHOTS = """
name: shop
sources:
  raw.people: {path: people/*.csv, file_time_column: taken_at, columns: {who: string, at: timestamp}}
"""
ENDED = "---\nmaterialization: scd_type_2\nunique_key: [who]\nscd_type_2: {updated_at: taken, columns: [who], invalidate_hard_deletes: true}\n---\n"


@pytest.mark.parametrize(
    ("sql", "time"),
    [
        ("SELECT who, taken_at AS taken FROM raw.people p WHERE who <> 'x'", "`taken_at`"),
        ("SELECT who, cast(p.taken_at AS date) AS taken FROM raw.people p",
         "CAST(`taken_at` AS DATE)"),
        ("SELECT who, date_trunc('day', taken) AS taken FROM seen",
         "DATE_TRUNC('DAY', (CAST(`taken_at` AS DATE)))"),
        ("SELECT * FROM seen", "CAST(`taken_at` AS DATE)"),
        ("SELECT who, at AS taken FROM raw.people", ""),
        ("SELECT who, coalesce(at, taken_at) AS taken FROM raw.people", ""),
        ("SELECT who, taken FROM ingested", ""),
    ],
)  # fmt: skip
def test_files_that_are_snapshots(sql: str, time: str) -> None:
    """So are those of a source behind the rows, where the time of a file is all that makes theirs."""
    view = "---\nmaterialization: view\n---\nSELECT who, cast(taken_at AS date) AS taken FROM raw.people"
    events = "---\nmaterialization: events\nunique_key: [who]\ntimeseries: {event_time_column: taken}\n---\n"
    models = {
        "seen": view,
        "ingested": f"{events}SELECT who, taken_at AS taken FROM raw.people",
        "people": ENDED + sql,
    }
    texts = {f"models/{name}.sql": text for name, text in models.items()}
    versions = project({"infold.yml": SNAPSHOTS, **texts})["people"].versions
    assert versions is not None
    found = versions.snapshot_files
    assert ("" if found is None else found.time) == time
    assert found is None or (found.source, found.column) == ("raw.people", "taken_at")
