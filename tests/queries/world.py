"""The tables that the queries read: two streams of events, prices, sessions, days and lookups."""

from __future__ import annotations

PROJECT = """
name: shop
sources:
  raw.clicks:
    path: landing/clicks/*.json
    event_time_column: ts
    columns: {event_id: string, user_id: string, ts: timestamp, url: string, country: string, amount: "decimal(10,2)", score: double, tags: array<string>, props: string, device: "struct<os: string, version: int>", sent_at: string, revision: int}
  raw.orders:
    path: landing/orders/*.csv
    event_time_column: ordered_at
    columns: {order_id: int, user_id: string, ordered_at: timestamp, sku: string, qty: int, price: "decimal(10,2)", status: string, currency: string, due: date, revision: int}
  raw.prices:
    path: landing/prices/*.csv
    event_time_column: valid_from
    columns: {sku: string, valid_from: timestamp, price: "decimal(10,2)"}
  raw.countries:
    path: landing/countries.csv
    columns: {code: string, name: string, region: string, zone: string}
  raw.users:
    path: landing/users.csv
    columns: {user_id: string, signup: date, plan: string, home: string}
  raw.calendar:
    path: landing/calendar.csv
    columns: {day: date, holiday: boolean, name: string}
  raw.rates:
    path: landing/rates.csv
    columns: {currency: string, rate: double}
"""  # noqa: E501

_EVENTS = "---\nmaterialization: events\nunique_key: {}\n{}timeseries: {{event_time_column: {}}}\n"
_LOOKUP = "---\nmaterialization: table\n---\nSELECT * FROM raw.{}"

MODELS = {
    "clicks": _EVENTS.format("event_id", "prefer: [revision desc]\n", "ts")
    + "---\nSELECT * FROM raw.clicks",
    "orders": _EVENTS.format(
        "order_id", "prefer: [revision desc]\ndeduplicate: everywhere\n", "ordered_at"
    )
    + "---\nSELECT * FROM raw.orders",
    "prices": _EVENTS.format("sku", "", "valid_from") + "---\nSELECT * FROM raw.prices",
    "sessions": "---\nmaterialization: sessions\nsessions: {user: user_id, gap: 30 minutes}\n---\n"
    "SELECT count(*) AS events, sum(amount) AS revenue, first(url) AS entry_url FROM clicks",
    "daily": "---\nmaterialization: table\nincremental: {}\n"
    "timeseries: {event_time_column: day, partition_column: day}\n---\n"
    "SELECT cast(ts AS date) AS day, count(*) AS n, count(DISTINCT user_id) AS users, "
    "sum(amount) AS revenue FROM clicks GROUP BY 1",
    **{name: _LOOKUP.format(name) for name in ("countries", "users", "calendar", "rates")},
}
"""The files of the models around a query, by name."""

SCHEMAS = {
    "clicks": "event_id string, user_id string, ts timestamp, url string, country string, "
    "amount decimal(10,2), score double, tags array<string>, props string, "
    "device struct<os: string, version: int>, sent_at string, revision int",
    "orders": "order_id int, user_id string, ordered_at timestamp, sku string, qty int, "
    "price decimal(10,2), status string, currency string, due date, revision int",
    "prices": "sku string, valid_from timestamp, price decimal(10,2)",
    "countries": "code string, name string, region string, zone string",
    "users": "user_id string, signup date, plan string, home string",
    "calendar": "day date, holiday boolean, name string",
    "rates": "currency string, rate double",
}
"""The columns of the streams and lookups, as Spark declares them."""
