"""
A simple SQL predicate over a stored table, as pyiceberg's expression.

It is parsed as Spark SQL, by the parser that reads models. An expression of pyiceberg has two
values where SQL has three, and treats NULL and NaN in files otherwise than in rows. So each part
becomes two expressions: the rows for which it is true, and the rows for which it is false. NOT
swaps them, a row with NULL is in neither, and no comparison is ever negated.
"""

from __future__ import annotations

import math
import re
import struct
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import date
from decimal import ROUND_FLOOR, Decimal, localcontext
from functools import reduce
from typing import Any, NamedTuple

from pyiceberg import expressions
from pyiceberg.expressions import BooleanExpression
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
from pyiceberg.schema import Schema
from pyiceberg.types import (
    BooleanType,
    DateType,
    DecimalType,
    DoubleType,
    FloatType,
    IcebergType,
    IntegerType,
    ListType,
    LongType,
    MapType,
    NestedField,
    StringType,
    TimestampType,
    TimestamptzType,
)
from sqlglot import exp
from sqlglot.dialects.spark import Spark
from sqlglot.errors import ParseError, TokenError
from sqlglot.tokenizer_core import Token, TokenType

from infold.core.interval import DAY, parse_instant_text

E: Any = expressions
"""Untyped: pyiceberg's types do not know that the column comes first."""

_SPARK = Spark()
_TRUE = BooleanLiteral(True)


class Truth(NamedTuple):
    """The rows for which a predicate is true, and those for which it is false."""

    yes: BooleanExpression
    no: BooleanExpression


def predicate(where: str, schema: Schema) -> BooleanExpression:
    """The rows for which ``where`` is true; ValueError for what is not understood."""
    try:
        return _truth(_parsed(where), schema).yes
    except RecursionError:
        raise ValueError("it is nested too deeply") from None


def _parsed(where: str) -> exp.Expr:
    try:
        tokens = _one_text(_SPARK.tokenize(where))
        (tree,) = _SPARK.parser().parse_into(exp.Condition, tokens, where)
    except TokenError:
        raise ValueError("a quote or a comment is never closed") from None
    except ParseError as error:
        known = error.errors[0] if error.errors else {}
        behind = "".join(str(known.get(part) or "") for part in ("highlight", "end_context"))
        at = behind.strip()
        raise ValueError(f"not understood from here: {at}" if at else "it ends early") from None
    except ValueError:
        raise ValueError("it is not one condition") from None
    if tree is None:
        raise ValueError("it is empty")
    return tree


def _one_text(tokens: list[Token]) -> list[Token]:
    """``'it''s'`` is one text with a quote in it, for Spark; sqlglot sees two that are joined."""
    joined: list[Token] = []
    for token in tokens:
        last = joined[-1] if joined else None
        strings = last is not None and last.token_type is token.token_type is TokenType.STRING
        if last is not None and strings and last.end + 1 == token.start:
            text = f"{last.text}'{token.text}"
            joined[-1] = Token(TokenType.STRING, text, last.line, last.col, last.start, token.end)
        else:
            joined.append(token)
    return joined


# -- parts -----------------------------------------------------------------------------------------


def _truth(node: exp.Expr, schema: Schema) -> Truth:
    node = node.unnest()
    if node.args.get("negate"):  # sqlglot's NOT LIKE
        node = node.copy()
        node.set("negate", None)
        return _not(_truth(node, schema))
    rule = _TRUTHS_BY_NODE.get(type(node))
    if rule is None:
        raise _unknown(node)
    return rule(node, schema)


def _unknown(node: exp.Expr) -> ValueError:
    return ValueError(f"only columns compared with values are understood, not {_sql(node)}")


def _sql(node: exp.Expr) -> str:
    return node.sql(dialect="spark")


def _not(truth: Truth) -> Truth:
    return Truth(truth.no, truth.yes)


def _all(parts: list[Truth]) -> Truth:
    return Truth(
        _join(E.And, [part.yes for part in parts]), _join(E.Or, [part.no for part in parts])
    )


def _any(parts: list[Truth]) -> Truth:
    return _not(_all([_not(part) for part in parts]))


def _join(how: Any, parts: list[BooleanExpression]) -> BooleanExpression:
    """Halves joined, so that a thousand parts are ten levels and not a thousand."""
    if len(parts) == 1:
        return parts[0]
    half = len(parts) // 2
    joined: BooleanExpression = how(_join(how, parts[:half]), _join(how, parts[half:]))
    return joined


def _connected(node: exp.Expr, schema: Schema) -> Truth:
    parts = [_truth(part, schema) for part in node.flatten()]
    return _all(parts) if isinstance(node, exp.And) else _any(parts)


def _negated(node: exp.Expr, schema: Schema) -> Truth:
    return _not(_truth(node.this, schema))


def _constant(node: exp.Expr, schema: Schema) -> Truth:
    del schema
    return (
        Truth(E.AlwaysTrue(), E.AlwaysFalse())
        if node.this
        else Truth(E.AlwaysFalse(), E.AlwaysTrue())
    )


def _flag(node: exp.Expr, schema: Schema) -> Truth:
    """A boolean column by itself."""
    field = _field(node, schema)
    if not isinstance(field.field_type, BooleanType):
        raise ValueError(f"{field.name} is {field.field_type} and no condition: compare it")  # noqa: TRY004 - of the filter
    return _Column(field, schema).equal(Floor(_TRUE))


# -- comparisons -----------------------------------------------------------------------------------


def _field(node: exp.Expr, schema: Schema) -> NestedField:
    name = ".".join(part.name for part in node.parts) if isinstance(node, exp.Column) else ""
    if not name:
        raise _unknown(node)
    own = {entry.name.lower(): entry for entry in schema.fields}
    try:
        field = own.get(name.lower()) or schema.find_field(name, case_sensitive=False)
    except ValueError:
        known = ", ".join(entry.name for entry in schema.fields if not entry.name.startswith("_"))
        raise ValueError(f"there is no column {name}; there are {known}") from None
    if isinstance(field.field_type, ListType | MapType):
        raise ValueError(f"{name} is {field.field_type}: to compare that takes Spark")  # noqa: TRY004 - of the filter
    return field


class _Column:
    """A column, and the rows whose value compares to a given one in some way, or does not."""

    def __init__(self, field: NestedField, schema: Schema) -> None:
        self.field = field
        self.name = schema.find_column_name(field.field_id) or field.name
        self.fraction = isinstance(field.field_type, FloatType | DoubleType)

    def null(self) -> Truth:
        """Whether there is no value."""
        return Truth(E.IsNull(self.name), E.NotNull(self.name))

    def less(self, than: Floor) -> Truth:
        """NaN is greater than every other number, as in Spark."""
        if than.under:
            return Truth(E.AlwaysFalse(), E.NotNull(self.name))
        if not than.exact:
            return self.at_most(Floor(than.value))
        return self._ordered(E.LessThan, E.GreaterThanOrEqual, than.value)

    def at_most(self, value: Floor) -> Truth:
        """``<=`` a value; one below all of its type is never reached."""
        if value.under:
            return Truth(E.AlwaysFalse(), E.NotNull(self.name))
        return self._ordered(E.LessThanOrEqual, E.GreaterThan, value.value)

    def equal(self, to: Floor) -> Truth:
        """``=``; a value that the column cannot have is not equal to any that it has."""
        if to.under or not to.exact:
            return Truth(E.AlwaysFalse(), E.NotNull(self.name))
        return self._with_nan(E.EqualTo(self.name, to.value), E.NotEqualTo(self.name, to.value))

    def among(self, values: list[Floor]) -> Truth:
        """``IN``; values that the column's type does not have are left out."""
        known = [value for value in values if value.exact and not value.under]
        if not known:
            return Truth(E.AlwaysFalse(), E.NotNull(self.name))
        if self.fraction:  # pyarrow looks values up by their bits: 0.0 is not -0.0 then
            return _any([self.equal(value) for value in known])
        every = {value.value for value in known}
        return self._with_nan(E.In(self.name, every), E.NotIn(self.name, every))

    def begins(self, prefix: str) -> Truth:
        """``LIKE 'prefix%'``."""
        start = StringLiteral(prefix)
        return self._with_nan(E.StartsWith(self.name, start), E.NotStartsWith(self.name, start))

    def _ordered(self, yes: Any, no: Any, value: Any) -> Truth:
        return self._with_nan(yes(self.name, value), no(self.name, value))

    def _with_nan(self, yes: BooleanExpression, no: BooleanExpression) -> Truth:
        """Both for rows with a value; files' statistics leave NaN out, so it is added."""
        if self.fraction:
            yes, no = E.And(yes, E.NotNaN(self.name)), E.Or(no, E.IsNaN(self.name))
        return Truth(E.And(E.NotNull(self.name), yes), E.And(E.NotNull(self.name), no))


_MIRRORED: Mapping[type[exp.Expr], type[exp.Expr]] = {
    exp.LT: exp.GT,
    exp.LTE: exp.GTE,
    exp.GT: exp.LT,
    exp.GTE: exp.LTE,
}


def _compared(node: exp.Expr, schema: Schema) -> Truth:
    how = type(node)
    left, right = node.this.unnest(), node.expression.unnest()
    if not isinstance(left, exp.Column):
        left, right, how = right, left, _MIRRORED.get(how, how)
    if not isinstance(left, exp.Column):
        raise _unknown(left if isinstance(right, exp.Literal) else right)
    column = _Column(_field(left, schema), schema)
    value = floor(column.field, right)
    if value is None:
        return _with_null(column, how)
    if how in (exp.GT, exp.LTE):
        truth = column.at_most(value)
    elif how in (exp.LT, exp.GTE):
        truth = column.less(value)
    else:
        truth = column.equal(value)
    if how is exp.NullSafeEQ or how is exp.NullSafeNEQ:  # NULL differs from every value
        truth = Truth(truth.yes, E.Or(truth.no, E.IsNull(column.name)))
    return _not(truth) if how in (exp.GT, exp.GTE, exp.NEQ, exp.NullSafeNEQ) else truth


def _with_null(column: _Column, how: type[exp.Expr]) -> Truth:
    if how is exp.NullSafeEQ:
        return column.null()
    return (
        _not(column.null()) if how is exp.NullSafeNEQ else Truth(E.AlwaysFalse(), E.AlwaysFalse())
    )


def _between(node: exp.Expr, schema: Schema) -> Truth:
    if node.args.get("symmetric"):
        raise _unknown(node)
    low = exp.GTE(this=node.this, expression=node.args["low"])
    high = exp.LTE(this=node.this, expression=node.args["high"])
    return _all([_compared(low, schema), _compared(high, schema)])


def _in(node: exp.Expr, schema: Schema) -> Truth:
    if not node.expressions:
        raise _unknown(node)
    column = _Column(_field(node.this.unnest(), schema), schema)
    values = [floor(column.field, value.unnest()) for value in node.expressions]
    truth = column.among([value for value in values if value is not None])
    # Whether a value is one of several that are not known is not known either.
    return Truth(truth.yes, E.AlwaysFalse()) if None in values else truth


def _is(node: exp.Expr, schema: Schema) -> Truth:
    column = _Column(_field(node.this.unnest(), schema), schema)
    operand = node.expression
    if isinstance(operand, exp.Null):
        return column.null()
    if isinstance(operand, exp.Boolean) and isinstance(column.field.field_type, BooleanType):
        truth = column.equal(Floor(BooleanLiteral(operand.this)))
        return Truth(truth.yes, E.Or(truth.no, E.IsNull(column.name)))
    if isinstance(operand, exp.Column) and operand.name.lower() == "nan" and column.fraction:
        nan = E.And(E.NotNull(column.name), E.IsNaN(column.name))
        return Truth(nan, E.Or(E.IsNull(column.name), E.NotNaN(column.name)))
    raise _unknown(node)


def _like(node: exp.Expr, schema: Schema) -> Truth:
    column = _Column(_field(node.this.unnest(), schema), schema)
    pattern = written(node.expression)
    if not isinstance(column.field.field_type, StringType) or not isinstance(pattern, str):
        raise _unknown(node)
    text, open_end = _prefix(pattern)
    return column.begins(text) if open_end else column.equal(Floor(StringLiteral(text)))


def _prefix(pattern: str) -> tuple[str, bool]:
    r"""The text of a pattern, and whether a ``%`` ends it. ``\`` takes a wildcard for itself."""

    def step(state: tuple[str, bool, bool], sign: str) -> tuple[str, bool, bool]:
        text, escaped, ended = state
        if ended or (sign == "_" and not escaped):
            raise ValueError("of LIKE only a % at the end is understood; \\% and \\_ are the signs")
        if escaped:
            if sign not in "%_\\":
                raise ValueError(f"\\{sign} in LIKE means nothing")
            return text + sign, False, False
        if sign in "\\%":
            return text, sign == "\\", sign == "%"
        return text + sign, False, False

    text, escaped, ended = reduce(step, pattern, ("", False, False))
    if escaped:
        raise ValueError("a pattern of LIKE ends in \\")
    return text, ended


_TRUTHS_BY_NODE: Mapping[type[exp.Expr], Callable[[Any, Schema], Truth]] = {
    exp.And: _connected,
    exp.Or: _connected,
    exp.Not: _negated,
    exp.Boolean: _constant,
    exp.Null: lambda *_: Truth(E.AlwaysFalse(), E.AlwaysFalse()),
    exp.Column: _flag,
    exp.EQ: _compared,
    exp.NEQ: _compared,
    exp.LT: _compared,
    exp.LTE: _compared,
    exp.GT: _compared,
    exp.GTE: _compared,
    exp.NullSafeEQ: _compared,
    exp.NullSafeNEQ: _compared,
    exp.Between: _between,
    exp.In: _in,
    exp.Is: _is,
    exp.Like: _like,
}


# A column may be compared with a value that it cannot have: a column of whole numbers with 1.5, one
# of dates with noon. Such a value is rounded down and marked: `n < 1.5` is `n <= 1`, and `n =
# 1.5` is never true. So no comparison depends on how pyiceberg would convert the value.


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
    value = written(node)
    if value is None:
        return None
    fit = _FITTERS.get(type(field.field_type))
    if fit is None:
        kind = type(field.field_type).__name__.removesuffix("Type").lower()
        raise ValueError(f"{field.name} is of type {kind}, which can only be asked for NULL")
    fitted = fit(value, field.field_type)
    if fitted is None:
        shown = node.sql(dialect="spark")
        raise ValueError(f"{field.name} is {_TYPE_WORDS[type(field.field_type)]}, {shown} is not")
    return fitted


def written(node: exp.Expr) -> Any:
    """The value of a literal; None for NULL. Raises ValueError for anything else."""
    if isinstance(node, exp.Null):
        return None
    if isinstance(node, exp.Literal):
        return node.this if node.is_string else _decimal(node.this)
    if isinstance(node, exp.Boolean):
        return bool(node.this)
    if isinstance(node, exp.Neg) and isinstance(number := written(node.this), Decimal):
        return -number
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


def _text_value(value: Any, _: IcebergType) -> Floor | None:
    return Floor(StringLiteral(value)) if isinstance(value, str) else None


def _boolean_value(value: Any, _: IcebergType) -> Floor | None:
    if isinstance(value, str) and value.strip().lower() in ("true", "false"):
        value = value.strip().lower() == "true"
    return Floor(BooleanLiteral(value)) if isinstance(value, bool) else None


def _whole_number(value: Any, kind: IcebergType) -> Floor | None:
    number = _number(value)
    if number is None:
        return None
    bits = 31 if isinstance(kind, IntegerType) else 63
    return _within(
        number, Decimal(-(2**bits)), Decimal(2**bits - 1), 0, lambda v: LongLiteral(int(v))
    )


def _exact_number(value: Any, kind: IcebergType) -> Floor | None:
    assert isinstance(kind, DecimalType)
    number = _number(value)
    if number is None:
        return None
    most = Decimal((0, (9,) * kind.precision, -kind.scale))
    return _within(number, -most, most, kind.scale, DecimalLiteral)


def _within(
    number: Decimal, least: Decimal, most: Decimal, scale: int, literal: Callable[[Any], Any]
) -> Floor:
    """A number among those of so many places between two ends."""
    if number < least:
        return Floor(None, exact=False, under=True)
    with localcontext(prec=500):
        unit = Decimal((0, (1,), -scale))
        down = min(number, most).quantize(unit, ROUND_FLOOR)
    return Floor(literal(down), exact=down == number)


def _double_value(value: Any, _: IcebergType) -> Floor | None:
    number = _number(value)
    return None if number is None else Floor(DoubleLiteral(float(number)))


def _single_value(value: Any, _: IcebergType) -> Floor | None:
    """Spark widens the column and compares doubles, so 0.1 is no value of it."""
    number = _number(value)
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


def _day_value(value: Any, _: IcebergType) -> Floor | None:
    if isinstance(value, _Instant):
        return Floor(DateLiteral(value.at // DAY), exact=value.at % DAY == 0)
    if not isinstance(value, str) or not _DATE.fullmatch(value.strip()):
        return None
    try:
        day = date.fromisoformat(value.strip())
    except ValueError:
        return None
    return Floor(DateLiteral(day.toordinal() - date(1970, 1, 1).toordinal()))


def _timestamp_value(value: Any, _: IcebergType) -> Floor | None:
    if isinstance(value, str):
        value = _Instant(_instant(value))
    return Floor(TimestampLiteral(value.at)) if isinstance(value, _Instant) else None


_DATE = re.compile(r"\d{4}-\d{2}-\d{2}")


def _number(value: Any) -> Decimal | None:
    """A number, also where it is written as a text."""
    if isinstance(value, str):
        try:
            return _decimal(value.strip())
        except ValueError:
            return None
    return value if isinstance(value, Decimal) else None


def _decimal(text: str) -> Decimal:
    if not re.fullmatch(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d{1,3})?", text):
        raise ValueError(f"{text} is not understood as a number")
    return Decimal(text)


def _instant(text: str) -> int:
    try:
        return parse_instant_text(text)
    except ValueError:
        raise ValueError(f"{text!r} is no date or time: write 2024-03-09 12:00") from None


_FITTERS: Mapping[type[IcebergType], Callable[[Any, IcebergType], Floor | None]] = {
    StringType: _text_value,
    BooleanType: _boolean_value,
    IntegerType: _whole_number,
    LongType: _whole_number,
    DecimalType: _exact_number,
    FloatType: _single_value,
    DoubleType: _double_value,
    DateType: _day_value,
    TimestampType: _timestamp_value,
    TimestamptzType: _timestamp_value,
}
_TYPE_WORDS: Mapping[type[IcebergType], str] = {
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
