-- front: {materialization: table}

-- admitted: users_ever
SELECT user_id, count(*) AS n, min(ts) AS first, max(ts) AS last, sum(amount) AS spent FROM clicks GROUP BY user_id

-- admitted: running_total_in_order
SELECT day, sum(n) OVER (ORDER BY day) AS so_far, avg(n) OVER (ORDER BY day ROWS BETWEEN 6 PRECEDING AND CURRENT ROW) AS last_seven FROM daily

-- refused: order-not-total: running_rows_with_ties
SELECT event_id, sum(amount) OVER (PARTITION BY user_id ORDER BY ts ROWS UNBOUNDED PRECEDING) AS so_far FROM clicks

-- admitted: running_peers_with_ties
SELECT event_id, sum(amount) OVER (PARTITION BY user_id ORDER BY ts) AS so_far FROM clicks

-- admitted: lag_in_a_total_order
SELECT event_id, ts, lag(ts) OVER (PARTITION BY user_id ORDER BY ts, event_id) AS before, lead(url) OVER (PARTITION BY user_id ORDER BY ts, event_id) AS next FROM clicks

-- refused: order-not-total: lag_of_another_column_with_ties
SELECT event_id, lag(url) OVER (PARTITION BY user_id ORDER BY ts) AS before FROM clicks

-- admitted: lag_of_the_order_itself
SELECT DISTINCT user_id, ts, lag(ts) OVER (PARTITION BY user_id ORDER BY ts) AS before FROM (SELECT DISTINCT user_id, ts FROM clicks)

-- admitted: latest_order_of_each_user
SELECT user_id, order_id, status FROM (SELECT user_id, order_id, status, row_number() OVER (PARTITION BY user_id ORDER BY ordered_at DESC, order_id DESC) AS place FROM orders) WHERE place = 1

-- admitted: ten_dearest
SELECT order_id, price FROM orders ORDER BY price DESC, order_id LIMIT 10

-- refused: limit-without-order: any_ten
SELECT order_id, price FROM orders LIMIT 10

-- refused: order-not-total: ten_dearest_with_ties
SELECT order_id, price FROM orders ORDER BY price DESC LIMIT 10

-- admitted: rollup_of_all
SELECT country, url, count(*) AS n FROM clicks GROUP BY ROLLUP (country, url)

-- admitted: full_join_of_all
SELECT coalesce(a.user_id, b.user_id) AS user_id, a.n AS clicks, b.n AS orders FROM (SELECT user_id, count(*) AS n FROM clicks GROUP BY 1) AS a FULL JOIN (SELECT user_id, count(*) AS n FROM orders GROUP BY 1) AS b ON a.user_id = b.user_id

-- admitted: islands_of_days
SELECT min(day) AS first, max(day) AS last, count(*) AS length FROM (SELECT day, date_sub(day, cast(row_number() OVER (ORDER BY day) AS int)) AS island FROM daily) GROUP BY island

-- admitted: price_valid_now
SELECT sku, price, valid_from, lead(valid_from) OVER (PARTITION BY sku ORDER BY valid_from) AS valid_to FROM prices

-- admitted: cohorts_of_first_days
SELECT f.cohort, datediff(cast(c.ts AS date), f.cohort) AS age, count(DISTINCT c.user_id) AS users FROM clicks AS c JOIN (SELECT user_id, min(cast(ts AS date)) AS cohort FROM clicks GROUP BY user_id) AS f ON f.user_id = c.user_id GROUP BY 1, 2

-- admitted: nobody_but_a_lookup
SELECT u.user_id, u.plan, k.name FROM users AS u LEFT JOIN countries AS k ON k.code = u.home

-- refused: clock: age_of_users
SELECT user_id, datediff(current_date(), signup) AS days FROM users

-- admitted: median_of_all
SELECT country, percentile(amount, 0.5) AS median, sort_array(collect_set(url)) AS urls FROM clicks GROUP BY country

-- admitted: gaps_and_sessions_by_hand
SELECT user_id, session, min(ts) AS first, count(*) AS n FROM (SELECT user_id, ts, sum(starts) OVER (PARTITION BY user_id ORDER BY ts, event_id) AS session FROM (SELECT user_id, ts, event_id, if(ts - lag(ts) OVER (PARTITION BY user_id ORDER BY ts, event_id) <= INTERVAL 30 MINUTES, 0, 1) AS starts FROM clicks)) GROUP BY user_id, session
