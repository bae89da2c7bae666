-- front: {materialization: table, incremental: {}, timeseries: {event_time_column: day, partition_column: day, granularity: day}}

-- admitted: pivot_of_countries
SELECT * FROM (SELECT cast(ts AS date) AS day, country, amount FROM clicks) PIVOT (sum(amount) AS revenue FOR country IN ('DE' AS de, 'FR' AS fr, 'US' AS us))

-- admitted: pivot_with_two_values
SELECT * FROM (SELECT cast(ordered_at AS date) AS day, status, qty, price FROM orders) PIVOT (count(*) AS n, sum(qty) AS pieces FOR status IN ('paid', 'cancelled'))

-- admitted: pivot_by_sums_of_case
SELECT cast(ts AS date) AS day, sum(CASE country WHEN 'DE' THEN amount END) AS de, sum(CASE country WHEN 'FR' THEN amount END) AS fr, sum(CASE WHEN country IS NULL THEN amount END) AS unknown FROM clicks GROUP BY 1

-- refused: group-over-cells: pivot_without_the_day
SELECT DATE '2024-03-01' AS day, * FROM (SELECT country, amount FROM clicks) PIVOT (sum(amount) FOR country IN ('DE' AS de, 'FR' AS fr))

-- admitted: unpivot_of_daily
SELECT day, what, value FROM (SELECT day, cast(n AS decimal(20,2)) AS n, cast(users AS decimal(20,2)) AS users FROM daily) UNPIVOT (value FOR what IN (n, users))

-- admitted: unpivot_by_stack
SELECT day, stack(2, 'n', n, 'users', users) AS (what, value) FROM daily

-- admitted: grouping_sets_with_the_day
SELECT cast(ts AS date) AS day, country, url, count(*) AS n FROM clicks GROUP BY GROUPING SETS ((cast(ts AS date), country), (cast(ts AS date), url), (cast(ts AS date)))

-- admitted: rollup_below_the_day
SELECT cast(ts AS date) AS day, country, count(*) AS n, grouping(country) AS whole FROM clicks GROUP BY cast(ts AS date), ROLLUP (country)

-- admitted: cube_below_the_day
SELECT cast(ts AS date) AS day, country, url, sum(amount) AS revenue, grouping_id() AS level FROM clicks GROUP BY cast(ts AS date), CUBE (country, url)

-- refused: group-over-cells: rollup_with_the_day
SELECT cast(ts AS date) AS day, country, count(*) AS n FROM clicks GROUP BY ROLLUP (cast(ts AS date), country)

-- refused: group-over-cells: cube_with_the_day
SELECT cast(ts AS date) AS day, country, count(*) AS n FROM clicks GROUP BY CUBE (cast(ts AS date), country)

-- refused: group-over-cells: one_set_without_the_day
SELECT cast(ts AS date) AS day, country, count(*) AS n FROM clicks GROUP BY GROUPING SETS ((cast(ts AS date), country), (country))

-- refused: group-over-cells: with_rollup
SELECT day, country, sum(n) AS n FROM (SELECT cast(ts AS date) AS day, country, 1 AS n FROM clicks) GROUP BY day, country WITH ROLLUP

-- admitted: rollup_in_hours_of_a_day
SELECT cast(ts AS date) AS day, hour(ts) AS hour, minute(ts) AS minute, count(*) AS n FROM clicks GROUP BY cast(ts AS date), ROLLUP (hour(ts), minute(ts))

-- admitted: map_of_counts
SELECT day, map_from_entries(sort_array(collect_list(struct(country, n)))) AS by_country FROM (SELECT cast(ts AS date) AS day, coalesce(country, '?') AS country, count(*) AS n FROM clicks GROUP BY 1, 2) GROUP BY day

-- admitted: count_of_each_flag
SELECT cast(ts AS date) AS day, count(*) AS n, count(amount) AS priced, count(DISTINCT if(amount > 5, user_id, NULL)) AS spenders, bit_or(revision) AS revisions, bit_and(revision) AS all_of, bit_xor(revision) AS odd FROM clicks GROUP BY 1

-- admitted: grouping_sets_in_a_subquery
SELECT day, country, n FROM (SELECT cast(ts AS date) AS day, country, user_id, count(*) AS n FROM clicks GROUP BY GROUPING SETS ((cast(ts AS date), country), (cast(ts AS date), user_id))) WHERE country IS NOT NULL

-- admitted: unpivot_of_a_table
SELECT cast(ts AS date) AS day, what, count(DISTINCT value) AS n FROM clicks UNPIVOT (value FOR what IN (url, country)) GROUP BY ALL

-- admitted: unpivot_with_nulls_and_names
SELECT day, t.what, t.value FROM (SELECT cast(ts AS date) AS day, event_id, url, country FROM clicks) UNPIVOT INCLUDE NULLS (value FOR what IN (url AS `page`, country)) AS t WHERE event_id > 'c'

-- admitted: unpivot_and_a_lookup
SELECT cast(ts AS date) AS day, what, value, name FROM clicks UNPIVOT (value FOR what IN (country)) JOIN countries ON code = value

-- refused: unsupported-sql: unpivot_of_pairs
SELECT day, what, a, b FROM (SELECT cast(ts AS date) AS day, url, country, user_id, sent_at FROM clicks) UNPIVOT ((a, b) FOR what IN ((url, country) AS x, (user_id, sent_at) AS y))

-- refused: group-over-cells: unpivot_without_the_day
SELECT max(cast(ts AS date)) AS day, what, count(*) AS n FROM clicks UNPIVOT (value FOR what IN (url, country)) GROUP BY what
