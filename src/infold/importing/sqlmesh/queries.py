"""A query of SQLMesh as one of infold's: names, macros, and filters by the interval of a run."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from sqlglot import exp, parse_one
from sqlglot.dialects.dialect import Dialect
from sqlglot.errors import SqlglotError
from sqlglot.tokenizer_core import Token, TokenType

from infold.importing.dialects import NotTranslatedError, parsed, spark_text

_INTERVAL = re.compile(
    r"@(?:start|end)_(?:ds|date|dt|dtntz|ts|tstz|epoch|millis|hour)\b", re.IGNORECASE
)
_BOUND = re.compile(r"infold__(start|end)_bound", re.IGNORECASE)
_VARIABLE = re.compile(r"@(?:VAR\(\s*'(\w+)'\s*(?:,\s*([^()]*?))?\)|\{(\w+)\}|(\w+)\b(?!\s*\())")
_MACRO = re.compile(r"@\w+|@\{")
_LOWER = (exp.GTE, exp.GT)
_UPPER = (exp.LTE, exp.LT)


class NotAQueryError(Exception):
    """A query cannot come over; the argument says why."""


def query_of(
    text: str,
    dialect: str,
    variables: Mapping[str, Any],
    rename: Callable[[exp.Table], str | None],
) -> tuple[str, exp.Query, bool]:
    """
    A query in Spark SQL, its tree, and whether filters by a run's interval were taken out.

    ``rename`` gives a table's name in infold. Raises NotAQueryError.
    """
    text = _INTERVAL.sub(
        lambda m: "infold__start_bound" if m[0][1].lower() == "s" else "infold__end_bound", text
    )
    text = _with_values(text, variables)
    if macro := _MACRO.search(_without_texts(text)):
        raise NotAQueryError(f"macro {_shown(text, macro)}: only SQLMesh resolves it")
    try:
        tree = parsed(text, dialect)
    except NotTranslatedError as error:
        raise NotAQueryError(f"SQL that cannot be read: {error}") from error
    if not isinstance(tree, exp.Query):
        raise NotAQueryError("it is no SELECT")
    filtered = _without_bounds(tree)
    if any(_BOUND.fullmatch(column.name) for column in tree.find_all(exp.Column)):
        raise NotAQueryError("its rows depend on the interval of a run, not on the inputs alone")
    _name_outputs(tree)
    _rename(tree, rename)
    try:
        return spark_text(tree), tree, filtered
    except NotTranslatedError as error:
        raise NotAQueryError(str(error)) from error


def _with_values(text: str, variables: Mapping[str, Any]) -> str:
    """A text with the values of its variables."""

    def value(match: re.Match[str]) -> str:
        name = match[1] or match[3] or match[4]
        known = variables.get(name.lower(), variables.get(name))
        if known is None:
            return match[2].strip() if match[2] else match[0]
        if match[3] or isinstance(known, int | float):  # @{x} is a part of a name
            return str(known)
        return exp.Literal.string(str(known)).sql()

    return _VARIABLE.sub(value, text)


def _without_texts(text: str) -> str:
    """The same with texts and comments blanked, so that an @ in them is no macro."""
    pattern = re.compile(r"'(?:[^']|'')*'|--[^\n]*|/\*.*?\*/", re.DOTALL)
    return pattern.sub(lambda match: " " * len(match[0]), text)


def _shown(text: str, match: re.Match[str]) -> str:
    return " ".join(text[match.start() : match.start() + 40].split())


def _without_bounds(tree: exp.Expr) -> bool:
    """Take out conditions that a column lies in the interval of a run; whether there were any."""
    bounds = [node for node in tree.find_all(exp.Between, *_LOWER, *_UPPER) if _is_bound(node)]
    for node in bounds:
        node.replace(exp.true())
    if not bounds:
        return False
    for place in list(tree.find_all(exp.Where, exp.Having)):
        condition = _simplified(place.this)
        if condition is None:
            place.pop()
        else:
            place.set("this", condition)
    for join in tree.find_all(exp.Join):
        if join.args.get("on") is not None:
            join.set("on", _simplified(join.args["on"]) or exp.true())
    return True


def _is_bound(node: exp.Expr) -> bool:
    """Whether it is a lower bound by the start, an upper one by the end, or both."""
    if not _is_conjunct(node):
        return False
    if isinstance(node, exp.Between):
        return _names(node.args["low"]) == "start" and _names(node.args["high"]) == "end"
    if not isinstance(node, exp.Binary) or _names(node.this):
        return False
    return _names(node.expression) == ("start" if isinstance(node, _LOWER) else "end")


def _is_conjunct(node: exp.Expr) -> bool:
    """Whether a condition is one of those that all have to hold: not below OR, NOT or CASE."""
    parent = node.parent
    while isinstance(parent, exp.And | exp.Paren):
        parent = parent.parent
    return isinstance(parent, exp.Where | exp.Having | exp.Join)


def _names(node: exp.Expr) -> str:
    """``start`` or ``end``, if it is that bound of the interval, cast or not; else nothing."""
    while isinstance(node, exp.Cast | exp.Paren | exp.TsOrDsToDate | exp.Date | exp.Timestamp):
        node = node.this
    match = _BOUND.fullmatch(node.name) if isinstance(node, exp.Column) else None
    return match[1].lower() if match else ""


def _simplified(node: exp.Expr) -> exp.Expr | None:
    """A condition without parts that are true; None if nothing is left."""
    if isinstance(node, exp.Boolean) and node.this is True:
        return None
    if isinstance(node, exp.Paren):
        rest = _simplified(node.this)
        return None if rest is None else exp.paren(rest, copy=False)
    if isinstance(node, exp.And):
        left, right = _simplified(node.left), _simplified(node.right)
        if left is None or right is None:
            return left or right
        return exp.and_(left, right, copy=False)
    return node


def _name_outputs(tree: exp.Expr) -> None:
    """Name what SQLMesh names by itself: ``id::INT`` is ``id``."""
    for select in tree.find_all(exp.Select):
        for output in select.selects:
            if isinstance(output, exp.Cast) and output.output_name:
                output.replace(exp.alias_(output.copy(), output.output_name))


def _rename(tree: exp.Expr, rename: Callable[[exp.Table], str | None]) -> None:
    """Give each table its name in infold, and columns that name it in full too."""
    ctes = {cte.alias.lower() for cte in tree.find_all(exp.CTE)}
    for table in list(tree.find_all(exp.Table)):
        if not table.db and table.name.lower() in ctes:
            continue
        new = rename(table)
        if new is None:
            continue
        try:
            target = parse_one(new, into=exp.Table, dialect="spark")
        except SqlglotError as error:
            raise NotAQueryError(f"a table named {new}") from error
        if not table.alias:
            table.set("alias", exp.TableAlias(this=exp.to_identifier(table.name)))
        for key in ("this", "db", "catalog"):
            table.set(key, target.args.get(key))
        if table.alias == table.name:
            table.set("alias", None)
    for column in tree.find_all(exp.Column):
        column.set("db", None)
        column.set("catalog", None)


# sqlglot has the tokens; the blocks are names with values, separated by commas, which SQLMesh adds
# to SQL.

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
    statements_read, begin = [], 0
    tokens = _tokens(text, dialect)
    for i, token in enumerate(tokens):
        if token.token_type is TokenType.SEMICOLON:
            statements_read += _statement(text, tokens[begin:i])
            begin = i + 1
    statements_read += _statement(text, tokens[begin:])
    return statements_read


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
    values = {}
    for part in split(inner(text)):
        name, value = _pair(part)
        if name:
            values[name.lower()] = value
    return values


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
