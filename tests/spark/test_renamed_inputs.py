"""A column gets another name, and what reads it by that name another definition, in one run."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.spark.test_destructive import EVENTS, VISITS
from tests.spark.time_range.daily_project import DailyProject, model

from infold import api
from infold.core.plan import Action

pytestmark = pytest.mark.spark

DAILY = "SELECT cast(ts AS date) AS day, sum(amount) AS total FROM events GROUP BY 1"
ROLLING = """SELECT day, total, max(total) OVER (
  ORDER BY day RANGE BETWEEN INTERVAL 6 DAYS PRECEDING AND CURRENT ROW) AS most
FROM daily"""
CODES = """---
materialization: table
---
SELECT who, max(amount) AS best FROM raw.clicks GROUP BY who"""
JOINED = EVENTS.replace("id, who, ts, amount FROM raw.clicks", "c.id, c.ts, k.best FROM") + (
    " raw.clicks AS c LEFT JOIN codes AS k ON c.who = k.who"
)


def renamed(text: str, old: str, new: str) -> str:
    """A model with another name of one of its columns, whether that is a column of its input."""
    named, made = f"{old} AS {new}", f" AS {old}"
    named = text.replace(made, f" AS {new}") if made in text else text.replace(old, named)
    return named.replace("---\n", f"---\nrenamed_from: {{{new}: {old}}}\n", 1)


def test_readers_follow_from_their_stored_rows(tmp_path: Path) -> None:
    """
    Days with a new column that follows from another, over events with a renamed one: nothing is
    read. Events that join a lookup with a renamed column follow from their stored rows too.

    Sessions cannot be folded again from events that had other names: they are built.
    """
    shop = DailyProject(tmp_path / "shop")
    shop.land("2024-03-01T10:00:00", "2024-03-02T10:00:00", "2024-03-02T10:20:00")
    shop.models(
        events=EVENTS,
        daily=model(DAILY),
        rolling=model(ROLLING),
        visits=VISITS,
        codes=CODES,
        joined=JOINED,
    )
    api.run(shop.project())

    twice = DAILY.replace("AS total", "AS total, sum(amount) * 2 AS twice")
    shop.models(
        events=renamed(EVENTS, "amount", "paid"),
        daily=model(twice.replace("amount", "paid")),
        rolling=model(ROLLING.replace("total, max", "total, total * 2 AS twice, max")),
        visits=VISITS.replace("max(amount)", "max(paid)").replace("30 minutes", "10 minutes"),
        codes=renamed(CODES, "best", "top"),
        joined=JOINED.replace("k.best", "k.top AS best, k.top * 2 AS twice"),
    )
    done = api.run(shop.project(), jobs=2)

    order = [step.model for step, _ in done.steps]
    assert {step.model: step.action for step, _ in done.steps} == {
        **dict.fromkeys(("rolling", "daily", "joined"), Action.DERIVE),
        **dict.fromkeys(("events", "codes"), Action.EVOLVE),
        "visits": Action.BUILD,
    }
    assert len(order) == 6
    for reader, read in (("rolling", "daily"), ("daily", "events"), ("joined", "codes")):
        assert order.index(reader) < order.index(read)
    assert {step.model for step, receipt in done.steps if receipt.read} == {"visits"}
    shop.land("2024-03-01T11:00:00")
    shop.run()


def test_a_type_that_becomes_wider_beside(tmp_path: Path) -> None:
    """Where the new type would be another one than that of the stored rows, they are built, once
    and after their input.
    """
    shop = DailyProject(tmp_path / "shop")
    shop.land("2024-03-01T10:00:00", "2024-03-02T10:00:00")
    daily = DAILY.replace("AS total", "AS total, max(id) AS last")
    shop.models(events=EVENTS, daily=model(daily))
    api.run(shop.project())

    project = shop.root / "infold.yml"
    project.write_text(project.read_text().replace("id: int", "id: bigint"))
    shop.models(daily=model(daily.replace("AS last", "AS last, max(id) * 2 AS twice")))
    done = api.run(shop.project())

    assert [(step.model, step.action) for step, _ in done.steps] == [
        ("events", Action.EVOLVE),
        ("daily", Action.BUILD),
    ]
    shop.verify()
