"""Nearly all queries in tests/queries have a canonical form, in which every word counts."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache

import pytest
from sqlglot.tokenizer_core import Token, TokenType
from tests.queries.catalog import admitted, project_of_admitted

from infold.analysis.definitions.canonical import Canon
from infold.analysis.definitions.clauses import Doubt
from infold.analysis.definitions.meanings import Meanings, given
from infold.analysis.names.relation import Relation, Table
from infold.analysis.names.resolve import resolve
from infold.analysis.sql.parse import parse
from infold.core.model import Model
from infold.messages.errors import InfoldError

pytestmark = pytest.mark.deep


@cache
def meanings() -> Meanings:
    """All admitted queries, in one project."""
    found = project_of_admitted()
    return Meanings.of(found.nodes, found.sources)


def form(model: Model, relation: Relation) -> str | None:
    """The canonical form of a query; None if it is in doubt."""
    names = [column.lower() for column in relation.columns or ()]
    try:
        return Canon(meanings().prints, given(model), letters=True).rows(relation, names)
    except Doubt:
        return None


def other_words(sql: str, token: Token) -> Iterator[str]:
    """A literal with another value, an operator that is another, no word that changes the rows."""
    word = sql[token.start : token.end + 1]
    if token.token_type is TokenType.NUMBER:
        yield str(int(word) + 1) if word.isdigit() else f"{word}1"
    elif token.token_type is TokenType.STRING:
        yield f"{word[:-1]}x{word[-1]}"
        yield from {word[0] + word[2:], word.swapcase()} - {word}
    elif word in OPERATORS:
        yield OPERATORS[word]
    elif word.upper() in DROPPED:
        yield ""


OPERATORS = {
    "+": "-",
    "-": "+",
    "*": "+",
    "/": "+",
    "<": "<=",
    ">": "<=",
    "=": "<=",
    "<>": "<=",
    "AND": "OR",
    "OR": "AND",
}
DROPPED = {"ASC", "DESC", "DISTINCT", "ALL", "LEFT", "NOT", "FIRST", "LAST"}


def test_every_word_counts() -> None:
    """A query with another literal or operator, or without a word, has another form. At most
    nine of the admitted queries are in doubt: PIVOT, UNPIVOT, and outputs with several names.
    """
    every = meanings()
    checked, same, doubtful = 0, [], []
    for query in admitted():
        meaning = every[query.name]
        model, text = meaning.node.model, meaning.text
        assert text is not None
        assert meaning.relation is not None
        before = form(model, meaning.relation)
        if before is None:
            doubtful.append(query.name)
            continue
        for token in text.tokens:
            for word in other_words(text.sql, token):
                sql = text.sql[: token.start] + word + text.sql[token.end + 1 :]
                relation = resolved(model, sql)
                if relation is not None:
                    checked += 1
                    if form(model, relation) == before:
                        same.append(f"{query.name}: {word or token.text}")

    assert len(doubtful) <= 9, doubtful
    assert checked > 1500
    assert same == ["order_by_at_the_end: DESC"]  # the order of a stored table is none of its own


def resolved(model: Model, sql: str) -> Relation | None:
    """The relation of a model's query with other words; None if it is refused."""
    tables = {name.lower(): table(name) for name in meanings().nodes}
    seen = model.sessions.visible_columns if model.sessions else ()
    try:
        parsed = parse("m.sql", sql)
    except InfoldError:
        return None
    found = resolve(parsed.text, parsed.tree, tables, seen)
    return None if found.errors else found.relation


@cache
def table(name: str) -> Table:
    """A table of the project as queries see it."""
    return meanings()._table(name)
