-- front: {materialization: table, incremental: {}, timeseries: {event_time_column: event_ts, partition_column: day, granularity: day}}

-- accepted: in a whole table
-- with: {incremental: {enabled: false}, timeseries: {event_time_column: n, partition_column: n}}
WITH RECURSIVE t(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM t WHERE n < 9) SELECT n FROM t

-- refused: recursion-over-cells `RECURSIVE`
WITH RECURSIVE t(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM t WHERE n < 9)
SELECT to_date(event_ts) AS day, n FROM clicks CROSS JOIN t
