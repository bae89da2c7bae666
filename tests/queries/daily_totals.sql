-- front: {materialization: table, incremental: {}, timeseries: {event_time_column: day, partition_column: day, granularity: day}}

-- admitted: plain_count
SELECT cast(ts AS date) AS day, count(*) AS n FROM clicks GROUP BY 1

-- admitted: by_alias_of_the_day
SELECT to_date(ts) AS day, country, count(*) AS n, sum(amount) AS revenue FROM clicks GROUP BY day, country

-- admitted: group_by_all
SELECT date(ts) AS day, country, count(user_id) AS known FROM clicks GROUP BY ALL

-- admitted: distinct_users
SELECT cast(ts AS date) AS day, count(DISTINCT user_id) AS users, count(DISTINCT user_id, country) AS pairs FROM clicks GROUP BY 1

-- admitted: filtered_aggregates
SELECT cast(ts AS date) AS day, count(*) FILTER (WHERE url LIKE '/pay%') AS paid, sum(amount) FILTER (WHERE country = 'DE') AS german FROM clicks GROUP BY 1

-- admitted: conditional_counts
SELECT cast(ts AS date) AS day, count_if(amount > 5) AS dear, sum(CASE WHEN user_id IS NULL THEN 1 ELSE 0 END) AS anonymous, sum(if(url = '/', 1, 0)) AS home FROM clicks GROUP BY 1

-- admitted: share_of_paying
SELECT cast(ts AS date) AS day, count_if(url = '/pay') / count(*) AS share, try_divide(sum(amount), count(DISTINCT user_id)) AS per_user FROM clicks GROUP BY 1

-- admitted: having_enough
SELECT cast(ts AS date) AS day, country, count(*) AS n FROM clicks GROUP BY 1, 2 HAVING count(*) >= 2 AND max(amount) IS NOT NULL

-- admitted: buyers_of_the_day
SELECT cast(ts AS date) AS day, user_id FROM clicks GROUP BY cast(ts AS date), user_id HAVING count_if(url = '/pay') > 0

-- admitted: where_on_the_time
SELECT cast(ts AS date) AS day, count(*) AS n FROM clicks WHERE ts >= '2024-03-01' AND ts < TIMESTAMP '2024-04-01 00:00:00' GROUP BY 1

-- admitted: weekends_only
SELECT cast(ts AS date) AS day, count(*) AS n FROM clicks WHERE dayofweek(ts) IN (1, 7) GROUP BY 1

-- admitted: office_hours_by_case
SELECT cast(ts AS date) AS day, CASE WHEN hour(ts) BETWEEN 9 AND 17 THEN 'office' WHEN hour(ts) < 9 THEN 'early' ELSE 'late' END AS part, count(*) AS n FROM clicks GROUP BY 1, 2

-- admitted: single_rows_with_expressions
SELECT event_id, cast(ts AS date) AS day, upper(trim(url)) AS url, coalesce(amount, 0) * 1.19 AS gross FROM clicks WHERE user_id IS NOT NULL OR country = 'FR'

-- admitted: aggregate_of_aggregates
SELECT day, avg(n) AS mean, max(n) AS most FROM (SELECT cast(ts AS date) AS day, user_id, count(*) AS n FROM clicks GROUP BY 1, 2) GROUP BY day

-- admitted: two_ctes_in_a_row
WITH per_user AS (SELECT user_id, cast(ts AS date) AS day, sum(amount) AS spent FROM clicks GROUP BY 1, 2), rich AS (SELECT * FROM per_user WHERE spent > 10) SELECT day, count(*) AS rich FROM rich GROUP BY day

-- admitted: first_and_last_time
SELECT cast(ts AS date) AS day, user_id, min(ts) AS came, max(ts) AS went, unix_micros(max(ts)) - unix_micros(min(ts)) AS stayed FROM clicks GROUP BY 1, 2

-- refused: not-stored: first_and_last_time_apart
SELECT cast(ts AS date) AS day, user_id, max(ts) - min(ts) AS stayed FROM clicks GROUP BY 1, 2

-- admitted: partition_from_a_minimum
SELECT cast(min(ts) AS date) AS day, user_id, count(*) AS n FROM clicks GROUP BY user_id, date_trunc('DAY', ts)

-- refused: group-over-cells: total_of_a_user
SELECT cast(max(ts) AS date) AS day, user_id, sum(amount) AS spent FROM clicks GROUP BY user_id

-- refused: group-over-cells: total_of_everything
SELECT max(cast(ts AS date)) AS day, count(*) AS n FROM clicks

-- admitted: by_month_in_a_daily_table
SELECT min(cast(ts AS date)) AS day, date_trunc('MONTH', ts) AS month, count(*) AS n FROM clicks GROUP BY 2

-- refused: partition-not-proven: day_of_another_column
SELECT due AS day, count(*) AS n FROM orders GROUP BY 1

-- refused: partition-not-proven: constant_day
SELECT DATE '2024-03-01' AS day, event_id FROM clicks

-- refused: partition-not-proven: day_of_the_week
SELECT dayofweek(ts) AS day, count(*) AS n FROM clicks GROUP BY 1

-- admitted: another_column_tied_to_the_time
SELECT due AS day, order_id FROM orders WHERE due BETWEEN cast(ordered_at AS date) AND cast(ordered_at AS date) + 7

-- admitted: due_days_counted
SELECT due AS day, count(*) AS n, sum(qty) AS pieces FROM orders WHERE due >= cast(ordered_at AS date) AND due < cast(ordered_at AS date) + INTERVAL 10 DAYS GROUP BY due

-- admitted: minimum_where_every_row_agrees
SELECT cast(ordered_at AS date) AS day, status, bool_and(qty > 1) AS several, bool_or(price > 20) AS dear, every(sku IS NOT NULL) AS known FROM orders GROUP BY 1, 2

-- admitted: sum_of_products
SELECT cast(ordered_at AS date) AS day, sku, sum(qty * price) AS turnover, sum(qty * price) / nullif(sum(qty), 0) AS mean_price FROM orders WHERE status <> 'cancelled' GROUP BY ALL

-- admitted: cancelled_against_all
SELECT cast(ordered_at AS date) AS day, round(100 * count_if(status = 'cancelled') / count(*), 1) AS percent FROM orders GROUP BY 1

-- admitted: nulls_in_the_key
SELECT cast(ts AS date) AS day, user_id, country, count(*) AS n FROM clicks WHERE user_id IS NULL OR country IS NULL GROUP BY 1, 2, 3

-- admitted: null_safe_comparison
SELECT cast(ts AS date) AS day, event_id FROM clicks WHERE NOT (country <=> 'DE') AND user_id <=> NULL

-- admitted: order_by_at_the_end
SELECT cast(ts AS date) AS day, count(*) AS n FROM clicks GROUP BY 1 ORDER BY n DESC, day

-- admitted: interval_variables
SELECT cast(ts AS date) AS day, count(*) AS n FROM clicks WHERE ts >= @start_ts AND ts < @end_ts GROUP BY 1

-- admitted: star_with_a_day
SELECT *, cast(ordered_at AS date) AS day FROM orders

-- admitted: star_except
SELECT * EXCEPT (revision, props, tags, device), cast(ts AS date) AS day FROM clicks

-- admitted: next_day_reporting
SELECT cast(ts AS date) + 1 AS day, count(*) AS n FROM clicks GROUP BY 1

-- admitted: business_day_from_four
SELECT cast(ts - INTERVAL 4 HOURS AS date) AS day, count(*) AS n, sum(amount) AS revenue FROM clicks GROUP BY 1

-- admitted: date_add_in_days
SELECT date_add(to_date(ts), 2) AS day, count(*) AS n FROM clicks GROUP BY 1

-- admitted: lateral_column_alias
SELECT cast(ts AS date) AS day, sum(amount) AS revenue, count(*) AS n, revenue / n AS mean FROM clicks GROUP BY 1
