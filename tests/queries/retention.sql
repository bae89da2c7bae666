-- front: {materialization: table, incremental: {}, timeseries: {event_time_column: day, partition_column: day, granularity: day}}

-- admitted: back_the_next_day
SELECT a.day, count(DISTINCT a.user_id) AS users, count(DISTINCT b.user_id) AS back FROM (SELECT DISTINCT user_id, cast(ts AS date) AS day FROM clicks) AS a LEFT JOIN (SELECT DISTINCT user_id, cast(ts AS date) AS day FROM clicks) AS b ON b.user_id = a.user_id AND b.day = a.day + INTERVAL 1 DAY GROUP BY a.day

-- admitted: back_within_a_week
SELECT cast(a.ts AS date) AS day, count(DISTINCT a.user_id) AS users FROM clicks AS a LEFT SEMI JOIN clicks AS b ON b.user_id = a.user_id AND b.ts > a.ts + INTERVAL 1 DAY AND b.ts <= a.ts + INTERVAL 7 DAYS GROUP BY 1

-- admitted: not_back_within_a_week
SELECT cast(a.ts AS date) AS day, a.event_id FROM clicks AS a LEFT ANTI JOIN clicks AS b ON b.user_id = a.user_id AND b.ts > a.ts AND b.ts <= a.ts + INTERVAL 7 DAYS

-- admitted: retained_by_day_number
SELECT a.day, datediff(b.day, a.day) AS after, count(*) AS users FROM (SELECT DISTINCT user_id, cast(ts AS date) AS day FROM clicks) AS a JOIN (SELECT DISTINCT user_id, cast(ts AS date) AS day FROM clicks) AS b ON a.user_id = b.user_id AND datediff(b.day, a.day) BETWEEN 0 AND 7 GROUP BY 1, 2

-- refused: join-over-cells: retained_for_ever
SELECT a.day, datediff(b.day, a.day) AS after, count(*) AS users FROM (SELECT DISTINCT user_id, cast(ts AS date) AS day FROM clicks) AS a JOIN (SELECT DISTINCT user_id, cast(ts AS date) AS day FROM clicks) AS b ON a.user_id = b.user_id GROUP BY 1, 2

-- admitted: cohorts_by_signup_lookup
SELECT cast(c.ts AS date) AS day, u.signup AS cohort, datediff(cast(c.ts AS date), u.signup) AS age, count(DISTINCT c.user_id) AS users FROM clicks AS c JOIN users AS u ON u.user_id = c.user_id GROUP BY 1, 2, 3

-- admitted: new_against_returning_by_lookup
SELECT cast(c.ts AS date) AS day, if(u.signup = cast(c.ts AS date), 'new', 'returning') AS kind, count(*) AS n FROM clicks AS c LEFT JOIN users AS u USING (user_id) GROUP BY 1, 2

-- refused: window-over-cells: cohort_of_the_first_event
SELECT cast(ts AS date) AS day, cohort, count(DISTINCT user_id) AS users FROM (SELECT user_id, ts, cast(min(ts) OVER (PARTITION BY user_id) AS date) AS cohort FROM clicks) GROUP BY 1, 2

-- refused: group-over-cells: cohort_by_join_to_first_days
SELECT cast(c.ts AS date) AS day, f.first_day, count(DISTINCT c.user_id) AS users FROM clicks AS c JOIN (SELECT user_id, min(cast(ts AS date)) AS first_day FROM clicks GROUP BY user_id) AS f ON f.user_id = c.user_id GROUP BY 1, 2

-- admitted: monthly_cohort_return
-- with: {timeseries: {event_time_column: month, partition_column: month, granularity: month}}
SELECT a.month, count(*) AS users, count(b.user_id) AS back FROM (SELECT DISTINCT user_id, cast(date_trunc('MONTH', ts) AS date) AS month FROM clicks WHERE user_id IS NOT NULL) AS a LEFT JOIN (SELECT DISTINCT user_id, cast(date_trunc('MONTH', ts) AS date) AS month FROM clicks WHERE user_id IS NOT NULL) AS b ON b.user_id = a.user_id AND b.month = a.month + INTERVAL 1 MONTH GROUP BY a.month

-- admitted: churned_after_two_weeks
SELECT a.day, count(*) AS gone FROM (SELECT DISTINCT user_id, cast(ts AS date) AS day FROM clicks) AS a WHERE NOT EXISTS (SELECT 1 FROM clicks AS b WHERE b.user_id = a.user_id AND b.ts >= a.day + INTERVAL 1 DAY AND b.ts < a.day + INTERVAL 15 DAYS) GROUP BY a.day

-- admitted: funnel_within_an_hour
SELECT cast(v.ts AS date) AS day, count(DISTINCT v.event_id) AS seen, count(DISTINCT p.event_id) AS paid FROM clicks AS v LEFT JOIN clicks AS p ON p.user_id = v.user_id AND p.url = '/pay' AND p.ts BETWEEN v.ts AND v.ts + INTERVAL 1 HOUR WHERE v.url = '/' GROUP BY 1

-- admitted: funnel_of_three_steps
SELECT cast(a.ts AS date) AS day, count(DISTINCT a.user_id) AS first, count(DISTINCT b.user_id) AS second, count(DISTINCT c.user_id) AS third FROM clicks AS a LEFT JOIN clicks AS b ON b.user_id = a.user_id AND b.url = '/item' AND b.ts >= a.ts AND b.ts <= a.ts + INTERVAL 2 HOURS LEFT JOIN clicks AS c ON c.user_id = b.user_id AND c.url = '/pay' AND c.ts >= b.ts AND c.ts <= b.ts + INTERVAL 2 HOURS WHERE a.url = '/' GROUP BY 1

-- admitted: funnel_by_day_flags
SELECT day, sum(home) AS home, sum(home * pay) AS through FROM (SELECT cast(ts AS date) AS day, user_id, max(if(url = '/', 1, 0)) AS home, max(if(url = '/pay', 1, 0)) AS pay FROM clicks GROUP BY 1, 2) GROUP BY day

-- admitted: ordered_funnel_within_the_day
SELECT day, count_if(pay > home) AS converted FROM (SELECT cast(ts AS date) AS day, user_id, min(ts) FILTER (WHERE url = '/') AS home, max(ts) FILTER (WHERE url = '/pay') AS pay FROM clicks GROUP BY 1, 2) GROUP BY day

-- refused: join-over-cells: funnel_without_an_end
SELECT cast(v.ts AS date) AS day, count(p.event_id) AS paid FROM clicks AS v LEFT JOIN clicks AS p ON p.user_id = v.user_id AND p.url = '/pay' AND p.ts >= v.ts GROUP BY 1

-- admitted: stickiness_of_the_month
SELECT d.day, d.users / count(DISTINCT c.user_id) AS stickiness FROM daily AS d JOIN clicks AS c ON c.ts < d.day + INTERVAL 1 DAY AND c.ts >= d.day - INTERVAL 29 DAYS GROUP BY d.day, d.users

-- admitted: either_before_or_after
SELECT cast(a.ts AS date) AS day, a.event_id, count(b.event_id) AS near FROM clicks AS a LEFT JOIN clicks AS b ON b.user_id = a.user_id AND (b.ts BETWEEN a.ts - INTERVAL 2 HOURS AND a.ts - INTERVAL 1 HOUR OR b.ts BETWEEN a.ts + INTERVAL 1 HOUR AND a.ts + INTERVAL 2 HOURS) GROUP BY 1, 2

-- admitted: absolute_distance
SELECT cast(a.ts AS date) AS day, a.event_id, b.event_id AS other FROM clicks AS a JOIN clicks AS b ON b.user_id = a.user_id AND b.event_id <> a.event_id AND abs(unix_timestamp(b.ts) - unix_timestamp(a.ts)) <= 600

-- admitted: equal_times
SELECT cast(a.ts AS date) AS day, a.event_id, b.event_id AS other FROM clicks AS a JOIN clicks AS b ON b.ts = a.ts AND b.event_id > a.event_id

-- admitted: null_safe_equal_days
SELECT a.day, a.n, b.n AS orders FROM daily AS a LEFT JOIN (SELECT cast(ordered_at AS date) AS day, count(*) AS n FROM orders GROUP BY 1) AS b ON b.day <=> a.day

-- refused: join-over-cells: same_weekday
SELECT a.day, avg(b.n) AS usual FROM daily AS a JOIN daily AS b ON dayofweek(a.day) = dayofweek(b.day) GROUP BY a.day

-- admitted: same_weekday_four_weeks
SELECT a.day, avg(b.n) AS usual FROM daily AS a JOIN daily AS b ON dayofweek(a.day) = dayofweek(b.day) AND b.day < a.day AND b.day >= a.day - INTERVAL 28 DAYS GROUP BY a.day

-- refused: join-over-cells: orders_with_any_click
SELECT cast(o.ordered_at AS date) AS day, o.order_id FROM orders AS o LEFT SEMI JOIN clicks AS c ON c.user_id = o.user_id

-- admitted: days_apart_by_datediff
SELECT cast(o.ordered_at AS date) AS day, o.order_id, count(c.event_id) AS clicks FROM orders AS o LEFT JOIN clicks AS c ON c.user_id = o.user_id AND datediff(o.ordered_at, c.ts) >= 0 AND datediff(o.ordered_at, c.ts) < 3 GROUP BY 1, 2

-- admitted: hours_apart_by_timestampdiff
SELECT cast(o.ordered_at AS date) AS day, o.order_id, count(*) AS clicks FROM orders AS o JOIN clicks AS c ON c.user_id = o.user_id AND timestampdiff(HOUR, c.ts, o.ordered_at) BETWEEN 0 AND 5 GROUP BY 1, 2

-- admitted: hours_apart_by_datediff
SELECT cast(o.ordered_at AS date) AS day, o.order_id, count(*) AS clicks FROM orders AS o JOIN clicks AS c ON c.user_id = o.user_id AND datediff(HOUR, c.ts, o.ordered_at) BETWEEN 0 AND 3 GROUP BY ALL

-- admitted: whole_days_apart_either_way
SELECT cast(o.ordered_at AS date) AS day, o.order_id, count(c.event_id) AS clicks FROM orders AS o LEFT JOIN clicks AS c ON c.user_id = o.user_id AND abs(datediff(DAY, c.ts, o.ordered_at)) <= 2 GROUP BY ALL

-- admitted: weeks_apart_by_timestampdiff
SELECT cast(o.ordered_at AS date) AS day, o.order_id, count(*) AS clicks FROM orders AS o JOIN clicks AS c ON timestampdiff(WEEK, o.ordered_at, c.ts) BETWEEN -1 AND 1 GROUP BY ALL

-- admitted: within_a_month_by_datediff
SELECT cast(o.ordered_at AS date) AS day, o.order_id, count(*) AS clicks FROM orders AS o JOIN clicks AS c ON c.country = o.currency OR datediff(MONTH, c.ts, o.ordered_at) = 0 WHERE datediff(QUARTER, c.ts, o.ordered_at) = 0 GROUP BY ALL

-- admitted: months_apart_by_timestampdiff
SELECT cast(o.ordered_at AS date) AS day, o.order_id, count(*) AS clicks FROM orders AS o JOIN clicks AS c ON timestampdiff(MONTH, c.ts, o.ordered_at) >= 1 AND timestampdiff(MONTH, c.ts, o.ordered_at) < 13 GROUP BY ALL
