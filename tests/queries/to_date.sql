-- front: {materialization: table, incremental: {}, timeseries: {event_time_column: day, partition_column: day, granularity: day}}

-- admitted: month_to_date_by_month_partition
SELECT day, n, sum(n) OVER (PARTITION BY date_trunc('MONTH', day) ORDER BY day) AS so_far FROM daily

-- admitted: month_to_date_by_trunc
SELECT day, sum(revenue) OVER (PARTITION BY trunc(day, 'MM') ORDER BY day ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW) AS so_far FROM daily

-- admitted: week_to_date
SELECT day, sum(n) OVER (PARTITION BY date_trunc('WEEK', day) ORDER BY day) AS so_far FROM daily

-- admitted: year_to_date
SELECT day, sum(n) OVER (PARTITION BY date_trunc('YEAR', day) ORDER BY day) AS so_far FROM daily

-- admitted: quarter_share
SELECT day, n / sum(n) OVER (PARTITION BY date_trunc('QUARTER', day)) AS share FROM daily

-- admitted: month_to_date_per_country
SELECT day, country, sum(n) OVER (PARTITION BY country, trunc(day, 'MONTH') ORDER BY day) AS so_far FROM (SELECT cast(ts AS date) AS day, country, count(*) AS n FROM clicks GROUP BY 1, 2)

-- admitted: rank_of_the_day_in_its_month
SELECT day, rank() OVER (PARTITION BY date_trunc('MONTH', day) ORDER BY n DESC) AS place FROM daily

-- admitted: best_day_of_the_week
SELECT day, n FROM (SELECT day, n, max(n) OVER (PARTITION BY date_trunc('WEEK', day)) AS most FROM daily) WHERE n = most

-- refused: window-over-cells: month_number_without_year
SELECT day, sum(n) OVER (PARTITION BY month(day) ORDER BY day) AS so_far FROM daily

-- admitted: year_and_month_as_numbers
SELECT day, sum(n) OVER (PARTITION BY year(day), month(day) ORDER BY day) AS so_far FROM daily

-- admitted: running_total_of_a_user_within_a_day
SELECT cast(ts AS date) AS day, event_id, sum(amount) OVER (PARTITION BY user_id, date_trunc('DAY', ts) ORDER BY ts, event_id ROWS UNBOUNDED PRECEDING) AS so_far FROM clicks

-- admitted: month_to_date_by_its_name
SELECT day, n, sum(n) OVER (PARTITION BY date_format(day, 'yyyy-MM') ORDER BY day) AS so_far FROM daily

-- admitted: quarter_to_date_by_numbers
SELECT day, n, sum(n) OVER (PARTITION BY year(day), quarter(day) ORDER BY day ROWS UNBOUNDED PRECEDING) AS so_far, lag(n) OVER (PARTITION BY year(day) * 100 + month(day) ORDER BY day) AS before FROM daily

-- refused: window-over-cells: same_day_of_every_year
SELECT day, sum(n) OVER (PARTITION BY date_format(day, 'MM-dd') ORDER BY day) AS so_far FROM daily

-- admitted: month_to_date_by_self_join
SELECT a.day, sum(b.n) AS so_far FROM daily AS a JOIN daily AS b ON date_trunc('MONTH', b.day) = date_trunc('MONTH', a.day) AND b.day <= a.day GROUP BY a.day

-- admitted: month_to_date_by_range_join
SELECT a.day, sum(b.n) AS so_far FROM daily AS a JOIN daily AS b ON b.day BETWEEN trunc(a.day, 'MM') AND a.day GROUP BY a.day

-- admitted: last_month_whole
SELECT a.day, sum(b.n) AS last_month FROM daily AS a LEFT JOIN daily AS b ON date_trunc('MONTH', b.day) = date_trunc('MONTH', a.day) - INTERVAL 1 MONTH GROUP BY a.day

-- admitted: day_of_month_against_total
SELECT c.day, c.event_id, m.total FROM (SELECT cast(ts AS date) AS day, event_id, date_trunc('MONTH', ts) AS month FROM clicks) AS c JOIN (SELECT date_trunc('MONTH', ts) AS month, sum(amount) AS total FROM clicks GROUP BY 1) AS m ON m.month = c.month

-- admitted: fiscal_year_to_date
SELECT day, sum(n) OVER (PARTITION BY date_trunc('YEAR', day + INTERVAL 9 MONTHS) ORDER BY day) AS so_far FROM daily

-- admitted: weeks_from_sunday
SELECT day, sum(n) OVER (PARTITION BY date_trunc('WEEK', day + INTERVAL 1 DAY) ORDER BY day) AS so_far FROM daily

-- admitted: active_days_of_the_month
SELECT cast(ts AS date) AS day, user_id, dense_rank() OVER (PARTITION BY user_id, date_trunc('MONTH', ts) ORDER BY cast(ts AS date)) AS active_day, event_id FROM clicks
