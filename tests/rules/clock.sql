-- front: {materialization: table}

-- accepted: times that are given
SELECT unix_timestamp(event_ts) AS s, x.`current_date` AS d, x.now AS n FROM (SELECT event_ts, event_ts AS `current_date`, 1 AS now FROM clicks) AS x

-- refused: clock `current_timestamp`
-- refused: clock `now`
-- refused: clock `unix_timestamp`
SELECT url, current_timestamp AS a, now() AS b, unix_timestamp() AS c FROM clicks

-- refused: clock `current_date`: in a WHERE of a view
-- with: {materialization: view}
SELECT url FROM clicks WHERE event_ts < current_date()
