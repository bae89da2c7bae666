"""
Values in a filter, as a column can have them.

A column may be compared with a value that it cannot have: a column of whole numbers with 1.5, one
of dates with noon. Such a value is rounded down and marked: ``n < 1.5`` is ``n <= 1``, and ``n =
1.5`` is never true. So no comparison depends on how pyiceberg would convert the value.
"""

from __future__ import annotations

import math
import re
import struct
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import date
from decimal import ROUND_FLOOR, Decimal, localcontext
from typing import Any

from pyiceberg.expressions.literals import (
    BooleanLiteral,
    DateLiteral,
    DecimalLiteral,
    DoubleLiteral,
    FloatLiteral,
    LongLiteral,
    StringLiteral,
    TimestampLiteral,
)
from pyiceberg.types import (
    BooleanType,
    DateType,
    DecimalType,
    DoubleType,
    FloatType,
    IcebergType,
    IntegerType,
    LongType,
    NestedField,
    StringType,
    TimestampType,
    TimestamptzType,
)
from sqlglot import exp

from infold.core.interval import DAY, parse_instant_text


@dataclass(frozen=True, slots=True)
class Floor:
    """
    The greatest value of a column that is not above a given one.

    ``exact`` is whether it is that one, ``under`` whether all values of the column lie above it.
    """

    value: Any
    exact: bool = True
    under: bool = False


@dataclass(frozen=True, slots=True)
class _Instant:
    """A date or timestamp that was written as one, in microseconds."""

    at: int


def floor(field: NestedField, node: exp.Expr) -> Floor | None:
    """The column's value for one in SQL; None for NULL. Raises ValueError if it has none."""
    given = written(node)
    if given is None:
        return None
    fit = _FITS.get(type(field.field_type))
    if fit is None:
        kind = type(field.field_type).__name__.removesuffix("Type").lower()
        raise ValueError(f"{field.name} is of type {kind}, which can only be asked for NULL")
    found = fit(given, field.field_type)
    if found is None:
        shown = node.sql(dialect="spark")
        raise ValueError(f"{field.name} is {_WORDS[type(field.field_type)]}, {shown} is not")
    return found


def written(node: exp.Expr) -> Any:
    """The value of a literal; None for NULL. Raises ValueError for anything else."""
    if isinstance(node, exp.Null):
        return None
    if isinstance(node, exp.Literal):
        return node.this if node.is_string else _decimal(node.this)
    if isinstance(node, exp.Boolean):
        return bool(node.this)
    if isinstance(node, exp.Neg) and isinstance(given := written(node.this), Decimal):
        return -given
    if isinstance(node, exp.RawString):
        return node.this
    if isinstance(node, exp.Cast) and isinstance(node.this, exp.Literal):
        kind = node.to.this
        if kind in _TIMES and node.this.is_string:
            return _Instant(_instant(node.this.this))
        if kind in _NUMBERS:  # 1L, 1.5D, 2BD
            return _decimal(node.this.this)
    shown = node.sql(dialect="spark")
    if isinstance(node, exp.Column):
        raise ValueError(f"a column is compared with values, not with the column {shown}")  # noqa: TRY004
    raise ValueError(f"only columns compared with values are understood, not {shown}")


_TIMES = (
    exp.DataType.Type.DATE,
    exp.DataType.Type.TIMESTAMP,
    exp.DataType.Type.TIMESTAMPTZ,
    exp.DataType.Type.TIMESTAMPNTZ,
)
_NUMBERS = (
    exp.DataType.Type.TINYINT,
    exp.DataType.Type.SMALLINT,
    exp.DataType.Type.BIGINT,
    exp.DataType.Type.FLOAT,
    exp.DataType.Type.DOUBLE,
    exp.DataType.Type.DECIMAL,
)

# -- by type ---------------------------------------------------------------------------------------


def _text(given: Any, _: IcebergType) -> Floor | None:
    return Floor(StringLiteral(given)) if isinstance(given, str) else None


def _boolean(given: Any, _: IcebergType) -> Floor | None:
    if isinstance(given, str) and given.strip().lower() in ("true", "false"):
        given = given.strip().lower() == "true"
    return Floor(BooleanLiteral(given)) if isinstance(given, bool) else None


def _whole(given: Any, kind: IcebergType) -> Floor | None:
    number = _number(given)
    if number is None:
        return None
    bits = 31 if isinstance(kind, IntegerType) else 63
    return _within(
        number, Decimal(-(2**bits)), Decimal(2**bits - 1), 0, lambda v: LongLiteral(int(v))
    )


def _exact(given: Any, kind: IcebergType) -> Floor | None:
    assert isinstance(kind, DecimalType)
    number = _number(given)
    if number is None:
        return None
    most = Decimal((0, (9,) * kind.precision, -kind.scale))
    return _within(number, -most, most, kind.scale, DecimalLiteral)


def _within(
    number: Decimal, least: Decimal, most: Decimal, scale: int, made: Callable[[Any], Any]
) -> Floor:
    """A number among those of so many places between two ends."""
    if number < least:
        return Floor(None, exact=False, under=True)
    with localcontext(prec=500):
        unit = Decimal((0, (1,), -scale))
        down = min(number, most).quantize(unit, ROUND_FLOOR)
    return Floor(made(down), exact=down == number)


def _double(given: Any, _: IcebergType) -> Floor | None:
    number = _number(given)
    return None if number is None else Floor(DoubleLiteral(float(number)))


def _single(given: Any, _: IcebergType) -> Floor | None:
    """Spark widens the column and compares doubles, so 0.1 is no value of it."""
    number = _number(given)
    if number is None:
        return None
    wide = float(number)
    try:
        near = struct.unpack("f", struct.pack("f", wide))[0]
    except OverflowError:
        near = math.copysign(math.inf, wide)
    if near > wide:
        near = _before(near)
    return Floor(FloatLiteral(near), exact=near == wide)


def _before(value: float) -> float:
    """The next smaller number of four bytes."""
    (bits,) = struct.unpack("i", struct.pack("f", value))
    if value == 0.0:
        return -float(struct.unpack("f", struct.pack("i", 1))[0])
    return float(struct.unpack("f", struct.pack("i", bits - 1 if value > 0 else bits + 1))[0])


def _day(given: Any, _: IcebergType) -> Floor | None:
    if isinstance(given, _Instant):
        return Floor(DateLiteral(given.at // DAY), exact=given.at % DAY == 0)
    if not isinstance(given, str) or not _DATE.fullmatch(given.strip()):
        return None
    try:
        day = date.fromisoformat(given.strip())
    except ValueError:
        return None
    return Floor(DateLiteral(day.toordinal() - date(1970, 1, 1).toordinal()))


def _timestamp(given: Any, _: IcebergType) -> Floor | None:
    if isinstance(given, str):
        given = _Instant(_instant(given))
    return Floor(TimestampLiteral(given.at)) if isinstance(given, _Instant) else None


_DATE = re.compile(r"\d{4}-\d{2}-\d{2}")


def _number(given: Any) -> Decimal | None:
    """A number, also where it is written as a text."""
    if isinstance(given, str):
        try:
            return _decimal(given.strip())
        except ValueError:
            return None
    return given if isinstance(given, Decimal) else None


def _decimal(text: str) -> Decimal:
    if not re.fullmatch(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d{1,3})?", text):
        raise ValueError(f"{text} is not understood as a number")
    return Decimal(text)


def _instant(text: str) -> int:
    try:
        return parse_instant_text(text)
    except ValueError:
        raise ValueError(f"{text!r} is no date or time: write 2024-03-09 12:00") from None


_FITS: Mapping[type[IcebergType], Callable[[Any, IcebergType], Floor | None]] = {
    StringType: _text,
    BooleanType: _boolean,
    IntegerType: _whole,
    LongType: _whole,
    DecimalType: _exact,
    FloatType: _single,
    DoubleType: _double,
    DateType: _day,
    TimestampType: _timestamp,
    TimestamptzType: _timestamp,
}
_WORDS: Mapping[type[IcebergType], str] = {
    StringType: "text",
    BooleanType: "true or false",
    IntegerType: "a whole number",
    LongType: "a whole number",
    DecimalType: "a number",
    FloatType: "a number",
    DoubleType: "a number",
    DateType: "a date",
    TimestampType: "a time",
    TimestamptzType: "a time",
}
