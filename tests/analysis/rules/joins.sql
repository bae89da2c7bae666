-- front: {materialization: table, incremental: {}, timeseries: {event_time_column: event_ts, partition_column: day, granularity: day}}

-- accepted: a lookup, inner
SELECT to_date(event_ts) AS day, country FROM clicks JOIN raw.countries AS c ON clicks.code = c.code

-- accepted: a lookup, left
SELECT to_date(event_ts) AS day, country FROM clicks LEFT JOIN raw.countries USING (code)

-- accepted: a lookup, right, with the time at the right
SELECT to_date(event_ts) AS day, country FROM raw.countries RIGHT JOIN clicks USING (code)

-- accepted: a lookup first, inner
SELECT to_date(event_ts) AS day, country FROM raw.countries JOIN clicks USING (code)

-- accepted: cross, semi, anti
SELECT to_date(event_ts) AS day FROM clicks CROSS JOIN (SELECT 1 AS one) LEFT SEMI JOIN raw.countries USING (code) LEFT ANTI JOIN users USING (user_id)

-- accepted: two lookups between themselves, fully
SELECT to_date(event_ts) AS day FROM clicks JOIN (SELECT a.code FROM raw.countries a FULL JOIN raw.countries b ON a.parent = b.code) x USING (code)

-- accepted: a whole table is a lookup
SELECT to_date(event_ts) AS day, first_seen FROM clicks LEFT JOIN users USING (user_id)

-- accepted: rows of an array
SELECT to_date(event_ts) AS day, tag FROM clicks LATERAL VIEW explode(tags) t AS tag

-- refused: join-over-cells `sessions`: two times
SELECT to_date(event_ts) AS day, revenue FROM clicks JOIN sessions ON clicks.user_id = sessions.user_id

-- refused: join-over-cells `clicks AS b`: itself
SELECT to_date(a.event_ts) AS day FROM clicks AS a JOIN clicks AS b ON a.user_id = b.user_id

-- refused: join-over-cells `daily`: a comma is a join
SELECT to_date(event_ts) AS day FROM clicks, daily

-- refused: join-over-cells `raw.countries`: full
SELECT to_date(event_ts) AS day, country FROM clicks FULL JOIN raw.countries USING (code)

-- refused: join-over-cells `raw.countries`: keeps countries without a click
SELECT to_date(event_ts) AS day, country FROM clicks RIGHT JOIN raw.countries USING (code)

-- refused: join-over-cells `clicks`: the same the other way round
SELECT to_date(event_ts) AS day, country FROM raw.countries LEFT JOIN clicks USING (code)

-- refused: join-over-cells `sessions`: had this user any session
SELECT to_date(event_ts) AS day FROM clicks LEFT SEMI JOIN sessions USING (user_id)

-- accepted: two times a day apart at most
SELECT to_date(a.event_ts) AS day FROM clicks AS a JOIN clicks AS b ON a.user_id = b.user_id AND b.event_ts BETWEEN a.event_ts - INTERVAL 1 DAY AND a.event_ts

-- accepted: the same in WHERE, by two comparisons, the constant at either side
SELECT to_date(a.event_ts) AS day FROM clicks AS a, clicks AS b WHERE a.user_id = b.user_id AND b.event_ts + INTERVAL '1' DAY >= a.event_ts AND a.event_ts > b.event_ts

-- accepted: the same as a difference
SELECT to_date(a.event_ts) AS day FROM clicks AS a JOIN clicks AS b ON a.user_id = b.user_id AND datediff(a.event_ts, b.event_ts) BETWEEN 0 AND 3

-- accepted: whole hours between, as datediff with a unit counts them
-- elsewhere: SELECT cast(a.event_ts AS date) AS day, a.event_id FROM clicks AS a JOIN clicks AS b ON a.user_id = b.user_id AND trunc(epoch(a.event_ts - b.event_ts) / 3600) BETWEEN 0 AND 3
SELECT to_date(a.event_ts) AS day, a.event_id FROM clicks AS a JOIN clicks AS b ON a.user_id = b.user_id AND datediff(HOUR, b.event_ts, a.event_ts) BETWEEN 0 AND 3

-- accepted: less than a month between, whichever it is
-- elsewhere: SELECT cast(a.event_ts AS date) AS day, a.event_id FROM clicks AS a JOIN clicks AS b ON a.user_id = b.user_id AND a.event_ts < b.event_ts + INTERVAL 1 MONTH AND b.event_ts < a.event_ts + INTERVAL 1 MONTH
SELECT to_date(a.event_ts) AS day, a.event_id FROM clicks AS a JOIN clicks AS b ON a.user_id = b.user_id AND datediff(MONTH, b.event_ts, a.event_ts) = 0

-- refused: join-over-cells `clicks AS b`: no end to the days before
-- elsewhere: SELECT cast(a.event_ts AS date) AS day, a.event_id FROM clicks AS a JOIN clicks AS b ON a.user_id = b.user_id AND b.event_ts < a.event_ts - INTERVAL 1 DAY
SELECT to_date(a.event_ts) AS day, a.event_id FROM clicks AS a JOIN clicks AS b ON a.user_id = b.user_id AND datediff(DAY, b.event_ts, a.event_ts) > 0

-- accepted: the same day
-- with: {timeseries: {event_time_column: day, partition_column: day}}
SELECT d.day, count(*) AS n FROM daily AS d JOIN clicks AS c ON to_date(c.event_ts) = d.day GROUP BY d.day

-- accepted: a day and its events, half-open
-- with: {timeseries: {event_time_column: day, partition_column: day}}
SELECT d.day, count(*) AS n FROM daily AS d LEFT JOIN clicks AS c ON c.event_ts >= d.day AND c.event_ts < d.day + INTERVAL 1 DAY GROUP BY d.day

-- accepted: a week before
-- with: {timeseries: {event_time_column: day, partition_column: day}}
SELECT a.day, a.n - b.n AS more FROM daily AS a LEFT JOIN daily AS b ON a.user_id = b.user_id AND b.day = a.day - INTERVAL 7 DAYS

-- accepted: a CTE joined to itself
WITH d AS (SELECT to_date(event_ts) AS day, count(*) AS n FROM clicks GROUP BY 1) SELECT a.day, a.n, b.n AS last FROM d AS a LEFT JOIN d AS b ON b.day = date_sub(a.day, 7)

-- accepted: had this user a session in the hour before
SELECT to_date(event_ts) AS day FROM clicks LEFT SEMI JOIN sessions ON clicks.user_id = sessions.user_id AND session_start BETWEEN event_ts - INTERVAL 1 HOUR AND event_ts

-- accepted: by USING
-- with: {timeseries: {event_time_column: day, partition_column: day}}
SELECT day, a.n AS n, b.n AS m FROM daily AS a JOIN daily AS b USING (day, user_id)

-- accepted: three in a row
-- with: {timeseries: {event_time_column: day, partition_column: day}}
SELECT a.day FROM daily AS a JOIN daily AS b ON b.day = a.day - INTERVAL 1 DAY JOIN daily AS c ON c.day = b.day - INTERVAL 1 DAY

-- accepted: one end from a time, the other from its day
SELECT to_date(a.event_ts) AS day FROM clicks AS a JOIN clicks AS b ON b.event_ts >= to_date(a.event_ts) AND b.event_ts <= a.event_ts

-- accepted: days are their own dates
-- with: {timeseries: {event_time_column: day, partition_column: day}}
SELECT a.day FROM daily AS a JOIN daily AS b ON b.day BETWEEN date_sub(a.day, 2) AND a.day

-- refused: join-over-cells `clicks AS b`: one end alone
SELECT to_date(a.event_ts) AS day FROM clicks AS a JOIN clicks AS b ON a.user_id = b.user_id AND b.event_ts <= a.event_ts

-- refused: join-over-cells `clicks AS b`: OR is no promise
SELECT to_date(a.event_ts) AS day FROM clicks AS a JOIN clicks AS b ON b.event_ts = a.event_ts OR b.user_id = a.user_id

-- refused: join-over-cells `daily AS b`: the ON condition of a LEFT JOIN ties no two rows before it
-- with: {timeseries: {event_time_column: day, partition_column: day}}
SELECT a.day FROM daily AS a CROSS JOIN daily AS b LEFT JOIN daily AS c ON c.day = a.day AND c.day = b.day

-- refused: null-cell `a.day`: the day of one side of a FULL JOIN
-- with: {timeseries: {event_time_column: day, partition_column: day}}
SELECT a.day FROM daily AS a FULL JOIN daily AS b ON a.day = b.day AND b.n > 1

-- accepted: the day of either side
-- with: {timeseries: {event_time_column: day, partition_column: day}}
SELECT coalesce(a.day, b.day) AS day, a.n, b.n AS more FROM daily AS a FULL JOIN daily AS b ON a.day = b.day AND b.n > 1

-- accepted: the same as CASE
-- with: {timeseries: {event_time_column: day, partition_column: day}}
SELECT CASE WHEN a.day IS NULL THEN b.day ELSE a.day END AS day, a.n, b.n AS more FROM daily AS a FULL JOIN daily AS b ON a.day = b.day AND a.user_id = b.user_id

-- accepted: USING makes one column of both
-- with: {timeseries: {event_time_column: day, partition_column: day}}
SELECT day, user_id, n, visits FROM daily FULL JOIN (SELECT to_date(session_start) AS day, user_id, count(*) AS visits FROM sessions GROUP BY 1, 2) AS s USING (day, user_id)

-- accepted: so do two in a row, and a star has it once
-- with: {timeseries: {event_time_column: day, partition_column: day}}
SELECT * FROM (SELECT day, n FROM daily) AS a FULL JOIN (SELECT day, n AS m FROM daily WHERE n > 1) AS b USING (day) FULL JOIN (SELECT to_date(session_start) AS day, events FROM sessions) AS c USING (day)

-- accepted: NATURAL
-- with: {timeseries: {event_time_column: day, partition_column: day}}
SELECT day, n, came FROM daily NATURAL FULL JOIN arrivals

-- accepted: two times of a FULL JOIN an hour apart, grouped by the day of either
SELECT to_date(coalesce(c.event_ts, s.session_start)) AS day, count(c.event_id) AS clicks, count(s.session_id) AS visits FROM clicks AS c FULL JOIN sessions AS s ON c.user_id = s.user_id AND c.event_ts BETWEEN s.session_start AND s.session_start + INTERVAL 1 HOUR GROUP BY 1

-- accepted: a third one at the time of either
-- with: {timeseries: {event_time_column: day, partition_column: day}}
SELECT coalesce(a.day, b.day, c.day) AS day, a.n, b.n AS more, c.came FROM daily AS a FULL JOIN daily AS b ON b.day = a.day - INTERVAL 1 DAY FULL JOIN arrivals AS c ON c.day = coalesce(a.day, b.day)

-- accepted: of those that have the one side
-- with: {timeseries: {event_time_column: day, partition_column: day}}
SELECT a.day, a.n, b.n AS more FROM daily AS a FULL JOIN daily AS b ON a.day = b.day - INTERVAL 1 DAY WHERE a.n > 0 AND a.day IS NOT NULL

-- accepted: a RIGHT JOIN keeps a side, and finds what goes with the other
-- with: {timeseries: {event_time_column: day, partition_column: day}}
SELECT c.day, a.n, b.n AS more FROM daily AS a FULL JOIN daily AS b ON b.day = a.day - INTERVAL 1 DAY RIGHT JOIN arrivals AS c ON c.day = a.day

-- refused: join-over-cells `daily AS b`: a FULL JOIN of any two days
-- with: {timeseries: {event_time_column: day, partition_column: day}}
SELECT coalesce(a.day, b.day) AS day, a.n, b.n AS more FROM daily AS a FULL JOIN daily AS b ON a.user_id = b.user_id

-- refused: join-over-cells `daily AS b`: one end alone
-- with: {timeseries: {event_time_column: day, partition_column: day}}
SELECT coalesce(a.day, b.day) AS day, a.n, b.n AS more FROM daily AS a FULL JOIN daily AS b ON a.user_id = b.user_id AND b.day >= a.day

-- refused: partition-not-proven `coalesce(a.day, b.day)`: rows of a third one alone have no day of these
-- with: {timeseries: {event_time_column: day, partition_column: day}}
SELECT coalesce(a.day, b.day) AS day, a.n, c.came FROM daily AS a FULL JOIN daily AS b ON a.day = b.day FULL JOIN arrivals AS c ON c.day = a.day

-- refused: null-cell `coalesce(a.day, a.day)`: twice the same side
-- with: {timeseries: {event_time_column: day, partition_column: day}}
SELECT coalesce(a.day, a.day) AS day, b.n FROM daily AS a FULL JOIN daily AS b ON a.day = b.day AND a.n > 1

-- accepted: one of two ranges
SELECT to_date(a.event_ts) AS day, a.url, b.url AS other FROM clicks AS a JOIN clicks AS b ON b.event_ts BETWEEN a.event_ts - INTERVAL 2 HOURS AND a.event_ts - INTERVAL 1 HOUR OR b.event_ts BETWEEN a.event_ts + INTERVAL 1 DAY AND a.event_ts + INTERVAL 2 DAYS

-- refused: join-over-cells `clicks AS b`: one of two ranges, or another condition
SELECT to_date(a.event_ts) AS day, a.url, b.url AS other FROM clicks AS a JOIN clicks AS b ON b.event_ts BETWEEN a.event_ts - INTERVAL 2 HOURS AND a.event_ts OR b.url = a.url

-- accepted: at most so many seconds apart
-- elsewhere: SELECT cast(a.event_ts AS date) AS day, a.url, b.url AS other FROM clicks AS a JOIN clicks AS b ON abs(epoch(b.event_ts) - epoch(a.event_ts)) <= 36000
SELECT to_date(a.event_ts) AS day, a.url, b.url AS other FROM clicks AS a JOIN clicks AS b ON abs(unix_timestamp(b.event_ts) - unix_timestamp(a.event_ts)) <= 36000

-- accepted: the same day, and NULL is no day
SELECT to_date(a.event_ts) AS day, a.url, b.n AS n FROM clicks AS a LEFT JOIN daily AS b ON b.day <=> to_date(a.event_ts)

-- accepted: a whole month beside each day
-- with: {timeseries: {event_time_column: day, partition_column: day}}
SELECT d.day, d.n, m.n AS month_n FROM daily AS d JOIN (SELECT date_trunc('MONTH', day) AS month, sum(n) AS n FROM daily GROUP BY 1) AS m ON date_trunc('MONTH', d.day) = m.month

-- accepted: each day of a calendar, with what there is
-- with: {timeseries: {event_time_column: day, partition_column: day}}
SELECT to_date(k.since) AS day, count(c.event_id) AS n FROM raw.countries AS k LEFT JOIN clicks AS c ON to_date(c.event_ts) = to_date(k.since) GROUP BY 1

-- refused: join-over-cells `clicks AS c`: and the time of what there is
-- alike: each of these few days has clicks
-- with: {timeseries: {event_time_column: day, partition_column: day}}
SELECT to_date(c.event_ts) AS day, k.code FROM raw.countries AS k LEFT JOIN clicks AS c ON to_date(c.event_ts) = to_date(k.since)

-- refused: join-over-cells `clicks AS c`: each day of a calendar, with what there is of another one's
-- with: {timeseries: {event_time_column: day, partition_column: day}}
SELECT to_date(k.since) AS day, count(c.event_id) AS n FROM raw.countries AS k LEFT JOIN clicks AS c ON c.code = k.code GROUP BY k.since

-- accepted: a join to the optional side of another
SELECT to_date(a.event_ts) AS day, count(DISTINCT b.user_id) AS n, count(DISTINCT c.user_id) AS m FROM clicks AS a LEFT JOIN clicks AS b ON b.user_id = a.user_id AND b.event_ts BETWEEN a.event_ts AND a.event_ts + INTERVAL 12 HOURS LEFT JOIN clicks AS c ON c.user_id = b.user_id AND c.event_ts BETWEEN b.event_ts AND b.event_ts + INTERVAL 12 HOURS GROUP BY 1

-- accepted: NATURAL by the day
-- with: {timeseries: {event_time_column: day, partition_column: day}}
SELECT day, n, c FROM daily NATURAL JOIN (SELECT to_date(event_ts) AS day, user_id, count(*) AS c FROM clicks GROUP BY 1, 2)

-- refused: join-over-cells `(SELECT user_id, count(*) AS c FROM clicks GROUP BY to_date(event_ts), user_id)`: NATURAL by the user alone
-- with: {timeseries: {event_time_column: day, partition_column: day}}
SELECT day, n, c FROM daily NATURAL JOIN (SELECT user_id, count(*) AS c FROM clicks GROUP BY to_date(event_ts), user_id)

-- accepted: a LATERAL subquery that says how far
SELECT to_date(c.event_ts) AS day, c.event_id, l.n FROM clicks AS c LEFT JOIN LATERAL (SELECT count(*) AS n FROM daily AS o WHERE o.day BETWEEN to_date(c.event_ts) AND to_date(c.event_ts) + INTERVAL 1 DAY) AS l ON true

-- refused: join-over-cells `l`: one that does not, whatever else is wrong in it
SELECT to_date(c.event_ts) AS day, c.event_id, l.n FROM clicks AS c LEFT JOIN LATERAL (SELECT count(*) AS n FROM daily AS o WHERE o.user_id = c.user_id) AS l ON true

-- refused: join-over-cells `l`
SELECT to_date(c.event_ts) AS day, c.event_id, l.n FROM clicks AS c JOIN LATERAL (SELECT o.n FROM daily AS o WHERE o.user_id = c.user_id ORDER BY o.day DESC, o.n LIMIT 1) AS l

-- refused: limit-over-cells `LIMIT`: it may pass by what is declared, and that may not
-- with: {incremental: {bounds: {clicks: {before: 1 day}, daily: {before: 1 day}}}}
SELECT to_date(c.event_ts) AS day, c.event_id, l.n FROM clicks AS c JOIN LATERAL (SELECT o.n FROM daily AS o WHERE o.user_id = c.user_id ORDER BY o.day DESC, o.n LIMIT 1) AS l

-- page: The join has no time range, so a click of today is joined with sessions of all years.
-- refused: join-over-cells `sessions AS s`: sessions of all years
SELECT to_date(c.event_ts) AS day, count(*) AS sessions
FROM clicks AS c JOIN sessions AS s ON s.user_id = c.user_id
GROUP BY 1

-- page: Say how far apart the two may be.
-- accepted: sessions of the next seven days
SELECT to_date(c.event_ts) AS day, count(*) AS sessions
FROM clicks AS c
JOIN sessions AS s
  ON s.user_id = c.user_id AND s.session_start BETWEEN c.event_ts AND c.event_ts + INTERVAL 7 DAYS
GROUP BY 1
