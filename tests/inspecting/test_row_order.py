"""Rows are shown by time and key, or as somebody asks."""

from __future__ import annotations

import pyarrow as pa
import pytest
from tests.declare.shop import SHOP, project

from infold.core.interval import DAY, Interval, parse_instant_text
from infold.core.trace import CellState
from infold.inspecting import show
from infold.inspecting.show import first_cells, in_order, own_order
from infold.messages.errors import InfoldError

ROWS = pa.table(
    {"id": [2, 1, None, 2], "Name": ["b", "a", "c", "a"], "tags": [["x"], ["y"], [], None]}
)
START = parse_instant_text("2024-03-01")


def ids(rows: pa.Table) -> list[tuple[object, object]]:
    """The two columns that can be sorted by."""
    return [(row["id"], row["Name"]) for row in rows.to_pylist()]


@pytest.mark.parametrize(
    ("order", "found"),
    [
        ((), [(1, "a"), (2, "a"), (2, "b"), (None, "c")]),
        (("name", "-id"), [(2, "a"), (1, "a"), (2, "b"), (None, "c")]),
        (("-ID", "-Name"), [(2, "b"), (2, "a"), (1, "a"), (None, "c")]),
    ],
)
def test_rows_are_sorted(order: tuple[str, ...], found: list[tuple[object, object]]) -> None:
    """By the columns that are named, in any case, up or down; else by all; NULL comes last."""
    assert ids(in_order(ROWS, order)) == found


@pytest.mark.parametrize(("order", "what"), [("nmae", "no column nmae"), ("tags", "by tags")])
def test_what_cannot_be_sorted_by(order: str, what: str) -> None:
    """A column that is not there, or a list, is said."""
    with pytest.raises(InfoldError, match=what):
        in_order(ROWS, [order])


def test_the_order_of_a_table() -> None:
    """Its time first, then what tells rows apart."""
    shop = project(SHOP)

    assert own_order(shop["clicks"]) == ("event_ts", "event_id")
    assert own_order(shop["sessions"]) == ("session_start", "session_id")
    assert own_order(shop["daily"]) == ("day",)


def test_the_first_rows_are_in_the_first_cells(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of a large table no more cells are read than have the rows that are shown."""
    days = [Interval(START + at * DAY, START + (at + 1) * DAY) for at in range(3)]
    cells = [CellState(day, 30, 0, None) for day in days]
    daily = project(SHOP)["daily"]

    assert first_cells(daily, cells, 20) == "`day` < '2024-03-02'"
    assert first_cells(daily, cells, 31) == "`day` < '2024-03-03'"
    assert first_cells(daily, cells, 91) is None
    monkeypatch.setattr(show, "MOST", 20)
    assert first_cells(daily, cells, 20) is None
