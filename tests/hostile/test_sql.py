# ruff: noqa: E501 (one query is one line)
"""Hostile queries are accepted or refused by name, for every kind of model."""

from __future__ import annotations

import pytest
from tests.analysis.sql.lenient_sql import WRONG
from tests.analysis.sql.test_syntax import UNSUPPORTED
from tests.declare.shop import CLICKS, DAILY, SESSIONS, SHOP, read
from tests.hostile.outcome import error_fault, judged

from infold.declare.load import deeply

pytestmark = pytest.mark.deep

DEEP = 1_000
QUERIES = [
    *("", " \n ", "-- nothing", "/* nothing */", "SELECT /* a /* b */ c */ 1 AS a FROM clicks"),
    *("SELECT /*+ BROADCAST(clicks) */ event_id FROM clicks", ";", "((((SELECT 1 AS a))))"),
    *("SELECT (1 AS a FROM clicks", "SELECT 1) AS a FROM clicks", "SELECT"),
    *("SELECT FROM clicks", "FROM clicks SELECT event_id", "FROM clicks"),
    *("FROM clicks |> WHERE amount > 1 |> SELECT event_id", "VALUES (1, 2)", "TABLE clicks"),
    *("SELECT 1 AS a", "DROP TABLE clicks", "DELETE FROM clicks"),
    "INSERT INTO clicks SELECT * FROM clicks",
    "MERGE INTO clicks USING daily ON true WHEN MATCHED THEN DELETE",
    *("CREATE TABLE x AS SELECT 1 AS a", "SET spark.sql.ansi.enabled = false"),
    *("EXPLAIN SELECT 1 AS a", "SHOW TABLES", "DESCRIBE clicks"),
    *("CALL infold.system.expire_snapshots('clicks')", "CACHE TABLE clicks"),
    *("ADD JAR '/tmp/x.jar'", "USE other", "BEGIN SELECT 1 AS a; END"),
    *("SELECT 1 AS a; SELECT 2 AS a", "SELECT event_id FROM clicks; DROP TABLE clicks"),
    *("give me all clicks of today", "def query(): return clicks", '{"select": "event_id"}'),
    *("SELECT {{ column }} FROM clicks", "SELECT '${env:HOME}' AS home FROM clicks"),
    *("SELECT '${hivevar:x}' AS x FROM clicks", "SELECT '${system:user.name}' AS x FROM clicks"),
    *("SELECT ? AS a FROM clicks", "SELECT session.x AS a FROM clicks"),
    *("SELECT @start_dss AS a FROM clicks", "SELECT * FROM text.`/etc/hostname`"),
    *("SELECT * FROM clicks.files", "SELECT * FROM infold.shop.clicks.snapshots"),
    "SELECT * FROM infold.shop.raw.clicks",
    *("SELECT * FROM clicks TIMESTAMP AS OF '2024-01-01'", "SELECT * FROM range(10)"),
    *("SELECT * FROM STREAM clicks", "FROM clicks MAP event_id USING 'cat' AS a"),
    "SELECT reflect('java.lang.System', 'exit', 1) AS a FROM clicks",
    "SELECT java_method('java.util.UUID', 'randomUUID') AS a FROM clicks",
    "SELECT try_reflect('java.lang.System', 'nanoTime') AS a FROM clicks",
    "SELECT input_file_name() AS a FROM clicks",
    *("SELECT _metadata.file_path AS a FROM clicks", "SELECT version() AS a FROM clicks"),
    "SELECT raise_error('no') AS a FROM clicks",
    "SELECT DATE_TRUNC(event_ts, DAY) AS a FROM clicks",
    *("SELECT substring(url) AS a FROM clicks", "SELECT upper(url, url) AS a FROM clicks"),
    *("SELECT event_ts + url AS a FROM clicks", "SELECT sum(url) AS a FROM clicks"),
    *("SELECT max(event_ts - event_ts) AS a FROM clicks", "SELECT NULL AS a FROM clicks"),
    *("SELECT INTERVAL 1 DAY AS a FROM clicks", "SELECT INTERVAL 1 MONTH AS a FROM clicks"),
    *("SELECT parse_json('1') AS a FROM clicks", "SELECT map('a', 1) AS a FROM clicks"),
    *("SELECT x -> x AS a FROM clicks", "SELECT url, url FROM clicks"),
    *("SELECT url, url AS URL FROM clicks", "SELECT count(*) FROM clicks"),
    *("SELECT url AS `` FROM clicks", "SELECT url AS `  ` FROM clicks"),
    *("SELECT url AS `a.b` FROM clicks", "SELECT url AS `a``b` FROM clicks"),
    *("SELECT url AS \u00fc\u4e2d FROM clicks", "SELECT url AS `\U0001f600` FROM clicks"),
    *(f"SELECT url AS {'n' * 5_000} FROM clicks", "SELECT url AS `select` FROM clicks"),
    *("SELECT url AS _version, url AS _state FROM clicks", "SELECT x.* FROM clicks"),
    *("SELECT *, * FROM clicks", "SELECT * EXCEPT (nobody) FROM clicks"),
    "SELECT * EXCEPT (event_id, user_id, event_ts, url, amount) FROM clicks",
    *("SELECT url.* FROM clicks", "SELECT ulr FROM clicks", "SELECT event_id FROM click"),
    *("SELECT day FROM subject", "SELECT event_id FROM clicks, clicks"),
    "SELECT event_id FROM clicks AS a JOIN clicks AS b ON true",
    "SELECT a.url FROM clicks AS a JOIN clicks AS b",
    "SELECT url FROM clicks JOIN sessions USING (nobody)",
    *("SELECT url, count(*) AS n FROM clicks GROUP BY 7", "SELECT url FROM clicks ORDER BY 0"),
    *("SELECT url FROM clicks WHERE count(*) > 1", "SELECT sum(count(*)) AS n FROM clicks"),
    "SELECT url FROM clicks WHERE row_number() OVER (ORDER BY url) = 1",
    "SELECT sum(sum(amount) OVER ()) OVER () AS n FROM clicks",
    "SELECT sum(amount) OVER w AS n FROM clicks",
    "SELECT sum(amount) OVER (ORDER BY event_ts RANGE BETWEEN CURRENT ROW AND INTERVAL 1 DAY PRECEDING) AS n FROM clicks",
    "SELECT sum(amount) OVER (ORDER BY event_ts RANGE BETWEEN INTERVAL 1 DAY PRECEDING AND INTERVAL 1 SECOND PRECEDING) AS n FROM clicks",
    "SELECT sum(amount) OVER (ORDER BY event_ts RANGE BETWEEN INTERVAL '1' YEAR PRECEDING AND INTERVAL '99999999' DAY FOLLOWING) AS n FROM clicks",
    "SELECT url FROM clicks WHERE event_ts > '2024-01-01' - INTERVAL 999999999999 DAYS",
    "SELECT event_ts + INTERVAL '' DAY AS a FROM clicks",
    "SELECT event_ts + INTERVAL 'one' DAY AS a FROM clicks",
    "SELECT url FROM clicks WHERE event_ts > DATE '2024-02-31'",
    "SELECT url FROM clicks WHERE event_ts > TIMESTAMP 'soon'",
    "SELECT from_utc_timestamp(event_ts, 'Mars/Olympus') AS a FROM clicks",
    "SELECT date_trunc('fortnight', event_ts) AS a FROM clicks",
    "SELECT date_trunc(url, event_ts) AS a FROM clicks",
    "SELECT url FROM clicks UNION ALL SELECT url, amount FROM clicks",
    *("SELECT url FROM clicks ORDER BY url LIMIT 'a'", "SELECT url FROM clicks LIMIT ALL"),
    "SELECT url FROM clicks ORDER BY url LIMIT -1",
    "SELECT url FROM clicks TABLESAMPLE (BUCKET 1 OUT OF 2)",
    "SELECT * FROM clicks PIVOT (sum(amount) FOR url IN ('a'))",
    "SELECT * FROM clicks PIVOT (sum(amount) FOR url IN (SELECT url FROM clicks))",
    "WITH RECURSIVE r AS (SELECT 1 AS n UNION ALL SELECT n + 1 FROM r) SELECT n FROM r",
    "WITH a AS (SELECT * FROM a) SELECT * FROM a",
    "WITH a AS (SELECT 1 AS x), a AS (SELECT 2 AS x) SELECT * FROM a",
    "WITH clicks AS (SELECT 1 AS event_id) SELECT event_id FROM clicks",
    "SELECT url, n FROM clicks, LATERAL (SELECT count(*) AS n FROM sessions)",
    "SELECT 1e400 AS a, 0x1F AS b, 1_000 AS c, .5 AS d, 5. AS e, 1E-400 AS f FROM clicks",
    f"SELECT {'9' * 400} AS a FROM clicks",
    "SELECT 'a' 'b' AS a, r'\\d' AS b, \"c\" AS c, X'1F' AS d, $$e$$ AS e FROM clicks",
    *("SELECT 'a\0b' AS a FROM clicks", "SELECT 'a\n\n\nb' AS a FROM clicks"),
    "SELECT '\\u0000\\U0010FFFF\\'\\%' AS a FROM clicks",
    *(f"SELECT '{'x' * 200_000}' AS a FROM clicks", "SELECT\u00a0url\u3000FROM\u2003clicks"),
    *("SELECT \ufeffurl FROM clicks", "SELECT url AS \u202elru\u202c FROM clicks"),
    "\uff33\uff25\uff2c\uff25\uff23\uff34 url FROM clicks",
    *("SELECT \u2018a\u2019 AS a FROM clicks", "SELECT 3 \u2212 1 AS a FROM clicks"),
    "SELECT url\rFROM clicks -- x\rWHERE true",
    f"SELECT {', '.join(f'url AS c{n}' for n in range(DEEP))} FROM clicks",
    f"SELECT url FROM clicks WHERE {' OR '.join(['amount = 1'] * DEEP)}",
    f"SELECT url FROM clicks WHERE {' AND '.join(['amount > 1'] * DEEP)}",
    f"SELECT {' + '.join(['amount'] * DEEP)} AS a FROM clicks",
    f"SELECT {' || '.join(['url'] * DEEP)} AS a FROM clicks",
    " UNION ALL ".join(["SELECT url FROM clicks"] * DEEP),
    " UNION ".join(["SELECT url FROM clicks"] * 200),
    "SELECT clicks.url FROM clicks "
    + " ".join(f"JOIN raw.countries AS c{n} ON c{n}.code = clicks.url" for n in range(100)),
    "WITH "
    + ", ".join(
        f"c{n} AS (SELECT url FROM {'clicks' if n == 0 else f'c{n - 1}'})" for n in range(150)
    )
    + " SELECT url FROM c149",
    f"SELECT url FROM clicks WHERE amount IN ({', '.join(map(str, range(5_000)))})",
    f"SELECT CASE {'WHEN amount = 1 THEN 2 ' * DEEP} END AS a FROM clicks",
    f"SELECT {'(' * DEEP}amount{')' * DEEP} AS a FROM clicks",
    f"SELECT {'abs(' * DEEP}amount{')' * DEEP} AS a FROM clicks",
    f"SELECT {'CASE WHEN true THEN ' * 300}1{' END' * 300} AS a FROM clicks",
    f"{'SELECT * FROM (' * 200}SELECT url FROM clicks{')' * 200}",
    f"SELECT url FROM clicks WHERE {'NOT ' * DEEP}true",
    f"SELECT {'- ' * DEEP}amount AS a FROM clicks",
    f"SELECT {'array(' * 300}1{')' * 300} AS a FROM clicks",
    f"SELECT url{'.a' * DEEP} AS a FROM clicks",
    f"SELECT url FROM clicks WHERE {'EXISTS (SELECT 1 FROM clicks WHERE ' * 60}true{')' * 60}",
    *("(" * 5_000, "'" * 4_999, "`" * 4_999, "SELECT " + "," * 3_000),
]
QUERIES = [*dict.fromkeys([*QUERIES, *(sql for sql, _ in UNSUPPORTED), *WRONG])]
FRONTS = {
    "events": CLICKS,
    "sessions": SESSIONS,
    "by time": DAILY.replace("session_start, partition_column: day", "day"),
    "whole": "---\nmaterialization: table\n---\n",
    "view": "---\nmaterialization: view\n---\n",
    "by key": "---\nmaterialization: cumulative_aggregate\n---\n",
}


def wrong(kind: str, sql: str) -> str:
    """What is wrong with how a model of a kind with this query is read."""
    front = FRONTS[kind].rpartition("---\n")[0] + "---\n"
    text = sql.replace("FROM clicks", "FROM raw.clicks") if kind == "events" else sql
    try:
        files: dict[str, str | bytes] = {**SHOP, "models/subject.sql": front + text}
        _, errors = deeply(lambda: read(files))
        return "; ".join(filter(None, map(error_fault, errors)))
    except Exception as error:  # noqa: BLE001 - whatever it is, it should not be
        return f"{type(error).__name__}: {error}"[:300]


def chosen(kind: str) -> list[str]:
    """
    The queries of a kind: all where cells are bounded, which looks at a query most closely.

    Of the others each has every fourth one, and every fifth of those that are long.
    """
    kinds = list(FRONTS)
    return [
        sql
        for at, sql in enumerate(QUERIES)
        if kind == "by time" or (at + kinds.index(kind)) % (5 if len(sql) > 999 else 4) == 0
    ]


@pytest.mark.parametrize("kind", FRONTS)
def test_hostile_queries(kind: str) -> None:
    """A hostile query, long and deep ones too, is accepted or refused by a named error."""
    found = {f"{sql!a}"[:120]: wrong(kind, sql) for sql in chosen(kind)}

    judged(kind, found)
