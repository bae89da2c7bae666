-- front: {materialization: table, incremental: {}, timeseries: {event_time_column: day, partition_column: day, granularity: day}}

-- admitted: berlin_days
SELECT cast(from_utc_timestamp(ts, 'Europe/Berlin') AS date) AS day, count(*) AS n FROM clicks GROUP BY 1

-- admitted: new_york_days
SELECT cast(from_utc_timestamp(ts, 'America/New_York') AS date) AS day, count(DISTINCT user_id) AS users FROM clicks GROUP BY 1

-- admitted: half_hour_zone
SELECT to_date(from_utc_timestamp(ts, 'Asia/Kolkata')) AS day, count(*) AS n FROM clicks GROUP BY 1

-- admitted: auckland_on_the_other_side
SELECT date_trunc('DAY', from_utc_timestamp(ts, 'Pacific/Auckland')) AS day, count(*) AS n FROM clicks GROUP BY 1

-- admitted: convert_timezone_with_both
SELECT cast(convert_timezone('UTC', 'Europe/Berlin', cast(ts AS timestamp_ntz)) AS date) AS day, count(*) AS n FROM clicks GROUP BY 1

-- admitted: back_to_utc
SELECT cast(to_utc_timestamp(from_utc_timestamp(ts, 'Europe/Berlin'), 'Europe/Berlin') AS date) AS day, count(*) AS n FROM clicks GROUP BY 1

-- admitted: berlin_hours_as_a_key
SELECT cast(from_utc_timestamp(ts, 'Europe/Berlin') AS date) AS day, hour(from_utc_timestamp(ts, 'Europe/Berlin')) AS hour, count(*) AS n FROM clicks GROUP BY 1, 2

-- admitted: hours_of_berlin_in_utc_days
SELECT cast(ts AS date) AS day, hour(from_utc_timestamp(ts, 'Europe/Berlin')) AS hour, count(*) AS n FROM clicks GROUP BY 1, 2

-- admitted: local_days_per_user_window
SELECT cast(from_utc_timestamp(ts, 'Europe/Berlin') AS date) AS day, event_id, row_number() OVER (PARTITION BY cast(from_utc_timestamp(ts, 'Europe/Berlin') AS date) ORDER BY ts, event_id) AS place FROM clicks

-- refused: window-over-cells: local_window_by_the_wall_clock_range
SELECT cast(from_utc_timestamp(ts, 'Europe/Berlin') AS date) AS day, event_id, sum(amount) OVER (PARTITION BY user_id ORDER BY from_utc_timestamp(ts, 'Europe/Berlin')) AS n FROM clicks

-- admitted: wall_clock_hour_window
SELECT cast(ts AS date) AS day, event_id, count(*) OVER (ORDER BY from_utc_timestamp(ts, 'Europe/Berlin') RANGE BETWEEN INTERVAL 1 HOUR PRECEDING AND CURRENT ROW) AS n FROM clicks

-- refused: partition-not-proven: zone_of_each_row
SELECT cast(from_utc_timestamp(c.ts, k.zone) AS date) AS day, count(*) AS n FROM clicks AS c JOIN countries AS k ON k.code = c.country GROUP BY 1

-- admitted: zone_of_each_row_beside_the_day
SELECT cast(c.ts AS date) AS day, k.code, hour(from_utc_timestamp(c.ts, k.zone)) AS local_hour, count(*) AS n FROM clicks AS c JOIN countries AS k ON k.code = c.country GROUP BY 1, 2, 3

-- admitted: join_of_local_days
SELECT a.day, a.n, b.n AS orders FROM (SELECT cast(from_utc_timestamp(ts, 'Europe/Berlin') AS date) AS day, count(*) AS n FROM clicks GROUP BY 1) AS a LEFT JOIN (SELECT cast(from_utc_timestamp(ordered_at, 'Europe/Berlin') AS date) AS day, count(*) AS n FROM orders GROUP BY 1) AS b ON a.day = b.day

-- admitted: local_weeks
-- with: {timeseries: {event_time_column: week, partition_column: week, granularity: week}}
SELECT cast(date_trunc('WEEK', from_utc_timestamp(ts, 'America/New_York')) AS date) AS week, count(*) AS n FROM clicks GROUP BY 1

-- admitted: local_hours_through_the_change
-- with: {timeseries: {event_time_column: hour, partition_column: hour, granularity: hour}}
SELECT date_trunc('HOUR', from_utc_timestamp(ts, 'Europe/Berlin')) AS hour, count(*) AS n FROM clicks GROUP BY 1

-- admitted: literal_with_an_offset
SELECT cast(ts AS date) AS day, count(*) AS n FROM clicks WHERE ts >= TIMESTAMP '2024-03-01T00:00:00+01:00' GROUP BY 1

-- admitted: fixed_offset
SELECT cast(from_utc_timestamp(ts, '+05:30') AS date) AS day, count(*) AS n FROM clicks GROUP BY 1

-- admitted: at_without_a_zone
SELECT cast(cast(ts AS timestamp_ntz) AS date) AS day, max(cast(ts AS timestamp_ntz)) AS last FROM clicks GROUP BY 1

-- admitted: calendar_days_against_hours
SELECT cast(a.ts AS date) AS day, a.event_id, count(b.event_id) AS n FROM clicks AS a LEFT JOIN clicks AS b ON b.user_id = a.user_id AND cast(from_utc_timestamp(b.ts, 'Europe/Berlin') AS date) = cast(from_utc_timestamp(a.ts, 'Europe/Berlin') AS date) - INTERVAL 1 DAY GROUP BY 1, 2

-- admitted: in_the_zone_of_the_session
SELECT cast(ts AS date) AS day, current_timezone() AS zone, count(*) AS n FROM clicks GROUP BY 1
