"""
The statements of a SQLMesh file: `MODEL (…)`, `AUDIT (…)`, and queries.

sqlglot has the tokens; the blocks are names with values, separated by commas, which SQLMesh adds to
SQL.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from sqlglot.dialects.dialect import Dialect
from sqlglot.errors import SqlglotError
from sqlglot.tokenizer_core import Token, TokenType

_OPEN = (TokenType.L_PAREN, TokenType.L_BRACKET, TokenType.L_BRACE)
_CLOSE = (TokenType.R_PAREN, TokenType.R_BRACKET, TokenType.R_BRACE)


@dataclass(frozen=True, slots=True)
class Statement:
    """A statement's text, without its semicolon, and the line it begins in."""

    text: str
    line: int

    def begins(self, *words: str) -> bool:
        """Whether its first word is one of these."""
        first = self.text.lstrip("( \n\t").split(None, 1)
        word = first[0].split("(")[0].upper() if first else ""
        return word in words


def statements(text: str, dialect: str) -> list[Statement]:
    """The statements of a file, comments before them left out. Raises ValueError."""
    found, begin = [], 0
    tokens = _tokens(text, dialect)
    for i, token in enumerate(tokens):
        if token.token_type is TokenType.SEMICOLON:
            found += _statement(text, tokens[begin:i])
            begin = i + 1
    found += _statement(text, tokens[begin:])
    return found


def _statement(text: str, tokens: Sequence[Token]) -> list[Statement]:
    if not tokens:
        return []
    return [Statement(text[tokens[0].start : tokens[-1].end + 1], tokens[0].line)]


def _tokens(text: str, dialect: str) -> list[Token]:
    try:
        return Dialect.get_or_raise(dialect or None).tokenize(text)
    except SqlglotError as error:
        raise ValueError(" ".join(str(error).split())[:160]) from error


def properties(text: str) -> dict[str, str]:
    """
    The names and values of a block: ``MODEL (name a.b, kind FULL)``.

    A value is text as it is written; ``name = value`` and ``name := value`` have it too.
    """
    found = {}
    for part in split(inner(text)):
        name, value = _pair(part)
        if name:
            found[name.lower()] = value
    return found


def _pair(text: str) -> tuple[str, str]:
    """A name and its value; parentheses may follow the name without a blank."""
    end = 0
    while end < len(text) and (text[end].isalnum() or text[end] == "_"):
        end += 1
    return text[:end], text[end:].strip().removeprefix(":").removeprefix("=").strip()


def inner(text: str) -> str:
    """What is in the outermost parentheses or brackets of a text; the text, if it has none."""
    tokens = _tokens(text, "")
    opens = [token for token in tokens if token.token_type in _OPEN]
    closes = [token for token in tokens if token.token_type in _CLOSE]
    if not opens or not closes:
        return text.strip()
    return text[opens[0].start + 1 : closes[-1].start].strip()


def split(text: str) -> list[str]:
    """The parts between commas that are in no parentheses."""
    parts, depth, begin = [], 0, 0
    for token in _tokens(text, ""):
        if token.token_type in _OPEN:
            depth += 1
        elif token.token_type in _CLOSE:
            depth -= 1
        elif token.token_type is TokenType.COMMA and depth == 0:
            parts.append(_without_comments(text[begin : token.start]))
            begin = token.end + 1
    parts.append(_without_comments(text[begin:]))
    return [part for part in parts if part]


def _without_comments(text: str) -> str:
    """A text from its first token to its last."""
    tokens = _tokens(text, "")
    return text[tokens[0].start : tokens[-1].end + 1] if tokens else ""


def names(value: str) -> list[str]:
    """A list of names: ``(a, b)``, ``[a, b]`` or ``a``; without quotes."""
    if not value:
        return []
    listed = value[:1] in "([" and value[-1:] in ")]"
    return [unquoted(part) for part in split(inner(value) if listed else value)]


def unquoted(text: str) -> str:
    """A text without its quotes."""
    text = text.strip()
    for quote in "'\"`":
        if len(text) > 1 and text[0] == text[-1] == quote:
            return text[1:-1]
    return text


def calls(value: str) -> Iterator[tuple[str, Mapping[str, str]]]:
    """The calls in a list: ``(not_null(columns := (a, b)), own)``, with their arguments."""
    listed = value[:1] in "([" and value[-1:] in ")]"
    for part in split(inner(value) if listed else value):
        name = part.split("(", 1)[0].strip()
        yield name.lower(), properties(part) if "(" in part else {}
