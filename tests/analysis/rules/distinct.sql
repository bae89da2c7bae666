-- front: {materialization: table, incremental: {}, timeseries: {event_time_column: event_ts, partition_column: day, granularity: day}}

-- accepted: with the cell among the columns
SELECT DISTINCT to_date(event_ts) AS day, user_id FROM clicks

-- accepted: over a lookup
SELECT to_date(event_ts) AS day, country FROM clicks JOIN (SELECT DISTINCT code, country FROM raw.countries) USING (code)

-- refused: distinct-over-cells `DISTINCT`: without it
-- refused: join-over-cells `x`
SELECT to_date(event_ts) AS day FROM clicks JOIN (SELECT DISTINCT user_id FROM sessions) AS x USING (user_id)

-- page: The subquery has one row per user over all time, and no day.
-- refused: distinct-over-cells `DISTINCT`: users of all time
-- refused: join-over-cells `b`
SELECT to_date(c.event_ts) AS day, count(*) AS clicks
FROM clicks AS c JOIN (SELECT DISTINCT user_id FROM sessions) AS b ON b.user_id = c.user_id
GROUP BY 1

-- page: Have the day among its columns, and join by it.
-- accepted: users of the day
SELECT to_date(c.event_ts) AS day, count(*) AS clicks
FROM clicks AS c
JOIN (SELECT DISTINCT user_id, to_date(session_start) AS day FROM sessions) AS b
  ON b.user_id = c.user_id AND b.day = to_date(c.event_ts)
GROUP BY 1
