"""Which rows of a stored table have some values, near some time, as a predicate of pyiceberg."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from infold.core.interval import DAY
from infold.core.snapshot_reader import TimeSpan

if TYPE_CHECKING:
    from pyiceberg.expressions import BooleanExpression
    from pyiceberg.schema import Schema
    from pyiceberg.types import IcebergType


def equal_to(
    schema: Schema, any_of: Sequence[Mapping[str, Any]], near: TimeSpan | None, where: str | None
) -> BooleanExpression:
    """What ``rows_equal_to`` asks of a row of a table with these columns."""
    from pyiceberg.expressions import AlwaysFalse, AlwaysTrue, And, Or

    from infold.lake.filter import predicate

    alternatives: BooleanExpression = AlwaysFalse() if any_of else AlwaysTrue()
    for match in any_of:
        alternatives = Or(alternatives, _equal_columns(schema, match))
    parts = And(alternatives, _overlaps(schema, near)) if near else alternatives
    return parts if where is None else And(parts, predicate(where, schema))


def _equal_columns(schema: Schema, match: Mapping[str, Any]) -> BooleanExpression:
    """Every column has its value; none has, where a value is none of the column's type."""
    from pyiceberg.expressions import AlwaysFalse, AlwaysTrue, And
    from pyiceberg.expressions.literals import literal

    found: BooleanExpression = AlwaysTrue()
    for column, value in match.items():
        own = schema.find_field(column, case_sensitive=False)
        name = own.name
        if value is None:
            found = And(found, _column_predicate("IsNull", name))
            continue
        try:
            given = literal(value).to(own.field_type)
        except (ValueError, TypeError):
            return AlwaysFalse()
        found = And(found, _column_predicate("EqualTo", name, given))
    return found


def _overlaps(schema: Schema, near: TimeSpan) -> BooleanExpression:
    from pyiceberg.expressions import And

    first, last = (
        schema.find_field(name, case_sensitive=False) for name in (near.first, near.last)
    )
    return And(
        _column_predicate("LessThanOrEqual", first.name, _instant(first.field_type, near.end)),
        _column_predicate("GreaterThanOrEqual", last.name, _instant(last.field_type, near.start)),
    )


def _column_predicate(how: str, *words: Any) -> BooleanExpression:
    """A predicate over a column; pyiceberg's own types do not know its positional form."""
    from pyiceberg import expressions

    found: BooleanExpression = getattr(expressions, how)(*words)
    return found


def _instant(kind: IcebergType, at: int) -> Any:
    """An instant as a literal of a column: microseconds, or days in a column of dates."""
    from pyiceberg.expressions.literals import literal
    from pyiceberg.types import DateType

    return literal(at // DAY if isinstance(kind, DateType) else at).to(kind)
