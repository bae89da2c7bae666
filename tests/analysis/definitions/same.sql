-- none: layout and comments
SELECT a, b FROM t WHERE c > 1
-- =>
SELECT a /* the first */,
  b -- and the second
FROM t
WHERE c > 1

-- none: words in other letters
select A, sum(B) as N from T group by a
-- =>
SELECT a, SUM(b) AS n FROM t GROUP BY A

-- none: an alias of a table comes
SELECT a, b FROM t WHERE c > 1
-- =>
SELECT x.a, x.b FROM t AS x WHERE x.c > 1

-- none: an alias of a table has another name
SELECT x.a, y.k FROM t x JOIN u y ON x.a = y.a
-- =>
SELECT left_side.a, right_side.k FROM t AS left_side INNER JOIN u AS right_side ON left_side.a = right_side.a

-- none: two aliases change places with the tables that they name
SELECT x.a, y.k FROM t x JOIN u y ON x.a = y.a
-- =>
SELECT y.a, x.k FROM t y JOIN u x ON y.a = x.a

-- none: a CTE has another name
WITH c AS (SELECT a, b FROM t WHERE b > 1) SELECT a, count(*) AS n FROM c GROUP BY a
-- =>
WITH chosen AS (SELECT a, b FROM t WHERE b > 1) SELECT a, count(*) AS n FROM chosen GROUP BY a

-- none: a CTE becomes a subquery
WITH c AS (SELECT a, b FROM t WHERE b > 1) SELECT a, count(*) AS n FROM c GROUP BY a
-- =>
SELECT a, count(*) AS n FROM (SELECT a, b FROM t WHERE b > 1) AS c GROUP BY a

-- none: CTEs in another order
WITH c AS (SELECT a FROM t), d AS (SELECT a FROM u) SELECT c.a FROM c JOIN d ON c.a = d.a
-- =>
WITH d AS (SELECT a FROM u), c AS (SELECT a FROM t) SELECT c.a FROM c JOIN d ON c.a = d.a

-- none: a CTE that nothing reads goes
WITH c AS (SELECT a FROM t), d AS (SELECT a FROM u) SELECT a FROM c
-- =>
WITH c AS (SELECT a FROM t) SELECT a FROM c

-- none: a CTE's columns have other names
WITH c AS (SELECT a AS x, b + 1 AS y FROM t) SELECT x AS a, y AS b FROM c WHERE y > 2
-- =>
WITH c AS (SELECT a AS key, b + 1 AS value FROM t) SELECT key AS a, value AS b FROM c WHERE value > 2

-- none: a CTE computes a column more that nobody reads
WITH c AS (SELECT a, b FROM t WHERE b > 1) SELECT a, b FROM c
-- =>
WITH c AS (SELECT a, b, c * 2 AS unread FROM t WHERE b > 1) SELECT a, b FROM c

-- none: names of columns behind the alias of a subquery
SELECT x, y FROM (SELECT a, b FROM t) AS q(x, y)
-- =>
SELECT a AS x, b AS y FROM (SELECT a, b FROM t) AS q

-- none: columns in another order
SELECT a, b, c FROM t
-- =>
SELECT c, a, b FROM t

-- none: columns of DISTINCT in another order
SELECT DISTINCT a, b FROM t
-- =>
SELECT DISTINCT b, a FROM t

-- none: columns of a UNION in another order on both sides
SELECT a, b FROM t UNION SELECT a, k FROM u
-- =>
SELECT b, a FROM t UNION SELECT k, a FROM u

-- none: a star is written out
SELECT * FROM u
-- =>
SELECT a, b, k, s FROM u

-- none: the star of one table among two is written out
SELECT x.*, y.d FROM u AS x JOIN t AS y ON x.a = y.a
-- =>
SELECT x.a, x.b, x.k, x.s, y.d FROM u AS x JOIN t AS y ON x.a = y.a

-- none: all columns of a star but one
SELECT * EXCEPT (s) FROM u
-- =>
SELECT a, b, k FROM u

-- none: conditions in another order
SELECT a FROM t WHERE a > 1 AND b = 2 AND c IS NULL
-- =>
SELECT a FROM t WHERE c IS NULL AND b = 2 AND a > 1

-- none: conditions in brackets of their own
SELECT a FROM t WHERE a > 1 AND b = 2 AND c = 3
-- =>
SELECT a FROM t WHERE (a > 1) AND ((b = 2) AND (c = 3))

-- none: TRUE beside conditions
SELECT a FROM t WHERE a > 1
-- =>
SELECT a FROM t WHERE TRUE AND a > 1 AND 1 = 1 AND 'x' = 'x'

-- none: WHERE TRUE
SELECT a FROM t
-- =>
SELECT a FROM t WHERE true

-- none: FALSE beside alternatives
SELECT a FROM t WHERE a > 1 OR b = 2
-- =>
SELECT a FROM t WHERE b = 2 OR false OR a > 1

-- none: a condition that is said twice
SELECT a FROM t WHERE a > 1 AND b = 2
-- =>
SELECT a FROM t WHERE a > 1 AND b = 2 AND a > 1

-- none: AND goes before OR
SELECT a FROM t WHERE a = 1 OR b = 2 AND c = 3
-- =>
SELECT a FROM t WHERE (c = 3 AND b = 2) OR a = 1

-- none: conditions around BETWEEN, which has an AND of its own
SELECT a FROM t WHERE a BETWEEN 1 AND 2 AND b = 1
-- =>
SELECT a FROM t WHERE b = 1 AND a BETWEEN 1 AND 2

-- none: conditions around CASE, which has an AND of its own
SELECT a FROM t WHERE CASE WHEN a = 1 AND b = 2 THEN TRUE ELSE FALSE END AND c = 1
-- =>
SELECT a FROM t WHERE c = 1 AND CASE WHEN a = 1 AND b = 2 THEN TRUE ELSE FALSE END

-- none: conditions of HAVING and of a join
SELECT x.a, count(*) AS n FROM t x JOIN u y ON x.a = y.a AND y.k > 1 GROUP BY x.a HAVING count(*) > 1 AND max(x.b) < 9
-- =>
SELECT x.a, count(*) AS n FROM t x JOIN u y ON y.k > 1 AND x.a = y.a GROUP BY x.a HAVING max(x.b) < 9 AND count(*) > 1

-- none: brackets around all of an expression
SELECT a + b AS x, count(*) AS n FROM t GROUP BY a + b
-- =>
SELECT (a + b) AS x, count(*) AS n FROM t GROUP BY (a + b)

-- none: brackets that the order of arithmetic makes needless
SELECT a * b + c AS x, a - b - c AS y FROM t
-- =>
SELECT (a * b) + c AS x, (a - b) - c AS y FROM t

-- none: brackets around arithmetic in a comparison
SELECT a FROM t WHERE a + b > c * 2
-- =>
SELECT a FROM t WHERE (a + b) > (c * 2)

-- none: brackets around names and literals
SELECT coalesce(a, 0) + b AS x FROM t
-- =>
SELECT coalesce((a), (0)) + ((b)) AS x FROM t

-- none: brackets in CASE
SELECT CASE WHEN a = 1 THEN b ELSE c END AS x FROM t
-- =>
SELECT CASE WHEN (a = 1) THEN (b) ELSE (c) END AS x FROM t

-- none: GROUP BY by position, by name, by expression
SELECT a + 1 AS x, count(*) AS n FROM t GROUP BY 1
-- =>
SELECT a + 1 AS x, count(*) AS n FROM t GROUP BY x

-- none: GROUP BY by position when columns change places
SELECT a, b, count(*) AS n FROM t GROUP BY 1, 2
-- =>
SELECT b, count(*) AS n, a FROM t GROUP BY a, 1

-- none: an alias in GROUP BY is the expression
SELECT a + 1 AS x, count(*) AS n FROM t GROUP BY x
-- =>
SELECT a + 1 AS x, count(*) AS n FROM t GROUP BY a + 1

-- none: the order of the whole table
SELECT a, b FROM t
-- =>
SELECT a, b FROM t ORDER BY b DESC, a

-- none: how a join is carried out
SELECT x.a, y.k FROM t x JOIN u y ON x.a = y.a
-- =>
SELECT /*+ BROADCAST(y), REPARTITION(3) */ x.a, y.k FROM t x JOIN u y ON x.a = y.a

-- none: words of a join that say nothing
SELECT x.a, y.k FROM t x LEFT JOIN u y ON x.a = y.a
-- =>
SELECT x.a, y.k FROM t x LEFT OUTER JOIN u y ON x.a = y.a

-- none: a view, and its query
SELECT a, b FROM v WHERE b > 2
-- =>
SELECT a, b FROM (SELECT a, b FROM t WHERE c > 1) AS v WHERE b > 2

-- none: aliases in a correlated subquery
SELECT a FROM t WHERE EXISTS (SELECT 1 FROM u WHERE u.a = t.a AND u.k > t.b)
-- =>
SELECT x.a FROM t AS x WHERE EXISTS (SELECT 1 FROM u AS y WHERE y.k > x.b AND y.a = x.a)

-- none: aliases in a window
SELECT a, sum(b) OVER (PARTITION BY c ORDER BY a) AS x FROM t
-- =>
SELECT z.a, sum(z.b) OVER (PARTITION BY z.c ORDER BY z.a) AS x FROM t AS z

-- none: sides of UNION ALL with other names on the right
SELECT a AS x FROM t UNION ALL SELECT a AS x FROM u
-- =>
SELECT a AS x FROM t UNION ALL SELECT a FROM u AS other

-- none: an exploded column
SELECT a, x FROM t LATERAL VIEW explode(xs) e AS x
-- =>
SELECT z.a, y.item AS x FROM t AS z LATERAL VIEW explode(z.xs) y AS item

-- none: an unequal sign
SELECT a FROM t WHERE a <> 1
-- =>
SELECT a FROM t WHERE a != 1

-- none: a lambda's list has another alias of its table
SELECT transform(xs, x -> x + a) AS ys FROM t
-- =>
SELECT transform(z.xs, x -> x + z.a) AS ys FROM t AS z

-- none: letters of a table's alias and its columns
SELECT x.a FROM t AS x WHERE x.b > 1
-- =>
SELECT X.A FROM t AS x WHERE X.b > 1

-- none: brackets around a test for NULL that is the first column
SELECT a IS NULL AS gone, b FROM t
-- =>
SELECT (a IS NULL) AS gone, b FROM t

-- none: an alias of a table, and a first column that is a test of a test
SELECT a IS NULL IS NULL AS gone, b FROM t
-- =>
SELECT x.a IS NULL IS NULL AS gone, b FROM t AS x
