"""
A model's SQL as text and as tokens: every finding points into the file that the user wrote.

Positions are offsets into :attr:`Text.sql`. Trees (sqlglot's) give the positions of identifiers
only, so keywords and calls are found among the tokens, which have them all.
"""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from itertools import accumulate

from sqlglot import exp
from sqlglot.tokenizer_core import Token, TokenType

from infold.messages.errors import Spot


@dataclass(frozen=True, slots=True)
class Piece:
    """
    A piece of an expanded text, which stands for ``written[start:end]`` of the file.

    ``function`` is the file of the function that it comes from; empty for what the file itself
    says, word by word.
    """

    text: str
    start: int
    end: int
    function: str = ""


@dataclass(frozen=True, slots=True, eq=False)
class Origins:
    """An expanded text, piece by piece, and the text of the file as it was written."""

    written: str
    pieces: tuple[Piece, ...]
    starts: tuple[int, ...]
    """Where each piece begins in the expanded text."""

    @staticmethod
    def of(written: str, pieces: Sequence[Piece]) -> Origins:
        """The origins of a text that is made of these pieces."""
        filled = tuple(piece for piece in pieces if piece.text)
        ends = accumulate((len(piece.text) for piece in filled), initial=0)
        return Origins(written, filled, tuple(ends)[:-1])

    @property
    def text(self) -> str:
        """The text with the calls of the project's functions expanded."""
        return "".join(piece.text for piece in self.pieces)

    def spot(self, file: str, start: int, end: int) -> Spot:
        """The place in the file of ``text[start:end]``; in a function, that of the call."""
        first, last = self._piece(start), self._piece(max(start, end - 1))
        begin = first.start if first.function else self._written(start)
        stop = last.end if last.function else self._written(max(start, end - 1)) + 1
        spot = spot_in(file, self.written, begin, max(begin + 1, stop))
        return replace(spot, function=first.function) if first.function else spot

    def _piece(self, at: int) -> Piece:
        return self.pieces[max(0, bisect_right(self.starts, at) - 1)]

    def _written(self, at: int) -> int:
        i = max(0, bisect_right(self.starts, at) - 1)
        piece = self.pieces[i]
        return min(piece.start + at - self.starts[i], max(piece.start, piece.end - 1))


def spot_in(file: str, source: str, start: int, end: int) -> Spot:
    """The place in a file of ``source[start:end]``, with its line and what to underline."""
    begins = _lines(source)
    line = bisect_right(begins, start)
    begin = begins[line - 1]
    stop = begins[line] - 1 if line < len(begins) else len(source)
    text = source[begin:stop].rstrip("\r")
    width = max(1, min(end, begin + len(text)) - start)
    return Spot(file, line, start - begin + 1, text, width)


@lru_cache(maxsize=16)
def _lines(source: str) -> list[int]:
    """Where the lines of a text begin: a query of a thousand lines has thousands of places."""
    return [0, *(newline.end() for newline in re.finditer("\n", source))]


@dataclass(frozen=True, slots=True, eq=False)
class Text:
    """
    One SELECT: the whole file's text, where in it the SELECT starts and ends, and its tokens.

    The tokens' own positions count from the start of the SELECT. Where functions of the project are
    expanded, ``origins`` says from where.
    """

    file: str
    source: str
    start: int
    end: int
    tokens: tuple[Token, ...] = field(repr=False)
    origins: Origins | None = None

    @property
    def sql(self) -> str:
        """The SELECT alone, as written; calls of the project's functions are expanded."""
        return self.source[self.start : self.end]

    @property
    def line(self) -> int:
        """The 1-based line of the file on which the SELECT starts."""
        return self.source.count("\n", 0, self.start) + 1

    def spot(self, start: int, end: int | None = None) -> Spot:
        """The place in the file of ``sql[start:end]``."""
        begin, stop = self.start + start, self.start + (end or start + 1)
        if self.origins is not None:
            return self.origins.spot(self.file, begin, stop)
        return spot_in(self.file, self.source, begin, stop)

    def spot_of(self, node: exp.Expr) -> Spot:
        """The place of a node: as the parser noted it, else from its first name to its last."""
        span = node.meta.get(SPAN) if node.meta else None
        span = span or span_of(node)
        return self.spot(*self.with_closing_brackets(*span)) if span else self.spot(0)

    def spot_of_entry(self, node: exp.Expr) -> Spot:
        """The place of an entry of FROM: a table with its alias, a subquery by its alias."""
        alias = node.args.get("alias")
        query = isinstance(node, exp.Subquery) or (
            isinstance(node, exp.Lateral) and isinstance(node.this, exp.Subquery)
        )
        if query and isinstance(alias, exp.TableAlias) and alias.this:
            return self.spot_of(alias.this)
        span = span_of(node)
        token = self.token_before(span[0], TokenType.L_PAREN) if span else None
        if isinstance(node, exp.Subquery) and span and token:
            return self.spot(*self.with_closing_brackets(token.start, span[1]))
        return self.spot_of(node)

    def with_closing_brackets(self, start: int, end: int) -> tuple[int, int]:
        """A range with what closes the brackets that were opened in it."""
        depth, i = 0, self.token_index(start)
        while i < len(self.tokens) and (self.tokens[i].start < end or depth > 0):
            kind = self.tokens[i].token_type
            depth += (kind is TokenType.L_PAREN) - (kind is TokenType.R_PAREN)
            end = max(end, self.tokens[i].end + 1)
            i += 1
        return start, end

    def spot_of_token(self, token: Token) -> Spot:
        """Where a token is in the file; of an expanded one, where the call is."""
        return self.spot(token.start, token.end + 1)

    def token_index(self, start: int) -> int:
        """The index of the first token that starts at ``start`` or later."""
        return bisect_left(self.tokens, start, key=lambda token: token.start)

    def token_before(self, start: int, *kinds: TokenType) -> Token | None:
        """The last token of one of the kinds that starts before ``start``."""
        i = self.token_index(start)
        return next((t for t in reversed(self.tokens[:i]) if t.token_type in kinds), None)

    def token_after(self, end: int, *kinds: TokenType) -> Token | None:
        """The first token of one of the kinds that starts after ``end``."""
        i = bisect_right(self.tokens, end, key=lambda token: token.start)
        return next((t for t in self.tokens[i:] if t.token_type in kinds), None)


SPAN = "span"
"""Where the parser notes the start and the end (exclusive) of an expression."""

CALL = "call"
"""Where the parser notes the name of a function that is called, as it was written."""

UNIT = "unit"
"""Where the parser notes the unit of trunc and date_trunc, if it is a text, as it was written."""


def positions_of(node: exp.Expr) -> Iterator[tuple[int, int]]:
    """Start and end (exclusive) of each identifier in a tree that came from the text."""
    for name in node.find_all(exp.Identifier):
        if "start" in name.meta:
            yield name.meta["start"], name.meta["end"] + 1


def span_of(node: exp.Expr) -> tuple[int, int] | None:
    """From the first identifier of a tree to the end of the last, or None when it has none."""
    spans = list(positions_of(node))
    return (min(s for s, _ in spans), max(e for _, e in spans)) if spans else None
