-- front: {materialization: table, incremental: {}, timeseries: {event_time_column: day, partition_column: day, granularity: day}}

-- admitted: exploded_tags
SELECT cast(ts AS date) AS day, tag, count(*) AS n FROM (SELECT ts, explode(tags) AS tag FROM clicks) GROUP BY 1, 2

-- admitted: exploded_tags_with_positions
SELECT cast(ts AS date) AS day, event_id, place, tag FROM clicks LATERAL VIEW OUTER posexplode(tags) AS place, tag

-- admitted: tags_by_lateral_function
SELECT cast(c.ts AS date) AS day, t.tag, count(*) AS n FROM clicks AS c, LATERAL explode(c.tags) AS t(tag) GROUP BY 1, 2

-- admitted: lateral_subquery_of_the_row
SELECT cast(c.ts AS date) AS day, c.event_id, l.net FROM clicks AS c, LATERAL (SELECT c.amount / 1.19 AS net) AS l

-- admitted: lateral_join_left
SELECT cast(c.ts AS date) AS day, c.event_id, l.n FROM clicks AS c LEFT JOIN LATERAL (SELECT count(*) AS n FROM orders AS o WHERE o.user_id = c.user_id AND o.ordered_at BETWEEN c.ts AND c.ts + INTERVAL 1 DAY) AS l ON true

-- refused: join-over-cells: lateral_join_of_any_time
SELECT cast(c.ts AS date) AS day, c.event_id, l.n FROM clicks AS c LEFT JOIN LATERAL (SELECT count(*) AS n FROM orders AS o WHERE o.user_id = c.user_id) AS l ON true

-- admitted: json_fields
SELECT cast(ts AS date) AS day, get_json_object(props, '$.plan') AS plan, count(*) AS n FROM clicks GROUP BY 1, 2

-- admitted: json_to_a_struct
SELECT cast(ts AS date) AS day, event_id, from_json(props, 'plan STRING, depth INT').depth AS depth FROM clicks

-- admitted: json_tuple_in_a_view
SELECT cast(ts AS date) AS day, plan, depth FROM clicks LATERAL VIEW json_tuple(props, 'plan', 'depth') AS plan, depth

-- admitted: json_of_the_group
SELECT cast(ts AS date) AS day, to_json(named_struct('n', count(*), 'users', count(DISTINCT user_id))) AS summary FROM clicks GROUP BY 1

-- admitted: fields_of_structs
SELECT cast(ts AS date) AS day, device.os, max(device.version) AS newest FROM clicks GROUP BY 1, device.os

-- admitted: whole_structs_kept
SELECT cast(ts AS date) AS day, event_id, device, named_struct('a', amount, 'b', country) AS pair FROM clicks

-- admitted: higher_order_over_a_column
SELECT cast(ts AS date) AS day, event_id, transform(tags, (t, i) -> concat(t, i)) AS numbered, exists(tags, t -> t = 'new') AS is_new, aggregate(tags, 0, (a, t) -> a + length(t)) AS letters FROM clicks

-- refused: order-dependent: indexed_over_a_collection
SELECT cast(ts AS date) AS day, sort_array(transform(collect_list(url), (u, i) -> concat(u, i))) AS pages FROM clicks GROUP BY 1

-- refused: order-dependent: filtered_by_index_of_a_collection
SELECT cast(ts AS date) AS day, sort_array(filter(collect_list(url), (u, i) -> i = 0)) AS pages FROM clicks GROUP BY 1

-- admitted: transformed_then_sorted
SELECT cast(ts AS date) AS day, sort_array(transform(collect_list(url), u -> upper(u))) AS pages FROM clicks GROUP BY 1

-- refused: order-dependent: path_without_order
SELECT cast(ts AS date) AS day, user_id, concat_ws('>', collect_list(url)) AS path FROM clicks GROUP BY 1, 2

-- admitted: path_by_sorted_structs
SELECT cast(ts AS date) AS day, user_id, concat_ws('>', transform(sort_array(collect_list(struct(ts, event_id, url))), s -> s.url)) AS path FROM clicks GROUP BY 1, 2

-- admitted: ordered_listagg
SELECT cast(ts AS date) AS day, listagg(url, ',') WITHIN GROUP (ORDER BY url) AS pages FROM clicks GROUP BY 1

-- refused: order-dependent: listagg_by_a_tied_order
SELECT cast(ts AS date) AS day, listagg(url, ',') WITHIN GROUP (ORDER BY ts) AS pages FROM clicks GROUP BY 1

-- admitted: set_of_urls_counted
SELECT cast(ts AS date) AS day, user_id, size(collect_set(url)) AS pages, array_contains(collect_set(url), '/pay') AS paid FROM clicks GROUP BY 1, 2

-- refused: order-dependent: set_as_it_comes
SELECT cast(ts AS date) AS day, user_id, collect_set(url) AS pages FROM clicks GROUP BY 1, 2

-- admitted: zipped_arrays
SELECT cast(ts AS date) AS day, event_id, arrays_zip(tags, transform(tags, t -> length(t))) AS zipped FROM clicks WHERE tags IS NOT NULL

-- admitted: inline_of_structs
SELECT cast(ts AS date) AS day, event_id, k, v FROM clicks LATERAL VIEW inline(array(named_struct('k', 'os', 'v', device.os), named_struct('k', 'country', 'v', country))) AS k, v

-- admitted: str_to_map_lookup
SELECT cast(ts AS date) AS day, str_to_map(concat('os:', coalesce(device.os, ''), ',country:', coalesce(country, '')))['os'] AS os, count(*) AS n FROM clicks GROUP BY 1, 2

-- admitted: element_at_and_default
SELECT cast(ts AS date) AS day, event_id, try_element_at(tags, 1) AS first_tag, coalesce(size(tags), 0) AS many, array_join(tags, '+') AS together FROM clicks

-- admitted: times_made_by_rows
SELECT cast(t AS date) AS day, event_id FROM (SELECT event_id, explode(array(ts, ts + INTERVAL 1 DAY)) AS t FROM clicks)

-- admitted: variant_path
SELECT cast(ts AS date) AS day, variant_get(try_parse_json(props), '$.depth', 'int') AS depth, count(*) AS n FROM clicks GROUP BY 1, 2
