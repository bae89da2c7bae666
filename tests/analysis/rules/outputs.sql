-- front: {materialization: table}

-- accepted: names of their own
SELECT url, count(*) AS n, x.amount FROM clicks x GROUP BY url, amount

-- refused: unnamed-column `count(*)`: an expression without a name
SELECT count(*) FROM clicks

-- refused: unnamed-column `upper(url)`
-- refused: duplicate-column `amount`
-- refused: reserved-column `_url`
SELECT upper(url), amount, user_id AS amount, url AS _url FROM clicks

-- refused: duplicate-column `b.* EXCEPT (country, parent, since)`: from two stars
SELECT a.code, b.* EXCEPT (country, parent, since) FROM raw.countries a JOIN raw.countries b ON a.code = b.parent

-- refused: not-stored `max(event_ts - TIMESTAMP '2024-01-01')`: intervals are no columns
-- refused: not-stored `to_date(event_ts) - DATE '2024-01-01'`
-- refused: not-stored `NULL`
SELECT to_date(event_ts) AS day, max(event_ts - TIMESTAMP '2024-01-01') AS a, to_date(event_ts) - DATE '2024-01-01' AS b, NULL AS c, max(event_ts + INTERVAL 1 DAY) AS d, CAST(NULL AS string) AS e, timestampdiff(DAY, min(event_ts), max(event_ts)) AS f FROM clicks GROUP BY to_date(event_ts), b

-- refused: not-stored `apart`: from a subquery, a view and sessions
SELECT day, apart FROM (SELECT to_date(session_start) AS day, max(session_end - session_start) AS apart FROM sessions GROUP BY 1)

-- page: The count has no name.
-- refused: unnamed-column `count(*)`: a count
SELECT url, count(*) FROM clicks GROUP BY url

-- page: Name it.
-- accepted: a count with a name
SELECT url, count(*) AS clicks FROM clicks GROUP BY url

-- page: Both tables have a column `code`.
-- refused: duplicate-column `k.*`: two columns code
SELECT c.event_id, c.code, k.* FROM clicks AS c JOIN raw.countries AS k ON k.code = c.code

-- page: Leave one of them out.
-- accepted: one column code
SELECT c.event_id, k.* FROM clicks AS c JOIN raw.countries AS k ON k.code = c.code

-- page: Names with an underscore at the start are infold's own.
-- refused: reserved-column `_id`: an underscore at the start
SELECT event_id AS _id, url FROM clicks

-- page: Use another name.
-- accepted: a name of its own
SELECT event_id AS id, url FROM clicks

-- page: The difference of two times is an interval, and tables have no intervals.
-- refused: not-stored `max(session_end - session_start)`: the longest session
SELECT user_id, max(session_end - session_start) AS longest FROM sessions GROUP BY user_id

-- page: Make it a number.
-- accepted: the longest session in seconds
SELECT user_id, max(timestampdiff(SECOND, session_start, session_end)) AS longest
FROM sessions GROUP BY user_id
