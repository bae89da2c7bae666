-- front: {materialization: events, unique_key: event_id, timeseries: {event_time_column: event_ts}}

-- accepted: a projection with WHERE
SELECT event_id, cast(event_ts AS timestamp) AS event_ts, upper(url) AS url, amount * 2 AS twice FROM raw.clicks AS c WHERE c.url LIKE '/%' AND amount BETWEEN 1 AND 2

-- refused: not-row-wise `count(amount)`
-- refused: not-row-wise `rank() OVER (ORDER BY event_ts)`
-- refused: not-row-wise `explode(tags)`
SELECT event_id, event_ts, count(amount) AS n, rank() OVER (ORDER BY event_ts) AS r, explode(tags) AS t FROM raw.clicks

-- refused: not-row-wise `DISTINCT`
-- refused: not-row-wise `JOIN`
-- refused: not-row-wise `GROUP BY`
-- refused: not-row-wise `HAVING`
-- refused: not-row-wise `ORDER BY`
-- refused: not-row-wise `LIMIT`
SELECT DISTINCT event_id, event_ts FROM raw.clicks JOIN raw.countries USING (code) GROUP BY event_id, event_ts HAVING true ORDER BY event_id LIMIT 5

-- refused: not-row-wise `UNION`
SELECT event_id, event_ts FROM raw.clicks UNION ALL SELECT event_id, event_ts FROM raw.clicks

-- refused: not-row-wise `WITH`
-- refused: not-row-wise `x`
WITH x AS (SELECT * FROM raw.clicks) SELECT event_id, event_ts FROM x

-- refused: not-row-wise `(SELECT event_id, event_ts FROM raw.clicks)`
SELECT event_id, event_ts FROM (SELECT event_id, event_ts FROM raw.clicks)

-- refused: not-row-wise `code IN (SELECT code FROM raw.countries)`
SELECT event_id, event_ts FROM raw.clicks WHERE code IN (SELECT code FROM raw.countries)

-- refused: not-row-wise `clicks`: a model is no source
SELECT event_id, event_ts FROM clicks
