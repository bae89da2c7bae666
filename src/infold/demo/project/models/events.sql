---
materialization: events
description: One row per commit and file that it touched, however often it was delivered.
unique_key: [event_id]
timeseries: {event_time_column: event_ts, granularity: day}
---
SELECT event_id, commit_id, user_id, event_ts, received_ts, path
FROM repo.file_events
WHERE user_id IS NOT NULL
