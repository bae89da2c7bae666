-- front: {materialization: table, incremental: {}, timeseries: {event_time_column: day, partition_column: day, granularity: day}}

-- refused: clock: since_today
SELECT cast(ts AS date) AS day, datediff(current_date(), cast(ts AS date)) AS age, event_id FROM clicks

-- refused: clock: last_thirty_days
SELECT cast(ts AS date) AS day, count(*) AS n FROM clicks WHERE ts >= now() - INTERVAL 30 DAYS GROUP BY 1

-- refused: clock: loaded_at
SELECT *, cast(ts AS date) AS day, current_timestamp() AS loaded_at FROM clicks

-- refused: not-deterministic: a_sample
SELECT cast(ts AS date) AS day, event_id FROM clicks TABLESAMPLE (10 PERCENT)

-- refused: not-deterministic: random_half
SELECT cast(ts AS date) AS day, event_id FROM clicks WHERE rand() < 0.5

-- admitted: half_by_hash
SELECT cast(ts AS date) AS day, event_id FROM clicks WHERE pmod(xxhash64(event_id), 2) = 0

-- refused: not-deterministic: new_ids
SELECT cast(ts AS date) AS day, uuid() AS id, event_id FROM clicks

-- refused: not-deterministic: growing_ids
SELECT cast(ts AS date) AS day, monotonically_increasing_id() AS id, event_id FROM clicks

-- refused: not-deterministic: where_it_came_from
SELECT cast(ts AS date) AS day, input_file_name() AS file, event_id FROM clicks

-- refused: not-deterministic: who_runs_it
SELECT cast(ts AS date) AS day, current_user() AS who, event_id FROM clicks

-- refused: not-deterministic: shuffled_tags
SELECT cast(ts AS date) AS day, shuffle(tags) AS tags FROM clicks

-- refused: unsupported-sql: table_by_identifier
SELECT cast(ts AS date) AS day, count(*) AS n FROM IDENTIFIER('clicks') GROUP BY 1

-- refused: unknown-table: snapshots_of_a_table
SELECT cast(committed_at AS date) AS day, count(*) AS n FROM infold.shop.clicks.snapshots GROUP BY 1

-- refused: unknown-table: a_file_by_format
SELECT cast(ts AS date) AS day, count(*) AS n FROM json.`/tmp/clicks.json` GROUP BY 1

-- refused: unsupported-sql: a_program
SELECT TRANSFORM (event_id) USING 'cat' AS (day) FROM clicks

-- refused: unknown-column: a_column_nobody_has
SELECT cast(ts AS date) AS day, sum(ammount) AS revenue FROM clicks GROUP BY 1

-- refused: unknown-table: a_table_nobody_has
SELECT cast(ts AS date) AS day, count(*) AS n FROM click GROUP BY 1

-- refused: unknown-function: a_function_nobody_has
SELECT cast(ts AS date) AS day, smu(amount) AS revenue FROM clicks GROUP BY 1

-- refused: bad-sql: a_missing_bracket
SELECT cast(ts AS date AS day, count(*) AS n FROM clicks GROUP BY 1

-- refused: not-one-select: two_statements
SELECT cast(ts AS date) AS day FROM clicks; SELECT 1 AS day

-- refused: unnamed-column: a_column_without_a_name
SELECT cast(ts AS date) AS day, count(*) FROM clicks GROUP BY 1

-- refused: duplicate-column: a_column_twice
SELECT cast(ts AS date) AS day, user_id, user_id FROM clicks

-- refused: recursion-over-cells: recursion
WITH RECURSIVE r(day, n) AS (SELECT cast(ts AS date), 1 FROM clicks UNION ALL SELECT day, n + 1 FROM r WHERE n < 3) SELECT day, n FROM r
