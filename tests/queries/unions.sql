-- front: {materialization: table, incremental: {}, timeseries: {event_time_column: day, partition_column: day, granularity: day}}

-- admitted: clicks_and_orders_in_one_stream
SELECT cast(ts AS date) AS day, user_id, 'click' AS what FROM clicks UNION ALL SELECT cast(ordered_at AS date), user_id, 'order' FROM orders

-- admitted: counted_over_both
SELECT day, sum(clicks) AS clicks, sum(orders) AS orders FROM (SELECT cast(ts AS date) AS day, 1 AS clicks, 0 AS orders FROM clicks UNION ALL SELECT cast(ordered_at AS date), 0, 1 FROM orders) GROUP BY day

-- admitted: union_with_the_day
SELECT cast(ts AS date) AS day, user_id FROM clicks UNION SELECT cast(ordered_at AS date), user_id FROM orders

-- refused: set-operation-over-cells: union_of_users
SELECT DATE '2024-03-01' AS day, user_id FROM clicks UNION SELECT DATE '2024-03-01', user_id FROM orders

-- admitted: active_without_an_order
SELECT cast(ts AS date) AS day, user_id FROM clicks EXCEPT SELECT cast(ordered_at AS date), user_id FROM orders

-- admitted: both_on_one_day
SELECT cast(ts AS date) AS day, user_id FROM clicks INTERSECT SELECT cast(ordered_at AS date), user_id FROM orders

-- admitted: except_all
SELECT cast(ts AS date) AS day, user_id FROM clicks EXCEPT ALL SELECT cast(ordered_at AS date), user_id FROM orders

-- admitted: minus_is_except
SELECT cast(ts AS date) AS day, country FROM clicks MINUS SELECT cast(ts AS date), country FROM clicks WHERE amount > 5

-- refused: unsupported-sql: union_all_by_name
SELECT cast(ts AS date) AS day, user_id, 1 AS n FROM clicks UNION ALL BY NAME SELECT 2 AS n, cast(ordered_at AS date) AS day, user_id FROM orders

-- admitted: hours_and_days_in_one_table
-- with: {timeseries: {event_time_column: at, partition_column: at, granularity: hour}}
SELECT date_trunc('HOUR', ts) AS at, 'hour' AS of, count(*) AS n FROM clicks GROUP BY 1 UNION ALL SELECT cast(day AS timestamp), 'day', n FROM daily UNION ALL SELECT date_trunc('DAY', ordered_at), 'orders of the day', count(*) FROM orders GROUP BY 1

-- admitted: hours_among_days_summed
SELECT day, sum(n) AS n FROM (SELECT date_trunc('HOUR', ts) AS day, 1 AS n FROM clicks UNION ALL SELECT day, n FROM daily) GROUP BY day

-- admitted: months_beside_days
SELECT cast(ordered_at AS date) AS day, sku, sum(qty) AS n FROM orders GROUP BY 1, 2 UNION ALL SELECT trunc(ordered_at, 'MM'), NULL, sum(qty) FROM orders GROUP BY 1

-- admitted: three_branches
SELECT cast(ts AS date) AS day, 'home' AS kind, count(*) AS n FROM clicks WHERE url = '/' GROUP BY 1 UNION ALL SELECT cast(ts AS date), 'pay', count(*) FROM clicks WHERE url = '/pay' GROUP BY 1 UNION ALL SELECT cast(ordered_at AS date), 'order', count(*) FROM orders GROUP BY 1

-- refused: partition-not-proven: one_branch_without_a_day
SELECT cast(ts AS date) AS day, user_id FROM clicks UNION ALL SELECT due, user_id FROM orders

-- admitted: union_then_window
SELECT day, user_id, what, row_number() OVER (PARTITION BY user_id, day ORDER BY what, id, at) AS place FROM (SELECT cast(ts AS date) AS day, user_id, 'click' AS what, event_id AS id, ts AS at FROM clicks UNION ALL SELECT cast(ordered_at AS date), user_id, 'order', cast(order_id AS string), ordered_at FROM orders)

-- admitted: intersect_of_days_shifted
SELECT cast(ts AS date) AS day, user_id FROM clicks INTERSECT SELECT cast(ordered_at - INTERVAL 1 DAY AS date), user_id FROM orders

-- admitted: union_of_a_table_with_itself
SELECT cast(ts AS date) AS day, event_id FROM clicks WHERE url = '/' UNION ALL SELECT cast(ts AS date), event_id FROM clicks WHERE country = 'DE'

-- refused: partition-not-proven: constant_rows_beside_events
SELECT cast(ts AS date) AS day, count(*) AS n FROM clicks GROUP BY 1 UNION ALL SELECT day, 0 FROM calendar WHERE holiday
