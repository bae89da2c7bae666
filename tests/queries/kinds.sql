-- front: {materialization: events, unique_key: [event_id], prefer: [revision desc], timeseries: {event_time_column: ts}}

-- admitted: events_projected
SELECT event_id, ts, lower(url) AS url, coalesce(country, '??') AS country, revision FROM raw.clicks WHERE url IS NOT NULL AND user_id IS NOT NULL

-- refused: not-row-wise: events_counted
SELECT event_id, ts, max(revision) AS revision FROM raw.clicks GROUP BY event_id, ts

-- refused: not-row-wise: events_joined
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

-- refused: column-outside-aggregate: visits_with_a_bare_column
-- with: {materialization: sessions, unique_key: null, prefer: null, timeseries: null, sessions: {user: user_id, gap: 1 hour}}
SELECT url, count(*) AS events FROM clicks

-- refused: not-session-wise: visits_grouped
-- with: {materialization: sessions, unique_key: null, prefer: null, timeseries: null, sessions: {user: user_id, gap: 1 hour}}
SELECT url, count(*) AS events FROM clicks GROUP BY url

-- refused: not-deterministic: visits_with_any_value
-- with: {materialization: sessions, unique_key: null, prefer: null, timeseries: null, sessions: {user: user_id, gap: 1 hour}}
SELECT any_value(url) AS url FROM clicks
