-- front: {materialization: table, incremental: {}, timeseries: {event_time_column: day, partition_column: day, granularity: day}}

-- admitted: exact_percentiles
SELECT cast(ts AS date) AS day, percentile(amount, 0.5) AS median, percentile(amount, array(0.25, 0.75)) AS quartiles FROM clicks GROUP BY 1

-- admitted: median_by_name
SELECT cast(ts AS date) AS day, country, median(amount) AS median FROM clicks GROUP BY 1, 2

-- admitted: within_group
SELECT cast(ts AS date) AS day, percentile_cont(0.9) WITHIN GROUP (ORDER BY amount) AS p90, percentile_disc(0.5) WITHIN GROUP (ORDER BY amount) AS p50 FROM clicks GROUP BY 1

-- refused: not-deterministic: rough_percentile
SELECT cast(ts AS date) AS day, percentile_approx(amount, 0.5) AS median FROM clicks GROUP BY 1

-- admitted: rough_distinct
SELECT cast(ts AS date) AS day, approx_count_distinct(user_id) AS users FROM clicks GROUP BY 1

-- admitted: deviations
SELECT cast(ts AS date) AS day, stddev(amount) AS s, stddev_pop(score) AS sp, var_samp(amount) AS v, variance(score) AS vs FROM clicks GROUP BY 1

-- admitted: sums_of_doubles
SELECT cast(ts AS date) AS day, sum(score) AS total, avg(score) AS mean, min(score) AS least, max(score) AS most FROM clicks GROUP BY 1

-- admitted: covariance
SELECT cast(ts AS date) AS day, covar_pop(amount, score) AS c, regr_count(amount, score) AS n FROM clicks GROUP BY 1

-- admitted: skewed
SELECT cast(ts AS date) AS day, skewness(score) AS skew, kurtosis(score) AS tails FROM clicks GROUP BY 1

-- refused: not-deterministic: histogram_of_sketch
SELECT cast(ts AS date) AS day, histogram_numeric(amount, 5) AS bars FROM clicks GROUP BY 1

-- admitted: fixed_histogram
SELECT cast(ts AS date) AS day, width_bucket(cast(amount AS double), 0, 20, 4) AS bar, count(*) AS n FROM clicks GROUP BY 1, 2

-- admitted: floor_buckets
SELECT cast(ts AS date) AS day, floor(amount / 5) * 5 AS low, count(*) AS n FROM clicks GROUP BY 1, 2

-- admitted: weighted_mean
SELECT cast(ordered_at AS date) AS day, sku, sum(qty * price) / sum(qty) AS mean FROM orders GROUP BY 1, 2

-- admitted: geometric_mean
SELECT cast(ordered_at AS date) AS day, exp(avg(ln(price))) AS mean FROM orders GROUP BY 1

-- admitted: outliers_of_the_day
SELECT day, event_id, (amount - mean) / nullif(deviation, 0) AS z FROM (SELECT cast(ts AS date) AS day, event_id, amount, avg(amount) OVER (PARTITION BY cast(ts AS date)) AS mean, stddev(amount) OVER (PARTITION BY cast(ts AS date)) AS deviation FROM clicks)

-- admitted: rounding
SELECT cast(ts AS date) AS day, event_id, round(amount, 1) AS r, bround(amount, 0) AS b, ceil(amount) AS c, cast(amount AS int) AS i, amount % 3 AS m, amount DIV 2 AS d FROM clicks

-- admitted: nan_and_infinity
SELECT cast(ts AS date) AS day, event_id, nanvl(score, 0) AS s, isnan(score) AS broken FROM clicks

-- refused: not-deterministic: rough_top
SELECT cast(ts AS date) AS day, approx_top_k(url, 3) AS pages FROM clicks GROUP BY 1

-- refused: not-deterministic: sketch_of_users
SELECT cast(ts AS date) AS day, hll_sketch_agg(user_id) AS users FROM clicks GROUP BY 1

-- refused: not-deterministic: with_a_random_key
SELECT cast(ts AS date) AS day, aes_encrypt(user_id, '0123456789012345') AS hidden FROM clicks

-- admitted: median_of_the_last_week
SELECT d.day, percentile(c.amount, 0.5) AS median FROM daily AS d LEFT JOIN clicks AS c ON c.ts >= d.day - INTERVAL 6 DAYS AND c.ts < d.day + INTERVAL 1 DAY GROUP BY d.day

-- admitted: concentration
SELECT day, sum(share * share) AS herfindahl FROM (SELECT cast(ts AS date) AS day, user_id, count(*) / sum(count(*)) OVER (PARTITION BY cast(ts AS date)) AS share FROM clicks GROUP BY 1, 2) GROUP BY day
