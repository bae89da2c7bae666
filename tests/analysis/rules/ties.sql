-- front: {materialization: table}

-- accepted: a key of the events is in the order
SELECT event_id, row_number() OVER (PARTITION BY user_id ORDER BY event_ts DESC, event_id) AS n, lag(url) OVER w AS l, sum(amount) OVER (PARTITION BY user_id ORDER BY event_ts, event_id ROWS BETWEEN 2 PRECEDING AND CURRENT ROW) AS s FROM clicks WINDOW w AS (PARTITION BY user_id ORDER BY event_ts, event_id)

-- accepted: ranks, and frames by value, treat tied rows alike
SELECT url, rank() OVER w AS r, dense_rank() OVER w AS d, sum(amount) OVER w AS s, count(*) OVER (PARTITION BY user_id ORDER BY amount ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING) AS n FROM clicks WINDOW w AS (PARTITION BY user_id ORDER BY event_ts)

-- accepted: a value that is the same in tied rows
SELECT url, first_value(event_ts) OVER w AS a, last_value(date(event_ts)) OVER w AS b FROM clicks WINDOW w AS (PARTITION BY user_id ORDER BY event_ts)

-- accepted: tied rows are alike in all that is used
SELECT user_id, event_ts, lag(event_ts) OVER (PARTITION BY user_id ORDER BY event_ts) AS before FROM clicks

-- refused: order-not-total `lag(event_ts) OVER (PARTITION BY user_id ORDER BY event_ts)`: which of them has another before it
SELECT event_id, lag(event_ts) OVER (PARTITION BY user_id ORDER BY event_ts) AS before FROM clicks

-- refused: order-not-total `row_number() OVER (ORDER BY event_ts)`: alike rows, in two orders
-- refused: order-not-total `row_number() OVER (ORDER BY event_ts DESC)`
SELECT event_ts, row_number() OVER (ORDER BY event_ts) AS a, row_number() OVER (ORDER BY event_ts DESC) AS b FROM clicks

-- refused: order-not-total `row_number() OVER (PARTITION BY user_id ORDER BY (SELECT NULL))`: no order
-- elsewhere: SELECT url, row_number() OVER (PARTITION BY user_id) AS n FROM clicks
SELECT url, row_number() OVER (PARTITION BY user_id ORDER BY (SELECT NULL)) AS n FROM clicks

-- refused: order-not-total `ntile(4) OVER (ORDER BY amount)`
-- refused: order-not-total `first_value(url) OVER (ORDER BY amount)`
-- refused: order-not-total `nth_value(url, 2) OVER (ORDER BY amount)`
-- refused: order-not-total `lead(url) OVER (ORDER BY amount)`
SELECT ntile(4) OVER (ORDER BY amount) AS a, first_value(url) OVER (ORDER BY amount) AS b, nth_value(url, 2) OVER (ORDER BY amount) AS c, lead(url) OVER (ORDER BY amount) AS d FROM clicks

-- refused: order-not-total `sum(amount) OVER (PARTITION BY user_id ORDER BY event_ts ROWS UNBOUNDED PRECEDING)`: a frame of rows
SELECT event_id, sum(amount) OVER (PARTITION BY user_id ORDER BY event_ts ROWS UNBOUNDED PRECEDING) AS s FROM clicks

-- accepted: the keys of GROUP BY
SELECT user_id, count(*) AS n, row_number() OVER (ORDER BY count(*) DESC, user_id) AS r FROM clicks GROUP BY user_id

-- refused: order-not-total `row_number() OVER (ORDER BY count(*) DESC)`: counts are no keys
SELECT user_id, count(*) AS n, row_number() OVER (ORDER BY count(*) DESC) AS r FROM clicks GROUP BY user_id

-- accepted: a session's id, and a user with the start
SELECT session_id, row_number() OVER (ORDER BY revenue, session_id) AS a, row_number() OVER (PARTITION BY user_id ORDER BY session_start) AS b FROM sessions

-- accepted: what a table's own query says of its rows
SELECT user_id, row_number() OVER (PARTITION BY day ORDER BY n DESC, user_id) AS r FROM daily

-- accepted: one row for each user by its number, joined by it
SELECT l.url, c.event_id, row_number() OVER (ORDER BY c.event_ts, c.event_id) AS r FROM clicks AS c LEFT JOIN (SELECT * FROM (SELECT url, user_id, row_number() OVER (PARTITION BY user_id ORDER BY event_ts, event_id) AS n FROM clicks) WHERE n = 1) AS l ON l.user_id = c.user_id

-- refused: order-not-total `row_number() OVER (ORDER BY c.event_ts, c.event_id)`: a join that finds several rows
SELECT l.url, row_number() OVER (ORDER BY c.event_ts, c.event_id) AS r FROM clicks AS c LEFT JOIN raw.countries AS p ON p.code = c.code LEFT JOIN clicks AS l ON l.user_id = c.user_id

-- accepted: rows without doubles
SELECT url, row_number() OVER (ORDER BY url, user_id) AS r FROM (SELECT DISTINCT url, user_id FROM clicks)

-- refused: order-not-total `max_by(url, event_ts)`: two events of one instant
SELECT user_id, max_by(url, event_ts) AS a, min_by(url, struct(event_ts, event_id)) AS b, max_by(url, (event_ts, url)) AS c, max_by(to_date(event_ts), event_ts) AS d FROM clicks GROUP BY user_id

-- refused: order-not-total `max_by(url, amount)`: of a session
-- with: {materialization: sessions, sessions: {user: user_id, gap: 1 hour}}
SELECT max_by(url, amount) AS a, min_by(url, struct(amount, event_ts, event_id)) AS b, max_by(url, struct(amount, url)) AS c FROM clicks

-- refused: order-not-total `min_by(url, amount)`: of a key
-- with: {materialization: cumulative_aggregate}
SELECT user_id, min_by(url, amount) AS a, min_by(url, struct(amount, url)) AS b FROM clicks GROUP BY user_id

-- refused: order-not-total `amount`: the first ten of rows that tie
SELECT event_id, amount FROM clicks ORDER BY amount DESC LIMIT 10

-- accepted: the first ten amounts
SELECT amount FROM clicks ORDER BY amount DESC LIMIT 10

-- accepted: the same, by number and by name
SELECT event_id AS id, amount, event_ts FROM clicks ORDER BY 2 DESC, id, event_ts LIMIT 10

-- accepted: the first days of a group
SELECT to_date(event_ts) AS day, count(*) AS n FROM clicks GROUP BY 1 ORDER BY n, day LIMIT 10

-- accepted: of both sides of a set operation
SELECT url FROM clicks UNION ALL SELECT code FROM clicks ORDER BY url LIMIT 10

-- accepted: its author says that any will do
-- with: {incremental: {enabled: false, safety_overrides: {allow_nondeterministic: true}}}
SELECT event_id, row_number() OVER (ORDER BY event_ts) AS n FROM clicks

-- accepted: ties inside a cell, vouched for
-- with: {incremental: {safety_overrides: {allow_nondeterministic: true}}, timeseries: {event_time_column: event_ts, partition_column: day}}
-- elsewhere: SELECT CAST(event_ts AS date) AS day, 1 AS n FROM clicks
SELECT to_date(event_ts) AS day, ntile(1) OVER (PARTITION BY to_date(event_ts) ORDER BY amount) AS n FROM clicks

-- accepted: in the order of all columns
SELECT url, amount FROM clicks ORDER BY ALL LIMIT 10

-- accepted: one bucket for each row
SELECT event_id, window(event_ts, '1 hour').start AS s, row_number() OVER (ORDER BY event_ts, event_id) AS n FROM clicks

-- refused: order-not-total `row_number() OVER (ORDER BY event_ts, event_id)`: several buckets of one row tie
-- elsewhere: SELECT event_id, s, row_number() OVER (ORDER BY event_ts) AS n FROM clicks CROSS JOIN (VALUES (1), (2)) AS t(s)
SELECT event_id, window(event_ts, '2 hours', '1 hour').start AS s, row_number() OVER (ORDER BY event_ts, event_id) AS n FROM clicks

-- refused: order-not-total `row_number() OVER (ORDER BY event_ts, event_id)`: above them, too
-- elsewhere: SELECT event_id, s, row_number() OVER (ORDER BY event_ts) AS n FROM clicks CROSS JOIN (VALUES (1), (2)) AS t(s)
SELECT event_id, s, row_number() OVER (ORDER BY event_ts, event_id) AS n FROM (SELECT event_id, event_ts, window(event_ts, '2 hours', '1 hour').start AS s FROM clicks)

-- accepted: they differ by the bucket
SELECT event_id, row_number() OVER (PARTITION BY window(event_ts, '2 hours', '1 hour') ORDER BY event_ts, event_id) AS n FROM clicks

-- refused: order-not-total `max_by(url, amount)`: one finding for all columns of a PIVOT
-- elsewhere: SELECT user_id, max_by(url, amount) FILTER (unit = 'a') AS a, max_by(url, amount) FILTER (unit = 'b') AS b FROM clicks GROUP BY 1
SELECT user_id, a, b FROM (SELECT user_id, url, amount, unit FROM clicks) PIVOT (max_by(url, amount) FOR unit IN ('a', 'b'))

-- page: Two clicks can have the same time. Then nothing decides which one counts.
-- refused: order-not-total `max_by(url, event_ts)`: the last page
SELECT user_id, max_by(url, event_ts) AS last_url FROM clicks GROUP BY user_id

-- page: Add what identifies a row.
-- accepted: the last page, by time and key
SELECT user_id, max_by(url, struct(event_ts, event_id)) AS last_url FROM clicks GROUP BY user_id
