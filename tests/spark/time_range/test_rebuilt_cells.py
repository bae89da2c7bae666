"""`on_definition_change: rebuilt_cells`: after a kill at every point, and what commands report."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from tests.crash.scenario import living
from tests.spark.time_range.daily_project import DailyProject, model, window

from infold import api
from infold.core.project import Project
from infold.core.report import Verdict
from infold.render.status import status_screen

pytestmark = pytest.mark.spark

KEYS = "{on_definition_change: rebuilt_cells, backfill_limit: 2 days}"
QUERY = "SELECT cast(ts AS date) AS day, id, {0} FROM raw.clicks"
OLD, NEW = "1 AS x", "month(ts) - 1 AS x, 'b' AS y"


@pytest.fixture
def shop(tmp_path: Path) -> DailyProject:
    """Five days, all of them in the table and in what reads it; then the definition changes."""
    made = DailyProject(tmp_path / "shop")
    made.land(*(f"2024-03-0{n}T10:00:00Z" for n in range(1, 6)))
    made.models(daily=model(QUERY.format(OLD)), reader=model("SELECT day, id FROM daily"))
    api.run(made.project())
    made.models(daily=model(QUERY.format(NEW), KEYS))
    return made


def days(shop: DailyProject, table: str) -> list[int]:
    """The identifiers in a table, one a day."""
    return [row[1] for row in shop.rows(table)]


def status_and_verdict(project: Project) -> tuple[str, Verdict]:
    """What status and verify say of the table."""
    screen = status_screen(project, api.status(project), {})
    line = next(one for one in screen.splitlines() if one.startswith("  daily: "))
    [verdict] = api.verify(project, select=["daily"]).models
    return line.strip(), verdict


def test_each_run_adds_cells_of_the_new_definition(shop: DailyProject) -> None:
    """Each run adds cells of the new definition, by a limit,
    a window or a late row; status and verify say which.
    """
    assert api.run(shop.project()).receipt.commits
    assert shop.rows("daily") == sorted(row for row in whole(shop, NEW) if row[1] in (1, 2))
    assert days(shop, "reader") == [1, 2]
    which = "2 of 5 cells under the new definition; not built yet: [2024-03-03, 2024-03-06)"
    line, verdict = status_and_verdict(shop.project())
    assert line == f"daily: {which}"
    assert (verdict.equal, verdict.cells, verdict.note) == (True, 2, which)

    shop.land("2024-03-04T11:00:00Z")  # what arrives waits for no limit
    api.run(shop.project(), window=window("2024-03-05", "2024-03-06"))
    assert days(shop, "daily") == [1, 2, 5]
    shop.run()
    assert days(shop, "daily") == days(shop, "reader") == [1, 2, 3, 4, 6, 5]
    assert shop.rows("daily") == whole(shop, NEW)
    assert not api.run(shop.project()).steps
    project = shop.project()
    assert "under the new definition" not in status_screen(project, api.status(project), {})


def whole(shop: DailyProject, what: str) -> list[tuple[Any, ...]]:
    """The rows that a definition gives over all that landed, in order."""
    more = (2, "b") if what == NEW else (1,)
    return sorted((row[2].date(), row[0], *more) for row in landed(shop))


def landed(shop: DailyProject) -> list[tuple[Any, ...]]:
    """What was taken in: identifier, who, time."""
    rows = api.lake(shop.project()).rows("raw__clicks").to_pylist()
    return [(row["id"], row["who"], row["ts"]) for row in rows]


def test_a_death_anywhere_leaves_rows_of_one_definition(shop: DailyProject) -> None:
    """Runs that die at each write point in turn leave rows
    of one definition only, until one completes.
    """
    old, new = whole(shop, OLD), whole(shop, NEW)
    met: list[tuple[str, str]] = []
    for _ in range(40):
        with living(met=met) as life:
            api.run(shop.project(), select=["daily"], progress=life)
        found = shop.rows("daily")
        assert found in (old, new[:2], new[:4], new), life.passed[-1]
        if not life.dead:
            break
        met.append(life.passed[-1])
    assert ("daily", "table daily: before commit") in met, met
    assert ("daily", "table daily: after commit") in met
    assert not life.dead
    while api.run(shop.project()).steps:
        assert shop.rows("daily") in (new[:4], new)
    assert shop.rows("daily") == new
    shop.verify()
