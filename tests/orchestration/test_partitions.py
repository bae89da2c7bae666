"""Cells of tables as the partitions of a scheduler."""

from __future__ import annotations

from datetime import datetime, timedelta

import pytest
from cronsim import CronSim
from hypothesis import example, given
from hypothesis import strategies as st

from infold.core.interval import DAY, Granularity, datetime_of
from infold.orchestration.graph import (
    GraphModel,
    Stretch,
    instant,
    overlap,
    partitions_of,
    window_words,
)
from infold.render.formatting import iso


def table(granularity: str | None, start: str | None, *, incremental: bool = True) -> GraphModel:
    """A table of a project."""
    return GraphModel(
        "daily", "table", incremental=incremental, granularity=granularity, start=start
    )


@given(granularity=st.sampled_from(list(Granularity)), at=st.integers(7 * DAY, 50_000 * DAY))
@example(granularity=Granularity.SUNDAY_WEEK, at=10 * DAY)  # a Sunday
@example(granularity=Granularity.QUARTER, at=100 * DAY)  # it begins in April
def test_partitions_are_the_cells(granularity: Granularity, at: int) -> None:
    """The first begins where the cell of the start does, and each ends where its cell does."""
    cell = granularity.floor(at)

    found = partitions_of(table(granularity.value, iso(at)))

    assert found is not None
    assert found.start == datetime_of(cell)
    assert next(CronSim(found.cron, found.start)) == datetime_of(granularity.next(cell))


def test_tables_without_partitions() -> None:
    """What no window limits, and what has no first cell."""
    start = "2024-01-01T00:00:00Z"
    for model in (table("day", start, incremental=False), table("day", None), table(None, start)):
        assert partitions_of(model) is None


def test_keys_of_hours_have_hours() -> None:
    """Those of longer cells are days."""
    hours, days = (partitions_of(table(name, "2024-01-01T00:00:00Z")) for name in ("hour", "month"))

    assert hours is not None
    assert days is not None
    assert hours.start.strftime(hours.key_format) == "2024-01-01-00:00"
    assert days.start.strftime(days.key_format) == "2024-01-01"


@pytest.mark.parametrize(
    ("built", "covered", "found"),
    [
        ([(None, None)], [("2024-03-08", "2024-03-10")], [("2024-03-08", "2024-03-10")]),
        ([("2024-03-09", None)], [("2024-03-08", "2024-03-10")], [("2024-03-09", "2024-03-10")]),
        ([("2024-03-08", "2024-03-09")], [("2024-03-09", "2024-03-10")], []),
        (
            [("2024-03-01", "2024-03-09")],
            [("2024-03-02", "2024-03-03"), ("2024-03-08", "2024-03-20")],
            [("2024-03-02", "2024-03-03"), ("2024-03-08", "2024-03-09")],
        ),
        ([], [("2024-03-08", "2024-03-10")], []),
    ],
)
def test_what_was_built_and_has_rows(
    built: list[Stretch], covered: list[Stretch], found: list[tuple[str, str]]
) -> None:
    """An open end is any time; cells without rows are not told of."""

    def of(days: list[Stretch]) -> list[Stretch]:
        return [[day and f"{day}T00:00:00Z" for day in stretch] for stretch in days]

    assert overlap(of(built), of(covered)) == [
        (instant(f"{start}T00:00:00Z"), instant(f"{end}T00:00:00Z")) for start, end in found
    ]


def test_a_window_is_in_utc() -> None:
    """Whatever the zone of the scheduler's times."""
    start = datetime.fromisoformat("2024-03-09T02:00:00+02:00")

    assert window_words(start, start + timedelta(days=1)) == (
        "2024-03-09T00:00:00+00:00",
        "2024-03-10T00:00:00+00:00",
    )
