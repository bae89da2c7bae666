-- front: {materialization: table, incremental: {}, timeseries: {event_time_column: event_ts, partition_column: day, granularity: day}}

-- accepted: a lookup, inner
SELECT to_date(event_ts) AS day, country FROM clicks JOIN raw.countries AS c ON clicks.code = c.code

-- accepted: a lookup, left
SELECT to_date(event_ts) AS day, country FROM clicks LEFT JOIN raw.countries USING (code)

-- accepted: a lookup, right, with the time at the right
SELECT to_date(event_ts) AS day, country FROM raw.countries RIGHT JOIN clicks USING (code)

-- accepted: a lookup first, inner
SELECT to_date(event_ts) AS day, country FROM raw.countries JOIN clicks USING (code)

-- accepted: cross, semi, anti
SELECT to_date(event_ts) AS day FROM clicks CROSS JOIN (SELECT 1 AS one) LEFT SEMI JOIN raw.countries USING (code) LEFT ANTI JOIN users USING (user_id)

-- accepted: two lookups between themselves, fully
SELECT to_date(event_ts) AS day FROM clicks JOIN (SELECT a.code FROM raw.countries a FULL JOIN raw.countries b ON a.parent = b.code) x USING (code)

-- accepted: a whole table is a lookup
SELECT to_date(event_ts) AS day, first_seen FROM clicks LEFT JOIN users USING (user_id)

-- accepted: rows of an array
SELECT to_date(event_ts) AS day, tag FROM clicks LATERAL VIEW explode(tags) t AS tag

-- refused: join-over-cells `sessions`: two times
SELECT to_date(event_ts) AS day, revenue FROM clicks JOIN sessions ON clicks.user_id = sessions.user_id

-- refused: join-over-cells `clicks AS b`: itself
SELECT to_date(a.event_ts) AS day FROM clicks AS a JOIN clicks AS b ON a.user_id = b.user_id

-- refused: join-over-cells `daily`: a comma is a join
SELECT to_date(event_ts) AS day FROM clicks, daily

-- refused: join-over-cells `raw.countries`: full
SELECT to_date(event_ts) AS day, country FROM clicks FULL JOIN raw.countries USING (code)

-- refused: join-over-cells `raw.countries`: keeps countries without a click
SELECT to_date(event_ts) AS day, country FROM clicks RIGHT JOIN raw.countries USING (code)

-- refused: join-over-cells `clicks`: the same the other way round
SELECT to_date(event_ts) AS day, country FROM raw.countries LEFT JOIN clicks USING (code)

-- refused: join-over-cells `sessions`: had this user any session
SELECT to_date(event_ts) AS day FROM clicks LEFT SEMI JOIN sessions USING (user_id)
