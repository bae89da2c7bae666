"""A Python function of a project, read from its file's syntax tree: the file is not executed."""

from __future__ import annotations

import ast
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from hashlib import sha256
from importlib.util import find_spec
from pathlib import Path, PurePosixPath

from infold.analysis.sql.expand import ProjectFunction, Use
from infold.analysis.sql.functions import python_name
from infold.core.functions import CalledFunction, FunctionCode
from infold.core.type_changes import ALIKE, is_type
from infold.declare.keys import NAME
from infold.declare.python_code import (
    PythonSources,
    not_of_inputs,
    parse_python,
    read_sources,
    spot_of,
)
from infold.messages import function_findings
from infold.messages.errors import InfoldError, Spot

DECORATOR = "function"
OVER = ("row", "arrow", "pandas")


def read_python_function(root: Path, file: str, known: Mapping[str, bytes]) -> ProjectFunction:
    """The function of a file ``functions/NAME.py``, of texts that are known. Raises InfoldError."""
    sources = read_sources(root, file, known)
    name = PurePosixPath(file).stem
    declared = _Declared.of(name, file, sources.files[0][1])
    if declared.deterministic:
        refuse_clocks(sources)
    parts = [sources.digest, declared.parameters, declared.returns]
    if declared.over != OVER[0]:
        parts.append(declared.over)  # another way to call it may give other values
    digest = sha256(json.dumps(parts).encode()).hexdigest()[:16]
    code = _code(declared, sources, digest)
    body: list[str | Use] = [f"{code.registered}("]
    for at, _ in enumerate(code.parameters):
        body += [", ", Use(at)] if at else [Use(at)]
    return ProjectFunction(
        name,
        file,
        tuple(zip(declared.arguments, declared.parameters, strict=True)),
        declared.returns,
        (*body, ")"),
        (CalledFunction(name, file, digest, code),),
        not declared.deterministic,
    )


def refuse_clocks(sources: PythonSources) -> None:
    """Raise what shows in the text of being another value at each call: clocks and chance."""
    for path, text in sources.files:
        for at, what, outside in not_of_inputs(path, text, parse_python(path, text), frames=False):
            if not outside:
                raise function_findings.changes_by_itself(at, what=what)


def _code(declared: _Declared, sources: PythonSources, digest: str) -> FunctionCode:
    return FunctionCode(
        python_name(declared.name, digest, varies=not declared.deterministic),
        declared.function,
        tuple(declared.parameters),
        declared.returns,
        sources.files,
        declared.over,
        declared.deterministic,
    )


@dataclass(frozen=True, slots=True)
class _Declared:
    """What the decorator says, and the names of the function and its arguments."""

    name: str
    function: str
    arguments: tuple[str, ...]
    parameters: list[str]
    returns: str
    deterministic: bool
    over: str

    @staticmethod
    def of(name: str, file: str, text: str) -> _Declared:
        """The declaration in a file's text."""
        function = decorated(file, text, name, DECORATOR)
        if function is None:
            raise function_findings.no_function(Spot(file), name=name)
        return _Reader(file, text, DECORATOR, KEYS, EXAMPLE).declared(name, *function)


def decorated(
    file: str, text: str, name: str, decorator: str
) -> tuple[ast.FunctionDef, ast.expr] | None:
    """The function of a file that is called ``name``, and its decorator, if it is that one."""
    for node in parse_python(file, text).body:
        if isinstance(node, ast.FunctionDef) and node.name.lower() == name.lower():
            for decoration in node.decorator_list:
                called = decoration.func if isinstance(decoration, ast.Call) else decoration
                attribute = called.attr if isinstance(called, ast.Attribute) else None
                if (attribute or getattr(called, "id", "")) == decorator:
                    return node, decoration
    return None


@dataclass(frozen=True, slots=True)
class DecoratorReader:
    """
    Reads what a decorator of infold's says, which takes the arguments ``keys``.

    ``example`` is how these are written.
    """

    file: str
    text: str
    decorator: str
    keys: tuple[str, ...]
    example: str

    def given(self, call: ast.expr) -> dict[str, ast.expr]:
        """The arguments of the decorator by their names."""
        if not isinstance(call, ast.Call):
            raise self.wrong(self.keys[0], "types of Spark", call)
        if call.args:
            raise self.wrong("each argument", "a name", call.args[0])
        unknown = next((one for one in call.keywords if one.arg not in self.keys), None)
        if unknown is not None:
            known = ", ".join(self.keys)
            raise self.wrong("the decorator", f"{known}, and not {unknown.arg}", unknown.value)
        return {one.arg: one.value for one in call.keywords if one.arg is not None}

    def type(self, key: str, node: ast.expr | None, call: ast.expr) -> str:
        """A type of Spark, written out."""
        if not isinstance(node, ast.Constant) or not isinstance(node.value, str):
            raise self.wrong(key, "types of Spark as texts", node or call)
        text = " ".join(node.value.split())
        if not is_type(text) or "char" in text.lower():
            nearest = ALIKE.get(text.lower(), "string" if "char" in text.lower() else "")
            at = self.at(node)
            raise function_findings.bad_parameter_type(at, type_=text, nearest=nearest)
        return text.upper() if "<" not in text else text

    def wrong(self, argument: str, expected: str, node: ast.expr) -> InfoldError:
        """An argument that is not what it has to be."""
        return function_findings.bad_decorator(
            self.at(node),
            what=argument,
            wanted=expected,
            decorator=self.decorator,
            example=self.example,
        )

    def at(self, node: ast.expr | ast.stmt) -> Spot:
        """The place of a part of the file."""
        return spot_of(self.file, self.text, node)


@dataclass(frozen=True, slots=True)
class _Reader(DecoratorReader):
    def declared(self, name: str, node: ast.FunctionDef, call: ast.expr) -> _Declared:
        """What the decorator of a function says."""
        words = self.given(call)
        parameters = self._parameters(words, call)
        returns = self._text(words, "returns", "a type of Spark", call)
        arguments = [one.arg for one in (*node.args.posonlyargs, *node.args.args)]
        further = (node.args.vararg, node.args.kwarg, *node.args.kwonlyargs, *node.args.defaults)
        if not any((*further, *arguments, *parameters)):
            raise function_findings.no_python_parameters(self.at(node), name=name)
        if any(further) or len(arguments) != len(parameters) or not parameters:
            raise function_findings.bad_python_parameters(
                self.at(node),
                name=name,
                declared=f"{len(parameters)} types" if len(parameters) != 1 else "1 type",
                found=", ".join(arguments) if arguments and not any(further) else "other arguments",
            )
        over = "row" if "over" not in words else self._text(words, "over", " or ".join(OVER), call)
        if over not in OVER:
            raise self.wrong("over", " or ".join(OVER), words["over"])
        if over == "pandas" and find_spec("pandas") is None:
            raise function_findings.no_pandas(self.at(call), name=name)
        deterministic = words.get("deterministic")
        value = getattr(deterministic, "value", None)
        if deterministic is not None and not isinstance(value, bool):
            raise self.wrong("deterministic", "True or False", deterministic)
        return _Declared(
            name, node.name, tuple(arguments), parameters, returns, value is True, over
        )

    def _parameters(self, keywords: dict[str, ast.expr], call: ast.expr) -> list[str]:
        types = keywords.get("parameters")
        if not isinstance(types, (ast.List, ast.Tuple)):
            raise self.wrong("parameters", "a list of types of Spark", types or call)
        return [self.type("parameters", one, call) for one in types.elts]

    def _text(self, keywords: dict[str, ast.expr], key: str, expected: str, call: ast.expr) -> str:
        literal = keywords.get(key)
        if not isinstance(literal, ast.Constant) or not isinstance(literal.value, str):
            raise self.wrong(key, expected, literal or call)
        return self.type(key, literal, call) if key == "returns" else literal.value


KEYS = ("parameters", "returns", "deterministic", "over")
EXAMPLE = 'parameters=["STRING"], returns="STRING", deterministic=True'


# A call of it in `cuts.rule` becomes a struct of its arguments, each cast to the type of its
# parameter: what the rule is given of an event. The code is kept beside it, by a name with its
# digest.

RULE_DECORATOR = "session_rule"
RULE_KEYS = ("parameters",)
RULE_EXAMPLE = 'parameters={"url": "STRING"}'
TIME = "time"
"""The name of an event's own time beside the parameters."""
RULE_OVER = "session"


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
    function = decorated(file, text, name, RULE_DECORATOR)
    if function is None:
        return None
    node, call = function
    reader = _RuleReader(file, text, RULE_DECORATOR, RULE_KEYS, RULE_EXAMPLE)
    parameters = reader.parameters(call)
    reader.check_generator(name, node)
    refuse_clocks(sources)
    parts = [RULE_DECORATOR, sources.digest, list(parameters.items())]
    digest = sha256(json.dumps(parts).encode()).hexdigest()[:16]
    types = tuple(parameters.values())
    code = FunctionCode(
        python_name(name, digest, varies=False),
        node.name,
        types,
        "ARRAY<BOOLEAN>",
        sources.files,
        RULE_OVER,
    )
    body: list[str | Use] = []
    for at, parameter in enumerate(parameters):
        body += [f"{', ' if at else 'named_struct('}'{parameter}', ", Use(at)]
    called = CalledFunction(name, file, digest)
    arguments = ProjectFunction(name, file, tuple(parameters.items()), "", (*body, ")"), (called,))
    return SessionRule(code, arguments)


@dataclass(frozen=True, slots=True)
class _RuleReader(DecoratorReader):
    def parameters(self, call: ast.expr) -> dict[str, str]:
        """The parameters by their names, in order."""
        declared = self.given(call).get("parameters")
        if not isinstance(declared, ast.Dict) or not declared.keys:
            raise self.wrong("parameters", "names and types of Spark", declared or call)
        parameters: dict[str, str] = {}
        for key, value in zip(declared.keys, declared.values, strict=True):
            if not isinstance(key, ast.Constant) or not isinstance(key.value, str):
                raise self.wrong("parameters", "names as texts", key or declared)
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
        further = (node.args.vararg, node.args.kwarg, *node.args.kwonlyargs)
        wrong = ""
        if len(arguments) != 1 or any(further):
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
