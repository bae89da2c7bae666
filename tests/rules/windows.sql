-- front: {materialization: table, incremental: {}, timeseries: {event_time_column: event_ts, partition_column: day, granularity: day}}

-- accepted: partitioned by the cell
SELECT to_date(event_ts) AS day, row_number() OVER (PARTITION BY user_id, to_date(event_ts) ORDER BY event_ts) AS n FROM clicks

-- accepted: partitioned by an hour in it
SELECT to_date(event_ts) AS day, sum(amount) OVER (PARTITION BY date_trunc('HOUR', event_ts)) AS s FROM clicks

-- accepted: a named window
SELECT to_date(event_ts) AS day, count(*) OVER w AS n FROM clicks WINDOW w AS (PARTITION BY to_date(event_ts))

-- accepted: after aggregation
SELECT day, n, rank() OVER (PARTITION BY day ORDER BY n) AS r FROM (SELECT to_date(event_ts) AS day, user_id, count(*) AS n FROM clicks GROUP BY 1, 2)

-- accepted: over a lookup
SELECT to_date(event_ts) AS day, r FROM clicks JOIN (SELECT code, row_number() OVER (ORDER BY code) AS r FROM raw.countries) USING (code)

-- refused: window-over-cells `lag(event_ts) OVER (PARTITION BY user_id ORDER BY event_ts)`: by user alone
SELECT to_date(event_ts) AS day, lag(event_ts) OVER (PARTITION BY user_id ORDER BY event_ts) AS before FROM clicks

-- refused: window-over-cells `row_number() OVER (ORDER BY event_ts)`: by nothing
SELECT to_date(event_ts) AS day, row_number() OVER (ORDER BY event_ts) AS n FROM clicks

-- refused: window-over-cells `count(*) OVER ()`: over everything
SELECT to_date(event_ts) AS day, count(*) OVER () AS n FROM clicks

-- refused: window-over-cells `count(*) OVER w`: a named window by user alone
SELECT to_date(event_ts) AS day, count(*) OVER w AS n FROM clicks WINDOW w AS (PARTITION BY user_id)

-- refused: window-over-cells `row_number() OVER (PARTITION BY user_id ORDER BY event_ts)`: in QUALIFY
SELECT to_date(event_ts) AS day FROM clicks QUALIFY row_number() OVER (PARTITION BY user_id ORDER BY event_ts) = 1
