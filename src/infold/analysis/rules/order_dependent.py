"""
Except in sessions, rows have no order, so no aggregate may depend on one.

Within a session events are in order (event time, then key), so ``first`` and ``collect_list`` have
a meaning there. ``any_value``, and ``mode`` between equally frequent values, have none anywhere.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator, Mapping, Sequence

from sqlglot import exp
from sqlglot.tokenizer_core import Token, TokenType

from infold.analysis.names.relation import Block, blocks_of, once_per_block
from infold.analysis.names.select_parts import named_windows, window_calls
from infold.analysis.names.subject import Subject
from infold.analysis.row_identity import (
    COLLECTS,
    PICKS,
    AgreeingRows,
    RowIdentity,
    group_keys,
    window_clause_nodes,
)
from infold.analysis.sql.text import SPAN
from infold.analysis.sql.token_calls import Call, calls
from infold.analysis.times.distances import function_of
from infold.core.aggregates import AGGREGATES
from infold.core.model import Kind
from infold.messages import refusals
from infold.messages.errors import InfoldError

_PICKS = frozenset(name for name, function in AGGREGATES.items() if function.picks)
_COLLECTS = frozenset(name for name, function in AGGREGATES.items() if function.collects)
_TEXTS = frozenset(name for name, function in AGGREGATES.items() if function.text)
_FORGETS_ORDER = frozenset(
    {
        "array_contains",
        "array_max",
        "array_min",
        "array_size",
        "array_sort",
        "cardinality",
        "explode",
        "explode_outer",
        "forall",
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
"""Functions that may be between a collection and the call that forgets its order."""


def check(subject: Subject) -> Iterator[InfoldError]:
    """Every aggregate that picks or collects rows in no order."""
    text, tokens = subject.text, subject.text.tokens
    all_calls = list(calls(tokens, 0, len(tokens)))
    known, ordered = _determined_calls(subject), _ordered_windows(subject)
    for call in all_calls:
        at = text.spot_of_token(tokens[call.start])
        if tokens[call.start].start in known:
            continue
        if call.name == "any_value":
            yield refusals.any_value(at)
        elif call.name == "mode" and not (call.within or _deterministic(tokens, call)):
            yield refusals.mode(at)
        elif subject.model.kind is Kind.SESSIONS or tokens[call.start].start in ordered:
            continue
        elif call.name in _PICKS:
            yield refusals.order_dependent(
                at, call=call.name, instead="min_by or max_by with the order"
            )
        elif call.name in _COLLECTS and not order_is_forgotten(subject, all_calls, call):
            listed = f"{call.name}(x) WITHIN GROUP (ORDER BY x)"
            instead = listed if call.name in _TEXTS else f"sort_array({call.name}(…))"
            yield refusals.order_dependent(at, call=call.name, instead=instead)


def _determined_calls(subject: Subject) -> set[int]:
    """The positions of calls that give the same value for any choice and order of rows."""
    starts: set[int] = set()
    identity = RowIdentity(subject.row_keys)
    for block in blocks_of(subject.relation):
        if not isinstance(block, Block):
            continue
        over = {id(function_of(window)): window for window in window_calls(block)}
        for node in block.expressions():
            if isinstance(node, (*PICKS, *COLLECTS)):
                window = over.get(id(node))
                parts = group_keys(block)
                if window is not None:
                    parts = window_clause_nodes(window, named_windows(block), "partition_by")
                value = node.this
                if isinstance(value, exp.Order):  # WITHIN GROUP
                    parts, value = [*parts, *value.expressions], value.this
                alike = AgreeingRows.agreeing_in(identity, block, parts)
                span = _span_start(node)
                if span is not None and (alike.same(value) or _is_total(alike, node, window)):
                    starts.add(span)
    return starts


def _ordered_windows(subject: Subject) -> set[int]:
    """Where the calls begin of windows with an order; another rule looks at its ties."""
    return {
        span
        for block in blocks_of(subject.relation)
        if isinstance(block, Block)
        for window in window_calls(block)
        if window_clause_nodes(window, named_windows(block), "order")
        and (span := _span_start(window)) is not None
    }


def _is_total(alike: AgreeingRows, node: exp.Expr, window: exp.Window | None) -> bool:
    """Whether the order in WITHIN GROUP leaves no ties."""
    return window is None and isinstance(node.this, exp.Order) and alike.one_source_row()


def _span_start(node: exp.Expr | None) -> int | None:
    """Where the text of a call begins."""
    while node is not None:
        if node.meta and SPAN in node.meta:
            return int(node.meta[SPAN][0])
        node = node.parent
    return None


def _deterministic(tokens: Sequence[Token], call: Call) -> bool:
    """Whether its second argument says that of values as frequent the least is taken."""
    if len(call.arguments) != 2:
        return False
    start, end = call.arguments[1]
    return [token.token_type for token in tokens[start:end]] == [TokenType.TRUE]


def order_is_forgotten(subject: Subject, all_calls: Sequence[Call], call: Call) -> bool:
    """Whether a call around it forgets the order again, before anything makes use of it."""
    tokens = subject.text.tokens
    before = all_calls[: bisect_left(all_calls, call.start, key=lambda known: known.start)]
    for other in (known for known in reversed(before) if call.end <= known.end):  # from the inside
        compares = other.name == "array_sort" and len(other.arguments) > 1
        if other.name in _FORGETS_ORDER and not compares:
            return _is_untouched(subject, tokens[call.start].start, tokens[other.start].start)
        if other.name not in _KEEPS_ELEMENTS or _is_by_place(tokens, other):
            return False
    return False


def _is_untouched(subject: Subject, start: int, around: int) -> bool:
    """Whether no operator between a list and a call around it looks at places or compares."""
    for block in blocks_of(subject.relation):
        node = _collections(block).get(start) if isinstance(block, Block) else None
        if node is not None:
            inner, outer = node, node.parent
            while outer is not None and (outer.meta or {}).get(SPAN, (-1,))[0] != around:
                is_condition = isinstance(outer, exp.If) and inner.arg_key == "this"
                joined = isinstance(outer, exp.DPipe)
                if is_condition or (isinstance(outer, (exp.Binary, exp.Bracket)) and not joined):
                    return False
                inner, outer = outer, outer.parent
            return True
    return False


@once_per_block
def _collections(block: Block) -> Mapping[int | None, exp.Expr]:
    """The aggregates that collect rows, by where their text begins; of several the first."""
    aggregates = [node for node in block.expressions() if isinstance(node, COLLECTS)]
    return {_span_start(node): node for node in reversed(aggregates)}


def _is_by_place(tokens: Sequence[Token], call: Call) -> bool:
    """Whether a call hands each element's place on: ``transform(list, (x, i) -> …)``."""
    for start, end in call.arguments[1:]:
        arrow = [i for i in range(start, end) if tokens[i].token_type is TokenType.ARROW]
        if arrow and any(t.token_type is TokenType.COMMA for t in tokens[start : arrow[0]]):
            return True
    return False
