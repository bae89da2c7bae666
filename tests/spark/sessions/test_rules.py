"""A session rule of a project: runs, late events, failures, and a definition that was applied."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from tests.spark.cumulative.clicks_by_user import CLICKS, SOURCE, put
from tests.spark.events.clicks_project import ClicksProject, shop_with

from infold import api
from infold.core.report import RunFailed

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark

RULE = '''from infold import session_rule


@session_rule(parameters={"page": "STRING"})
def checkout(events):
    """A session ends with a payment."""
    paid = False
    for event in events:
        yield paid
        paid = event["page"] == "/pay"
'''
VISITS = """---
materialization: sessions
sessions:
  user: user_id
  gap: 30 minutes
  cuts:
    rule: checkout(url)
---
SELECT count(*) AS events, last(url) AS exit_url FROM clicks"""


def visits(shop: ClicksProject) -> list[tuple[str, int, str]]:
    """The sessions: start, number of events, last page."""
    rows = sorted(shop.records("visits"), key=lambda row: str(row["session_start"]))
    return [(str(row["session_start"])[11:16], row["events"], row["exit_url"]) for row in rows]


def clicks(*lines: str) -> list[str]:
    """Clicks of one user: a minute and a page each."""
    found = [line.split() for line in lines]
    return [f"{at}{page},ann,2024-03-01 10:{at}:00,{page},1" for at, page in found]


def test_sessions_end_where_the_rule_says_so(
    tmp_path: Path, warehouse: Path, spark: SparkSession
) -> None:
    """
    Also after late events, of which one opens a session's middle; a rule that fails is shown with
    its line, and a corrected one builds the table by its new code.
    """
    shop = shop_with(tmp_path, warehouse, CLICKS, SOURCE)
    (tmp_path / "functions").mkdir()
    rule = tmp_path / "functions" / "checkout.py"
    rule.write_text(RULE)
    shop.model("visits", VISITS)
    put(shop, "a.csv", *clicks("00 /a", "05 /b", "10 /pay", "15 /c", "20 /d"))
    shop.run()
    assert visits(shop) == [("10:00", 3, "/pay"), ("10:15", 2, "/d")]
    put(shop, "b.csv", *clicks("02 /pay", "17 /pay"))
    receipt = shop.run(model="visits")
    assert visits(shop) == [
        ("10:00", 2, "/pay"),
        ("10:05", 2, "/pay"),
        ("10:15", 2, "/pay"),
        ("10:20", 1, "/d"),
    ]
    assert (receipt.written, receipt.removed) == (4, 2)

    rule.write_text(RULE.replace("yield paid", "yield next(events, event) and paid"))
    put(shop, "c.csv", *clicks("25 /e"))
    with pytest.raises(RunFailed) as caught:
        shop.run()
    [failure] = caught.value.result.failures
    assert (failure.model, failure.error.slug) == ("visits", "function-failed")
    assert "took the next event before it yielded" in str(failure.error)
    assert "functions/checkout.py" in str(failure.error)

    rule.write_text(RULE.replace('== "/pay"', 'in ("/pay", "/c")'))
    shop.run()
    assert visits(shop)[2:] == [("10:15", 1, "/c"), ("10:17", 1, "/pay"), ("10:20", 2, "/e")]
    assert shop.proven()
    rule.write_text("# A comment.\n" + rule.read_text())
    assert not api.run(api.open_project(tmp_path)).steps
