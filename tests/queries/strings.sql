-- front: {materialization: table, incremental: {}, timeseries: {event_time_column: day, partition_column: day, granularity: day}}

-- admitted: formatted_day
-- with: {timeseries: {event_time_column: day, partition_column: day, granularity: day}}
SELECT to_date(date_format(ts, 'yyyy-MM-dd')) AS day, count(*) AS n FROM clicks GROUP BY 1

-- admitted: grouped_by_formatted_day
SELECT date_format(ts, 'yyyy-MM-dd') AS text, cast(date_format(ts, 'yyyy-MM-dd') AS date) AS day, count(*) AS n FROM clicks GROUP BY 1, 2

-- admitted: formatted_hour_as_a_key
SELECT cast(ts AS date) AS day, date_format(ts, 'HH:00') AS hour, count(*) AS n FROM clicks GROUP BY 1, 2

-- admitted: first_ten_letters
SELECT cast(substring(cast(ts AS string), 1, 10) AS date) AS day, count(*) AS n FROM clicks GROUP BY 1

-- admitted: parsed_sent_at_beside_the_time
SELECT cast(ts AS date) AS day, event_id, to_timestamp(sent_at, 'yyyy-MM-dd HH:mm:ss') AS sent FROM clicks

-- refused: partition-not-proven: parsed_sent_at_as_the_day
SELECT to_date(sent_at, 'yyyy-MM-dd HH:mm:ss') AS day, count(*) AS n FROM clicks GROUP BY 1

-- admitted: make_date_of_parts
SELECT make_date(year(ts), month(ts), day(ts)) AS day, count(*) AS n FROM clicks GROUP BY 1

-- refused: partition-not-proven: make_date_of_the_wrong_part
SELECT make_date(year(ts), month(ts), day(sent_at)) AS day, count(*) AS n FROM clicks GROUP BY 1

-- admitted: coalesced_day
SELECT coalesce(cast(ts AS date), DATE '1970-01-01') AS day, count(*) AS n FROM clicks GROUP BY 1

-- admitted: extracted_parts
SELECT cast(ts AS date) AS day, extract(YEAR FROM ts) AS year, extract(WEEK FROM ts) AS week, date_part('DOW', ts) AS dow, count(*) AS n FROM clicks GROUP BY ALL

-- admitted: text_functions
SELECT cast(ts AS date) AS day, split(url, '/')[1] AS top, regexp_extract(coalesce(user_id, ''), '([a-z]+)', 1) AS word, initcap(country) AS country, lpad(cast(hour(ts) AS string), 2, '0') AS hour, concat_ws('-', user_id, country) AS both FROM clicks

-- admitted: hashed_user
SELECT cast(ts AS date) AS day, sha2(user_id, 256) AS who, md5(url) AS page, crc32(event_id) AS sum, base64(encode(country, 'UTF-8')) AS coded FROM clicks

-- admitted: query_of_a_url
SELECT cast(ts AS date) AS day, parse_url(concat('https://shop.test', url, '?utm_source=mail'), 'QUERY', 'utm_source') AS source, count(*) AS n FROM clicks GROUP BY 1, 2

-- refused: clock: compared_with_the_word_today
SELECT cast(ts AS date) AS day, count(*) AS n FROM clicks WHERE ts < 'today' GROUP BY 1

-- admitted: dates_as_texts_compared
SELECT cast(ts AS date) AS day, count(*) AS n FROM clicks WHERE cast(cast(ts AS date) AS string) BETWEEN '2024-03-01' AND '2024-03-31' GROUP BY 1

-- admitted: epoch_there_and_back
SELECT cast(timestamp_seconds(unix_timestamp(ts)) AS date) AS day, count(*) AS n FROM clicks GROUP BY 1

-- admitted: epoch_days
SELECT cast(ts AS date) AS day, unix_date(cast(ts AS date)) AS number, unix_micros(ts) % 1000000 AS rest, event_id FROM clicks

-- admitted: case_over_hours_for_the_day
SELECT CASE WHEN hour(ts) < 6 THEN cast(ts AS date) - INTERVAL 1 DAY ELSE cast(ts AS date) END AS day, count(*) AS n FROM clicks GROUP BY 1

-- admitted: if_over_the_day
SELECT if(hour(ts) >= 22, date_add(cast(ts AS date), 1), cast(ts AS date)) AS day, event_id FROM clicks

-- admitted: greatest_of_two_days
SELECT greatest(cast(ts AS date), cast(ts - INTERVAL 2 HOURS AS date)) AS day, count(*) AS n FROM clicks GROUP BY 1

-- refused: partition-not-proven: year_and_month_as_text
SELECT date_format(ts, 'MM-dd') AS day, count(*) AS n FROM clicks GROUP BY 1

-- admitted: collated_and_like
SELECT cast(ts AS date) AS day, event_id FROM clicks WHERE url LIKE ANY ('/pay%', '/item%') AND user_id RLIKE '^[a-z]' AND NOT url ILIKE '%CART%'

-- admitted: quoted_names
SELECT `c`.`event_id` AS `the id`, cast(`c`.ts AS date) AS `day` FROM `clicks` AS `c`

-- admitted: comment_in_the_middle
SELECT cast(ts AS date) AS day, /* how many; with a ' quote */ count(*) AS n -- of them
FROM clicks GROUP BY 1
