-- front: {materialization: table}

-- accepted: times that are given
SELECT unix_timestamp(event_ts) AS s, x.`current_date` AS d, x.now AS n FROM (SELECT event_ts, event_ts AS `current_date`, 1 AS now FROM clicks) AS x

-- refused: clock `current_timestamp`
-- refused: clock `now`
-- refused: clock `unix_timestamp`
SELECT url, current_timestamp AS a, now() AS b, unix_timestamp() AS c FROM clicks

-- refused: clock `current_date`: in a WHERE of a view
-- with: {materialization: view}
SELECT url FROM clicks WHERE event_ts < current_date()

-- accepted: words for days that are texts, and the one special time that is always the same
SELECT url, 'now' AS said, url = 'today' AS a, url IN ('yesterday', 'now') AS b, concat('tomorrow', url) AS c, url LIKE 'today' AS d, DATE 'epoch' AS e, cast('now' AS string) AS f, code > 'todayish' AS g, code >= 'now and then' AS h, cast(CASE WHEN code = 'today' THEN event_ts END AS date) AS i FROM clicks

-- refused: clock `'today'`
-- refused: clock `'now'`
-- refused: clock `"Tomorrow"`
-- refused: clock `'yesterday '`
-- refused: clock `'today UTC'`: literals
SELECT DATE 'today' AS a, TIMESTAMP 'now' AS b, DATE"Tomorrow" AS c, TIMESTAMP_NTZ 'yesterday ' AS d, timestamp_ltz 'today UTC' AS e FROM clicks

-- refused: clock `'now'`
-- refused: clock `'today'`
-- refused: clock `'today+01:00'`
-- refused: clock `'now'`
-- refused: clock `'now'`: casts
SELECT cast('now' AS timestamp) AS a, try_cast(('today') AS date) AS b, cast('today+01:00' AS timestamp_ntz) AS c, 'now'::timestamp AS d, ('now') :: timestamp AS e FROM clicks

-- refused: clock `'today'`
-- refused: clock `'yesterday'`
-- refused: clock `'now'`
-- refused: clock `'now'`
-- refused: clock `'now'`
-- refused: clock `'today'`
-- refused: clock `'today'`
-- refused: clock `'now'`: arguments
SELECT to_date('today') AS a, date('yesterday') AS b, timestamp('now') AS c, to_timestamp('now') AS d, try_to_timestamp('now') AS e, date_add('today', 1) AS f, datediff(event_ts, ('today')) AS g, extract(hour FROM 'now') AS h FROM clicks

-- refused: clock `'today'`
-- refused: clock `'now'`
-- refused: clock `r'yesterday'`
-- refused: clock `'today'`
-- refused: clock `'now'`
-- refused: clock `'tomorrow'`: comparisons
SELECT url FROM clicks WHERE event_ts < 'today' OR 'now' >= event_ts OR event_ts > r'yesterday' OR event_ts BETWEEN 'today' AND 'now' OR event_ts NOT BETWEEN DATE '2024-01-01' AND ('tomorrow')

-- refused: clock `'today'`
-- refused: clock `'today'`
-- refused: clock `'yesterday'`
-- refused: clock `'today'`: equal to what is known to be a time
SELECT c.url FROM clicks AS c JOIN raw.countries AS k ON k.code = c.code WHERE cast(c.event_ts AS date) = 'today' OR k.since = 'today' OR to_date(c.event_ts) IN ('2024-01-01', 'yesterday') OR 'today' <=> c.event_ts

-- refused: clock `'today'`: in a table by the keys of a change
-- with: {materialization: cumulative_aggregate}
SELECT user_id, count_if(event_ts < 'today') AS n FROM clicks GROUP BY user_id

-- refused: clock `'now'`: in sessions
-- with: {materialization: sessions, sessions: {user: user_id, gap: 30 minutes}}
SELECT count_if(event_ts < 'now') AS n FROM clicks

-- refused: clock `'today'`: in the WHERE of events
-- with: {materialization: events, unique_key: event_id, timeseries: {event_time_column: event_ts}}
SELECT * FROM raw.clicks WHERE event_ts < 'today'

-- page: The table would depend on the day of the run.
-- refused: clock `current_date`: the last seven days
SELECT url, count(*) AS clicks
FROM clicks WHERE event_ts >= current_date() - INTERVAL 7 DAYS GROUP BY url

-- page: Keep every day, and choose the days when you read.
-- accepted: every day
SELECT cast(event_ts AS date) AS day, url, count(*) AS clicks FROM clicks GROUP BY 1, 2
