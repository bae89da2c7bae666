"""A table has rows of one definition, or each cell those of the one in force there."""

from __future__ import annotations

import sqlite3
from collections import defaultdict
from datetime import date, timedelta
from pathlib import Path
from typing import Any

import pytest
from tests.crash.scenario import KilledError
from tests.spark.time_range.daily_project import ROLLING, DailyProject, days, model, window

from infold import api
from infold.core.interval import parse_instant_text
from infold.core.plan import Action, PlanOptions
from infold.core.project import Project
from infold.core.report import RunFailed, Verdict
from infold.planning import buildable_cells
from infold.render.status import status_screen
from infold.spark.time_range import recompute

pytestmark = pytest.mark.spark


KEYS = "{backfill_limit: 2 days, batch_size: 1, on_definition_change: in_place}"
BY_CELL = "{safety_overrides: {allow_limit: true}}"
QUERY = "SELECT cast(ts AS date) AS day, id, {0} FROM raw.clicks{1}"


def failing(patch: pytest.MonkeyPatch, at: int) -> None:
    """Have the n-th piece fail that any model computes, as by a disk, or a person."""
    left = [None] * at
    real = recompute._query_rows

    def evaluated(*words: Any, **named: Any) -> Any:
        left.pop()
        if not left:
            raise KilledError
        return real(*words, **named)

    patch.setattr(recompute, "_query_rows", evaluated)


def verdict_on(project: Project, name: str) -> Verdict:
    """What verify says of a table."""
    [found] = api.verify(project, select=[name]).models
    return found


def state(project: Project, name: str) -> str:
    """What status says of a model."""
    [found] = [entry for entry in api.status(project) if entry.model == name]
    assert found.model_state is not None
    return found.model_state.why


def test_no_table_ever_has_two_definitions(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """
    While a changed query is built in parts, the old table stays until the new one is complete. It
    is compared with what its own query gives, and not compared if that query was not kept. A query
    with the same rows in other words begins no step.
    """
    shop = DailyProject(tmp_path / "shop")
    shop.land(*days("2024-03-01", 5))
    shop.models(
        limited=model(QUERY.format("1 AS x", ""), KEYS),
        by_cell=model(QUERY.format("1 AS x", " ORDER BY id LIMIT 1"), BY_CELL),
        reader=model("SELECT day, id FROM limited"),
    )
    shop.go()
    assert [row[1] for row in shop.rows("limited")] == [1, 2]
    shop.models(reader=model("SELECT l.day, l.id FROM limited AS l WHERE TRUE"))
    assert "reader" in {step.model for step, _ in shop.go().steps}  # by the same words as before
    trace = api.ledger_of(shop.project()).traces()["reader"]
    assert trace.fingerprint == shop.project()["reader"].fingerprint

    shop.models(limited=model(QUERY.format("month(ts) - 1 AS x, 'b' AS y", ""), KEYS))
    shop.models(by_cell=model(QUERY.format("2 AS x", " ORDER BY id LIMIT 1"), BY_CELL))
    shop.models(reader=model("SELECT day, id, y FROM limited"))
    shop.land("2024-03-05T13:00:00Z")
    monkeypatch.setattr(recompute, "PIECES_TOGETHER", 2)
    monkeypatch.setattr(buildable_cells, "CELLS_TOGETHER", 2)
    with monkeypatch.context() as patch:
        failing(patch, 3)  # the third piece of the first table
        with pytest.raises(KilledError):
            shop.go()

    old = [(n, 1) for n in (1, 2, 3, 4)]
    assert [row[1:] for row in shop.rows("limited")] == old
    assert [row[1:] for row in shop.rows("by_cell")] == [*old, (5, 1)]
    expected = "its definition changed, and it still has the rows of the old one"
    assert state(shop.project(), "limited") == expected
    verdict = verdict_on(shop.project(), "limited")
    assert (verdict.equal, verdict.rows) == (True, 4)
    assert verdict.note.startswith("by the definition of ")
    assert "; the files have another since" in verdict.note
    with sqlite3.connect(api.ledger_of(shop.project()).place) as connection:
        connection.execute("DELETE FROM trace_definitions")
    verdict = verdict_on(shop.project(), "limited")
    assert not verdict.equal
    assert verdict.note == "its rows are of an earlier definition: `infold run` rebuilds it"

    done = shop.go()
    pieces = {step.model: len(step.pieces) for step, _ in done.steps if step.pieces}
    assert pieces == {"limited": 4, "by_cell": 3}
    assert {step.action for step, _ in done.steps if step.pieces} == {Action.BUILD}
    assert [row[1:] for row in shop.rows("limited")] == [(n, 2, "b") for n in range(1, 7)]
    assert [row[1:] for row in shop.rows("by_cell")] == [(n, 2) for n in range(1, 6)]
    shop.verify(differing=["by_cell"])  # each of its cells is limited by itself


def test_each_run_adds_cells_of_the_new_definition(tmp_path: Path) -> None:
    """With `rebuilt_cells` each run adds cells of the new definition, by a limit or a late row, and
    the table has no others; status and verify say which.
    """
    shop = DailyProject(tmp_path / "shop")
    shop.land(*days("2024-03-01", 5))
    shop.models(daily=model(QUERY.format("1 AS x", "")), reader=model("SELECT day, id FROM daily"))
    shop.go()
    keys = "{on_definition_change: rebuilt_cells, backfill_limit: 2 days}"
    shop.models(daily=model(QUERY.format("month(ts) - 1 AS x, 'b' AS y", ""), keys))

    assert shop.go().receipt.commits
    assert [row[1:] for row in shop.rows("daily")] == [(1, 2, "b"), (2, 2, "b")]
    assert [row[1] for row in shop.rows("reader")] == [1, 2]
    which = "2 of 5 cells under the new definition; not built yet: [2024-03-03, 2024-03-06)"
    assert f"daily: {which}" in status_screen(shop.project(), api.status(shop.project()), {})
    verdict = verdict_on(shop.project(), "daily")
    assert (verdict.equal, verdict.cells, verdict.note) == (True, 2, which)

    shop.land("2024-03-05T13:00:00Z")  # what arrives waits for no limit
    shop.go()
    assert [row[1:] for row in shop.rows("daily")] == [(n, 2, "b") for n in range(1, 7)]
    assert [row[1] for row in shop.rows("reader")] == [1, 2, 3, 4, 5, 6]
    assert not shop.go().steps
    project = shop.project()
    assert "under the new definition" not in status_screen(project, api.status(project), {})


FIRST = "SELECT cast(ts AS date) AS day, count(*) AS n, cast(count(*) AS tinyint) AS small"
SECOND = """SELECT count(DISTINCT who) AS users, cast(ts AS date) AS day, count(*) + 100 AS n,
  cast(7 AS tinyint) AS small"""
THIRD = """SELECT count(DISTINCT who) + 50 AS users, cast(ts AS date) AS day, count(*) + 1000 AS n,
  cast(9 AS tinyint) AS small, map('a', count(*)) AS more"""
REACH = """SELECT day, n, sum(n) OVER (
  ORDER BY day RANGE BETWEEN INTERVAL {} DAYS PRECEDING AND CURRENT ROW) AS s FROM daily"""
FORWARD = "{forward_only: true}"
BEGIN = date(2024, 3, 1)


def query(select: str, where: str = "") -> str:
    """A query over the clicks, by day."""
    column = 1 if select is FIRST else 2
    return f"{select} FROM raw.clicks{where} GROUP BY {column}"


def day(number: int) -> date:
    """The days of this file, counted from 1."""
    return BEGIN + timedelta(days=number - 1)


class Shop(DailyProject):
    """The project, with the clicks of each day as they should be counted."""

    def __init__(self, root: Path) -> None:
        super().__init__(root)
        self.clicks: dict[int, int] = defaultdict(int)

    def on(self, *days: int) -> None:
        """One click on each of some days."""
        for number in days:
            self.clicks[number] += 1
        self.land(*(f"{day(number)}T1{self.clicks[number]}:00:00Z" for number in days))

    def numbers(self, table: str, column: str = "n") -> dict[int, Any]:
        """A column of a table by day."""
        found = api.lake_of(self.project()).rows(table).to_pylist()
        assert len(found) == len({row["day"] for row in found})
        return {(row["day"] - BEGIN).days + 1: row[column] for row in found}

    def counted(self, *more: tuple[int, int]) -> dict[int, int]:
        """The clicks of each day, and what the definition in force adds: (from day, summand)."""
        return {
            number: clicks + next(add for first, add in reversed(more) if number >= first)
            for number, clicks in self.clicks.items()
        }

    def around(self, counted: dict[int, int], *reach: tuple[int, int]) -> dict[int, int]:
        """The sums over the days before each day, by the definition in force: (from day, days)."""
        return {
            number: sum(
                n
                for other, n in counted.items()
                if 0
                <= number - other
                <= next(days for first, days in reversed(reach) if number >= first)
            )
            for number in counted
        }


def test_each_cell_is_computed_by_the_definition_in_force(tmp_path: Path) -> None:
    """Definitions change twice, from the first cell that is not built and from a given one. Late
    rows on all sides are computed by the definition in force there, readers over the borders see
    them, verify judges each cell by its own, and a column that would have another type is refused.
    """
    shop = Shop(tmp_path / "shop")
    shop.on(1, 2, 4)
    shop.models(
        daily=model(query(FIRST), FORWARD),
        reach=model(REACH.format(1), "{forward_only: true, batch_size: 2}"),
        rolling=model(ROLLING),
    )
    shop.go()

    # The second definition, with another reach of its reader, and rows on both sides.
    shop.models(
        daily=model(query(SECOND), FORWARD),
        reach=model(REACH.format(3), "{forward_only: true, batch_size: 2}"),
    )
    shop.on(2, 5, 6)
    done = shop.go()
    counted = shop.counted((1, 0), (5, 100))
    assert shop.numbers("daily") == counted
    assert shop.numbers("daily", "users") == {1: None, 2: None, 4: None, 5: 1, 6: 1}
    assert shop.numbers("daily", "small") == {1: 1, 2: 2, 4: 1, 5: 7, 6: 7}
    assert shop.numbers("reach", "s") == shop.around(counted, (1, 1), (5, 3))
    assert shop.numbers("rolling", "week") == shop.around(counted, (1, 6))
    assert next(receipt.read for step, receipt in done.steps if step.action is Action.DERIVE) == 0

    # The third one from a day that is built already.
    # A reader, changed in the same run, names the column that is new then.
    reach = REACH.format(3).replace("SELECT", "SELECT more,")
    shop.models(daily=model(query(THIRD), FORWARD), reach=model(reach, FORWARD))
    shop.on(1, 5, 6, 7)
    asked = PlanOptions(forward_only={"daily": parse_instant_text(str(day(6)))})
    found = api.plan(shop.project(), asked=asked)
    assert [str(one.category) for one in found.redefinitions] == ["forward-only"] * 2
    shop.go(asked)
    counted = shop.counted((1, 0), (5, 100), (6, 1000))
    assert shop.numbers("daily") == counted
    assert shop.numbers("daily", "users") == {1: None, 2: None, 4: None, 5: 1, 6: 51, 7: 51}
    assert shop.numbers("reach", "s") == shop.around(counted, (1, 1), (5, 3))
    assert shop.numbers("reach", "more") == dict.fromkeys((1, 2, 4, 5, 6)) | {7: [("a", 1)]}
    assert shop.numbers("rolling", "week") == shop.around(counted, (1, 6))

    # Built again, each cell is as it was; so is all that reads it.
    done = api.restate(shop.project(), ["daily", "reach"])
    assert done.receipt.commits == 0
    assert shop.numbers("daily") == counted
    shop.verify()
    for number, which in ((5, "an earlier one"), (6, "the newest")):
        cell = window(str(day(number)), str(day(number + 1)))
        explained = dict(api.explain(shop.project(), "daily", cell).notes)
        assert explained["definition"].startswith(which)

    # What would change the earlier cells is refused, and the table stays as it is.
    shop.models(daily=model(query(THIRD.replace("count(*) + 1000", "'x'")), FORWARD))
    with pytest.raises(RunFailed) as caught:
        shop.go()
    assert [one.error.slug for one in caught.value.result.failures] == ["not-forward-only"]
    assert shop.numbers("daily") == counted
