"""What drawn queries are put together from: times, frames, links, subqueries."""

TIMES = [
    "ts",
    "ts",
    "cast(ts AS date)",
    "cast(ts AS date)",
    "date_trunc('hour', ts)",
    "date_trunc('day', ts)",
    "date_trunc('week', ts)",
    "date_trunc('month', ts)",
    "ts + INTERVAL '1' DAY",
    "ts - INTERVAL '90' MINUTE",
    "cast(ts + INTERVAL '5' HOUR AS date)",
    "cast(cast(ts AS date) - INTERVAL '7' DAY AS date)",
    "cast(date_trunc('month', ts) + INTERVAL '1' MONTH AS date)",
    "CASE WHEN extract(hour FROM ts) < 6 THEN cast(ts AS date) - 1 ELSE cast(ts AS date) END",
    "greatest(cast(ts AS date), cast(ts - INTERVAL '2' HOUR AS date))",
    "coalesce(cast(ts AS date), DATE '2024-01-01')",
]
PARTS = [
    "extract(year FROM ts), extract(month FROM ts)",
    "extract(year FROM ts), extract(month FROM ts), extract(day FROM ts)",
    "extract(year FROM ts) * 100 + extract(month FROM ts)",
    "extract(month FROM ts)",
]
FRAMES = [
    "INTERVAL '36' HOUR PRECEDING AND CURRENT ROW",
    "INTERVAL '48' HOUR PRECEDING AND INTERVAL '1' HOUR PRECEDING",
    "CURRENT ROW AND INTERVAL '1' DAY FOLLOWING",
    "UNBOUNDED PRECEDING AND CURRENT ROW",
]
LINKS = [
    "o.at BETWEEN x.ts - INTERVAL '1' DAY AND x.ts",
    "cast(o.at AS date) = cast(x.ts AS date)",
    "cast(o.at AS date) = cast(x.ts AS date) - INTERVAL '1' DAY",
    "o.at > x.ts - INTERVAL '2' DAY AND x.ts + INTERVAL '3' HOUR > o.at AND o.by = x.who",
    "o.at >= cast(x.ts AS date) AND o.at < cast(x.ts AS date) + INTERVAL '1' DAY",
    "o.at - x.ts <= INTERVAL '1' DAY AND o.at >= x.ts",
    "o.at >= cast(x.ts AS date) AND o.at <= x.ts",
    "o.at <= x.ts",
    "o.by = x.who",
]
TABLES = ["clicks", "clicks", "clicks", "orders"]
SUBQUERIES = [
    "SELECT 1 FROM {other} WHERE {link}",
    "SELECT 1 FROM {other} WHERE {link} AND o.nr > x.id",
    "SELECT 1 FROM {other} WHERE o.by = x.who AND {link} GROUP BY o.by HAVING count(*) > 1",
    "SELECT DISTINCT o.by FROM {other} JOIN places AS p ON true WHERE p.code = x.code AND {link}",
    "SELECT 1 FROM {other} WHERE {link} AND NOT EXISTS (SELECT 1 FROM orders WHERE ts = o.at)",
    "SELECT 1 FROM places AS p WHERE p.since {near} x.ts AND EXISTS {nested}",
]
NESTED = "(SELECT 1 FROM {other} WHERE {place_link})"
NEAR = ["=", "<=", "BETWEEN x.ts - INTERVAL '36' HOUR AND"]
NAMED = [
    "x.ts IN (SELECT o.at FROM {other})",
    "cast(x.ts AS date) IN (SELECT cast(o.at AS date) FROM {other} WHERE o.nr > x.id)",
    "x.ts - INTERVAL '1' DAY IN (SELECT cast(o.at AS date) FROM {other})",
    "(x.who, cast(x.ts AS date)) IN (SELECT max(o.by), cast(o.at AS date) FROM {other} GROUP BY 2)",
    "x.who IN (SELECT o.by FROM {other} WHERE {link})",
    "x.who NOT IN (SELECT o.by FROM {other} WHERE {link} AND o.nr < 9)",
    "x.ts NOT IN (SELECT o.at FROM {other})",
    "x.code IN (SELECT code FROM places)",
    "x.id = (SELECT max(id) FROM clicks)",
]
VALUES = [
    "(SELECT count(*) FROM {other} WHERE {link})",
    "(SELECT sum(o.nr) FROM {other} WHERE {link} AND o.by = x.who)",
    "coalesce((SELECT max(o.nr) FROM {other} WHERE {link}), x.id)",
    "(SELECT count(DISTINCT o.by) FROM {other} WHERE o.by <> x.who AND {link})",
    "(SELECT max(o.nr) FROM {other})",
]
