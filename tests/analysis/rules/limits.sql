-- front: {materialization: table, incremental: {}, timeseries: {event_time_column: event_ts, partition_column: day, granularity: day}}

-- accepted: ORDER BY alone does nothing to a table
SELECT to_date(event_ts) AS day, url FROM clicks ORDER BY url

-- accepted: the first of a lookup
SELECT to_date(event_ts) AS day, country FROM clicks JOIN (SELECT code, country FROM raw.countries ORDER BY code, country LIMIT 5) USING (code)

-- accepted: the first of everything in a whole table
-- with: {incremental: {enabled: false}, timeseries: {event_time_column: event_ts}}
SELECT event_ts, url FROM clicks ORDER BY event_ts, event_id LIMIT 10 OFFSET 2

-- refused: limit-over-cells `LIMIT`: with or without ORDER BY
SELECT to_date(event_ts) AS day, url FROM clicks ORDER BY event_ts LIMIT 10

-- refused: limit-over-cells `OFFSET`
SELECT to_date(event_ts) AS day, url FROM clicks ORDER BY event_ts OFFSET 10

-- refused: limit-over-cells `LIMIT`: in a subquery
SELECT to_date(event_ts) AS day FROM (SELECT event_ts FROM clicks LIMIT 10)

-- refused: limit-without-order `LIMIT`: of a lookup, any one
SELECT to_date(event_ts) AS day, country FROM clicks JOIN (SELECT * FROM raw.countries LIMIT 1) USING (code)

-- refused: limit-without-order `LIMIT`: in a whole table
-- with: {incremental: {enabled: false}, timeseries: {event_time_column: event_ts}}
SELECT event_ts, url FROM clicks LIMIT 10
