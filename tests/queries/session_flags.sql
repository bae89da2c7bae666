-- front: {materialization: table, incremental: {}, timeseries: {event_time_column: day, partition_column: day, granularity: day}}

-- admitted: near_after_the_last
SELECT cast(ts AS date) AS day, event_id, CASE WHEN ts - lag(ts) OVER (PARTITION BY user_id ORDER BY ts, event_id) <= INTERVAL 30 MINUTES THEN 0 ELSE 1 END AS starts FROM clicks

-- admitted: far_or_first
SELECT cast(ts AS date) AS day, event_id, CASE WHEN lag(ts) OVER (PARTITION BY user_id ORDER BY ts, event_id) IS NULL OR ts - lag(ts) OVER (PARTITION BY user_id ORDER BY ts, event_id) > INTERVAL 30 MINUTES THEN 1 ELSE 0 END AS starts FROM clicks

-- admitted: far_or_first_in_a_cte
WITH seen AS (SELECT event_id, ts, lag(ts) OVER (PARTITION BY user_id ORDER BY ts, event_id) AS before FROM clicks) SELECT cast(ts AS date) AS day, event_id, if(before IS NULL OR ts - before > INTERVAL 30 MINUTES, 1, 0) AS starts FROM seen

-- admitted: far_or_first_or_campaign
WITH seen AS (SELECT event_id, ts, url, lag(ts) OVER (PARTITION BY user_id ORDER BY ts, event_id) AS before FROM clicks) SELECT cast(ts AS date) AS day, event_id, if(before IS NULL OR ts - before > INTERVAL 30 MINUTES OR url LIKE '%utm%', 1, 0) AS starts FROM seen

-- admitted: not_near_with_coalesce
SELECT cast(ts AS date) AS day, event_id, NOT coalesce(ts - lag(ts) OVER (PARTITION BY user_id ORDER BY ts, event_id) <= INTERVAL 30 MINUTES, false) AS starts FROM clicks

-- admitted: seconds_between
SELECT cast(ts AS date) AS day, event_id, if(unix_timestamp(ts) - unix_timestamp(lag(ts) OVER (PARTITION BY user_id ORDER BY ts, event_id)) <= 1800, 0, 1) AS starts FROM clicks

-- admitted: minutes_by_timestampdiff
SELECT cast(ts AS date) AS day, event_id, if(timestampdiff(MINUTE, ts, lead(ts) OVER (PARTITION BY user_id ORDER BY ts, event_id)) < 30, 0, 1) AS ends FROM clicks

-- admitted: starts_counted_by_day
WITH seen AS (SELECT ts, lag(ts) OVER (PARTITION BY user_id ORDER BY ts, event_id) AS before FROM clicks WHERE user_id IS NOT NULL) SELECT cast(ts AS date) AS day, count_if(before IS NULL OR before < ts - INTERVAL 30 MINUTES) AS sessions FROM seen GROUP BY 1

-- admitted: near_neighbours_kept
SELECT cast(ts AS date) AS day, event_id, before FROM (SELECT event_id, ts, lag(ts) OVER (PARTITION BY user_id ORDER BY ts, event_id) AS before FROM clicks) WHERE before >= ts - INTERVAL 1 HOUR

-- admitted: bounce_by_lead
SELECT cast(ts AS date) AS day, event_id, lead(ts) OVER (PARTITION BY user_id ORDER BY ts, event_id) IS NULL OR lead(ts) OVER (PARTITION BY user_id ORDER BY ts, event_id) - ts > INTERVAL 1 HOUR AS last_of_visit FROM clicks

-- admitted: lag_of_the_day_within_partition
SELECT cast(ts AS date) AS day, event_id, lag(url) OVER (PARTITION BY user_id, cast(ts AS date) ORDER BY ts, event_id) AS came_from FROM clicks

-- refused: order-not-total: lag_ties_within_the_day
SELECT cast(ts AS date) AS day, event_id, lag(url) OVER (PARTITION BY user_id, cast(ts AS date) ORDER BY ts) AS came_from FROM clicks

-- refused: window-over-cells: lag_of_any_age
SELECT cast(ts AS date) AS day, event_id, lag(url) OVER (PARTITION BY user_id ORDER BY ts, event_id) AS came_from FROM clicks

-- refused: window-over-cells: session_number_by_running_sum
SELECT cast(ts AS date) AS day, event_id, sum(starts) OVER (PARTITION BY user_id ORDER BY ts, event_id) AS session FROM (SELECT *, if(ts - lag(ts) OVER (PARTITION BY user_id ORDER BY ts, event_id) <= INTERVAL 30 MINUTES, 0, 1) AS starts FROM clicks)

-- admitted: session_number_within_the_day
SELECT cast(ts AS date) AS day, event_id, sum(starts) OVER (PARTITION BY user_id, cast(ts AS date) ORDER BY ts, event_id) AS visit FROM (SELECT event_id, user_id, ts, if(ts - lag(ts) OVER (PARTITION BY user_id ORDER BY ts, event_id) <= INTERVAL 30 MINUTES, 0, 1) AS starts FROM clicks)

-- refused: window-over-cells: days_since_the_last_order
SELECT cast(ordered_at AS date) AS day, order_id, datediff(ordered_at, lag(ordered_at) OVER (PARTITION BY user_id ORDER BY ordered_at, order_id)) AS days FROM orders

-- admitted: days_since_the_last_order_up_to_thirty
SELECT cast(ordered_at AS date) AS day, order_id, datediff(ordered_at, max(ordered_at) OVER (PARTITION BY user_id ORDER BY ordered_at RANGE BETWEEN INTERVAL '30 00:00:00' DAY TO SECOND PRECEDING AND INTERVAL '0 00:00:00.000001' DAY TO SECOND PRECEDING)) AS days FROM orders

-- admitted: gap_capped_by_case
SELECT cast(ts AS date) AS day, event_id, CASE WHEN ts - lag(ts) OVER w <= INTERVAL 30 MINUTES THEN unix_micros(ts) - unix_micros(lag(ts) OVER w) END AS gap FROM clicks WINDOW w AS (PARTITION BY user_id ORDER BY ts, event_id)

-- admitted: lag_of_daily_near_by
SELECT day, n, CASE WHEN lag(day) OVER (ORDER BY day) >= day - INTERVAL 1 DAY THEN 'next' ELSE 'gap' END AS after FROM daily

-- refused: window-over-cells: lag_of_daily_of_any_age
SELECT day, n - lag(n) OVER (ORDER BY day) AS more FROM daily

-- admitted: yesterday_by_range
SELECT day, n - sum(n) OVER (ORDER BY day RANGE BETWEEN INTERVAL 1 DAY PRECEDING AND INTERVAL 1 DAY PRECEDING) AS more FROM daily

-- refused: window-over-cells: second_last_by_offset
SELECT cast(ts AS date) AS day, event_id, lag(ts, 2) OVER (PARTITION BY user_id ORDER BY ts, event_id) AS two_before FROM clicks

-- refused: window-over-cells: lag_with_a_default
SELECT cast(ts AS date) AS day, event_id, if(ts - lag(ts, 1, TIMESTAMP '2024-01-01') OVER (PARTITION BY user_id ORDER BY ts, event_id) <= INTERVAL 30 MINUTES, 0, 1) AS starts FROM clicks

-- refused: window-over-cells: islands_by_row_number
SELECT min(day) AS day, count(*) AS length FROM (SELECT day, date_sub(day, cast(row_number() OVER (ORDER BY day) AS int)) AS island FROM daily) GROUP BY island

-- admitted: page_before_within_thirty_days
SELECT cast(ts AS date) AS day, event_id, CASE WHEN ts - lag(ts) OVER w <= INTERVAL 30 DAYS THEN lag(url) OVER w END AS came_from FROM clicks WINDOW w AS (PARTITION BY user_id ORDER BY ts, event_id)

-- admitted: next_amount_within_a_day
WITH next AS (SELECT ts, event_id, amount, lead(ts) OVER w AS at, lead(amount) OVER w AS more FROM clicks WINDOW w AS (PARTITION BY user_id ORDER BY ts, event_id)) SELECT cast(ts AS date) AS day, event_id, CASE WHEN at <= ts + INTERVAL 1 DAY THEN more ELSE amount END AS more FROM next

-- admitted: visit_starts_by_silence_or_country
SELECT cast(ts AS date) AS day, event_id, CASE WHEN lag(ts) OVER w IS NULL OR ts - lag(ts) OVER w > INTERVAL 30 MINUTES OR lag(country) OVER w <> country THEN 1 ELSE 0 END AS starts FROM clicks WINDOW w AS (PARTITION BY user_id ORDER BY ts, event_id)

-- admitted: same_or_next_day_by_datediff
SELECT day, user_id, if(datediff(day, lag(day) OVER (PARTITION BY user_id ORDER BY day)) = 1, 0, 1) AS streak_starts FROM (SELECT DISTINCT cast(ts AS date) AS day, user_id FROM clicks)

-- admitted: two_days_of_silence_by_datediff_of_times
SELECT cast(ts AS date) AS day, event_id, CASE WHEN datediff(ts, lag(ts) OVER (PARTITION BY user_id ORDER BY ts, event_id)) <= 1 THEN 0 ELSE 1 END AS starts FROM clicks

-- admitted: last_for_days_by_datediff
SELECT cast(ts AS date) AS day, event_id, datediff(lead(ts) OVER (PARTITION BY user_id ORDER BY ts, event_id), ts) > 2 OR lead(ts) OVER (PARTITION BY user_id ORDER BY ts, event_id) IS NULL AS last FROM clicks

-- admitted: hours_by_datediff_with_a_unit
SELECT cast(ts AS date) AS day, event_id, if(datediff(HOUR, lag(ts) OVER (PARTITION BY user_id ORDER BY ts, event_id), ts) < 2, 0, 1) AS starts FROM clicks

-- admitted: a_day_by_date_diff_with_a_unit
WITH seen AS (SELECT ts, event_id, lag(ts) OVER (PARTITION BY user_id ORDER BY ts, event_id) AS before FROM clicks) SELECT cast(ts AS date) AS day, event_id, before FROM seen WHERE date_diff(DAY, before, ts) < 1

-- admitted: neighbours_of_the_day_before_kept
SELECT day, user_id, before FROM (SELECT day, user_id, lag(day) OVER (PARTITION BY user_id ORDER BY day) AS before FROM (SELECT DISTINCT cast(ts AS date) AS day, user_id FROM clicks)) WHERE datediff(day, before) BETWEEN 0 AND 3

-- refused: window-over-cells: silence_by_datediff_without_the_first
SELECT cast(ts AS date) AS day, event_id, if(datediff(ts, lag(ts) OVER (PARTITION BY user_id ORDER BY ts, event_id)) > 1, 1, 0) AS starts FROM clicks
