-- front: {materialization: table, incremental: {}, timeseries: {event_time_column: at, partition_column: at, granularity: hour}}

-- admitted: hours
SELECT date_trunc('HOUR', ts) AS at, count(*) AS n FROM clicks GROUP BY 1

-- admitted: hours_by_window
SELECT window(ts, '1 hour').start AS at, count(*) AS n FROM clicks GROUP BY window(ts, '1 hour')

-- admitted: quarters_of_an_hour_by_window
SELECT w.start AS at, w.end AS until, n FROM (SELECT window(ts, '15 minutes') AS w, count(*) AS n FROM clicks GROUP BY 1)

-- admitted: quarters_of_an_hour_by_seconds
SELECT timestamp_seconds(floor(unix_timestamp(ts) / 900) * 900) AS at, count(*) AS n FROM clicks GROUP BY 1

-- admitted: quarters_of_an_hour_by_minutes
SELECT date_trunc('HOUR', ts) + make_interval(0, 0, 0, 0, 0, floor(minute(ts) / 15) * 15) AS at, count(*) AS n FROM clicks GROUP BY 1

-- admitted: quarters_of_an_hour_by_remainder
SELECT timestamp_seconds(unix_timestamp(ts) - unix_timestamp(ts) % 900) AS at, country, count(*) AS n FROM clicks GROUP BY 1, 2

-- admitted: ten_minutes_of_the_hour_as_a_number
SELECT date_trunc('HOUR', ts) AS at, minute(ts) DIV 10 AS ten, count(*) AS n FROM clicks GROUP BY 1, 2

-- admitted: minutes_in_hours
SELECT date_trunc('MINUTE', ts) AS at, count(*) AS n FROM clicks GROUP BY 1

-- admitted: sliding_window
SELECT window(ts, '2 hours', '1 hour').start AS at, count(*) AS n FROM clicks GROUP BY window(ts, '2 hours', '1 hour')

-- admitted: shifted_window
SELECT window(ts, '1 hour', '1 hour', '15 minutes').start AS at, count(*) AS n FROM clicks GROUP BY window(ts, '1 hour', '1 hour', '15 minutes')

-- refused: partition-not-proven: session_windows
SELECT session_window(ts, '30 minutes').start AS at, user_id, count(*) AS n FROM clicks GROUP BY session_window(ts, '30 minutes'), user_id

-- admitted: hours_from_days_by_the_day
-- with: {timeseries: {event_time_column: at, partition_column: at, granularity: day}}
SELECT date_trunc('HOUR', ts) AS at, count(*) / sum(count(*)) OVER (PARTITION BY cast(date_trunc('HOUR', ts) AS date)) AS share FROM clicks GROUP BY date_trunc('HOUR', ts)

-- admitted: days_in_an_hourly_table
SELECT min(date_trunc('HOUR', ts)) AS at, cast(ts AS date) AS day, count(*) AS n FROM clicks GROUP BY 2

-- admitted: instants_themselves
SELECT ts AS at, event_id, amount FROM clicks

-- admitted: rolling_day_by_hours
SELECT at, sum(n) OVER (ORDER BY at RANGE BETWEEN INTERVAL 23 HOURS PRECEDING AND CURRENT ROW) AS day FROM (SELECT date_trunc('HOUR', ts) AS at, count(*) AS n FROM clicks GROUP BY 1)

-- admitted: same_hour_yesterday
WITH h AS (SELECT date_trunc('HOUR', ts) AS at, count(*) AS n FROM clicks GROUP BY 1) SELECT a.at, a.n, b.n AS before FROM h AS a LEFT JOIN h AS b ON b.at = a.at - INTERVAL 24 HOURS

-- admitted: weeks
-- with: {timeseries: {event_time_column: week, partition_column: week, granularity: week}}
SELECT cast(date_trunc('WEEK', ts) AS date) AS week, count(*) AS n FROM clicks GROUP BY 1

-- admitted: weeks_from_sunday_as_cells
-- with: {timeseries: {event_time_column: week, partition_column: week, granularity: week, week_start: sunday}}
SELECT cast(date_trunc('WEEK', ts + INTERVAL 1 DAY) AS date) - INTERVAL 1 DAY AS week, count(DISTINCT user_id) AS users FROM clicks GROUP BY 1

-- admitted: week_by_day_of_the_week
-- with: {timeseries: {event_time_column: week, partition_column: week, granularity: week}}
SELECT date_sub(cast(ts AS date), weekday(ts)) AS week, count(*) AS n FROM clicks GROUP BY 1

-- admitted: months
-- with: {timeseries: {event_time_column: month, partition_column: month, granularity: month}}
SELECT trunc(ts, 'MM') AS month, sum(amount) AS revenue FROM clicks GROUP BY 1

-- admitted: months_of_days_of_daily
-- with: {timeseries: {event_time_column: month, partition_column: month, granularity: month}}
SELECT cast(date_trunc('MONTH', day) AS date) AS month, avg(n) AS mean, count(*) AS days FROM daily GROUP BY 1

-- admitted: weeks_in_months
-- with: {timeseries: {event_time_column: week, partition_column: week, granularity: month}}
SELECT cast(max(ts) AS date) AS week, date_trunc('WEEK', ts) AS w, count(*) AS n FROM clicks GROUP BY 2

-- admitted: quarters
-- with: {timeseries: {event_time_column: quarter, partition_column: quarter, granularity: quarter}}
SELECT cast(date_trunc('QUARTER', ts) AS date) AS quarter, count(DISTINCT user_id) AS users FROM clicks GROUP BY 1

-- admitted: years
-- with: {timeseries: {event_time_column: year, partition_column: year, granularity: year}}
SELECT trunc(ts, 'YEAR') AS year, count(*) AS n FROM clicks GROUP BY 1

-- admitted: first_click_of_the_month_per_user
-- with: {timeseries: {event_time_column: at, partition_column: at, granularity: month}}
SELECT min(ts) AS at, user_id, count(*) AS n FROM clicks GROUP BY user_id, date_trunc('MONTH', ts)

-- admitted: day_table_from_month_equality
-- with: {timeseries: {event_time_column: day, partition_column: day, granularity: day}}
SELECT cast(o.ordered_at AS date) AS day, o.order_id, count(c.event_id) AS clicks_this_month FROM orders AS o LEFT JOIN clicks AS c ON c.user_id = o.user_id AND date_trunc('MONTH', c.ts) = date_trunc('MONTH', o.ordered_at) GROUP BY 1, 2

-- refused: partition-not-proven: trunc_to_a_day_is_null
-- with: {timeseries: {event_time_column: day, partition_column: day, granularity: day}}
SELECT trunc(ts, 'DD') AS day, count(*) AS n FROM clicks GROUP BY 1

-- admitted: quarters_of_an_hour_by_from_unixtime
SELECT cast(from_unixtime(unix_timestamp(ts) - unix_timestamp(ts) % 900) AS timestamp) AS at, count(*) AS n FROM clicks GROUP BY 1

-- admitted: quarters_of_an_hour_grouped_by_their_text
SELECT to_timestamp(from_unixtime(floor(unix_timestamp(ts) / 900) * 900)) AS at, from_unixtime(floor(unix_timestamp(ts) / 900) * 900) AS text, count(*) AS n FROM clicks GROUP BY from_unixtime(floor(unix_timestamp(ts) / 900) * 900)

-- admitted: quarters_of_an_hour_by_a_cast_number
SELECT cast(unix_seconds(ts) - pmod(unix_seconds(ts), 900) AS timestamp) AS at, count(*) AS n FROM clicks GROUP BY 1

-- admitted: days_by_from_unixtime
-- with: {timeseries: {event_time_column: at, partition_column: at, granularity: day}}
SELECT to_date(from_unixtime(unix_timestamp(ts))) AS at, count(*) AS n FROM clicks GROUP BY 1

-- refused: partition-not-proven: quarters_of_an_hour_as_a_text
SELECT from_unixtime(unix_timestamp(ts) - unix_timestamp(ts) % 900) AS at, count(*) AS n FROM clicks GROUP BY 1
