-- front: {materialization: events, unique_key: [event_id], prefer: [revision desc], timeseries: {event_time_column: ts}}

-- admitted: events_projected
SELECT event_id, ts, lower(url) AS url, coalesce(country, '??') AS country, revision FROM raw.clicks WHERE url IS NOT NULL AND user_id IS NOT NULL

-- admitted: events_of_shoppers
SELECT event_id, ts, revision, upper(user_id) AS who, cast(amount * 100 AS int) AS cents, from_json(props, 'plan string').plan AS plan FROM raw.clicks WHERE url IN ('/cart', '/pay') OR amount > 4

-- admitted: events_with_local_days
SELECT event_id, ts, revision, date_format(from_utc_timestamp(ts, 'Europe/Berlin'), 'yyyy-MM-dd') AS day, user_id IS NULL AS unknown FROM raw.clicks

-- refused: not-row-wise: events_counted
SELECT event_id, ts, max(revision) AS revision FROM raw.clicks GROUP BY event_id, ts

-- admitted: events_joined
SELECT c.event_id, c.ts, k.name, c.revision FROM raw.clicks AS c JOIN raw.countries AS k ON k.code = c.country

-- refused: not-row-wise: events_numbered
SELECT event_id, ts, revision, row_number() OVER (PARTITION BY user_id ORDER BY ts) AS n FROM raw.clicks

-- refused: not-row-wise: events_distinct
SELECT DISTINCT event_id, ts, revision FROM raw.clicks

-- refused: clock: events_with_the_time_of_loading
SELECT event_id, ts, revision, current_timestamp() AS loaded FROM raw.clicks

-- admitted: visits_in_order
-- with: {materialization: sessions, unique_key: null, prefer: null, timeseries: null, sessions: {user: user_id, gap: 1 hour}}
SELECT count(*) AS events, sum(amount) AS revenue, count(DISTINCT url) AS pages FROM clicks WHERE url <> '/cart'

-- admitted: visits_of_minutes
-- with: {materialization: sessions, unique_key: null, prefer: null, timeseries: null, sessions: {user: user_id, gap: 5 minutes}}
SELECT count(*) AS events, first(url) AS entry, last(url) AS leaving, last(country) AS country FROM clicks

-- admitted: visits_of_days
-- with: {materialization: sessions, unique_key: null, prefer: null, timeseries: null, sessions: {user: user_id, gap: 1 day}}
SELECT count(*) FILTER (WHERE url = '/pay') AS paid, max(amount) AS dearest, min(score) AS lowest, avg(revision) AS revisions, count(DISTINCT cast(ts AS date)) AS days FROM clicks

-- admitted: visits_that_paid
-- with: {materialization: sessions, unique_key: null, prefer: null, timeseries: null, sessions: {user: user_id, gap: 90 minutes}}
SELECT count(*) AS events, max(amount) - min(amount) AS spread, bool_or(url = '/pay') AS paid, first(amount) AS first_amount FROM clicks WHERE amount IS NOT NULL

-- refused: column-outside-aggregate: visits_with_a_bare_column
-- with: {materialization: sessions, unique_key: null, prefer: null, timeseries: null, sessions: {user: user_id, gap: 1 hour}}
SELECT url, count(*) AS events FROM clicks

-- refused: not-session-wise: visits_grouped
-- with: {materialization: sessions, unique_key: null, prefer: null, timeseries: null, sessions: {user: user_id, gap: 1 hour}}
SELECT url, count(*) AS events FROM clicks GROUP BY url

-- refused: not-deterministic: visits_with_any_value
-- with: {materialization: sessions, unique_key: null, prefer: null, timeseries: null, sessions: {user: user_id, gap: 1 hour}}
SELECT any_value(url) AS url FROM clicks
