-- front: {materialization: table, incremental: {}, timeseries: {event_time_column: day, partition_column: day, granularity: day}}

-- admitted: day_before_by_self_join
SELECT a.day, a.n, b.n AS before, a.n - b.n AS more FROM daily AS a LEFT JOIN daily AS b ON b.day = a.day - INTERVAL 1 DAY

-- admitted: week_before_in_percent
SELECT a.day, round(100.0 * a.n / b.n, 1) AS percent FROM daily AS a LEFT JOIN daily AS b ON b.day = date_sub(a.day, 7)

-- admitted: month_before_by_add_months
SELECT a.day, a.revenue, b.revenue AS before FROM daily AS a LEFT JOIN daily AS b ON b.day = add_months(a.day, -1)

-- admitted: year_before_by_interval
SELECT a.day, a.n, b.n AS before FROM daily AS a LEFT JOIN daily AS b ON b.day = a.day - INTERVAL 1 YEAR

-- admitted: year_before_by_364_days
SELECT a.day, a.n, b.n AS before FROM daily AS a LEFT JOIN daily AS b ON a.day = b.day + INTERVAL 364 DAYS

-- admitted: months_side_by_side
-- with: {timeseries: {event_time_column: month, partition_column: month, granularity: month}}
WITH m AS (SELECT cast(date_trunc('MONTH', ts) AS date) AS month, count(*) AS n FROM clicks GROUP BY 1) SELECT a.month, a.n, b.n AS before FROM m AS a LEFT JOIN m AS b ON b.month = a.month - INTERVAL 1 MONTH

-- admitted: spine_of_fixed_days
SELECT s.day, coalesce(d.n, 0) AS n FROM (SELECT explode(sequence(DATE '2024-02-20', DATE '2024-04-15', INTERVAL 1 DAY)) AS day) AS s LEFT JOIN daily AS d ON d.day = s.day

-- admitted: spine_from_a_calendar
SELECT k.day, k.holiday, coalesce(d.n, 0) AS n FROM calendar AS k LEFT JOIN daily AS d ON d.day = k.day

-- admitted: spine_to_events
SELECT s.day, count(c.event_id) AS n, count(DISTINCT c.user_id) AS users FROM (SELECT explode(sequence(DATE '2024-02-20', DATE '2024-04-15', INTERVAL 1 DAY)) AS day) AS s LEFT JOIN clicks AS c ON cast(c.ts AS date) = s.day GROUP BY s.day

-- refused: window-over-cells: spine_with_a_rolling_week
SELECT s.day, sum(d.n) OVER (ORDER BY s.day ROWS BETWEEN 6 PRECEDING AND CURRENT ROW) AS week FROM (SELECT explode(sequence(DATE '2024-02-20', DATE '2024-04-15', INTERVAL 1 DAY)) AS day) AS s LEFT JOIN (SELECT day, sum(n) AS n FROM daily GROUP BY day) AS d ON d.day = s.day

-- admitted: valid_for_three_days
SELECT explode(sequence(cast(ts AS date), cast(ts AS date) + INTERVAL 2 DAYS, INTERVAL 1 DAY)) AS day, event_id FROM clicks WHERE url = '/pay'

-- admitted: valid_for_three_days_counted
SELECT day, count(*) AS active FROM (SELECT explode(sequence(cast(ordered_at AS date), date_add(cast(ordered_at AS date), 2))) AS day, order_id FROM orders) GROUP BY day

-- admitted: valid_days_by_lateral_view
SELECT day, count(DISTINCT user_id) AS active FROM clicks LATERAL VIEW explode(sequence(to_date(ts), to_date(ts) + 6)) AS day GROUP BY day

-- refused: partition-not-proven: open_ended_validity
SELECT explode(sequence(cast(ordered_at AS date), due)) AS day, order_id FROM orders WHERE due >= cast(ordered_at AS date)

-- admitted: hours_of_the_day_spine
SELECT d.day, h.hour, count(c.event_id) AS n FROM daily AS d CROSS JOIN (SELECT explode(sequence(0, 23)) AS hour) AS h LEFT JOIN clicks AS c ON cast(c.ts AS date) = d.day AND hour(c.ts) = h.hour GROUP BY d.day, h.hour

-- admitted: same_day_of_two_streams
SELECT d.day, d.n AS clicks, count(o.order_id) AS orders FROM daily AS d LEFT JOIN orders AS o ON cast(o.ordered_at AS date) = d.day GROUP BY d.day, d.n

-- admitted: conversion_of_two_aggregates
SELECT c.day, o.orders / c.n AS rate FROM daily AS c JOIN (SELECT to_date(ordered_at) AS day, count(DISTINCT order_id) AS orders FROM orders GROUP BY 1) AS o ON o.day = c.day

-- admitted: holiday_flag_in_lookup
SELECT d.day, d.n, coalesce(k.holiday, false) AS holiday, CASE WHEN weekday(d.day) >= 5 THEN 'weekend' ELSE 'week' END AS kind FROM daily AS d LEFT JOIN calendar AS k ON k.day = d.day

-- admitted: last_day_of_each_month
SELECT day, n, day = last_day(day) AS closing FROM daily

-- admitted: only_month_ends
SELECT day, n FROM daily WHERE day = last_day(day) OR day = next_day(day - INTERVAL 7 DAYS, 'MON')

-- admitted: month_in_a_daily_table
SELECT d.day, d.n, m.n AS month_n FROM daily AS d JOIN (SELECT date_trunc('MONTH', day) AS month, sum(n) AS n FROM daily GROUP BY 1) AS m ON date_trunc('MONTH', d.day) = m.month

-- admitted: sunday_weeks_by_next_day
-- with: {timeseries: {event_time_column: day, partition_column: day, granularity: week, week_start: sunday}}
SELECT next_day(date_sub(ts, 7), 'SUN') AS day, count(*) AS n FROM clicks GROUP BY 1

-- admitted: sunday_weeks_by_the_next_one
-- with: {timeseries: {event_time_column: day, partition_column: day, granularity: week, week_start: sunday}}
SELECT date_sub(next_day(cast(ts AS date), 'Sunday'), 7) AS day, count(*) AS n FROM clicks GROUP BY ALL

-- admitted: sunday_weeks_by_shifted_mondays
-- with: {timeseries: {event_time_column: day, partition_column: day, granularity: week, week_start: sunday}}
SELECT date_sub(date_trunc('WEEK', date_add(ts, 1)), 1) AS day, count(*) AS n FROM clicks GROUP BY ALL

-- admitted: monday_weeks_by_next_day
-- with: {timeseries: {event_time_column: day, partition_column: day, granularity: week}}
SELECT next_day(ts, 'mo') AS day, count(*) AS n FROM clicks GROUP BY 1

-- admitted: the_next_friday
SELECT next_day(ts, 'FRIDAY') AS day, count(*) AS n FROM clicks GROUP BY 1

-- admitted: days_as_texts
SELECT cast(cast(ts AS date) AS string) AS day, count(*) AS n FROM clicks GROUP BY 1

-- admitted: grouped_by_the_day_as_a_text
SELECT to_date(text) AS day, text, n FROM (SELECT string(date(ts)) AS text, count(*) AS n FROM clicks GROUP BY string(date(ts)))

-- admitted: totals_of_the_day_as_a_text
SELECT cast(ts AS date) AS day, event_id, sum(amount) OVER (PARTITION BY user_id, cast(to_date(ts) AS string)) AS of_day FROM clicks
