"""SQL → tokens and tree, once for each model."""

from __future__ import annotations

import itertools
import re
import sys
from collections.abc import Callable, Iterator, MutableMapping
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from typing import Any, ClassVar, TypeVar

from sqlglot import exp
from sqlglot.dialects.spark import Spark
from sqlglot.errors import ParseError, TokenError
from sqlglot.parsers.spark import SparkParser
from sqlglot.tokenizer_core import Token, TokenType

from infold.analysis.sql.text import CALL, SPAN, UNIT, Origins, Text, spot_in
from infold.messages import command_errors, findings, other_tools
from infold.messages.errors import InfoldError, Spot

_DIALECT = Spark()

MOST_WORDS = 100_000
"""A longer query is refused: a list of 50,000 values has as many words, commas included."""


def _with_unit(name: str, at: int) -> Callable[[list[Any]], exp.Expr]:
    """What builds a call, noting the text that is its ``at``-th argument."""
    build = SparkParser.FUNCTIONS[name]

    def built(args: list[Any]) -> exp.Expr:
        unit = args[at] if at < len(args) else None
        text = unit.name if isinstance(unit, exp.Literal) and unit.is_string else ""
        node: exp.Expr = build(args)
        node.meta[UNIT] = text
        return node

    return built


class _Parser(SparkParser):
    """
    sqlglot's parser, which also notes the positions of expressions, and units as written.

    Positions of names sqlglot notes itself, and no others. If these hooks were no longer called,
    carets would be less exact and fewer queries proven, but nothing would be wrong.
    """

    FUNCTIONS: ClassVar = {
        **SparkParser.FUNCTIONS,
        "DATE_TRUNC": _with_unit("DATE_TRUNC", 0),
        "TRUNC": _with_unit("TRUNC", 1),
    }

    own: frozenset[str] = frozenset()
    """Functions of the project, in lower case: no dialect's, whatever their names."""

    def _with_note(self, parse: Callable[[], Any]) -> Any:
        start = self._curr
        node = parse()
        if isinstance(node, exp.Expr):
            node.meta.setdefault(SPAN, (start.start, self._prev.end + 1))
        return node

    def _parse_assignment(self) -> Any:
        return self._with_note(super()._parse_assignment)

    def _parse_range(self, *args: Any, **kwargs: Any) -> Any:
        if args or kwargs:  # it goes on behind an operand, as after IS NULL: it begins before
            return super()._parse_range(*args, **kwargs)
        return self._with_note(super()._parse_range)

    def _parse_function_call(self, *args: Any, **kwargs: Any) -> Any:
        name, behind = self._curr, self._next
        if self.own and name.text.lower() in self.own:
            kwargs["anonymous"] = True
        node = self._with_note(partial(super()._parse_function_call, *args, **kwargs))
        if isinstance(node, exp.Expr) and behind and behind.token_type is TokenType.L_PAREN:
            node.meta.setdefault(CALL, name.text)
        return node

    def _parse_primary(self) -> Any:
        return self._with_note(super()._parse_primary)


@dataclass(frozen=True, slots=True, eq=False)
class Parsed:
    """A model's SELECT as text and as tree."""

    text: Text
    tree: exp.Expr


def parse(
    file: str,
    source: str,
    start: int = 0,
    *,
    own: frozenset[str] = frozenset(),
    origins: Origins | None = None,
) -> Parsed:
    """
    Parse the one SELECT of ``source[start:]``, the text of ``file``.

    Comments and a semicolon around it are left off, so that the text can be put into parentheses.
    ``own`` are the names of the project's functions, in lower case; ``origins`` says where the text
    comes from if these are expanded. Raises InfoldError.
    """
    own_text = source[start:]
    try:
        tokens = _DIALECT.tokenize(own_text)
    except TokenError:
        foreign = _other_dialect(file, source, start)
        if foreign is not None:
            raise foreign from None
        why = "a quote or a comment is never closed"
        raise findings.bad_sql(_unread_tokens(file, source, start), why=why) from None
    if len(tokens) > MOST_WORDS:
        at = spot_in(file, source, start + tokens[0].start, start + tokens[0].end + 1)
        raise findings.long_sql(at, found=f"{len(tokens):,}", most=f"{MOST_WORDS:,}")
    continued = continued_comment(source, start)
    if continued is not None:
        construct = "a comment that ends in a backslash: Spark goes on with it in the next line"
        raise findings.unsupported_sql(spot_in(file, source, *continued), what=construct)
    body = [token for token in tokens if token.token_type is not TokenType.SEMICOLON]
    if not body:
        at = spot_in(file, source, max(0, len(source.rstrip()) - 1), len(source.rstrip()))
        raise findings.not_one_select(at, what="none")
    first, last = body[0], body[-1]
    for before, token in itertools.pairwise(tokens):
        if before.token_type is TokenType.SEMICOLON and token.start < last.end:
            at = spot_in(file, source, start + token.start, start + token.end + 1)
            raise findings.not_one_select(at, what="a second statement")
    text = Text(
        file,
        source,
        start + first.start,
        start + last.end + 1,
        _shift_positions(body, first.start),
        origins,
    )
    return Parsed(text, _parse_tree(text, own))


def _parse_tree(text: Text, own: frozenset[str]) -> exp.Expr:
    pipe = next((t for t in text.tokens if t.token_type is TokenType.PIPE_GT), None)
    if pipe is not None:
        raise findings.unsupported_sql(text.spot_of_token(pipe), what="the pipe syntax")
    for at, why in faults_in_tokens(text):
        raise _other_dialect(text.file, text.source, text.start) or findings.bad_sql(at, why=why)
    try:
        parser = _Parser(dialect=_DIALECT)
        parser.own = own
        trees = parser.parse(_named_windows(text.tokens), text.sql)
    except ParseError as error:
        foreign = _other_dialect(text.file, text.source, text.start)
        if foreign is not None:
            raise foreign from None
        raise _parse_error(text, error) from None
    except RecursionError as error:
        raise findings.too_deep(text.spot(0)) from error
    except (AttributeError, LookupError, TypeError, ValueError) as error:
        refuse_compiled(str(sys.modules[SparkParser.__module__].__file__))
        raise findings.bad_sql(text.spot(0), why=f"the parser failed: {error}") from error
    tree = trees[0] if trees else None
    for at, why in faults_in_tree(text, tree) if tree is not None else ():
        raise findings.bad_sql(at, why=why)
    if not isinstance(tree, exp.Query):
        word = text.tokens[0].text.upper()
        raise findings.not_one_select(
            text.spot_of_token(text.tokens[0]), what=f"a {word} statement"
        )
    if any(not select.expressions for select in tree.find_all(exp.Select)):
        raise findings.bad_sql(text.spot_of_token(text.tokens[0]), why="SELECT without columns")
    return tree


def refuse_compiled(module: str) -> None:
    """Raise ``compiled_sqlglot`` where ``module``, the file of sqlglot's parser, is a library."""
    if module.endswith((".so", ".pyd")):
        raise command_errors.compiled_sqlglot(file=module)


def _named_windows(tokens: tuple[Token, ...]) -> list[Token]:
    """
    The tokens, in which ``window(`` is the name of a function.

    The clause WINDOW has a name behind it, never a bracket; sqlglot would take the function for it
    in GROUP BY.
    """
    renamed = list(tokens)
    for at, (token, behind) in enumerate(itertools.pairwise(tokens)):
        opens = behind.token_type is TokenType.L_PAREN
        if token.token_type is TokenType.WINDOW and opens:
            renamed[at] = _with_spark_types(token, TokenType.VAR)
    return renamed


def _with_spark_types(token: Token, kind: TokenType) -> Token:
    where = token.line, token.col, token.start, token.end
    return Token(kind, token.text, *where, token.comments)


def _shift_positions(tokens: list[Token], by: int) -> tuple[Token, ...]:
    """The tokens with positions that count from the SELECT."""
    if not by:
        return tuple(tokens)
    return tuple(
        Token(t.token_type, t.text, t.line, t.col, t.start - by, t.end - by, t.comments)
        for t in tokens
    )


def _parse_error(text: Text, error: ParseError) -> InfoldError:
    """The first error sqlglot found, at the place in the file."""
    first = error.errors[0] if error.errors else {}
    context, highlighted = first.get("start_context"), first.get("highlight")
    at = text.spot(0)
    if context is not None and highlighted:
        start = text.sql.find(context + highlighted)
        if start >= 0:
            start += len(context)
            at = text.spot(start, start + len(highlighted))
    return findings.bad_sql(at, why=_tidy_message(str(first.get("description") or error)))


def _other_dialect(file: str, source: str, start: int) -> InfoldError | None:
    """What is wrong with a query that is a template of dbt."""
    template = other_tools.find_template(source[start:])
    if template is None:
        return None
    return findings.template(
        spot_in(file, source, start + template[0], start + template[1]), instead=template[2]
    )


def _tidy_message(why: str) -> str:
    if " but got <Token" in why:
        why = why.partition(" but got <Token")[0]
    return why.strip().splitlines()[0][:200]


_OPENING = re.compile(
    r"--[^\n]*|/\*|'(?:[^'\\]|\\.)*'|\"(?:[^\"\\]|\\.)*\"|`[^`]*`|['\"`]", re.DOTALL
)


def _unread_tokens(file: str, source: str, start: int) -> Spot:
    """Where a quote or a comment opens that never closes."""
    at = start
    while match := _OPENING.search(source, at):
        at = match.end()
        if match[0] == "/*":
            at = source.find("*/", at) + 2
        if match[0] in ("'", '"', "`") or at == 1:
            return spot_in(file, source, match.start(), match.end())
    return spot_in(file, source, start, start + 1)


def continued_comment(source: str, start: int) -> tuple[int, int] | None:
    """Where a comment of one line ends in a backslash: for Spark it goes on in the next."""
    for match in _PIECES.finditer(source, start):
        if match[0].startswith("--") and match[0].endswith("\\"):
            return match.span()
    return None


_PIECES = re.compile(
    r"--[^\n\r]*|/\*.*?\*/|'(?:[^'\\]|\\.)*'|\"(?:[^\"\\]|\\.)*\"|`[^`]*`", re.DOTALL
)


# Each is something missing or doubled: a half of a pair, a value between two commas. Spark's own
# parser finds all others, before the first step of a run.

Found = Iterator[tuple[Spot, str]]


def faults_in_tokens(text: Text) -> Found:
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


def faults_in_tree(text: Text, tree: exp.Expr) -> Found:
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
    is_readable = isinstance(value, exp.Literal) and (value.is_string or node.args.get("unit"))
    return "" if is_readable else _NO_INTERVAL


def _frame(node: exp.WindowSpec) -> str:
    for end in ("start", "end"):
        value = node.args.get(end)
        if isinstance(value, exp.Expr) and not node.args.get(f"{end}_side"):
            return "an end of a frame without PRECEDING or FOLLOWING"
    return ""


Value = TypeVar("Value")


class NodeMap(MutableMapping[exp.Expr, Value]):
    """
    Values by nodes: the node itself, not any that is written like it.

    sqlglot compares nodes by what they say, so in a dict the ``ts`` of one side of a join would be
    the ``ts`` of the other. The map keeps its nodes alive, so no other node gets the id of one.
    """

    def __init__(self) -> None:
        self._entries: dict[int, tuple[exp.Expr, Value]] = {}

    def __getitem__(self, node: exp.Expr) -> Value:
        """The value of a node."""
        try:
            return self._entries[id(node)][1]
        except KeyError:
            raise KeyError(node) from None

    def __setitem__(self, node: exp.Expr, value: Value) -> None:
        """Give a node its value."""
        self._entries[id(node)] = (node, value)

    def __delitem__(self, node: exp.Expr) -> None:
        """Forget a node."""
        del self._entries[id(node)]

    def __iter__(self) -> Iterator[exp.Expr]:
        """The nodes, in the order in which they came."""
        return (node for node, _ in self._entries.values())

    def __len__(self) -> int:
        """How many nodes there are."""
        return len(self._entries)

    def __contains__(self, node: object) -> bool:
        """Whether this very node has a value."""
        return id(node) in self._entries


def normal_sql(node: exp.Expr, name_of: Callable[[exp.Column], str]) -> str:
    """The SQL of an expression, with ``name_of`` each column in place of its own name."""
    copy = node.copy()
    columns = zip(node.find_all(exp.Column), list(copy.find_all(exp.Column)), strict=True)
    for written, column in columns:
        for key in ("table", "db", "catalog"):
            column.set(key, None)
        column.set("this", exp.to_identifier(name_of(written), quoted=True))
    return copy.sql("spark", normalize=True)
