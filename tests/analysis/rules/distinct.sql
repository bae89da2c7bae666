-- front: {materialization: table, incremental: {}, timeseries: {event_time_column: event_ts, partition_column: day, granularity: day}}

-- accepted: with the cell among the columns
SELECT DISTINCT to_date(event_ts) AS day, user_id FROM clicks

-- accepted: over a lookup
SELECT to_date(event_ts) AS day, country FROM clicks JOIN (SELECT DISTINCT code, country FROM raw.countries) USING (code)

-- refused: distinct-over-cells `DISTINCT`: without it
-- refused: join-over-cells `x`
SELECT to_date(event_ts) AS day FROM clicks JOIN (SELECT DISTINCT user_id FROM sessions) AS x USING (user_id)
