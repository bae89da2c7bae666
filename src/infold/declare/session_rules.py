"""
A session rule of a project, read from its file's syntax tree: the file is not executed.

A call of it in `cuts.rule` becomes a struct of its arguments, each cast to the type of its
parameter: what the rule is given of an event. The code is kept beside it, by a name with its
digest.
"""

from __future__ import annotations

import ast
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path, PurePosixPath

from infold.analysis.sql.expand import ProjectFunction, Use
from infold.analysis.sql.functions import python_name
from infold.core.functions import CalledFunction, FunctionCode
from infold.declare.keys import NAME
from infold.declare.python_functions import DecoratorReader, decorated, refuse_clocks
from infold.declare.python_sources import read_sources
from infold.messages import function_findings

DECORATOR = "session_rule"
KEYS = ("parameters",)
EXAMPLE = 'parameters={"url": "STRING"}'
TIME = "time"
"""The name of an event's own time beside the parameters."""
OVER = "session"


@dataclass(frozen=True, slots=True)
class SessionRule:
    """A rule of the project. ``arguments`` is what a call of it is expanded to."""

    code: FunctionCode
    arguments: ProjectFunction


def read_session_rule(root: Path, file: str, known: Mapping[str, bytes]) -> SessionRule | None:
    """The rule of a file ``functions/NAME.py``; None where it is none. Raises InfoldError."""
    name = PurePosixPath(file).stem
    sources = read_sources(root, file, known)
    text = sources.files[0][1]
    found = decorated(file, text, name, DECORATOR)
    if found is None:
        return None
    node, call = found
    reader = _Reader(file, text, DECORATOR, KEYS, EXAMPLE)
    parameters = reader.parameters(call)
    reader.check_generator(name, node)
    refuse_clocks(sources)
    parts = [DECORATOR, sources.digest, list(parameters.items())]
    digest = sha256(json.dumps(parts).encode()).hexdigest()[:16]
    types = tuple(parameters.values())
    code = FunctionCode(
        python_name(name, digest, varies=False),
        node.name,
        types,
        "ARRAY<BOOLEAN>",
        sources.files,
        OVER,
    )
    body: list[str | Use] = []
    for at, parameter in enumerate(parameters):
        body += [f"{', ' if at else 'named_struct('}'{parameter}', ", Use(at)]
    called = CalledFunction(name, file, digest)
    arguments = ProjectFunction(name, file, tuple(parameters.items()), "", (*body, ")"), (called,))
    return SessionRule(code, arguments)


@dataclass(frozen=True, slots=True)
class _Reader(DecoratorReader):
    def parameters(self, call: ast.expr) -> dict[str, str]:
        """The parameters by their names, in order."""
        found = self.given(call).get("parameters")
        if not isinstance(found, ast.Dict) or not found.keys:
            raise self.wrong("parameters", "names and types of Spark", found or call)
        parameters: dict[str, str] = {}
        for key, value in zip(found.keys, found.values, strict=True):
            if not isinstance(key, ast.Constant) or not isinstance(key.value, str):
                raise self.wrong("parameters", "names as texts", key or found)
            name = key.value
            if not _is_field(name) or name.lower() in map(str.lower, parameters):
                raise function_findings.bad_rule_parameter(self.at(key), parameter=name)
            parameters[name] = type_ = self.type("parameters", value, call)
            if "map<" in type_.lower():
                raise function_findings.map_in_rule(self.at(value), type_=type_)
        return parameters

    def check_generator(self, name: str, node: ast.FunctionDef) -> None:
        """The function takes events and yields."""
        arguments = [*node.args.posonlyargs, *node.args.args]
        others = (node.args.vararg, node.args.kwarg, *node.args.kwonlyargs)
        wrong = ""
        if len(arguments) != 1 or any(others):
            wrong = "has to take one argument, the events"
        elif not any(isinstance(one, ast.Yield) for one in _own_parts(node)):
            wrong = "yields nothing"
        if wrong:
            raise function_findings.bad_rule(self.at(node), name=name, what=wrong)


def _is_field(name: str) -> bool:
    return NAME.match(name) is not None and name.lower() != TIME


def _own_parts(node: ast.AST) -> Iterator[ast.AST]:
    """What a function consists of, without the functions in it."""
    for part in ast.iter_child_nodes(node):
        if not isinstance(part, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda, ast.ClassDef)):
            yield part
            yield from _own_parts(part)
