-- front: {materialization: cumulative_aggregate}

-- admitted: totals_of_users
SELECT user_id, count(*) AS n, sum(amount) AS spent, min(ts) AS first, max(ts) AS last FROM clicks GROUP BY user_id

-- admitted: totals_of_two_keys
SELECT country, url, count(*) AS n, count(DISTINCT user_id) AS users FROM clicks WHERE url <> '/cart' GROUP BY country, url

-- admitted: key_by_expression
SELECT date_trunc('MONTH', ts) AS month, sum(amount) AS revenue FROM clicks GROUP BY 1

-- admitted: days_as_keys
SELECT cast(ts AS date) AS day, avg(score) AS mean FROM clicks GROUP BY 1

-- admitted: orders_by_status
SELECT user_id, count_if(status = 'paid') AS paid, sum(qty * price) FILTER (WHERE status = 'paid') AS turnover, percentile(price, 0.5) AS median FROM orders GROUP BY user_id

-- admitted: users_of_sessions
SELECT user_id, count(*) AS visits, sum(events) AS events, max(session_end) AS last_seen, sum(revenue) AS revenue FROM sessions GROUP BY user_id

-- admitted: only_frequent_users
SELECT user_id, count(*) AS n FROM clicks GROUP BY user_id HAVING count(*) > 5

-- admitted: last_status_with_a_whole_order
SELECT user_id, max_by(status, struct(ordered_at, order_id)) AS status FROM orders GROUP BY user_id

-- refused: order-not-total: last_url_with_ties
SELECT user_id, max_by(url, ts) AS url FROM clicks GROUP BY user_id

-- admitted: keys_by_hash_and_case
SELECT CASE WHEN amount > 10 THEN 'dear' WHEN amount IS NULL THEN 'none' ELSE 'cheap' END AS kind, count(*) AS n FROM clicks GROUP BY ALL

-- admitted: a_key_that_is_null
SELECT user_id, country, max(struct(ts, event_id, url)).url AS last_url FROM clicks WHERE user_id IS NULL OR country IS NULL GROUP BY user_id, country

-- refused: not-by-key: totals_with_a_join
SELECT k.name, count(*) AS n FROM clicks AS c JOIN countries AS k ON k.code = c.country GROUP BY k.name

-- refused: not-by-key: totals_by_rollup
SELECT country, url, count(*) AS n FROM clicks GROUP BY ROLLUP (country, url)

-- refused: not-by-key: one_row_of_all
SELECT count(*) AS n FROM clicks

-- refused: not-by-key: totals_with_a_window
SELECT user_id, count(*) AS n, rank() OVER (ORDER BY count(*) DESC) AS place FROM clicks GROUP BY user_id

-- refused: order-dependent: list_of_urls
SELECT user_id, collect_list(url) AS urls FROM clicks GROUP BY user_id

-- admitted: sorted_list_of_urls
SELECT user_id, sort_array(collect_list(url)) AS urls, size(collect_set(country)) AS countries FROM clicks GROUP BY user_id

-- admitted: totals_of_a_daily_table
SELECT date_trunc('MONTH', day) AS month, sum(n) AS n, max(users) AS most FROM daily GROUP BY 1

-- admitted: struct_field_as_a_key
SELECT device.os AS os, count(*) AS n, max(device.version) AS newest FROM clicks GROUP BY device.os
