-- front: {materialization: events, unique_key: event_id, timeseries: {event_time_column: event_ts}}

-- accepted: a projection with WHERE
SELECT event_id, cast(event_ts AS timestamp) AS event_ts, upper(url) AS url, amount * 2 AS twice FROM raw.clicks AS c WHERE c.url LIKE '/%' AND amount BETWEEN 1 AND 2

-- refused: not-row-wise `count(amount)`
-- refused: not-row-wise `rank() OVER (ORDER BY event_ts)`
-- refused: not-row-wise `explode(tags)`
SELECT event_id, event_ts, count(amount) AS n, rank() OVER (ORDER BY event_ts) AS r, explode(tags) AS t FROM raw.clicks

-- accepted: a join with a lookup, by equality
SELECT event_id, event_ts, k.country FROM raw.clicks AS c LEFT JOIN raw.countries AS k ON lower(c.code) = k.code AND k.parent IS NULL WHERE k.country <> 'x'

-- accepted: several, by USING and by WHERE
SELECT event_id, event_ts, k.country FROM raw.clicks AS c JOIN raw.countries AS k USING (code), raw.countries AS p WHERE p.code = upper(c.code)

-- accepted: a view that does so, and one more lookup
SELECT v.event_id, v.event_ts, v.country, p.since FROM coded AS v JOIN raw.countries AS p ON p.code = v.url

-- refused: not-row-wise `coded_twice`: UNION ALL in the view
SELECT event_id, event_ts FROM coded_twice

-- refused: not-row-wise `coded_apart`: a join by less than in the view
SELECT event_id, event_ts FROM coded_apart

-- refused: not-row-wise `paid`: a view over events
SELECT event_id, event_ts FROM paid

-- refused: not-row-wise `raw.countries AS p`: by a column of another lookup
SELECT v.event_id, v.event_ts FROM coded AS v JOIN raw.countries AS p ON p.code = v.country

-- refused: not-row-wise `raw.countries AS k`
SELECT event_id, event_ts, k.country FROM raw.clicks AS c LEFT JOIN raw.countries AS k ON c.code > k.code

-- refused: not-row-wise `raw.countries AS k`
SELECT event_id, event_ts, k.country FROM raw.clicks AS c RIGHT JOIN raw.countries AS k ON c.code = k.code

-- refused: not-row-wise `raw.countries AS p`
SELECT event_id, event_ts, p.country FROM raw.clicks AS c JOIN raw.countries AS k ON c.code = k.code JOIN raw.countries AS p ON p.code = k.parent

-- refused: not-row-wise `clicks AS other`
SELECT c.event_id, c.event_ts FROM raw.clicks AS c JOIN clicks AS other ON other.event_id = c.event_id

-- refused: not-row-wise `raw.clicks AS other`
SELECT c.event_id, c.event_ts FROM raw.clicks AS c JOIN raw.clicks AS other ON other.event_id = c.event_id

-- refused: not-row-wise `LATERAL`
SELECT event_id, event_ts, t FROM raw.clicks AS c LATERAL VIEW explode(tags) AS t

-- refused: not-row-wise `DISTINCT`
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

-- page: An `events` model reads rows one by one.
-- refused: not-row-wise `max(event_ts)`: one row of several
-- refused: not-row-wise `sum(amount)`
-- refused: not-row-wise `GROUP BY`
SELECT event_id, max(event_ts) AS event_ts, sum(amount) AS amount
FROM raw.clicks GROUP BY event_id

-- page: Keep the rows, and aggregate in a model that reads them.
-- accepted: the rows themselves
SELECT event_id, event_ts, amount FROM raw.clicks
