"""A table has rows of one definition: changed queries,
starts inside a cell, limits, batches, windows.
"""

from __future__ import annotations

import sqlite3
from pathlib import Path
from typing import Any

import pytest
from tests.spark.time_range.daily_project import DailyProject, model, window

from infold import api
from infold.core.plan import HELD_BACK, Action
from infold.core.project import Project
from infold.planning import buildable_cells
from infold.spark.time_range import piecewise, recompute

pytestmark = pytest.mark.spark


class Death(BaseException):
    """The end of a run that nothing may catch; the Java process stays for the next one."""


CUT = "SELECT cast(ts AS date) AS day, id, {0} AS x FROM raw.clicks WHERE {1}"
TIMES = ("2024-02-16T10:00:00Z", "2024-02-20T10:00:00Z", "2024-02-28T10:00:00Z")
READERS = {"week": "weekly", "month": "monthly"}


def declare(shop: DailyProject, x: int, where: str, start: str) -> None:
    """Weeks one by one and months in twos, both cut by their start, and a daily reader of each."""
    for batch, (length, name) in enumerate(READERS.items(), 1):
        keys = f"{{start: {start}, batch_size: {batch}}}"
        shop.models(**{name: model(CUT.format(x, where), keys, "day", length)})
        shop.models(**{f"of_{name}": model(f"SELECT day, id, x FROM {name}")})


def seen(shop: DailyProject) -> list[tuple[Any, ...]]:
    """The identifiers and values in both readers, which are those of the tables."""
    weeks, months = (shop.rows(f"of_{name}") for name in READERS.values())
    assert weeks == months == shop.rows("weekly") == shop.rows("monthly")
    return [(id_, x) for _, id_, x in weeks]


def test_a_cell_that_start_cuts(tmp_path: Path) -> None:
    """A cell that the start cuts is built and read correctly:
    fresh, redefined, filtered, and with a moved start.
    """
    shop = DailyProject(tmp_path / "shop")
    shop.land(*TIMES)
    for x, where, start, ids in (
        (1, "true", "2024-02-15", (1, 2, 3)),
        (2, "id <> 1", "2024-02-15", (2, 3)),
        (2, "true", "2024-02-14", (1, 2, 3)),
        (3, "true", "2024-02-17", (2, 3)),
    ):
        declare(shop, x, where, start)
        api.run(shop.project())
        assert seen(shop) == [(id_, x) for id_ in ids]
        book = api.ledger(shop.project())
        for name in READERS.values():
            assert sum(state.rows for state in book.cells(name)) == len(ids)
    shop.land("2024-02-18T10:00:00Z")  # late, in the cell that is cut
    shop.run()
    assert seen(shop) == [(4, 3), (2, 3), (3, 3)]


DAYS = tuple(f"2024-03-0{n}T10:00:00Z" for n in range(1, 6))
KEYS = "{backfill_limit: 2 days, batch_size: 1, on_definition_change: in_place}"
BY_CELL = "{safety_overrides: {allow_limit: true}}"
FIRST = "SELECT cast(ts AS date) AS day, id, {0} FROM raw.clicks{1}"


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


@pytest.fixture
def shop(tmp_path: Path) -> DailyProject:
    """Five days, two of them built within a limit; and a table that is built cell by cell."""
    made = DailyProject(tmp_path / "shop")
    made.land(*DAYS)
    made.models(limited=model(FIRST.format("1 AS x", ""), KEYS))
    made.models(by_cell=model(FIRST.format("1 AS x", " ORDER BY id LIMIT 1"), BY_CELL))
    made.models(reader=model("SELECT day, id FROM limited"))
    api.run(made.project())
    assert [row[1] for row in made.rows("limited")] == [1, 2]
    api.run(made.project())
    return made


def state(project: Project, name: str) -> str:
    """What status says of a model."""
    [found] = [entry for entry in api.status(project) if entry.model == name]
    assert found.model_state is not None
    return found.model_state.why


def test_no_table_ever_has_two_definitions(
    shop: DailyProject, monkeypatch: pytest.MonkeyPatch
) -> None:
    """While a changed query is built in parts, the old table stays until the new one is
    complete.
    """
    assert [row[1] for row in shop.rows("limited")] == [1, 2, 3, 4]
    shop.models(limited=model(FIRST.format("month(ts) - 1 AS x, 'b' AS y", ""), KEYS))
    shop.models(by_cell=model(FIRST.format("2 AS x", " ORDER BY id LIMIT 1"), BY_CELL))
    shop.models(reader=model("SELECT day, id, y FROM limited"))
    monkeypatch.setattr(piecewise, "TOGETHER", 2)
    monkeypatch.setattr(buildable_cells, "CELLS_TOGETHER", 2)

    shop.land("2024-03-05T11:00:00Z")
    part = api.run(shop.project(), window=window("2024-03-02", "2024-03-04"))
    assert [step.model for step, _ in part.steps] == ["raw.clicks"]
    assert part.notes == (f"by_cell: {HELD_BACK}", f"limited: {HELD_BACK}")
    assert {
        left.model: left.why for left in part.plans[-1].skipped if left.model != "raw.clicks"
    } == {
        "by_cell": HELD_BACK,
        "limited": HELD_BACK,
        "reader": "its input limited is of an old definition",
    }
    with monkeypatch.context() as patch:
        failing(patch, 3)  # the third piece of the first table
        with pytest.raises(Death):
            api.run(shop.project())

    old = [(n, 1) for n in (1, 2, 3, 4)]
    assert [row[1:] for row in shop.rows("limited")] == old
    assert [row[1:] for row in shop.rows("by_cell")] == [*old, (5, 1)]
    expected = "its definition changed, and it still has the rows of the old one"
    assert state(shop.project(), "limited") == expected
    [verdict] = api.verify(shop.project(), select=["limited"]).models
    assert verdict.equal
    assert verdict.note.startswith("by the definition of ")

    done = api.run(shop.project())
    pieces = {step.model: len(step.pieces) for step, _ in done.steps if step.pieces}
    assert pieces == {"limited": 4, "by_cell": 3}
    assert {step.action for step, _ in done.steps if step.pieces} == {Action.BUILD}
    assert [row[1:] for row in shop.rows("limited")] == [(n, 2, "b") for n in (1, 2, 3, 4, 5, 6)]
    assert [row[1:] for row in shop.rows("by_cell")] == [(n, 2) for n in (1, 2, 3, 4, 5)]
    found = api.verify(shop.project(), select=["limited", "reader"])  # by_cell is what it means
    assert found.equal, [(entry.model, entry.note) for entry in found.models]


def test_a_table_is_compared_by_the_definition_that_built_it(shop: DailyProject) -> None:
    """Where the files have another query, a table is equal if it is what its own query gives; it
    is not compared if that query was not kept.
    """
    shop.models(limited=model(FIRST.format("2 AS x", ""), KEYS))

    [verdict] = api.verify(shop.project(), select=["limited"]).models
    assert (verdict.equal, verdict.rows) == (True, 4)
    assert verdict.note.startswith("by the definition of ")
    assert "; the files have another since" in verdict.note

    book = api.ledger(shop.project())
    with sqlite3.connect(book.place) as connection:
        connection.execute("DELETE FROM trace_definitions")
    [verdict] = api.verify(shop.project(), select=["limited"]).models
    assert not verdict.equal
    assert verdict.note == "its rows are of an earlier definition: `infold run` rebuilds it"


def test_the_same_query_in_other_words_is_recorded_and_not_built(tmp_path: Path) -> None:
    """A query with the same rows in other words begins no step; the table goes on by it."""
    shop = DailyProject(tmp_path / "shop")
    shop.land(*TIMES)
    shop.models(daily=model("SELECT cast(ts AS date) AS day, id FROM raw.clicks"))
    assert len(api.run(shop.project()).steps) == 2

    shop.models(
        daily=model("SELECT cast(c.ts AS date) AS day, c.id FROM raw.clicks AS c WHERE TRUE")
    )
    assert not api.run(shop.project()).steps
    trace = api.ledger(shop.project()).traces()["daily"]
    assert trace.fingerprint == shop.project()["daily"].fingerprint

    shop.land("2024-02-18T10:00:00Z")
    assert [step.action for step, _ in api.run(shop.project()).steps] == [
        Action.INGEST,
        Action.RECOMPUTE,
    ]
    assert len(shop.rows("daily")) == 4
    assert api.verify(shop.project()).equal
