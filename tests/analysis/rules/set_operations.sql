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
