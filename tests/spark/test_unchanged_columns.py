"""A changed table and its readers: only those are built that read what is different."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.spark.time_range.daily_project import DailyProject, model, window

from infold import api
from infold.core.definition import Derivation
from infold.spark import engine

pytestmark = pytest.mark.spark

DAYS = ("2024-03-01T10:00:00Z", "2024-03-01T11:00:00Z", "2024-03-02T10:00:00Z")
CLICKS = """---
materialization: events
unique_key: [id]
timeseries: {{event_time_column: ts, granularity: day}}
---
SELECT id, who, ts, amount{0} FROM raw.clicks
"""
SESSIONS = """---
materialization: sessions
sessions: {user: who, gap: 30 minutes}
---
SELECT count(*) AS n, sum(amount) AS spent FROM clicks
"""
NAMES = (
    "---\nmaterialization: table\n---\nSELECT DISTINCT who, {0} FROM raw.clicks WHERE who = 'ann'\n"
)
BASE = "SELECT cast(ts AS date) AS day, id, {0} FROM raw.clicks"


def built(shop: DailyProject) -> dict[str, str]:
    """What a run builds, by model, and how."""
    return {step.model: str(step.action) for step, _ in api.run(shop.project()).steps}


@pytest.fixture
def shop(tmp_path: Path) -> DailyProject:
    """Some clicks, a table of them, and readers of some of its columns."""
    made = DailyProject(tmp_path / "shop")
    made.land(*DAYS)
    made.models(
        base=model(BASE.format("id % 2 AS x")),
        ids=model("SELECT day, id FROM base"),
        values=model("SELECT day, sum(x) AS x FROM base GROUP BY 1"),
        pairs=model("SELECT day, id * 10 + x AS pair FROM base"),
        every=model("WITH b AS (SELECT * FROM base) SELECT * FROM b"),
    )
    return made


def test_columns_are_added_and_get_other_values(shop: DailyProject) -> None:
    """
    Readers that name their columns are left alone by others, and late rows reach them; a change
    and late rows of one run reach each where it reads them.

    So do lookups that are built whole, and events with sessions over them.
    """
    shop.models(
        names=NAMES.format("upper(who) AS name"),
        named=model(
            "SELECT cast(c.ts AS date) AS day, n.name FROM raw.clicks c "
            "JOIN names n ON c.who = n.who"
        ),
        clicks=CLICKS.format(""),
        visits=SESSIONS,
    )
    built(shop)

    shop.models(
        base=model(BASE.format("id % 2 AS x, 'new' AS y")),
        names=NAMES.format("upper(who) AS name, 1 AS y"),
        clicks=CLICKS.format(", day"),
    )
    project = shop.project()
    said = {one.model: one.why for one in api.make_plan(project, api.observe(project)).skipped}
    assert said["ids"] == said["values"] == said["pairs"] == "reads no changed column of base"
    assert built(shop) == {"base": "derive", "every": "build", "names": "build", "clicks": "derive"}
    assert {y for *_, y in (*shop.rows("base"), *shop.rows("every"))} == {"new"}
    assert built(shop) == {}
    traces = api.ledger(shop.project()).traces()
    assert {traces[name].inputs["base"] for name in ("ids", "values", "pairs")} == {2}

    shop.land("2024-03-02T11:00:00Z", who="bob")
    shop.models(
        base=model(BASE.format("id % 2 AS x, 'newer' AS y")), names=NAMES.format("who AS name")
    )
    steps = {step.model: step for step, _ in api.run(shop.project()).steps}
    assert steps.keys() == {
        *("raw.clicks", "base", "ids", "values", "pairs", "every"),
        *("names", "named", "clicks", "visits"),
    }
    assert [str(steps[name].action) for name in ("clicks", "visits")] == ["ingest", "fold"]
    for name in ("ids", "values", "pairs"):
        assert list(steps[name].cells) == [window("2024-03-02", "2024-03-03")]
    shop.verify()


def test_a_column_of_another_type_is_another_column(
    shop: DailyProject, monkeypatch: pytest.MonkeyPatch
) -> None:
    """
    Equal numbers of another type are built again, and the readers' tables get that type.

    Where comparing rows fails, readers are built as if all had changed; a table that lacks a
    column of its definition does not equal its rebuild.
    """
    built(shop)
    shop.models(base=model(BASE.format("cast(id % 2 AS bigint) + 3000000000 AS x")))
    readers = {"values": "build", "pairs": "build", "every": "build"}
    assert built(shop) == {"base": "derive", **readers}
    assert shop.rows("pairs")[0][1] == 3000000011

    def fails(*_: object) -> None:
        raise RuntimeError

    with monkeypatch.context() as patch:
        patch.setattr(engine, "with_unchanged_columns", fails)
        shop.models(base=model(BASE.format("id % 2 AS x")))
        assert built(shop).keys() == {"base", "ids", "values", "pairs", "every"}
    shop.verify()

    with monkeypatch.context() as patch:
        patch.setattr(Derivation, "changes_nothing", True)
        shop.models(base=model(BASE.format("id % 2 AS x, 'new' AS y")))
        built(shop)
    [verdict] = api.verify(shop.project(), select=["base"]).models
    assert verdict.note.startswith("its table has other columns (y): `infold forget base`")


def test_values_that_change_places(shop: DailyProject) -> None:
    """Rows count, not columns one by one: two columns may have the same values in other rows."""
    shop.models(base=model(BASE.format("id AS x")))
    built(shop)
    shop.models(base=model(BASE.format("if(id < 3, 3 - id, id) AS x")))

    assert built(shop).keys() == {"base", "pairs", "every"}
    assert [pair for _, pair in shop.rows("pairs")] == [12, 21, 33]
