"""
The input of a sessions model, with the columns that it reads besides those of its SELECT.

Owner, identifiers, cuts, event time and the order of events are columns of the input. The SELECT
names none of them, so its form says nothing about them where the input is a view.
"""

from __future__ import annotations

from sqlglot.dialects.spark import Spark
from sqlglot.errors import TokenError

from infold.analysis.definitions.canonical import Canon
from infold.analysis.definitions.clauses import Doubt
from infold.analysis.definitions.expressions import digest
from infold.analysis.definitions.meanings import Meaning
from infold.analysis.definitions.places import everything, position
from infold.analysis.names.relation import Block, Relation, Table
from infold.core.project import Node


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
    places = read_places(meaning.node, relation) if unique else everything(relation)
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
