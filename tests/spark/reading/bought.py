"""A project over the tables of a shop's database: orders, payments, rates of currencies."""

SOURCES = """
name: bought
sources:
  db.orders:
    url: sqlite:///shop.db
    table: orders
    key: id
    corrections: none
    event_time_column: at
    columns: {id: bigint, at: timestamp, currency: string, amount: bigint}
  db.payments:
    url: sqlite:///shop.db
    table: payments
    key: changed_at
    corrections: reread DAYS days
    event_time_column: at
    columns: {id: bigint, at: timestamp, changed_at: timestamp, state: string}
  db.rates:
    url: sqlite:///shop.db
    table: rates
    columns: {currency: string, rate: double}
"""
"""The begin of the project's file; payments are read again from DAYS days before the newest."""

MODELS = {
    "orders": """---
materialization: events
unique_key: [id]
timeseries: {event_time_column: at}
---
SELECT id, at, currency, amount FROM db.orders""",
    "payments": """---
materialization: events
unique_key: [id]
prefer: [changed_at desc]
timeseries: {event_time_column: at}
---
SELECT id, at, changed_at, state FROM db.payments""",
    "daily": """---
materialization: table
timeseries: {event_time_column: at, partition_column: day}
incremental: {}
---
SELECT cast(o.at AS date) AS day, sum(o.amount * r.rate) AS amount
FROM orders o JOIN db.rates r ON r.currency = o.currency GROUP BY 1""",
}
