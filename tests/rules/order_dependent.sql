-- front: {materialization: table}

-- accepted: an order is given, or does not matter
SELECT user_id, min_by(url, event_ts) AS a, sort_array(collect_list(url)) AS b, size(collect_set(url)) AS c, listagg(url) WITHIN GROUP (ORDER BY url) AS d FROM clicks GROUP BY user_id

-- refused: order-dependent `last`: in a window without order
SELECT url, last(url) OVER (PARTITION BY user_id) AS a FROM clicks

-- accepted: in a named window
SELECT url, first(url) OVER w AS a FROM clicks WINDOW w AS (PARTITION BY user_id ORDER BY event_ts)

-- accepted: in a window
SELECT url, first_value(url) OVER (PARTITION BY user_id ORDER BY event_ts, event_id) AS a FROM clicks

-- accepted: in sessions events are in order
-- with: {materialization: sessions, sessions: {user: user_id, gap: 1 hour}}
SELECT first(url) AS a, last(url) IGNORE NULLS AS b, collect_list(url) AS c FROM clicks

-- refused: order-dependent `first`
-- refused: order-dependent `last_value`
-- refused: order-dependent `collect_list`
-- elsewhere: SELECT user_id, first(url) AS a, last(url) AS b, list(url) AS c FROM clicks GROUP BY user_id
SELECT user_id, first(url) AS a, last_value(url) AS b, collect_list(url) AS c FROM clicks GROUP BY user_id

-- refused: not-deterministic `any_value`: in sessions too
-- with: {materialization: sessions, sessions: {user: user_id, gap: 1 hour}}
SELECT any_value(url) AS a FROM clicks

-- refused: not-deterministic `mode`
-- refused: not-deterministic `mode`
SELECT user_id, mode(url) AS a, mode(url, false) AS b FROM clicks GROUP BY user_id

-- refused: not-deterministic `mode`: in sessions too
-- with: {materialization: sessions, sessions: {user: user_id, gap: 1 hour}}
SELECT mode(url) AS a FROM clicks

-- accepted: of values as frequent the least, or the greatest
-- elsewhere: SELECT user_id, min(url) AS a, max(url) AS b FROM clicks GROUP BY user_id
SELECT user_id, mode(url, true) AS a, mode() WITHIN GROUP (ORDER BY url DESC) AS b FROM clicks GROUP BY user_id

-- accepted: whatever the order was is forgotten
-- elsewhere: SELECT user_id, min(url) AS a FROM clicks GROUP BY user_id
SELECT user_id, array_min(transform(array_distinct(collect_list(url)), x -> upper(x))) AS a FROM clicks GROUP BY user_id

-- refused: order-dependent `collect_list`: used before it is forgotten
-- elsewhere: SELECT user_id, first(url) AS a FROM clicks GROUP BY user_id
SELECT user_id, array_max(slice(collect_list(url), 1, 1)) AS a FROM clicks GROUP BY user_id
