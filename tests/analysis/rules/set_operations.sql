-- front: {materialization: table, incremental: {}, timeseries: {event_time_column: event_ts, partition_column: day, granularity: day}}

-- accepted: UNION ALL
SELECT to_date(event_ts) AS day, url FROM clicks UNION ALL SELECT to_date(event_ts), url FROM paid

-- accepted: lookups among themselves
SELECT to_date(event_ts) AS day FROM clicks JOIN (SELECT code FROM raw.countries UNION SELECT parent FROM raw.countries) USING (code)

-- accepted: rows that are equal are of one day
SELECT to_date(event_ts) AS day, url FROM clicks UNION SELECT to_date(event_ts), url FROM paid

-- accepted: so are those that are taken away
SELECT to_date(event_ts) AS day, url FROM clicks EXCEPT SELECT to_date(event_ts), url FROM paid

-- accepted: or are on both sides
SELECT to_date(event_ts) AS day, user_id FROM clicks INTERSECT SELECT day, user_id FROM daily

-- accepted: counts of hours beside counts of days, which are in the first hour of each
-- with: {timeseries: {event_time_column: day, partition_column: day, granularity: hour}}
SELECT date_trunc('HOUR', event_ts) AS day, 'hour' AS of, count(*) AS n FROM clicks GROUP BY 1 UNION ALL SELECT date_trunc('DAY', event_ts), 'day', count(*) FROM clicks GROUP BY 1

-- accepted: those of a month among days of another input
-- with: {timeseries: {event_time_column: day, partition_column: day}}
SELECT day, n FROM (SELECT day, n FROM daily UNION ALL SELECT date_trunc('MONTH', session_start) AS day, events FROM sessions)

-- accepted: hours in a table of days
SELECT date_trunc('HOUR', event_ts) AS day, 1 AS n FROM clicks UNION ALL SELECT day, n FROM daily

-- refused: partition-not-proven `date_trunc('DAY', event_ts)`: days alone, in a table of hours
-- refused: partition-not-proven `to_date(session_start)`
-- with: {timeseries: {event_time_column: day, partition_column: day, granularity: hour}}
SELECT date_trunc('DAY', event_ts) AS day, 1 AS n FROM clicks UNION ALL SELECT to_date(session_start), 2 FROM sessions

-- refused: partition-not-proven `to_date(session_end)`: only the side that follows no time
-- with: {timeseries: {event_time_column: day, partition_column: day, granularity: hour}}
SELECT date_trunc('DAY', event_ts) AS day, 1 AS n FROM clicks UNION ALL SELECT to_date(session_end), 2 FROM sessions

-- refused: join-over-cells `u`: it removes duplicates of all days
-- refused: set-operation-over-cells `UNION`
SELECT to_date(event_ts) AS day FROM clicks JOIN (SELECT user_id FROM sessions UNION SELECT user_id FROM daily) AS u USING (user_id)

-- refused: join-over-cells `u`: it takes away rows of all days
-- refused: set-operation-over-cells `EXCEPT`
SELECT to_date(event_ts) AS day FROM clicks JOIN (SELECT user_id FROM daily EXCEPT SELECT user_id FROM sessions) AS u USING (user_id)

-- refused: partition-not-proven `since`: a side without a time
-- alike: not derived, though a lookup is read whole
-- refused: set-operation-over-cells `INTERSECT`
SELECT to_date(event_ts) AS day FROM clicks INTERSECT SELECT since FROM raw.countries

-- page set-operation-over-cells: UNION removes repeated users of all days together.
-- refused: join-over-cells `b`: users of all time
-- refused: set-operation-over-cells `UNION`
SELECT to_date(c.event_ts) AS day, count(*) AS clicks
FROM clicks AS c
JOIN (SELECT user_id FROM sessions UNION SELECT user_id FROM daily) AS b ON b.user_id = c.user_id
GROUP BY 1

-- page: Have the day on both sides of UNION.
-- accepted: users of each day
-- with: {timeseries: {event_time_column: day, partition_column: day}}
SELECT to_date(session_start) AS day, user_id FROM sessions
UNION
SELECT day, user_id FROM daily
