"""
Mistakes that sqlglot's parser accepts and Spark's does not, found before Spark is started.

Each is something missing or doubled: a half of a pair, a value between two commas. Spark's own
parser finds all others, before the first step of a run.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise

from sqlglot import exp
from sqlglot.tokenizer_core import Token, TokenType

from infold.analysis.sql.text import Text
from infold.messages.errors import Spot

Found = Iterator[tuple[Spot, str]]


def in_tokens(text: Text) -> Found:
    """Where the words of a query cannot follow each other, and why."""
    tokens = text.tokens
    for before, (token, behind) in zip((None, *tokens), pairwise(tokens), strict=False):
        if before is not None and before.token_type in _BEFORE_NAMES:
            continue  # AS from, t.order: words that are names here
        why = _between(token, behind.token_type) or _null(before, token, behind)
        if why:
            yield text.spot_of_token(token), why
    if tokens[-1].token_type in _OPEN:
        yield text.spot_of_token(tokens[-1]), _nothing_behind(tokens[-1])


def in_tree(text: Text, tree: exp.Expr) -> Found:
    """What has been read and is nothing that Spark reads, and why."""
    odd = _odd_bracket(text)
    if odd is not None:
        yield text.spot_of_token(odd), "a bracket without its other half"
    yield from _cases(text)
    yield from _intervals(text)
    for node in tree.walk():
        why = _wrong(node)
        if why:
            yield text.spot_of(node), why


# -- words that follow each other


def _between(token: Token, two: TokenType) -> str:
    one = token.token_type
    if one in _OPEN and (two in _CLOSE or (two in _CLAUSES and one not in _WITH_A_QUERY)):
        return _nothing_behind(token)
    if one is TokenType.L_PAREN and two is TokenType.COMMA:
        return "a comma with nothing before it"
    if one is two and one in _NEVER_TWICE:
        return "the same word twice"
    if one is TokenType.SELECT and two is TokenType.ALIAS:
        return "AS with nothing before it"
    return ""


def _null(before: Token | None, one: Token, two: Token) -> str:
    """``x NOT NULL``, which is no predicate."""
    if (one.token_type, two.token_type) != (TokenType.NOT, TokenType.NULL):
        return ""
    bare = before is not None and before.token_type in _VALUES
    return "NOT NULL without IS" if bare else ""


def _nothing_behind(token: Token) -> str:
    if token.token_type is TokenType.SELECT:
        return "SELECT without columns"
    comma = token.token_type is TokenType.COMMA
    return f"{'a comma' if comma else token.text.upper()} with nothing behind it"


_CLOSE = frozenset({TokenType.COMMA, TokenType.R_PAREN})
_CLAUSES = frozenset(
    {
        TokenType.FROM,
        TokenType.GROUP_BY,
        TokenType.HAVING,
        TokenType.LIMIT,
        TokenType.ORDER_BY,
        TokenType.UNION,
        TokenType.WHERE,
    }
)
_WITH_A_QUERY = frozenset({TokenType.ALIAS, TokenType.SELECT})
"""After these a word may be a name: ``AS limit``."""
_OPEN = frozenset(
    {
        TokenType.ALIAS,
        TokenType.AND,
        TokenType.BETWEEN,
        TokenType.COMMA,
        TokenType.EQ,
        TokenType.FROM,
        TokenType.GROUP_BY,
        TokenType.HAVING,
        TokenType.ON,
        TokenType.OR,
        TokenType.ORDER_BY,
        TokenType.PARTITION_BY,
        TokenType.SELECT,
        TokenType.WHERE,
    }
)
"""Words that need something behind them."""
_NEVER_TWICE = frozenset(
    {
        *(_OPEN - {TokenType.COMMA}),
        TokenType.DISTINCT,
        TokenType.DOT,
        TokenType.INTERVAL,
        TokenType.IS,
        TokenType.JOIN,
        TokenType.NUMBER,
        TokenType.OVER,
        TokenType.THEN,
    }
)
_VALUES = frozenset({TokenType.IDENTIFIER, TokenType.R_PAREN, TokenType.VAR})
_BEFORE_NAMES = frozenset({TokenType.ALIAS, TokenType.DOT})


# -- pairs

_CLOSED_BY = {
    TokenType.L_PAREN: TokenType.R_PAREN,
    TokenType.L_BRACKET: TokenType.R_BRACKET,
    TokenType.L_BRACE: TokenType.R_BRACE,
}


def _odd_bracket(text: Text) -> Token | None:
    """A bracket that no other closes or opens; at the end of a CAST sqlglot would forgive it."""
    opened: list[Token] = []
    for token in text.tokens:
        if token.token_type in _CLOSED_BY:
            opened.append(token)
        elif token.token_type in _CLOSED_BY.values() and (
            not opened or _CLOSED_BY[opened.pop().token_type] is not token.token_type
        ):
            return token
    return opened[0] if opened else None


def _cases(text: Text) -> Found:
    """WHEN without THEN."""
    waiting: Token | None = None
    for token in text.tokens:
        if token.token_type is TokenType.WHEN:
            waiting = token
        elif token.token_type is TokenType.THEN:
            waiting = None
        elif token.token_type is TokenType.END and waiting is not None:
            yield text.spot_of_token(waiting), "WHEN without THEN"
            waiting = None


# -- lengths of time


def _intervals(text: Text) -> Found:
    """INTERVAL without a number or without a unit; as a type, a column or with a text it may be."""
    tokens = text.tokens
    for at, token in enumerate(tokens):
        if token.token_type is not TokenType.INTERVAL or at == 0:
            continue
        behind = [one for one in tokens[at + 1 : at + 4] if one.token_type not in _SIGNS]
        number = bool(behind) and behind[0].token_type is TokenType.NUMBER
        unit = behind[1 if number else 0 :][:1]
        united = bool(unit) and unit[0].text.upper().removesuffix("S") in _UNITS
        if number != united and tokens[at - 1].token_type in (*_SIGNS, *_BEFORE_LENGTHS):
            yield text.spot_of_token(token), _NO_INTERVAL


_SIGNS = (TokenType.DASH, TokenType.PLUS)
_BEFORE_LENGTHS = (TokenType.AND, TokenType.BETWEEN, TokenType.GT, TokenType.LT)
_UNITS = frozenset(
    {
        "YEAR",
        "QUARTER",
        "MONTH",
        "WEEK",
        "DAY",
        "HOUR",
        "MINUTE",
        "SECOND",
        "MILLISECOND",
        "MICROSECOND",
    }
)
_NO_INTERVAL = "INTERVAL without a number or a unit: INTERVAL 1 DAY"


# -- what was read


def _wrong(node: exp.Expr) -> str:
    parent = node.parent
    if isinstance(node, exp.Alias) and isinstance(parent, exp.Paren | exp.Tuple):
        return "a name in brackets: cast(… AS …), or the name behind the bracket"
    if isinstance(node, exp.Alias) and isinstance(parent, exp.Star):
        return "names without a comma between them"
    if isinstance(node, exp.Tuple) and not node.expressions:
        return "" if isinstance(parent, exp.GroupingSets) else "brackets with nothing in them"
    if isinstance(node, exp.Paren) and isinstance(node.this, exp.Star):
        return "a star in brackets without a function"
    if isinstance(node, exp.Interval) and not isinstance(parent, exp.DataType):
        return _interval(node)
    if isinstance(node, exp.Window) and node.args.get("alias"):
        more = any(node.args.get(key) for key in ("partition_by", "order", "spec"))
        return "PARTITION BY is missing, or more than the name of a window" if more else ""
    if isinstance(node, exp.WindowSpec):
        return _frame(node)
    return ""


def _interval(node: exp.Interval) -> str:
    value = node.this.this if isinstance(node.this, exp.Neg) else node.this
    whole = isinstance(value, exp.Literal) and (value.is_string or node.args.get("unit"))
    return "" if whole else _NO_INTERVAL


def _frame(node: exp.WindowSpec) -> str:
    for end in ("start", "end"):
        value = node.args.get(end)
        if isinstance(value, exp.Expr) and not node.args.get(f"{end}_side"):
            return "an end of a frame without PRECEDING or FOLLOWING"
    return ""
