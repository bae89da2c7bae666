"""
Find the clauses of a SELECT among its tokens: each item, condition and entry of FROM.

sqlglot's tree loses how a query was written; the tokens are what Spark reads. Tree and tokens must
agree on every clause. If they do not, or if a token is left over, ``Doubt`` is raised, and the
query is equal only to one with the same words.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from sqlglot import exp
from sqlglot.tokenizer_core import Token, TokenType

from infold.analysis.names.relation import Block
from infold.analysis.sql.text import SPAN, Text
from infold.analysis.sql.token_calls import closing_bracket, split_arguments

Range = tuple[int, int]
"""Indices of tokens, the end exclusive."""


class Doubt(Exception):  # noqa: N818 - it is no error of the user's
    """A construct that is not understood well enough to compare it."""


@dataclass(frozen=True, slots=True)
class FromItem:
    """
    One entry of FROM: how it is joined (in lower case, without INNER and OUTER), and its condition.

    ``what`` is the table, function or bracket without its alias.
    """

    joined: tuple[str, ...]
    what: Range
    on: Range | None = None
    using: Range | None = None


@dataclass(frozen=True, slots=True)
class Clauses:
    """The clauses of one SELECT; ``ranges`` are by the names of sqlglot's arguments."""

    items: tuple[Range, ...]
    """The tokens of each output, without its alias."""
    ranges: dict[str, Range]
    froms: tuple[FromItem, ...]
    """The entries of FROM in their order, joins and LATERAL VIEWs too."""
    distinct: bool
    hint: str


_CLAUSES = {
    TokenType.FROM: "from_",
    TokenType.WHERE: "where",
    TokenType.GROUP_BY: "group",
    TokenType.HAVING: "having",
    TokenType.QUALIFY: "qualify",
    TokenType.WINDOW: "windows",
    TokenType.ORDER_BY: "order",
    TokenType.SORT_BY: "sort",
    TokenType.CLUSTER_BY: "cluster",
    TokenType.DISTRIBUTE_BY: "distribute",
    TokenType.LIMIT: "limit",
    TokenType.OFFSET: "offset",
}
_INSIDE_FROM = frozenset({"joins", "laterals"})
_ELSEWHERE = frozenset({"expressions", "distinct", "hint", "with_"})
_SETS = frozenset({TokenType.UNION, TokenType.EXCEPT, TokenType.INTERSECT})
_OPENING = (TokenType.L_PAREN, TokenType.L_BRACKET)
_SIDES = frozenset({TokenType.LEFT, TokenType.RIGHT})
_JOINS = frozenset(
    {
        TokenType.ANTI,
        TokenType.CROSS,
        TokenType.FULL,
        TokenType.INNER,
        TokenType.JOIN,
        TokenType.NATURAL,
        TokenType.SEMI,
    }
)
_NAMES = frozenset({TokenType.VAR, TokenType.IDENTIFIER})


def select_index(block: Block) -> int:
    """The index of the token SELECT. Raises Doubt where the first item has no place."""
    items = block.node.expressions
    place = items[0].unalias().meta.get(SPAN) if items else None
    if place is None:
        raise Doubt
    tokens = block.text.tokens
    at = block.text.token_index(place[0])
    if at >= len(tokens) or tokens[at].start != place[0]:
        raise Doubt
    before = (TokenType.ALL, TokenType.DISTINCT, TokenType.HINT)
    while at > 0 and tokens[at - 1].token_type in before:
        at -= 1
    if at == 0 or tokens[at - 1].token_type is not TokenType.SELECT:
        raise Doubt
    return at - 1


def clauses(block: Block) -> Clauses:
    """The clauses of a block; raises Doubt."""
    text, tokens, node = block.text, block.text.tokens, block.node
    at = select_index(block) + 1
    hint, distinct = "", False
    if tokens[at].token_type is TokenType.HINT:
        hint, at = tokens[at].text, at + 1
    if tokens[at].token_type in (TokenType.ALL, TokenType.DISTINCT):
        distinct, at = tokens[at].token_type is TokenType.DISTINCT, at + 1
    marks = list(_marks(text, at))
    end = marks.pop()[0]
    starts = [where for where, _ in marks] + [end]
    ranges: dict[str, Range] = {}
    for (where, key), behind in zip(marks, starts[1:], strict=True):
        if key in ranges:
            raise Doubt
        ranges[key] = (where + 1, behind)
    present = {key for key, value in node.args.items() if value} - _INSIDE_FROM - _ELSEWHERE
    if present != set(ranges) or bool(node.args.get("distinct")) != distinct:
        raise Doubt
    items = split_arguments(tokens, at, starts[0])
    froms = tuple(_FromItems(block, *ranges["from_"]).all()) if "from_" in ranges else ()
    return Clauses(tuple(_unaliased(block, items)), ranges, froms, distinct, hint)


def _marks(text: Text, at: int) -> Iterator[tuple[int, str]]:
    """Where the clauses of a SELECT begin, and last where it ends."""
    tokens = text.tokens
    while at < len(tokens):
        kind = tokens[at].token_type
        if kind is TokenType.R_PAREN or (kind in _SETS and _is_operator(tokens, at)):
            break
        if kind in _OPENING:
            at = closing_bracket(tokens, at)
        elif kind in _CLAUSES and not _is_name(tokens, at):
            yield at, _CLAUSES[kind]
        at += 1
    yield at, ""


def _is_name(tokens: Sequence[Token], at: int) -> bool:
    """Whether the word of a clause is a name here, or a part of a predicate or a call."""
    before = tokens[at - 1].token_type
    if before in (TokenType.DOT, TokenType.ALIAS):
        return True
    if tokens[at].token_type is TokenType.FROM and before is TokenType.DISTINCT:
        return tokens[at - 2].token_type in (TokenType.IS, TokenType.NOT)
    behind = tokens[at + 1].token_type if at + 1 < len(tokens) else None
    return tokens[at].token_type is TokenType.WINDOW and behind is TokenType.L_PAREN


def _is_operator(tokens: Sequence[Token], at: int) -> bool:
    """Whether EXCEPT parts two queries, and does not take columns from a star."""
    if at + 1 >= len(tokens):
        return False
    behind = tokens[at + 1].token_type
    if behind is TokenType.L_PAREN:
        return is_query(tokens, at + 1)
    return behind in (TokenType.SELECT, TokenType.ALL, TokenType.DISTINCT) or _starts(behind)


def _starts(kind: TokenType) -> bool:
    return kind in (TokenType.WITH, TokenType.VALUES, TokenType.FROM, TokenType.TABLE)


def _unaliased(block: Block, items: list[Range]) -> Iterator[Range]:
    nodes, tokens = block.node.expressions, block.text.tokens
    if len(nodes) != len(items):
        raise Doubt
    for (start, stop), node in zip(items, nodes, strict=True):
        if isinstance(node, exp.Aliases):
            raise Doubt
        if isinstance(node, exp.Alias):
            stop -= 2 if tokens[stop - 2].token_type is TokenType.ALIAS else 1
        if stop <= start:
            raise Doubt
        yield start, stop


@dataclass(slots=True)
class _FromItems:
    """Reads what is behind FROM, each token of it; ``at`` is the next one."""

    block: Block
    at: int
    stop: int

    def all(self) -> Iterator[FromItem]:
        node = self.block.node
        joins = iter(node.args.get("joins") or ())
        laterals = iter(node.args.get("laterals") or ())
        yield self._entry((), node.args["from_"].this)
        while self.at < self.stop:
            if self._is(TokenType.LATERAL) and self._text(1) == "view":
                yield self._lateral_view(next(laterals, None))
                continue
            joined = self._words()
            join = next(joins, None)
            if join is None or not set(_arguments_present(join)) <= _JOIN_KEYS:
                raise Doubt
            yield self._entry(joined, join.this)
        if next(joins, None) is not None or next(laterals, None) is not None:
            raise Doubt

    def _words(self) -> tuple[str, ...]:
        if self._is(TokenType.COMMA):
            self.at += 1
            return (",",)
        words = []
        while self.at < self.stop and not self._is(TokenType.JOIN):
            kind = self._token().token_type
            if kind not in _JOINS | _SIDES | {TokenType.OUTER}:
                raise Doubt
            words.append(self._text())
            self.at += 1
        if self.at >= self.stop:
            raise Doubt
        self.at += 1
        return (*(word for word in words if word not in ("inner", "outer")), "join")

    def _entry(self, joined: tuple[str, ...], node: exp.Expr) -> FromItem:
        if any(node.args.get(key) for key in ("joins", "laterals", "sample", "pivots")):
            raise Doubt
        item_range = self._range_of_rows(node)
        self._alias(node)
        on = using = None
        if self._is(TokenType.ON):
            start = self.at + 1
            self.at = self._end_of_condition(start)
            on = (start, self.at)
        elif self._is(TokenType.USING):
            end = closing_bracket(self.block.text.tokens, self.at + 1) + 1
            using, self.at = (self.at + 1, end), end
        if (on or using) and joined[-1:] != ("join",):
            raise Doubt
        return FromItem(joined, item_range, on, using)

    def _range_of_rows(self, node: exp.Expr) -> Range:
        tokens, start = self.block.text.tokens, self.at
        if self._is(TokenType.LATERAL):
            self.at += 1
            if not isinstance(node, exp.Lateral) or not self._is(TokenType.L_PAREN):
                raise Doubt
        elif isinstance(node, exp.Lateral):
            raise Doubt
        if self._is(TokenType.L_PAREN):
            if not is_query(tokens, self.at):
                raise Doubt
            self.at = closing_bracket(tokens, self.at) + 1
        elif self._is(TokenType.VALUES):
            self._values()
        else:
            self._name()
        if self.at > self.stop:
            raise Doubt
        return start, self.at

    def _values(self) -> None:
        tokens = self.block.text.tokens
        self.at += 1
        while True:
            opens = self._is(TokenType.L_PAREN)
            if not opens and not self._is(TokenType.NUMBER, TokenType.STRING):
                raise Doubt
            self.at = closing_bracket(tokens, self.at) + 1 if opens else self.at + 1
            more = self._is(TokenType.COMMA) and self.at + 1 < self.stop
            if not more or tokens[self.at + 1].token_type is not TokenType.L_PAREN:
                return
            self.at += 1

    def _name(self) -> None:
        tokens = self.block.text.tokens
        if not self._is(*_NAMES, TokenType.RANGE):
            raise Doubt
        self.at += 1
        while self._is(TokenType.DOT):
            self.at += 2
        if self._is(TokenType.L_PAREN):
            self.at = closing_bracket(tokens, self.at) + 1

    def _alias(self, node: exp.Expr) -> None:
        alias = node.args.get("alias")
        if alias is None:
            if self._is(TokenType.ALIAS):
                raise Doubt
            return
        if self._is(TokenType.ALIAS):
            self.at += 1
        if not isinstance(alias, exp.TableAlias) or not alias.this or not self._is(*_NAMES):
            raise Doubt
        self.at += 1
        if alias.args.get("columns"):
            if not self._is(TokenType.L_PAREN):
                raise Doubt
            self.at = closing_bracket(self.block.text.tokens, self.at) + 1

    def _lateral_view(self, node: exp.Expr | None) -> FromItem:
        """``LATERAL VIEW [OUTER] explode(x) t AS a, b``."""
        if node is None:
            raise Doubt
        self.at += 2
        words = ["lateral", "view"]
        if self._is(TokenType.OUTER):
            words.append("outer")
            self.at += 1
        start = self.at
        self._name()
        function_range = (start, self.at)
        alias = node.args.get("alias")
        if isinstance(alias, exp.TableAlias):
            columns = alias.args.get("columns") or ()
            if alias.this:
                self.at += 1
            if columns:
                self.at += 2 * len(columns) - 1 + self._is(TokenType.ALIAS)
        if self.at > self.stop:
            raise Doubt
        return FromItem(tuple(words), function_range)

    def _end_of_condition(self, at: int) -> int:
        tokens = self.block.text.tokens
        while at < self.stop:
            kind = tokens[at].token_type
            behind = tokens[at + 1].token_type if at + 1 < self.stop else None
            if kind in _JOINS or kind in (TokenType.COMMA, TokenType.LATERAL, TokenType.ON):
                break
            if kind in _SIDES and behind is not TokenType.L_PAREN:
                break
            at = closing_bracket(tokens, at) + 1 if kind in _OPENING else at + 1
        return at

    def _token(self) -> Token:
        return self.block.text.tokens[self.at]

    def _text(self, ahead: int = 0) -> str:
        at = self.at + ahead
        return self.block.text.tokens[at].text.lower() if at < self.stop else ""

    def _is(self, *kinds: TokenType) -> bool:
        return self.at < self.stop and self._token().token_type in kinds


_JOIN_KEYS = frozenset({"this", "side", "kind", "method", "on", "using"})


def _arguments_present(node: exp.Expr) -> Iterator[str]:
    return (key for key, value in node.args.items() if value)


def boolean_terms(tokens: Sequence[Token], start: int, stop: int, word: TokenType) -> list[Range]:
    """
    A condition cut at its ANDs, or its ORs, that are in no brackets, CASE or BETWEEN.

    By Spark's grammar AND binds more tightly than OR, and everything else more tightly than both.
    """
    terms, at, i, between, cases = [], start, start, 0, 0
    while i < stop:
        kind = tokens[i].token_type
        if kind in _OPENING:
            i = closing_bracket(tokens, i)
        elif kind is TokenType.CASE:
            cases += 1
        elif kind is TokenType.END and tokens[i - 1].token_type is not TokenType.DOT:
            cases -= 1
        elif kind is TokenType.BETWEEN and not cases:
            between += 1
        elif kind is TokenType.AND and between and not cases:
            between -= 1
        elif kind is word and not cases:
            terms.append((at, i))
            at = i + 1
        elif kind is TokenType.ARROW:
            raise Doubt
        i += 1
    terms.append((at, stop))
    if cases or between or i != stop or any(a >= b for a, b in terms):
        raise Doubt
    return terms


# sqlglot's tree cannot be used for this: it reads `a | b & c` as `(a | b) & c`, Spark does not. A
# pair is redundant if its content binds more tightly than the operators beside it, or as tightly as
# the one to its right. Only `* / % DIV`, `+ - ||` and comparisons are understood; every other pair
# is kept.

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
_LITERALS = frozenset({TokenType.NUMBER, TokenType.STRING})
_CONSTANTS = frozenset({TokenType.NULL, TokenType.TRUE, TokenType.FALSE})
_OPERAND_ENDS = (
    _NAMES | _LITERALS | _CONSTANTS | {TokenType.R_PAREN, TokenType.R_BRACKET, TokenType.END}
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
    if kind not in _NAMES:
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
