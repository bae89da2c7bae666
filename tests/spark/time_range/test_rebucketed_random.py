"""
Drawn changes of granularities between late, removed and new rows: tables equal those built afresh.

Beside the rows, the state of each cell in the ledger equals that of a project that was never built
by another granularity. Readers fold the changes of the tables, some by the version that inserted a
row and some by comparing rows.
"""

from __future__ import annotations

import shutil
from pathlib import Path
from random import Random

import pytest
from tests.spark.time_range.daily_project import DailyProject, model

from infold import api
from infold.core.plan import Action, PlanOptions

pytestmark = pytest.mark.spark

CLICKS = """---
materialization: events
unique_key: [id]
timeseries: {{event_time_column: ts, granularity: {0}}}
---
SELECT id, who, ts, amount FROM raw.clicks"""
SESSIONS = """---
materialization: sessions
timeseries: {{event_time_column: session_start, granularity: {0}}}
sessions: {{user: who, gap: 12 hours}}
---
SELECT count(*) AS n, sum(amount) AS amount FROM {1}"""
BY_USER = """---
materialization: cumulative_aggregate
---
SELECT who, count(*) AS n, sum(amount) AS amount FROM {0} GROUP BY who"""
VISITS = "SELECT cast(ts AS date) AS day, id, who, amount FROM clicks"
TIMES = "SELECT ts AS at, id, who, amount FROM raw.clicks"
TABLES = ("clicks", "visits", "times", "sessions")
GRANULARITIES = {
    "clicks": ("day", "month", "year"),
    "visits": ("day", "week", "month", "quarter"),
    "times": ("hour", "day", "month", "week, week_start: sunday"),
    "sessions": ("hour", "day", "month", "year"),
}


def written(shop: DailyProject, by: dict[str, str]) -> None:
    """The models, with these granularities."""
    shop.models(
        clicks=CLICKS.format(by["clicks"]),
        visits=model(VISITS, granularity=by["visits"]),
        times=model(TIMES, column="at", granularity=by["times"]),
        sessions=SESSIONS.format(by["sessions"], "times"),
        calls=SESSIONS.format("day", "clicks"),
        by_visitor=BY_USER.format("visits"),
    )


def land(shop: DailyProject, rng: Random, name: str) -> None:
    """A file of clicks over three months, or another in its place; few ids, so some are copies."""
    lines = ["id,who,ts,day,amount"]
    for _ in range(rng.randint(1, 6)):
        time = f"2024-0{rng.randint(1, 3)}-{rng.randint(1, 28):02}T{rng.randint(0, 23):02}:30:00Z"
        lines.append(f"{rng.randint(1, 60)},{rng.choice(['ann', 'bob'])},{time},,1.50")
    (shop.root / "landing" / name).write_text("\n".join(lines) + "\n", encoding="utf-8")


def run(shop: DailyProject, *models: str) -> list[tuple[str, Action]]:
    """A run, of some models or all. What was done to which."""
    selected = PlanOptions(selected=frozenset(models) if models else None)
    result = api.run(shop.project(), asked=selected, allow_removals=True)
    for step, receipt in result.steps:
        if step.action is Action.REBUCKET:
            assert (receipt.read, receipt.written, receipt.commits) == (0, 0, 0)
    return [(step.model, step.action) for step, _ in result.steps]


def states(shop: DailyProject) -> dict[str, list[tuple[object, ...]]]:
    """The states of the cells of all tables, and of the files by cell, in the ledger."""
    book = api.ledger(shop.project())
    found: dict[str, list[tuple[object, ...]]] = {
        name: [(state.cell, state.rows, state.content) for state in book.cells(name)]
        for name in TABLES
    }
    paths = {file.id: file.path for file in book.files("clicks")}
    entries = book.file_cells("clicks")
    rows = [(paths[one.file_id], one.cell, one.rows, one.dropped) for one in entries if one.rows]
    return found | {"files": sorted(rows)}


def test_tables_in_other_cells_are_those_built_afresh(tmp_path: Path) -> None:
    """Whatever their cells were before; and a change of cells alone builds no reader."""
    rng = Random(1)
    shop = DailyProject(tmp_path / "shop")
    by = {name: several[0] for name, several in GRANULARITIES.items()}
    for at in range(5):
        land(shop, rng, f"{at}.csv")
    written(shop, by)
    come_and_gone_as_rows_of_another_cell(shop, by)

    for name in TABLES:
        by[name] = rng.choice([one for one in GRANULARITIES[name] if one != by[name]])
    written(shop, by)
    land(shop, rng, "0.csv")
    done = run(shop)

    rebucketed = {name for name, action in done if action is Action.REBUCKET}
    assert {"visits", "times", "sessions"} <= rebucketed
    shop.verify()
    fresh = DailyProject(tmp_path / "fresh")
    shutil.copytree(shop.root / "landing", fresh.root / "landing", dirs_exist_ok=True)
    written(fresh, by)
    run(fresh)
    assert states(shop) == states(fresh)


def come_and_gone_as_rows_of_another_cell(shop: DailyProject, by: dict[str, str]) -> None:
    """A row that its month lost and got again is none that its day, which got another, has more."""
    rows = "id,who,ts,day,amount\n{0},zoe,2024-02-02T10:00:00Z,,1.00\n"
    folder = shop.root / "landing"
    (folder / "old.csv").write_text(rows.format(90))
    run(shop)
    (folder / "new.csv").write_text(rows.format(91))
    run(shop, "clicks", "visits", "times")
    for name in by:
        by[name] = "month"
    written(shop, by)
    (folder / "old.csv").unlink()
    done = run(shop, "clicks", "visits", "times")
    assert {name for name, done in done if done is Action.REBUCKET} == {"clicks", "visits", "times"}
    (folder / "old.csv").write_text(rows.format(90))
    done = run(shop)
    assert ("sessions", Action.REBUCKET) in done
    assert ("calls", Action.FOLD) in done
    assert [row[-2] for row in shop.rows("calls") if "zoe" in row] == [2]
