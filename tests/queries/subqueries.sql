-- front: {materialization: table, incremental: {}, timeseries: {event_time_column: day, partition_column: day, granularity: day}}

-- admitted: exists_within_a_day
SELECT cast(ts AS date) AS day, count(*) AS n FROM clicks AS c WHERE EXISTS (SELECT 1 FROM orders AS o WHERE o.user_id = c.user_id AND o.ordered_at BETWEEN c.ts AND c.ts + INTERVAL 1 DAY) GROUP BY 1

-- admitted: not_exists_earlier_that_day
SELECT cast(ts AS date) AS day, event_id FROM clicks AS c WHERE NOT EXISTS (SELECT 1 FROM clicks AS e WHERE e.user_id = c.user_id AND cast(e.ts AS date) = cast(c.ts AS date) AND e.ts < c.ts)

-- refused: subquery-over-cells: not_exists_ever
SELECT cast(ts AS date) AS day, event_id FROM clicks AS c WHERE NOT EXISTS (SELECT 1 FROM clicks AS e WHERE e.user_id = c.user_id AND e.ts < c.ts)

-- admitted: in_the_days_of_another
SELECT day, n FROM daily WHERE day IN (SELECT cast(ordered_at AS date) FROM orders WHERE status = 'paid')

-- admitted: not_in_the_days_of_another
SELECT day, n FROM daily WHERE day NOT IN (SELECT cast(ordered_at AS date) FROM orders)

-- admitted: in_a_lookup
SELECT cast(ts AS date) AS day, count(*) AS n FROM clicks WHERE country IN (SELECT code FROM countries WHERE region = 'EU') GROUP BY 1

-- admitted: not_in_a_lookup_with_nulls
SELECT cast(ts AS date) AS day, count(*) AS n FROM clicks WHERE user_id NOT IN (SELECT user_id FROM users) GROUP BY 1

-- refused: subquery-over-cells: in_users_that_ordered
SELECT cast(ts AS date) AS day, count(*) AS n FROM clicks WHERE user_id IN (SELECT user_id FROM orders) GROUP BY 1

-- admitted: pair_in_pairs
SELECT cast(ts AS date) AS day, event_id FROM clicks WHERE (user_id, cast(ts AS date)) IN (SELECT user_id, cast(ordered_at AS date) FROM orders)

-- admitted: scalar_of_the_day
SELECT day, n, (SELECT count(*) FROM orders AS o WHERE cast(o.ordered_at AS date) = d.day) AS orders FROM daily AS d

-- admitted: scalar_of_a_lookup
SELECT cast(ts AS date) AS day, event_id, (SELECT max(name) FROM countries AS k WHERE k.code = c.country) AS name FROM clicks AS c

-- admitted: scalar_of_a_whole_lookup
SELECT day, n / (SELECT count(*) FROM users) AS per_user FROM daily

-- refused: subquery-over-cells: share_of_the_greatest
SELECT day, n / (SELECT max(n) FROM daily) AS share FROM daily

-- refused: subquery-over-cells: only_the_latest_day
SELECT day, n FROM daily WHERE day = (SELECT max(day) FROM daily)

-- refused: subquery-over-cells: watermark_in_the_query
SELECT cast(ts AS date) AS day, event_id FROM clicks WHERE ts > (SELECT max(ordered_at) FROM orders)

-- admitted: compared_with_the_mean_of_a_week
SELECT day, n FROM daily AS d WHERE n >= (SELECT avg(n) FROM daily AS w WHERE w.day BETWEEN d.day - INTERVAL 7 DAYS AND d.day - INTERVAL 1 DAY)

-- admitted: exists_beside_or
SELECT cast(ts AS date) AS day, event_id FROM clicks AS c WHERE amount > 15 OR EXISTS (SELECT 1 FROM orders AS o WHERE o.user_id = c.user_id AND cast(o.ordered_at AS date) = cast(c.ts AS date))

-- admitted: exists_as_a_value
SELECT cast(ts AS date) AS day, event_id, EXISTS (SELECT 1 FROM orders AS o WHERE o.user_id = c.user_id AND o.ordered_at >= c.ts AND o.ordered_at < c.ts + INTERVAL 6 HOURS) AS ordered FROM clicks AS c

-- admitted: subquery_with_a_group_and_having
SELECT day, n FROM daily AS d WHERE EXISTS (SELECT o.user_id FROM orders AS o WHERE cast(o.ordered_at AS date) = d.day GROUP BY o.user_id HAVING count(*) > 1)

-- admitted: subquery_in_a_subquery
SELECT cast(ordered_at AS date) AS day, order_id FROM orders AS o WHERE EXISTS (SELECT 1 FROM clicks AS c WHERE c.user_id = o.user_id AND c.ts BETWEEN o.ordered_at - INTERVAL 1 DAY AND o.ordered_at AND c.country IN (SELECT code FROM countries))

-- admitted: derived_table_filtered_outside
SELECT day, n FROM (SELECT cast(ts AS date) AS day, country, count(*) AS n FROM clicks GROUP BY 1, 2) WHERE country = 'DE' AND n > 1

-- admitted: two_scalars_of_the_same_stretch
SELECT day, (SELECT sum(o.price) FROM orders AS o WHERE cast(o.ordered_at AS date) = d.day) / nullif((SELECT count(DISTINCT c.user_id) FROM clicks AS c WHERE cast(c.ts AS date) = d.day), 0) AS per_user FROM daily AS d

-- admitted: chain_of_subqueries
SELECT cast(ts AS date) AS day, event_id FROM clicks AS c WHERE EXISTS (SELECT 1 FROM orders AS o WHERE o.user_id = c.user_id AND o.ordered_at BETWEEN c.ts AND c.ts + INTERVAL 1 DAY AND NOT EXISTS (SELECT 1 FROM sessions AS s WHERE s.user_id = o.user_id AND s.session_start BETWEEN o.ordered_at - INTERVAL 2 HOURS AND o.ordered_at))

-- admitted: both_in_one_subquery
SELECT cast(ts AS date) AS day, event_id FROM clicks AS c WHERE EXISTS (SELECT 1 FROM orders AS o JOIN sessions AS s ON s.user_id = o.user_id WHERE o.user_id = c.user_id AND o.ordered_at BETWEEN c.ts AND c.ts + INTERVAL 1 DAY AND s.session_start BETWEEN c.ts - INTERVAL 1 HOUR AND c.ts)

-- refused: unknown-column: time_two_levels_around
SELECT cast(ts AS date) AS day, event_id FROM clicks AS c WHERE EXISTS (SELECT 1 FROM orders AS o WHERE o.user_id = c.user_id AND cast(o.ordered_at AS date) = cast(c.ts AS date) AND EXISTS (SELECT 1 FROM sessions AS s WHERE s.user_id = o.user_id AND s.session_start BETWEEN c.ts - INTERVAL 1 HOUR AND c.ts))

-- refused: subquery-over-cells: any_order_of_a_user_that_is_looked_up
SELECT cast(ts AS date) AS day, event_id FROM clicks AS c WHERE EXISTS (SELECT 1 FROM users AS u WHERE u.user_id = c.user_id AND EXISTS (SELECT 1 FROM orders AS o WHERE o.user_id = u.user_id))

-- refused: subquery-over-cells: one_bound_alone
SELECT day, (SELECT count(*) FROM orders AS o WHERE cast(o.ordered_at AS date) <= d.day) AS orders FROM daily AS d

-- admitted: any_of_two_ranges
SELECT cast(ts AS date) AS day, event_id FROM clicks AS c WHERE EXISTS (SELECT 1 FROM orders AS o WHERE o.user_id = c.user_id AND (o.ordered_at BETWEEN c.ts - INTERVAL 1 HOUR AND c.ts OR o.ordered_at BETWEEN c.ts + INTERVAL 1 DAY AND c.ts + INTERVAL 2 DAYS))

-- admitted: not_in_by_user_and_day
SELECT cast(ts AS date) AS day, event_id FROM clicks WHERE (user_id, cast(ts AS date)) NOT IN (SELECT user_id, cast(ordered_at AS date) FROM orders)

-- admitted: not_in_by_user_and_the_day_before
SELECT cast(ts AS date) AS day, event_id FROM clicks WHERE (user_id, cast(ts AS date)) NOT IN (SELECT user_id, date_add(ordered_at, 1) FROM orders WHERE user_id IS NOT NULL)

-- refused: subquery-over-cells: not_in_by_user_and_a_day_that_may_be_null
SELECT cast(ts AS date) AS day, event_id FROM clicks WHERE (user_id, cast(ts AS date)) NOT IN (SELECT user_id, CASE WHEN qty > 1 THEN cast(ordered_at AS date) END FROM orders)
