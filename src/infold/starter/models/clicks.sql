---
materialization: events
description: One row per click, however often it was delivered.
unique_key: [event_id]
timeseries: {event_time_column: event_ts, granularity: day}
---
SELECT event_id, user_id, event_ts, url, amount
FROM raw.clicks
WHERE user_id IS NOT NULL
