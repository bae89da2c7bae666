"""The branches of queries: which there are, and what is true for the rows that go through each."""

from __future__ import annotations

from tests.declare import shop
from tests.declare.test_python_rows import FILES

from infold.testing.in_spark import branches

DAILY = """---
materialization: table
---
SELECT url, CASE url WHEN '/' THEN 1 WHEN '/pay' THEN 2 END AS kind,
  CASE WHEN sum(amount) > 1 THEN 'much' ELSE 'little' END AS spent
FROM clicks AS c
WHERE c.user_id <> 'bot' AND (url IS NULL OR amount > 0)
GROUP BY 1, 2
"""
JOINED = """---
materialization: table
---
SELECT a.url FROM clicks AS a JOIN clicks AS b ON a.event_id = b.event_id WHERE a.amount > 1
"""


def test_each_when_else_and_part_of_where_is_a_branch() -> None:
    """A row goes one way; conditions are about a row of the one table that is read."""
    files = {**shop.SHOP, "models/kinds.sql": DAILY}
    found = branches(shop.project(files)["kinds"])

    conditions = {one.label: one.condition for one in found if not one.unknown}
    assert conditions == {
        "WHEN '/'": "(url = '/')",
        "WHEN '/pay'": "(NOT coalesce(url = '/', false)) AND (url = '/pay')",
        "no ELSE: NULL": "(NOT coalesce(url = '/', false)) AND (NOT coalesce(url = '/pay', false))",
        "left out by WHERE c.user_id <> 'bot'": "(NOT coalesce(user_id <> 'bot', false))",
        "left out by WHERE url IS NULL OR amount > 0": "(NOT coalesce(url IS NULL OR "
        "amount > 0, false))",
    }
    assert {one.table for one in found if not one.unknown} == {"clicks"}
    unknown = [(one.label, one.unknown) for one in found if one.unknown]
    assert unknown == [
        ("ELSE", "it is not about one row alone"),
        ("WHEN SUM(amount) > 1", "it is not about one row alone"),
    ]
    assert {one.at.line for one in found} == {4, 5, 7}


def test_what_is_not_looked_into() -> None:
    """Those of several tables are listed with the reason; models in Python have none."""
    (branch,) = branches(shop.project({**shop.SHOP, "models/joined.sql": JOINED})["joined"])
    in_python = shop.project(FILES)

    assert branch.label == "left out by WHERE a.amount > 1"
    assert branch.unknown == "its query reads several tables, or none"
    assert [branches(in_python[name]) for name in ("clicks", "paths")] == [(), ()]
