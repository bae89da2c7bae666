-- front: {materialization: table, incremental: {}, timeseries: {event_time_column: day, partition_column: day, granularity: day}}

-- admitted: three_dearest_of_the_day
SELECT day, event_id, amount FROM (SELECT cast(ts AS date) AS day, event_id, amount, row_number() OVER (PARTITION BY cast(ts AS date) ORDER BY amount DESC NULLS LAST, event_id, ts) AS place FROM clicks) WHERE place <= 3

-- admitted: best_pages_with_equals
SELECT day, url, n FROM (SELECT cast(ts AS date) AS day, url, count(*) AS n, rank() OVER (PARTITION BY cast(ts AS date) ORDER BY count(*) DESC) AS place FROM clicks GROUP BY 1, 2) WHERE place <= 2

-- admitted: best_pages_exactly_two
SELECT day, url, n FROM (SELECT cast(ts AS date) AS day, url, count(*) AS n, row_number() OVER (PARTITION BY cast(ts AS date) ORDER BY count(*) DESC, url) AS place FROM clicks GROUP BY 1, 2) WHERE place <= 2

-- refused: limit-over-cells: ten_dearest_ever
SELECT cast(ts AS date) AS day, event_id, amount FROM clicks ORDER BY amount DESC, event_id, ts LIMIT 10

-- refused: limit-over-cells: days_with_most
SELECT cast(ts AS date) AS day, count(*) AS n FROM clicks GROUP BY 1 ORDER BY n DESC LIMIT 3

-- refused: limit-over-cells: offset_of_all
SELECT cast(ts AS date) AS day, event_id FROM clicks ORDER BY ts, event_id OFFSET 5

-- admitted: limited_lookup
SELECT cast(ts AS date) AS day, count(*) AS n FROM clicks JOIN (SELECT code FROM countries ORDER BY code LIMIT 2) AS k ON k.code = clicks.country GROUP BY 1

-- refused: limit-without-order: some_of_a_lookup
SELECT cast(ts AS date) AS day, count(*) AS n FROM clicks JOIN (SELECT code FROM countries LIMIT 2) AS k ON k.code = clicks.country GROUP BY 1

-- admitted: quartiles_of_the_day
SELECT cast(ts AS date) AS day, event_id, ntile(4) OVER (PARTITION BY cast(ts AS date) ORDER BY amount, event_id, ts) AS quarter FROM clicks

-- refused: order-not-total: quartiles_with_ties
SELECT cast(ts AS date) AS day, event_id, ntile(4) OVER (PARTITION BY cast(ts AS date) ORDER BY amount) AS quarter FROM clicks

-- admitted: shares_by_rank
SELECT cast(ts AS date) AS day, event_id, percent_rank() OVER (PARTITION BY cast(ts AS date) ORDER BY amount) AS below, cume_dist() OVER (PARTITION BY cast(ts AS date) ORDER BY amount) AS up_to FROM clicks

-- admitted: second_of_the_day
SELECT DISTINCT cast(ts AS date) AS day, nth_value(url, 2) OVER (PARTITION BY cast(ts AS date) ORDER BY ts, event_id ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING) AS second FROM clicks

-- admitted: top_of_each_region
SELECT * FROM (SELECT day, region, name, n, rank() OVER (PARTITION BY day, region ORDER BY n DESC) AS place FROM (SELECT cast(c.ts AS date) AS day, k.region, k.name, count(*) AS n FROM clicks AS c JOIN countries AS k ON k.code = c.country GROUP BY 1, 2, 3)) WHERE place = 1

-- admitted: above_the_mean_of_the_day
SELECT day, event_id FROM (SELECT cast(ts AS date) AS day, event_id, amount > avg(amount) OVER (PARTITION BY cast(ts AS date)) AS above FROM clicks) WHERE above

-- refused: window-over-cells: best_user_of_all_time
SELECT day, user_id FROM (SELECT cast(ts AS date) AS day, user_id, rank() OVER (ORDER BY amount DESC) AS place FROM clicks) WHERE place = 1

-- admitted: the_days_top_by_collected_struct
SELECT cast(ts AS date) AS day, slice(sort_array(collect_list(struct(amount, event_id)), false), 1, 3) AS top FROM clicks GROUP BY 1

-- admitted: most_frequent_page
SELECT cast(ts AS date) AS day, mode(url, true) AS page FROM clicks GROUP BY 1

-- refused: not-deterministic: most_frequent_page_with_ties
SELECT cast(ts AS date) AS day, mode(url) AS page FROM clicks GROUP BY 1

-- admitted: dearest_by_max_by_of_key
SELECT cast(ts AS date) AS day, max_by(event_id, struct(amount, ts, event_id)) AS dearest FROM clicks GROUP BY 1

-- admitted: lag_in_a_ranking_of_groups
SELECT day, country, n, n - lag(n) OVER (PARTITION BY day ORDER BY n, country) AS ahead FROM (SELECT cast(ts AS date) AS day, country, count(*) AS n FROM clicks GROUP BY 1, 2)

-- admitted: top_week_in_its_month
-- with: {timeseries: {event_time_column: day, partition_column: day, granularity: month}}
SELECT day, n FROM (SELECT cast(ts AS date) AS day, count(*) AS n, rank() OVER (PARTITION BY date_trunc('MONTH', cast(ts AS date)) ORDER BY count(*) DESC) AS place FROM clicks GROUP BY 1) WHERE place <= 3
