"""A table has rows of one definition while another is built."""

from __future__ import annotations

import sqlite3
from pathlib import Path
from typing import Any

import pytest
from tests.spark.time_range.daily_project import DailyProject, days, model

from infold import api
from infold.core.plan import Action
from infold.core.project import Project
from infold.core.report import Verdict
from infold.planning import buildable_cells
from infold.render.status import status_screen
from infold.spark.time_range import recompute

pytestmark = pytest.mark.spark


class Death(BaseException):
    """The end of a run that nothing may catch; the Java process stays for the next one."""


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
            raise Death
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
    trace = api.ledger(shop.project()).traces()["reader"]
    assert trace.fingerprint == shop.project()["reader"].fingerprint

    shop.models(limited=model(QUERY.format("month(ts) - 1 AS x, 'b' AS y", ""), KEYS))
    shop.models(by_cell=model(QUERY.format("2 AS x", " ORDER BY id LIMIT 1"), BY_CELL))
    shop.models(reader=model("SELECT day, id, y FROM limited"))
    shop.land("2024-03-05T13:00:00Z")
    monkeypatch.setattr(recompute, "TOGETHER", 2)
    monkeypatch.setattr(buildable_cells, "CELLS_TOGETHER", 2)
    with monkeypatch.context() as patch:
        failing(patch, 3)  # the third piece of the first table
        with pytest.raises(Death):
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
    with sqlite3.connect(api.ledger(shop.project()).place) as connection:
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
