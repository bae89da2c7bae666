---
materialization: table
description: One row per day on which somebody worked.
timeseries: {event_time_column: session_start, partition_column: day, granularity: day}
incremental: {}
---
SELECT
  cast(session_start AS date) AS day,
  count(*) AS sessions,
  count(DISTINCT user_id) AS people,
  sum(files) AS files
FROM sessions
GROUP BY 1
