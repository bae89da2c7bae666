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
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import lru_cache
from hashlib import sha256
from types import ModuleType
from typing import Any

from pyspark.errors import PySparkImportError
from pyspark.sql import DataFrame
from pyspark.sql import types as T

from infold.core.project import Node
from infold.core.python_code import PROJECT_PACKAGE, PythonCode, PythonModule
from infold.messages import python_findings
from infold.messages.errors import InfoldError, Spot
from infold.spark.content import column
from infold.spark.row_functions import row_of_each_key, rows_of_each
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
        frame if one.columns is None else frame.select(*map(column, one.columns))
        for one, frame in zip(code.inputs, given, strict=True)
    ]
    with _failing_at_its_place(node, code):
        rows = _loaded(code)(*arguments)
    if not isinstance(rows, DataFrame):
        package = type(rows).__module__.partition(".")[0]
        named = f"{package}.{type(rows).__name__}".removeprefix("builtins.")
        what = "None" if rows is None else f"a {named}"
        raise python_findings.no_data_frame(_place(node), model=node.name, what=what)
    return _with_declared_columns(node, code, rows)


def python_events(node: Node, rows: DataFrame, carried: str | None = None) -> DataFrame:
    """What the function of an events model makes of each row, as in :func:`python_rows`."""
    code = node.model.python
    assert code is not None, "a model in Python"
    _refuse_broken(node, code)
    return rows_of_each(code, rows, carried)


def _row_of_each_key(node: Node, code: PythonCode, rows: DataFrame) -> DataFrame:
    _refuse_broken(node, code)
    keys = {name.lower() for name in code.group_by}
    own = [(name, type_) for name, type_ in code.columns if name.lower() in keys]
    types = _unlike_types(rows.select(*(column(name) for name, _ in own)), own)
    if types:
        raise python_findings.other_columns(
            _place(node), model=node.name, missing=[], more=[], types="; ".join(types)
        )
    return row_of_each_key(code, rows)


def _refuse_broken(node: Node, code: PythonCode) -> None:
    """Raise what its modules raise, before Spark's workers import them."""
    with _failing_at_its_place(node, code):
        _loaded(code)


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
        raise _failed(node, code, error) from error


def as_python_failure(node: Node, error: BaseException) -> InfoldError | None:
    """The failure of a model's code in one of Spark's workers; None for any other failure."""
    code = node.model.python
    if code is None:
        return None
    found = [match for match in _FRAME.finditer(str(error)) if match["file"] in code.files]
    if not found:
        return None
    lines = [line.strip() for line in str(error)[found[-1].end() :].splitlines()]
    raised = [line for line in lines if _RAISED.match(line)]
    what = raised[0] if raised else type(error).__name__
    at = _spot(code, found[-1]["file"], int(found[-1]["line"]))
    return python_findings.python_failed(at, model=node.name, what=what[:500])


_FRAME = re.compile(r'File "(?P<file>[^"\n]+)", line (?P<line>\d+)')
_RAISED = re.compile(r"[A-Za-z_][\w.]*(?:Error|Exception|Interrupt|Exit|Iteration|Warning)\b")


def _failed(node: Node, code: PythonCode, error: BaseException) -> InfoldError:
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
        return python_findings.package_missing(at, model=node.name, module=module)
    words = str(error).strip().splitlines() or [""]
    what = f"{type(error).__name__}: {words[0]}".removesuffix(": ")
    return python_findings.python_failed(at, model=node.name, what=what[:500])


def _missing_module(error: BaseException) -> str | None:
    """The package that an exception of an import, or of Spark's check for one, is about."""
    if isinstance(error, ModuleNotFoundError):
        return error.name
    found = _NOT_INSTALLED.search(str(error)) if isinstance(error, PySparkImportError) else None
    return found["package"] if found else None


_NOT_INSTALLED = re.compile(r"(?P<package>\w+( >= [\d.]+)?) must be installed")


def _place(node: Node) -> Spot:
    """The function of a model."""
    code = node.model.python
    assert code is not None, "a model in Python"
    return _spot(code, code.files[0], node.model.sql_line)


def _spot(code: PythonCode, file: str, line: int) -> Spot:
    [module] = [one for one in code.modules if one.file == file]
    lines = module.source.splitlines()
    text = lines[line - 1] if 0 < line <= len(lines) else ""
    return Spot.of_line(file, line, text)


# -- what it returns


def _with_declared_columns(node: Node, code: PythonCode, rows: DataFrame) -> DataFrame:
    found = {field.name.lower() for field in rows.schema.fields}
    declared = {name.lower() for name, _ in code.columns}
    types = _unlike_types(rows, code.columns)
    missing = [name for name, _ in code.columns if name.lower() not in found]
    more = [field.name for field in rows.schema.fields if field.name.lower() not in declared]
    twice = len(rows.columns) - len(found)
    if missing or more or types or twice:
        more += ["two columns of one name"] if twice else []
        raise python_findings.other_columns(
            _place(node), model=node.name, missing=missing, more=more, types="; ".join(types)
        )
    return rows.select(*(column(name).alias(name) for name, _ in code.columns))


def _unlike_types(rows: DataFrame, declared: Sequence[tuple[str, str]]) -> list[str]:
    """Columns of another type than they are declared with, each with both."""
    found = {field.name.lower(): field.dataType for field in rows.schema.fields}
    types = []
    for name, text in declared:
        has, wanted = found.get(name.lower()), _type(text)
        if has is not None and not _same_type(has, wanted):
            types.append(f"{name} is {has.simpleString()}, declared {wanted.simpleString()}")
    return types


@lru_cache(maxsize=1024)
def _type(text: str) -> T.DataType:
    return T.DataType.fromDDL(text)


def _same_type(one: T.DataType, other: T.DataType) -> bool:
    """Whether two types are the same, whatever may be NULL in them."""
    return _nullable(one) == _nullable(other)


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
def _loaded(code: PythonCode) -> Callable[..., Any]:
    """The function of a code; its modules are executed once."""
    return _Modules(code).function()


class _Modules:
    """The modules of one code, each executed when it is first imported."""

    def __init__(self, code: PythonCode) -> None:
        self._code = code
        self._texts = {one.name: one for one in code.modules}
        self._made: dict[str, ModuleType] = {}
        self._own = f"infold_project_{sha256(repr(code).encode()).hexdigest()[:12]}"
        self._builtins = {**vars(builtins), "__import__": self._import}

    def function(self) -> Callable[..., Any]:
        """The model's function."""
        found: Callable[..., Any] = getattr(
            self._executed(self._code.modules[0]), self._code.function
        )
        assert callable(found), "a function with that name is in the file"
        return found

    def _executed(self, module: PythonModule) -> ModuleType:
        if module.name in self._made:
            return self._made[module.name]
        made = ModuleType(f"{self._own}.{module.name or 'model'}")
        vars(made)["__builtins__"] = self._builtins
        self._made[module.name] = made
        # Some libraries look a module up by its name while its classes are made. Later nobody may
        # find it there: what has a module that can be imported is sent to workers by its name.
        sys.modules[made.__name__] = made
        try:
            compiled = compile(module.source, module.file, "exec", dont_inherit=True)
            exec(compiled, vars(made))  # noqa: S102 (the code of the project is what a model is)
        except BaseException:
            del self._made[module.name]
            raise
        finally:
            sys.modules.pop(made.__name__, None)
        return made

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
            written = (globals_ or {})["__name__"].removeprefix(f"{self._own}.")
            name = ".".join([*written.split(".")[:-level], *([name] if name else [])])
        if name.split(".")[0] != PROJECT_PACKAGE:
            return builtins.__import__(name, globals_, locals_, fromlist or (), level)
        if name in self._texts:
            self._executed(self._texts[name])
        for one in fromlist or ():
            if f"{name}.{one}" in self._texts:
                self._executed(self._texts[f"{name}.{one}"])
        if fromlist and name in self._made:
            return self._made[name]
        return self._package(name if fromlist else PROJECT_PACKAGE)

    def _package(self, name: str) -> ModuleType:
        """A folder of modules, with those that were imported."""
        package = ModuleType(f"{self._own}.{name}")
        for full, module in self._made.items():
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
