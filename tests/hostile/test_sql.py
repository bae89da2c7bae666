# ruff: noqa: E501 (one query is one line)
"""Hostile queries are accepted or refused by name, for every kind of model."""

from __future__ import annotations

import pytest
from tests.analysis.sql.lenient_sql import WRONG
from tests.analysis.test_spark_syntax import UNSUPPORTED
from tests.declare.shop import CLICKS, DAILY, SESSIONS, SHOP, read
from tests.hostile.outcome import error_fault, judged

from infold.declare.load import deeply

pytestmark = pytest.mark.deep

DEEP = 1_000
QUERIES: dict[str, str] = {
    "no query": "",
    "a blank": " \n ",
    "a comment": "-- nothing",
    "a block comment": "/* nothing */",
    "a comment in a comment": "SELECT /* a /* b */ c */ 1 AS a FROM clicks",
    "a hint": "SELECT /*+ BROADCAST(clicks) */ event_id FROM clicks",
    "a semicolon alone": ";",
    "brackets": "((((SELECT 1 AS a))))",
    "an open bracket": "SELECT (1 AS a FROM clicks",
    "a closing bracket": "SELECT 1) AS a FROM clicks",
    "SELECT alone": "SELECT",
    "SELECT FROM": "SELECT FROM clicks",
    "FROM first": "FROM clicks SELECT event_id",
    "FROM alone": "FROM clicks",
    "a pipe": "FROM clicks |> WHERE amount > 1 |> SELECT event_id",
    "VALUES": "VALUES (1, 2)",
    "TABLE": "TABLE clicks",
    "no FROM": "SELECT 1 AS a",
    "DROP": "DROP TABLE clicks",
    "DELETE": "DELETE FROM clicks",
    "INSERT": "INSERT INTO clicks SELECT * FROM clicks",
    "MERGE": "MERGE INTO clicks USING daily ON true WHEN MATCHED THEN DELETE",
    "CREATE": "CREATE TABLE x AS SELECT 1 AS a",
    "SET": "SET spark.sql.ansi.enabled = false",
    "EXPLAIN": "EXPLAIN SELECT 1 AS a",
    "SHOW": "SHOW TABLES",
    "DESCRIBE": "DESCRIBE clicks",
    "CALL": "CALL infold.system.expire_snapshots('clicks')",
    "CACHE": "CACHE TABLE clicks",
    "ADD JAR": "ADD JAR '/tmp/x.jar'",
    "USE": "USE other",
    "a script": "BEGIN SELECT 1 AS a; END",
    "two queries": "SELECT 1 AS a; SELECT 2 AS a",
    "a statement behind": "SELECT event_id FROM clicks; DROP TABLE clicks",
    "words": "give me all clicks of today",
    "Python": "def query(): return clicks",
    "JSON": '{"select": "event_id"}',
    "a template": "SELECT {{ column }} FROM clicks",
    "a variable of a shell": "SELECT '${env:HOME}' AS home FROM clicks",
    "a variable of Hive": "SELECT '${hivevar:x}' AS x FROM clicks",
    "a system's variable": "SELECT '${system:user.name}' AS x FROM clicks",
    "a question mark": "SELECT ? AS a FROM clicks",
    "a variable of Spark": "SELECT session.x AS a FROM clicks",
    "an unknown variable": "SELECT @start_dss AS a FROM clicks",
    "a file": "SELECT * FROM text.`/etc/hostname`",
    "a table's files": "SELECT * FROM clicks.files",
    "a table's snapshots": "SELECT * FROM infold.shop.clicks.snapshots",
    "four names": "SELECT * FROM infold.shop.raw.clicks",
    "a table's past by time": "SELECT * FROM clicks TIMESTAMP AS OF '2024-01-01'",
    "a table function": "SELECT * FROM range(10)",
    "a stream": "SELECT * FROM STREAM clicks",
    "a program in MAP": "FROM clicks MAP event_id USING 'cat' AS a",
    "reflection": "SELECT reflect('java.lang.System', 'exit', 1) AS a FROM clicks",
    "a method of Java": "SELECT java_method('java.util.UUID', 'randomUUID') AS a FROM clicks",
    "try_reflect": "SELECT try_reflect('java.lang.System', 'nanoTime') AS a FROM clicks",
    "a file's name": "SELECT input_file_name() AS a FROM clicks",
    "a file's metadata": "SELECT _metadata.file_path AS a FROM clicks",
    "the version": "SELECT version() AS a FROM clicks",
    "an error": "SELECT raise_error('no') AS a FROM clicks",
    "a function of another tool": "SELECT DATE_TRUNC(event_ts, DAY) AS a FROM clicks",
    "arguments too few": "SELECT substring(url) AS a FROM clicks",
    "arguments too many": "SELECT upper(url, url) AS a FROM clicks",
    "a wrong type": "SELECT event_ts + url AS a FROM clicks",
    "a sum of texts": "SELECT sum(url) AS a FROM clicks",
    "a difference of times": "SELECT max(event_ts - event_ts) AS a FROM clicks",
    "an untyped null": "SELECT NULL AS a FROM clicks",
    "an interval": "SELECT INTERVAL 1 DAY AS a FROM clicks",
    "an interval of months": "SELECT INTERVAL 1 MONTH AS a FROM clicks",
    "a variant": "SELECT parse_json('1') AS a FROM clicks",
    "a map": "SELECT map('a', 1) AS a FROM clicks",
    "a lambda by itself": "SELECT x -> x AS a FROM clicks",
    "a column twice": "SELECT url, url FROM clicks",
    "a column twice in other letters": "SELECT url, url AS URL FROM clicks",
    "a column without a name": "SELECT count(*) FROM clicks",
    "a name of nothing": "SELECT url AS `` FROM clicks",
    "a name of blanks": "SELECT url AS `  ` FROM clicks",
    "a name with a dot": "SELECT url AS `a.b` FROM clicks",
    "a name with a backtick": "SELECT url AS `a``b` FROM clicks",
    "a name of letters": "SELECT url AS \u00fc\u4e2d FROM clicks",
    "a name of an emoji": "SELECT url AS `\U0001f600` FROM clicks",
    "a long name": f"SELECT url AS {'n' * 5_000} FROM clicks",
    "a reserved name": "SELECT url AS `select` FROM clicks",
    "infold's own name": "SELECT url AS _version, url AS _state FROM clicks",
    "a star of nobody": "SELECT x.* FROM clicks",
    "a star twice": "SELECT *, * FROM clicks",
    "a star without a column": "SELECT * EXCEPT (nobody) FROM clicks",
    "a star without columns": "SELECT * EXCEPT (event_id, user_id, event_ts, url, amount) FROM clicks",
    "a struct's star": "SELECT url.* FROM clicks",
    "a column of nobody": "SELECT ulr FROM clicks",
    "a table of nobody": "SELECT event_id FROM click",
    "a table of itself": "SELECT day FROM subject",
    "a table twice": "SELECT event_id FROM clicks, clicks",
    "an unclear column": "SELECT event_id FROM clicks AS a JOIN clicks AS b ON true",
    "a join without ON": "SELECT a.url FROM clicks AS a JOIN clicks AS b",
    "a join USING nobody": "SELECT url FROM clicks JOIN sessions USING (nobody)",
    "a number in GROUP BY": "SELECT url, count(*) AS n FROM clicks GROUP BY 7",
    "zero in ORDER BY": "SELECT url FROM clicks ORDER BY 0",
    "an aggregate in WHERE": "SELECT url FROM clicks WHERE count(*) > 1",
    "an aggregate of an aggregate": "SELECT sum(count(*)) AS n FROM clicks",
    "a window in WHERE": "SELECT url FROM clicks WHERE row_number() OVER (ORDER BY url) = 1",
    "a window of a window": "SELECT sum(sum(amount) OVER ()) OVER () AS n FROM clicks",
    "a window of nobody": "SELECT sum(amount) OVER w AS n FROM clicks",
    "a frame turned round": "SELECT sum(amount) OVER (ORDER BY event_ts RANGE BETWEEN CURRENT ROW AND "
    "INTERVAL 1 DAY PRECEDING) AS n FROM clicks",
    "a frame of two units": "SELECT sum(amount) OVER (ORDER BY event_ts RANGE BETWEEN INTERVAL 1 DAY "
    "PRECEDING AND INTERVAL 1 SECOND PRECEDING) AS n FROM clicks",
    "a frame of years and days": "SELECT sum(amount) OVER (ORDER BY event_ts RANGE BETWEEN INTERVAL "
    "'1' YEAR PRECEDING AND INTERVAL '99999999' DAY FOLLOWING) AS n FROM clicks",
    "an interval too long": "SELECT url FROM clicks WHERE event_ts > '2024-01-01' - INTERVAL "
    "999999999999 DAYS",
    "an interval of nothing": "SELECT event_ts + INTERVAL '' DAY AS a FROM clicks",
    "an interval of words": "SELECT event_ts + INTERVAL 'one' DAY AS a FROM clicks",
    "a date that is none": "SELECT url FROM clicks WHERE event_ts > DATE '2024-02-31'",
    "a time that is none": "SELECT url FROM clicks WHERE event_ts > TIMESTAMP 'soon'",
    "a zone that is none": "SELECT from_utc_timestamp(event_ts, 'Mars/Olympus') AS a FROM clicks",
    "a unit that is none": "SELECT date_trunc('fortnight', event_ts) AS a FROM clicks",
    "a unit of a column": "SELECT date_trunc(url, event_ts) AS a FROM clicks",
    "UNION of other columns": "SELECT url FROM clicks UNION ALL SELECT url, amount FROM clicks",
    "LIMIT of a text": "SELECT url FROM clicks ORDER BY url LIMIT 'a'",
    "LIMIT ALL": "SELECT url FROM clicks LIMIT ALL",
    "LIMIT of minus one": "SELECT url FROM clicks ORDER BY url LIMIT -1",
    "TABLESAMPLE": "SELECT url FROM clicks TABLESAMPLE (BUCKET 1 OUT OF 2)",
    "PIVOT": "SELECT * FROM clicks PIVOT (sum(amount) FOR url IN ('a'))",
    "PIVOT of columns": "SELECT * FROM clicks PIVOT (sum(amount) FOR url IN (SELECT url FROM clicks))",
    "recursion": "WITH RECURSIVE r AS (SELECT 1 AS n UNION ALL SELECT n + 1 FROM r) SELECT n FROM r",
    "WITH of itself": "WITH a AS (SELECT * FROM a) SELECT * FROM a",
    "WITH twice": "WITH a AS (SELECT 1 AS x), a AS (SELECT 2 AS x) SELECT * FROM a",
    "WITH of a model's name": "WITH clicks AS (SELECT 1 AS event_id) SELECT event_id FROM clicks",
    "a lateral join": "SELECT url, n FROM clicks, LATERAL (SELECT count(*) AS n FROM sessions)",
    "numbers": "SELECT 1e400 AS a, 0x1F AS b, 1_000 AS c, .5 AS d, 5. AS e, 1E-400 AS f FROM clicks",
    "a long number": f"SELECT {'9' * 400} AS a FROM clicks",
    "texts": "SELECT 'a' 'b' AS a, r'\\d' AS b, \"c\" AS c, X'1F' AS d, $$e$$ AS e FROM clicks",
    "a text of NUL": "SELECT 'a\0b' AS a FROM clicks",
    "a text of lines": "SELECT 'a\n\n\nb' AS a FROM clicks",
    "a text of escapes": "SELECT '\\u0000\\U0010FFFF\\'\\%' AS a FROM clicks",
    "a long text": f"SELECT '{'x' * 200_000}' AS a FROM clicks",
    "blanks of other kinds": "SELECT\u00a0url\u3000FROM\u2003clicks",
    "a mark in the middle": "SELECT \ufeffurl FROM clicks",
    "directions": "SELECT url AS \u202elru\u202c FROM clicks",
    "full-width letters": "\uff33\uff25\uff2c\uff25\uff23\uff34 url FROM clicks",
    "quotes of a word processor": "SELECT \u2018a\u2019 AS a FROM clicks",
    "a minus of a word processor": "SELECT 3 \u2212 1 AS a FROM clicks",
    "lines of old Macs": "SELECT url\rFROM clicks -- x\rWHERE true",
    "many columns": f"SELECT {', '.join(f'url AS c{n}' for n in range(DEEP))} FROM clicks",
    "many ORs": f"SELECT url FROM clicks WHERE {' OR '.join(['amount = 1'] * DEEP)}",
    "many ANDs": f"SELECT url FROM clicks WHERE {' AND '.join(['amount > 1'] * DEEP)}",
    "many sums": f"SELECT {' + '.join(['amount'] * DEEP)} AS a FROM clicks",
    "many joined texts": f"SELECT {' || '.join(['url'] * DEEP)} AS a FROM clicks",
    "many UNION ALLs": " UNION ALL ".join(["SELECT url FROM clicks"] * DEEP),
    "many UNIONs": " UNION ".join(["SELECT url FROM clicks"] * 200),
    "many joins": "SELECT clicks.url FROM clicks "
    + " ".join(f"JOIN raw.countries AS c{n} ON c{n}.code = clicks.url" for n in range(100)),
    "many WITHs": "WITH "
    + ", ".join(
        f"c{n} AS (SELECT url FROM {'clicks' if n == 0 else f'c{n - 1}'})" for n in range(150)
    )
    + " SELECT url FROM c149",
    "a long IN": f"SELECT url FROM clicks WHERE amount IN ({', '.join(map(str, range(5_000)))})",
    "many WHENs": f"SELECT CASE {'WHEN amount = 1 THEN 2 ' * DEEP} END AS a FROM clicks",
    "deep brackets": f"SELECT {'(' * DEEP}amount{')' * DEEP} AS a FROM clicks",
    "deep calls": f"SELECT {'abs(' * DEEP}amount{')' * DEEP} AS a FROM clicks",
    "deep CASEs": f"SELECT {'CASE WHEN true THEN ' * 300}1{' END' * 300} AS a FROM clicks",
    "deep queries": f"{'SELECT * FROM (' * 200}SELECT url FROM clicks{')' * 200}",
    "deep NOTs": f"SELECT url FROM clicks WHERE {'NOT ' * DEEP}true",
    "deep minus": f"SELECT {'- ' * DEEP}amount AS a FROM clicks",
    "deep arrays": f"SELECT {'array(' * 300}1{')' * 300} AS a FROM clicks",
    "deep fields": f"SELECT url{'.a' * DEEP} AS a FROM clicks",
    "deep subqueries": f"SELECT url FROM clicks WHERE {'EXISTS (SELECT 1 FROM clicks WHERE ' * 60}"
    f"true{')' * 60}",
    "only open brackets": "(" * 5_000,
    "only quotes": "'" * 4_999,
    "only backticks": "`" * 4_999,
    "only commas": "SELECT " + "," * 3_000,
}
QUERIES |= {sql: sql for sql, _ in UNSUPPORTED} | {sql: sql for sql in WRONG}
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

    Of the others each has every second one, and every fifth of those that are long.
    """
    kinds = list(FRONTS)
    return [
        name
        for at, name in enumerate(QUERIES)
        if kind == "by time"
        or (at + kinds.index(kind)) % (5 if len(QUERIES[name]) > 999 else 2) == 0
    ]


@pytest.mark.parametrize("kind", FRONTS)
def test_hostile_queries(kind: str) -> None:
    """A hostile query, long and deep ones too, is accepted or refused by a named error."""
    found = {name: wrong(kind, QUERIES[name]) for name in chosen(kind)}

    judged(kind, found)
