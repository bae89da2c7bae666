-- front: {materialization: table, incremental: {}, timeseries: {event_time_column: event_ts, partition_column: day, granularity: day}}

-- accepted: by ordinal
SELECT to_date(event_ts) AS day, user_id, count(*) AS n FROM clicks GROUP BY 1, 2

-- accepted: by alias
SELECT to_date(event_ts) AS day, count(*) AS n FROM clicks GROUP BY day

-- accepted: by expression, with HAVING
SELECT to_date(event_ts) AS day, count(*) AS n FROM clicks GROUP BY to_date(event_ts) HAVING count(*) > 1

-- accepted: GROUP BY ALL
SELECT to_date(event_ts) AS day, user_id, sum(amount) AS s FROM clicks GROUP BY ALL

-- accepted: totals of a lookup are no cells
SELECT to_date(event_ts) AS day, n FROM clicks CROSS JOIN (SELECT count(*) AS n FROM raw.countries)

-- accepted: an aggregate over a window is none over all rows
SELECT to_date(event_ts) AS day, count(*) OVER (PARTITION BY to_date(event_ts)) AS n FROM clicks

-- refused: group-over-cells `GROUP BY user_id`: by user alone
SELECT max(event_ts) AS day, user_id FROM clicks GROUP BY user_id

-- refused: group-over-cells `max(event_ts)`: a total
SELECT max(event_ts) AS day FROM clicks

-- refused: group-over-cells `GROUP BY`: an ordinal that is no time
SELECT user_id, min(event_ts) AS day FROM clicks GROUP BY 1

-- refused: group-over-cells `GROUP BY to_date(event_ts), user_id`: ROLLUP has groups of all time
-- elsewhere: SELECT cast(event_ts AS date) AS day, user_id, count(*) AS n FROM clicks GROUP BY ROLLUP (1, 2)
SELECT to_date(event_ts) AS day, user_id, count(*) AS n FROM clicks GROUP BY to_date(event_ts), user_id WITH ROLLUP

-- refused: group-over-cells `GROUP BY GROUPING SETS ((to_date(event_ts)), ())`: so have GROUPING SETS
SELECT to_date(event_ts) AS day, count(*) AS n FROM clicks GROUP BY GROUPING SETS ((to_date(event_ts)), ())

-- refused: group-over-cells `GROUP BY user_id`: inside a subquery
SELECT day FROM (SELECT user_id, min(event_ts) AS day FROM clicks GROUP BY user_id)

-- refused: group-over-cells `GROUP BY day`: an input's column goes before an alias
-- with: {timeseries: {event_time_column: event_ts, partition_column: d}}
SELECT min(event_ts) AS d, 1 AS day FROM (SELECT event_ts, url AS day FROM clicks) GROUP BY day

-- refused: partition-not-proven `date_trunc('year', event_ts)`: years are no days
SELECT date_trunc('year', event_ts) AS day, user_id FROM clicks GROUP BY 1, user_id

-- accepted: subtotals of each day
SELECT to_date(event_ts) AS day, user_id, url, count(*) AS n FROM clicks GROUP BY GROUPING SETS ((to_date(event_ts), user_id), (to_date(event_ts), url), (to_date(event_ts)))

-- accepted: ROLLUP below the day
SELECT to_date(event_ts) AS day, user_id, url, count(*) AS n FROM clicks GROUP BY to_date(event_ts), ROLLUP (user_id, url)

-- refused: partition-not-proven `date_trunc('HOUR', event_ts)`: NULL in the sets without the hour
SELECT date_trunc('HOUR', event_ts) AS day, user_id, count(*) AS n FROM clicks GROUP BY GROUPING SETS ((to_date(event_ts), date_trunc('HOUR', event_ts)), (to_date(event_ts), user_id))

-- accepted: the parts of a month
SELECT min(to_date(event_ts)) AS day, year(event_ts) AS y, month(event_ts) AS m, count(*) AS n FROM clicks GROUP BY year(event_ts), month(event_ts)

-- refused: group-over-cells `GROUP BY month(event_ts)`: every January
SELECT min(to_date(event_ts)) AS day, month(event_ts) AS m, count(*) AS n FROM clicks GROUP BY month(event_ts)

-- refused: group-over-cells `GROUP BY s.session_start`: all clicks without a session are one group
SELECT max(to_date(c.event_ts)) AS day, count(*) AS n FROM clicks AS c LEFT JOIN sessions AS s ON s.session_start = c.event_ts GROUP BY s.session_start

-- refused: group-over-cells `GROUP BY came`: the same further out
WITH j AS (SELECT c.event_ts AS at, s.session_start AS came FROM clicks AS c LEFT JOIN sessions AS s ON s.session_start = c.event_ts) SELECT max(to_date(at)) AS day, count(*) AS n FROM j GROUP BY came

-- refused: group-over-cells `GROUP BY came`: after a UNION, on one side of which it is never NULL
SELECT max(to_date(at)) AS day, count(*) AS n FROM (SELECT c.event_ts, s.session_start FROM clicks AS c LEFT JOIN sessions AS s ON s.session_start = c.event_ts UNION ALL SELECT session_start, session_start FROM sessions) AS t(at, came) GROUP BY came

-- refused: group-over-cells `GROUP BY came`: in the columns of a model that is read
-- with: {timeseries: {event_time_column: day, partition_column: day}}
SELECT max(day) AS day, count(*) AS n FROM arrivals GROUP BY came

-- refused: group-over-cells `GROUP BY s.session_start`: OR asks for nothing
SELECT max(to_date(c.event_ts)) AS day, count(*) AS n FROM clicks AS c LEFT JOIN sessions AS s ON s.session_start = c.event_ts WHERE s.events > 0 OR c.amount > 0 GROUP BY s.session_start

-- accepted: by the click's day and the session, which may be missing
SELECT to_date(c.event_ts) AS day, s.session_start, count(*) AS n FROM clicks AS c LEFT JOIN sessions AS s ON s.session_start = c.event_ts GROUP BY s.session_start, to_date(c.event_ts)

-- accepted: WHERE leaves out the clicks without a session
SELECT max(to_date(c.event_ts)) AS day, count(*) AS n FROM clicks AS c LEFT JOIN sessions AS s ON s.session_start = c.event_ts WHERE s.revenue >= 0 GROUP BY s.session_start

-- accepted: the group without a day is in no cell, and is left out
SELECT day, n FROM (SELECT to_date(s.session_start) AS day, max(s.session_start) AS last, count(*) AS n FROM clicks AS c LEFT JOIN sessions AS s ON s.session_start = c.event_ts GROUP BY 1) WHERE last IS NOT NULL

-- accepted: the columns of a model that is read, its own day among them
-- with: {timeseries: {event_time_column: day, partition_column: day}}
SELECT day, came, count(*) AS n FROM arrivals GROUP BY day, came

-- accepted: by a bucket, which an alias names
-- elsewhere: SELECT max(event_ts) AS day, date_trunc('hour', event_ts) AS w, count(*) AS n FROM clicks GROUP BY 2
SELECT max(event_ts) AS day, window(event_ts, '1 hour') AS w, count(*) AS n FROM clicks GROUP BY w

-- refused: group-over-cells `GROUP BY ROLLUP (w)`: the total of all buckets
-- elsewhere: SELECT CAST(day AS date) AS day, count(*) AS n FROM (SELECT date_trunc('hour', event_ts) AS day FROM clicks) GROUP BY ROLLUP (1)
SELECT w.start AS day, n FROM (SELECT w, count(*) AS n FROM (SELECT window(event_ts, '1 hour') AS w FROM clicks) GROUP BY ROLLUP (w))

-- refused: group-over-cells `GROUP BY w`: rows without a bucket are one group
-- elsewhere: SELECT max(t) AS day, count(*) AS n FROM (SELECT c.event_ts AS t, CAST(s.session_start AS date) AS w FROM clicks AS c LEFT JOIN sessions AS s ON CAST(s.session_start AS date) = CAST(c.event_ts AS date)) GROUP BY w
SELECT max(t) AS day, count(*) AS n FROM (SELECT c.event_ts AS t, x.w FROM clicks AS c LEFT JOIN (SELECT window(session_start, '1 day') AS w FROM sessions) AS x ON x.w.start = date_trunc('DAY', c.event_ts)) GROUP BY w

-- accepted: PIVOT groups by what it does not name, the day here
-- elsewhere: SELECT CAST(event_ts AS date) AS day, sum(amount) FILTER (user_id = 'a') AS a, sum(amount) FILTER (user_id = 'b') AS b FROM clicks GROUP BY 1
SELECT day, a, b FROM (SELECT to_date(event_ts) AS day, user_id, amount FROM clicks) PIVOT (sum(amount) AS s FOR user_id IN ('a', 'b'))

-- accepted: of two aggregates there are two columns for each value
-- elsewhere: SELECT CAST(event_ts AS date) AS day, count(*) FILTER (user_id = 'a') AS n, sum(amount) FILTER (user_id = 'b') AS s FROM clicks GROUP BY 1
SELECT day, it_n AS n, b_s AS s FROM (SELECT to_date(event_ts) AS day, user_id, amount FROM clicks) PIVOT (count(*) AS n, sum(amount) AS s FOR user_id IN ('a' AS it, 'b'))

-- refused: partition-not-proven `max(event_ts)`
-- refused: group-over-cells `PIVOT (max(event_ts) FOR user_id IN ('a', 'b'))`: PIVOT by the url
-- elsewhere: SELECT max(event_ts) FILTER (user_id = 'a') AS day, url FROM clicks GROUP BY url
SELECT a AS day, url FROM (SELECT event_ts, user_id, url FROM clicks) PIVOT (max(event_ts) FOR user_id IN ('a', 'b'))

-- refused: partition-not-proven `max(event_ts)`
-- refused: group-over-cells `max(event_ts)`: PIVOT by nothing
-- elsewhere: SELECT max(event_ts) FILTER (user_id = 'a') AS day FROM clicks
SELECT a AS day FROM (SELECT event_ts, user_id FROM clicks) PIVOT (max(event_ts) FOR user_id IN ('a', 'b'))

-- refused: partition-not-proven `max(event_ts)`: a day in which the user has none is NULL
-- elsewhere: SELECT max(event_ts) FILTER (user_id = 'a') AS day, d FROM (SELECT event_ts, user_id, CAST(event_ts AS date) AS d FROM clicks) GROUP BY d
SELECT a AS day, d FROM (SELECT event_ts, user_id, to_date(event_ts) AS d FROM clicks) PIVOT (max(event_ts) FOR user_id IN ('a', 'b'))

-- page: A user's group covers all days.
-- refused: group-over-cells `GROUP BY user_id`: one row for each user
SELECT user_id, to_date(max(event_ts)) AS day, count(*) AS clicks FROM clicks GROUP BY user_id

-- page: Group by the day as well. For one row per user, use a `cumulative_aggregate`.
-- accepted: one row for each user and day
SELECT user_id, to_date(event_ts) AS day, count(*) AS clicks
FROM clicks GROUP BY user_id, to_date(event_ts)
