"""What is drawn of rows: which columns, and the lowest and highest value at each time."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from typing import Any

import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st
from tests.cli import sample

from infold.core.interval import DAY, HOUR, Granularity, micros_of
from infold.core.report import OverTime, RowByRow
from infold.inspecting.plot import MOST_COLUMNS, MOST_GROUPS, drawn_columns, picture_of

FIRST = datetime(2024, 3, 1, tzinfo=UTC)


def over_time(columns: dict[str, Any]) -> OverTime:
    """The pictures over time of some columns."""
    found = picture_of(pa.table(columns), sample.DAILY.model)
    assert isinstance(found, OverTime)
    return found


def points(found: OverTime, name: str) -> list[tuple[int, float, float]]:
    """The points of a series: day since the first, lowest, highest."""
    (series,) = (one for one in found.series if one.name == name)
    start = micros_of(FIRST)
    return [((one.cell.start - start) // DAY, one.low, one.high) for one in series.points]


def test_days_of_a_table_are_a_point_each() -> None:
    """With one row a day each point is its value; NULL and NaN have none."""
    days = [date(2024, 3, day) for day in (3, 1, 2, 4)]
    found = over_time({"day": days, "n": [3, 1, None, 4], "x": [0.5, float("nan"), 1.5, -1.0]})

    assert (found.time, found.finest, found.by) == ("day", Granularity.DAY, "")
    assert [one.name for one in found.series] == ["n", "x"]
    assert points(found, "n") == [(0, 1, 1), (2, 3, 3), (3, 4, 4)]
    assert points(found, "x") == [(1, 1.5, 1.5), (2, 0.5, 0.5), (3, -1, -1)]
    own = over_time({"at": [FIRST], "day": [date(2024, 3, 5)], "n": [1]})
    assert (own.time, points(own, "n")) == ("day", [(4, 1, 1)]), "the one by which it has cells"
    empty = picture_of(pa.schema({"day": pa.date32(), "n": pa.int64()}).empty_table(), None)
    assert isinstance(empty, OverTime)
    assert [one.points for one in empty.series] == [()]


def test_times_of_a_day_are_hours() -> None:
    """Times that are no midnights are drawn by hours, whatever their unit and zone."""
    for kind in (pa.timestamp("s"), pa.timestamp("ms", "UTC"), pa.timestamp("ns", "UTC")):
        at = pa.array([FIRST + timedelta(hours=5, seconds=7)], pa.timestamp("us", "UTC")).cast(kind)
        found = over_time({"at": at, "n": [1]})

        assert found.finest is Granularity.HOUR
        assert [one.cell.start for one in found.series[0].points] == [micros_of(FIRST) + 5 * HOUR]


def test_several_rows_of_a_time_are_counted_too() -> None:
    """Where times repeat, how many rows there are comes first."""
    found = over_time({"at": [FIRST, FIRST, FIRST + timedelta(days=1)], "n": [5, 2, 9]})

    assert [one.name for one in found.series] == ["rows", "n"]
    assert [one.adds_up for one in found.series] == [True, False]
    assert points(found, "rows") == [(0, 2, 2), (1, 1, 1)]
    assert points(found, "n") == [(0, 2, 5), (1, 9, 9)]


def test_a_column_that_tells_the_rows_of_a_time_apart_groups_them() -> None:
    """A row for each day and country is a line for each country, NULL too; highest first, and of
    many those alone. Two events of two users at one instant do not make each user a line.
    """
    found = over_time(
        {
            "day": [date(2024, 3, 1)] * 3 + [date(2024, 3, 2)] * 2,
            "country": ["nl", "de", None, "nl", "de"],
            "n": [1, 5, 3, 2, None],
        }
    )

    (series,) = found.series
    assert found.by == "country"
    assert [name for name, _ in series.groups] == ["de", "NULL", "nl"]
    assert [[one.high for one in drawn] for _, drawn in series.groups] == [[5], [3], [1, 2]]
    minute = timedelta(minutes=1)
    found = over_time(
        {"at": [FIRST, FIRST, FIRST + minute], "who": ["ann", "bob", "ann"], "n": [1, 2, 3]}
    )
    assert (found.by, [one.name for one in found.series]) == ("", ["rows", "n"]), (
        "two at an instant"
    )
    names = [f"n{number:03}" for number in range(40)]
    found = over_time({"day": [date(2024, 3, 1)] * 40, "who": names, "n": list(range(40))})
    assert [name for name, _ in found.series[0].groups] == names[::-1][:MOST_GROUPS]


def test_rows_without_a_time_are_counted() -> None:
    """They have no place on the axis; neither have times that no calendar has."""
    found = over_time({"at": [FIRST, None, None], "n": [1, 2, 3]})
    assert (found.left_out, points(found, "n")) == (2, [(0, 1, 1)])

    first_year = -62_135_596_800 * 10**6
    far = pa.array([10**18, 253_402_300_800 * 10**6, first_year], pa.timestamp("us"))
    found = over_time({"at": far, "n": [1, 2, 3]})
    assert found.left_out == 2
    assert [(one.low, one.cell.start) for one in found.series[0].points] == [(3, first_year)]


def test_rows_without_any_time_have_bars() -> None:
    """The label is the first column of names, and all kinds of numbers are drawn."""
    columns = {
        "who": ["ann", None],
        "n": [-3, None],
        "d": [Decimal("1.50"), Decimal("-2.25")],
        "big": pa.array([2**63, 0], pa.uint64()),
        "ok": [True, False],
    }
    found = picture_of(pa.table(columns), None)

    assert isinstance(found, RowByRow)
    assert (found.label, found.labels) == ("who", ("ann", "NULL"))
    assert found.columns == (("n", (-3.0, None)), ("d", (1.5, -2.25)), ("big", (float(2**63), 0.0)))


def test_only_columns_that_are_drawn_are_read() -> None:
    """Not structs, lists and further texts; all numbers, so that others are named."""
    assert picture_of(pa.table({"who": ["ann"]}), None) is None
    assert drawn_columns(pa.schema({"who": pa.string(), "tags": pa.list_(pa.int64())}), None) == ()
    kinds = {"a": pa.string(), "b": pa.string(), "c": pa.string(), "l": pa.list_(pa.int64())}
    numbers = {f"n{at}": pa.int32() for at in range(MOST_COLUMNS + 1)}
    schema = pa.schema({**kinds, "day": pa.date32(), **numbers})

    assert drawn_columns(schema, sample.DAILY.model) == ("a", "b", "day", *numbers)
    found = over_time({"day": [date(2024, 3, 1)], **{name: [1] for name in numbers}})
    assert found.not_drawn == (f"n{MOST_COLUMNS}",)


@given(st.lists(st.tuples(st.integers(-3000, 3000), st.integers(-50, 50) | st.none()), max_size=40))
def test_points_are_those_of_the_rows(drawn: Sequence[tuple[int, int | None]]) -> None:
    """Each hour has its lowest and highest value, and how many rows it has, as Python counts."""
    times = [FIRST + timedelta(minutes=at * 7) for at, _ in drawn]
    when = pa.array(times, pa.timestamp("us", "UTC"))
    n = pa.array([value for _, value in drawn], pa.int64())
    found = picture_of(pa.table({"at": when, "n": n}), None)
    assert isinstance(found, OverTime)
    values: dict[int, list[int]] = {}
    rows: dict[int, int] = {}
    for at, (_, value) in zip(times, drawn, strict=True):
        start = found.finest.floor(micros_of(at))
        rows[start] = rows.get(start, 0) + 1
        if value is not None:
            values.setdefault(start, []).append(value)

    known = {one.name: one for one in found.series}
    assert [(one.cell.start, one.low, one.high) for one in known["n"].points] == [
        (start, min(some), max(some)) for start, some in sorted(values.items())
    ]
    if "rows" in known:
        assert [(one.cell.start, one.high) for one in known["rows"].points] == sorted(rows.items())
    else:
        assert set(rows.values()) <= {1}
