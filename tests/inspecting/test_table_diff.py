"""The rows that differ between two tables of one model."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.declare.shop import project

from infold.core.definition import Category, How, Redefinition
from infold.core.interval import DAY, Interval, Ranges
from infold.core.report import EnvironmentDiff, Row, RowDiff, TableDiff
from infold.core.trace import CellState
from infold.inspecting.table_diff import row_diffs, table_diff
from infold.render.environments import diff_json, diff_screen

ROWS = st.lists(
    st.fixed_dictionaries({"id": st.integers(0, 3), "n": st.none() | st.floats(0, 2)}), max_size=8
)


def texts(rows: Sequence[Row | None]) -> Counter[str]:
    """Rows as a multiset."""
    return Counter(repr(row) for row in rows)


@given(ROWS, ROWS, st.sampled_from([(), ("id",), ("id", "n")]))
def test_one_table_and_the_difference_make_the_other(
    before: list[Row], after: list[Row], key: tuple[str, ...]
) -> None:
    """Without the rows that were removed or changed, and with those added or changed, one table is
    the other; each changed row has one key on both sides, which no other differing row has.
    """
    added, removed, changed = row_diffs(before, after, key)

    left = texts(before) - texts([one.before for one in (*removed, *changed)])
    assert left + texts([one.after for one in (*added, *changed)]) == texts(after)
    kept = texts(before) & texts(after)
    assert left == kept
    for one in changed:
        assert one.before is not None
        assert one.after is not None
        assert [one.before[name] for name in key] == [one.after[name] for name in key]
        others = [row.key for row in (*added, *removed, *changed)]
        assert others.count(one.key) == 1
    assert key or not changed


def test_what_is_shown() -> None:
    """Each table has its numbers, its columns, and rows with what became of them."""
    cells = Ranges((Interval(0, DAY),))
    rows = (
        RowDiff({"day": "a"}, {"day": "a", "n": 1}, {"day": "a", "n": 2}),
        RowDiff({"day": "b"}, None, {"day": "b", "n": None}),
        RowDiff({"day": "c"}, {"day": "c", "n": 3}, None),
    )
    table = TableDiff("daily", (4, 4), (("top", "", "int32"),), cells, 1, 1, 1, rows)
    new = TableDiff("best", (0, 1), compared=False)
    change = Redefinition("daily", Category.BREAKING, (), How.REBUILD, None, None)
    found = EnvironmentDiff("dev", (change,), (table, new, TableDiff("weekly", (2, 2))))

    assert diff_screen(found) == (
        "Definitions\n"
        "  daily  breaking\n\n"
        "daily: 4 rows in production, 4 here: 1 added, 1 removed, 1 changed\n"
        "  column top: none → int32\n"
        "  ~ day a: n 1 → 2\n"
        "  + day b, n NULL\n"
        "  - day c, n 3\n\n"
        "best: production has none; 1 row\n\n"
        "weekly: the same 2 rows"
    )
    assert [one["equal"] for one in diff_json(found)["tables"]] == [False, False, True]
    assert diff_json(found)["tables"][0]["cells"] == [
        ["1970-01-01T00:00:00Z", "1970-01-02T00:00:00Z"]
    ]
    same = EnvironmentDiff("dev", (), (TableDiff("weekly", (2, 2)),))
    assert (same.equal, found.equal) == (True, False)
    assert diff_screen(same) == "dev and production have the same rows."


@pytest.mark.parametrize(
    ("model", "type_", "where"),
    [
        ("daily", pa.date32(), "`day` >= '1970-01-02' AND `day` < '1970-01-04'"),
        (
            "sessions",
            pa.timestamp("us", "UTC"),
            "`session_start` >= '1970-01-02T00:00:00' AND `session_start` < '1970-01-04T00:00:00'",
        ),
    ],
)
def test_only_what_differs_is_read(model: str, type_: pa.DataType, where: str) -> None:
    """Rows are read from the first to the last cell with other contents, and of none otherwise."""
    name = "day" if model == "daily" else "session_start"
    spark = "date" if model == "daily" else "timestamp"
    asked = []

    class Stored:
        """Two tables, as ledger and lake; the other one has other contents on two days."""

        def cells(self, table: str) -> list[CellState]:
            """Five days."""
            other = {1, 2} if table == "other" else set()
            return [
                CellState(Interval(at * DAY, (at + 1) * DAY), 1, at + (at in other))
                for at in range(5)
            ]

        def columns(self, table: str) -> dict[str, str]:
            """Those of the table, and one that the other has in another type."""
            return {name: spark, "n": "long" if table == "other" else "integer"}

        def rows(self, table: str, where: str = "", **_: Any) -> pa.Table:
            """No row, with the columns of the table."""
            if where:
                asked.append((table, where))
            return pa.schema([(name, type_)]).empty_table()

    stored: Any = Stored()
    found = table_diff(stored, stored, project()[model], model, "other")

    assert asked == [(model, where), ("other", where)]
    assert found.cells == Ranges((Interval(DAY, 3 * DAY),))
    assert found.columns == (("n", "int", "bigint"),)
    same = table_diff(stored, stored, project()[model], model, "same")
    assert (same.equal, len(asked)) == (True, 2)
