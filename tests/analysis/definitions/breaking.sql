-- breaking: another condition
SELECT a FROM t WHERE a > 1
-- =>
SELECT a FROM t WHERE a > 2

-- breaking: a condition more
SELECT a FROM t WHERE a > 1
-- =>
SELECT a FROM t WHERE a > 1 AND b > 1

-- breaking: another expression
SELECT a, b + 1 AS x FROM t
-- =>
SELECT a, b + 2 AS x FROM t

-- breaking: two columns change their names
SELECT a AS x, b AS y FROM t
-- =>
SELECT b AS x, a AS y FROM t

-- breaking: a column less
SELECT a, b FROM t
-- =>
SELECT a FROM t

-- breaking: a column has another name
SELECT a AS x FROM t
-- =>
SELECT a AS y FROM t

-- breaking: a column less and another more
SELECT a, b FROM t
-- =>
SELECT a, c FROM t

-- breaking: brackets that change the order of arithmetic
SELECT a - (b - c) AS x FROM t
-- =>
SELECT a - b - c AS x FROM t

-- breaking: brackets around two brackets
SELECT a - ((b + c)) AS x FROM t
-- =>
SELECT a - b + c AS x FROM t

-- breaking: brackets on the right of a division
SELECT a / (b * c) AS x FROM t
-- =>
SELECT a / b * c AS x FROM t

-- breaking: sums of floating numbers in another order
SELECT d + (a + b) AS x FROM t
-- =>
SELECT d + a + b AS x FROM t

-- breaking: brackets among bits, which sqlglot reads in another order than Spark
SELECT a | b & c AS x FROM t
-- =>
SELECT (a | b) & c AS x FROM t

-- breaking: brackets before a predicate, which sqlglot reads in another order than Spark
SELECT a FROM t WHERE (a = b) IS NULL
-- =>
SELECT a FROM t WHERE a = b IS NULL

-- breaking: brackets around alternatives
SELECT a FROM t WHERE a = 1 AND (b = 1 OR c = 1)
-- =>
SELECT a FROM t WHERE a = 1 AND b = 1 OR c = 1

-- breaking: NOT of two conditions
SELECT a FROM t WHERE NOT (a = 1 AND b = 1)
-- =>
SELECT a FROM t WHERE NOT a = 1 AND b = 1

-- breaking: a minus before brackets
SELECT -(a + b) AS x FROM t
-- =>
SELECT -a + b AS x FROM t

-- breaking: a negative literal in brackets, which has another type
SELECT -(2147483648) AS x FROM t
-- =>
SELECT -2147483648 AS x FROM t

-- breaking: a cast of a sum
SELECT (a + d)::int AS x FROM t
-- =>
SELECT a + d::int AS x FROM t

-- breaking: the field of a struct, and the column of a table
SELECT (x).a AS a FROM t AS x CROSS JOIN (SELECT named_struct('a', 1) AS x) AS y
-- =>
SELECT x.a AS a FROM t AS x CROSS JOIN (SELECT named_struct('a', 1) AS x) AS y

-- breaking: a list and its only member
SELECT a FROM t WHERE a IN (1)
-- =>
SELECT a FROM t WHERE a = (1)

-- breaking: AND TRUE makes no boolean of a text in a column
SELECT s AS x FROM t
-- =>
SELECT s AND TRUE AS x FROM t

-- breaking: FALSE among conditions
SELECT a FROM t WHERE a > 1
-- =>
SELECT a FROM t WHERE a > 1 AND FALSE

-- breaking: TRUE among alternatives
SELECT a FROM t WHERE a > 1
-- =>
SELECT a FROM t WHERE a > 1 OR TRUE

-- breaking: two literals that only look alike
SELECT a FROM t
-- =>
SELECT a FROM t WHERE '1' = '1 '

-- breaking: a column that equals itself is not NULL
SELECT a FROM t
-- =>
SELECT a FROM t WHERE a = a

-- breaking: NOT NOT is no boolean identity for NULL in a predicate
SELECT a FROM t WHERE a = 1
-- =>
SELECT a FROM t WHERE NOT (a <> 1 OR a IS NULL)

-- breaking: NOT IN and NULL
SELECT a FROM t WHERE a NOT IN (SELECT a FROM u)
-- =>
SELECT a FROM t WHERE NOT EXISTS (SELECT 1 FROM u WHERE u.a = t.a)

-- breaking: NULL-safe equality
SELECT a FROM t WHERE a = b
-- =>
SELECT a FROM t WHERE a <=> b

-- breaking: IS NOT NULL of an outer join's column
SELECT x.a FROM t x LEFT JOIN u y ON x.a = y.a AND y.k > 1
-- =>
SELECT x.a FROM t x LEFT JOIN u y ON x.a = y.a WHERE y.k > 1

-- breaking: functions that are alike, and have other types
SELECT ifnull(a, 0) AS x FROM t
-- =>
SELECT coalesce(a, 0) AS x FROM t

-- breaking: the type of a literal
SELECT a * 1.0 AS x FROM t
-- =>
SELECT a * 1.00 AS x FROM t

-- breaking: the suffix of a literal
SELECT a + 1L AS x FROM t
-- =>
SELECT a + 1 AS x FROM t

-- breaking: the type of a cast
SELECT cast(a AS decimal(10, 2)) AS x FROM t
-- =>
SELECT cast(a AS decimal(10, 3)) AS x FROM t

-- breaking: a cast that may fail, and one that gives NULL
SELECT cast(s AS int) AS x FROM t
-- =>
SELECT try_cast(s AS int) AS x FROM t

-- breaking: formats that sqlglot takes for one
SELECT date_format(ts, 'yyyy') AS x FROM t
-- =>
SELECT date_format(ts, 'y') AS x FROM t

-- breaking: formats of times that are parsed
SELECT to_timestamp(s, 'yyyy-MM-dd') AS x FROM t
-- =>
SELECT to_timestamp(s, 'y-M-d') AS x FROM t

-- breaking: letters in a text
SELECT a FROM t WHERE s LIKE 'X%'
-- =>
SELECT a FROM t WHERE s LIKE 'x%'

-- breaking: spaces in a text
SELECT a FROM t WHERE s = 'a b'
-- =>
SELECT a FROM t WHERE s = 'a  b'

-- breaking: a text that looks like a name
SELECT a FROM t WHERE s = 'a'
-- =>
SELECT a FROM t WHERE s = a

-- breaking: the unit of a floor
SELECT date_trunc('DAY', ts) AS x FROM t
-- =>
SELECT date_trunc('HOUR', ts) AS x FROM t

-- breaking: the length of an interval
SELECT a FROM t WHERE ts > ts - INTERVAL 1 DAY
-- =>
SELECT a FROM t WHERE ts > ts - INTERVAL 1 MONTH

-- breaking: LEFT joins in another order
SELECT x.a, y.k FROM t x LEFT JOIN u y ON x.a = y.a LEFT JOIN u z ON z.a = y.k
-- =>
SELECT x.a, y.k FROM t x LEFT JOIN u z ON z.a = x.b LEFT JOIN u y ON x.a = y.a

-- breaking: the sides of a LEFT join
SELECT x.a FROM t x LEFT JOIN u y ON x.a = y.a
-- =>
SELECT x.a FROM u y LEFT JOIN t x ON x.a = y.a

-- breaking: the kind of a join
SELECT x.a FROM t x LEFT JOIN u y ON x.a = y.a
-- =>
SELECT x.a FROM t x JOIN u y ON x.a = y.a

-- breaking: a semi join and a join
SELECT x.a FROM t x LEFT SEMI JOIN u y ON x.a = y.a
-- =>
SELECT x.a FROM t x JOIN u y ON x.a = y.a

-- breaking: a comma binds less tightly than a join
SELECT x.a FROM t x, u y RIGHT JOIN u z ON y.k = z.k
-- =>
SELECT x.a FROM t x JOIN u y RIGHT JOIN u z ON y.k = z.k

-- breaking: the same table twice, the other one's column
SELECT x.a FROM t x JOIN t y ON x.a = y.b
-- =>
SELECT y.a FROM t x JOIN t y ON x.a = y.b

-- breaking: USING in a FULL join makes one column of two
SELECT k FROM u x FULL JOIN (SELECT a AS k FROM t) y USING (k)
-- =>
SELECT x.k FROM u x FULL JOIN (SELECT a AS k FROM t) y USING (k)

-- breaking: the star of a join with USING, and the columns of one side
SELECT * FROM (SELECT k FROM u) x FULL JOIN (SELECT a AS k FROM t) y USING (k)
-- =>
SELECT x.* FROM (SELECT k FROM u) x FULL JOIN (SELECT a AS k FROM t) y USING (k)

-- breaking: other columns in USING
SELECT x.a FROM t x JOIN u y USING (a)
-- =>
SELECT x.a FROM t x JOIN u y USING (a, b)

-- breaking: a NATURAL join with a column more
SELECT x.a FROM t x NATURAL JOIN (SELECT a FROM u) y
-- =>
SELECT x.a FROM t x NATURAL JOIN (SELECT a, b FROM u) y

-- breaking: DISTINCT with an added column
SELECT DISTINCT a FROM t
-- =>
SELECT DISTINCT a, b FROM t

-- breaking: DISTINCT inside, with an added column that nobody reads
SELECT a FROM (SELECT DISTINCT a FROM t)
-- =>
SELECT a FROM (SELECT DISTINCT a, b FROM t)

-- breaking: DISTINCT comes
SELECT a FROM t
-- =>
SELECT DISTINCT a FROM t

-- breaking: UNION with an added column
SELECT a FROM t UNION SELECT a FROM u
-- =>
SELECT a, b FROM t UNION SELECT a, b FROM u

-- breaking: UNION keeps no copies
SELECT a FROM t UNION ALL SELECT a FROM u
-- =>
SELECT a FROM t UNION SELECT a FROM u

-- breaking: UNION ALL goes by position
SELECT a, b FROM t UNION ALL SELECT a, k FROM u
-- =>
SELECT a, b FROM t UNION ALL SELECT k, a FROM u

-- breaking: UNION ALL takes its names from the left
SELECT a AS x FROM t UNION ALL SELECT b AS y FROM u
-- =>
SELECT b AS x FROM u UNION ALL SELECT a AS y FROM t

-- breaking: INTERSECT goes before UNION
SELECT a FROM t UNION SELECT a FROM u INTERSECT SELECT b FROM u
-- =>
(SELECT a FROM t UNION SELECT a FROM u) INTERSECT SELECT b FROM u

-- breaking: EXCEPT the other way round
SELECT a FROM t EXCEPT SELECT a FROM u
-- =>
SELECT a FROM u EXCEPT SELECT a FROM t

-- breaking: EXCEPT of which the right has brackets
SELECT a FROM t EXCEPT SELECT a FROM u EXCEPT SELECT b FROM u
-- =>
SELECT a FROM t EXCEPT (SELECT a FROM u EXCEPT SELECT b FROM u)

-- breaking: INTERSECT with an added column
SELECT a FROM t INTERSECT SELECT a FROM u
-- =>
SELECT a, b FROM t INTERSECT SELECT a, b FROM u

-- breaking: GROUP BY with a key more
SELECT a, count(*) AS n FROM t GROUP BY a
-- =>
SELECT a, count(*) AS n FROM t GROUP BY a, b

-- breaking: GROUP BY ALL with an added column
SELECT a, count(*) AS n FROM t GROUP BY ALL
-- =>
SELECT a, b, count(*) AS n FROM t GROUP BY ALL

-- breaking: GROUP BY by a position that means another column
SELECT a, b, count(*) AS n FROM t GROUP BY 1, b
-- =>
SELECT b, a + 1 AS a, count(*) AS n FROM t GROUP BY 1, 2

-- breaking: ROLLUP by positions in another order
SELECT a, b, count(*) AS n FROM t GROUP BY ROLLUP (1, 2)
-- =>
SELECT b, a, count(*) AS n FROM t GROUP BY ROLLUP (1, 2)

-- breaking: ROLLUP and plain groups
SELECT a, b, count(*) AS n FROM t GROUP BY a, b
-- =>
SELECT a, b, count(*) AS n FROM t GROUP BY a, b WITH ROLLUP

-- breaking: an alias in GROUP BY that is a column of the table
SELECT a + 1 AS b, count(*) AS n FROM t GROUP BY b, a
-- =>
SELECT a + 1 AS b, count(*) AS n FROM t GROUP BY a + 1, a

-- breaking: an alias in HAVING that is a column of the table
SELECT c, max(b) AS x FROM t GROUP BY c HAVING max(a) > 1
-- =>
SELECT c, max(b) AS x, min(d) AS a FROM t GROUP BY c HAVING max(a) > 1

-- breaking: HAVING TRUE without a group makes one row
SELECT 1 AS x FROM t
-- =>
SELECT 1 AS x FROM t HAVING TRUE

-- breaking: an aggregate where there was none
SELECT 1 AS x FROM t
-- =>
SELECT 1 AS x, count(*) AS n FROM t

-- breaking: the last aggregate of the whole table goes from ORDER BY
SELECT 1 AS x FROM t ORDER BY count(*)
-- =>
SELECT 1 AS x FROM t

-- breaking: an exploded column comes
SELECT a FROM t
-- =>
SELECT a, explode(xs) AS x FROM t

-- breaking: positions of an exploded column
SELECT a FROM t
-- =>
SELECT a, posexplode(xs) AS (at, x) FROM t

-- breaking: a LATERAL VIEW that nobody reads makes rows
SELECT a FROM t
-- =>
SELECT a FROM t LATERAL VIEW explode(xs) e AS x

-- breaking: a LATERAL VIEW that keeps rows without any
SELECT a, x FROM t LATERAL VIEW explode(xs) e AS x
-- =>
SELECT a, x FROM t LATERAL VIEW OUTER explode(xs) e AS x

-- breaking: a LATERAL VIEW before a join, and behind it
SELECT y.k, e.x FROM t LATERAL VIEW explode(xs) e AS x LEFT JOIN u y ON y.a = t.a AND y.k = e.x
-- =>
SELECT y.k, e.x FROM t LEFT JOIN u y ON y.a = t.a LATERAL VIEW explode(xs) e AS x

-- breaking: a window in QUALIFY
SELECT a, b FROM t QUALIFY row_number() OVER (PARTITION BY a ORDER BY b, c) = 1
-- =>
SELECT a, b FROM t QUALIFY row_number() OVER (PARTITION BY a ORDER BY c, b) = 1

-- breaking: QUALIFY comes
SELECT a, b FROM t
-- =>
SELECT a, b FROM t QUALIFY row_number() OVER (PARTITION BY a ORDER BY b, c) = 1

-- breaking: a window of more rows decides which one stays
SELECT a, b FROM (SELECT a, b, row_number() OVER (PARTITION BY a ORDER BY b, c) AS nr FROM t) WHERE nr = 1
-- =>
SELECT a, b FROM (SELECT a, b, row_number() OVER (PARTITION BY a, c ORDER BY b) AS nr FROM t) WHERE nr = 1

-- breaking: the frame of a window
SELECT a, sum(b) OVER (PARTITION BY c ORDER BY a) AS x FROM t
-- =>
SELECT a, sum(b) OVER (PARTITION BY c ORDER BY a ROWS BETWEEN 1 PRECEDING AND CURRENT ROW) AS x FROM t

-- breaking: where NULL stands in a window's order
SELECT a, row_number() OVER (ORDER BY b NULLS FIRST, a, c) AS x FROM t
-- =>
SELECT a, row_number() OVER (ORDER BY b NULLS LAST, a, c) AS x FROM t

-- breaking: a named window is another
SELECT a, sum(b) OVER w AS x FROM t WINDOW w AS (PARTITION BY c)
-- =>
SELECT a, sum(b) OVER w AS x FROM t WINDOW w AS (PARTITION BY s)

-- breaking: rows are cut off
SELECT a FROM t ORDER BY a, b, c LIMIT 3
-- =>
SELECT a FROM t ORDER BY a, b, c LIMIT 4

-- breaking: which rows are cut off
SELECT a FROM t ORDER BY a, b, c LIMIT 3
-- =>
SELECT a FROM t ORDER BY a, c, b LIMIT 3

-- breaking: rows are cut off by the number of a column
SELECT a, b FROM t ORDER BY 1, 2, c LIMIT 3
-- =>
SELECT b, a FROM t ORDER BY 1, 2, c LIMIT 3

-- breaking: rows are cut off by a column's name, which is another column
SELECT a, b FROM t ORDER BY c, a, b LIMIT 3
-- =>
SELECT a, b, -c AS c FROM t ORDER BY c, a, b LIMIT 3

-- breaking: LIMIT ALL
SELECT a FROM t ORDER BY a LIMIT 3
-- =>
SELECT a FROM t ORDER BY a LIMIT ALL

-- breaking: rows of an inner query are cut off
SELECT a FROM (SELECT a FROM t ORDER BY a, b, c LIMIT 3)
-- =>
SELECT a FROM (SELECT a FROM t ORDER BY a DESC, b, c LIMIT 3)

-- breaking: rows are skipped
SELECT a FROM t ORDER BY a, b, c LIMIT 3
-- =>
SELECT a FROM t ORDER BY a, b, c LIMIT 3 OFFSET 1

-- breaking: a part of the rows, drawn
SELECT a FROM t
-- =>
SELECT a FROM t TABLESAMPLE (10 PERCENT)

-- breaking: another table
SELECT a FROM t
-- =>
SELECT a FROM u

-- breaking: a view, and the table under it
SELECT a FROM v
-- =>
SELECT a FROM t

-- breaking: a CTE of a table's name hides it
SELECT a FROM u
-- =>
WITH u AS (SELECT a FROM t) SELECT a FROM u

-- breaking: which CTE a name means
WITH c AS (SELECT a FROM t), d AS (SELECT b AS a FROM t) SELECT a FROM c
-- =>
WITH c AS (SELECT a FROM t), d AS (SELECT b AS a FROM t) SELECT a FROM d

-- breaking: aliases in a CTE change places
WITH c AS (SELECT a AS x, b AS y FROM t) SELECT x AS a, y AS b FROM c
-- =>
WITH c AS (SELECT a AS y, b AS x FROM t) SELECT x AS a, y AS b FROM c

-- breaking: a column of the outer query, and one of the inner
SELECT a FROM t WHERE EXISTS (SELECT 1 FROM u WHERE u.a = t.b)
-- =>
SELECT a FROM t WHERE EXISTS (SELECT 1 FROM u WHERE u.a = u.b)

-- breaking: a name without a table means the inner query's column
SELECT a FROM t WHERE EXISTS (SELECT 1 FROM u WHERE u.k = t.a)
-- =>
SELECT a FROM t WHERE EXISTS (SELECT 1 FROM u WHERE u.k = a)

-- breaking: a correlated subquery over two tables of the outer query
SELECT x.a FROM t x JOIN t y ON x.a = y.a WHERE EXISTS (SELECT 1 FROM u WHERE u.k = x.b)
-- =>
SELECT x.a FROM t x JOIN t y ON x.a = y.a WHERE EXISTS (SELECT 1 FROM u WHERE u.k = y.b)

-- breaking: levels of correlation
SELECT a FROM t WHERE EXISTS (SELECT 1 FROM u WHERE u.a = t.a AND EXISTS (SELECT 1 FROM u w WHERE w.a = w.k))
-- =>
SELECT a FROM t WHERE EXISTS (SELECT 1 FROM u WHERE u.a = t.a AND EXISTS (SELECT 1 FROM u w WHERE w.a = u.k))

-- breaking: pairs in IN, the other way round
SELECT a FROM t WHERE (a, b) IN (SELECT a, k FROM u)
-- =>
SELECT a FROM t WHERE (a, b) IN (SELECT k, a FROM u)

-- breaking: members of a list in another order, which nobody proves
SELECT a FROM t WHERE a IN (1, 2)
-- =>
SELECT a FROM t WHERE a IN (2, 1)

-- breaking: a comparison the other way round, which nobody proves
SELECT a FROM t WHERE a > b
-- =>
SELECT a FROM t WHERE b < a

-- breaking: sums the other way round, which nobody proves
SELECT a + b AS x FROM t
-- =>
SELECT b + a AS x FROM t

-- breaking: alternatives of CASE in another order
SELECT CASE WHEN a > 1 THEN 1 WHEN b > 1 THEN 2 END AS x FROM t
-- =>
SELECT CASE WHEN b > 1 THEN 2 WHEN a > 1 THEN 1 END AS x FROM t

-- breaking: count of rows, and of values
SELECT count(*) AS n FROM t
-- =>
SELECT count(a) AS n FROM t

-- breaking: count of values, each once
SELECT count(a) AS n FROM t
-- =>
SELECT count(DISTINCT a) AS n FROM t

-- breaking: the filter of an aggregate
SELECT sum(a) FILTER (WHERE b > 1) AS n FROM t
-- =>
SELECT sum(a) FILTER (WHERE b > 2) AS n FROM t

-- breaking: what a star in a call stands for
SELECT hash(*) AS h FROM (SELECT a, b FROM t)
-- =>
SELECT hash(*) AS h FROM (SELECT b, a FROM t)

-- breaking: a star of an alias in a call, when the aliases change places
SELECT to_json(struct(x.*)) AS j FROM u AS x CROSS JOIN v AS y
-- =>
SELECT to_json(struct(x.*)) AS j FROM u AS y CROSS JOIN v AS x

-- breaking: names of a struct's fields
SELECT struct(a AS first) AS x FROM t
-- =>
SELECT struct(a AS second) AS x FROM t

-- breaking: letters of a struct's fields
SELECT struct(a) AS x FROM t
-- =>
SELECT struct(A) AS x FROM t

-- breaking: a struct's field is called as the CTE calls its column
WITH c AS (SELECT a AS x FROM t) SELECT struct(x) AS y FROM c
-- =>
WITH c AS (SELECT a AS z FROM t) SELECT struct(z) AS y FROM c

-- breaking: a field of a struct
SELECT s.x AS a FROM (SELECT named_struct('x', a, 'y', b) AS s FROM t)
-- =>
SELECT s.y AS a FROM (SELECT named_struct('x', a, 'y', b) AS s FROM t)

-- breaking: a member of a list
SELECT xs[0] AS x FROM t
-- =>
SELECT xs[1] AS x FROM t

-- breaking: a lambda's name that hides a column
SELECT transform(xs, x -> x + a) AS ys FROM t
-- =>
SELECT transform(xs, a -> a + a) AS ys FROM t

-- breaking: rows that are written out
SELECT x FROM VALUES (1), (2) AS q(x)
-- =>
SELECT x FROM VALUES (1), (3) AS q(x)

-- breaking: rows that are written out in a CTE
WITH q(x) AS (SELECT * FROM VALUES (1), (2)) SELECT x FROM q
-- =>
WITH q(x) AS (SELECT * FROM VALUES (1), (3)) SELECT x FROM q

-- breaking: numbers of a table function
SELECT id FROM range(10) AS q(id)
-- =>
SELECT id FROM range(11) AS q(id)

-- breaking: values by chance, of which two are no copies
SELECT a FROM t WHERE rand() > 0.5
-- =>
SELECT a FROM t WHERE rand() > 0.5 AND rand() > 0.5

-- breaking: a hint that nobody knows
SELECT a FROM t
-- =>
SELECT /*+ SKEW('t') */ a FROM t

-- breaking: rows that a recursion finds
WITH RECURSIVE r(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM r WHERE n < 3) SELECT n FROM r
-- =>
WITH RECURSIVE r(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM r WHERE n < 4) SELECT n FROM r

-- breaking: what PIVOT is over
SELECT * FROM (SELECT a, s, b FROM t) PIVOT (sum(b) FOR s IN ('x', 'y'))
-- =>
SELECT * FROM (SELECT c AS a, s, b FROM t) PIVOT (sum(b) FOR s IN ('x', 'y'))

-- breaking: letters of a field, which may be the key of a map
SELECT m.x AS a FROM (SELECT map('x', 1, 'X', 2) AS m)
-- =>
SELECT m.X AS a FROM (SELECT map('x', 1, 'X', 2) AS m)

-- breaking: letters of a key within a member of a list
SELECT ms[0].x AS a FROM (SELECT array(map('x', 1, 'X', 2)) AS ms)
-- =>
SELECT ms[0].X AS a FROM (SELECT array(map('x', 1, 'X', 2)) AS ms)

-- breaking: a struct's field is called as the alias of an output beside it
WITH c AS (SELECT a AS x, struct(x) AS y FROM t) SELECT y FROM c
-- =>
WITH c AS (SELECT a AS z, struct(z) AS y FROM t) SELECT y FROM c

-- breaking: an alias of an output that hides a struct of the table, of which rows are cut off
SELECT s.x AS n FROM (SELECT named_struct('x', a) AS s, c FROM t) ORDER BY s.x, c LIMIT 2
-- =>
SELECT s.x AS n, named_struct('x', -c) AS s FROM (SELECT named_struct('x', a) AS s, c FROM t) ORDER BY s.x, c LIMIT 2

-- breaking: brackets around alternatives in CASE
SELECT CASE WHEN a = 1 AND (b = 1 OR c = 1) THEN 1 END AS x FROM t
-- =>
SELECT CASE WHEN a = 1 AND b = 1 OR c = 1 THEN 1 END AS x FROM t

-- breaking: one struct, and two arguments
SELECT hash((a, b)) AS x FROM t
-- =>
SELECT hash(a, b) AS x FROM t

-- breaking: the upper end of BETWEEN, and a condition
SELECT a FROM t WHERE a BETWEEN 1 AND b AND c
-- =>
SELECT a FROM t WHERE a BETWEEN 1 AND c AND b

-- breaking: brackets around a sum that is multiplied
SELECT (a + b) * c AS x FROM t
-- =>
SELECT a + b * c AS x FROM t

-- breaking: rows that are the whole of a CTE
WITH q AS (VALUES (1), (2)) SELECT col1 AS x FROM q
-- =>
WITH q AS (VALUES (1), (3)) SELECT col1 AS x FROM q

-- breaking: aliases that change places, of which one table's column stays
SELECT x.a FROM t x CROSS JOIN u y
-- =>
SELECT x.a FROM t y CROSS JOIN u x

-- breaking: a column of a LATERAL VIEW's second output
SELECT e.p AS x FROM t LATERAL VIEW posexplode(xs) e AS p, q
-- =>
SELECT e.q AS x FROM t LATERAL VIEW posexplode(xs) e AS p, q

-- breaking: a column behind renamed columns that change places
SELECT q.x FROM (SELECT a, b FROM t) AS q(x, y)
-- =>
SELECT q.x FROM (SELECT a, b FROM t) AS q(y, x)

-- breaking: names for more columns than there are
SELECT x FROM (SELECT a, b FROM t) AS q(x, y)
-- =>
SELECT x FROM (SELECT a FROM t) AS q(x, y)

-- breaking: another first column is tested for NULL
SELECT a IS NULL AS gone, b FROM t
-- =>
SELECT b IS NULL AS gone, b FROM t
