-- front: {materialization: table}

-- accepted: an order is given, or does not matter
SELECT user_id, min_by(url, struct(event_ts, event_id)) AS a, sort_array(collect_list(url)) AS b, size(collect_set(url)) AS c, listagg(url) WITHIN GROUP (ORDER BY url) AS d FROM clicks GROUP BY user_id

-- refused: order-dependent `last`: in a window without order
SELECT url, last(url) OVER (PARTITION BY user_id) AS a FROM clicks

-- accepted: in a named window
SELECT url, first(url) OVER w AS a FROM clicks WINDOW w AS (PARTITION BY user_id ORDER BY event_ts, event_id)

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

-- refused: order-dependent `first`: in a named window without order
SELECT url, first(url) OVER w AS a FROM clicks WINDOW w AS (PARTITION BY user_id)

-- refused: order-dependent `collect_list`: places in a list say how rows came
-- refused: order-dependent `collect_list`
-- elsewhere: SELECT user_id, list(url) AS a FROM clicks GROUP BY user_id
SELECT user_id, array_max(transform(collect_list(url), (x, i) -> concat(i, x))) AS a, size(filter(collect_list(url), (x, i) -> i > 2 AND x = '/a')) AS b FROM clicks GROUP BY user_id

-- refused: order-dependent `collect_list`: a comparison that knows of ties
-- elsewhere: SELECT user_id, list(url) AS a FROM clicks GROUP BY user_id
SELECT user_id, array_sort(collect_list(url), (a, b) -> length(a) - length(b)) AS a FROM clicks GROUP BY user_id

-- accepted: a list that is sorted, then numbered
-- elsewhere: SELECT user_id, list(url ORDER BY url) AS a FROM clicks GROUP BY user_id
SELECT user_id, transform(sort_array(collect_list(url)), (x, i) -> concat(i, x)) AS a FROM clicks GROUP BY user_id

-- refused: order-dependent `listagg`: in an order of something else
-- elsewhere: SELECT user_id, list(url ORDER BY amount) AS a FROM clicks GROUP BY user_id
SELECT user_id, listagg(url, ',') WITHIN GROUP (ORDER BY amount) AS a FROM clicks GROUP BY user_id

-- accepted: in the order of a key
-- elsewhere: SELECT user_id, list(url ORDER BY event_ts, event_id) AS a FROM clicks GROUP BY user_id
SELECT user_id, listagg(url, ',') WITHIN GROUP (ORDER BY event_ts, event_id) AS a FROM clicks GROUP BY user_id

-- accepted: any value of what is the same in all rows
-- elsewhere: SELECT user_id, first(user_id) AS a, first(url) AS b FROM clicks GROUP BY user_id, url
SELECT user_id, any_value(user_id) AS a, first(upper(url)) AS b FROM clicks GROUP BY user_id, url

-- accepted: and of what a lookup by key says of it
SELECT c.user_id, first(u.first_seen) AS a FROM clicks AS c LEFT JOIN users AS u ON u.user_id = c.user_id GROUP BY c.user_id

-- refused: order-dependent `collect_list`: one element of a list
-- refused: order-dependent `collect_list`: lists compared
-- elsewhere: SELECT user_id, list(url) AS a FROM clicks GROUP BY user_id
SELECT user_id, array_max(split(collect_list(url)[0], '')) AS a, array_max(CASE WHEN collect_list(url) < array('/b') THEN array(1) ELSE array(2) END) AS b FROM clicks GROUP BY user_id

-- page: The list has the order in which rows happen to come.
-- refused: order-dependent `collect_list`: a list in any order
SELECT user_id, collect_list(url) AS urls FROM clicks GROUP BY user_id

-- page: Sort it.
-- accepted: a sorted list
SELECT user_id, sort_array(collect_list(url)) AS urls FROM clicks GROUP BY user_id
