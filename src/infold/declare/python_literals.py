"""The arguments of a decorator as keys: literals as values with their places."""

from __future__ import annotations

import ast
from dataclasses import dataclass

from infold.declare.python_text import spot_of
from infold.declare.tree import Value
from infold.messages import findings, python_findings
from infold.messages.errors import InfoldError, Spot


@dataclass(frozen=True, slots=True)
class PythonFile:
    """The file of a model."""

    file: str
    source: str

    def spot(self, node: ast.AST) -> Spot:
        """The place of a part of it."""
        return spot_of(self.file, self.source, node)


def read_arguments(of: PythonFile, call: ast.Call, errors: list[InfoldError]) -> Value:
    """The arguments of the decorator as a mapping."""
    entries, keys = dict[str, Value](), dict[str, Spot]()
    errors.extend(
        python_findings.not_literal(of.spot(one), what="an argument without a name")
        for one in call.args
    )
    for given in call.keywords:
        if given.arg is None:
            errors.append(python_findings.not_literal(of.spot(given.value), what="**"))
            continue
        keys[given.arg] = of.spot(given)
        entries[given.arg] = _value(of, given.value, given.arg, errors)
    return Value("a mapping", of.spot(call), entries=entries, keys=keys)


def _value(of: PythonFile, node: ast.expr, what: str, errors: list[InfoldError]) -> Value:
    at = of.spot(node)
    if isinstance(node, ast.Dict):
        return _mapping(of, node, what, errors)
    if isinstance(node, ast.List | ast.Tuple):
        items = tuple(_value(of, item, what, errors) for item in node.elts)
        return Value("a list", at, items=items)
    try:
        value = ast.literal_eval(node)
    except ValueError:
        errors.append(python_findings.not_literal(at, what=what))
        return Value("nothing", at)
    if isinstance(value, bool):
        return Value("true or false", at, text=str(value).lower())
    if isinstance(value, int | float):
        return Value("a number", at, text=str(value))
    if isinstance(value, str):
        return Value("text", at, text=value)
    if value is not None:
        errors.append(python_findings.not_literal(at, what=what))
    return Value("nothing", at)


def _mapping(of: PythonFile, node: ast.Dict, what: str, errors: list[InfoldError]) -> Value:
    entries, keys = dict[str, Value](), dict[str, Spot]()
    for key, value in zip(node.keys, node.values, strict=True):
        if not (isinstance(key, ast.Constant) and isinstance(key.value, str)):
            errors.append(
                python_findings.not_literal(of.spot(key or value), what=f"a key of {what}")
            )
            continue
        at = of.spot(key)
        if key.value in entries:
            errors.append(findings.duplicate_key(at, key=key.value, first=keys[key.value]))
            continue
        keys[key.value] = at
        entries[key.value] = _value(of, value, f"{what}.{key.value}", errors)
    return Value("a mapping", of.spot(node), entries=entries, keys=keys)
