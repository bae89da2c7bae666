"""
Models in Python: the declaration in @model, and the function under it, read as text.

The arguments of the decorator are literals, so they are read as the front matter of a SQL model is,
by the same reader, with the same messages and places. No code of the author's runs.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from infold.analysis.names.subject import Draft
from infold.analysis.python_models import python_text
from infold.analysis.sql.parse import parse
from infold.core.functions import PythonCode, PythonInput
from infold.core.model import (
    DeclaredBound,
    Kind,
    Materialization,
    Model,
    Override,
    Place,
    any_result_will_do,
)
from infold.core.type_changes import ALIKE, SIMPLE, is_type
from infold.core.yaml_tree import Value, join
from infold.declare import models
from infold.declare.keys import Keys
from infold.declare.models import BOUND, Declared, read_model
from infold.declare.python_code import code_digest, parse_python, project_modules, spot_of
from infold.messages import findings, function_findings
from infold.messages.errors import InfoldError, Spot
from infold.messages.findings import keys_meant_by

KEYS = ("columns", "inputs", "group_by")
"""Keys of @model that front matter does not have."""
ALL_KEYS = {*KEYS, *models.KEYS}
INPUT = (*BOUND, "columns")
OF_ONE_TABLE = (Materialization.EVENTS, Materialization.CUMULATIVE_AGGREGATE)
"""Kinds with a function of rows; the others have one of DataFrames."""
KINDS = (Materialization.VIEW, Materialization.TABLE, *OF_ONE_TABLE)
_WHY_COLUMNS = "nobody can see in a function which columns its rows have"


def read_python_model(
    name: str,
    file: str,
    source: str,
    per_model: Value | None,
    defaults: Value | None,
    library: Mapping[str, str],
    errors: list[InfoldError],
) -> Draft | None:
    """
    One model; None when it cannot be read, with the reasons in ``errors``.

    ``library`` are the texts of the project's modules, by file.
    """
    before = len(errors)
    try:
        tree = parse_python(file, source)
    except InfoldError as error:
        errors.append(error)
        return None
    python_file = PythonFile(file, source)
    marked = _model_function(python_file, tree, errors)
    if marked is None:
        return None
    function, call = marked
    own = join(read_arguments(python_file, call, errors), per_model, errors)
    if len(errors) > before:
        return None
    misspelt = (keys_meant_by(key, ALL_KEYS) for key in own.entries.keys() - ALL_KEYS)
    keys = Keys(own, f"model {name}", errors, misspelled=frozenset().union(*misspelt))
    if not _can_be_a_function(keys):
        return None
    front = replace(
        own,
        entries={key: value for key, value in own.entries.items() if key not in KEYS},
        keys={key: at for key, at in own.keys.items() if key not in KEYS},
    )
    declared = read_model(name, file, front, defaults, errors, KEYS)
    columns = _columns(keys)
    inputs_read = _inputs(python_file, function, keys)
    group_by = _group_by(keys)
    if declared is not None:
        errors.extend(_needless(declared, front, inputs_read))
    vouched = declared is not None and any_result_will_do(declared.model)
    code_errors: list[InfoldError] = []
    modules = project_modules(file, source, tree, library, code_errors)
    wrong = [e for e in code_errors if not (vouched and e.slug == "not-deterministic")]
    known = set(map(str, errors))  # those of a module that other models import too
    errors.extend(error for error in wrong if str(error) not in known)
    if declared is None or wrong or len(errors) > before:
        return None
    trees = {one.name: ast.parse(one.source) for one in modules[1:]}
    inputs = tuple(one.input for one in inputs_read)
    digest = code_digest(function, {"": tree, **trees})
    of_each_row = declared.model.kind is Kind.EVENTS
    code = PythonCode(function.name, modules, inputs, columns, digest, of_each_row, group_by)
    model = replace(_with_bounds(declared.model, inputs_read), python=code, sql=python_text(code))
    model = replace(model, sql_line=function.lineno, place=Place(file, function.lineno))
    above = "\n" * (function.lineno - 1)
    places = {**declared.places, **{f"inputs.{one.input.table}": one.at for one in inputs_read}}
    places["group_by"] = keys.at("group_by")
    return Draft(model, parse(file, above + model.sql, len(above)), places)


def _model_function(
    of: PythonFile, tree: ast.Module, errors: list[InfoldError]
) -> tuple[ast.FunctionDef, ast.Call] | None:
    """The function with @model, and the call in its decorator."""
    names = {"infold.model"} | {
        alias.asname or alias.name
        for node in tree.body
        if isinstance(node, ast.ImportFrom) and node.module == "infold"
        for alias in node.names
        if alias.name == "model"
    }
    marked = [
        (node, decorator)
        for node in tree.body
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef)
        for decorator in node.decorator_list
        if ast.unparse(decorator.func if isinstance(decorator, ast.Call) else decorator) in names
    ]
    if len(marked) != 1:
        at = of.spot(marked[1][1]) if marked else Spot(of.file)
        count = "no" if not marked else "several"
        errors.append(function_findings.no_model_function(at, count=count))
        return None
    [(node, decorator)] = marked
    if not isinstance(decorator, ast.Call):
        errors.append(findings.missing_key(of.spot(decorator), "materialization", "@model", ""))
        return None
    if not isinstance(node, ast.FunctionDef):
        problem = "is no plain function"
        errors.append(
            function_findings.bad_model_function(of.spot(node), function=node.name, what=problem)
        )
        return None
    return node, decorator


def _can_be_a_function(keys: Keys) -> bool:
    """Whether a function can make the kind of table that is declared."""
    kind = _kind(keys)
    if kind is None or kind in KINDS:
        return True
    at = keys.at("materialization")
    keys.errors.append(function_findings.kind_not_in_python(at, kind=kind, known=KINDS))
    return False


def _kind(keys: Keys) -> Materialization | None:
    """The declared kind, if it is one."""
    value = keys.entries.get("materialization")
    text = value.text if value is not None and value.kind == "text" else ""
    return Materialization(text) if text in set(Materialization) else None


def _columns(keys: Keys) -> tuple[tuple[str, str], ...]:
    """The declared columns with their types."""
    section = keys.section("columns")
    if section is None or not section.entries:
        if section is not None or "columns" not in keys.entries:
            keys.missing("columns", _WHY_COLUMNS)
        return ()
    columns: dict[str, tuple[str, str]] = {}
    for name in section.entries:
        type_ = section.text(name)
        if name.startswith("_"):
            keys.errors.append(findings.reserved_column(section.key_at(name), column=name))
        if name.lower() in columns:
            first = section.key_at(columns[name.lower()][0])
            keys.errors.append(findings.duplicate_key(section.key_at(name), key=name, first=first))
        if type_ is not None and not is_type(type_):
            alike = ALIKE.get(type_.lower())
            keys.errors.append(
                findings.bad_column_type(section.at(name), name, type_, alike, SIMPLE)
            )
        columns[name.lower()] = (name, type_ or "")
    return tuple(columns.values())


@dataclass(frozen=True, slots=True)
class _Input:
    """An input with its declared bound, and its place."""

    input: PythonInput
    bound: DeclaredBound
    at: Spot
    bounded: Mapping[str, Spot]
    """Which of `before` and `after` are declared, with their places."""


def _inputs(of: PythonFile, function: ast.FunctionDef, keys: Keys) -> tuple[_Input, ...]:
    """The tables that the parameters stand for, in the order of the parameters."""
    parameters = list(_parameters(of, function, keys.errors))
    section = keys.section("inputs")
    if _kind(keys) in OF_ONE_TABLE:
        return _only_input(of, function, parameters, section, keys.errors)
    if section is None:
        return tuple(
            _Input(PythonInput(one.arg, one.arg), DeclaredBound(one.arg), of.spot(one), {})
            for one in parameters
        )
    tables = {table.rpartition(".")[2]: table for table in section.entries}
    names = [one.arg for one in parameters]
    for table in section.entries:
        if table.rpartition(".")[2] not in names or tables[table.rpartition(".")[2]] != table:
            at = section.key_at(table)
            keys.errors.append(
                function_findings.no_parameter(at, function=function.name, table=table, known=names)
            )
    inputs = []
    for one in parameters:
        name = tables.get(one.arg)
        if name is None:
            keys.errors.append(
                function_findings.no_input(
                    of.spot(one), parameter=one.arg, function=function.name, known=section.entries
                )
            )
            continue
        inputs.append(_input(section, name, one.arg))
    return tuple(one for one in inputs if one is not None)


def _only_input(
    python_file: PythonFile,
    function: ast.FunctionDef,
    parameters: Sequence[ast.arg],
    section: Keys | None,
    errors: list[InfoldError],
) -> tuple[_Input, ...]:
    """The table whose rows a function is given; its parameter has any name if `inputs` has it."""
    named = {one.arg: python_file.spot(one) for one in parameters}
    tables = named if section is None else {one: section.key_at(one) for one in section.entries}
    if len(named) > 1 or len(tables) > 1:
        at = list((named if len(named) > 1 else tables).values())[1]
        errors.append(function_findings.several_tables(at, function=function.name))
    if len(named) != 1 or len(tables) != 1:
        return ()
    [table], [parameter] = tables, named
    if section is None:
        one = PythonInput(table, parameter)
        return (_Input(one, DeclaredBound(table), tables[table], bounded={}),)
    only = _input(section, table, parameter, known=("columns",))
    return () if only is None else (only,)


def _group_by(keys: Keys) -> tuple[str, ...]:
    """The columns of the key of a model that has a row for each key."""
    by_key = _kind(keys) is Materialization.CUMULATIVE_AGGREGATE
    if not by_key:
        keys.needless(("group_by",), f"materialization {_kind(keys) or ''}".strip())
        return ()
    columns = keys.texts("group_by")
    if "group_by" not in keys.entries:
        keys.missing("group_by", "the function makes a row for each key")
    elif not columns:
        keys.empty("group_by")
    return columns


def _input(
    section: Keys, table: str, parameter: str, known: Sequence[str] = INPUT
) -> _Input | None:
    own = section.section(table, f"input {table}")
    if own is None:
        return None
    own.check(known)
    columns = own.texts("columns") if "columns" in own.entries else None
    if columns is not None:
        first: dict[str, str] = {}
        for name in columns:
            first.setdefault(name.lower(), name)
        columns = tuple(first.values())
        if not columns and not own.errors:
            own.empty("columns")
    bound = DeclaredBound(table, own.length("before", 0) or 0, own.length("after", 0) or 0)
    bounded = {key: at for key, at in own.value.keys.items() if key in BOUND and key in known}
    return _Input(PythonInput(table, parameter, columns), bound, section.key_at(table), bounded)


def _parameters(
    python_file: PythonFile, function: ast.FunctionDef, errors: list[InfoldError]
) -> Iterator[ast.arg]:
    """The parameters of a model's function."""
    arguments = function.args
    special = [arguments.vararg, arguments.kwarg, *arguments.kwonlyargs, *arguments.defaults]
    for node in special:
        if node is not None:
            problem = "has a parameter that is none of a table"
            errors.append(
                function_findings.bad_model_function(
                    python_file.spot(node), function=function.name, what=problem
                )
            )
    plain = [*arguments.posonlyargs, *arguments.args]
    if not plain:
        problem = "has no parameter, so it reads nothing"
        errors.append(
            function_findings.bad_model_function(
                python_file.spot(function), function=function.name, what=problem
            )
        )
    yield from plain


def _needless(declared: Declared, front: Value, inputs: Sequence[_Input]) -> Iterator[InfoldError]:
    """Keys that mean nothing for a model in Python, or for one without cells."""
    bounds = declared.places.get("incremental.bounds")
    if bounds is not None:
        todo = "Say it in `inputs`: {table: {before: …, after: …}}."
        yield findings.needless_key(bounds, "incremental.bounds", "a model in Python", todo)
    none = Value("nothing", front.at)
    vouched = front.entries.get("incremental", none).entries.get("safety_overrides", none)
    for override in Override:
        if override in vouched.keys and override is not Override.NONDETERMINISTIC:
            at, name = vouched.keys[override], f"incremental.safety_overrides.{override}"
            todo = "Nothing is proven of a function, so there is no proof to do without."
            yield findings.needless_key(at, name, "a model in Python", todo)
    if "incremental" in declared.places:  # cells that are switched off may come back
        return
    for read in inputs:
        for key, at in read.bounded.items():
            name, where = f"inputs.{read.input.table}.{key}", f"a {declared.model.materialization}"
            todo = (
                "The function is given all rows. Only a table that is built cell by cell, with "
                "`timeseries` and `incremental`, is given those around a cell."
            )
            yield findings.needless_key(at, name, f"{where} as a whole", todo)


def _with_bounds(model: Model, inputs: tuple[_Input, ...]) -> Model:
    """The model with the bounds of its inputs, as a SQL model has them in `incremental`."""
    if model.incremental is None:
        return model
    bounds = tuple(read.bound for read in inputs)
    return replace(model, incremental=replace(model.incremental, bounds=bounds))


@dataclass(frozen=True, slots=True)
class PythonFile:
    """The file of a model."""

    file: str
    source: str

    def spot(self, node: ast.AST) -> Spot:
        """The place of a part of it."""
        return spot_of(self.file, self.source, node)


def read_arguments(module: PythonFile, call: ast.Call, errors: list[InfoldError]) -> Value:
    """The arguments of the decorator as a mapping."""
    entries, keys = dict[str, Value](), dict[str, Spot]()
    errors.extend(
        function_findings.not_literal(module.spot(one), what="an argument without a name")
        for one in call.args
    )
    for argument in call.keywords:
        if argument.arg is None:
            errors.append(function_findings.not_literal(module.spot(argument.value), what="**"))
            continue
        keys[argument.arg] = module.spot(argument)
        entries[argument.arg] = _value(module, argument.value, argument.arg, errors)
    return Value("a mapping", module.spot(call), entries=entries, keys=keys)


def _value(python_file: PythonFile, node: ast.expr, name: str, errors: list[InfoldError]) -> Value:
    at = python_file.spot(node)
    if isinstance(node, ast.Dict):
        return _mapping(python_file, node, name, errors)
    if isinstance(node, ast.List | ast.Tuple):
        items = tuple(_value(python_file, item, name, errors) for item in node.elts)
        return Value("a list", at, items=items)
    try:
        value = ast.literal_eval(node)
    except ValueError:
        errors.append(function_findings.not_literal(at, what=name))
        return Value("nothing", at)
    if isinstance(value, bool):
        return Value("true or false", at, text=str(value).lower())
    if isinstance(value, int | float):
        return Value("a number", at, text=str(value))
    if isinstance(value, str):
        return Value("text", at, text=value)
    if value is not None:
        errors.append(function_findings.not_literal(at, what=name))
    return Value("nothing", at)


def _mapping(module: PythonFile, node: ast.Dict, name: str, errors: list[InfoldError]) -> Value:
    entries, keys = dict[str, Value](), dict[str, Spot]()
    for key, value in zip(node.keys, node.values, strict=True):
        if not (isinstance(key, ast.Constant) and isinstance(key.value, str)):
            errors.append(
                function_findings.not_literal(module.spot(key or value), what=f"a key of {name}")
            )
            continue
        at = module.spot(key)
        if key.value in entries:
            errors.append(findings.duplicate_key(at, key=key.value, first=keys[key.value]))
            continue
        keys[key.value] = at
        entries[key.value] = _value(module, value, f"{name}.{key.value}", errors)
    return Value("a mapping", module.spot(node), entries=entries, keys=keys)
