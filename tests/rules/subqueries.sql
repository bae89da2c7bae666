-- front: {materialization: table, incremental: {}, timeseries: {event_time_column: event_ts, partition_column: day, granularity: day}}

-- accepted: over lookups
SELECT to_date(event_ts) AS day, (SELECT count(*) FROM raw.countries) AS n FROM clicks WHERE code IN (SELECT code FROM raw.countries) AND EXISTS (SELECT 1 FROM users AS u WHERE u.user_id = clicks.user_id)

-- refused: subquery-over-cells `event_ts = (SELECT max(event_ts) FROM clicks)`: the latest time of all
SELECT to_date(event_ts) AS day FROM clicks WHERE event_ts = (SELECT max(event_ts) FROM clicks)

-- refused: subquery-over-cells `user_id IN (SELECT user_id FROM sessions)`: any session
SELECT to_date(event_ts) AS day FROM clicks WHERE user_id IN (SELECT user_id FROM sessions)

-- refused: subquery-over-cells `EXISTS (SELECT 1 FROM sessions AS s WHERE s.user_id = clicks.user_id)`: correlated
SELECT to_date(event_ts) AS day FROM clicks WHERE NOT EXISTS (SELECT 1 FROM sessions AS s WHERE s.user_id = clicks.user_id)
