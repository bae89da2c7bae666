"""Calls that floor a time to a unit of the calendar: casts to a date, date_trunc, trunc."""

from __future__ import annotations

from dataclasses import dataclass

from sqlglot import exp
from sqlglot.tokenizer_core import TokenType

from infold.analysis.calls import calls
from infold.analysis.shape import Grain
from infold.analysis.text import Text
from infold.interval import Granularity

_FINE = frozenset({"MICROSECOND", "MILLISECOND", "SECOND", "MINUTE"})
_UNITS = {
    "HOUR": Granularity.HOUR,
    "DAY": Granularity.DAY,
    "DD": Granularity.DAY,
    "WEEK": Granularity.WEEK,
    "MONTH": Granularity.MONTH,
    "MON": Granularity.MONTH,
    "MM": Granularity.MONTH,
    "QUARTER": Granularity.QUARTER,
    "YEAR": Granularity.YEAR,
    "YYYY": Granularity.YEAR,
    "YY": Granularity.YEAR,
}
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
class Floor:
    """
    A node that floors ``inner`` to a unit; None leaves it as it is.

    ``inside``: to something finer, so that it only stays inside the unit.
    """

    inner: exp.Expr
    unit: Grain
    inside: bool = False


def floor_of(node: exp.Expr, *, literal_units: bool = True) -> Floor | None:
    """The floor that a call is: a cast to a date or a timestamp, date_trunc, trunc, to_date."""
    if isinstance(node, exp.Cast):  # TRY_CAST too
        if node.to.this in _DATES:
            return Floor(node.this, Granularity.DAY)
        return Floor(node.this, None) if node.to.this in _TIMESTAMPS else None
    if isinstance(node, exp.TsOrDsToDate) and not node.args.get("format"):
        return Floor(node.this, Granularity.DAY)
    if isinstance(node, (exp.TimestampTrunc, exp.DateTrunc)):
        unit = node.args.get("unit")
        if not isinstance(unit, (exp.Literal, exp.Var)) or not literal_units:
            return None
        name = unit.name.upper()
        if isinstance(node, exp.TimestampTrunc) and name in _FINE:
            return Floor(node.this, Granularity.HOUR, inside=True)
        return Floor(node.this, _UNITS[name]) if name in _UNITS else None
    return None


def literal_units(text: Text) -> bool:
    """
    Whether all units of date_trunc are literals.

    The tree shows ``date_trunc(unit, ts)`` with a column ``unit`` as if it were a literal, and of
    ``date_trunc('mon' || 'th', ts)`` no more than the first string.
    """
    return all(
        [token.token_type for token in tokens[slice(*call.arguments[0])]] == [TokenType.STRING]
        for tokens in [text.tokens]
        for call in calls(tokens, 0, len(tokens))
        if call.name == "date_trunc" and call.arguments
    )
