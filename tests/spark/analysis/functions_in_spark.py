# ruff: noqa: E501 (one case is one row of a table)
"""
Functions and queries that call them, with the answers of Spark's own SQL functions.

The answers are in ``functions_in_spark.json``. Sessions of infold cannot make such functions:
Iceberg's parser does not know their parameters. ``python -m tests.spark.analysis.functions_in_spark``
asks a plain Spark and writes the file.
"""

from __future__ import annotations

import json
from pathlib import Path

from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from infold.core.target import FIXED

ANSWERS = Path(__file__).with_suffix(".json")

FUNCTIONS = {
    "net": "CREATE FUNCTION net(price DECIMAL(18,2), rate DOUBLE) RETURNS DECIMAL(18,2) RETURN price / (1 + rate)",
    "whole": "CREATE FUNCTION whole(a DECIMAL) RETURNS DECIMAL RETURN a * 1.55",
    "num": "CREATE FUNCTION num(a INT) RETURNS INT RETURN a",
    "inferred": "CREATE FUNCTION inferred(a DECIMAL(9,2), b SMALLINT) RETURN a * b / 3",
    "sum_of": "CREATE FUNCTION sum_of(a INT, b INT) RETURN a + b",
    "size_of": "CREATE FUNCTION size_of(a INT) RETURNS STRING RETURN CASE WHEN a IS NULL THEN 'none' WHEN a > 1 THEN concat('many ', size_of.a) ELSE 'few' END",
    "plus": "CREATE FUNCTION plus(xs ARRAY<INT>, n INT) RETURNS ARRAY<BIGINT> RETURN transform(xs, x -> x + n)",
    "counted": "CREATE FUNCTION counted(x INT) RETURNS INT RETURN aggregate(sequence(0, x), 0, (acc, x) -> acc + x)",
    "named": "CREATE FUNCTION named(a INT, b STRING, p STRUCT<u: INT, v: ARRAY<INT>>) RETURN struct(a, B, p.u, a + 1 AS c, try_element_at(p.v, 1) AS d, 1.50BD AS e)",
    "as_text": "CREATE FUNCTION as_text(a INT, b INT) RETURNS STRING RETURN to_json(struct(a, b AS z))",
    "is_one": "CREATE FUNCTION is_one(a INT, b INT) RETURNS BOOLEAN RETURN (a, b) IN ((1, 2), (3, 4))",
    "day_of": "CREATE FUNCTION day_of(t TIMESTAMP) RETURNS DATE RETURN date_trunc('DAY', t)",
    "twice": "CREATE FUNCTION twice(a INT) RETURNS INT RETURN num(a) + num(a)",
    "lists": "CREATE FUNCTION lists(xs ARRAY<INT>) RETURN transform(xs, x -> struct(x))",
    "seven": "CREATE FUNCTION seven() RETURNS BIGINT RETURN 7L + -.5D",
}
ROWS = """
VALUES (1, '12', 3.75D, 2.60BD, true, TIMESTAMP '2024-03-09 23:59:59.999999', array(1, NULL, 3)),
  (NULL, NULL, NULL, NULL, NULL, NULL, NULL),
  (3, ' 7 ', -0.5D, -99999.995BD, false, TIMESTAMP '1969-12-31 00:00:00', array()),
  (2, '0', 1e9D, 0.005BD, true, TIMESTAMP '9999-12-31 23:00:00', array(-5, 0, 9))
AS t(x, s, d, m, b, ts, xs)"""
SELECTS = [
    "net(m, 0.19) AS a, net(s, d * d) AS b, net(x, NULL) AS c, net(d, 1) AS e",
    "whole(m) AS a, whole(s) AS b, whole(x) AS c",
    "num(s) AS a, num(d) AS b, num(b) AS c, num(m) AS e, num(x) + 1 AS g",
    "inferred(m, x) AS a, inferred(NULL, s) AS b, 2 * inferred(m, x) AS c, -sum_of(x, 1) * 3 AS e",
    "size_of(x) AS a, size_of(s) AS b, upper(size_of(d)) AS c",
    "plus(xs, 1) AS a, plus(array(1, 2), x) AS b, plus(NULL, 1) AS c",
    "counted(x) AS a, counted(num(s)) AS b",
    "named(x, s, named_struct('u', x, 'v', xs)) AS a, named(s, x, named_struct('w', d, 'u', array(m))) AS b",
    "as_text(x, s) AS a, is_one(x, 2) AS b, is_one(s, s) AS c",
    "day_of(ts) AS a, day_of(concat('202', x)) AS b, day_of(DATE '2024-03-09') AS c",
    "twice(x) AS a, twice(twice(s)) AS b, seven() AS c, lists(array(1)) AS e",
    "sum(num(x)) AS a, num(sum(x)) AS b, max(size_of(x)) AS c",
    "num(array(1)) AS a",
    "num(DATE '2024-03-09') AS a",
    "num('x') AS a",
    "plus(array(2147483647), 1) AS a",
    "num(1e20) AS a",
    "net(99999999999999999999, 0) AS a",
    "net(1, -1) AS a",
]
WHOLE = [
    f"SELECT num(b) AS a, count(*) AS n FROM {ROWS} WHERE num(x) > 0 GROUP BY num(b) HAVING num(max(x)) > 1",
    f"SELECT t.x, size_of(t.x) AS n, row_number() OVER (PARTITION BY num(t.b) ORDER BY t.x) AS r FROM {ROWS} JOIN (SELECT num('1') AS y) AS u ON num(t.x) >= u.y",
]
QUERIES = [*(f"SELECT {one} FROM {ROWS}" for one in SELECTS), *WHOLE]


def result(spark: SparkSession, sql: str) -> list[str]:
    """The columns and rows of a query, or why there are none."""
    try:
        frame = spark.sql(sql)
        rows = sorted(str(row) for row in frame.toArrow().to_pylist())
    except PySparkException as error:
        return [f"failed: {error.getCondition()}"]
    return [frame.schema.simpleString(), *rows]


def ask() -> None:
    """Write the answers of a Spark without extensions."""
    builder = SparkSession.builder.master("local[1]")
    for key, value in FIXED.items():
        if key.startswith("spark.sql.") and not key.startswith(
            ("spark.sql.extensions", "spark.sql.defaultCatalog")
        ):
            builder = builder.config(key, value)
    plain = builder.config("spark.ui.enabled", "false").getOrCreate()
    for text in FUNCTIONS.values():
        plain.sql(text.replace("CREATE", "CREATE TEMPORARY", 1))
    answers = {sql: result(plain, sql) for sql in QUERIES}
    ANSWERS.write_text(json.dumps(answers, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    ask()
