-- front: {materialization: scd_type_2, unique_key: [user_id], scd_type_2: {updated_at: event_ts, columns: [url]}}

-- accepted: the columns of a table, WHERE, values of one row
SELECT c.user_id, c.event_ts, lower(url) AS url, amount FROM clicks AS c WHERE c.amount > 0

-- accepted: all columns of a table
SELECT * FROM clicks

-- accepted: a view with WHERE in between
SELECT user_id, event_ts, url FROM paid

-- refused: not-by-key `coded_apart`: a view that compares rows with those of a lookup
SELECT user_id, event_ts, url FROM coded_apart

-- refused: not-by-key `GROUP BY`
SELECT user_id, event_ts, url FROM clicks GROUP BY user_id, event_ts, url

-- refused: not-by-key `DISTINCT`
SELECT DISTINCT user_id, event_ts, url FROM clicks

-- refused: not-by-key `JOIN`
SELECT c.user_id, c.event_ts, c.url FROM clicks c JOIN sessions s ON s.user_id = c.user_id

-- refused: not-by-key `UNION`
SELECT user_id, event_ts, url FROM clicks UNION ALL SELECT user_id, event_ts, url FROM clicks

-- refused: not-by-key `lag(url) OVER (PARTITION BY user_id ORDER BY event_ts, event_id)`
SELECT user_id, event_ts, lag(url) OVER (PARTITION BY user_id ORDER BY event_ts, event_id) AS url FROM clicks

-- refused: not-by-key `url IN (SELECT country FROM raw.countries)`
SELECT user_id, event_ts, url FROM clicks WHERE url IN (SELECT country FROM raw.countries)

-- refused: not-by-key `lower(who)`: a key made of another output
SELECT user_id AS who, lower(who) AS user_id, event_ts, url FROM clicks

-- refused: unknown-column `user_id`: the key is no column
SELECT user_id AS who, event_ts, url FROM clicks

-- refused: duplicate-column `SELECT`: the table has a column of this name
SELECT user_id, event_ts, url, amount AS valid_from FROM clicks
