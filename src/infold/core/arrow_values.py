"""
Rows of Arrow as Python's values, also where Python has none: its years end at 9999.

Spark, Iceberg and Delta keep instants of some 290,000 years on either side, and dates of more. A
time beyond Python's years is a :class:`FarTime`, whose texts are as those of ``datetime`` and of
``date``, with more digits in the year and a sign, as ISO 8601 has them.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date
from typing import TYPE_CHECKING, Any

from infold.core.interval import DAY, MINUTE, SECOND

if TYPE_CHECKING:
    import pyarrow as pa

_CYCLE = 146_097
"""The days of 400 years, after which the calendar is the same again."""

_EPOCH = date(1970, 1, 1).toordinal() - 1
"""The days from the first of the year 1 to 1970."""


@dataclass(frozen=True, slots=True)
class FarTime:
    """An instant in microseconds since 1970, or the day that it begins."""

    at: int
    zone: str = ""
    """What follows the time: an offset; nothing where it has none."""
    is_day: bool = False

    def isoformat(self, sep: str = "T") -> str:
        """As ``datetime`` and ``date`` have it."""
        days, rest = divmod(self.at, DAY)
        cycles, day = divmod(days + _EPOCH, _CYCLE)
        in_cycle = date.fromordinal(day + 1)
        year = in_cycle.year + 400 * cycles
        written = f"{'+' if year > 9999 else '-' if year < 0 else ''}{abs(year):04}"
        written += f"-{in_cycle.month:02}-{in_cycle.day:02}"
        if self.is_day:
            return written
        minutes, seconds = divmod(rest, MINUTE)
        seconds, micros = divmod(seconds, SECOND)
        fraction = f".{micros:06}" if micros else ""
        clock = f"{minutes // 60:02}:{minutes % 60:02}:{seconds:02}{fraction}"
        return f"{written}{sep}{clock}{self.zone}"

    def __str__(self) -> str:
        return self.isoformat(" ")


def rows_of(table: pa.Table | pa.RecordBatch) -> list[dict[str, Any]]:
    """The rows, by the names of their columns."""
    columns = [values_of(column) for column in table.columns]
    names = table.schema.names
    return [dict(zip(names, row, strict=True)) for row in zip(*columns, strict=True)]


def values_of(column: pa.Array | pa.ChunkedArray) -> list[Any]:
    """The values as Python has them; a date or time beyond year 9999 as a ``FarTime``."""
    try:
        return list(column.to_pylist())
    except (OverflowError, ValueError):  # one of them is beyond Python's years
        return [_value(one) for one in column]


def _value(scalar: Any) -> Any:
    import pyarrow as pa

    if not scalar.is_valid:
        return None
    kind = scalar.type
    if pa.types.is_struct(kind):
        return {kind.field(at).name: _value(scalar[at]) for at in range(kind.num_fields)}
    if pa.types.is_map(kind):
        return [(_value(pair[0]), _value(pair[1])) for pair in scalar.values]
    if pa.types.is_nested(kind):
        return [_value(part) for part in scalar.values]
    try:
        return scalar.as_py()
    except (OverflowError, ValueError):
        if pa.types.is_date32(kind):
            return FarTime(scalar.value * DAY, is_day=True)
        micros = pa.scalar(scalar.value, pa.timestamp(kind.unit)).cast(pa.timestamp("us")).value
        return FarTime(micros, "" if kind.tz is None else "+00:00")
