-- front: {materialization: cumulative_aggregate}

-- accepted: one row for each user, whatever the aggregates
SELECT s.user_id, count(*) AS sessions, sum(events) / count(*) AS mean, min(session_start) AS first_seen, max_by(session_id, session_start) AS last_session, count(DISTINCT s.session_id) AS ids, percentile(events, 0.5) AS median FROM sessions AS s WHERE s.events > 0 GROUP BY s.user_id HAVING count(*) > 1

-- accepted: keys that are expressions, named by number, alias or once more
SELECT lower(user_id) AS who, cast(session_start AS date) AS day, year(s.session_start) AS year, count(*) AS n FROM sessions s GROUP BY 1, day, (YEAR(session_start))

-- accepted: all that is no aggregate
SELECT user_id, url, count(*) AS n FROM clicks GROUP BY ALL

-- accepted: a view with WHERE in between
SELECT user_id, sum(amount) AS revenue FROM paid GROUP BY user_id

-- accepted: a source, a table of cells, a whole table
SELECT code, count(*) AS n FROM raw.clicks GROUP BY code

-- accepted: a table that is built cell by cell
SELECT day, sum(n) AS n FROM daily GROUP BY day

-- accepted: a table that is built whole
SELECT date(first_seen) AS day, count(*) AS users FROM users GROUP BY 1

-- refused: not-by-key `SELECT`: nothing says what there is one row for
SELECT count(*) AS n FROM sessions

-- refused: not-by-key `cast(session_start AS date)`: a key that is no column of the table
SELECT user_id, count(*) AS n FROM sessions GROUP BY user_id, cast(session_start AS date)

-- refused: not-by-key `user_id`: the key is the input's column, which the alias hides
SELECT lower(user_id) AS user_id, count(*) AS n FROM sessions GROUP BY user_id

-- refused: not-by-key `upper(who)`: a key made of another output
SELECT user_id AS who, upper(who) AS loud, count(*) AS n FROM sessions GROUP BY who, loud

-- refused: not-by-key `JOIN`
-- refused: not-by-key `ORDER BY`
-- refused: not-by-key `LIMIT`
SELECT user_id, count(*) AS n FROM sessions JOIN clicks USING (user_id) GROUP BY user_id ORDER BY user_id LIMIT 5

-- refused: not-by-key `DISTINCT`
SELECT DISTINCT user_id, count(*) AS n FROM sessions GROUP BY user_id

-- refused: not-by-key `UNION`
SELECT user_id, count(*) AS n FROM sessions GROUP BY user_id UNION ALL SELECT user_id, count(*) AS n FROM sessions GROUP BY user_id

-- refused: not-by-key `WITH`
-- refused: not-by-key `x`
WITH x AS (SELECT * FROM sessions) SELECT user_id, count(*) AS n FROM x GROUP BY user_id

-- refused: not-by-key `user_id IN (SELECT user_id FROM users)`
SELECT user_id, count(*) AS n FROM sessions WHERE user_id IN (SELECT user_id FROM users) GROUP BY user_id

-- refused: not-by-key `rank() OVER (PARTITION BY user_id)`
SELECT user_id, rank() OVER (PARTITION BY user_id) AS r, count(*) AS n FROM sessions GROUP BY user_id

-- refused: not-by-key `LATERAL`
SELECT user_id, tag, count(*) AS n FROM clicks LATERAL VIEW explode(tags) t AS tag GROUP BY user_id, tag

-- refused: not-by-key `GROUP BY`
SELECT user_id, code, count(*) AS n FROM clicks GROUP BY ROLLUP (user_id, code)

-- refused: not-by-key `GROUP BY`
SELECT user_id, code, count(*) AS n FROM clicks GROUP BY GROUPING SETS ((user_id), (user_id, code))

-- refused: not-by-key `GROUP BY`
SELECT user_id, code, count(*) AS n FROM clicks GROUP BY user_id, code WITH CUBE

-- refused: not-deterministic `rand`
SELECT user_id, max(rand()) AS r FROM clicks GROUP BY user_id

-- refused: order-dependent `first`
SELECT user_id, first(url) AS url FROM clicks GROUP BY user_id

-- refused: not-by-key `SELECT`
-- refused: order-dependent `collect_list`
SELECT sort_array(collect_list(url)) AS fine, collect_list(url) AS urls FROM clicks

-- page: A cumulative aggregate reads one table.
-- refused: not-by-key `JOIN`: clicks with the first time of their user
SELECT c.user_id, count(*) AS clicks
FROM clicks AS c JOIN users AS u ON u.user_id = c.user_id
GROUP BY c.user_id

-- page: Put the join into a view before it. Joins with lookups by equality are allowed there, as in [stitched users](../cookbook.md#stitched-users).
-- accepted: over a view
SELECT user_id, count(*) AS clicks FROM paid GROUP BY user_id
