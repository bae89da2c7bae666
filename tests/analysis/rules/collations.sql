-- front: {materialization: table}

-- page: Which spelling of an address is shown would be left to chance.
-- refused: collation `url COLLATE UTF8_LCASE`: a group
SELECT url COLLATE UTF8_LCASE AS url, count(*) AS clicks FROM clicks GROUP BY 1

-- page: The same groups, by a text that is the same for all of a group.
-- accepted: lower case
SELECT lower(url) AS url, count(*) AS clicks FROM clicks GROUP BY 1

-- accepted: comparisons
SELECT event_id, CASE WHEN collate(url, 'UTF8_LCASE') IN ('/a', '/b') THEN 1 ELSE 0 END AS ab FROM clicks WHERE user_id COLLATE UTF8_LCASE = 'ann' AND url COLLATE UTF8_LCASE LIKE '/%'

-- accepted: the collation of text without one
SELECT url COLLATE UTF8_BINARY AS url, count(*) AS clicks FROM clicks GROUP BY 1

-- refused: collation `collate(url, 'UNICODE_CI')`: a greatest value
SELECT user_id, max(collate(url, 'UNICODE_CI')) AS last_url FROM clicks GROUP BY user_id

-- refused: collation `url COLLATE UTF8_LCASE`: an order
SELECT user_id, max_by(event_id, struct(url COLLATE UTF8_LCASE, event_id)) AS last FROM clicks GROUP BY user_id

-- refused: collation `url COLLATE UTF8_LCASE`: a list that is compared
SELECT event_id FROM clicks WHERE url IN (SELECT url COLLATE UTF8_LCASE FROM clicks)

-- refused: collation `user_id COLLATE UTF8_LCASE`: the user of sessions
-- with: {materialization: view}
SELECT event_id, user_id COLLATE UTF8_LCASE AS who, event_ts FROM clicks
