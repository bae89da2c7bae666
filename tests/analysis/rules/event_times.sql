-- front: {materialization: events, unique_key: [event_id]}

-- accepted: a timestamp of the source
-- with: {timeseries: {event_time_column: event_ts}}
SELECT event_id, event_ts FROM raw.clicks

-- accepted: a date, under another name
-- with: {timeseries: {event_time_column: at}, unique_key: [name]}
SELECT name, day AS at FROM raw.holidays

-- accepted: a text that is made a timestamp, by a source without times of its own
-- with: {timeseries: {event_time_column: at}, unique_key: [code]}
SELECT code, cast(country AS timestamp) AS at FROM raw.countries

-- accepted: a call whose type only the engine knows
-- with: {timeseries: {event_time_column: at}}
SELECT event_id, coalesce(event_ts, to_timestamp(code)) AS at FROM raw.clicks

-- refused: not-a-time `code`: a text of a source without times
-- with: {timeseries: {event_time_column: code}, unique_key: [country]}
SELECT * FROM raw.countries

-- refused: not-a-time `at`: a number under another name
-- with: {timeseries: {event_time_column: at}}
SELECT event_id, amount AS at FROM raw.clicks

-- refused: not-a-time `at`: a time that is made a text
-- with: {timeseries: {event_time_column: at}}
SELECT event_id, cast(event_ts AS string) AS at FROM raw.clicks

-- refused: not-a-time `at`: texts put together
-- with: {timeseries: {event_time_column: at}}
SELECT event_id, concat(code, unit) AS at FROM raw.clicks

-- page: A text is not a time.
-- refused: not-a-time `at`: a time as text
-- with: {timeseries: {event_time_column: at}}
SELECT event_id, cast(event_ts AS string) AS at FROM raw.clicks

-- page: Make it a timestamp or a date.
-- accepted: a time as a date
-- with: {timeseries: {event_time_column: at}}
SELECT event_id, cast(event_ts AS date) AS at FROM raw.clicks
