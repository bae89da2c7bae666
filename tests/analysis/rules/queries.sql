-- front: {materialization: table}

-- page: The model's own cuts: a session is the group.
-- refused: not-session-wise `GROUP BY`: a group in a session
-- with: {materialization: sessions, sessions: {user: user_id, gap: 30 minutes}}
SELECT url, count(*) AS clicks FROM clicks GROUP BY url

-- page: Leave GROUP BY out; count within the session.
-- accepted: one row for each session
-- with: {materialization: sessions, sessions: {user: user_id, gap: 30 minutes}}
SELECT count(*) AS clicks, count(DISTINCT url) AS pages FROM clicks

-- page: A session has many urls.
-- refused: column-outside-aggregate `url`: any page
-- with: {materialization: sessions, sessions: {user: user_id, gap: 30 minutes}}
SELECT url, count(*) AS clicks FROM clicks

-- page: Say which one is meant.
-- accepted: the first page
-- with: {materialization: sessions, sessions: {user: user_id, gap: 30 minutes}}
SELECT first(url) AS entry_url, count(*) AS clicks FROM clicks

-- page: An aggregate inside an aggregate needs a second level.
-- refused: nested-aggregate `count`: a mean of counts
-- with: {materialization: sessions, sessions: {user: user_id, gap: 30 minutes}}
SELECT avg(count(*)) AS mean FROM clicks

-- page: Aggregate once here, and again in a model that reads the sessions.
-- accepted: the counts
-- with: {materialization: sessions, sessions: {user: user_id, gap: 30 minutes}}
SELECT count(*) AS clicks FROM clicks

-- page: Every sessions model has a column `session_start` already.
-- refused: session-column `min(event_ts) AS session_start`: the start
-- with: {materialization: sessions, sessions: {user: user_id, gap: 30 minutes}}
SELECT min(event_ts) AS session_start, count(*) AS clicks FROM clicks

-- page: Leave it out.
-- accepted: without the start
-- with: {materialization: sessions, sessions: {user: user_id, gap: 30 minutes}}
SELECT count(*) AS clicks FROM clicks

-- page: `raw.countries` has no event time.
-- refused: no-event-time `raw.countries`: of countries
-- with: {materialization: sessions, sessions: {user: code, gap: 30 minutes}}
SELECT count(*) AS n FROM raw.countries

-- page: Read a table of events, or declare `event_time_column` of the source.
-- accepted: of clicks
-- with: {materialization: sessions, sessions: {user: code, gap: 30 minutes}}
SELECT count(*) AS n FROM clicks

-- page: A comma too many.
-- refused: bad-sql `,`: a comma too many
SELECT event_id, url, FROM clicks

-- page: Without it:
-- accepted: without it
SELECT event_id, url FROM clicks

-- page: Two statements.
-- refused: not-one-select `SELECT`: two statements
SELECT event_id FROM clicks; SELECT url FROM clicks

-- page: One SELECT.
-- accepted: one
SELECT event_id, url FROM clicks

-- page: Spark has no QUALIFY.
-- refused: unsupported-sql `QUALIFY`: the first click of each user
SELECT event_id, user_id FROM clicks
QUALIFY row_number() OVER (PARTITION BY user_id ORDER BY event_ts, event_id) = 1

-- page: Filter in a SELECT around it.
-- accepted: the first click of each user
SELECT event_id, user_id
FROM (
  SELECT event_id, user_id,
    row_number() OVER (PARTITION BY user_id ORDER BY event_ts, event_id) AS place
  FROM clicks)
WHERE place = 1

-- page: The function of another database.
-- refused: unknown-function `countif`: of another database
SELECT user_id, countif(amount > 0) AS paid FROM clicks GROUP BY user_id

-- page: Spark's name.
-- accepted: Spark's name
SELECT user_id, count_if(amount > 0) AS paid FROM clicks GROUP BY user_id

-- page: A typing error in FROM.
-- refused: unknown-table `click`: a typing error
SELECT event_id FROM click

-- page: The name of a model or source.
-- accepted: a model
SELECT event_id FROM clicks

-- page: A typing error in a column.
-- refused: unknown-column `user`: a typing error
SELECT event_id, user FROM clicks

-- page: A column of the table.
-- accepted: a column
SELECT event_id, user_id FROM clicks

-- page: `@run_date` means nothing.
-- refused: unknown-variable `@run_date`: a variable
SELECT event_id FROM clicks WHERE event_ts >= @run_date

-- page: The [interval of the run](../reference/keys.md#filters-by-the-interval-of-a-run) has names of its own.
-- accepted: the interval of a run
SELECT event_id FROM clicks WHERE event_ts >= @start_ts
