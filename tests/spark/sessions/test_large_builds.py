"""
A large first build of sessions: in slices of time along the partitions of its events, and computed
with numbers in place of the distinct strings in the files of its input.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pyarrow as pa
import pytest
from tests.spark.cumulative.clicks_by_user import CLICKS, SOURCE, put
from tests.spark.events.clicks_project import NewShop

from infold.core.interval import (
    DAY,
    HOUR,
    MINUTE,
    Granularity,
    Interval,
    datetime_of,
    parse_instant_text,
)
from infold.core.trace import CellState
from infold.spark.sessions import build
from infold.spark.sessions.time_slices import MOST, ROWS, slice_borders, sliced_events
from infold.spark.tables.iceberg.tables import IcebergTables

pytestmark = pytest.mark.spark

MONTHS = [f"{year}-{month:02}" for year in (2019, 2020, 2021, 2022) for month in range(1, 13)]


def history(*rows: int, days: int = 1) -> list[CellState]:
    """Cells of the first days of successive months, with some rows each."""
    starts = (parse_instant_text(f"{month}-01") for month in MONTHS)
    return [
        CellState(Interval(start + day * DAY, start + (day + 1) * DAY), number, 0)
        for start, number in zip(starts, rows, strict=False)
        for day in range(days)
    ]


class TestBorders:
    """Where the slices of a history begin, and when there are none."""

    def test_each_partition_is_a_slice_of_its_own(self) -> None:
        """Few partitions are one slice each, and no border is before the first."""
        found = slice_borders(history(*[7] * 8, days=3), Granularity.MONTH, HOUR, 2)
        assert found == tuple(parse_instant_text(f"{month}-01") for month in MONTHS[1:8])

    def test_few_rows_make_no_slice(self) -> None:
        """Neighbouring partitions are one slice, up to one and a half shares of the rows."""
        cells = history(12, 1, 1, 12, 12, 12, 12, 12, 2, 2, 2)
        found = slice_borders(cells, Granularity.MONTH, HOUR, 1)
        assert found == tuple(parse_instant_text(f"{MONTHS[at]}-01") for at in (3, 4, 5, 6, 7))

    def test_long_histories_have_so_many_slices_and_no_more(self) -> None:
        """The number of slices is limited, because planning each takes time."""
        found = slice_borders(history(*[100 * ROWS] * 48), Granularity.MONTH, HOUR, 2)
        assert MOST / 2 < len(found) < 1.5 * MOST

    @pytest.mark.parametrize(
        ("cells", "partition", "far", "tasks"),
        [
            (history(*[7] * 8), None, HOUR, 2),
            (history(*[7] * 8), Granularity.DAY, HOUR, 2),
            (history(*[7] * 8), Granularity.MONTH, 3 * DAY, 2),
            (history(*[7] * 8), Granularity.MONTH, HOUR, 5),
            (history(1, 1, 1, 90, 1, 1), Granularity.MONTH, HOUR, 2),
            ([], Granularity.MONTH, HOUR, 2),
        ],
        ids=["no partitions", "short ones", "long gap", "many tasks", "one holds most", "no rows"],
    )
    def test_there_are_no_slices_where_they_do_not_pay(
        self, cells: list[CellState], partition: Granularity | None, far: int, tasks: int
    ) -> None:
        """A history without useful partitions has no slices: all of it is shuffled instead."""
        assert slice_borders(cells, partition, far, tasks) == ()


SESSIONS = """---
materialization: sessions
sessions: {user: user_id, gap: 30 minutes}
---
SELECT count(*) AS events, first(url) AS entry, last(url, true) AS exit, max(amount) AS most,
  first(url) FILTER (WHERE amount > 3) AS paid
FROM clicks"""


@pytest.mark.usefixtures("spark")
def test_a_large_build_of_stored_partitions(
    new_shop: NewShop, monkeypatch: pytest.MonkeyPatch
) -> None:
    """
    With events stored by month, sessions over the midnight of a first are whole.

    The distinct strings come from the files of the input's version:
    values that left it are harmless, new ones count.
    """
    monkeypatch.setattr("infold.spark.events.layout.ROWS_FOR_PARTITIONS", 0)
    monkeypatch.setattr("infold.spark.events.layout._ROWS_OF_A_MONTH", 0)
    monkeypatch.setattr(build, "LARGE", 0)
    used: list[Sequence[int]] = []
    asked: list[tuple[str, list[str]]] = []
    real = IcebergTables.values

    def seen(*given: Any) -> Any:
        used.append(given[-1])
        return sliced_events(*given)

    def values(new_shop: NewShop, self: IcebergTables, *given: Any) -> pa.Array | None:
        found = real(self, *given)
        assert found is not None
        asked.append((given[1], sorted(found.to_pylist())))
        return found

    monkeypatch.setattr(build, "sliced_events", seen)
    monkeypatch.setattr(IcebergTables, "values", values)
    made = new_shop(CLICKS, SOURCE)
    rows: list[str] = []
    for at, month in enumerate(MONTHS):
        first = parse_instant_text(f"{month}-01")
        # ann: over midnight, a gap apart; bob: more than that; cid: two events at one instant
        for who, when in (
            ("ann", first - 20 * MINUTE),
            ("ann", first + 10 * MINUTE),
            ("bob", first - 1),
            ("bob", first + 30 * MINUTE),
            ("cid", first),
            ("cid", first),
            ("dot", first + 9 * DAY),
        ):
            rows.append(f"{len(rows)},{who},{_said(when)},/{at % 5}{len(rows) % 3},1.50")
    put(made, "all.csv", *rows)
    later = "2024-03-02 09:0"
    put(made, "a.csv", f"a1,eve,{later}0:00,/gone,1", f"a2,fay,{later}0:00,/b,2")
    made.run()
    put(made, "a.csv", f"a1,eve,{later}0:00,/a,1", f"a2,fay,{later}0:00,/b,2")
    # two at the first instant of eve's, none known at the last of fay's
    put(
        made,
        "b.csv",
        f"b3,eve,{later}0:00,é,5",
        f"b4,fay,{later}5:00,,9",
        f"b5,fay,{later}4:00,/d,4",
    )
    made.run()
    made.model("sessions", SESSIONS)

    receipt = made.run(model="sessions")

    [borders] = used
    assert set(borders) <= {parse_instant_text(f"{month}-01") for month in [*MONTHS, "2024-03"]}
    assert len(borders) > 2
    [(column, strings)] = asked
    there = {"/a", "/b", "/d", "é", *(row.split(",")[3] for row in rows)}
    assert column == "url"
    assert there <= set(strings) <= {"/gone", *there}
    assert receipt.sessions_new == len(MONTHS) * 5 + 2
    found = made.records("sessions")
    assert {(row["user_id"], row["events"]) for row in found} == {
        ("ann", 2),
        ("bob", 1),
        ("cid", 2),
        ("dot", 1),
        ("eve", 2),
        ("fay", 3),
    }
    urls = ("user_id", "entry", "exit", "paid")
    late = [tuple(row[name] for name in urls) for row in found if row["user_id"] in ("eve", "fay")]
    assert sorted(late) == [("eve", "/a", "é", "é"), ("fay", "/b", "/d", "/d")]


def _said(at: int) -> str:
    return datetime_of(at).replace(tzinfo=None).isoformat(sep=" ", timespec="microseconds")
