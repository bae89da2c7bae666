"""
Models in Python: their functions, loaded from the text that their definition has, and called.

The files of the project are never imported. A definition has the text of every module of the
project that its function needs, so an earlier definition runs as it was, and a file that is half
saved runs nowhere. The modules are known to nobody but each other: what Spark sends to its workers
has their functions by value, so that no worker needs the project.
"""

from __future__ import annotations

import builtins
import contextlib
import re
import sys
import threading
import traceback
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache, partial
from hashlib import sha256
from types import ModuleType
from typing import Any

import pyarrow as pa
from pyspark.errors import PySparkImportError
from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql import types as T
from pyspark.sql.pandas.types import to_arrow_type

from infold.core.functions import PROJECT_PACKAGE, PythonCode, PythonModule
from infold.core.project import Node
from infold.messages import function_findings
from infold.messages.errors import InfoldError, Spot
from infold.spark.content import column
from infold.spark.python_functions.author_code import (
    AuthorCode,
    WrongValueError,
    as_column,
    first_line,
    named,
    shown,
    shown_rows,
    values_of,
)
from infold.system import failures


def python_rows(node: Node, given: Sequence[DataFrame]) -> DataFrame:
    """
    What the function of a model makes of its inputs, with the declared columns in their order.

    What it prints goes to the standard error output. Raises ``python_failed``, ``no_data_frame``
    and ``other_columns``, with the place in the author's file.
    """
    code = node.model.python
    assert code is not None, "a model in Python"
    if code.of_each_row:
        return python_events(node, given[0])
    if code.group_by:
        return _row_of_each_key(node, code, given[0])
    arguments = [
        frame if input_.columns is None else frame.select(*map(column, input_.columns))
        for input_, frame in zip(code.inputs, given, strict=True)
    ]
    with _failing_at_its_place(node, code):
        rows = _loaded_function(code)(*arguments)
    if not isinstance(rows, DataFrame):
        package = type(rows).__module__.partition(".")[0]
        named = f"{package}.{type(rows).__name__}".removeprefix("builtins.")
        what = "None" if rows is None else f"a {named}"
        raise function_findings.no_data_frame(_place(node), model=node.name, what=what)
    return _with_declared_columns(node, code, rows)


def python_events(node: Node, rows: DataFrame, carried: str | None = None) -> DataFrame:
    """What the function of an events model makes of each row, as in :func:`python_rows`."""
    code = node.model.python
    assert code is not None, "a model in Python"
    _load_modules(node, code)
    return rows_of_each(code, rows, carried)


def _row_of_each_key(node: Node, code: PythonCode, rows: DataFrame) -> DataFrame:
    _load_modules(node, code)
    keys = {name.lower() for name in code.group_by}
    key_types = [(name, type_) for name, type_ in code.columns if name.lower() in keys]
    types = _unlike_types(rows.select(*(column(name) for name, _ in key_types)), key_types)
    if types:
        raise function_findings.other_columns(
            _place(node), model=node.name, missing=[], more=[], types="; ".join(types)
        )
    return row_of_each_key(code, rows)


def _load_modules(node: Node, code: PythonCode) -> None:
    """Raise what its modules raise, before Spark's workers import them."""
    with _failing_at_its_place(node, code):
        _loaded_function(code)


@contextlib.contextmanager
def _failing_at_its_place(node: Node, code: PythonCode) -> Iterator[None]:
    """Exceptions of the author's code as ``python_failed``; what it prints goes elsewhere."""
    try:
        with _printing_elsewhere():
            yield
    except InfoldError:
        raise
    except (Exception, SystemExit) as error:
        known = failures.known_failure(error)
        if known is not None and known.slug == "engine-died":
            raise
        raise _python_failure(node, code, error) from error


def as_python_failure(node: Node, error: BaseException) -> InfoldError | None:
    """The failure of a model's code in one of Spark's workers; None for any other failure."""
    code = node.model.python
    if code is None:
        return None
    frames = [match for match in _FRAME.finditer(str(error)) if match["file"] in code.files]
    if not frames:
        return None
    lines = [line.strip() for line in str(error)[frames[-1].end() :].splitlines()]
    messages = [line for line in lines if _RAISED.match(line)]
    what = messages[0] if messages else type(error).__name__
    at = _spot(code, frames[-1]["file"], int(frames[-1]["line"]))
    return function_findings.python_failed(at, model=node.name, what=what[:500])


_FRAME = re.compile(r'File "(?P<file>[^"\n]+)", line (?P<line>\d+)')
_RAISED = re.compile(r"[A-Za-z_][\w.]*(?:Error|Exception|Interrupt|Exit|Iteration|Warning)\b")


def _python_failure(node: Node, code: PythonCode, error: BaseException) -> InfoldError:
    """An exception with the deepest place in the author's files."""
    if (inside := as_python_failure(node, error)) is not None:
        return inside
    if isinstance(error, SyntaxError):  # of another version of Python, or a module that it imports
        at = _place(node)
    else:
        frames = [
            frame
            for frame in traceback.extract_tb(error.__traceback__)
            if frame.filename in code.files
        ]
        at = _spot(code, frames[-1].filename, frames[-1].lineno or 1) if frames else _place(node)
    if (module := _missing_module(error)) is not None:
        return function_findings.package_missing(at, model=node.name, module=module)
    words = str(error).strip().splitlines() or [""]
    what = f"{type(error).__name__}: {words[0]}".removesuffix(": ")
    return function_findings.python_failed(at, model=node.name, what=what[:500])


def _missing_module(error: BaseException) -> str | None:
    """The package that an exception of an import, or of Spark's check for one, is about."""
    if isinstance(error, ModuleNotFoundError):
        return error.name
    match = _NOT_INSTALLED.search(str(error)) if isinstance(error, PySparkImportError) else None
    return match["package"] if match else None


_NOT_INSTALLED = re.compile(r"(?P<package>\w+( >= [\d.]+)?) must be installed")


def _place(node: Node) -> Spot:
    """The function of a model."""
    code = node.model.python
    assert code is not None, "a model in Python"
    return _spot(code, code.files[0], node.model.sql_line)


def _spot(code: PythonCode, file: str, line: int) -> Spot:
    [module] = [source_module for source_module in code.modules if source_module.file == file]
    lines = module.source.splitlines()
    text = lines[line - 1] if 0 < line <= len(lines) else ""
    return Spot.of_line(file, line, text)


# -- what it returns


def _with_declared_columns(node: Node, code: PythonCode, rows: DataFrame) -> DataFrame:
    returned_names = {field.name.lower() for field in rows.schema.fields}
    declared = {name.lower() for name, _ in code.columns}
    types = _unlike_types(rows, code.columns)
    missing = [name for name, _ in code.columns if name.lower() not in returned_names]
    more = [field.name for field in rows.schema.fields if field.name.lower() not in declared]
    repeated = len(rows.columns) - len(returned_names)
    if missing or more or types or repeated:
        more += ["two columns of one name"] if repeated else []
        raise function_findings.other_columns(
            _place(node), model=node.name, missing=missing, more=more, types="; ".join(types)
        )
    return rows.select(*(column(name).alias(name) for name, _ in code.columns))


def _unlike_types(rows: DataFrame, declared: Sequence[tuple[str, str]]) -> list[str]:
    """Columns of another type than they are declared with, each with both."""
    returned_types = {field.name.lower(): field.dataType for field in rows.schema.fields}
    types = []
    for name, text in declared:
        returned, declared_as = returned_types.get(name.lower()), _spark_type(text)
        if returned is not None and not _same_type(returned, declared_as):
            types.append(
                f"{name} is {returned.simpleString()}, declared {declared_as.simpleString()}"
            )
    return types


@lru_cache(maxsize=1024)
def _spark_type(text: str) -> T.DataType:
    return T.DataType.fromDDL(text)


def _same_type(left: T.DataType, right: T.DataType) -> bool:
    """Whether two types are the same, whatever may be NULL in them."""
    return _nullable(left) == _nullable(right)


def _nullable(type_: T.DataType) -> T.DataType:
    if isinstance(type_, T.ArrayType):
        return T.ArrayType(_nullable(type_.elementType))
    if isinstance(type_, T.MapType):
        return T.MapType(_nullable(type_.keyType), _nullable(type_.valueType))
    if isinstance(type_, T.StructType):
        return T.StructType([T.StructField(f.name, _nullable(f.dataType)) for f in type_.fields])
    return type_


# -- loading


@lru_cache(maxsize=64)
def _loaded_function(code: PythonCode) -> Callable[..., Any]:
    """The function of a code; its modules are executed once."""
    return _Modules(code).function()


class _Modules:
    """The modules of one code, each executed when it is first imported."""

    def __init__(self, code: PythonCode) -> None:
        self._code = code
        self._module_by_name = {module.name: module for module in code.modules}
        self._modules: dict[str, ModuleType] = {}
        self._package_name = f"infold_project_{sha256(repr(code).encode()).hexdigest()[:12]}"
        self._builtins = {**vars(builtins), "__import__": self._import}

    def function(self) -> Callable[..., Any]:
        """The model's function."""
        loaded: Callable[..., Any] = getattr(
            self._executed_module(self._code.modules[0]), self._code.function
        )
        assert callable(loaded), "a function with that name is in the file"
        return loaded

    def _executed_module(self, module: PythonModule) -> ModuleType:
        if module.name in self._modules:
            return self._modules[module.name]
        executed = ModuleType(f"{self._package_name}.{module.name or 'model'}")
        vars(executed)["__builtins__"] = self._builtins
        self._modules[module.name] = executed
        # Some libraries look a module up by its name while its classes are made. Later nobody may
        # find it there: what has a module that can be imported is sent to workers by its name.
        sys.modules[executed.__name__] = executed
        try:
            compiled = compile(module.source, module.file, "exec", dont_inherit=True)
            exec(compiled, vars(executed))  # noqa: S102 (the code of the project is what a model is)
        except BaseException:
            del self._modules[module.name]
            raise
        finally:
            sys.modules.pop(executed.__name__, None)
        return executed

    def _import(
        self,
        name: str,
        globals_: Mapping[str, Any] | None = None,
        locals_: Mapping[str, Any] | None = None,
        fromlist: Sequence[str] | None = (),
        level: int = 0,
    ) -> ModuleType:
        """What an import statement in one of the modules calls."""
        if level:
            importing_module = (globals_ or {})["__name__"].removeprefix(f"{self._package_name}.")
            name = ".".join([*importing_module.split(".")[:-level], *([name] if name else [])])
        if name.split(".")[0] != PROJECT_PACKAGE:
            return builtins.__import__(name, globals_, locals_, fromlist or (), level)
        if name in self._module_by_name:
            self._executed_module(self._module_by_name[name])
        for submodule in fromlist or ():
            if f"{name}.{submodule}" in self._module_by_name:
                self._executed_module(self._module_by_name[f"{name}.{submodule}"])
        if fromlist and name in self._modules:
            return self._modules[name]
        return self._package(name if fromlist else PROJECT_PACKAGE)

    def _package(self, name: str) -> ModuleType:
        """A folder of modules, with those that were imported."""
        package = ModuleType(f"{self._package_name}.{name}")
        for full, module in self._modules.items():
            below = full.removeprefix(f"{name}.")
            if full.startswith(f"{name}.") and "." not in below:
                setattr(package, below, module)
            elif full.startswith(f"{name}."):
                inner = below.split(".")[0]
                setattr(package, inner, self._package(f"{name}.{inner}"))
        return package


_printing = threading.RLock()


@contextlib.contextmanager
def _printing_elsewhere() -> Iterator[None]:
    """Standard output is for results (`--json`): what is printed here goes beside it."""
    with _printing, contextlib.redirect_stdout(sys.stderr):
        yield


# Spark's workers call the function with plain Python values and nothing else, so what a row gives
# follows from that row alone, and what a key gives from its rows. Which rows are together in a
# batch, in a file or in a run cannot show.

_ROWS = "_infold_rows"


def author_code(code: PythonCode) -> AuthorCode:
    """The code of a model as Spark's workers load it."""
    files = tuple((module.file, module.source) for module in code.modules)
    return AuthorCode(code.function, files, sha256(repr(code).encode()).hexdigest()[:16])


def rows_of_each(code: PythonCode, rows: DataFrame, carried: str | None = None) -> DataFrame:
    """
    What a function gives for each row, with the declared columns.

    With ``carried``, a struct that is no column of the function: each result has that of its row,
    and a row with a ``problem`` in it gives one row of NULLs without being shown to the function.
    """
    names = rows.columns if code.inputs[0].columns is None else code.inputs[0].columns
    given = [name for name in names if name != carried]
    more = [] if carried is None else [carried]
    columns = [(name, T.DataType.fromDDL(type_)) for name, type_ in code.columns]
    schema = T.StructType([T.StructField(name, type_) for name, type_ in columns])
    for name in more:
        schema.add(rows.schema[name])
    calls = EachRow(_function(code, columns), tuple(given), carried)
    return rows.select(*map(column, (*given, *more))).mapInArrow(calls.__call__, schema)


def row_of_each_key(code: PythonCode, rows: DataFrame) -> DataFrame:
    """
    What a function gives for all rows of each key, with the declared columns.

    It is given the rows in the order of the columns as they are listed, NULL first: they come in
    any order, and are the same when that one is.
    """
    keys = {name.lower() for name in code.group_by}
    given = rows.columns if code.inputs[0].columns is None else code.inputs[0].columns
    columns = [(name, T.DataType.fromDDL(type_)) for name, type_ in code.columns]
    filled = [(name, type_) for name, type_ in columns if name.lower() not in keys]
    keyed = F.sort_array(F.collect_list(F.struct(*(column(name).alias(name) for name in given))))
    group_columns = [column(name).alias(name) for name, _ in columns if name.lower() in keys]
    grouped = rows.groupBy(*group_columns).agg(keyed.alias(_ROWS))
    passed = [name for name in grouped.columns if name != _ROWS]
    schema = T.StructType([grouped.schema[name] for name in passed])
    for name, type_ in filled:
        schema.add(name, type_)
    calls = EachKey(_function(code, filled, frozenset(passed)), tuple(passed))
    results = grouped.mapInArrow(calls.__call__, schema)
    return results.select(*(column(name) for name, _ in columns))


def _function(
    code: PythonCode,
    columns: Iterable[tuple[str, T.DataType]],
    keys: frozenset[str] = frozenset(),
) -> RowFunction:
    types = tuple((name, to_arrow_type(type_)) for name, type_ in columns)
    return RowFunction(author_code(code), types, keys)


@dataclass(frozen=True)
class RowFunction:
    """A function of the author's, and the columns that its rows have; its keys are given them."""

    code: AuthorCode
    columns: tuple[tuple[str, pa.DataType], ...]
    keys: frozenset[str] = frozenset()

    def values(self, name: str, given: pa.Array) -> list[Any]:
        """The values of a column. Raises FunctionFailedError where Python has none of them."""
        try:
            return values_of(given)
        except (OverflowError, ValueError) as error:
            raise self.code.wrong(f"cannot be given {name}: {first_line(error)}") from None

    def rows(self, function: Callable[..., Any], given: Any, *, several: bool) -> list[Any]:
        """The rows that a call gives. Raises FunctionFailedError."""
        try:
            result = function(given)
            if result is None:
                return []
            plural = (
                several and isinstance(result, Iterable) and not isinstance(result, str | bytes)
            )
            rows = list(result) if plural and not isinstance(result, Mapping) else [result]
        except BaseException as error:  # noqa: BLE001 (also an exit: the worker would be lost)
            raise self.code.failed(error, shown_rows(given)) from None
        for row in rows:
            if (what := self._unlike(row)) is not None:
                raise self.code.wrong(f"returned {what}", shown_rows(given))
        return rows

    def _unlike(self, row: object) -> str | None:
        """Why something is no row of the declared columns."""
        if not isinstance(row, Mapping):
            return f"{shown(row)}, which is no row: a dict of its columns"
        names = [name for name, _ in self.columns]
        missing = next((name for name in names if name not in row), None)
        more = next((name for name in row if name not in names), None)
        if missing is not None:
            return f"a row without {missing!r}"
        if more is None:
            return None
        if more in self.keys:
            return f"a row with {more!r}, a key, which the row is given without the function"
        return f"a row with {more!r}, which is none of its columns"

    def columns_of(
        self, rows: Sequence[Mapping[str, Any]], given: Callable[[int], Any]
    ) -> list[pa.Array]:
        """
        Rows as columns of the declared types; ``given`` is what the function was given for each.

        Raises FunctionFailedError.
        """
        columns = []
        for name, type_ in self.columns:
            try:
                columns.append(as_column([row[name] for row in rows], type_))
            except WrongValueError as error:
                value = shown(rows[error.at][name])
                what = f"returned {value} as {name!r}, which is no {named(type_)}: {error.why}"
                raise self.code.wrong(what, shown_rows(given(error.at))) from None
        return columns


@dataclass(frozen=True)
class EachRow:
    """Calls a function for each row of batches; see :func:`rows_of_each`."""

    function: RowFunction
    given: tuple[str, ...]
    carried: str | None = None

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """The rows that the rows of each batch give."""
        function = self.function.code.loaded()
        null_row = dict.fromkeys(name for name, _ in self.function.columns)
        for batch in batches:
            problems: Sequence[object] = [None] * batch.num_rows
            if self.carried is not None:
                problems = batch.column(self.carried).field("problem").to_pylist()
            values = [self.function.values(name, batch.column(name)) for name in self.given]
            results, places = [], []
            for at, problem in enumerate(problems):
                if problem is not None:
                    rows = [null_row]
                else:
                    rows = self.function.rows(function, self._row(values, at), several=True)
                results += rows
                places += [at] * len(rows)
            columns = self.function.columns_of(results, partial(self._given, values, places))
            names = [name for name, _ in self.function.columns]
            if self.carried is not None:
                carried = batch.column(self.carried).take(pa.array(places, pa.int64()))
                columns, names = [*columns, carried], [*names, self.carried]
            yield pa.RecordBatch.from_arrays(columns, names=names)

    def _given(
        self, values: Sequence[Sequence[Any]], places: Sequence[int], at: int
    ) -> dict[str, Any]:
        return self._row(values, places[at])

    def _row(self, values: Sequence[Sequence[Any]], at: int) -> dict[str, Any]:
        return {name: own[at] for name, own in zip(self.given, values, strict=True)}


@dataclass(frozen=True)
class EachKey:
    """Calls a function for the rows of each key of batches; see :func:`row_of_each_key`."""

    function: RowFunction
    keys: tuple[str, ...]

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """The rows of the keys of each batch, with these."""
        function = self.function.code.loaded()
        for batch in batches:
            results, places = [], []
            rows_by_key = batch.column(_ROWS)
            for at in range(batch.num_rows):  # one key after the other: some have many rows
                [rows] = self.function.values("rows", rows_by_key.slice(at, 1))
                key_results = self.function.rows(function, rows, several=False)
                results += key_results
                places += [at] * len(key_results)
            keys = [batch.column(name).take(pa.array(places, pa.int64())) for name in self.keys]
            columns = [
                *keys,
                *self.function.columns_of(results, partial(self._given, rows_by_key, places)),
            ]
            names = [*self.keys, *(name for name, _ in self.function.columns)]
            yield pa.RecordBatch.from_arrays(columns, names=names)

    def _given(self, rows_by_key: pa.Array, places: Sequence[int], at: int) -> Any:
        [rows] = self.function.values("rows", rows_by_key.slice(places[at], 1))
        return rows
