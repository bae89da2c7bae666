"""
Pieces of a query's text, word for word the user's own, without table names.

The engine evaluates pieces over frames of its own, where ``c.amount`` has to be ``amount``.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from sqlglot import exp
from sqlglot.tokenizer_core import Token, TokenType

from infold.analysis.names.relation import Block, Origin
from infold.analysis.sql.text import Text
from infold.analysis.sql.token_calls import closing_bracket


@dataclass(frozen=True, slots=True, eq=False)
class QueryPieces:
    """A text, and where it has table names before columns."""

    text: Text
    qualifiers: Sequence[tuple[int, int]]

    def sql_of(self, start: int, stop: int, named: Sequence[tuple[int, int, str]] = ()) -> str:
        """The text of ``tokens[start:stop]``, with other text for some spans."""
        tokens, sql = self.text.tokens, self.text.sql
        at, end = tokens[start].start, tokens[stop - 1].end + 1
        pieces = []
        for a, b, text in sorted([*named, *((a, b, "") for a, b in self.qualifiers)]):
            if at <= a and b <= end:  # a table name inside a span lies before ``at`` by then
                pieces += [sql[at:a], text]
                at = b
        return "".join([*pieces, sql[at:end]])

    def words(self, start: int, stop: int) -> tuple[str, ...]:
        """The words of ``tokens[start:stop]``, alike however they are laid out."""
        return tuple(
            _normal_word(token)
            for token in self.text.tokens[start:stop]
            if not any(a <= token.start < b for a, b in self.qualifiers)
        )


def _normal_word(token: Token) -> str:
    return token.text if token.token_type is TokenType.STRING else token.text.lower()


def first_outside(tokens: Sequence[Token], *kinds: TokenType, start: int = 0) -> int:
    """The index of the first token of some kinds outside all brackets, or the end."""
    i = start
    while i < len(tokens) and tokens[i].token_type not in kinds:
        opens = tokens[i].token_type in (TokenType.L_PAREN, TokenType.L_BRACKET)
        i = closing_bracket(tokens, i) + 1 if opens else i + 1
    return min(i, len(tokens))


def qualifier_spans(block: Block) -> list[tuple[int, int]]:
    """The positions of table names before columns, dot included."""
    return sorted(_qualifier_spans(block))


def _qualifier_spans(block: Block) -> Iterator[tuple[int, int]]:
    for node in block.expressions():
        if not isinstance(node, exp.Column):
            continue
        origin, parts = block.origins.get(node), node.parts
        if not isinstance(origin, Origin) or len(parts) < 2:
            continue
        entry, names = origin.entry, [part.name.lower() for part in parts]
        depth = 0
        if names[0] == entry.alias and names[1] == origin.column:
            depth = 1
        elif len(parts) > 2 and f"{names[0]}.{names[1]}" == f"{entry.qualifier}.{entry.alias}":
            depth = 2
        if depth:
            yield parts[0].meta["start"], parts[depth].meta["start"]
