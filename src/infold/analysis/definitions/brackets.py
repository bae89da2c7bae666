"""
Find brackets that change nothing, by Spark's grammar and the tokens around and between them.

sqlglot's tree cannot be used for this: it reads ``a | b & c`` as ``(a | b) & c``, Spark does not. A
pair is redundant if its content binds more tightly than the operators beside it, or as tightly as
the one to its right. Only ``* / % DIV``, ``+ - ||`` and comparisons are understood; every other
pair is kept.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from sqlglot.tokenizer_core import Token, TokenType

from infold.analysis.sql.token_calls import closing_bracket

OPERAND = 9
"""The level of an operand that needs no brackets: a name, a literal, a call."""

LEVELS = {
    TokenType.STAR: 3,
    TokenType.SLASH: 3,
    TokenType.MOD: 3,
    TokenType.DIV: 3,
    TokenType.PLUS: 2,
    TokenType.DASH: 2,
    TokenType.DPIPE: 2,
}
"""How tightly binary operators bind; all are left-associative."""

_COMPARISONS = frozenset(
    {
        TokenType.EQ,
        TokenType.NEQ,
        TokenType.LT,
        TokenType.LTE,
        TokenType.GT,
        TokenType.GTE,
        TokenType.NULLSAFE_EQ,
    }
)
_LOOSE = _COMPARISONS | {TokenType.AND, TokenType.OR}
"""Binary operators that bind less tightly than arithmetic."""
_BITS = frozenset({TokenType.AMP, TokenType.PIPE, TokenType.CARET})

_CLOSED_LEFT = frozenset(
    {
        TokenType.L_PAREN,
        TokenType.COMMA,
        TokenType.WHEN,
        TokenType.THEN,
        TokenType.ELSE,
        TokenType.WHERE,
    }
)
_CLOSED_RIGHT = frozenset(
    {
        TokenType.R_PAREN,
        TokenType.COMMA,
        TokenType.WHEN,
        TokenType.THEN,
        TokenType.ELSE,
        TokenType.END,
    }
)
_PREDICATES = frozenset(
    {
        TokenType.IS,
        TokenType.IN,
        TokenType.LIKE,
        TokenType.RLIKE,
        TokenType.ILIKE,
        TokenType.BETWEEN,
    }
)
_QUERIES = frozenset(
    {TokenType.SELECT, TokenType.WITH, TokenType.FROM, TokenType.VALUES, TokenType.TABLE}
)
_BRACKETED_NAMES = frozenset({TokenType.VAR, TokenType.IDENTIFIER})
_LITERALS = frozenset({TokenType.NUMBER, TokenType.STRING})
_CONSTANTS = frozenset({TokenType.NULL, TokenType.TRUE, TokenType.FALSE})
_OPERAND_ENDS = (
    _BRACKETED_NAMES | _LITERALS | _CONSTANTS | {TokenType.R_PAREN, TokenType.R_BRACKET, TokenType.END}
)


def redundant(tokens: Sequence[Token], start: int, stop: int) -> frozenset[int]:
    """The indices of brackets in the expression ``tokens[start:stop]`` that change nothing."""
    return frozenset(_redundant(tokens, start, stop))


def _redundant(tokens: Sequence[Token], start: int, stop: int) -> Iterator[int]:
    for at in range(start, stop):
        if tokens[at].token_type is not TokenType.L_PAREN:
            continue
        end = closing_bracket(tokens, at)
        if end < stop and _changes_nothing(tokens, at, end, start, stop):
            yield from (at, end)


def _changes_nothing(tokens: Sequence[Token], at: int, end: int, start: int, stop: int) -> bool:
    if at + 1 >= end or is_query(tokens, at) or is_list(tokens, at + 1, end):
        return False
    left = tokens[at - 1].token_type if at > start else None
    right = tokens[end + 1].token_type if end + 1 < stop else None
    first = left is None or left in _CLOSED_LEFT
    last = (
        right is None
        or right in _CLOSED_RIGHT
        or (right is TokenType.ALIAS and left is TokenType.L_PAREN)
    )
    if first and last:
        return True
    level = _level(tokens, at + 1, end)
    return (first or _fits_left(tokens, at, start, level)) and (last or _fits_right(right, level))


def _fits_left(tokens: Sequence[Token], at: int, start: int, level: int) -> bool:
    """Whether the operator to the left takes no part of the brackets' content."""
    kind = tokens[at - 1].token_type
    if kind in LEVELS:
        binary = at - 2 >= start and tokens[at - 2].token_type in _OPERAND_ENDS
        return binary and LEVELS[kind] < level
    if kind in _BITS:
        return level == OPERAND
    return kind in _LOOSE and level > 0


def _fits_right(kind: TokenType | None, level: int) -> bool:
    """Whether the operator to the right takes no part of the brackets' content."""
    if kind in LEVELS:
        return LEVELS[kind] <= level
    if kind in _BITS:
        return level == OPERAND
    return level > 0 and (kind in _LOOSE or kind in _PREDICATES)


def is_query(tokens: Sequence[Token], at: int) -> bool:
    """Whether the bracket at ``at`` has a query in it, and nothing but a query."""
    kind = tokens[at + 1].token_type
    if kind is not TokenType.L_PAREN:
        return kind in _QUERIES
    if not is_query(tokens, at + 1):
        return False
    behind = tokens[closing_bracket(tokens, at + 1) + 1].token_type
    return behind in {
        TokenType.R_PAREN,
        TokenType.UNION,
        TokenType.EXCEPT,
        TokenType.INTERSECT,
        TokenType.ORDER_BY,
        TokenType.LIMIT,
        TokenType.OFFSET,
    }


def is_list(tokens: Sequence[Token], start: int, stop: int) -> bool:
    """Whether the brackets contain a list, a name or a lambda, and so have a meaning."""
    at = start
    while at < stop:
        kind = tokens[at].token_type
        if kind in (TokenType.COMMA, TokenType.ALIAS, TokenType.ARROW, TokenType.FARROW):
            return True
        if kind in (TokenType.DISTINCT, TokenType.STAR) and at == start:
            return True
        at = closing_bracket(tokens, at) if kind in (TokenType.L_PAREN, TokenType.L_BRACKET) else at
        at += 1
    return False


def _level(tokens: Sequence[Token], start: int, stop: int) -> int:
    """How tightly the loosest operator of a range binds; 0 if a part is not understood."""
    if tokens[start].token_type is TokenType.L_PAREN and closing_bracket(tokens, start) == stop - 1:
        return 0 if is_query(tokens, start) else _level(tokens, start + 1, stop - 1)
    level, behind = OPERAND, _behind_operand(tokens, start, stop)
    while behind is not None and behind < stop - 1:
        kind = tokens[behind].token_type
        if kind not in LEVELS:
            return 0
        level, behind = min(level, LEVELS[kind]), _behind_operand(tokens, behind + 1, stop)
    return level if behind == stop else 0


def _behind_operand(tokens: Sequence[Token], at: int, stop: int) -> int | None:
    """The index behind a name, a literal, a call or a bracket; None for anything else."""
    kind = tokens[at].token_type
    if kind is TokenType.L_PAREN:
        return closing_bracket(tokens, at) + 1
    if kind in _LITERALS:
        # 1L comes as 1 :: L
        typed = at + 2 < stop and tokens[at + 1].token_type is TokenType.DCOLON
        return at + 3 if typed else at + 1
    if kind in _CONSTANTS:
        return at + 1
    if kind not in _BRACKETED_NAMES:
        return None
    at += 1
    while at < stop:
        kind = tokens[at].token_type
        if kind is TokenType.DOT and at + 1 < stop:
            at += 2
        elif kind in (TokenType.L_PAREN, TokenType.L_BRACKET):
            at = closing_bracket(tokens, at) + 1
        else:
            break
    return at
