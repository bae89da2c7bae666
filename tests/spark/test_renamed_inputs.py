"""A column gets another name, and what reads it by that name another definition, in one run."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.spark.test_destructive import EVENTS, VISITS
from tests.spark.test_renamed_columns import actions
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


@pytest.fixture
def shop(tmp_path: Path) -> DailyProject:
    """A project with some clicks."""
    found = DailyProject(tmp_path / "shop")
    found.land("2024-03-01T10:00:00", "2024-03-02T10:00:00", "2024-03-02T10:20:00")
    return found


@pytest.mark.parametrize("jobs", [1, 2])
def test_a_reader_follows_from_its_stored_rows(shop: DailyProject, jobs: int) -> None:
    """Days with a new column that follows from another, over events with a renamed one: nothing is
    read, whatever is built side by side.
    """
    shop.models(events=EVENTS, daily=model(DAILY), rolling=model(ROLLING))
    api.run(shop.project())

    twice = DAILY.replace("AS total", "AS total, sum(amount) * 2 AS twice")
    shop.models(
        events=renamed(EVENTS, "amount", "paid"),
        daily=model(twice.replace("amount", "paid")),
        rolling=model(ROLLING.replace("total, max", "total, total * 2 AS twice, max")),
    )
    done = api.run(shop.project(), jobs=jobs)

    assert [(step.model, step.action) for step, _ in done.steps] == [
        ("rolling", Action.DERIVE),
        ("daily", Action.DERIVE),
        ("events", Action.EVOLVE),
    ]
    assert sum(receipt.read for _, receipt in done.steps) == 0
    shop.verify()
    shop.land("2024-03-01T11:00:00")
    shop.run()


def test_events_over_a_lookup(shop: DailyProject) -> None:
    """Events that join a lookup with a renamed column follow from their stored rows too."""
    shop.models(codes=CODES, events=JOINED)
    api.run(shop.project())

    shop.models(
        codes=renamed(CODES, "best", "top"),
        events=JOINED.replace("k.best", "k.top AS best, k.top * 2 AS twice"),
    )
    done = api.run(shop.project())

    assert actions(done) == {"events": {Action.DERIVE}, "codes": {Action.EVOLVE}}
    assert sum(receipt.read for _, receipt in done.steps) == 0
    shop.verify()


def test_a_type_that_becomes_wider_beside(shop: DailyProject) -> None:
    """Where the new type would be another one than that of the stored rows, they are built, once
    and after their input.
    """
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


def test_sessions_that_end_elsewhere(shop: DailyProject) -> None:
    """Sessions cannot be folded again from events that had other names: they are built."""
    shop.models(events=EVENTS, visits=VISITS)
    api.run(shop.project())

    shop.models(
        events=renamed(EVENTS, "amount", "paid"),
        visits=VISITS.replace("max(amount)", "max(paid)").replace("30 minutes", "10 minutes"),
    )
    done = api.run(shop.project())

    assert actions(done) == {"events": {Action.EVOLVE}, "visits": {Action.BUILD}}
    shop.verify()
