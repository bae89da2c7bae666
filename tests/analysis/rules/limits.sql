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

-- page: LIMIT takes the first rows of all days together.
-- refused: limit-over-cells `LIMIT`: the three most visited pages of all days
SELECT to_date(event_ts) AS day, url, count(*) AS clicks
FROM clicks GROUP BY 1, 2 ORDER BY clicks DESC, url, day LIMIT 3

-- page: Number the rows within the day.
-- accepted: the three most visited pages of each day
SELECT day, url, clicks
FROM (
  SELECT day, url, clicks, row_number() OVER (PARTITION BY day ORDER BY clicks DESC, url) AS place
  FROM (SELECT to_date(event_ts) AS day, url, count(*) AS clicks FROM clicks GROUP BY 1, 2))
WHERE place <= 3

-- page: LIMIT without ORDER BY takes any rows.
-- refused: limit-without-order `LIMIT`: any three
-- with: {incremental: {enabled: false}, timeseries: {event_time_column: event_ts}}
SELECT event_ts, event_id, url FROM clicks LIMIT 3

-- page: Order by columns that identify a row.
-- accepted: the first three
-- with: {incremental: {enabled: false}, timeseries: {event_time_column: event_ts}}
SELECT event_ts, event_id, url FROM clicks ORDER BY event_ts, event_id LIMIT 3
