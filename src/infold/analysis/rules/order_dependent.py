"""
Outside of sessions no order of rows is given, so no aggregate may depend on one.

Within a session events are in order (event time, then key), so there ``first`` and
``collect_list`` mean something; ``any_value``, and ``mode`` where values stand equally often, mean
nothing in particular anywhere.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from sqlglot.tokenizer_core import Token, TokenType

from infold import refusals
from infold.analysis.calls import Call, calls
from infold.analysis.subject import Subject
from infold.errors import InfoldError
from infold.model import Kind

_PICKS = frozenset({"first", "first_value", "last", "last_value"})
_COLLECTS = frozenset({"array_agg", "collect_list", "collect_set", "listagg", "string_agg"})
_FORGETS_ORDER = frozenset(
    {
        "array_contains",
        "array_max",
        "array_min",
        "array_size",
        "array_sort",
        "cardinality",
        "size",
        "sort_array",
    }
)
_KEEPS_ELEMENTS = frozenset(
    {
        "array_compact",
        "array_distinct",
        "array_except",
        "array_intersect",
        "array_remove",
        "array_union",
        "cast",
        "coalesce",
        "concat",
        "filter",
        "flatten",
        "ifnull",
        "nvl",
        "transform",
    }
)
"""What may stand between a collection and the call that forgets its order: it takes no places."""


def check(subject: Subject) -> Iterator[InfoldError]:
    """Every aggregate that picks or collects rows in no order."""
    text, tokens = subject.text, subject.text.tokens
    found = list(calls(tokens, 0, len(tokens)))
    for call in found:
        at = text.spot_of_token(tokens[call.start])
        if call.name == "any_value":
            yield refusals.any_value(at)
        elif call.name == "mode" and not (call.within or _deterministic(tokens, call)):
            yield refusals.mode(at)
        elif subject.model.kind is Kind.SESSIONS:
            continue
        elif call.name in _PICKS and not _in_ordered_window(tokens, call):
            yield refusals.order_dependent(at, call.name, "min_by or max_by with the order")
        elif call.name in _COLLECTS and not (call.within or _wrapped(found, call)):
            yield refusals.order_dependent(at, call.name, f"sort_array({call.name}(…))")


def _in_ordered_window(tokens: Sequence[Token], call: Call) -> bool:
    """Whether it is a window function whose window has an order, or is defined elsewhere."""
    words = [token.token_type for token in tokens[call.start : call.end]]
    return call.over and (TokenType.ORDER_BY in words or words[-1] is not TokenType.R_PAREN)


def _deterministic(tokens: Sequence[Token], call: Call) -> bool:
    """Whether its second argument says that of values as frequent the least is taken."""
    if len(call.arguments) != 2:
        return False
    start, end = call.arguments[1]
    return [token.token_type for token in tokens[start:end]] == [TokenType.TRUE]


def _wrapped(found: Sequence[Call], call: Call) -> bool:
    """Whether a call around it forgets the order again, before anything makes use of it."""
    around = [other for other in found if other.start < call.start and call.end <= other.end]
    for other in reversed(around):  # from the inside
        if other.name in _FORGETS_ORDER:
            return True
        if other.name not in _KEEPS_ELEMENTS:
            return False
    return False
