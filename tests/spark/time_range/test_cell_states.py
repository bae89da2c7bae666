"""Counts and contents of cells are the same, observed during a write or grouped afterwards."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from tests.spark.time_range.daily_project import DAILY, DailyProject, model

from infold.core.interval import DAY, Interval, Ranges, parse_instant_text
from infold.core.project import Node
from infold.spark.time_range import cell_states
from infold.spark.time_range.cell_states import CellStates, compute_once, states_of_cells

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

pytestmark = pytest.mark.spark

ROWS = """VALUES ('2024-03-01', 1), ('2024-03-01', 1), ('2024-03-01', NULL), ('2024-03-02', 2),
  ('2024-03-04', 3), ('2024-03-05', 4), ('2024-03-09', -5), ('2024-03-10', 6) AS t (day, n)"""
"""Copies, a day without rows, and days beyond those asked for."""

FIRST = parse_instant_text("2024-03-01")
ASKED = Ranges((Interval(FIRST, FIRST + 3 * DAY), Interval(FIRST + 4 * DAY, FIRST + 6 * DAY)))


@pytest.fixture
def node(tmp_path: Path) -> Node:
    """A model with a cell for each day."""
    shop = DailyProject(tmp_path / "shop")
    shop.models(daily=model(DAILY))
    return shop.project()["daily"]


def both(
    rows: DataFrame, node: Node, type_: str, monkeypatch: pytest.MonkeyPatch
) -> tuple[CellStates, CellStates]:
    """The states of the cells observed, and grouped; the rows themselves stay the same."""
    observed_rows, observed = compute_once(rows, node, ASKED, type_)
    monkeypatch.setattr(cell_states, "_FEW_CELLS", 1)
    grouped_rows, found = compute_once(rows, node, ASKED, type_)
    assert observed_rows.columns == grouped_rows.columns == rows.columns
    assert sorted(map(str, observed_rows.collect())) == sorted(map(str, rows.collect()))
    return observed, found


@pytest.mark.parametrize("type_", ["date", "timestamp"])
def test_observed_is_what_grouping_finds(
    spark: SparkSession, node: Node, type_: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Rows, content and last time of each cell, and rows in
    other cells, equal those found by grouping.
    """
    rows = spark.sql(f"SELECT cast(day AS {type_}) AS day, n, 'x' AS _hash FROM {ROWS}")
    observed, found = both(rows, node, type_, monkeypatch)
    assert observed == found
    assert [(cell.start - FIRST) // DAY for cell in sorted(observed.cells)] == [0, 1, 4]
    assert observed.beyond == 2 + 1
    whole = states_of_cells(rows, node).cells
    assert observed.cells == {cell: whole[cell] for cell in observed.cells}


def test_no_rows_at_all(spark: SparkSession, node: Node, monkeypatch: pytest.MonkeyPatch) -> None:
    """A query without rows has no cells, even if its plan is empty from the start."""
    for condition in ("false", "n > 100"):
        rows = spark.sql(f"SELECT cast(day AS date) AS day, n FROM {ROWS} WHERE {condition}")
        observed, found = both(rows, node, "date", monkeypatch)
        assert observed == found == CellStates({})
        monkeypatch.undo()
