"""Versions and changes: the net of several changes, and contents that add up."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from hashlib import sha256

from hypothesis import given
from hypothesis import strategies as st
from tests.planning.strips import day

from infold.core.interval import DAY, HOUR, Granularity, Interval, Ranges
from infold.core.trace import (
    CellChange,
    CellState,
    Unchanged,
    added_up,
    changes_of_columns,
    net_changes,
    signed,
)

CELLS = [Interval(day * DAY, (day + 1) * DAY) for day in range(3)]

History = tuple[list[CellChange], list[tuple[Counter[int], Counter[int]]]]
content = st.integers(-(2**63), 2**63 - 1)


def row_hash(row: int) -> int:
    """A 64-bit hash that is not linear: 1 and 4 must not add up to what 2 and 3 do."""
    return signed(int.from_bytes(sha256(str(row).encode()).digest()[:8], "big"))


def state(rows: Counter[int]) -> tuple[int, int]:
    """Number of rows and additive content of a cell that holds ``rows``."""
    return rows.total(), signed(sum(row_hash(row) * copies for row, copies in rows.items()))


def changed(
    cell: Interval,
    new: Counter[int],
    gone: Counter[int],
    before: Counter[int],
    after: Counter[int],
    last: int | None = None,
) -> CellChange:
    """A cell that got and lost rows, as a table would record it."""
    states = zip(state(before), state(after), strict=True)
    (rows, rows_after), (content, content_after) = states
    return CellChange(
        cell, new.total(), gone.total(), rows, rows_after, content, content_after, last
    )


@st.composite
def histories(draw: st.DrawFn) -> History:
    """Changes to three cells as a table would record them, and each cell before and after."""
    start = [Counter(draw(st.lists(st.integers(0, 4), max_size=3))) for _ in CELLS]
    now = [Counter(rows) for rows in start]
    changes = []
    for which in draw(st.lists(st.integers(0, 2), max_size=8)):
        before = Counter(now[which])
        gone = (
            Counter(draw(st.lists(st.sampled_from([*before.elements(), 9]), max_size=2))) & before
        )
        new = Counter(draw(st.lists(st.integers(0, 4), max_size=2)))
        now[which] = before - gone + new
        last = draw(st.none() | st.integers(0, DAY))
        changes.append(changed(CELLS[which], new, gone, before, now[which], last))
    return changes, list(zip(start, now, strict=True))


class TestNet:
    """Several changes of one cell are one change from its first to its last content."""

    @given(histories(), st.integers(0, 8))
    def test_net_is_the_difference_between_then_and_now(self, history: History, cut: int) -> None:
        """
        A cell is in the net exactly when it differs between then and now, by its content, with both
        states and the latest of all times. In parts it is the same net, but for counts of rows that
        came and left in between.
        """
        changes, cells = history
        net = net_changes(changes)
        found = {change.cell: change for change in net}
        touched = {change.cell for change in changes}
        assert [*found] == [
            cell
            for cell, (before, after) in zip(CELLS, cells, strict=True)
            if before != after and cell in touched
        ]
        for cell, (before, after) in zip(CELLS, cells, strict=True):
            if cell in found:
                change = found[cell]
                assert change.changes_rows
                assert (change.rows_before, change.content_before) == state(before)
                assert (change.rows_after, change.content_after) == state(after)
                assert change.rows_after - change.rows_before == change.added - change.removed
                known = [c.last for c in changes if c.cell == cell and c.last is not None]
                assert change.last == max(known, default=None)
        parts = net_changes((*net_changes(changes[:cut]), *net_changes(changes[cut:])))
        assert [replace(one, added=0, removed=0, last=None) for one in parts] == [
            replace(one, added=0, removed=0, last=None) for one in net
        ]


@given(st.lists(content), content)
def test_contents_do_not_depend_on_order(hashes: list[int], more: int) -> None:
    """Contents are signed 64-bit sums, and removing a row undoes adding it."""
    at_once = signed(sum(hashes))
    one_by_one = 0
    for value in reversed(hashes):
        one_by_one = signed(one_by_one + value)
    assert at_once == one_by_one
    assert -(2**63) <= at_once < 2**63
    assert signed(signed(at_once + more) - more) == at_once
    assert signed(more) == more


class TestOtherCells:
    """A table may be divided into other cells between two versions; its rows stay the same."""

    @given(
        st.lists(
            st.tuples(
                st.sampled_from([Granularity.HOUR, Granularity.DAY]),
                st.integers(0, 3),
                st.lists(st.integers(0, 1), max_size=2),
            ),
            max_size=9,
        )
    )
    def test_every_row_that_came_or_went_is_in_a_cell_that_changed(
        self, steps: list[tuple[Granularity, int, list[int]]]
    ) -> None:
        """And what changed lost or got rows that cover the difference."""
        start = {at: Counter[int]() for at in range(4)}  # four half days of two days
        now = {at: Counter(rows) for at, rows in start.items()}
        changes = []
        for granularity, at, rows in steps:
            cell = granularity.cell(at * DAY // 2)
            inside = [one for one in now if one * DAY // 2 in cell]
            before = sum((marked(now[one], one) for one in inside), Counter[int]())
            now[at] = Counter(rows)
            after = sum((marked(now[one], one) for one in inside), Counter[int]())
            changes.append(changed(cell, after - before, before - after, before, after))
        net = net_changes(changes)
        for at in range(4):
            came, went = now[at] - start[at], start[at] - now[at]
            here = [change for change in net if at * DAY // 2 in change.cell]
            assert here or not (came or went)
            assert sum(change.added for change in here) >= came.total()
            assert sum(change.removed for change in here) >= went.total()

    def test_a_cell_that_changed_as_another_is_no_cell_that_is_as_before(self) -> None:
        """An hour that a day gave other rows in between is not back at the rows that it had."""
        day, hour = Granularity.DAY.cell(0), Granularity.HOUR.cell(0)
        changes = [
            CellChange(hour, 1, 1, 1, 1, 10, 20),
            CellChange(day, 1, 1, 1, 1, 20, 30),
            CellChange(hour, 1, 1, 1, 1, 30, 10),
            CellChange(day, 1, 1, 1, 1, 10, 20),
        ]

        assert {change.cell for change in net_changes(changes)} == {day, hour}

    @given(st.lists(st.integers(0, 60), max_size=12), st.sampled_from(Granularity))
    def test_longer_cells_are_the_sums_of_their_parts(
        self, times: list[int], longer: Granularity
    ) -> None:
        """Rows, content and last time are those of all rows in the cell. A week may begin in one
        year and end in another: it has no sum.
        """
        rows = [(at * 11 * HOUR, at) for at in times]
        by_day = states_of(rows, Granularity.DAY)

        if longer is Granularity.HOUR:
            assert added_up(by_day, longer) is None or not by_day
        else:
            assert added_up(by_day, longer) == states_of(rows, longer)
        week = CellState(Granularity.WEEK.cell(0), 1, 7)
        assert added_up([week], Granularity.YEAR) is None
        assert added_up([week], Granularity.WEEK) == (week,)


def marked(rows: Counter[int], at: int) -> Counter[int]:
    """Rows with their time in them, as rows of a table have."""
    return Counter({row + 10 * at: count for row, count in rows.items()})


def states_of(rows: list[tuple[int, int]], granularity: Granularity) -> tuple[CellState, ...]:
    """The states of the cells of rows with their times."""
    found = {}
    for cell in sorted({granularity.cell(at) for at, _ in rows}):
        own = [(at, row) for at, row in rows if at in cell]
        count, content = state(Counter(row for _, row in own))
        found[cell] = CellState(cell, count, content, max(at for at, _ in own))
    return tuple(found.values())


AB, A = frozenset({"a", "b"}), frozenset({"a"})


def change(cell: Interval) -> CellChange:
    """A cell with as many rows as before and other content."""
    return CellChange(cell, 1, 1, 3, 3, 10, 20)


ONE, TWO = change(day(1)), change(day(2))


def test_cells_that_are_unchanged_in_the_columns_are_left_out() -> None:
    """A cell is left out where the reader's columns are among those that stayed. What one version
    left unchanged says nothing of the next; without changes it is left out.
    """
    left = {2: [Unchanged(AB, Ranges((day(1),)))]}

    for columns in (AB, A, frozenset[str]()):
        assert changes_of_columns(columns, {2: [ONE, TWO]}, left) == {2: (TWO,)}
    assert changes_of_columns(frozenset({"a", "c"}), {2: [ONE, TWO]}, left) == {2: (ONE, TWO)}
    left = {2: [Unchanged(A, Ranges((day(1),))), Unchanged(AB, Ranges((day(2),)))]}
    assert changes_of_columns(A, {2: [ONE, TWO], 3: [ONE]}, left) == {3: (ONE,)}


def test_a_cell_is_unchanged_only_as_a_whole() -> None:
    """Half a cell is not enough, and two halves of two sets of columns are none."""
    start, end = day(1).start, day(1).end
    halves = Interval(start, start + 5), Interval(start + 5, end)
    left = {2: [Unchanged(A, Ranges((halves[0],))), Unchanged(AB, Ranges((halves[1],)))]}

    assert changes_of_columns(A, {2: [ONE]}, left) == {2: (ONE,)}
