"""Forward-only changes of events: each row follows the definition in force at its time."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from tests.crash.scenario import living
from tests.spark.events.clicks_project import AllBut, ClicksProject

from infold import api
from infold.core.interval import parse_instant_text
from infold.core.plan import Action, PlanOptions
from infold.core.report import RunFailed, RunResult

pytestmark = pytest.mark.spark

SOURCES = """    event_time_column: ts
    columns:
      id: string
      ts: timestamp
      url: string
      amount: string
      coupon: {type: int, optional: true}
  raw.pages:
    path: pages.json
    columns: {url: string, section: string}
"""
EVENTS = """---
materialization: events
unique_key: [id]
prefer: [amount desc]
timeseries: {event_time_column: ts, granularity: day}
forward_only: true
---
"""
FIRST = "SELECT id, ts, url, cast(amount AS int) AS amount FROM raw.clicks"
"""It cannot read amounts with a currency, and never sees one."""

SECOND = """SELECT c.id, c.ts, c.url, cast(replace(c.amount, ' EUR', '') AS int) AS amount,
  c.coupon, p.section
FROM raw.clicks c LEFT JOIN raw.pages p ON c.url = p.url WHERE c.url <> '/bot'"""

THIRD = """SELECT c.url, c.id, c.ts, c.coupon, p.section,
  cast(replace(c.amount, ' EUR', '') AS int) * 2 AS amount
FROM raw.clicks c LEFT JOIN raw.pages p ON c.url = p.url"""


class Shop(ClicksProject):
    """The project with its files."""

    def __init__(self, root: Path, warehouse: Path) -> None:
        super().__init__(root, warehouse, EVENTS + FIRST, SOURCES)
        declared = root / "infold.yml"
        declared.write_text(declared.read_text().replace("*.csv", "*.json"))

    def land(self, name: str, *rows: dict[str, Any]) -> None:
        """Write a file of JSON, again if it is there."""
        text = "".join(json.dumps(row) + "\n" for row in rows)
        (self.root / name).with_suffix(".json").write_text(text)

    def pages(self, **sections: str) -> None:
        """Write the lookup."""
        self.land("pages", *({"url": f"/{at}", "section": one} for at, one in sections.items()))

    def go(self, since: int | None = None) -> RunResult:
        """Run, with a definition in force since a day if it is to be told."""
        start = parse_instant_text(f"2024-03-{since or 1:02}")
        asked = PlanOptions(forward_only={"clicks": start}) if since else PlanOptions()
        return api.run(api.open_project(self.root), asked=asked, allow_removals=True)

    def events(self) -> list[tuple[Any, ...]]:
        """Id, day, url and amount of each event, with coupon and section if it has them."""
        found = self.records()
        names = [name for name in ("url", "amount", "coupon", "section") if name in found[0]]
        return sorted((row["id"], int(row["ts"][8:10]), *map(row.get, names)) for row in found)


def click(id_: str, day: int, url: str, amount: object, **more: object) -> dict[str, Any]:
    """A row of a file."""
    return {"id": id_, "ts": f"2024-03-{day:02}T10:00Z", "url": url, "amount": str(amount)} | more


def test_each_row_follows_the_definition_in_force_at_its_time(
    tmp_path: Path, warehouse: Path
) -> None:
    """Definitions change twice, with a lookup and a column of files that are new, while rows come
    late, are corrected and go, and a run dies in the second change.
    """
    shop = Shop(tmp_path / "shop", warehouse)
    shop.pages(a="top", b="pay")
    shop.land(
        "landing/one", click("a", 1, "/a", 1), click("b", 2, "/bot", 2), click("c", 2, "/b", 3)
    )
    shop.land("landing/two", click("a", 1, "/b", 5), click("d", 2, "/a", 4))
    shop.go()
    assert shop.events() == [
        ("a", 1, "/b", 5),
        ("b", 2, "/bot", 2),
        ("c", 2, "/b", 3),
        ("d", 2, "/a", 4),
    ]

    # Rows on both sides come with the change; those of the first days are as they always were.
    shop.model("clicks", EVENTS + SECOND)
    kept = (
        click("c", 2, "/b", 1, coupon=2),
        click("f", 2, "/a", 7, coupon="bad"),
        click("g", 3, "/a", "8 EUR", coupon=3),
    )
    shop.land(
        "landing/three",
        *kept,
        click("e", 1, "/bot", 6, coupon=1),
        click("h", 3, "/bot", "9 EUR"),
        click("i", 4, "/a", "9 EUR", coupon="bad"),
    )
    done = shop.go()
    actions = [step.action for step, _ in done.steps if step.model == "clicks"]
    assert actions[0] is Action.DERIVE
    assert [one.read for step, one in done.steps if step.action is Action.DERIVE] == [0]
    assert shop.events() == [
        ("a", 1, "/b", 5, None, None),
        ("b", 2, "/bot", 2, None, None),
        ("c", 2, "/b", 3, None, None),
        ("d", 2, "/a", 4, None, None),
        ("e", 1, "/bot", 6, None, None),
        ("f", 2, "/a", 7, None, None),
        ("g", 3, "/a", 8, 3, "top"),
    ]
    assert len(shop.aside()) == 2, "the newest definition cannot read them; the first takes one"

    # A lookup changes, the better one of two copies goes, and a file is corrected.
    shop.pages(a="other", b="pay", bot="bots")
    shop.drop("two.json")
    shop.land("landing/three", *kept, click("j", 3, "/b", "1 EUR"))
    shop.go()
    first = [
        ("a", 1, "/a", 1, None, None),
        ("b", 2, "/bot", 2, None, None),
        ("c", 2, "/b", 3, None, None),
        ("f", 2, "/a", 7, None, None),
    ]
    second = [*first, ("g", 3, "/a", 8, 3, "other"), ("j", 3, "/b", 1, None, "pay")]
    assert shop.events() == second
    assert shop.proven()
    assert api.restate(api.open_project(shop.root), ["clicks"]).receipt.written == 0
    assert shop.events() == second

    # Rows of built days that were left out come in, and a run dies over it.
    shop.model("clicks", EVENTS + THIRD)
    shop.land(
        "landing/four",
        *(click("k", 1, "/a", 1), click("h", 3, "/bot", "9 EUR"), click("l", 5, "/a", 2)),
    )
    with living(met=AllBut([("", "table clicks: after commit")])) as life:
        shop.go(since=3)
    assert life.dead
    shop.go(since=3)
    third = [
        *first,
        ("g", 3, "/a", 16, 3, "other"),
        ("h", 3, "/bot", 18, None, "bots"),
        ("j", 3, "/b", 2, None, "pay"),
        ("k", 1, "/a", 1, None, None),
        ("l", 5, "/a", 4, None, "other"),
    ]
    assert shop.events() == third
    explained = dict(api.explain(api.open_project(shop.root), "clicks").notes)
    assert "an earlier one" in explained["definition"]

    # Another key, and a column that would go, are refused.
    for wrong in (THIRD.replace("c.id,", "upper(c.id) AS id,"), THIRD.replace("c.coupon, ", "")):
        shop.model("clicks", EVENTS + wrong)
        with pytest.raises(RunFailed) as caught:
            shop.go()
        assert "not-forward-only" in [one.error.slug for one in caught.value.result.failures]
    assert shop.events() == third
