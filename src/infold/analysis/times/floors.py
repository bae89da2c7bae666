"""Calls that floor a time to a unit of the calendar: casts to a date, date_trunc, trunc."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from sqlglot import exp

from infold.analysis.sql.text import UNIT
from infold.analysis.times.shape import Grain, Shape
from infold.core.interval import Granularity

INSIDE = frozenset({"MICROSECOND", "MILLISECOND", "SECOND", "MINUTE"})
"""The units of date_trunc that are finer than any cell."""

TRUNC = {
    "WEEK": Granularity.WEEK,
    "MONTH": Granularity.MONTH,
    "MON": Granularity.MONTH,
    "MM": Granularity.MONTH,
    "QUARTER": Granularity.QUARTER,
    "YEAR": Granularity.YEAR,
    "YYYY": Granularity.YEAR,
    "YY": Granularity.YEAR,
}
"""The units that Spark's trunc knows, to the letter; with any other it gives NULL."""

DATE_TRUNC = {
    "HOUR": Granularity.HOUR,
    "DAY": Granularity.DAY,
    "DD": Granularity.DAY,
    **TRUNC,
}
"""The units of date_trunc that are floors to a cell; with others than these it gives NULL, too."""

_TIMESTAMPS = frozenset(
    {
        exp.DType.TIMESTAMP,
        exp.DType.TIMESTAMPTZ,
        exp.DType.TIMESTAMPLTZ,
        exp.DType.TIMESTAMPNTZ,
        exp.DType.DATETIME,
    }
)
_DATES = frozenset({exp.DType.DATE, exp.DType.DATE32})


@dataclass(frozen=True, slots=True)
class TimeFloor:
    """
    A node that floors ``inner`` to a unit; None leaves it as it is.

    ``inside``: to something finer, so that it only stays inside the unit.
    """

    inner: exp.Expr
    unit: Grain
    inside: bool = False

    def changes_nothing(self, shapes: Iterable[Shape]) -> bool:
        """Whether it leaves each value as it is that has these shapes."""
        if self.unit is None:
            return True
        grains = [shape.grain for shape in shapes]
        return bool(grains) and all(
            grain is not None and grain.contains(self.unit) for grain in grains
        )


def floor_of(node: exp.Expr) -> TimeFloor | None:
    """The floor that a call is: a cast to a date or a timestamp, date_trunc, trunc, to_date."""
    if isinstance(node, exp.Cast):  # TRY_CAST too
        if node.to.this in _DATES:
            return TimeFloor(node.this, Granularity.DAY)
        return TimeFloor(node.this, None) if node.to.this in _TIMESTAMPS else None
    if isinstance(node, exp.TsOrDsToDate) and not node.args.get("format"):
        return TimeFloor(node.this, Granularity.DAY)
    if isinstance(node, (exp.TimestampTrunc, exp.DateTrunc)):
        # As it was written: in the tree H has become HOUR, and a column is like a text.
        name = str(node.meta.get(UNIT, "")).upper()
        if isinstance(node, exp.DateTrunc):
            return TimeFloor(node.this, TRUNC[name]) if name in TRUNC else None
        if name in INSIDE:
            return TimeFloor(node.this, Granularity.HOUR, inside=True)
        return TimeFloor(node.this, DATE_TRUNC[name]) if name in DATE_TRUNC else None
    return None
