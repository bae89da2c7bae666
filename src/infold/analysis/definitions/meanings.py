"""What the models of a project mean: their queries with all names looked up, when asked for."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property, partial

from sqlglot.dialects.spark import Spark
from sqlglot.errors import TokenError
from sqlglot.tokenizer_core import TokenType

from infold.analysis.definitions.canonical import Canon
from infold.analysis.definitions.clauses import Doubt
from infold.analysis.definitions.expressions import digest
from infold.analysis.definitions.places import all_positions, position
from infold.analysis.fingerprint import makes_structs
from infold.analysis.names.relation import Block, OtherRows, Relation, Table, blocks_of
from infold.analysis.names.resolve import resolve
from infold.analysis.sql.parse import parse
from infold.analysis.sql.text import Text
from infold.core.model import Model, Source
from infold.core.project import Node
from infold.messages.errors import InfoldError, Spot


@dataclass(frozen=True, slots=True, eq=False)
class Query:
    """A query with its names looked up; ``relation`` is None where that is not possible."""

    text: Text | None
    relation: Relation | None


@dataclass(frozen=True, eq=False)
class Meaning:
    """
    A model with its query, which is parsed when somebody asks for it.

    ``source`` is the source of an events model, without its unread columns; ``queries`` are its own
    SQL and that of the views that it reads; ``prints`` are the fingerprints of all views.
    """

    node: Node
    source: Source | None
    queries: tuple[str, ...]
    prints: Mapping[str, str]
    parsed: Callable[[], Query]
    renamed: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    """Stored tables that it reads, with their columns that had other names before: new and old."""

    @cached_property
    def query(self) -> Query:
        """The model's SELECT."""
        return self.parsed()

    @property
    def text(self) -> Text | None:
        """The text that was parsed; None where it cannot be."""
        return self.query.text

    @property
    def relation(self) -> Relation | None:
        """The resolved query; None where it cannot be parsed, or a name in it is not known."""
        return self.query.relation

    @property
    def structs(self) -> bool:
        """Whether its queries make structs, with fields named as written."""
        if self.relation is None:
            return False
        return any(makes_structs(block.node) for block in blocks_of(self.relation, views=True))

    @property
    def fields(self) -> tuple[str, ...]:
        """
        The names behind dots in all its queries, to the letter: some may be keys of maps.

        Fingerprints leave out whether a name is written in capital letters.
        """
        return tuple(name for sql in self.queries for name in _behind_dots(sql))

    def with_renamed(self, columns: Mapping[str, Mapping[str, str]]) -> Meaning:
        """
        The same over stored tables in which columns got other names.

        Not where names decide about rows or fields: NATURAL JOIN, and structs.
        """
        if any("natural" in sql.lower() for sql in self.queries) or self.structs:
            return self
        return replace(self, renamed=columns)

    def spot(self, start: int, end: int) -> Spot | None:
        """The place in the model's file of a part of its SQL."""
        if self.text is None:
            return None
        at, place = self.text.spot(start, end), self.node.model.place
        line = at.line + self.node.model.sql_line - 1
        return Spot(place.file, line, at.column, at.text, at.width)


@dataclass(slots=True)
class Meanings:
    """The models of one project, each parsed once."""

    nodes: Mapping[str, Node]
    sources: Mapping[str, Source]
    prints: Mapping[str, str]
    _tables: dict[str, Table] = field(default_factory=dict)
    _found: dict[str, Meaning] = field(default_factory=dict)

    @staticmethod
    def of(nodes: Iterable[Node], sources: Mapping[str, Source]) -> Meanings:
        """Those of compiled models, which are in the order of their dependencies."""
        named = {node.name: node for node in nodes}
        views = (node for node in named.values() if node.model.kind.is_view)
        meanings = Meanings(named, sources, {node.name: node.fingerprint for node in views})
        for source in sources.values():
            columns = tuple(column.name for column in source.columns) or None
            meanings._tables[source.name.lower()] = Table(source.name, columns)
        return meanings

    def __getitem__(self, name: str) -> Meaning:
        if name not in self._found:
            node = self.nodes[name]
            source = self.sources.get(node.source or "")
            read = source.without_columns(node.unread_columns) if source is not None else None
            parsed = partial(self._query, node)
            self._found[name] = Meaning(node, read, self._queries(node), self.prints, parsed)
        return self._found[name]

    def _queries(self, node: Node) -> tuple[str, ...]:
        read = [self[name] for name in node.reads if name in self.prints]
        return (node.model.sql, *(sql for view in read for sql in view.queries))

    def _query(self, node: Node) -> Query:
        model = node.model
        known = {name.lower(): self._table(name) for name in node.reads}
        try:
            parsed = parse(model.place.file, model.sql)
        except InfoldError:
            return Query(None, None)
        resolved = resolve(
            parsed.text,
            parsed.tree,
            known,
            model.sessions.visible_columns if model.sessions else (),
        )
        return Query(parsed.text, None if resolved.errors else resolved.relation)

    def _table(self, name: str) -> Table:
        """What a name in FROM is: a source, a stored table, or a view with its query."""
        key = name.lower()
        if key not in self._tables:
            node = self.nodes[name]
            view = None
            if node.model.kind.is_view:
                view = self[name].relation or OtherRows(None)
            self._tables[key] = Table(name, node.columns or None, view)
        return self._tables[key]


def given(model: Model) -> frozenset[str]:
    """The columns that a sessions query sees without reading them from anywhere."""
    return (
        frozenset(name.lower() for name in model.sessions.visible_columns)
        if model.sessions
        else frozenset()
    )


def _behind_dots(sql: str) -> Iterator[str]:
    for dot, name in itertools.pairwise(Spark().tokenize(sql)):
        if dot.token_type is TokenType.DOT:
            yield name.text


# Owner, identifiers, cuts, event time and the order of events are columns of the input. The SELECT
# names none of them, so its form says nothing about them where the input is a view.


def input_form(
    meaning: Meaning, canon: Canon, *, unique: bool, also: frozenset[int] = frozenset()
) -> str:
    """
    The form of a sessions model's input in the columns that it reads, and in those ``also``.

    If events are not ``unique`` by their key, all columns decide about their order. Raises Doubt.
    """
    relation = input_of(meaning)
    if isinstance(relation, Table) and relation.view is None:
        return relation.name.lower()
    places = read_places(meaning.node, relation) if unique else all_positions(relation)
    columns = relation.columns or ()
    forms = sorted((columns[at].lower(), canon.column(relation, at)) for at in places)
    return digest((canon.form(relation, places | also)[0], forms))


def input_of(meaning: Meaning) -> Relation:
    """The one entry of FROM of a sessions model. Raises Doubt."""
    block = meaning.relation
    if not isinstance(block, Block) or len(block.entries) != 1:
        raise Doubt
    return block.entries[0].relation


def read_places(node: Node, relation: Relation) -> frozenset[int]:
    """The columns of its input that a sessions model reads, whatever its SELECT names."""
    query, sessions = node.query, node.model.sessions
    if query is None or sessions is None:
        raise Doubt
    always = {position(relation, name.lower()) for name in (query.time_column, *query.key)}
    pieces = [sessions.user or "", *sessions.identifier]
    pieces += [piece.sql for cut in sessions.cuts for piece in cut.event_sql]
    words = {word for piece in pieces for word in _words(piece)}
    named = {at for at, name in enumerate(relation.columns or ()) if name.lower() in words}
    return frozenset(always | named)


def _words(sql: str) -> list[str]:
    try:
        return [token.text.lower() for token in Spark().tokenize(sql)]
    except TokenError:
        raise Doubt from None
