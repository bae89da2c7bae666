-- front: {materialization: table, incremental: {}, timeseries: {event_time_column: event_ts, partition_column: day, granularity: day}}

-- accepted: UNION ALL
SELECT to_date(event_ts) AS day, url FROM clicks UNION ALL SELECT to_date(event_ts), url FROM paid

-- accepted: lookups among themselves
SELECT to_date(event_ts) AS day FROM clicks JOIN (SELECT code FROM raw.countries UNION SELECT parent FROM raw.countries) USING (code)

-- refused: set-operation-over-cells `UNION`: it removes duplicates
SELECT to_date(event_ts) AS day, url FROM clicks UNION SELECT to_date(event_ts), url FROM paid

-- refused: set-operation-over-cells `EXCEPT`
SELECT to_date(event_ts) AS day, url FROM clicks EXCEPT SELECT to_date(event_ts), url FROM paid

-- refused: set-operation-over-cells `INTERSECT`
SELECT to_date(event_ts) AS day, url FROM clicks INTERSECT SELECT to_date(event_ts), url FROM paid
