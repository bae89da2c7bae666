-- front: {materialization: table}

-- accepted: hashes of a row's own columns
SELECT xxhash64(event_id) % 10 AS bucket, user_id AS `user`, percentile(amount, 0.5) AS p FROM clicks GROUP BY event_id, user_id

-- refused: not-deterministic `uuid`
-- refused: not-deterministic `rand`
-- refused: not-deterministic `input_file_name`
-- refused: not-deterministic `monotonically_increasing_id`
SELECT uuid() AS id, rand(42) AS r, input_file_name() AS f, monotonically_increasing_id() AS i FROM clicks

-- refused: not-deterministic `current_user`
-- refused: not-deterministic `percentile_approx`
SELECT current_user AS u, percentile_approx(amount, 0.5) AS p FROM clicks

-- refused: not-deterministic `TABLESAMPLE`
SELECT url FROM clicks TABLESAMPLE (10 PERCENT)

-- refused: not-deterministic `rand`: in sessions
-- with: {materialization: sessions, sessions: {user: user_id, gap: 1 hour}}
SELECT sum(rand()) AS s FROM clicks

-- refused: not-deterministic `aes_encrypt`
SELECT aes_encrypt(user_id, '0000111122223333') AS a, aes_encrypt(user_id, '0000111122223333', 'ECB') AS b, aes_encrypt(user_id, '0000111122223333', 'CBC', 'PKCS', '0000111122223333') AS c FROM clicks

-- refused: not-deterministic `hll_sketch_agg`
-- refused: not-deterministic `kll_sketch_agg_bigint`
-- refused: not-deterministic `theta_sketch_agg`
SELECT hll_sketch_estimate(hll_sketch_agg(url)) AS a, kll_sketch_agg_bigint(length(url)) AS b, theta_sketch_agg(url) AS c, approx_count_distinct(url) AS d, count_min_sketch(url, 0.1D, 0.9D, 1) AS e FROM clicks

-- page: Another run would draw other rows.
-- refused: not-deterministic `rand`: a sample
SELECT event_id, url FROM clicks WHERE rand() < 0.01

-- page: A hash of the key draws the same rows every time.
-- accepted: the same sample every time
SELECT event_id, url FROM clicks WHERE pmod(xxhash64(event_id), 100) = 0
