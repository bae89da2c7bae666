"""A changed table and its readers: only those are built that read what is different."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.spark.time_range.daily_project import DailyProject, model, window

from infold import api
from infold.core.definition import Derivation
from infold.core.plan import PlanOptions
from infold.spark import engine

pytestmark = pytest.mark.spark

DAYS = ("2024-03-01T10:00:00Z", "2024-03-02T10:00:00Z", "2024-03-03T10:00:00Z")
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
CUMULATIVE = """---
materialization: cumulative_aggregate
---
SELECT who, sum(amount) AS spent FROM clicks GROUP BY who
"""
WHOLE = "---\nmaterialization: table\n---\n"
BASE = "SELECT cast(ts AS date) AS day, id, {0} FROM raw.clicks"


def built(shop: DailyProject) -> dict[str, str]:
    """What a run builds, by model, and how; all tables are verified after it."""
    return {step.model: str(step.action) for step, _ in shop.run().steps}


def left_alone(shop: DailyProject) -> dict[str, str]:
    """What a plan says of the models that it does not build."""
    project = shop.project()
    found = api.make_plan(project, api.observe(project))
    return {entry.model: entry.why for entry in found.skipped}


@pytest.fixture
def shop(tmp_path: Path) -> DailyProject:
    """Three days, a table of them, and readers of some of its columns."""
    made = DailyProject(tmp_path / "shop")
    made.land(*DAYS)
    made.models(
        base=model(BASE.format("id % 2 AS x")),
        ids=model("SELECT day, id FROM base"),
        values=model("SELECT day, sum(x) AS x FROM base GROUP BY 1"),
        pairs=model("SELECT day, id + x AS pair FROM base"),
        every=model("WITH b AS (SELECT * FROM base) SELECT * FROM b"),
        counted=f"{WHOLE}SELECT count(*) AS n FROM base",
        last=model("SELECT day, count(*) AS n FROM ids GROUP BY 1"),
    )
    built(made)
    return made


def test_an_added_column_builds_one_table(shop: DailyProject) -> None:
    """Readers that name their columns are left alone, the plan says so, and late rows reach
    them.
    """
    shop.models(base=model(BASE.format("id % 2 AS x, 'new' AS y")))

    said = left_alone(shop)
    assert said["ids"] == said["values"] == said["counted"] == "reads no changed column of base"
    assert said["last"] == "up to date"
    assert built(shop) == {"base": "derive", "every": "build"}
    assert {y for *_, y in (*shop.rows("base"), *shop.rows("every"))} == {"new"}
    assert built(shop) == {}
    project = shop.project()
    traces = api.ledger(project).traces()
    assert {traces[name].inputs["base"] for name in ("ids", "values", "counted")} == {2}

    shop.land("2024-03-02T11:00:00Z")
    assert built(shop) == {
        "raw.clicks": "ingest",
        "base": "recompute",
        "ids": "recompute",
        "values": "recompute",
        "pairs": "recompute",
        "every": "recompute",
        "counted": "build",
        "last": "recompute",
    }


def test_another_expression_builds_the_readers_of_that_column(shop: DailyProject) -> None:
    """A breaking change reaches those whose columns have other values."""
    shop.models(base=model(BASE.format("id % 2 + 1 AS x")))

    assert built(shop).keys() == {"base", "values", "pairs", "every"}


def test_a_dropped_column_leaves_others_alone(shop: DailyProject) -> None:
    """A column that is gone matters to nobody who does not name it."""
    for name in ("values", "pairs"):
        (shop.root / "models" / f"{name}.sql").unlink()
    shop.models(base=model("SELECT cast(ts AS date) AS day, id FROM raw.clicks"))

    assert built(shop).keys() == {"base", "every"}


def test_a_column_of_another_type_is_another_column(shop: DailyProject) -> None:
    """Equal numbers of another type are built again, and the readers' tables get that type."""
    shop.models(base=model(BASE.format("cast(id % 2 AS bigint) + 3000000000 AS x")))

    readers = {"values": "build", "pairs": "build", "every": "build"}
    assert built(shop) == {"base": "derive", **readers}
    assert shop.rows("pairs")[0][1] == 3000000002


def test_values_that_change_places(tmp_path: Path) -> None:
    """Rows count, not columns one by one: two columns may have the same values in other rows."""
    shop = DailyProject(tmp_path / "shop")
    shop.land("2024-03-01T10:00:00Z", "2024-03-01T11:00:00Z")
    shop.models(
        base=model(BASE.format("id AS x")),
        ids=model("SELECT day, id FROM base"),
        values=model("SELECT day, sum(x) AS x FROM base GROUP BY 1"),
        pairs=model("SELECT day, id * 10 + x AS pair FROM base"),
    )
    built(shop)
    shop.models(base=model(BASE.format("3 - id AS x")))

    assert built(shop).keys() == {"base", "pairs"}
    assert [pair for _, pair in shop.rows("pairs")] == [12, 21]


def test_changed_rows_and_a_changed_definition_together(shop: DailyProject) -> None:
    """Where rows arrive in the same run, readers are built there and nowhere else."""
    shop.models(base=model(BASE.format("id % 2 AS x, 'new' AS y")))
    shop.land("2024-03-02T11:00:00Z")

    result = shop.run()

    built = {step.model: step for step, _ in result.steps}
    assert built.keys() == {
        "raw.clicks",
        "base",
        "every",
        "ids",
        "values",
        "pairs",
        "counted",
        "last",
    }
    for name in ("ids", "values", "pairs"):
        assert list(built[name].cells) == [window("2024-03-02", "2024-03-03")]


def test_a_version_is_skipped_although_others_follow(shop: DailyProject) -> None:
    """A reader that was left out of several runs is built where rows changed in one of them."""
    base = frozenset({"raw.clicks", "base"})
    shop.land("2024-03-01T11:00:00Z")
    api.run(shop.project(), asked=PlanOptions(selected=base))
    shop.models(base=model(BASE.format("id % 2 AS x, 'new' AS y")))
    api.run(shop.project(), asked=PlanOptions(selected=base))
    shop.land("2024-03-03T11:00:00Z")
    api.run(shop.project(), asked=PlanOptions(selected=base))

    steps = {step.model: step for step, _ in shop.run().steps}
    assert list(steps["ids"].cells) == [
        window("2024-03-01", "2024-03-02"),
        window("2024-03-03", "2024-03-04"),
    ]


def test_readers_are_built_if_comparing_fails(
    shop: DailyProject, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Rows are compared after the commit; if that fails, readers are built as if all changed."""

    def fails(*_: object) -> None:
        raise RuntimeError

    monkeypatch.setattr(engine, "with_unchanged_columns", fails)
    shop.models(base=model(BASE.format("id % 2 AS x, 'new' AS y")))

    assert built(shop).keys() == {"base", "ids", "values", "pairs", "every", "counted"}


def test_a_column_that_a_table_lacks_is_found(
    shop: DailyProject, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A table without a column of its definition does not equal its rebuild."""
    with monkeypatch.context() as patch:
        patch.setattr(Derivation, "changes_nothing", True)
        shop.models(base=model(BASE.format("id % 2 AS x, 'new' AS y")))
        shop.run(equal=False)

    wrong = {verdict.model: verdict.note for verdict in api.verify(shop.project()).models}
    assert wrong["base"].startswith("its table has other columns (y): `infold forget base`")


def test_a_column_added_to_events(tmp_path: Path) -> None:
    """Files are read again, sessions and sums by key stay, and late events are folded in."""
    shop = DailyProject(tmp_path / "shop")
    shop.land(*DAYS, "2024-03-01T10:10:00Z")
    shop.land("2024-03-02T10:10:00Z", "2024-03-01T12:00:00Z", who="bob")
    shop.models(clicks=CLICKS.format(""), visits=SESSIONS, spending=CUMULATIVE)
    built(shop)
    shop.models(clicks=CLICKS.format(", day"))

    assert built(shop) == {"clicks": "derive"}
    assert built(shop) == {}
    shop.land("2024-03-01T10:20:00Z")
    assert built(shop) == {"clicks": "ingest", "visits": "fold", "spending": "fold"}


def test_a_lookup_with_another_column(tmp_path: Path) -> None:
    """A lookup that is built whole counts for its readers by the columns that they use."""
    shop = DailyProject(tmp_path / "shop")
    shop.land(*DAYS)
    shop.models(
        names=f"{WHOLE}SELECT DISTINCT who, upper(who) AS name FROM raw.clicks",
        named=model(
            "SELECT cast(c.ts AS date) AS day, n.name FROM raw.clicks c "
            "JOIN names n ON c.who = n.who"
        ),
    )
    built(shop)
    shop.models(names=f"{WHOLE}SELECT DISTINCT who, upper(who) AS name, 1 AS y FROM raw.clicks")
    assert built(shop) == {"names": "build"}
    shop.models(names=f"{WHOLE}SELECT DISTINCT who, who AS name, 1 AS y FROM raw.clicks")
    assert built(shop).keys() == {"names", "named"}
