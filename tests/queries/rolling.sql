-- front: {materialization: table, incremental: {}, timeseries: {event_time_column: day, partition_column: day, granularity: day}}

-- admitted: seven_days_of_daily
SELECT day, n, sum(n) OVER (ORDER BY day RANGE BETWEEN INTERVAL 6 DAYS PRECEDING AND CURRENT ROW) AS week FROM daily

-- admitted: three_windows_side_by_side
SELECT day, sum(n) OVER (ORDER BY day RANGE BETWEEN INTERVAL 6 DAYS PRECEDING AND CURRENT ROW) AS n7, avg(n) OVER (ORDER BY day RANGE BETWEEN INTERVAL 13 DAYS PRECEDING AND CURRENT ROW) AS n14, max(n) OVER (ORDER BY day RANGE BETWEEN INTERVAL 27 DAYS PRECEDING AND CURRENT ROW) AS n28 FROM daily

-- admitted: nested_rolling
SELECT day, avg(week) OVER (ORDER BY day RANGE BETWEEN INTERVAL 2 DAYS PRECEDING AND CURRENT ROW) AS smooth FROM (SELECT day, sum(n) OVER (ORDER BY day RANGE BETWEEN INTERVAL 6 DAYS PRECEDING AND CURRENT ROW) AS week FROM daily)

-- admitted: centred_mean
SELECT day, avg(revenue) OVER (ORDER BY day RANGE BETWEEN INTERVAL 3 DAYS PRECEDING AND INTERVAL 3 DAYS FOLLOWING) AS smooth FROM daily

-- admitted: ahead_only
SELECT day, sum(n) OVER (ORDER BY day RANGE BETWEEN INTERVAL 1 DAY FOLLOWING AND INTERVAL 7 DAYS FOLLOWING) AS next_week FROM daily

-- admitted: backwards_in_time
SELECT day, sum(n) OVER (ORDER BY day DESC RANGE BETWEEN CURRENT ROW AND INTERVAL 6 DAYS FOLLOWING) AS week FROM daily

-- admitted: per_country_and_day
SELECT day, country, n, sum(n) OVER (PARTITION BY country ORDER BY day RANGE BETWEEN INTERVAL 6 DAYS PRECEDING AND CURRENT ROW) AS week FROM (SELECT cast(ts AS date) AS day, country, count(*) AS n FROM clicks GROUP BY 1, 2)

-- admitted: events_of_the_last_hour
SELECT cast(ts AS date) AS day, event_id, count(*) OVER (PARTITION BY user_id ORDER BY ts RANGE BETWEEN INTERVAL 1 HOUR PRECEDING AND CURRENT ROW) AS n FROM clicks

-- admitted: peers_at_one_instant
SELECT cast(ts AS date) AS day, event_id, count(*) OVER (ORDER BY ts RANGE BETWEEN CURRENT ROW AND CURRENT ROW) AS together FROM clicks

-- admitted: before_but_not_now
SELECT cast(ts AS date) AS day, event_id, sum(amount) OVER (PARTITION BY user_id ORDER BY ts RANGE BETWEEN INTERVAL '1 00:00:00' DAY TO SECOND PRECEDING AND INTERVAL '0 00:00:00.000001' DAY TO SECOND PRECEDING) AS before FROM clicks

-- admitted: a_month_back_by_calendar
SELECT day, sum(n) OVER (ORDER BY day RANGE BETWEEN INTERVAL 1 MONTH PRECEDING AND CURRENT ROW) AS month FROM daily

-- admitted: range_of_numbers_of_days
SELECT day, sum(n) OVER (ORDER BY day RANGE BETWEEN 6 PRECEDING AND CURRENT ROW) AS week FROM daily

-- admitted: seconds_as_a_number
SELECT cast(ts AS date) AS day, event_id, count(*) OVER (PARTITION BY user_id ORDER BY unix_timestamp(ts) RANGE BETWEEN 3600 PRECEDING AND CURRENT ROW) AS n FROM clicks

-- admitted: seconds_by_cast
SELECT cast(ts AS date) AS day, event_id, sum(amount) OVER (PARTITION BY country ORDER BY cast(ts AS bigint) RANGE BETWEEN 86400 PRECEDING AND 1 PRECEDING) AS before FROM clicks

-- admitted: milliseconds_as_a_number
SELECT cast(ts AS date) AS day, event_id, count(*) OVER (ORDER BY unix_millis(ts) RANGE BETWEEN 7200000 PRECEDING AND CURRENT ROW) AS n FROM clicks

-- admitted: named_window_used_twice
SELECT cast(ts AS date) AS day, event_id, count(*) OVER w AS n, max(amount) OVER w AS most FROM clicks WINDOW w AS (PARTITION BY user_id ORDER BY ts RANGE BETWEEN INTERVAL 12 HOURS PRECEDING AND CURRENT ROW)

-- admitted: mixed_literal_interval
SELECT cast(ts AS date) AS day, event_id, count(*) OVER (ORDER BY ts RANGE BETWEEN INTERVAL '1 02:30' DAY TO MINUTE PRECEDING AND CURRENT ROW) AS n FROM clicks

-- admitted: exactly_seven_days_in_microseconds
SELECT cast(ts AS date) AS day, event_id, count(*) OVER (PARTITION BY user_id ORDER BY ts RANGE BETWEEN INTERVAL 604799999999 MICROSECONDS PRECEDING AND CURRENT ROW) AS n FROM clicks

-- admitted: range_without_between
SELECT day, sum(n) OVER (ORDER BY day RANGE INTERVAL 2 DAYS PRECEDING) AS three FROM daily

-- admitted: rolling_over_a_shifted_time
SELECT cast(ts + INTERVAL 1 DAY AS date) AS day, event_id, count(*) OVER (ORDER BY ts RANGE BETWEEN INTERVAL 6 HOURS PRECEDING AND CURRENT ROW) AS n FROM clicks

-- admitted: total_of_the_day_beside_each_row
SELECT cast(ts AS date) AS day, event_id, amount / sum(amount) OVER (PARTITION BY cast(ts AS date)) AS share FROM clicks

-- admitted: running_total_within_the_day
SELECT cast(ts AS date) AS day, event_id, sum(amount) OVER (PARTITION BY cast(ts AS date) ORDER BY ts, event_id) AS so_far FROM clicks

-- admitted: rows_frame_within_the_day_total_order
SELECT cast(ts AS date) AS day, event_id, avg(amount) OVER (PARTITION BY cast(ts AS date) ORDER BY ts, event_id ROWS BETWEEN 2 PRECEDING AND CURRENT ROW) AS last_three FROM clicks

-- refused: order-not-total: rows_frame_within_the_day_ties
SELECT cast(ts AS date) AS day, event_id, avg(amount) OVER (PARTITION BY cast(ts AS date) ORDER BY ts ROWS BETWEEN 2 PRECEDING AND CURRENT ROW) AS last_three FROM clicks

-- refused: window-over-cells: rows_are_no_days
SELECT day, sum(n) OVER (ORDER BY day ROWS BETWEEN 6 PRECEDING AND CURRENT ROW) AS week FROM daily

-- refused: window-over-cells: running_total_for_ever
SELECT day, sum(n) OVER (ORDER BY day) AS so_far FROM daily

-- refused: window-over-cells: share_of_all_time
SELECT day, n / sum(n) OVER () AS share FROM daily

-- refused: window-over-cells: unbounded_per_user
SELECT cast(ts AS date) AS day, event_id, count(*) OVER (PARTITION BY user_id) AS n FROM clicks

-- refused: window-over-cells: range_up_to_the_end
SELECT day, max(n) OVER (ORDER BY day RANGE BETWEEN CURRENT ROW AND UNBOUNDED FOLLOWING) AS best FROM daily

-- refused: window-over-cells: range_over_an_amount
SELECT cast(ts AS date) AS day, event_id, count(*) OVER (ORDER BY amount RANGE BETWEEN 1 PRECEDING AND 1 FOLLOWING) AS alike FROM clicks

-- admitted: running_total_let_pass_by_a_bound
-- with: {incremental: {bounds: {daily: {before: 3650 days, after: 0 seconds}}}}
SELECT day, sum(n) OVER (ORDER BY day RANGE BETWEEN INTERVAL 3650 DAYS PRECEDING AND CURRENT ROW) AS so_far FROM daily

-- admitted: distinct_users_of_a_week_by_join
SELECT d.day, count(DISTINCT c.user_id) AS users FROM daily AS d JOIN clicks AS c ON c.ts >= d.day - INTERVAL 6 DAYS AND c.ts < d.day + INTERVAL 1 DAY GROUP BY d.day

-- admitted: collected_users_of_a_week
SELECT day, size(array_distinct(flatten(collect_list(users) OVER (ORDER BY day RANGE BETWEEN INTERVAL 6 DAYS PRECEDING AND CURRENT ROW)))) AS users FROM (SELECT cast(ts AS date) AS day, sort_array(collect_set(user_id)) AS users FROM clicks GROUP BY 1)

-- admitted: rolling_deviation
SELECT day, n, n > 2 * avg(n) OVER (ORDER BY day RANGE BETWEEN INTERVAL 14 DAYS PRECEDING AND INTERVAL 1 DAY PRECEDING) AS spike FROM daily

-- admitted: first_value_of_a_range
SELECT day, first_value(n) OVER (ORDER BY day RANGE BETWEEN INTERVAL 6 DAYS PRECEDING AND CURRENT ROW) AS oldest, last_value(n) OVER (ORDER BY day RANGE BETWEEN INTERVAL 6 DAYS PRECEDING AND CURRENT ROW) AS newest FROM daily

-- admitted: count_of_several_kinds_in_one_range
SELECT cast(ordered_at AS date) AS day, order_id, count_if(status = 'cancelled') OVER (PARTITION BY user_id ORDER BY ordered_at RANGE BETWEEN INTERVAL 30 DAYS PRECEDING AND CURRENT ROW) AS cancelled, sum(if(status = 'paid', qty, 0)) OVER (PARTITION BY user_id ORDER BY ordered_at RANGE BETWEEN INTERVAL 30 DAYS PRECEDING AND CURRENT ROW) AS bought FROM orders
