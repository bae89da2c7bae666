-- front: {materialization: table, incremental: {}, timeseries: {event_time_column: event_ts, partition_column: day, granularity: day}}

-- accepted: over lookups
SELECT to_date(event_ts) AS day, (SELECT count(*) FROM raw.countries) AS n FROM clicks WHERE code IN (SELECT code FROM raw.countries) AND EXISTS (SELECT 1 FROM users AS u WHERE u.user_id = clicks.user_id)

-- accepted: had this user a session in the hour before
SELECT to_date(event_ts) AS day FROM clicks WHERE EXISTS (SELECT 1 FROM sessions AS s WHERE s.user_id = clicks.user_id AND s.session_start BETWEEN event_ts - INTERVAL 1 HOUR AND event_ts)

-- accepted: or none on that day
SELECT to_date(event_ts) AS day FROM clicks AS c WHERE NOT EXISTS (SELECT 1 FROM sessions AS s WHERE s.user_id = c.user_id AND to_date(s.session_start) = to_date(c.event_ts))

-- accepted: beside OR, and as a value
SELECT to_date(event_ts) AS day, EXISTS (SELECT 1 FROM clicks AS b WHERE b.event_ts > a.event_ts AND b.event_ts < a.event_ts + INTERVAL 5 MINUTES) AS next FROM clicks AS a WHERE url = '' OR NOT EXISTS (SELECT 1 FROM sessions AS s WHERE date(s.session_start) = date(a.event_ts))

-- accepted: so many in the hour before
SELECT to_date(event_ts) AS day, (SELECT count(*) FROM clicks AS b WHERE b.user_id = a.user_id AND b.event_ts >= a.event_ts - INTERVAL 1 HOUR AND b.event_ts < a.event_ts) AS n FROM clicks AS a

-- accepted: of groups, by what they are grouped by
SELECT day, count(*) AS n, max((SELECT sum(n) FROM daily AS d WHERE d.day = date_sub(c.day, 3))) AS before FROM (SELECT to_date(event_ts) AS day FROM clicks) AS c GROUP BY day

-- accepted: in HAVING
SELECT day, count(*) AS n FROM (SELECT to_date(event_ts) AS day FROM clicks) AS c GROUP BY day HAVING EXISTS (SELECT 1 FROM daily AS d WHERE d.day = c.day)

-- accepted: in a CTE
WITH c AS (SELECT * FROM clicks AS a WHERE EXISTS (SELECT 1 FROM sessions AS s WHERE s.session_start BETWEEN a.event_ts - INTERVAL 1 DAY AND a.event_ts)) SELECT to_date(event_ts) AS day, count(*) AS n FROM c GROUP BY 1

-- accepted: ON a join
SELECT to_date(a.event_ts) AS day, b.url FROM clicks AS a JOIN clicks AS b ON b.event_ts = a.event_ts AND EXISTS (SELECT 1 FROM sessions AS s WHERE s.session_start BETWEEN a.event_ts - INTERVAL 1 DAY AND a.event_ts)

-- accepted: one within the other, each near to the one around it
SELECT to_date(event_ts) AS day FROM clicks AS a WHERE EXISTS (SELECT 1 FROM sessions AS s WHERE to_date(s.session_start) = to_date(a.event_ts) AND NOT EXISTS (SELECT 1 FROM daily AS d WHERE d.day = to_date(s.session_start)))

-- accepted: both of two inputs are near, each for itself
SELECT to_date(event_ts) AS day FROM clicks AS a WHERE EXISTS (SELECT 1 FROM sessions AS s JOIN daily AS d ON d.user_id = s.user_id WHERE to_date(s.session_start) = to_date(a.event_ts) AND d.day = to_date(a.event_ts))

-- accepted: what is chosen may be brought together
SELECT to_date(event_ts) AS day, (SELECT count(DISTINCT url) FROM clicks AS b WHERE to_date(b.event_ts) = to_date(a.event_ts)) AS urls FROM clicks AS a WHERE EXISTS (SELECT DISTINCT user_id FROM sessions AS s WHERE to_date(s.session_start) = to_date(a.event_ts) GROUP BY user_id HAVING count(*) > 1 LIMIT 1)

-- accepted: a UNION of what is chosen
SELECT to_date(event_ts) AS day FROM clicks AS a WHERE EXISTS (SELECT 1 FROM sessions AS s WHERE to_date(s.session_start) = to_date(a.event_ts) UNION SELECT 1 FROM daily AS d WHERE d.day = to_date(a.event_ts))

-- accepted: IN by the time itself, where unknown is as good as false
SELECT to_date(event_ts) AS day FROM clicks WHERE to_date(event_ts) IN (SELECT day FROM daily WHERE n > 1)

-- accepted: IN by several values
SELECT to_date(event_ts) AS day FROM clicks WHERE (user_id, to_date(event_ts)) IN (SELECT user_id, day FROM daily)

-- accepted: NOT IN among what is chosen, with all of its NULLs
SELECT to_date(event_ts) AS day FROM clicks AS a WHERE user_id NOT IN (SELECT user_id FROM daily AS d WHERE d.day = to_date(a.event_ts))

-- accepted: a lookup row that is near to a time
-- with: {timeseries: {event_time_column: event_ts, partition_column: since}}
SELECT code, since FROM raw.countries AS c WHERE EXISTS (SELECT 1 FROM clicks WHERE event_ts BETWEEN c.since AND c.since + INTERVAL 1 DAY)

-- refused: subquery-over-cells `event_ts = (SELECT max(event_ts) FROM clicks)`: the latest time of all
SELECT to_date(event_ts) AS day FROM clicks WHERE event_ts = (SELECT max(event_ts) FROM clicks)

-- refused: subquery-over-cells `user_id IN (SELECT user_id FROM sessions)`: any session
SELECT to_date(event_ts) AS day FROM clicks WHERE user_id IN (SELECT user_id FROM sessions)

-- refused: subquery-over-cells `EXISTS (SELECT 1 FROM sessions AS s WHERE s.user_id = clicks.user_id)`: correlated
SELECT to_date(event_ts) AS day FROM clicks WHERE NOT EXISTS (SELECT 1 FROM sessions AS s WHERE s.user_id = clicks.user_id)

-- refused: subquery-over-cells `EXISTS (SELECT 1 FROM clicks AS b WHERE b.event_ts < a.event_ts)`: one end alone
SELECT to_date(event_ts) AS day FROM clicks AS a WHERE EXISTS (SELECT 1 FROM clicks AS b WHERE b.event_ts < a.event_ts)

-- refused: subquery-over-cells `EXISTS (SELECT 1 FROM daily AS d WHERE d.day = to_date(a.event_ts) OR d.user_id = a.user_id)`: OR is no promise
SELECT to_date(event_ts) AS day FROM clicks AS a WHERE EXISTS (SELECT 1 FROM daily AS d WHERE d.day = to_date(a.event_ts) OR d.user_id = a.user_id)

-- accepted: NOT IN by user and day: a row of another day is another, whatever its user is
SELECT to_date(event_ts) AS day, event_id FROM clicks WHERE (user_id, to_date(event_ts)) NOT IN (SELECT user_id, day FROM daily)

-- accepted: NOT IN by the day alone, which is never NULL
SELECT to_date(event_ts) AS day, event_id FROM clicks WHERE to_date(event_ts) NOT IN (SELECT day FROM raw.holidays)

-- refused: subquery-over-cells `to_date(event_ts) NOT IN (SELECT came FROM arrivals)`: a model's column that may be NULL
-- alike: each day of arrivals has itself there, or a NULL of its own
SELECT to_date(event_ts) AS day, event_id FROM clicks WHERE to_date(event_ts) NOT IN (SELECT came FROM arrivals)

-- refused: subquery-over-cells `to_date(event_ts) NOT IN (SELECT day FROM x)`: one NULL among all values decides
WITH x AS (SELECT CASE WHEN n > 1 THEN day END AS day FROM daily) SELECT to_date(event_ts) AS day FROM clicks WHERE to_date(event_ts) NOT IN (SELECT day FROM x)

-- refused: subquery-over-cells `to_date(event_ts) IN (SELECT day FROM x)`: and as a value
WITH x AS (SELECT CASE WHEN n > 1 THEN day END AS day FROM daily) SELECT to_date(event_ts) AS day, to_date(event_ts) IN (SELECT day FROM x) AS built FROM clicks

-- refused: subquery-over-cells `to_date(event_ts) IN (SELECT max(day) FROM daily GROUP BY user_id)`: groups of all time
SELECT to_date(event_ts) AS day FROM clicks WHERE to_date(event_ts) IN (SELECT max(day) FROM daily GROUP BY user_id)

-- refused: subquery-over-cells `EXISTS (SELECT 1 FROM (SELECT max(day) AS day FROM daily GROUP BY user_id) AS d WHERE d.day = to_date(a.event_ts))`: they are made before any is chosen
SELECT to_date(event_ts) AS day FROM clicks AS a WHERE EXISTS (SELECT 1 FROM (SELECT max(day) AS day FROM daily GROUP BY user_id) AS d WHERE d.day = to_date(a.event_ts))

-- refused: subquery-over-cells `EXISTS (SELECT 1 FROM daily AS d WHERE d.user_id = s.user_id AND d.n > 1)`: within one that is near
SELECT to_date(event_ts) AS day FROM clicks AS a WHERE EXISTS (SELECT 1 FROM sessions AS s WHERE to_date(s.session_start) = to_date(a.event_ts) AND EXISTS (SELECT 1 FROM daily AS d WHERE d.user_id = s.user_id AND d.n > 1))

-- refused: subquery-over-cells `EXISTS (SELECT 1 FROM sessions AS s WHERE s.user_id = u.user_id)`: any session of a user, within one over lookups
SELECT to_date(event_ts) AS day FROM clicks AS a WHERE EXISTS (SELECT 1 FROM users AS u WHERE u.user_id = a.user_id AND EXISTS (SELECT 1 FROM sessions AS s WHERE s.user_id = u.user_id))

-- refused: subquery-over-cells `u.user_id IN (SELECT user_id FROM sessions)`: the same as values
SELECT to_date(event_ts) AS day, event_id, (SELECT count(*) FROM users AS u WHERE u.user_id IN (SELECT user_id FROM sessions)) AS n FROM clicks

-- accepted: near to a time of a lookup that is near
SELECT to_date(event_ts) AS day, event_id FROM clicks AS a WHERE EXISTS (SELECT 1 FROM raw.countries AS k WHERE to_date(k.since) = to_date(a.event_ts) AND EXISTS (SELECT 1 FROM sessions AS s WHERE s.session_start BETWEEN k.since AND k.since + INTERVAL 1 DAY))

-- refused: subquery-over-cells `EXISTS (SELECT 1 FROM raw.countries AS k WHERE k.code = a.code AND EXISTS (SELECT 1 FROM sessions AS s WHERE s.session_start BETWEEN k.since AND k.since + INTERVAL 2 DAYS))`: near to a time of a lookup of any time
SELECT to_date(event_ts) AS day, event_id FROM clicks AS a WHERE EXISTS (SELECT 1 FROM raw.countries AS k WHERE k.code = a.code AND EXISTS (SELECT 1 FROM sessions AS s WHERE s.session_start BETWEEN k.since AND k.since + INTERVAL 2 DAYS))

-- refused: subquery-over-cells `EXISTS (SELECT 1 FROM daily AS d WHERE d.day = b.day)`: near to a row that may not be there
-- alike: not derived, though nothing is near to a row that is not there
SELECT to_date(event_ts) AS day FROM clicks AS a LEFT JOIN daily AS b ON b.day = to_date(a.event_ts) WHERE NOT EXISTS (SELECT 1 FROM daily AS d WHERE d.day = b.day)

-- refused: limit-over-cells `LIMIT`: a limit before any is chosen
SELECT to_date(event_ts) AS day FROM clicks AS a WHERE EXISTS (SELECT 1 FROM (SELECT day FROM daily ORDER BY day LIMIT 3) AS d WHERE d.day = to_date(a.event_ts))

-- refused: unknown-column `a.event_ts`: a time two queries around, which Spark does not see
-- refused: unknown-column `a.event_ts`
SELECT to_date(event_ts) AS day, event_id FROM clicks AS a WHERE EXISTS (SELECT 1 FROM sessions AS s WHERE s.session_start BETWEEN a.event_ts - INTERVAL 1 DAY AND a.event_ts AND NOT EXISTS (SELECT 1 FROM daily AS d WHERE d.user_id = s.user_id AND d.day BETWEEN to_date(a.event_ts) AND to_date(a.event_ts) + INTERVAL 1 DAY))

-- accepted: both in one subquery, each near to the row around
SELECT to_date(event_ts) AS day, event_id FROM clicks AS a WHERE EXISTS (SELECT 1 FROM sessions AS s JOIN daily AS d ON d.user_id = s.user_id WHERE s.session_start BETWEEN a.event_ts - INTERVAL 1 DAY AND a.event_ts AND d.day BETWEEN to_date(a.event_ts) AND to_date(a.event_ts) + INTERVAL 1 DAY)

-- accepted: from the inner one to the one between, and from that to the row
SELECT to_date(event_ts) AS day, event_id FROM clicks AS a WHERE EXISTS (SELECT 1 FROM sessions AS s WHERE s.session_start BETWEEN a.event_ts - INTERVAL 1 DAY AND a.event_ts AND NOT EXISTS (SELECT 1 FROM daily AS d WHERE d.user_id = s.user_id AND d.day BETWEEN to_date(s.session_start) AND to_date(s.session_start) + INTERVAL 1 DAY))

-- accepted: three levels
SELECT to_date(event_ts) AS day, event_id FROM clicks AS a WHERE EXISTS (SELECT 1 FROM sessions AS s WHERE s.session_start BETWEEN a.event_ts - INTERVAL 1 DAY AND a.event_ts AND EXISTS (SELECT 1 FROM daily AS d WHERE d.day = to_date(s.session_start) AND NOT EXISTS (SELECT 1 FROM clicks AS b WHERE to_date(b.event_ts) = d.day + INTERVAL 1 DAY)))

-- page: The subquery looks at the sessions of all time.
-- refused: subquery-over-cells `user_id NOT IN (SELECT user_id FROM sessions)`: users without any session
SELECT to_date(event_ts) AS day, event_id
FROM clicks
WHERE user_id NOT IN (SELECT user_id FROM sessions)

-- page: Give it a time range, or read a `cumulative_aggregate` of the sessions as a lookup.
-- accepted: users without a session in the next 90 days
SELECT to_date(c.event_ts) AS day, c.event_id
FROM clicks AS c
WHERE NOT EXISTS (
  SELECT 1 FROM sessions AS s
  WHERE s.user_id = c.user_id
    AND s.session_start BETWEEN c.event_ts AND c.event_ts + INTERVAL 90 DAYS)
