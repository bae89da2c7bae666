"""
A simple SQL predicate over a stored table, as pyiceberg's expression.

pyiceberg's own parser reads it; here literals become what the column is. A timestamp may be written
as a date or with a blank (``ts >= '2024-03-09 12:00'``) and means UTC; a number with a fraction
compared with whole numbers is refused, because pyiceberg would cut the fraction off.
"""

from __future__ import annotations

from typing import Any

from pyiceberg.expressions import (
    And,
    BooleanExpression,
    LiteralPredicate,
    Not,
    Or,
    SetPredicate,
    UnboundPredicate,
)
from pyiceberg.expressions.literals import (
    DecimalLiteral,
    DoubleLiteral,
    FloatLiteral,
    literal,
)
from pyiceberg.expressions.parser import parse
from pyiceberg.schema import Schema
from pyiceberg.types import IcebergType, IntegerType, LongType, TimestampType, TimestamptzType
from pyparsing import ParseException

from infold.interval import instant, moment


def predicate(where: str, schema: Schema) -> BooleanExpression:
    """The expression of ``where``; ValueError says what cannot be understood."""
    try:
        return _typed(parse(where), schema)
    except ParseException as error:
        rest = where[error.loc :].strip()
        raise ValueError(
            f"not understood from here: {rest}" if rest else "it ends early"
        ) from error


def _typed(part: BooleanExpression, schema: Schema) -> BooleanExpression:
    if isinstance(part, And | Or):
        return type(part)(_typed(part.left, schema), _typed(part.right, schema))
    if isinstance(part, Not):
        return Not(_typed(part.child, schema))
    if not isinstance(part, UnboundPredicate):
        return part
    term: Any = part.term
    name = term.name
    field = next((f for f in schema.fields if f.name.lower() == name.lower()), None)
    if field is None:
        known = ", ".join(f.name for f in schema.fields if not f.name.startswith("_"))
        raise ValueError(f"there is no column {name}; there are {known}")
    if isinstance(part, LiteralPredicate):
        return type(part)(field.name, _fitting(part.literal, field.field_type))
    if isinstance(part, SetPredicate):
        values = {_fitting(entry, field.field_type) for entry in part.literals}
        return type(part)(field.name, values)
    return type(part)(field.name)


def _fitting(given: Any, kind: IcebergType) -> Any:
    value = given.value
    fraction = isinstance(given, DecimalLiteral | DoubleLiteral | FloatLiteral)
    if fraction and isinstance(kind, IntegerType | LongType) and value != int(value):
        raise ValueError(f"{value} is compared with whole numbers")
    if isinstance(value, str) and isinstance(kind, TimestampType | TimestamptzType):
        at = moment(instant(value)).isoformat()
        return literal(at if isinstance(kind, TimestamptzType) else at.removesuffix("+00:00"))
    return given
