"""A query of SQLMesh as one of infold's: names, macros, and filters by the interval of a run."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any

from sqlglot import exp, parse_one
from sqlglot.errors import SqlglotError

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
        found = variables.get(name.lower(), variables.get(name))
        if found is None:
            return match[2].strip() if match[2] else match[0]
        if match[3] or isinstance(found, int | float):  # @{x} is a part of a name
            return str(found)
        return exp.Literal.string(str(found)).sql()

    return _VARIABLE.sub(value, text)


def _without_texts(text: str) -> str:
    """The same with texts and comments blanked, so that an @ in them is no macro."""
    found = re.compile(r"'(?:[^']|'')*'|--[^\n]*|/\*.*?\*/", re.DOTALL)
    return found.sub(lambda match: " " * len(match[0]), text)


def _shown(text: str, match: re.Match[str]) -> str:
    return " ".join(text[match.start() : match.start() + 40].split())


def _without_bounds(tree: exp.Expr) -> bool:
    """Take out conditions that a column lies in the interval of a run; whether there were any."""
    found = [node for node in tree.find_all(exp.Between, *_LOWER, *_UPPER) if _is_bound(node)]
    for node in found:
        node.replace(exp.true())
    if not found:
        return False
    for place in list(tree.find_all(exp.Where, exp.Having)):
        kept = _simplified(place.this)
        if kept is None:
            place.pop()
        else:
            place.set("this", kept)
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
        kept = _simplified(node.this)
        return None if kept is None else exp.paren(kept, copy=False)
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
