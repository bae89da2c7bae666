-- front: {materialization: table, incremental: {}, timeseries: {event_time_column: day, partition_column: day, granularity: day}}

-- admitted: one_per_user_and_day
SELECT day, user_id, url FROM (SELECT cast(ts AS date) AS day, user_id, url, row_number() OVER (PARTITION BY user_id, cast(ts AS date) ORDER BY ts, event_id) AS place FROM clicks) WHERE place = 1

-- refused: order-not-total: one_per_user_and_day_ties
SELECT day, user_id, url FROM (SELECT cast(ts AS date) AS day, user_id, url, row_number() OVER (PARTITION BY user_id, cast(ts AS date) ORDER BY ts) AS place FROM clicks) WHERE place = 1

-- refused: order-not-total: one_per_user_in_no_order
SELECT day, user_id, url FROM (SELECT cast(ts AS date) AS day, user_id, url, row_number() OVER (PARTITION BY user_id, cast(ts AS date) ORDER BY (SELECT NULL)) AS place FROM clicks) WHERE place = 1

-- refused: order-not-total: key_without_its_time
SELECT day, event_id, url FROM (SELECT cast(ts AS date) AS day, event_id, url, row_number() OVER (PARTITION BY cast(ts AS date) ORDER BY event_id) AS place FROM clicks) WHERE place = 1

-- admitted: key_that_holds_everywhere
SELECT day, order_id, sku FROM (SELECT cast(ordered_at AS date) AS day, order_id, sku, row_number() OVER (PARTITION BY cast(ordered_at AS date) ORDER BY order_id) AS place FROM orders) WHERE place = 1

-- refused: unsupported-sql: qualify_first_of_the_hour
SELECT cast(ts AS date) AS day, event_id FROM clicks QUALIFY row_number() OVER (PARTITION BY date_trunc('HOUR', ts) ORDER BY ts, event_id) = 1

-- refused: window-over-cells: one_per_user_ever
SELECT day, event_id FROM (SELECT cast(ts AS date) AS day, event_id, row_number() OVER (PARTITION BY user_id ORDER BY ts, event_id) AS place FROM clicks) WHERE place = 1

-- admitted: distinct_rows_with_the_day
SELECT DISTINCT cast(ts AS date) AS day, user_id, country FROM clicks

-- admitted: distinct_times
SELECT DISTINCT cast(ts AS date) AS day, ts FROM clicks

-- refused: partition-not-proven: distinct_countries
SELECT DISTINCT country, DATE '2024-03-01' AS day FROM clicks

-- admitted: latest_state_of_the_day
SELECT cast(ordered_at AS date) AS day, user_id, max_by(status, struct(ordered_at, order_id)) AS status FROM orders GROUP BY 1, 2

-- admitted: max_by_of_the_key_alone
SELECT cast(ordered_at AS date) AS day, user_id, max_by(status, order_id) AS status FROM orders GROUP BY 1, 2

-- refused: order-not-total: max_by_of_a_time_that_ties
SELECT cast(ts AS date) AS day, user_id, max_by(url, ts) AS last_url FROM clicks GROUP BY 1, 2

-- admitted: max_by_returning_the_order_itself
SELECT cast(ts AS date) AS day, user_id, max_by(ts, ts) AS last FROM clicks GROUP BY 1, 2

-- admitted: greatest_struct
SELECT cast(ts AS date) AS day, user_id, max(struct(ts, event_id, url)).url AS last_url FROM clicks GROUP BY 1, 2

-- refused: order-dependent: first_of_a_group
SELECT cast(ts AS date) AS day, user_id, first(url) AS url FROM clicks GROUP BY 1, 2

-- refused: not-deterministic: any_of_a_group
SELECT cast(ts AS date) AS day, user_id, any_value(url) AS url FROM clicks GROUP BY 1, 2

-- admitted: first_value_in_total_order
SELECT DISTINCT cast(ts AS date) AS day, user_id, first_value(url) OVER (PARTITION BY user_id, cast(ts AS date) ORDER BY ts, event_id) AS entry FROM clicks

-- refused: order-not-total: first_value_ties
SELECT DISTINCT cast(ts AS date) AS day, user_id, first_value(url) OVER (PARTITION BY user_id, cast(ts AS date) ORDER BY ts) AS entry FROM clicks

-- admitted: first_value_of_the_order
SELECT cast(ts AS date) AS day, event_id, first_value(ts) OVER (PARTITION BY user_id, cast(ts AS date) ORDER BY ts) AS came FROM clicks

-- admitted: group_key_is_an_order
SELECT day, user_id, n, row_number() OVER (PARTITION BY day ORDER BY n DESC, user_id) AS place FROM (SELECT cast(ts AS date) AS day, user_id, count(*) AS n FROM clicks GROUP BY 1, 2)

-- refused: order-not-total: group_without_its_key
SELECT day, user_id, row_number() OVER (PARTITION BY day ORDER BY n DESC) AS place FROM (SELECT cast(ts AS date) AS day, user_id, count(*) AS n FROM clicks GROUP BY 1, 2)

-- admitted: ties_do_not_show_in_rank
SELECT cast(ts AS date) AS day, event_id, rank() OVER (PARTITION BY cast(ts AS date) ORDER BY amount DESC) AS place, dense_rank() OVER (PARTITION BY cast(ts AS date) ORDER BY amount) AS dense FROM clicks

-- admitted: session_id_is_an_order
SELECT cast(session_start AS date) AS day, session_id, row_number() OVER (PARTITION BY cast(session_start AS date) ORDER BY revenue DESC, session_id) AS place FROM sessions

-- admitted: duplicates_counted
SELECT cast(ts AS date) AS day, event_id, count(*) AS copies FROM clicks GROUP BY 1, 2 HAVING count(*) > 1

-- admitted: count_of_all_but_one
SELECT cast(ts AS date) AS day, count(*) - count(DISTINCT event_id) AS repeated FROM clicks GROUP BY 1

-- refused: order-not-total: ties_behind_a_function
SELECT cast(ts AS date) AS day, event_id, row_number() OVER (PARTITION BY cast(ts AS date) ORDER BY date_trunc('MINUTE', ts), event_id) AS place FROM clicks

-- admitted: whole_row_by_hash_and_key
SELECT cast(ts AS date) AS day, event_id, row_number() OVER (PARTITION BY cast(ts AS date) ORDER BY xxhash64(event_id), event_id, ts) AS place FROM clicks
