"""
The expressions of one SELECT as words, with each column replaced by its origin.

A word is a token as written. A column is a tuple: its entry of FROM, and its form in that entry.
Equal words have the same meaning.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from hashlib import sha256
from typing import Protocol, TypeAlias

from sqlglot import exp
from sqlglot.tokenizer_core import TokenType

from infold.analysis.definitions.clauses import (
    Clauses,
    Doubt,
    Range,
    boolean_terms,
    is_list,
    is_query,
    redundant,
    select_index,
)
from infold.analysis.definitions.places import Need, Place, all_positions, position
from infold.analysis.names.relation import (
    Block,
    FromEntry,
    Origin,
    Relation,
    Table,
    first_block,
    own_nodes,
)
from infold.analysis.rules.random import ENVIRONMENT
from infold.analysis.sql.functions import CHANCE, varies
from infold.analysis.sql.parse import NodeMap
from infold.analysis.sql.token_calls import closing_bracket

Word: TypeAlias = str | tuple[object, ...]
Terms: TypeAlias = list[tuple[str, Range]]
"""Conditions that are joined by AND: the form and the tokens of each."""


def digest(value: object) -> str:
    """A short name for a nested value of tuples and texts."""
    return sha256(repr(value).encode()).hexdigest()[:32]


class Forms(Protocol):
    """What a SELECT has to know of the relations that it reads, and of those around it."""

    given: frozenset[str]
    letters: bool

    def form(
        self, relation: Relation, positions: frozenset[int], *, whole: bool = False
    ) -> tuple[str, frozenset[Need]]:
        """The form of a relation's rows in some columns, and what it needs of those around."""

    def column(self, relation: Relation, place: Place) -> str:
        """The form of a column of a relation."""

    def label(self, entry: FromEntry) -> tuple[int, int, bool]:
        """The entry's level and number, and whether a join beside it merges two columns."""


_CALLS_BY_CHANCE = CHANCE | ENVIRONMENT
_STRINGS = frozenset(
    {
        TokenType.STRING,
        TokenType.RAW_STRING,
        TokenType.HEX_STRING,
        TokenType.NATIONAL_STRING,
        TokenType.UNICODE_STRING,
        TokenType.BIT_STRING,
        TokenType.BYTE_STRING,
    }
)
_ALIAS_FIRST = ("order", "sort", "cluster", "distribute", "having", "qualify")
"""The clauses in which Spark may take an alias before a column of that name."""


@dataclass(slots=True, eq=False)
class Expressions:
    """One SELECT; ``forms`` knows the relations that it reads."""

    forms: Forms
    block: Block
    parts: Clauses
    _columns: dict[int, exp.Column] = field(init=False)
    """Column nodes by the position in the text where they start."""
    _queries: dict[int, Relation] = field(init=False)
    """Subqueries by the index of their SELECT."""
    _items: list[Range | tuple[Origin, bool]] = field(init=False)
    """Each output: its tokens; or, from a star, its origin and whether the star has a qualifier."""
    _aliases: dict[str, int] = field(init=False)
    _aliased: NodeMap[int] = field(init=False)
    """The outputs that aliases mean, by their expressions."""
    _outputs: dict[int, tuple[str, frozenset[Need]]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        block = self.block
        if block.outputs is None:
            raise Doubt
        self._columns = dict(self._written_columns())
        self._queries = {select_index(_main(query)): query for _, query in block.nested_queries}
        nodes = block.node.expressions
        written = [
            span for span, node in zip(self.parts.items, nodes, strict=True) if not is_star(node)
        ]
        plain = [at for at, out in enumerate(block.outputs) if out.origin is None]
        if len(written) != len(plain):
            raise Doubt
        spans = dict(zip(plain, written, strict=True))
        self._items = [
            (out.origin, isinstance(out.node, exp.Column)) if out.origin else spans[at]
            for at, out in enumerate(block.outputs)
        ]
        named = [node for node in nodes if not is_star(node)]
        pairs = [(node, at) for node, at in zip(named, plain, strict=True)]
        aliased = [(node, at) for node, at in pairs if isinstance(node, exp.Alias)]
        self._aliases = {node.alias.lower(): at for node, at in aliased}
        self._aliased = NodeMap[int]()
        for node, at in aliased:
            self._aliased[node.this] = at

    def _written_columns(self) -> Iterator[tuple[int, exp.Column]]:
        text = self.block.text
        nodes = [*self.block.expressions()]
        for lateral in self.block.node.args.get("laterals") or ():
            nodes += own_nodes(lateral.this)
        for node in nodes:
            if not isinstance(node, exp.Column) or isinstance(node.this, exp.Star):
                continue
            places = [part.meta.get("start", -1) for part in node.parts]
            at = text.token_index(places[0])
            if min(places) < 0 or text.tokens[at].start != places[0]:
                raise Doubt
            yield places[0], node

    def output(self, at: int) -> tuple[str, frozenset[Need]]:
        """The form of an output column, and what it needs."""
        if at not in self._outputs:
            needs, item = set[Need](), self._items[at]
            if isinstance(item[0], Origin):
                form = digest((self._origin(item[0], bool(item[1]), [], needs),))
            else:
                form = self.expression((item[0], int(item[1])), needs)
            self._outputs[at] = form, frozenset(needs)
        return self._outputs[at]

    def written(self, at: int) -> Range | None:
        """The tokens of an output column; None for one from a star."""
        item = self._items[at]
        return None if isinstance(item[0], Origin) else (item[0], int(item[1]))

    def conditions(self, key: str, needs: set[Need] | None = None) -> Terms:
        """The conditions of a clause that all have to be true."""
        if key not in self.parts.ranges:
            return []
        return self.all_of(self.parts.ranges[key], set() if needs is None else needs, key)

    def all_of(self, span: Range, needs: set[Need], clause: str) -> Terms:
        """The conditions of a range that all have to be true; TRUE is none."""
        span, tokens = self.unbracketed(span), self.block.text.tokens
        ors = boolean_terms(tokens, *span, TokenType.OR)
        if len(ors) > 1:
            return [(self._any_of(ors, needs, clause), span)]
        ands = boolean_terms(tokens, *span, TokenType.AND)
        if len(ands) > 1:
            return [term for one in ands for term in self.all_of(one, needs, clause)]
        return [] if self._is_true(span) else [(self.expression(span, needs, clause), span)]

    def _any_of(self, ors: Iterable[Range], needs: set[Need], clause: str) -> str:
        terms: set[str] = set()
        todo = list(ors)
        while todo:
            span = self.unbracketed(todo.pop())
            more = boolean_terms(self.block.text.tokens, *span, TokenType.OR)
            if len(more) > 1:
                todo += more
                continue
            start, stop = span
            if stop == start + 1 and self.kind(start) is TokenType.FALSE:
                continue
            forms = sorted({form for form, _ in self.all_of(span, needs, clause)})
            terms.add(forms[0] if len(forms) == 1 else digest(("and", forms)))
        return next(iter(terms)) if len(terms) == 1 else digest(("or", sorted(terms)))

    def _is_true(self, span: Range) -> bool:
        """TRUE, or a literal that equals itself."""
        start, stop = span
        tokens, sql = self.block.text.tokens[start:stop], self.block.text.sql
        if len(tokens) == 1:
            return tokens[0].token_type is TokenType.TRUE
        if len(tokens) != 3 or tokens[1].token_type is not TokenType.EQ:
            return False
        kinds = {tokens[0].token_type, tokens[2].token_type}
        first, last = (sql[token.start : token.end + 1] for token in (tokens[0], tokens[2]))
        return kinds in ({TokenType.NUMBER}, {TokenType.STRING}) and first == last

    def unbracketed(self, span: Range) -> Range:
        """A range without the brackets around all of it."""
        start, stop = span
        tokens = self.block.text.tokens
        while (
            self.kind(start) is TokenType.L_PAREN
            and stop - start > 2
            and closing_bracket(tokens, start) == stop - 1
            and not is_query(tokens, start)
            and not is_list(tokens, start + 1, stop - 1)
        ):
            start, stop = start + 1, stop - 1
        return start, stop

    def expression(self, span: Range, needs: set[Need], clause: str = "") -> str:
        """The form of ``tokens[start:stop]``; the columns that it reads go to ``needs``."""
        words = self.words(span, needs, clause)
        if len(words) == 1 and isinstance(words[0], tuple) and words[0][0] == "output":
            return str(words[0][1])
        return digest(words)

    def words(self, span: Range, needs: set[Need], clause: str = "") -> tuple[Word, ...]:
        """The words of an expression; brackets that change nothing are left out."""
        start, stop = span
        tokens = self.block.text.tokens
        left_out, words, at = redundant(tokens, start, stop), list[Word](), start
        while at < stop:
            token = tokens[at]
            column = self._columns.get(token.start)
            if at in left_out:
                at += 1
            elif column is not None:
                words.append(self._column(column, needs, clause))
                at = self.behind(column, at, stop)
            elif token.token_type is TokenType.L_PAREN and is_query(tokens, at):
                end = closing_bracket(tokens, at)
                words.append(self._subquery(at, end, needs))
                at = end + 1
            elif token.token_type is TokenType.STAR and self._stands_for_columns(at):
                words.append(("*", tuple(self.all_columns(needs))))
                at += 1
            else:
                words.append(self._word(at))
                at += 1
        return tuple(words)

    def behind(self, column: exp.Column, at: int, stop: int) -> int:
        """The index behind the words of a column that begins at a token."""
        tokens, last = self.block.text.tokens, column.parts[-1].meta["start"]
        while at < stop and tokens[at].start <= last:
            at += 1
        return at

    def _word(self, at: int) -> str:
        token = self.block.text.tokens[at]
        kind = token.token_type
        if self.calls(at) in _CALLS_BY_CHANCE or varies(self.calls(at)):
            raise Doubt
        if kind in _STRINGS:
            return self.block.text.sql[token.start : token.end + 1]
        if kind is TokenType.NEQ:
            return "<>"
        if at > 0 and self.kind(at - 1) is TokenType.DOT:
            return token.text
        if kind is TokenType.IDENTIFIER:
            return f"`{self.folded(token.text)}`"
        return self.folded(token.text) if kind is TokenType.VAR else token.text.lower()

    def _stands_for_columns(self, at: int) -> bool:
        """Whether a star means columns, rather than a product or the rows of ``count(*)``."""
        tokens, before = self.block.text.tokens, self.kind(at - 1)
        behind = tokens[at + 1].token_type if at + 1 < len(tokens) else None
        if before is TokenType.DOT or behind in (TokenType.EXCEPT, None):
            raise Doubt
        if before is TokenType.L_PAREN and tokens[at - 2].text.lower() == "count":
            return behind is not TokenType.R_PAREN
        return before in (TokenType.L_PAREN, TokenType.COMMA, TokenType.DISTINCT, TokenType.ALL)

    def _subquery(self, at: int, end: int, needs: set[Need]) -> Word:
        queries = [query for index, query in self._queries.items() if at < index < end]
        if len(queries) != 1:
            raise Doubt
        form, free = self.forms.form(queries[0], all_positions(queries[0]))
        needs |= free
        columns = [self.forms.column(queries[0], i) for i in sorted(all_positions(queries[0]))]
        return ("query", form, tuple(columns))

    def _column(self, node: exp.Column, needs: set[Need], clause: str) -> Word:
        block, parts = self.block, [part.name for part in node.parts]
        alias = block.aliases.get(node)
        if alias is not None:
            at = self._aliased.get(alias)
            if at is None:
                raise Doubt
            return self._alias(at, parts, needs)
        origin = block.origins.get(node)
        if origin is None:
            is_parameter = node in block.origins and len(parts) == 1
            if is_parameter and parts[0].lower() in self.forms.given:
                return ("given", parts[0].lower())
            raise Doubt
        qualified = len(parts) - len(origin.fields) > 1
        word = self._origin(origin, qualified, parts, needs)
        if clause in _ALIAS_FIRST and parts[0].lower() in self._aliases:
            alias_word = self._alias(self._aliases[parts[0].lower()], parts, needs)
            return ("either", word, alias_word)
        return word

    def _alias(self, at: int, parts: list[str], needs: set[Need]) -> tuple[object, ...]:
        """An output that is named in its own SELECT, or a field of it."""
        form, more = self.output(at)
        needs |= more
        if len(parts) > 1:
            return ("field", form, *parts[1:])
        return ("output", form, *(parts if self.forms.letters else ()))

    def _origin(
        self, origin: Origin, qualified: bool, parts: list[str], needs: set[Need]
    ) -> tuple[object, ...]:
        """
        A column by where it comes from.

        Fields count to the letter: those of structs have none, but keys of maps do.
        """
        level, index, merged = self.forms.label(origin.entry)
        place = self.place(origin.entry, origin.column)
        needs.add((origin.entry, place))
        form = self.forms.column(origin.entry.relation, place)
        side = ("of its table" if qualified else "of the join") if merged else ""
        fields = tuple(parts[len(parts) - len(origin.fields) :]) if parts else ()
        word = "column", level, index, form, fields, side
        return (*word, *parts[-1:]) if self.forms.letters else word

    def all_columns(self, needs: set[Need], *, hidden: bool = False) -> list[object]:
        """All columns of all entries, with their names; those that only filter when asked."""
        columns: list[object] = []
        for entry in self.block.entries:
            if entry.relation.columns is None:
                raise Doubt
            if entry.hidden and not hidden:
                continue
            for name in entry.relation.columns:
                place = self.place(entry, name.lower())
                needs.add((entry, place))
                form = self.forms.column(entry.relation, place)
                columns.append((self.forms.label(entry)[:2], self.folded(name), form))
        return columns

    def place(self, entry: FromEntry, column: str) -> Place:
        """Which column of an entry has a lower-case name."""
        return column if isinstance(entry.relation, Table) else position(entry.relation, column)

    def calls(self, at: int) -> str:
        """The lower-case name of the function that is called at a token, or nothing."""
        tokens = self.block.text.tokens
        opens = at + 1 < len(tokens) and tokens[at + 1].token_type is TokenType.L_PAREN
        return tokens[at].text.lower() if opens else ""

    def kind(self, at: int) -> TokenType:
        """The type of the token at an index."""
        return self.block.text.tokens[at].token_type

    def folded(self, name: str) -> str:
        """A name in lower case, unless its letters count."""
        return name if self.forms.letters else name.lower()


def is_star(node: exp.Expr) -> bool:
    """Whether an item of a SELECT is a star."""
    return isinstance(node, exp.Star) or (
        isinstance(node, exp.Column) and isinstance(node.this, exp.Star)
    )


def _main(relation: Relation) -> Block:
    """The first SELECT of a query."""
    block = first_block(relation)
    if block is None:
        raise Doubt
    return block
