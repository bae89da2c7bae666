---
materialization: table
description: One row per day on which somebody came.
timeseries: {event_time_column: session_start, partition_column: day, granularity: day}
incremental: {}
---
SELECT
  cast(session_start AS date) AS day,
  count(*) AS sessions,
  sum(revenue) AS revenue
FROM sessions
GROUP BY 1
