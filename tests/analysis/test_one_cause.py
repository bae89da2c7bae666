"""Revenue by the day of delivery: one cause is one error, and the likeliest rewrite comes first."""

from __future__ import annotations

import pytest
from tests.declare.shop import read

INFOLD = """name: shop
sources:
  raw.orders:
    path: landing/orders/*.json
    event_time_column: at
    columns: {id: string, order_id: string, status: string, at: timestamp, delivered_at: timestamp}
"""
EVENTS = """---
materialization: events
unique_key: [id]
timeseries: {event_time_column: at}
---
SELECT * FROM raw.orders"""
ORDERS = """---
materialization: cumulative_aggregate
---
SELECT order_id, max(delivered_at) AS delivered_at FROM order_events GROUP BY order_id"""
DAILY = """---
materialization: table
timeseries: {{event_time_column: day, partition_column: day, granularity: {0}}}
incremental: {{}}
---
SELECT date_trunc('{0}', delivered_at) AS day, count(*) AS n FROM {1} GROUP BY {2}"""


@pytest.mark.parametrize(
    ("length", "floor"),
    [("day", "cast(at AS date) AS day"), ("hour", "date_trunc('HOUR', at) AS day")],
)
@pytest.mark.parametrize("group", ["1", "day", "date_trunc('{0}', delivered_at)"])
def test_one_error_for_another_time(length: str, floor: str, group: str) -> None:
    """Groups by a time that is not the cell's are refused for that time alone, with the floor of
    the cell's, and after it the bounds.
    """
    daily = DAILY.format(length, "order_events", group.format(length))

    _, [error] = read(
        {"infold.yml": INFOLD, "models/order_events.sql": EVENTS, "models/daily.sql": daily}
    )

    assert error.slug == "partition-not-proven"
    assert [name for name, _ in error.facts] == ["at", "why", "cells by", "write", "or declare"]
    assert dict(error.facts)["write"] == floor


def test_a_folded_table_has_no_time() -> None:
    """The events that it is made of have one: they are to be read."""
    daily = DAILY.format("day", "orders", "1")
    orders = {"models/order_events.sql": EVENTS, "models/orders.sql": ORDERS}

    _, [error] = read({"infold.yml": INFOLD, **orders, "models/daily.sql": daily})

    assert error.slug == "no-time-input"
    facts = dict(error.facts)
    assert facts["reads"] == "orders has no cells of time: it is made of order_events, by at"
    assert facts["write"] == "SELECT cast(at AS date) AS day, … FROM order_events WHERE …"
    assert error.todo.startswith("Read order_events in place of orders")
