-- front: {materialization: table, incremental: {}, timeseries: {event_time_column: event_ts, partition_column: day, granularity: day}}

-- accepted: in a whole table
-- with: {incremental: {enabled: false}, timeseries: {event_time_column: n, partition_column: n}}
WITH RECURSIVE t(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM t WHERE n < 9) SELECT n FROM t

-- refused: recursion-over-cells `RECURSIVE`: whatever it reads
-- alike: this one reads no rows, which is not looked at
WITH RECURSIVE t(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM t WHERE n < 9)
SELECT to_date(event_ts) AS day, n FROM clicks CROSS JOIN t

-- refused: recursion-over-cells `RECURSIVE`: from each event to those after it
WITH RECURSIVE t(who, at) AS (SELECT user_id, event_ts FROM clicks UNION ALL SELECT user_id, event_ts FROM clicks JOIN t ON user_id = who AND event_ts > at AND event_ts <= at + INTERVAL 2 DAYS)
SELECT to_date(at) AS day, count(*) AS n FROM t GROUP BY 1

-- page: The recursion can reach any click from any other.
-- refused: recursion-over-cells `RECURSIVE`: chains of clicks
WITH RECURSIVE chain(who, at) AS (
  SELECT user_id, event_ts FROM clicks
  UNION ALL
  SELECT user_id, event_ts FROM clicks JOIN chain
    ON user_id = who AND event_ts > at AND event_ts <= at + INTERVAL 2 DAYS)
SELECT to_date(at) AS day, count(*) AS n FROM chain GROUP BY 1

-- page: There is no form that is built cell by cell. Build the table whole: leave out `incremental`, or set `enabled: false`.
-- accepted: the same in a whole table
-- with: {incremental: {enabled: false}, timeseries: {event_time_column: day}}
WITH RECURSIVE chain(who, at) AS (
  SELECT user_id, event_ts FROM clicks
  UNION ALL
  SELECT user_id, event_ts FROM clicks JOIN chain
    ON user_id = who AND event_ts > at AND event_ts <= at + INTERVAL 2 DAYS)
SELECT to_date(at) AS day, count(*) AS n FROM chain GROUP BY 1
