"""
Function calls among the tokens: where each starts and ends, its arguments and what follows it.

sqlglot's tree has one class for several functions and no positions of calls. So text that is passed
to Spark word for word is found here.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from sqlglot import tokenize
from sqlglot.tokenizer_core import Token, TokenType

_OPEN = (TokenType.L_PAREN, TokenType.L_BRACKET)
_CLOSE = (TokenType.R_PAREN, TokenType.R_BRACKET)


@dataclass(frozen=True, slots=True)
class Call:
    """
    One call as ranges of token indices, ends exclusive.

    ``arguments`` are split at the commas; ``distinct`` and ``nulls`` (``ignore``, ``respect``)
    are taken out of them. ``filter`` is the condition inside FILTER (WHERE …). ``end`` is behind
    everything that belongs to the call, OVER included.
    """

    name: str
    start: int
    end: int
    arguments: tuple[tuple[int, int], ...]
    distinct: bool = False
    nulls: str | None = None
    filter: tuple[int, int] | None = None
    within: bool = False
    over: bool = False


def calls(tokens: Sequence[Token], start: int, end: int) -> Iterator[Call]:
    """Every call that starts in ``tokens[start:end]``, outer ones before those inside them."""
    for i in range(start, end - 1):
        if tokens[i + 1].token_type is TokenType.L_PAREN and (
            _is_name(tokens, i) or _filters_a_list(tokens, i)
        ):
            yield call_at(tokens, i)


def closing_bracket(tokens: Sequence[Token], opening: int) -> int:
    """The index of the bracket that closes the one at ``opening``."""
    depth = 0
    for i in range(opening, len(tokens)):
        if tokens[i].token_type in _OPEN:
            depth += 1
        elif tokens[i].token_type in _CLOSE:
            depth -= 1
            if depth == 0:
                return i
    return len(tokens)


def split_arguments(tokens: Sequence[Token], start: int, end: int) -> list[tuple[int, int]]:
    """``tokens[start:end]`` split at the commas outside all brackets."""
    ranges, at, i = [], start, start
    while i < end:
        if tokens[i].token_type in _OPEN:
            i = closing_bracket(tokens, i)
        elif tokens[i].token_type is TokenType.COMMA:
            ranges.append((at, i))
            at = i + 1
        i += 1
    if at < end:
        ranges.append((at, end))
    return ranges


def _is_name(tokens: Sequence[Token], i: int) -> bool:
    """Whether the token could be a function's name: a word that is no operator or clause."""
    return tokens[i].token_type not in _NO_FUNCTIONS and tokens[i].text[:1].isidentifier()


def _filters_a_list(tokens: Sequence[Token], i: int) -> bool:
    """Whether it is the function ``filter(list, x -> …)`` and no FILTER (WHERE …)."""
    if tokens[i].token_type is not TokenType.FILTER or i + 2 >= len(tokens):
        return False
    return tokens[i + 2].token_type is not TokenType.WHERE


_NO_FUNCTIONS = frozenset(
    {
        TokenType.IN,
        TokenType.AND,
        TokenType.OR,
        TokenType.NOT,
        TokenType.OVER,
        TokenType.FILTER,
        TokenType.WHERE,
        TokenType.HAVING,
        TokenType.ON,
        TokenType.USING,
        TokenType.SELECT,
        TokenType.FROM,
        TokenType.JOIN,
        TokenType.VALUES,
        TokenType.WHEN,
        TokenType.THEN,
        TokenType.ELSE,
        TokenType.CASE,
        TokenType.BETWEEN,
        TokenType.LIKE,
        TokenType.RLIKE,
        TokenType.IS,
        TokenType.UNION,
        TokenType.EXCEPT,
        TokenType.INTERSECT,
        TokenType.ALL,
        TokenType.DISTINCT,
        TokenType.ALIAS,
        TokenType.EXISTS,
        TokenType.ORDER_BY,
        TokenType.GROUP_BY,
        TokenType.PARTITION_BY,
        TokenType.STRING,
        TokenType.NUMBER,
        TokenType.INTERVAL,
        TokenType.DIV,
    }
)


def call_at(tokens: Sequence[Token], i: int) -> Call:
    """The call whose name is the token at ``i``."""
    name = tokens[i].text.lower()
    close = closing_bracket(tokens, i + 1)
    start, end = i + 2, close
    distinct, nulls = False, None
    if start < end and tokens[start].token_type is TokenType.DISTINCT:
        start, distinct = start + 1, True
    if end - start >= 2 and (treatment := _null_treatment(tokens, end - 2)) is not None:
        end, nulls = end - 2, treatment
    arguments = tuple(split_arguments(tokens, start, end))
    at, condition, within, over = close + 1, None, False, False
    while at < len(tokens):
        if (treatment := _null_treatment(tokens, at)) is not None:
            nulls, at = treatment, at + 2
        elif _opens_bracket(tokens, at, "FILTER"):
            behind = closing_bracket(tokens, at + 1)
            condition = (at + 3, behind)
            at = behind + 1
        elif tokens[at].text.upper() == "WITHIN" and _opens_bracket(tokens, at + 1, "GROUP"):
            within, at = True, closing_bracket(tokens, at + 2) + 1
        elif tokens[at].token_type is TokenType.OVER:
            named = not _opens_bracket(tokens, at, "OVER")
            over, at = True, at + 2 if named else closing_bracket(tokens, at + 1) + 1
        else:
            break
    return Call(name, i, at, arguments, distinct, nulls, condition, within, over)


def _null_treatment(tokens: Sequence[Token], i: int) -> str | None:
    if i + 1 < len(tokens) and tokens[i + 1].text.upper() == "NULLS":
        word = tokens[i].text.lower()
        return word if word in ("ignore", "respect") else None
    return None


def _opens_bracket(tokens: Sequence[Token], i: int, word: str) -> bool:
    return (
        i + 1 < len(tokens)
        and tokens[i].text.upper() == word
        and tokens[i + 1].token_type is TokenType.L_PAREN
    )


def has_alias(sql: str, end: int) -> bool:
    """Whether an alias follows a table name that ends at ``end`` in a Spark SQL text."""
    behind = tokenize(sql[end:], read="spark")
    if not behind:
        return False
    if behind[0].token_type is TokenType.ALIAS:
        return True
    return behind[0].token_type in (TokenType.VAR, TokenType.IDENTIFIER) and (
        behind[0].text.upper() not in _AFTER_TABLE
    )


_AFTER_TABLE = frozenset({"LATERAL", "TABLESAMPLE", "PIVOT", "UNPIVOT", "ANTI", "SEMI", "NATURAL"})
