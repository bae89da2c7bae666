"""SQL → tokens and tree, once for each model."""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar

from sqlglot import exp
from sqlglot.dialects.spark import Spark
from sqlglot.errors import ParseError, TokenError
from sqlglot.parsers.spark import SparkParser
from sqlglot.tokenizer_core import Token, TokenType

from infold.analysis.sql.comments import continued_comment
from infold.analysis.sql.origins import Origins, spot_in
from infold.analysis.sql.parser_leniency import in_tokens, in_tree
from infold.analysis.sql.text import CALL, SPAN, UNIT, Text
from infold.messages import findings, other_tools
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
    rest = source[start:]
    try:
        tokens = _DIALECT.tokenize(rest)
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
        what = "a comment that ends in a backslash: Spark goes on with it in the next line"
        raise findings.unsupported_sql(spot_in(file, source, *continued), what=what)
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
    for at, why in in_tokens(text):
        raise _other_dialect(text.file, text.source, text.start) or findings.bad_sql(at, why=why)
    try:
        parser = _Parser(dialect=_DIALECT)
        parser.own = own
        found = parser.parse(_named_windows(text.tokens), text.sql)
    except ParseError as error:
        foreign = _other_dialect(text.file, text.source, text.start)
        if foreign is not None:
            raise foreign from None
        raise _parse_error(text, error) from None
    except RecursionError as error:
        raise findings.too_deep(text.spot(0)) from error
    except (AttributeError, LookupError, TypeError, ValueError) as error:
        raise findings.bad_sql(text.spot(0), why=f"the parser failed: {error}") from error
    tree = found[0] if found else None
    for at, why in in_tree(text, tree) if tree is not None else ():
        raise findings.bad_sql(at, why=why)
    if not isinstance(tree, exp.Query):
        what = text.tokens[0].text.upper()
        raise findings.not_one_select(
            text.spot_of_token(text.tokens[0]), what=f"a {what} statement"
        )
    if any(not select.expressions for select in tree.find_all(exp.Select)):
        raise findings.bad_sql(text.spot_of_token(text.tokens[0]), why="SELECT without columns")
    return tree


def _named_windows(tokens: tuple[Token, ...]) -> list[Token]:
    """
    The tokens, in which ``window(`` is the name of a function.

    The clause WINDOW has a name behind it, never a bracket; sqlglot would take the function for it
    in GROUP BY.
    """
    found = list(tokens)
    for at, (token, behind) in enumerate(itertools.pairwise(tokens)):
        opens = behind.token_type is TokenType.L_PAREN
        if token.token_type is TokenType.WINDOW and opens:
            found[at] = _with_spark_types(token, TokenType.VAR)
    return found


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
    context, found = first.get("start_context"), first.get("highlight")
    at = text.spot(0)
    if context is not None and found:
        start = text.sql.find(context + found)
        if start >= 0:
            start += len(context)
            at = text.spot(start, start + len(found))
    return findings.bad_sql(at, why=_tidy_message(str(first.get("description") or error)))


def _other_dialect(file: str, source: str, start: int) -> InfoldError | None:
    """What is wrong with a query that is a template of dbt."""
    found = other_tools.find_template(source[start:])
    if found is None:
        return None
    return findings.template(
        spot_in(file, source, start + found[0], start + found[1]), instead=found[2]
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
