"""SQL that sqlglot accepts and Spark refuses, and valid SQL of similar form."""

from __future__ import annotations

WRONG = {
    "SELECT a, FROM t": "a comma with nothing behind it",
    "SELECT f(, a) AS a FROM t": "a comma with nothing before it",
    "SELECT , a FROM t": "SELECT without columns",
    "SELECT AS a FROM t": "AS with nothing before it",
    "SELECT f(a AS ) AS a FROM t": "AS with nothing behind it",
    "SELECT a FROM t GROUP BY": "GROUP BY with nothing behind it",
    "SELECT a FROM t GROUP BY HAVING count(*) > 1": "GROUP BY with nothing behind it",
    "SELECT count(*) OVER (PARTITION BY , a) AS n FROM t": "PARTITION BY with nothing behind it",
    "SELECT a FROM t JOIN u ON": "ON with nothing behind it",
    "SELECT a FROM t WHERE a IS IS NOT NULL": "the same word twice",
    "SELECT a FROM t WHERE b BETWEEN BETWEEN 1 AND 2": "the same word twice",
    "SELECT a FROM t WHERE a NOT NULL": "NOT NULL without IS",
    "SELECT cast(a AS date AS b, count(*) AS n FROM t": "a bracket without its other half",
    "SELECT CASE WHEN a > 1 b END AS b FROM t": "WHEN without THEN",
    "SELECT CASE a WHEN 1 THEN 2 WHEN 3 b END AS b FROM t": "WHEN without THEN",
    "SELECT (a AS date) AS b FROM t": "a name in brackets",
    "SELECT count * () AS n FROM t": "brackets with nothing in them",
    "SELECT f(*) AS n, (*) AS m FROM t": "a star in brackets",
    "SELECT * EXCEPT (a b) FROM t": "names without a comma",
    "SELECT a - INTERVAL 7 AS b FROM t": "INTERVAL without",
    "SELECT a - INTERVAL 7, b FROM t": "INTERVAL without",
    "SELECT a - INTERVAL DAYS 7 AS b FROM t": "INTERVAL without",
    "SELECT a FROM t WHERE a - b > INTERVAL 1 1 DAY": "the same word twice",
    "SELECT a FROM t WHERE b BETWEEN a - INTERVAL DAYS AND a": "INTERVAL without",
    "SELECT count(*) OVER (w ORDER BY a) AS n FROM t": "PARTITION BY is missing",
    "SELECT sum(a) OVER (ORDER BY a RANGE BETWEEN 1 AND CURRENT ROW) FROM t": "an end of a frame",
}


RIGHT = (
    "SELECT a AS `from`, t.order, t.`AS`, '' AS b FROM t WHERE NOT a IS NULL AND NOT NOT b",
    "SELECT a AS all, b AS on FROM t ORDER BY 1",
    "SELECT CASE CASE WHEN a THEN 1 END WHEN 1 THEN CASE b WHEN 2 THEN 3 END END AS c FROM t",
    "SELECT a, count(*) AS n FROM t GROUP BY GROUPING SETS ((a), ())",
    "SELECT struct(a AS b, 1 AS c) AS s, named_struct() AS e, current_date() AS d FROM t",
    "SELECT * FROM t PIVOT (sum(n) AS s FOR a IN ('x' AS x, 'y' AS y))",
    "SELECT a - INTERVAL 1 DAY AS b, a + INTERVAL -2 HOURS AS c, INTERVAL '3' DAY AS d FROM t",
    "SELECT a - INTERVAL '1 day 2 hours' AS b, INTERVAL '1 2' DAY TO HOUR AS c FROM t",
    "SELECT cast(a AS INTERVAL DAY) AS b, interval AS c, a - interval AS d FROM t",
    "SELECT count(*) OVER w AS n, sum(a) OVER (w) AS m FROM t WINDOW w AS (PARTITION BY a)",
    "SELECT sum(a) OVER (ORDER BY a ROWS 2 PRECEDING) AS n FROM t",
    "SELECT a FROM t WHERE a IS DISTINCT FROM b AND a IS NOT NULL AND b IN (1, 2)",
    "SELECT cast(a AS ARRAY<ARRAY<INT>>) AS b, transform(c, (x, i) -> x + i) AS d FROM t",
    "SELECT a FROM t LEFT JOIN u USING (a) WHERE (a, b) IN (SELECT a, b FROM v)",
)
