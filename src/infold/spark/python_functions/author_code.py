"""
Code of a project's author in Spark's Python workers: loaded from its text, and its failures; and
the values of rows that it is given, and may return.
"""

from __future__ import annotations

import builtins
import importlib
import json
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime
from decimal import Decimal
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from importlib.util import spec_from_loader
from types import ModuleType
from typing import Any, Self

import pyarrow as pa
from pyspark.sql.pandas.types import from_arrow_type

from infold.core.functions import FunctionCode
from infold.system.failures import FUNCTION_FAILED


class FunctionFailedError(Exception):
    """Code of the project failed; the message is what ``system.failures`` reads again."""


@dataclass(frozen=True)
class AuthorCode:
    """A function of one of the project's files; ``digest`` is of all ``files`` that it needs."""

    function: str
    files: tuple[tuple[str, str], ...]
    digest: str

    @classmethod
    def of(cls, code: FunctionCode) -> Self:
        """That of a function; the digest is at the end of the name that it is registered by."""
        return cls(code.function, code.files, code.registered.rpartition("__")[2])

    def loaded(self) -> Callable[..., Any]:
        """The function; its modules are executed once in a process."""
        try:
            module = module_of(self.files, self.digest)
        except BaseException as error:  # noqa: BLE001 (also an exit: the worker would be lost)
            raise self.failed(error) from None
        function: Callable[..., Any] = getattr(module, self.function)
        return function

    def failed(self, error: BaseException, given: str = "") -> FunctionFailedError:
        """An exception of the author's code, with the last line of it that was executed."""
        texts = dict(self.files)
        file, line, at = self.files[0][0], 1, error.__traceback__
        while at is not None:
            if at.tb_frame.f_code.co_filename in texts:
                file, line = at.tb_frame.f_code.co_filename, at.tb_lineno
            at = at.tb_next
        what = f"{type(error).__name__}: {first_line(error)}".removesuffix(": ")
        return self._error(file, line, f"raised {what}", given)

    def wrong(self, what: str, given: str = "") -> FunctionFailedError:
        """A result that is not what is declared; the place is the function."""
        file, text = self.files[0]
        line_numbers = (
            number
            for number, line in enumerate(text.splitlines(), 1)
            if line.split("(")[0].split() == ["def", self.function]
        )
        return self._error(file, next(line_numbers, 1), what, given)

    def _error(self, file: str, line: int, what: str, given: str) -> FunctionFailedError:
        lines = dict(self.files)[file].splitlines()
        facts = {
            "function": self.function,
            "file": file,
            "line": line,
            "text": lines[line - 1] if line <= len(lines) else "",
            "what": what,
            "arguments": given,
        }
        return FunctionFailedError(FUNCTION_FAILED + json.dumps(facts))


# Each version of a function has modules of its own, below a package with its digest. So two
# versions can be in one process, and a file that changed meanwhile does not matter. An absolute
# import in such a module finds the project's modules of the same version first.


def module_of(files: Sequence[tuple[str, str]], digest: str) -> ModuleType:
    """The module of the first file, executed once in this process for each digest."""
    package = f"_infold_{digest}"
    if package not in sys.modules:
        finder = _ProjectModules(package, dict(files))
        sys.meta_path.append(finder)
        root = ModuleType(package)
        root.__path__ = []
        sys.modules[package] = root
    return importlib.import_module(f"{package}.{_dotted(files[0][0])}")


def _dotted(path: str) -> str:
    return path.removesuffix(".py").removesuffix("/__init__").replace("/", ".")


class _ProjectModules(MetaPathFinder, Loader):
    """Finds the modules below one package among the texts of a project's files."""

    def __init__(self, package: str, files: Mapping[str, str]) -> None:
        self.package = package
        self.files = files

    def find_spec(
        self, fullname: str, path: object = None, target: object = None
    ) -> ModuleSpec | None:
        """The module, if it is below the package and one of the files, or a folder of them."""
        del path, target
        if not fullname.startswith(f"{self.package}."):
            return None
        name = fullname.removeprefix(f"{self.package}.")
        if not self._knows(name):
            return None
        return spec_from_loader(fullname, self, is_package=self._is_package(name))

    def _file(self, name: str) -> str | None:
        path = name.replace(".", "/")
        return next(
            (file for file in (f"{path}/__init__.py", f"{path}.py") if file in self.files), None
        )

    def _is_package(self, name: str) -> bool:
        folder = name.replace(".", "/") + "/"
        return any(path.startswith(folder) for path in self.files)

    def _knows(self, name: str) -> bool:
        return self._file(name) is not None or self._is_package(name)

    def exec_module(self, module: ModuleType) -> None:
        """Execute the text of a module; a folder without one has nothing to execute."""
        path = self._file(module.__name__.removeprefix(f"{self.package}."))
        if path is None:
            return
        module.__file__ = path
        own_builtins = {**vars(builtins), "__import__": self._import}
        module.__dict__["__builtins__"] = own_builtins
        code = compile(self.files[path], path, "exec", dont_inherit=True)
        exec(code, module.__dict__)  # noqa: S102 (the author's file)

    def _import(
        self,
        name: str,
        globals: Mapping[str, Any] | None = None,  # noqa: A002 (as in builtins.__import__)
        locals: Mapping[str, Any] | None = None,  # noqa: A002
        fromlist: Sequence[str] = (),
        level: int = 0,
    ) -> ModuleType:
        if level or not self._knows(name.split(".", maxsplit=1)[0]):
            return __import__(name, globals, locals, fromlist, level)
        module = importlib.import_module(f"{self.package}.{name}")
        if not fromlist:
            return sys.modules[f"{self.package}.{name.split('.', maxsplit=1)[0]}"]
        for submodule in fromlist:
            if not hasattr(module, submodule) and self._knows(f"{name}.{submodule}"):
                importlib.import_module(f"{self.package}.{name}.{submodule}")
        return module


# NULL is None, TIMESTAMP an aware datetime in UTC, DECIMAL a Decimal, BIGINT an int, BINARY bytes,
# an array a list, a struct a dict, a map a dict. What comes back has to be a value of the declared
# type, exactly: nothing is rounded, parsed or made NULL.


class WrongValueError(Exception):
    """A value that is none of the declared type: which of the values, and why."""

    def __init__(self, at: int, why: str) -> None:
        super().__init__(why)
        self.at, self.why = at, why


def as_column(values: Sequence[object], type_: pa.DataType) -> pa.Array:
    """Values as a column of a type. Raises :class:`WrongValueError`."""
    for at, value in () if _are_all(values, type_) else enumerate(values):
        why = next(_misfits(value, type_), None)
        if why is not None:
            raise WrongValueError(at, why)
    try:
        return pa.array(values, type=type_)
    except _UNFIT as error:
        raise _first_unfit(values, type_, error) from None


def _are_all(values: Sequence[object], type_: pa.DataType) -> bool:
    """Whether the classes of values alone say that Arrow changes none, as they mostly do."""
    known = next((classes for is_one, classes in _CLASSES if is_one(type_)), frozenset[type]())
    return {*map(type, values)} - {type(None)} <= known


_CLASSES: tuple[tuple[Callable[[pa.DataType], bool], frozenset[type]], ...] = (
    (pa.types.is_string, frozenset({str})),
    (pa.types.is_integer, frozenset({int})),
    (pa.types.is_floating, frozenset({float, int})),
    (pa.types.is_boolean, frozenset({bool})),
    (pa.types.is_decimal, frozenset({Decimal})),
    (pa.types.is_binary, frozenset({bytes})),
    (pa.types.is_date, frozenset({date})),
)
_UNFIT = (pa.ArrowException, TypeError, ValueError, OverflowError)


def _first_unfit(values: Sequence[object], type_: pa.DataType, error: Exception) -> WrongValueError:
    """Which value is none of the type; Arrow says it of the column."""
    for at, value in enumerate(values):
        try:
            pa.array([value], type=type_)
        except _UNFIT as cause:
            return WrongValueError(at, first_line(cause))
    return WrongValueError(0, first_line(error))


def _misfits(value: object, type_: pa.DataType) -> Iterator[str]:
    """Values that Arrow would take for one of the type, and change."""
    if value is None:
        return
    if pa.types.is_list(type_):
        yield from (why for item in _items(value) for why in _misfits(item, type_.value_type))
    elif pa.types.is_map(type_):
        for key, item in value.items() if isinstance(value, dict) else _items(value):
            yield from _misfits(key, type_.key_type)
            yield from _misfits(item, type_.item_type)
    elif pa.types.is_struct(type_) and isinstance(value, dict):
        known = {field.name for field in type_}
        yield from (f"it has no field {name!r}" for name in value if name not in known)
        for field in type_:
            yield from _misfits(value.get(field.name), field.type)
    else:
        yield from _unlike_scalar(value, type_)


def _unlike_scalar(value: object, type_: pa.DataType) -> Iterator[str]:
    if isinstance(value, bool) and not pa.types.is_boolean(type_):
        yield "a bool is no number"
    elif isinstance(value, str) and _is_number(type_):
        yield "a str is no number"
    elif isinstance(value, float) and pa.types.is_integer(type_):
        yield "a float is no whole number"
    elif isinstance(value, str) and pa.types.is_binary(type_):
        yield "a str is not bytes"
    elif pa.types.is_date(type_) and (isinstance(value, datetime) or not isinstance(value, date)):
        yield "it is no date"
    elif pa.types.is_timestamp(type_):
        yield from _unlike_time(value, type_)


def _is_number(type_: pa.DataType) -> bool:
    is_one = (pa.types.is_integer, pa.types.is_floating, pa.types.is_decimal)
    return any(is_kind(type_) for is_kind in is_one)


def _unlike_time(value: object, type_: pa.DataType) -> Iterator[str]:
    if not isinstance(value, datetime):
        yield "it is no datetime"
    elif type_.tz is not None and value.tzinfo is None:
        yield "a datetime without a time zone is no instant"
    elif type_.tz is None and value.tzinfo is not None:
        yield "a datetime with a time zone is no local time"


def _items(value: object) -> Sequence[Any]:
    return value if isinstance(value, list | tuple) else ()


def values_of(column: pa.Array) -> list[Any]:
    """The values of a column as a function of rows is given them."""
    values: list[Any] = column.to_pylist()
    if not _is_converted(column.type):
        return values
    return [_as_python(value, column.type) for value in values]


def _is_converted(type_: pa.DataType) -> bool:
    """Whether Arrow's own values of a type, or of a part of it, are not those that are given."""
    parts = (type_.field(at).type for at in range(type_.num_fields))
    return pa.types.is_timestamp(type_) or pa.types.is_map(type_) or any(map(_is_converted, parts))


def _as_python(value: Any, type_: pa.DataType) -> Any:
    """A value of Arrow's with its instants in Python's UTC, and its maps as dicts."""
    if value is None:
        return None
    if pa.types.is_timestamp(type_):
        return value if type_.tz is None else value.astimezone(UTC)
    if pa.types.is_map(type_):
        key, item = type_.key_type, type_.item_type
        return {_as_python(name, key): _as_python(two, item) for name, two in value}
    if pa.types.is_list(type_):
        return [_as_python(element, type_.value_type) for element in value]
    if pa.types.is_struct(type_):
        return {field.name: _as_python(value[field.name], field.type) for field in type_}
    return value


def named(type_: pa.DataType) -> str:
    """A type as a declaration has it."""
    return str(from_arrow_type(type_).simpleString())


def shown(value: object) -> str:
    """A value as messages show it."""
    return _shortened(repr(value), 60)


def shown_rows(value: object) -> str:
    """A row, or several, as messages show what a function was given; times are short."""
    return _shortened(_readable(value), 300)


def _shortened(text: str, most: int) -> str:
    return text if len(text) <= most else text[:most] + "…"


def _readable(value: object) -> str:
    if isinstance(value, dict):
        return "{" + ", ".join(f"{key!r}: {_readable(item)}" for key, item in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(map(_readable, value)) + "]"
    return str(value) if isinstance(value, date | Decimal) else repr(value)


def first_line(error: BaseException) -> str:
    """The first line of what an exception says."""
    return next(iter(str(error).splitlines()), "")[:300]
