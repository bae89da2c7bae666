"""Changes that a reader of some columns may see."""

from __future__ import annotations

from tests.planning.strips import day

from infold.core.interval import Interval, Ranges
from infold.core.trace import CellChange, Unchanged, changes_of_columns

AB, A = frozenset({"a", "b"}), frozenset({"a"})


def change(cell: Interval) -> CellChange:
    """A cell with as many rows as before and other content."""
    return CellChange(cell, 1, 1, 3, 3, 10, 20)


ONE, TWO = change(day(1)), change(day(2))


def test_cells_that_are_unchanged_in_the_columns_are_left_out() -> None:
    """A cell is left out where the reader's columns are among those that stayed."""
    left = {2: [Unchanged(AB, Ranges((day(1),)))]}

    assert changes_of_columns(AB, {2: [ONE, TWO]}, left) == {2: (TWO,)}
    assert changes_of_columns(A, {2: [ONE, TWO]}, left) == {2: (TWO,)}
    assert changes_of_columns(frozenset(), {2: [ONE, TWO]}, left) == {2: (TWO,)}
    assert changes_of_columns(frozenset({"a", "c"}), {2: [ONE, TWO]}, left) == {2: (ONE, TWO)}


def test_versions_count_one_by_one() -> None:
    """What one version left unchanged says nothing of the next; without changes it is left out."""
    left = {2: [Unchanged(A, Ranges((day(1),))), Unchanged(AB, Ranges((day(2),)))]}

    assert changes_of_columns(A, {2: [ONE, TWO], 3: [ONE]}, left) == {3: (ONE,)}


def test_a_cell_is_unchanged_only_as_a_whole() -> None:
    """Half a cell is not enough, and two halves of two sets of columns are none."""
    start, end = day(1).start, day(1).end
    halves = Interval(start, start + 5), Interval(start + 5, end)
    left = {2: [Unchanged(A, Ranges((halves[0],))), Unchanged(AB, Ranges((halves[1],)))]}

    assert changes_of_columns(A, {2: [ONE]}, left) == {2: (ONE,)}
