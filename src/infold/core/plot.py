"""Rows of a table as they are drawn, as values: over time, or one after another."""

from __future__ import annotations

from dataclasses import dataclass

from infold.core.interval import Granularity, Interval


@dataclass(frozen=True, slots=True)
class Point:
    """The lowest and the highest value of some rows that have their time in one cell."""

    cell: Interval
    low: float
    high: float


@dataclass(frozen=True, slots=True)
class Series:
    """
    One picture over time.

    ``adds_up``: values are numbers of rows, whose sum tells of a longer time. ``groups`` are the
    same by the values of another column, where there are several rows of a time.
    """

    name: str
    points: tuple[Point, ...]
    adds_up: bool = False
    groups: tuple[tuple[str, tuple[Point, ...]], ...] = ()


@dataclass(frozen=True, slots=True)
class OverTime:
    """
    Pictures of columns over the time that a column of the table says.

    ``by`` is the column whose values are groups. ``left_out`` counts rows without a time in the
    years 1 to 9999; ``not_drawn`` are further columns of numbers.
    """

    time: str
    finest: Granularity
    series: tuple[Series, ...]
    by: str = ""
    left_out: int = 0
    not_drawn: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class RowByRow:
    """Bars for each row: its label, and the values of columns of numbers (None: no number)."""

    label: str
    labels: tuple[str, ...]
    columns: tuple[tuple[str, tuple[float | None, ...]], ...]
    not_drawn: tuple[str, ...] = ()
