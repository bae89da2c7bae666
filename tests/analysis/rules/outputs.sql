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
