-- front: {materialization: table, incremental: {}, timeseries: {event_time_column: event_ts, partition_column: day, granularity: day}}

-- accepted: a cast to a date is a floor to the day
SELECT cast(event_ts AS date) AS day, user_id, url FROM clicks

-- accepted: the double colon is a cast too
SELECT c.event_ts::date AS day, url FROM clicks AS c WHERE url LIKE '/%'

-- accepted: date_trunc by day
SELECT date_trunc('DAY', event_ts) AS day, url FROM clicks

-- accepted: finer than the cell
SELECT date_trunc('hour', event_ts) AS day, count(*) AS n FROM clicks GROUP BY 1

-- accepted: finer than any cell
SELECT date_trunc('MILLISECOND', event_ts) AS day FROM clicks

-- accepted: the time itself
-- with: {timeseries: {event_time_column: event_ts}}
SELECT event_ts, url FROM clicks

-- accepted: to_date and date
SELECT to_date(event_ts) AS day, date(event_ts) AS d FROM clicks

-- accepted: a floor of a floor
SELECT cast(date_trunc('hour', to_timestamp(event_ts)) AS date) AS day FROM clicks

-- accepted: the first of the month in monthly cells
-- elsewhere: SELECT date_trunc('month', event_ts) AS day, count(*) AS n FROM clicks GROUP BY 1
-- with: {timeseries: {event_time_column: event_ts, partition_column: day, granularity: month}}
SELECT trunc(event_ts, 'MM') AS day, count(*) AS n FROM clicks GROUP BY 1

-- accepted: Mondays in weekly cells
-- with: {timeseries: {event_time_column: event_ts, partition_column: day, granularity: week}}
SELECT date_trunc('WEEK', event_ts) AS day, count(*) AS n FROM clicks GROUP BY 1

-- accepted: days of weeks that start on Sunday
-- with: {timeseries: {event_time_column: event_ts, partition_column: day, granularity: week, week_start: sunday}}
SELECT cast(event_ts AS date) AS day, count(*) AS n FROM clicks GROUP BY 1

-- accepted: through a CTE and a subquery
WITH hours AS (SELECT date_trunc('hour', event_ts) AS h, count(*) AS n FROM clicks GROUP BY 1)
SELECT cast(h AS date) AS day, sum(n) AS n FROM (SELECT h, n FROM hours WHERE n > 1) AS x GROUP BY 1

-- accepted: through names given to the columns of a CTE
WITH c(at, who) AS (SELECT event_ts, user_id FROM clicks) SELECT cast(at AS date) AS day, who FROM c

-- accepted: through a view
SELECT cast(event_ts AS date) AS day, count(*) AS n FROM paid GROUP BY cast(event_ts AS date)

-- accepted: both sides of UNION ALL
SELECT cast(event_ts AS date) AS day, url AS what FROM clicks
UNION ALL
SELECT day, name FROM raw.holidays

-- accepted: a source that is read directly
SELECT cast(event_ts AS date) AS day, * EXCEPT (tags) FROM raw.clicks

-- accepted: sessions by their start
-- with: {timeseries: {event_time_column: session_start, partition_column: day}}
SELECT to_date(session_start) AS day, sum(revenue) AS revenue FROM sessions GROUP BY 1

-- accepted: the earliest time of a group inside the cell
SELECT user_id, min(event_ts) AS day FROM clicks GROUP BY user_id, to_date(event_ts)

-- accepted: a daily table, whose day is its own floor, in cells of an hour
-- with: {timeseries: {event_time_column: day, granularity: hour}}
SELECT cast(day AS date) AS day, sum(n) AS n FROM daily GROUP BY 1

-- accepted: dates are days in cells of an hour as well
-- with: {timeseries: {event_time_column: day, granularity: hour}}
SELECT cast(day AS date) AS day, name FROM raw.holidays

-- refused: partition-not-proven `cast(event_ts AS date)`: a day spreads over the hours of it
-- with: {timeseries: {event_time_column: event_ts, partition_column: day, granularity: hour}}
SELECT cast(event_ts AS date) AS day FROM clicks

-- refused: partition-not-proven `date_trunc('month', event_ts)`: a month is no part of a day
SELECT date_trunc('month', event_ts) AS day, count(*) AS n FROM clicks GROUP BY event_ts

-- accepted: the business day, which begins at six
SELECT CASE WHEN hour(event_ts) < 6 THEN to_date(event_ts) - INTERVAL 1 DAY ELSE to_date(event_ts) END AS day, count(*) AS n FROM clicks GROUP BY 1

-- refused: partition-not-proven `CASE WHEN hour(event_ts) < 6 THEN to_date(event_ts) END`: and in no day before six
SELECT CASE WHEN hour(event_ts) < 6 THEN to_date(event_ts) END AS day, url FROM clicks

-- refused: partition-not-proven `CASE WHEN amount > 2 THEN to_date(event_ts) ELSE DATE '2024-02-05' END`: one day for all that is dear
SELECT CASE WHEN amount > 2 THEN to_date(event_ts) ELSE DATE '2024-02-05' END AS day, url FROM clicks

-- accepted: the later of two days
SELECT greatest(to_date(event_ts), to_date(event_ts + INTERVAL 3 HOURS)) AS day, url FROM clicks

-- accepted: a value in place of none, where there is always one
SELECT coalesce(to_date(event_ts), DATE '2024-02-05') AS day, count(*) AS n FROM clicks GROUP BY 1

-- accepted: the parts of a date, put together
SELECT make_date(year(event_ts), month(event_ts), day(event_ts)) AS day, count(*) AS n FROM clicks GROUP BY 1

-- accepted: a day as a text and back
SELECT to_date(date_format(event_ts, 'yyyy-MM-dd')) AS day, count(*) AS n FROM clicks GROUP BY date_format(event_ts, 'yyyy-MM-dd'), 1

-- accepted: each day on which it is valid
SELECT explode(sequence(to_date(event_ts), to_date(event_ts) + INTERVAL 2 DAYS, INTERVAL 1 DAY)) AS day, url FROM clicks

-- accepted: Mondays are in weeks from Sunday, and their weeks reach beyond them
-- with: {timeseries: {event_time_column: event_ts, partition_column: day, granularity: week, week_start: sunday}}
SELECT date_trunc('WEEK', event_ts) AS day FROM clicks

-- accepted: a shifted day
SELECT date_add(event_ts, 1) AS day, url FROM clicks

-- refused: partition-not-proven `date_trunc(unit, event_ts)`: a unit from a column
-- elsewhere: SELECT date_trunc(unit, event_ts) AS day FROM clicks
SELECT date_trunc(unit, event_ts) AS day FROM clicks

-- refused: partition-not-proven `date_trunc('day' || 's', event_ts)`: a unit that is put together
-- alike: no more of it is known than its first part; these two make a unit that there is not
SELECT date_trunc('day' || 's', event_ts) AS day FROM clicks

-- accepted: another time zone, whose clocks change
-- elsewhere: SELECT cast((event_ts AT TIME ZONE 'UTC') AT TIME ZONE 'Europe/Paris' AS date) AS day FROM clicks
SELECT cast(from_utc_timestamp(event_ts, 'Europe/Paris') AS date) AS day FROM clicks

-- refused: partition-not-proven `cast(session_end AS date)`: sessions have their cells by their start
-- with: {timeseries: {event_time_column: session_start, partition_column: day}}
SELECT cast(session_end AS date) AS day FROM sessions

-- refused: partition-not-proven `since`: a time of a lookup
SELECT since AS day, url FROM clicks JOIN raw.countries USING (code)

-- refused: partition-not-proven `since`: one side of the UNION has no time
-- alike: rows of a lookup are read whole, but say nothing of the cells that there are to build
SELECT event_ts AS day FROM clicks
UNION ALL
SELECT since FROM raw.countries

-- refused: partition-not-proven `concat(event_ts, '')`: found where it is computed
-- alike: these texts are read as the same times again, which others are not
WITH x AS (SELECT concat(event_ts, '') AS day, url FROM clicks) SELECT day FROM (SELECT day, url FROM x) AS y

-- refused: no-time-input `SELECT`: only lookups
-- alike: rows of a lookup are read whole, but say nothing of the cells that there are to build
-- with: {timeseries: {event_time_column: since, partition_column: day}}
SELECT since AS day, country FROM raw.countries

-- accepted: so many months later
SELECT add_months(event_ts, 2) AS day FROM clicks

-- accepted: the last day of the month, month by month
-- with: {timeseries: {event_time_column: event_ts, partition_column: day, granularity: month}}
SELECT last_day(event_ts) AS day FROM clicks

-- accepted: and day by day, each last day from its month
SELECT last_day(event_ts) AS day FROM clicks

-- accepted: another column that the query ties to the time
SELECT to_date(since) AS day FROM clicks JOIN raw.countries USING (code) WHERE since BETWEEN event_ts - INTERVAL '1' DAY AND event_ts

-- refused: partition-not-proven `to_date(since)`: one end alone is no tie
SELECT to_date(since) AS day FROM clicks JOIN raw.countries USING (code) WHERE since <= event_ts

-- refused: partition-not-proven `to_date(since)`: nor is one of two alternatives
SELECT to_date(since) AS day FROM clicks JOIN raw.countries USING (code) WHERE since BETWEEN event_ts - INTERVAL '1' DAY AND event_ts OR url = ''

-- refused: partition-not-proven `event_ts + INTERVAL '1' DAY * length(url)`: an interval that differs from row to row
SELECT event_ts + INTERVAL '1' DAY * length(url) AS day FROM clicks

-- accepted: from one zone to another
SELECT to_date(convert_timezone('Europe/Paris', 'UTC', event_ts)) AS day FROM clicks

-- refused: partition-not-proven `to_date(convert_timezone(unit, 'UTC', event_ts))`: from a zone that differs from row to row
-- elsewhere: SELECT cast(event_ts - INTERVAL 12 HOUR * if(unit = 'MONTH', 1, 0) AS date) AS day FROM clicks
SELECT to_date(convert_timezone(unit, 'UTC', event_ts)) AS day FROM clicks

-- refused: partition-not-proven `to_date(convert_timezone(upper(unit), 'UTC', event_ts))`: or is computed
-- elsewhere: SELECT cast(event_ts - INTERVAL 12 HOUR * if(upper(unit) = 'MONTH', 1, 0) AS date) AS day FROM clicks
SELECT to_date(convert_timezone(upper(unit), 'UTC', event_ts)) AS day FROM clicks

-- accepted: by the hour, and tied to a whole day
-- with: {timeseries: {event_time_column: event_ts, partition_column: event_ts, granularity: hour}}
SELECT event_ts, url FROM (SELECT event_ts, url FROM clicks UNION ALL SELECT event_ts, url FROM paid) AS a WHERE EXISTS (SELECT 1 FROM daily AS d WHERE d.day = to_date(a.event_ts))

-- refused: partition-not-proven `coalesce(to_date(k.since), DATE '2024-02-01')`: ON says nothing of what stands there instead
SELECT coalesce(to_date(k.since), DATE '2024-02-01') AS day, event_id FROM clicks LEFT JOIN raw.countries AS k ON coalesce(to_date(k.since), DATE '2024-02-01') = to_date(event_ts)

-- refused: partition-not-proven `trunc(event_ts, 'DD')`: Spark's trunc knows no days, and gives NULL
-- elsewhere: SELECT CAST(NULL AS date) AS day, url FROM clicks
SELECT trunc(event_ts, 'DD') AS day, url FROM clicks

-- refused: partition-not-proven `trunc(event_ts, 'HOUR')`: nor hours
-- elsewhere: SELECT CAST(NULL AS date) AS day, url FROM clicks
SELECT trunc(event_ts, 'HOUR') AS day, url FROM clicks

-- refused: partition-not-proven `date_trunc('H', event_ts)`: a letter is no unit
-- elsewhere: SELECT CAST(NULL AS timestamp) AS day, url FROM clicks
SELECT date_trunc('H', event_ts) AS day, url FROM clicks

-- refused: null-cell `to_date(s.session_start)`: rows without a session would be in no cell
-- elsewhere: SELECT CAST(s.session_start AS date) AS day, c.url FROM clicks AS c LEFT JOIN sessions AS s ON s.session_start = c.event_ts
SELECT to_date(s.session_start) AS day, c.url FROM clicks AS c LEFT JOIN sessions AS s ON s.session_start = c.event_ts

-- accepted: they are not wanted
SELECT * FROM (SELECT to_date(s.session_start) AS day, c.url FROM clicks AS c LEFT JOIN sessions AS s ON s.session_start = c.event_ts) WHERE day IS NOT NULL

-- accepted: the time of the side that keeps its rows
SELECT to_date(c.event_ts) AS day, s.session_id, c.url FROM clicks AS c LEFT JOIN sessions AS s ON s.session_start = c.event_ts

-- accepted: buckets by the hour, and of a quarter of one
-- elsewhere: SELECT date_trunc('hour', event_ts) AS day, count(*) AS n FROM clicks GROUP BY 1
WITH hours AS (SELECT window(event_ts, '1 hour').start AS h, count(*) AS n FROM clicks GROUP BY window(event_ts, '1 hour'))
SELECT window(h, '15 minutes').start AS day, n FROM hours

-- accepted: buckets that slide, and such that begin at another time
-- elsewhere: SELECT date_trunc('hour', event_ts - INTERVAL 15 MINUTE) + INTERVAL 15 MINUTE - to_hours(k) AS day, count(*) AS n FROM clicks CROSS JOIN (VALUES (0), (1)) AS t(k) GROUP BY 1
-- with: {timeseries: {event_time_column: event_ts, partition_column: day, granularity: hour}}
SELECT w.start AS day, w.end AS until, n FROM (SELECT window(event_ts, '2 hours', '1 hour', '15 minutes') AS w, count(*) AS n FROM clicks GROUP BY 1)

-- accepted: a bucket as a whole, handed on and grouped by
-- elsewhere: SELECT day, max(n) AS n FROM (SELECT date_trunc('day', event_ts) AS day, user_id, count(*) AS n FROM clicks GROUP BY 1, 2) GROUP BY 1
SELECT w.START AS day, max(n) AS n FROM (SELECT w, n FROM (SELECT window(event_ts, '1 day') AS w, user_id, count(*) AS n FROM clicks GROUP BY window(event_ts, '1 day'), user_id)) AS x GROUP BY w

-- refused: partition-not-proven `window(event_ts, '1 month').start`: months are of no one length
-- elsewhere: SELECT CAST(NULL AS timestamp) AS day, url FROM clicks
SELECT window(event_ts, '1 month').start AS day, url FROM clicks

-- refused: partition-not-proven `window(event_ts, '1 day')`: a field that buckets have not
-- elsewhere: SELECT CAST(NULL AS timestamp) AS day, url FROM clicks
SELECT w.size AS day, url FROM (SELECT window(event_ts, '1 day') AS w, url FROM clicks)

-- accepted: quarters of an hour by their seconds, and by the text of these
-- elsewhere: SELECT time_bucket(INTERVAL 15 MINUTE, event_ts) AS day, count(*) AS n FROM clicks GROUP BY 1
-- with: {timeseries: {event_time_column: event_ts, partition_column: day, granularity: hour}}
SELECT to_timestamp(from_unixtime(unix_timestamp(event_ts) - unix_timestamp(event_ts) % 900)) AS day, count(*) AS n FROM clicks GROUP BY from_unixtime(unix_timestamp(event_ts) - unix_timestamp(event_ts) % 900)

-- accepted: a number of seconds as a time
-- elsewhere: SELECT time_bucket(INTERVAL 15 MINUTE, event_ts) AS day, count(*) AS n FROM clicks GROUP BY 1
SELECT cast(unix_timestamp(event_ts) - unix_timestamp(event_ts) % 900 AS timestamp) AS day, count(*) AS n FROM clicks GROUP BY 1

-- refused: partition-not-proven `from_unixtime(unix_timestamp(event_ts))`: a text of a time, which is unlike that of a day
-- alike: the other engine compares it as the time that it is
-- elsewhere: SELECT date_trunc('second', event_ts) AS day FROM clicks
SELECT from_unixtime(unix_timestamp(event_ts)) AS day FROM clicks

-- refused: partition-not-proven `cast(unix_timestamp(event_ts) / 2 AS timestamp)`: a number that counts no seconds
-- elsewhere: SELECT to_timestamp(epoch(event_ts) / 2)::timestamp AS day FROM clicks
SELECT cast(unix_timestamp(event_ts) / 2 AS timestamp) AS day FROM clicks

-- accepted: weeks that begin on Sunday, by the Sunday after a week before
-- elsewhere: SELECT date_trunc('week', event_ts + INTERVAL 1 DAY) - INTERVAL 1 DAY AS day, count(*) AS n FROM clicks GROUP BY 1
-- with: {timeseries: {event_time_column: event_ts, partition_column: day, granularity: week, week_start: sunday}}
SELECT next_day(date_sub(event_ts, 7), 'SUN') AS day, count(*) AS n FROM clicks GROUP BY 1

-- accepted: the same by weeks that begin on Monday, a day later
-- with: {timeseries: {event_time_column: event_ts, partition_column: day, granularity: week, week_start: sunday}}
SELECT date_trunc('WEEK', event_ts + INTERVAL 1 DAY) - INTERVAL 1 DAY AS day, count(*) AS n FROM clicks GROUP BY 1

-- refused: partition-not-proven `next_day(event_ts, unit)`: a day of the week that a column names
-- elsewhere: SELECT cast(event_ts + INTERVAL 3 DAY AS date) AS day FROM clicks
SELECT next_day(event_ts, unit) AS day FROM clicks

-- accepted: a date as a text
SELECT cast(cast(event_ts AS date) AS string) AS day, count(*) AS n FROM clicks GROUP BY 1

-- accepted: the same within, grouped by and made a date again
SELECT to_date(d) AS day, n FROM (SELECT string(date(event_ts)) AS d, count(*) AS n FROM clicks GROUP BY string(date(event_ts)))

-- accepted: UNPIVOT keeps the cell of each row
-- elsewhere: SELECT cast(event_ts AS date) AS day, kind, v FROM (SELECT event_ts, url, code FROM clicks) UNPIVOT (v FOR kind IN (url, code))
SELECT to_date(event_ts) AS day, kind, v FROM clicks UNPIVOT (v FOR kind IN (url, code))

-- refused: partition-not-proven `v`: one of the times that UNPIVOT makes one column of
-- elsewhere: SELECT cast(v AS date) AS day FROM (SELECT event_ts AS v FROM clicks UNION ALL SELECT event_ts - INTERVAL 3 DAY FROM clicks)
SELECT v AS day FROM (SELECT event_ts, event_ts - INTERVAL 3 DAY AS other FROM clicks) UNPIVOT (v FOR kind IN (event_ts, other))

-- page: Nothing says how long after its start a session ends, so the day of the end can be any.
-- refused: partition-not-proven `cast(session_end AS date)`: the day of the end
-- with: {timeseries: {event_time_column: day, partition_column: day}}
SELECT cast(session_end AS date) AS day, count(*) AS visits FROM sessions GROUP BY 1

-- page: Use the start, or limit the distance. This query leaves out sessions of more than two days.
-- accepted: the day of an end that is near
-- with: {timeseries: {event_time_column: day, partition_column: day}}
SELECT cast(session_end AS date) AS day, count(*) AS visits
FROM sessions
WHERE session_end BETWEEN session_start AND session_start + INTERVAL 2 DAYS
GROUP BY 1

-- page: A click without a session has no `s.session_start`, so its row would be in no day.
-- refused: null-cell `cast(s.session_start AS date)`: clicks without a session
SELECT cast(s.session_start AS date) AS day, c.event_id
FROM clicks AS c LEFT JOIN sessions AS s ON s.session_start = c.event_ts

-- page: Take the time of the side that keeps its rows.
-- accepted: the day of the click
SELECT cast(c.event_ts AS date) AS day, c.event_id, s.session_id
FROM clicks AS c LEFT JOIN sessions AS s ON s.session_start = c.event_ts

-- page: Nothing that the query reads has a time: `raw.countries` declares no `event_time_column`.
-- refused: no-time-input `SELECT`: countries alone
-- alike: rows of a lookup are read whole, but say nothing of the cells that there are to build
-- with: {timeseries: {event_time_column: since, partition_column: day}}
SELECT cast(since AS date) AS day, country FROM raw.countries

-- page: Declare the time of the source, or build the table whole.
-- accepted: countries alone, whole
-- with: {incremental: {enabled: false}, timeseries: {event_time_column: day}}
SELECT cast(since AS date) AS day, country FROM raw.countries
