-- front: {materialization: table, incremental: {}, timeseries: {event_time_column: day, partition_column: day, granularity: day}}

-- admitted: price_within_thirty_days
SELECT day, order_id, price FROM (SELECT cast(o.ordered_at AS date) AS day, o.order_id, p.price, row_number() OVER (PARTITION BY o.order_id, o.ordered_at ORDER BY p.valid_from DESC, p.sku) AS place FROM orders AS o LEFT JOIN prices AS p ON p.sku = o.sku AND p.valid_from <= o.ordered_at AND p.valid_from > o.ordered_at - INTERVAL 30 DAYS) WHERE place = 1

-- admitted: price_by_max_by
SELECT cast(o.ordered_at AS date) AS day, o.order_id, o.sku, max_by(p.price, struct(p.valid_from, p.sku)) AS listed FROM orders AS o JOIN prices AS p ON p.sku = o.sku AND p.valid_from BETWEEN o.ordered_at - INTERVAL 60 DAYS AND o.ordered_at GROUP BY 1, 2, 3

-- refused: join-over-cells: price_of_any_age
SELECT cast(o.ordered_at AS date) AS day, o.order_id, max_by(p.price, struct(p.valid_from, p.sku)) AS listed FROM orders AS o JOIN prices AS p ON p.sku = o.sku AND p.valid_from <= o.ordered_at GROUP BY 1, 2

-- refused: window-over-cells: price_intervals_by_lead
SELECT cast(o.ordered_at AS date) AS day, o.order_id, v.price FROM orders AS o JOIN (SELECT sku, price, valid_from, lead(valid_from) OVER (PARTITION BY sku ORDER BY valid_from) AS valid_to FROM prices) AS v ON v.sku = o.sku AND o.ordered_at >= v.valid_from AND o.ordered_at < v.valid_to

-- admitted: country_names
SELECT cast(c.ts AS date) AS day, k.name, count(*) AS n FROM clicks AS c LEFT JOIN countries AS k ON k.code = c.country GROUP BY 1, 2

-- admitted: country_regions_using
SELECT cast(ts AS date) AS day, region, sum(amount) AS revenue FROM clicks JOIN (SELECT code AS country, region FROM countries) USING (country) GROUP BY 1, 2

-- admitted: natural_join_of_a_lookup
SELECT cast(ts AS date) AS day, plan, count(*) AS n FROM (SELECT user_id, ts FROM clicks) NATURAL JOIN users GROUP BY 1, 2

-- admitted: two_lookups
SELECT cast(c.ts AS date) AS day, u.plan, k.region, count(*) AS n FROM clicks AS c LEFT JOIN users AS u ON u.user_id = c.user_id LEFT JOIN countries AS k ON k.code = c.country GROUP BY 1, 2, 3

-- admitted: lookup_then_its_nullable_side
SELECT cast(c.ts AS date) AS day, c.event_id, r.name FROM clicks AS c LEFT JOIN users AS u ON u.user_id = c.user_id LEFT JOIN countries AS r ON r.code = u.home

-- admitted: optional_events_then_their_lookup
SELECT cast(o.ordered_at AS date) AS day, o.order_id, c.event_id, k.region FROM orders AS o LEFT JOIN clicks AS c ON c.user_id = o.user_id AND c.ts BETWEEN o.ordered_at - INTERVAL 1 HOUR AND o.ordered_at LEFT JOIN countries AS k ON k.code = c.country

-- admitted: inner_join_to_a_nullable_side
SELECT cast(o.ordered_at AS date) AS day, o.order_id, c.event_id, k.name FROM orders AS o LEFT JOIN clicks AS c ON c.user_id = o.user_id AND c.ts BETWEEN o.ordered_at - INTERVAL 1 HOUR AND o.ordered_at JOIN countries AS k ON k.code = c.country

-- admitted: lookup_by_range_of_dates
SELECT cast(c.ts AS date) AS day, c.event_id, h.name FROM clicks AS c JOIN calendar AS h ON cast(c.ts AS date) BETWEEN h.day AND date_add(h.day, 2) WHERE h.holiday

-- admitted: holidays_by_semi_join
SELECT cast(ts AS date) AS day, count(*) AS n FROM clicks LEFT SEMI JOIN (SELECT day FROM calendar WHERE holiday) AS h ON h.day = cast(ts AS date) GROUP BY 1

-- admitted: workdays_by_not_in
SELECT cast(ts AS date) AS day, count(*) AS n FROM clicks WHERE cast(ts AS date) NOT IN (SELECT day FROM calendar WHERE holiday) GROUP BY 1

-- admitted: rates_in_euro
SELECT cast(o.ordered_at AS date) AS day, sum(o.price * r.rate) AS euro FROM orders AS o LEFT JOIN rates AS r ON r.currency = o.currency GROUP BY 1

-- admitted: rate_of_the_day
SELECT cast(o.ordered_at AS date) AS day, o.order_id, p.price AS listed FROM orders AS o LEFT JOIN prices AS p ON p.sku = o.sku AND cast(p.valid_from AS date) = cast(o.ordered_at AS date)

-- admitted: cross_join_of_one_row
SELECT cast(ts AS date) AS day, count(*) / max(total.n) AS per_country FROM clicks CROSS JOIN (SELECT count(*) AS n FROM countries) AS total GROUP BY 1

-- refused: join-over-cells: all_countries_of_each_click_right
SELECT cast(c.ts AS date) AS day, k.name FROM clicks AS c RIGHT JOIN countries AS k ON k.code = c.country

-- admitted: full_join_of_days
SELECT coalesce(a.day, b.day) AS day, a.n, b.orders FROM daily AS a FULL JOIN (SELECT cast(ordered_at AS date) AS day, count(*) AS orders FROM orders GROUP BY 1) AS b ON a.day = b.day

-- admitted: full_join_using_the_day
SELECT day, n, orders FROM daily FULL JOIN (SELECT cast(ordered_at AS date) AS day, count(*) AS orders FROM orders GROUP BY 1) USING (day)

-- admitted: clicks_and_orders_within_an_hour
SELECT cast(coalesce(c.ts, o.ordered_at) AS date) AS day, c.event_id, o.order_id FROM clicks AS c FULL JOIN orders AS o ON o.user_id = c.user_id AND o.ordered_at BETWEEN c.ts AND c.ts + INTERVAL 1 HOUR

-- refused: join-over-cells: full_join_of_users
SELECT cast(coalesce(c.ts, o.ordered_at) AS date) AS day, c.event_id, o.order_id FROM clicks AS c FULL JOIN orders AS o ON o.user_id = c.user_id

-- refused: null-cell: full_join_with_the_day_of_one
SELECT a.day, a.n, b.orders FROM daily AS a FULL JOIN (SELECT cast(ordered_at AS date) AS day, count(*) AS orders FROM orders GROUP BY 1) AS b ON a.day = b.day

-- admitted: lookup_of_values
SELECT cast(ts AS date) AS day, w.weight, count(*) AS n FROM clicks JOIN VALUES ('/', 1), ('/pay', 5) AS w(url, weight) ON w.url = clicks.url GROUP BY 1, 2

-- admitted: lookup_ranked_inside
SELECT cast(c.ts AS date) AS day, c.event_id, k.place FROM clicks AS c JOIN (SELECT code, rank() OVER (ORDER BY code) AS place FROM countries) AS k ON k.code = c.country

-- admitted: lookup_in_coalesce_of_keys
SELECT cast(c.ts AS date) AS day, coalesce(k.name, 'elsewhere') AS name, count(*) AS n FROM clicks AS c LEFT JOIN countries AS k ON k.code = coalesce(c.country, 'XX') GROUP BY 1, 2

-- admitted: source_read_directly
SELECT cast(valid_from AS date) AS day, sku, price FROM raw.prices WHERE price > 3

-- admitted: lateral_lookup
SELECT cast(c.ts AS date) AS day, c.event_id, k.name FROM clicks AS c, LATERAL (SELECT name FROM countries WHERE countries.code = c.country) AS k
