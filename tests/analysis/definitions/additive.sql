-- additive: a column more
SELECT a, b FROM t
-- =>
SELECT a, b, c FROM t

-- additive: a column more in front
SELECT a, b FROM t WHERE c > 1
-- =>
SELECT a * 2 AS twice, a, b FROM t WHERE c > 1

-- additive: an aggregate more
SELECT a, count(*) AS n FROM t GROUP BY a
-- =>
SELECT a, count(*) AS n, sum(b) AS total, count(DISTINCT c) AS cs FROM t GROUP BY 1

-- additive: an aggregate more of the whole table
SELECT count(*) AS n FROM t
-- =>
SELECT count(*) AS n, max(b) AS most FROM t

-- additive: the key of a group is shown
SELECT count(*) AS n FROM t GROUP BY a
-- =>
SELECT a, count(*) AS n FROM t GROUP BY a

-- additive: a window more, which numbers rows and drops none
SELECT a, b FROM t
-- =>
SELECT a, b, row_number() OVER (PARTITION BY a ORDER BY b, c) AS nr FROM t

-- additive: a column through a CTE
WITH c AS (SELECT a, b FROM t WHERE b > 1) SELECT a, b FROM c
-- =>
WITH c AS (SELECT a, b, c AS third FROM t WHERE b > 1) SELECT a, b, third FROM c

-- additive: a column through both sides of UNION ALL
SELECT a FROM t UNION ALL SELECT a FROM u
-- =>
SELECT a, b FROM t UNION ALL SELECT a, k FROM u

-- additive: a column more, conditions in another order
SELECT a FROM t WHERE a > 1 AND b > 2
-- =>
SELECT a, b FROM t WHERE b > 2 AND a > 1

-- additive: a column of a joined table
SELECT x.a, y.k FROM t x LEFT JOIN u y ON x.a = y.a
-- =>
SELECT x.a, y.k, y.s FROM t x LEFT JOIN u y ON x.a = y.a

-- additive: a scalar subquery
SELECT a FROM t
-- =>
SELECT a, (SELECT max(u.k) FROM u WHERE u.a = t.a) AS k FROM t

-- additive: a column more of a window's outcome
SELECT a, b FROM (SELECT a, b, c, row_number() OVER (PARTITION BY a ORDER BY b, c) AS nr FROM t) WHERE nr = 1
-- =>
SELECT a, b, c FROM (SELECT a, b, c, row_number() OVER (PARTITION BY a ORDER BY b, c) AS nr FROM t) WHERE nr = 1

-- additive: a star over a view's columns instead of one
SELECT a FROM v
-- =>
SELECT * FROM v
