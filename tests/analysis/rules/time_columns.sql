-- front: {materialization: table}

-- accepted: a time that only the input has
-- with: {timeseries: {event_time_column: event_ts, partition_column: day}, incremental: {}}
SELECT to_date(event_ts) AS day FROM clicks

-- refused: unknown-column `event_tz`: a time that nobody has
-- refused: unknown-column `days`
-- with: {timeseries: {event_time_column: event_tz, partition_column: days}, incremental: {}}
SELECT to_date(event_ts) AS day FROM clicks

-- refused: unknown-column `amount desc`: the key of events
-- refused: unknown-column `event_ts`
-- refused: unknown-column `event_key`
-- with: {materialization: events, unique_key: [event_id, event_key], prefer: [amount desc], timeseries: {event_time_column: event_ts}}
SELECT event_id, url FROM raw.clicks
