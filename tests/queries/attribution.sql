-- front: {materialization: table, incremental: {}, timeseries: {event_time_column: day, partition_column: day, granularity: day}}

-- admitted: last_touch_in_thirty_days
SELECT cast(o.ordered_at AS date) AS day, o.order_id, max_by(c.url, struct(c.ts, c.event_id)) AS touch FROM orders AS o LEFT JOIN clicks AS c ON c.user_id = o.user_id AND c.ts BETWEEN o.ordered_at - INTERVAL 30 DAYS AND o.ordered_at GROUP BY 1, 2

-- admitted: first_touch_in_seven_days
SELECT cast(o.ordered_at AS date) AS day, o.order_id, min_by(c.url, struct(c.ts, c.event_id)) AS touch FROM orders AS o JOIN clicks AS c ON c.user_id = o.user_id AND c.ts >= o.ordered_at - INTERVAL 7 DAYS AND c.ts < o.ordered_at GROUP BY 1, 2

-- refused: order-not-total: last_touch_with_ties
SELECT cast(o.ordered_at AS date) AS day, o.order_id, max_by(c.url, c.ts) AS touch FROM orders AS o LEFT JOIN clicks AS c ON c.user_id = o.user_id AND c.ts BETWEEN o.ordered_at - INTERVAL 30 DAYS AND o.ordered_at GROUP BY 1, 2

-- admitted: last_touch_by_row_number
SELECT day, order_id, url FROM (SELECT cast(o.ordered_at AS date) AS day, o.order_id, c.url, row_number() OVER (PARTITION BY o.order_id, o.ordered_at ORDER BY c.ts DESC, c.event_id) AS place FROM orders AS o JOIN clicks AS c ON c.user_id = o.user_id AND c.ts BETWEEN o.ordered_at - INTERVAL 30 DAYS AND o.ordered_at) WHERE place = 1

-- refused: order-not-total: last_touch_by_row_number_ties
SELECT day, order_id, url FROM (SELECT cast(o.ordered_at AS date) AS day, o.order_id, c.url, row_number() OVER (PARTITION BY o.order_id, o.ordered_at ORDER BY c.ts DESC) AS place FROM orders AS o JOIN clicks AS c ON c.user_id = o.user_id AND c.ts BETWEEN o.ordered_at - INTERVAL 30 DAYS AND o.ordered_at) WHERE place = 1

-- refused: join-over-cells: last_touch_ever
SELECT cast(o.ordered_at AS date) AS day, o.order_id, max_by(c.url, struct(c.ts, c.event_id)) AS touch FROM orders AS o LEFT JOIN clicks AS c ON c.user_id = o.user_id AND c.ts <= o.ordered_at GROUP BY 1, 2

-- admitted: linear_attribution
SELECT cast(o.ordered_at AS date) AS day, o.order_id, c.url, o.price / count(*) OVER (PARTITION BY o.order_id, o.ordered_at) AS credit FROM orders AS o JOIN clicks AS c ON c.user_id = o.user_id AND c.ts BETWEEN o.ordered_at - INTERVAL 2 DAYS AND o.ordered_at

-- admitted: position_based_attribution
SELECT day, order_id, url, CASE WHEN place = 1 OR place = touches THEN 0.4 ELSE 0.2 / greatest(touches - 2, 1) END AS credit FROM (SELECT cast(o.ordered_at AS date) AS day, o.order_id, c.url, row_number() OVER (PARTITION BY o.order_id, o.ordered_at ORDER BY c.ts, c.event_id) AS place, count(*) OVER (PARTITION BY o.order_id, o.ordered_at) AS touches FROM orders AS o JOIN clicks AS c ON c.user_id = o.user_id AND c.ts BETWEEN o.ordered_at - INTERVAL 3 DAYS AND o.ordered_at)

-- admitted: decayed_attribution
SELECT cast(o.ordered_at AS date) AS day, c.url, sum(o.price * pow(0.5, datediff(o.ordered_at, c.ts))) AS credit FROM orders AS o JOIN clicks AS c ON c.user_id = o.user_id AND c.ts BETWEEN o.ordered_at - INTERVAL 5 DAYS AND o.ordered_at GROUP BY 1, 2

-- admitted: orders_of_the_session
SELECT cast(s.session_start AS date) AS day, s.session_id, count(o.order_id) AS orders, sum(o.price) AS paid FROM sessions AS s LEFT JOIN orders AS o ON o.user_id = s.user_id AND o.ordered_at BETWEEN s.session_start AND s.session_start + INTERVAL 3 HOURS AND o.ordered_at <= s.session_end + INTERVAL 5 MINUTES GROUP BY 1, 2

-- refused: join-over-cells: orders_up_to_the_end_of_the_session
SELECT cast(s.session_start AS date) AS day, s.session_id, count(o.order_id) AS orders FROM sessions AS s LEFT JOIN orders AS o ON o.user_id = s.user_id AND o.ordered_at BETWEEN s.session_start AND s.session_end GROUP BY 1, 2

-- admitted: session_before_the_order
SELECT cast(o.ordered_at AS date) AS day, o.order_id, max(s.session_start) AS visit, max_by(s.entry_url, struct(s.session_start, s.session_id)) AS entry FROM orders AS o LEFT JOIN sessions AS s ON s.user_id = o.user_id AND s.session_start <= o.ordered_at AND s.session_start > o.ordered_at - INTERVAL 1 DAY GROUP BY 1, 2

-- admitted: assisted_by_country
SELECT day, country, sum(paid) AS paid FROM (SELECT cast(o.ordered_at AS date) AS day, o.order_id, max_by(c.country, struct(c.ts, c.event_id)) AS country, max(o.price) AS paid FROM orders AS o JOIN clicks AS c ON c.user_id = o.user_id AND c.ts BETWEEN o.ordered_at - INTERVAL 1 DAY AND o.ordered_at GROUP BY 1, 2) GROUP BY 1, 2

-- admitted: last_click_by_correlated_limit
SELECT cast(o.ordered_at AS date) AS day, o.order_id, (SELECT max(c.ts) FROM clicks AS c WHERE c.user_id = o.user_id AND c.ts <= o.ordered_at AND c.ts >= o.ordered_at - INTERVAL 1 DAY) AS last_click FROM orders AS o

-- admitted: entries_by_first_in_session
SELECT cast(session_start AS date) AS day, entry_url, count(*) AS visits, sum(revenue) AS revenue FROM sessions GROUP BY 1, 2

-- admitted: bounce_rate
SELECT cast(session_start AS date) AS day, avg(if(events = 1, 1.0, 0.0)) AS bounced FROM sessions GROUP BY 1

-- admitted: length_of_visits
SELECT cast(session_start AS date) AS day, sum(unix_timestamp(session_end) - unix_timestamp(session_start)) AS seconds, max(session_end) AS last FROM sessions GROUP BY 1

-- refused: partition-not-proven: sessions_by_their_end
SELECT cast(session_end AS date) AS day, count(*) AS n FROM sessions GROUP BY 1

-- admitted: sessions_by_end_within_two_days
SELECT cast(session_end AS date) AS day, count(*) AS n FROM sessions WHERE session_end BETWEEN session_start AND session_start + INTERVAL 2 DAYS GROUP BY 1

-- admitted: visits_of_a_user_in_a_week
SELECT cast(session_start AS date) AS day, session_id, count(*) OVER (PARTITION BY user_id ORDER BY session_start RANGE BETWEEN INTERVAL 7 DAYS PRECEDING AND CURRENT ROW) AS visits FROM sessions

-- admitted: next_visit_soon
SELECT cast(session_start AS date) AS day, session_id, coalesce(lead(session_start) OVER (PARTITION BY user_id ORDER BY session_start, session_id) - session_start < INTERVAL 2 DAYS, false) AS soon FROM sessions
