"""Forward-only changes of events: each row follows the definition in force at its time."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from tests.crash.scenario import living

from infold import api
from infold.core.interval import parse_instant_text
from infold.core.plan import Action, PlanOptions
from infold.core.project import Project
from infold.core.report import RunFailed, RunResult

pytestmark = pytest.mark.spark

PROJECT = """
name: shop
sources:
  raw.clicks:
    path: landing/*.json
    event_time_column: ts
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

SESSIONS = """---
materialization: sessions
sessions: {user: url, gap: 30 minutes}
---
SELECT count(*) AS n, sum(amount) AS amount FROM clicks
"""

DAILY = """---
materialization: table
timeseries: {event_time_column: ts, partition_column: day, granularity: day}
incremental: {}
---
SELECT cast(ts AS date) AS day, count(*) AS n, sum(amount) AS amount FROM clicks GROUP BY 1
"""


class Shop:
    """The project with its files, and what each definition makes of their rows."""

    def __init__(self, root: Path) -> None:
        self.root = root
        for folder in ("models", "landing"):
            (root / folder).mkdir(parents=True)
        (root / "infold.yml").write_text(PROJECT, encoding="utf-8")
        self.files: dict[str, list[dict[str, Any]]] = {}
        self.sections: dict[str, str] = {}
        self.held: list[tuple[int, str]] = []
        """The days from which definitions hold."""

    def model(self, name: str, text: str) -> None:
        """Write a model."""
        (self.root / "models" / f"{name}.sql").write_text(text, encoding="utf-8")

    def land(self, name: str, *rows: dict[str, Any]) -> None:
        """Write a file, again if it is there."""
        self.files[name] = list(rows)
        text = "".join(json.dumps(row) + "\n" for row in rows)
        (self.root / "landing" / f"{name}.json").write_text(text, encoding="utf-8")

    def drop(self, name: str) -> None:
        """Take a file away."""
        del self.files[name]
        (self.root / "landing" / f"{name}.json").unlink()

    def pages(self, **sections: str) -> None:
        """Write the lookup."""
        self.sections = {f"/{name}": section for name, section in sections.items()}
        rows = ({"url": url, "section": section} for url, section in self.sections.items())
        text = "".join(json.dumps(row) + "\n" for row in rows)
        (self.root / "pages.json").write_text(text, encoding="utf-8")

    def project(self) -> Project:
        """The project, read again as each command does."""
        return api.open_project(self.root)

    def run(self, since: int | None = None) -> RunResult:
        """Run; each table has to equal its definitions, and events what was written down here."""
        asked = PlanOptions() if since is None else PlanOptions(forward_only={"clicks": at(since)})
        done = api.run(self.project(), asked=asked, allow_removals=True)
        self.check()
        return done

    def check(self) -> None:
        """Compare the events with the files, and every table with its definitions."""
        found = api.lake(self.project()).rows("clicks").to_pylist()
        actual = sorted((row["id"], show(row["ts"]), *map(row.get, REST)) for row in found)
        assert actual == self.expected()
        report = api.verify(self.project())
        assert report.equal, [(one.model, one.note) for one in report.models if not one.equal]

    def expected(self) -> list[tuple[Any, ...]]:
        """The events by the definition in force at each row's time."""
        copies: dict[tuple[str, str], list[tuple[Any, ...]]] = {}
        for row in (row for rows in self.files.values() for row in rows):
            day = int(row["ts"][8:10])
            by = next(sql for since, sql in reversed(self.held) if day >= since)
            amount, coupon, section = int(row["amount"].split()[0]), None, None
            if by is not FIRST:
                coupon, section = row.get("coupon"), self.sections.get(row["url"])
                if coupon == "bad" or (by is SECOND and row["url"] == "/bot"):
                    continue
            amount = amount * 2 if by is THIRD else amount
            made = (row["id"], row["ts"], row["url"], amount, coupon, section)
            copies.setdefault((row["id"], row["ts"]), []).append(made)
        return sorted(max(some, key=lambda made: made[3]) for some in copies.values())

    @property
    def set_aside(self) -> int:
        """How many rows are set aside."""
        return sum(file.set_aside for file in api.ledger(self.project()).files("clicks"))


REST = ("url", "amount", "coupon", "section")


def show(moment: Any) -> str:
    """An instant as files have it."""
    return f"{moment:%Y-%m-%dT%H:%M:%SZ}"


def at(day: int) -> int:
    """The start of a day of March."""
    return parse_instant_text(f"2024-03-{day:02}")


def click(id_: str, day: int, url: str, amount: object, **more: object) -> dict[str, Any]:
    """A row of a file."""
    return {
        "id": id_,
        "ts": f"2024-03-{day:02}T10:00:00Z",
        "url": url,
        "amount": str(amount),
    } | more


def test_each_row_follows_the_definition_in_force_at_its_time(tmp_path: Path) -> None:
    """Definitions change twice, with a lookup and a column of files that are new, while rows come
    late, are corrected and go, and runs die at every write point of the second change.
    """
    shop = Shop(tmp_path / "shop")
    shop.model("clicks", EVENTS + FIRST)
    shop.model("sessions", SESSIONS)
    shop.model("daily", DAILY)
    shop.model("pages", "---\nmaterialization: table\n---\nSELECT url, section FROM raw.pages\n")
    shop.pages(a="top", b="pay")
    shop.held = [(1, FIRST)]
    shop.land("one", click("a", 1, "/a", 1), click("b", 2, "/bot", 2), click("c", 2, "/b", 3))
    shop.land("two", click("a", 1, "/b", 5), click("d", 2, "/a", 4))
    shop.run()

    # Rows on both sides come with the change; those of the first days are as they always were.
    shop.model("clicks", EVENTS + SECOND)
    shop.held.append((3, SECOND))
    shop.land(
        "three",
        click("e", 1, "/bot", 6, coupon=1),
        click("c", 2, "/b", 1, coupon=2),
        click("f", 2, "/a", 7, coupon="bad"),
        click("g", 3, "/a", "8 EUR", coupon=3),
        click("h", 3, "/bot", "9 EUR"),
        click("i", 4, "/a", "9 EUR", coupon="bad"),
    )
    done = shop.run()
    actions = [step.action for step, _ in done.steps if step.model == "clicks"]
    assert actions[0] is Action.DERIVE
    assert [one.read for step, one in done.steps if step.action is Action.DERIVE] == [0]
    assert shop.set_aside == 2  # the newest definition cannot read them; the first one takes one
    assert not api.run(shop.project()).steps

    # A lookup changes, the better one of two copies goes, and a file is corrected.
    shop.pages(a="other", b="pay", bot="bots")
    shop.drop("two")
    shop.land("three", *shop.files["three"][1:4], click("j", 3, "/b", "1 EUR"))
    shop.run()
    done = api.restate(shop.project(), ["clicks"])
    assert done.receipt.written == 0
    shop.check()

    # Rows of built days that were left out come in, and runs die over it.
    shop.model("clicks", EVENTS + THIRD)
    shop.held.append((3, THIRD))
    shop.land(
        "four", click("k", 1, "/a", 1), click("h", 3, "/bot", "9 EUR"), click("l", 5, "/a", 2)
    )
    for number in (3, 6, 9, 12, 15, 18):
        with living(number):
            api.run(shop.project(), asked=PlanOptions(forward_only={"clicks": at(3)}))
    shop.run(since=3)
    explained = dict(api.explain(shop.project(), "clicks").notes)
    assert "an earlier one" in explained["definition"]

    # Another key, and a column that would go, are refused.
    for wrong in (THIRD.replace("c.id,", "upper(c.id) AS id,"), THIRD.replace("c.coupon, ", "")):
        shop.model("clicks", EVENTS + wrong)
        with pytest.raises(RunFailed) as caught:
            api.run(shop.project())
        assert "not-forward-only" in [one.error.slug for one in caught.value.result.failures]
        shop.model("clicks", EVENTS + THIRD)
    shop.check()
