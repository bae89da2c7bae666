"""
Calls that make structs, and those that make one of each element of an array or value of a map.

``struct`` names its fields by their words, ``named_struct`` by texts. A field with a name that does
not follow from the words, or that has to be quoted, is not understood: it raises Doubt.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from sqlglot.tokenizer_core import Token, TokenType

from infold.analysis.definitions.clauses import Doubt, Range
from infold.analysis.definitions.selects import Select
from infold.analysis.sql.token_calls import closing_bracket, split_arguments

_PLAIN = re.compile(r"[A-Za-z_]\w*\Z", re.ASCII)
_MAKERS = frozenset({"struct", "named_struct"})
_LOOPS = {"transform": 1, "transform_values": 2}
"""Functions that make a value of each element, and how many variables that may have."""


@dataclass(frozen=True, slots=True)
class StructField:
    """A field that a call makes: its name, and the tokens of its value."""

    name: str
    value: Range


@dataclass(frozen=True, slots=True)
class Loop:
    """
    ``transform(over, x -> body)``, or ``transform_values(over, (k, v) -> body)``.

    ``variables`` are in lower case; the last of them is the element, or the value.
    """

    function: str
    over: Range
    variables: tuple[str, ...]
    body: Range


def struct_fields(select: Select, span: Range) -> list[StructField] | None:
    """The fields of a struct that a whole expression makes; None where it makes none."""
    called = _arguments(select, span)
    if called is None or called[0] not in _MAKERS:
        return None
    name, arguments = called
    if name == "struct":
        found = [_named_by_words(select, one) for one in arguments]
    else:
        if len(arguments) % 2:
            raise Doubt
        pairs = zip(arguments[::2], arguments[1::2], strict=True)
        found = [StructField(_text(select, key), value) for key, value in pairs]
    names = [one.name.lower() for one in found]
    if not found or len(set(names)) < len(names) or not all(map(_PLAIN.match, names)):
        raise Doubt
    return found


def loop(select: Select, span: Range) -> Loop | None:
    """A whole expression as a call that makes a value of each element; None if it is none."""
    called = _arguments(select, span)
    if called is None or called[0] not in _LOOPS or len(called[1]) != 2:
        return None
    function, (over, (start, stop)) = called
    tokens = select.block.text.tokens
    at = next((at for at in range(start, stop) if tokens[at].token_type is TokenType.ARROW), None)
    if at is None or at + 1 == stop:
        raise Doubt
    variables = _variables(tokens[start:at])
    if len(set(variables)) != _LOOPS[function]:
        raise Doubt
    return Loop(function, over, variables, (at + 1, stop))


def makes_struct_or_loop(select: Select, at: int) -> bool:
    """Whether a token calls one of the functions that this module knows."""
    return select.calls(at) in {*_MAKERS, *_LOOPS} and select.kind(at - 1) is not TokenType.DOT


def _arguments(select: Select, span: Range) -> tuple[str, list[Range]] | None:
    """The function that a whole expression calls, and its arguments."""
    start, stop = span
    tokens = select.block.text.tokens
    if stop - start < 3 or not makes_struct_or_loop(select, start):
        return None
    if closing_bracket(tokens, start + 1) != stop - 1:
        return None
    return select.calls(start), split_arguments(tokens, start + 2, stop - 1)


def _named_by_words(select: Select, span: Range) -> StructField:
    """A field of ``struct(…)``: it has an alias, or the name of a column or field."""
    start, stop = span
    tokens = select.block.text.tokens
    if stop - start > 2 and tokens[stop - 2].token_type is TokenType.ALIAS:
        return StructField(tokens[stop - 1].text, (start, stop - 2))
    words = tokens[start:stop]
    if len(words) % 2 == 0 or any(word.token_type is not TokenType.DOT for word in words[1::2]):
        raise Doubt
    if select.column_at(start) is None and words[0].token_type is not TokenType.VAR:
        raise Doubt  # a literal
    return StructField(words[-1].text, span)


def _text(select: Select, span: Range) -> str:
    start, stop = span
    token = select.block.text.tokens[start]
    if stop - start != 1 or token.token_type is not TokenType.STRING:
        raise Doubt
    return token.text


def _variables(tokens: Sequence[Token]) -> tuple[str, ...]:
    """The variables before an arrow: ``x``, or ``(k, v)``."""
    inner = tokens[1:-1] if tokens and tokens[0].token_type is TokenType.L_PAREN else tokens
    names = tuple(token.text.lower() for token in inner[::2])
    commas = all(token.token_type is TokenType.COMMA for token in inner[1::2])
    if not commas or len(inner) % 2 == 0 or not all(map(_PLAIN.match, names)):
        raise Doubt
    return names
