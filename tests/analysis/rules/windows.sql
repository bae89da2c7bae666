-- front: {materialization: table, incremental: {}, timeseries: {event_time_column: event_ts, partition_column: day, granularity: day}}

-- accepted: partitioned by the cell
SELECT to_date(event_ts) AS day, row_number() OVER (PARTITION BY user_id, to_date(event_ts) ORDER BY event_ts) AS n FROM clicks

-- accepted: partitioned by an hour in it
SELECT to_date(event_ts) AS day, sum(amount) OVER (PARTITION BY date_trunc('HOUR', event_ts)) AS s FROM clicks

-- accepted: a named window
SELECT to_date(event_ts) AS day, count(*) OVER w AS n FROM clicks WINDOW w AS (PARTITION BY to_date(event_ts))

-- accepted: after aggregation
SELECT day, n, rank() OVER (PARTITION BY day ORDER BY n) AS r FROM (SELECT to_date(event_ts) AS day, user_id, count(*) AS n FROM clicks GROUP BY 1, 2)

-- accepted: over a lookup
SELECT to_date(event_ts) AS day, r FROM clicks JOIN (SELECT code, row_number() OVER (ORDER BY code) AS r FROM raw.countries) USING (code)

-- refused: window-over-cells `lag(event_ts) OVER (PARTITION BY user_id ORDER BY event_ts)`: by user alone
SELECT to_date(event_ts) AS day, lag(event_ts) OVER (PARTITION BY user_id ORDER BY event_ts) AS before FROM clicks

-- refused: window-over-cells `row_number() OVER (ORDER BY event_ts)`: by nothing
SELECT to_date(event_ts) AS day, row_number() OVER (ORDER BY event_ts) AS n FROM clicks

-- refused: window-over-cells `count(*) OVER ()`: over everything
SELECT to_date(event_ts) AS day, count(*) OVER () AS n FROM clicks

-- refused: window-over-cells `count(*) OVER w`: a named window by user alone
SELECT to_date(event_ts) AS day, count(*) OVER w AS n FROM clicks WINDOW w AS (PARTITION BY user_id)

-- accepted: a RANGE frame over the time
SELECT to_date(event_ts) AS day, count(*) OVER (PARTITION BY user_id ORDER BY event_ts RANGE BETWEEN INTERVAL 30 MINUTES PRECEDING AND CURRENT ROW) AS n FROM clicks

-- accepted: a RANGE frame over days, some of them ahead
SELECT day, sum(n) OVER (ORDER BY day RANGE BETWEEN INTERVAL 6 DAYS PRECEDING AND INTERVAL 1 DAY FOLLOWING) AS n FROM (SELECT to_date(event_ts) AS day, count(*) AS n FROM clicks GROUP BY 1)

-- accepted: backwards
SELECT to_date(event_ts) AS day, count(*) OVER (ORDER BY event_ts DESC RANGE BETWEEN INTERVAL '1' HOUR PRECEDING AND INTERVAL '1' HOUR FOLLOWING) AS n FROM clicks

-- accepted: a frame in a named window
SELECT to_date(event_ts) AS day, count(*) OVER w AS n FROM clicks WINDOW w AS (ORDER BY event_ts RANGE BETWEEN INTERVAL 1 DAY 2 HOURS PRECEDING AND CURRENT ROW)

-- accepted: the start of a range frame alone
SELECT to_date(event_ts) AS day, count(*) OVER (ORDER BY event_ts RANGE INTERVAL 1 DAY PRECEDING) AS n FROM clicks

-- refused: window-over-cells `count(*) OVER (ORDER BY event_ts ROWS BETWEEN 6 PRECEDING AND CURRENT ROW)`: ROWS are not days
SELECT to_date(event_ts) AS day, count(*) OVER (ORDER BY event_ts ROWS BETWEEN 6 PRECEDING AND CURRENT ROW) AS n FROM clicks

-- refused: window-over-cells `sum(amount) OVER (PARTITION BY user_id ORDER BY event_ts)`: a missing frame begins at the beginning
SELECT to_date(event_ts) AS day, sum(amount) OVER (PARTITION BY user_id ORDER BY event_ts) AS s FROM clicks

-- refused: window-over-cells `count(*) OVER (ORDER BY event_ts RANGE BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW)`: an unbounded frame
SELECT to_date(event_ts) AS day, count(*) OVER (ORDER BY event_ts RANGE BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW) AS n FROM clicks

-- refused: window-over-cells `count(*) OVER (ORDER BY event_ts RANGE BETWEEN CURRENT ROW AND UNBOUNDED FOLLOWING)`: unbounded at the other end
SELECT to_date(event_ts) AS day, count(*) OVER (ORDER BY event_ts RANGE BETWEEN CURRENT ROW AND UNBOUNDED FOLLOWING) AS n FROM clicks

-- refused: window-over-cells `count(*) OVER (ORDER BY amount RANGE BETWEEN 1 PRECEDING AND CURRENT ROW)`: ordered by something else
SELECT to_date(event_ts) AS day, count(*) OVER (ORDER BY amount RANGE BETWEEN 1 PRECEDING AND CURRENT ROW) AS n FROM clicks

-- refused: window-over-cells `lead(event_ts) OVER (PARTITION BY user_id ORDER BY event_ts)`: the next event may be years away
SELECT to_date(event_ts) AS day, lead(event_ts) OVER (PARTITION BY user_id ORDER BY event_ts) AS after FROM clicks

-- accepted: LAG that is only asked whether it is near
SELECT to_date(event_ts) AS day, CASE WHEN event_ts - lag(event_ts) OVER (PARTITION BY user_id ORDER BY event_ts) <= INTERVAL 30 MINUTES THEN 0 ELSE 1 END AS starts FROM clicks

-- accepted: the same by minutes, and with LEAD
SELECT to_date(event_ts) AS day, if(timestampdiff(MINUTE, event_ts, lead(event_ts) OVER (PARTITION BY user_id ORDER BY event_ts)) < 30, 0, 1) AS ends FROM clicks

-- accepted: days between dates, and the first of a user
SELECT day, if(datediff(day, lag(day) OVER (PARTITION BY user_id ORDER BY day)) = 1, 0, 1) AS starts FROM (SELECT DISTINCT to_date(event_ts) AS day, user_id FROM clicks)

-- accepted: days between times: one may be almost a day further than so many days
SELECT to_date(event_ts) AS day, CASE WHEN datediff(event_ts, lag(event_ts) OVER (PARTITION BY user_id ORDER BY event_ts)) <= 1 THEN 0 ELSE 1 END AS starts FROM clicks

-- accepted: whole hours, as datediff with a unit counts them
SELECT to_date(event_ts) AS day, if(datediff(HOUR, lag(event_ts) OVER (PARTITION BY user_id ORDER BY event_ts), event_ts) < 2, 0, 1) AS starts FROM clicks

-- refused: window-over-cells `lag(event_ts) OVER (PARTITION BY user_id ORDER BY event_ts)`: many days, and none is not many
SELECT to_date(event_ts) AS day, if(datediff(event_ts, lag(event_ts) OVER (PARTITION BY user_id ORDER BY event_ts)) > 1, 1, 0) AS starts FROM clicks

-- accepted: a query around it keeps what is near
SELECT to_date(event_ts) AS day, before FROM (SELECT event_ts, lag(event_ts) OVER (PARTITION BY user_id ORDER BY event_ts) AS before FROM clicks) WHERE before >= event_ts - INTERVAL 1 HOUR

-- accepted: far, or the first: true for a far row as for none
SELECT to_date(event_ts) AS day, CASE WHEN lag(event_ts) OVER (PARTITION BY user_id ORDER BY event_ts) IS NULL OR event_ts - lag(event_ts) OVER (PARTITION BY user_id ORDER BY event_ts) > INTERVAL 30 MINUTES THEN 1 ELSE 0 END AS starts FROM clicks

-- accepted: the same in a CTE, with a further term and a second order
WITH seen AS (SELECT event_ts, url, lag(event_ts) OVER (PARTITION BY user_id ORDER BY event_ts, event_id) AS before FROM clicks) SELECT to_date(event_ts) AS day, if(before IS NULL OR event_ts - before > INTERVAL 30 MINUTES OR url = '/a', 1, 0) AS starts FROM seen

-- accepted: not near, with what is unknown taken for not near
SELECT to_date(event_ts) AS day, NOT coalesce(event_ts - lag(event_ts) OVER (PARTITION BY user_id ORDER BY event_ts) <= INTERVAL 30 MINUTES, false) AS starts FROM clicks

-- accepted: how long it was, where it was not long
SELECT to_date(event_ts) AS day, CASE WHEN event_ts - lag(event_ts) OVER w <= INTERVAL 30 MINUTES THEN hour(lag(event_ts) OVER w) END AS at FROM clicks WINDOW w AS (PARTITION BY user_id ORDER BY event_ts)

-- accepted: a neighbour that nobody asks for
SELECT to_date(event_ts) AS day, url FROM (SELECT event_ts, url, lag(event_ts) OVER (PARTITION BY user_id ORDER BY event_ts, event_id) AS before FROM clicks)

-- refused: window-over-cells `lag(event_ts) OVER (PARTITION BY user_id ORDER BY event_ts)`: far in a CTE, and none is not far
WITH seen AS (SELECT event_ts, lag(event_ts) OVER (PARTITION BY user_id ORDER BY event_ts) AS before FROM clicks) SELECT to_date(event_ts) AS day, if(event_ts - before > INTERVAL 30 MINUTES, 1, 0) AS starts FROM seen

-- refused: window-over-cells `lag(event_ts) OVER (PARTITION BY user_id ORDER BY event_ts)`: near, and shown all the same
WITH seen AS (SELECT event_ts, lag(event_ts) OVER (PARTITION BY user_id ORDER BY event_ts) AS before FROM clicks) SELECT to_date(event_ts) AS day, before, if(event_ts - before <= INTERVAL 30 MINUTES, 1, 0) AS near FROM seen

-- refused: window-over-cells `lag(event_ts) OVER (PARTITION BY user_id ORDER BY event_ts)`: false and unknown are two values
SELECT to_date(event_ts) AS day, event_ts - lag(event_ts) OVER (PARTITION BY user_id ORDER BY event_ts) <= INTERVAL 30 MINUTES AS near FROM clicks

-- refused: window-over-cells `lag(event_ts) OVER (PARTITION BY user_id ORDER BY event_ts, event_id)`: near or not, as another term says
SELECT to_date(event_ts) AS day, if((event_ts - lag(event_ts) OVER (PARTITION BY user_id ORDER BY event_ts, event_id) <= INTERVAL 30 MINUTES) = (url = '/b'), 1, 0) AS starts FROM clicks

-- refused: window-over-cells `lag(event_ts) OVER (PARTITION BY user_id ORDER BY event_ts)`: one side of a UNION shows it
SELECT to_date(event_ts) AS day, came FROM (SELECT event_ts, lag(event_ts) OVER (PARTITION BY user_id ORDER BY event_ts) AS before FROM clicks UNION ALL SELECT event_ts, event_ts AS before FROM paid) AS x (event_ts, came)

-- accepted: seconds as numbers
-- elsewhere: SELECT cast(event_ts AS date) AS day, count(*) OVER (ORDER BY epoch(event_ts) RANGE BETWEEN 3600 PRECEDING AND CURRENT ROW) AS n FROM clicks
SELECT to_date(event_ts) AS day, count(*) OVER (ORDER BY unix_timestamp(event_ts) RANGE BETWEEN 3600 PRECEDING AND CURRENT ROW) AS n FROM clicks

-- accepted: month to date, each day from its whole month
SELECT day, sum(n) OVER (PARTITION BY date_trunc('MONTH', day) ORDER BY day) AS so_far FROM (SELECT to_date(event_ts) AS day, count(*) AS n FROM clicks GROUP BY 1)

-- accepted: by the month as a text
-- elsewhere: SELECT cast(event_ts AS date) AS day, event_id, sum(amount) OVER (PARTITION BY user_id, strftime(event_ts, '%Y-%m') ORDER BY event_ts, event_id ROWS UNBOUNDED PRECEDING) AS so_far FROM clicks
SELECT to_date(event_ts) AS day, event_id, sum(amount) OVER (PARTITION BY user_id, date_format(event_ts, 'yyyy-MM') ORDER BY event_ts, event_id ROWS UNBOUNDED PRECEDING) AS so_far FROM clicks

-- accepted: the same named in a query inside
-- elsewhere: SELECT day, event_id, lag(url) OVER (PARTITION BY user_id, month ORDER BY event_ts, event_id) AS page FROM (SELECT cast(event_ts AS date) AS day, event_ts, event_id, user_id, url, strftime(event_ts, '%Y%m') AS month FROM clicks)
SELECT day, event_id, lag(url) OVER (PARTITION BY user_id, month ORDER BY event_ts, event_id) AS page FROM (SELECT to_date(event_ts) AS day, event_ts, event_id, user_id, url, date_format(event_ts, 'yyyyMM') AS month FROM clicks)

-- accepted: by year and quarter, and a number of year and month
SELECT to_date(event_ts) AS day, event_id, ntile(2) OVER (PARTITION BY user_id, year(event_ts), quarter(event_ts) ORDER BY event_ts, event_id) AS half, count(*) OVER (PARTITION BY year(event_ts) * 100 + month(event_ts)) AS n FROM clicks

-- accepted: by day as its parts, and in a struct
SELECT to_date(event_ts) AS day, event_id, count(*) OVER (PARTITION BY extract(YEAR FROM event_ts), extract(MONTH FROM event_ts), extract(DAY FROM event_ts)) AS n, sum(amount) OVER (PARTITION BY struct(user_id, to_date(event_ts)) ORDER BY event_ts, event_id ROWS BETWEEN 2 PRECEDING AND CURRENT ROW) AS s FROM clicks

-- refused: window-over-cells `count(*) OVER (PARTITION BY date_format(event_ts, 'MM-dd'))`: a day of any year
-- alike: these few rows are of one year
SELECT to_date(event_ts) AS day, count(*) OVER (PARTITION BY date_format(event_ts, 'MM-dd')) AS n FROM clicks

-- refused: window-over-cells `count(*) OVER (PARTITION BY year(event_ts) + month(event_ts))`: 2024 + 2 is 2023 + 3
SELECT to_date(event_ts) AS day, count(*) OVER (PARTITION BY year(event_ts) + month(event_ts)) AS n FROM clicks

-- accepted: week to date
SELECT to_date(event_ts) AS day, count(*) OVER (PARTITION BY user_id, date_trunc('WEEK', event_ts) ORDER BY event_ts, event_id) AS so_far FROM clicks

-- refused: window-over-cells `lag(event_ts) OVER (PARTITION BY user_id ORDER BY event_ts)`: asked whether it is far
SELECT to_date(event_ts) AS day, CASE WHEN event_ts - lag(event_ts) OVER (PARTITION BY user_id ORDER BY event_ts) > INTERVAL 30 MINUTES THEN 1 ELSE 0 END AS starts FROM clicks

-- refused: window-over-cells `lag(event_ts) OVER (PARTITION BY user_id ORDER BY event_ts)`: NOT turns near into far
SELECT to_date(event_ts) AS day, CASE WHEN NOT event_ts - lag(event_ts) OVER (PARTITION BY user_id ORDER BY event_ts) <= INTERVAL 30 MINUTES THEN 1 ELSE 0 END AS starts FROM clicks

-- refused: window-over-cells `lag(url) OVER (PARTITION BY user_id ORDER BY event_ts, event_id)`: another column says nothing of time
SELECT to_date(event_ts) AS day, CASE WHEN lag(url) OVER (PARTITION BY user_id ORDER BY event_ts, event_id) <= url THEN 1 ELSE 0 END AS same FROM clicks

-- refused: window-over-cells `lag(event_ts, 1, event_ts) OVER (PARTITION BY user_id ORDER BY event_ts)`: a default for no row
SELECT to_date(event_ts) AS day, CASE WHEN event_ts - lag(event_ts, 1, event_ts) OVER (PARTITION BY user_id ORDER BY event_ts) <= INTERVAL 30 MINUTES THEN 0 ELSE 1 END AS starts FROM clicks

-- refused: window-over-cells `lag(event_ts) OVER (PARTITION BY user_id ORDER BY event_ts)`: a CASE that asks for false
SELECT to_date(event_ts) AS day, CASE false WHEN event_ts - lag(event_ts) OVER (PARTITION BY user_id ORDER BY event_ts) <= INTERVAL 30 MINUTES THEN 1 ELSE 0 END AS starts FROM clicks

-- refused: window-over-cells `count(*) OVER (PARTITION BY s.session_start)`: all clicks without a session are in one partition
SELECT to_date(c.event_ts) AS day, count(*) OVER (PARTITION BY s.session_start) AS n FROM clicks AS c LEFT JOIN sessions AS s ON s.session_start = c.event_ts

-- refused: window-over-cells `count(*) OVER w`: the same by a named window, the sides turned
SELECT to_date(c.event_ts) AS day, count(*) OVER w AS n FROM sessions AS s RIGHT JOIN clicks AS c ON s.session_start = c.event_ts WINDOW w AS (PARTITION BY to_date(s.session_start))

-- refused: window-over-cells `count(*) OVER (PARTITION BY to_date(k.since))`: the same through a lookup
SELECT to_date(event_ts) AS day, count(*) OVER (PARTITION BY to_date(k.since)) AS n FROM clicks LEFT JOIN raw.countries AS k ON to_date(k.since) = to_date(event_ts)

-- refused: window-over-cells `count(*) OVER (ORDER BY s.session_start RANGE BETWEEN INTERVAL 1 DAY PRECEDING AND CURRENT ROW)`: all NULLs are peers
SELECT to_date(c.event_ts) AS day, count(*) OVER (ORDER BY s.session_start RANGE BETWEEN INTERVAL 1 DAY PRECEDING AND CURRENT ROW) AS n FROM clicks AS c LEFT JOIN sessions AS s ON s.session_start = c.event_ts

-- refused: window-over-cells `count(*) OVER (PARTITION BY came)`: in the columns of a model that is read
-- with: {timeseries: {event_time_column: day, partition_column: day}}
SELECT day, count(*) OVER (PARTITION BY came) AS n FROM arrivals

-- accepted: the click's own day is beside it
SELECT to_date(c.event_ts) AS day, count(*) OVER (PARTITION BY s.session_start, to_date(c.event_ts)) AS n FROM clicks AS c LEFT JOIN sessions AS s ON s.session_start = c.event_ts

-- accepted: no click is without a session
SELECT to_date(c.event_ts) AS day, count(*) OVER (PARTITION BY s.session_start) AS n FROM clicks AS c LEFT JOIN sessions AS s ON s.session_start = c.event_ts WHERE s.session_start IS NOT NULL

-- accepted: WHERE asks for another column of the session
SELECT to_date(c.event_ts) AS day, count(*) OVER (ORDER BY s.session_start RANGE BETWEEN INTERVAL 1 DAY PRECEDING AND CURRENT ROW) AS n FROM clicks AS c LEFT JOIN sessions AS s ON s.session_start = c.event_ts WHERE s.events > 0

-- accepted: an inner join to a lookup
SELECT to_date(event_ts) AS day, count(*) OVER (PARTITION BY to_date(k.since)) AS n FROM clicks JOIN raw.countries AS k ON to_date(k.since) = to_date(event_ts)

-- accepted: LAG near by asks no NULL
SELECT to_date(c.event_ts) AS day, CASE WHEN s.session_start - lag(s.session_start) OVER (PARTITION BY c.user_id ORDER BY s.session_start, c.event_ts) <= INTERVAL 30 MINUTES THEN 1 ELSE 0 END AS near FROM clicks AS c LEFT JOIN sessions AS s ON s.session_start = c.event_ts

-- accepted: LAG in an order without ties, near by its first column
SELECT to_date(event_ts) AS day, event_id, CASE WHEN event_ts - lag(event_ts) OVER (PARTITION BY user_id ORDER BY event_ts, event_id) <= INTERVAL 30 MINUTES THEN 0 ELSE 1 END AS starts FROM clicks

-- refused: window-over-cells `lag(event_ts) OVER (PARTITION BY user_id ORDER BY event_ts)`: a NATURAL join by the neighbour
-- alike: no country is since a click
SELECT to_date(event_ts) AS day, country FROM (SELECT event_ts, lag(event_ts) OVER (PARTITION BY user_id ORDER BY event_ts) AS since FROM clicks) NATURAL JOIN raw.countries

-- refused: window-over-cells `lag(event_ts) OVER (PARTITION BY user_id ORDER BY event_ts)`: a join USING the neighbour
-- alike: no country is since a click
SELECT to_date(event_ts) AS day, country FROM (SELECT event_ts, lag(event_ts) OVER (PARTITION BY user_id ORDER BY event_ts) AS since FROM clicks) LEFT JOIN raw.countries USING (since)

-- accepted: another column of the row before, where that is near
SELECT to_date(event_ts) AS day, event_id, CASE WHEN event_ts - lag(event_ts) OVER w <= INTERVAL 30 HOURS THEN lag(url) OVER w END AS came_from FROM clicks WINDOW w AS (PARTITION BY user_id ORDER BY event_ts, event_id)

-- accepted: with something else where there is none, or none that is near
SELECT to_date(event_ts) AS day, event_id, CASE WHEN lag(url) OVER w IS NULL OR event_ts - lag(event_ts) OVER w > INTERVAL 30 HOURS THEN 'none' ELSE lag(url) OVER w END AS came_from FROM clicks WINDOW w AS (PARTITION BY user_id ORDER BY event_ts, event_id)

-- accepted: in a CTE, and LEAD
WITH seen AS (SELECT event_ts, event_id, amount, lead(event_ts) OVER w AS later, lead(amount) OVER w AS more FROM clicks WINDOW w AS (PARTITION BY user_id ORDER BY event_ts, event_id)) SELECT to_date(event_ts) AS day, event_id, if(later <= event_ts + INTERVAL 30 HOURS, more - amount, 0) AS more FROM seen

-- accepted: a query around it keeps what is near, and shows another column
SELECT to_date(event_ts) AS day, event_id, page FROM (SELECT event_ts, event_id, lag(event_ts) OVER w AS before, lag(url) OVER w AS page FROM clicks WINDOW w AS (PARTITION BY user_id ORDER BY event_ts, event_id)) WHERE before >= event_ts - INTERVAL 30 HOURS

-- accepted: far, or another page: true for a far row as for none
SELECT to_date(event_ts) AS day, event_id, CASE WHEN lag(event_ts) OVER w IS NULL OR event_ts - lag(event_ts) OVER w > INTERVAL 30 MINUTES OR lag(url) OVER w <> url THEN 1 ELSE 0 END AS starts FROM clicks WINDOW w AS (PARTITION BY user_id ORDER BY event_ts, event_id)

-- refused: window-over-cells `lag(url, 2) OVER w`: the row before is near, and not the one before that
SELECT to_date(event_ts) AS day, event_id, CASE WHEN event_ts - lag(event_ts) OVER w <= INTERVAL 30 HOURS THEN lag(url, 2) OVER w END AS came_from FROM clicks WINDOW w AS (PARTITION BY user_id ORDER BY event_ts, event_id)

-- refused: window-over-cells `lag(url) OVER (PARTITION BY code ORDER BY event_ts, event_id)`: a row of another partition
SELECT to_date(event_ts) AS day, event_id, CASE WHEN event_ts - lag(event_ts) OVER w <= INTERVAL 30 HOURS THEN lag(url) OVER (PARTITION BY code ORDER BY event_ts, event_id) END AS came_from FROM clicks WINDOW w AS (PARTITION BY user_id ORDER BY event_ts, event_id)

-- refused: window-over-cells `lag(event_ts) OVER w`: shown where it is far, too
-- refused: window-over-cells `lag(url) OVER w`
-- refused: window-over-cells `lag(url) OVER w`
SELECT to_date(event_ts) AS day, event_id, CASE WHEN event_ts - lag(event_ts) OVER w <= INTERVAL 30 MINUTES THEN lag(url) OVER w ELSE upper(lag(url) OVER w) END AS came_from FROM clicks WINDOW w AS (PARTITION BY user_id ORDER BY event_ts, event_id)

-- refused: window-over-cells `lag(c.url) OVER w`: a row before without a time is of any time
-- alike: no click without a session is before one with a session, in these few rows
SELECT to_date(c.event_ts) AS day, c.event_id, CASE WHEN s.session_start - lag(s.session_start) OVER w <= INTERVAL 30 HOURS THEN lag(c.url) OVER w END AS came_from FROM clicks AS c LEFT JOIN sessions AS s ON s.session_start = c.event_ts WINDOW w AS (PARTITION BY c.user_id ORDER BY s.session_start, c.event_ts, c.event_id)

-- page: A running total over all time makes each day depend on every earlier day.
-- refused: window-over-cells `sum(n) OVER (ORDER BY day)`: a running total
-- with: {timeseries: {event_time_column: day, partition_column: day}}
SELECT day, sum(n) OVER (ORDER BY day) AS so_far
FROM (SELECT day, sum(n) AS n FROM daily GROUP BY day)

-- page: Let the total begin again each month, or keep a total per key in a `cumulative_aggregate`.
-- accepted: a total that begins again each month
-- with: {timeseries: {event_time_column: day, partition_column: day}}
SELECT day, sum(n) OVER (PARTITION BY date_trunc('MONTH', day) ORDER BY day) AS so_far
FROM (SELECT day, sum(n) AS n FROM daily GROUP BY day)

-- page: A frame of ROWS reaches as far back as there are rows: over days without clicks, any distance.
-- refused: window-over-cells `avg(n) OVER (ORDER BY day ROWS BETWEEN 6 PRECEDING AND CURRENT ROW)`: the last seven rows
-- with: {timeseries: {event_time_column: day, partition_column: day}}
SELECT day, avg(n) OVER (ORDER BY day ROWS BETWEEN 6 PRECEDING AND CURRENT ROW) AS week
FROM (SELECT day, sum(n) AS n FROM daily GROUP BY day)

-- page: A frame of RANGE says how much time it covers.
-- accepted: the last seven days
-- with: {timeseries: {event_time_column: day, partition_column: day}}
SELECT day, avg(n) OVER (
  ORDER BY day RANGE BETWEEN INTERVAL 6 DAYS PRECEDING AND CURRENT ROW) AS week
FROM (SELECT day, sum(n) AS n FROM daily GROUP BY day)

-- page: The page before can be of any age.
-- refused: window-over-cells `lag(url) OVER w`: the page before
SELECT to_date(event_ts) AS day, event_id, lag(url) OVER w AS came_from
FROM clicks WINDOW w AS (PARTITION BY user_id ORDER BY event_ts, event_id)

-- page: Say how far back it may be: one that is older counts as none.
-- accepted: the page before, of thirty days at most
SELECT to_date(event_ts) AS day, event_id,
  CASE WHEN event_ts - lag(event_ts) OVER w <= INTERVAL 30 DAYS THEN lag(url) OVER w END AS came_from
FROM clicks WINDOW w AS (PARTITION BY user_id ORDER BY event_ts, event_id)

-- page: The click before can be of any age.
-- refused: window-over-cells `lag(event_ts) OVER w`: seconds since the click before
SELECT to_date(event_ts) AS day, event_id,
  timestampdiff(SECOND, lag(event_ts) OVER w, event_ts) AS seconds
FROM clicks WINDOW w AS (PARTITION BY user_id ORDER BY event_ts, event_id)

-- page: Say how near it has to be. Beyond that the column is NULL.
-- accepted: seconds since a click that is near
SELECT to_date(event_ts) AS day, event_id,
  CASE WHEN event_ts - lag(event_ts) OVER w <= INTERVAL 30 MINUTES
    THEN timestampdiff(SECOND, lag(event_ts) OVER w, event_ts) END AS seconds
FROM clicks WINDOW w AS (PARTITION BY user_id ORDER BY event_ts, event_id)

-- refused: unsupported-sql `sum(amount) FILTER (WHERE url IS NULL) OVER (PARTITION BY user_id, to_date(event_ts))`: whatever is built
SELECT to_date(event_ts) AS day, sum(amount) FILTER (WHERE url IS NULL) OVER (PARTITION BY user_id, to_date(event_ts)) AS s FROM clicks

-- accepted: a condition in the value
SELECT to_date(event_ts) AS day, sum(CASE WHEN url IS NULL THEN amount END) OVER (PARTITION BY user_id, to_date(event_ts)) AS s FROM clicks
