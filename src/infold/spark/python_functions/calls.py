"""
Calls of a project's Python functions over columns of Arrow, in Spark's Python workers.

A function of rows is called once for each row, with plain Python values: NULL is None, TIMESTAMP an
aware datetime in UTC, DECIMAL a Decimal, BIGINT an int, BINARY bytes, an array a list, a struct a
dict, a map a dict. What it returns has to be a value of the declared type, exactly: nothing is
rounded, parsed or made NULL. One over ``arrow`` is called with the columns as they are, one over
``pandas`` with Series of Arrow's types, which know NULL from NaN.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime
from typing import Any

import pyarrow as pa

from infold.core.functions import FunctionCode
from infold.spark.python_functions.modules import module_of
from infold.system.failures import FUNCTION_FAILED


class FunctionFailedError(Exception):
    """A function of the project failed; the message is what ``system.failures`` reads again."""


@dataclass(frozen=True)
class ArrowCall:
    """A function of the project as Spark calls it. ``returns`` is the type of the result."""

    code: FunctionCode
    returns: pa.DataType

    def __call__(self, *columns: pa.Array) -> pa.Array:
        """The results for a batch of rows."""
        function = self._loaded()
        if self.code.over == "row":
            return self._by_row(function, columns)
        given: Sequence[Any] = columns
        if self.code.over == "pandas":
            import pandas as pd  # type: ignore[import-untyped]

            given = [one.to_pandas(types_mapper=pd.ArrowDtype) for one in columns]
        try:
            found = function(*given)
        except BaseException as error:  # noqa: BLE001 (also an exit: the worker would be lost)
            raise self._failed(error) from None
        return self._as_column(found, len(columns[0]))

    def _loaded(self) -> Callable[..., Any]:
        try:
            module = module_of(self.code.files, self.code.registered.rpartition("__")[2])
        except BaseException as error:  # noqa: BLE001 (as above)
            raise self._failed(error) from None
        found: Callable[..., Any] = getattr(module, self.code.function)
        return found

    def _by_row(self, function: Callable[..., Any], columns: Sequence[pa.Array]) -> pa.Array:
        rows = zip(*map(_values, columns), strict=True)
        found = []
        for row in rows:
            try:
                value = function(*row)
            except BaseException as error:  # noqa: BLE001 (as above)
                raise self._failed(error, row) from None
            wrong = next(_unlike(value, self.returns), None)
            if wrong is not None:
                raise self._wrong_value(value, row, wrong)
            found.append(value)
        try:
            return pa.array(found, type=self.returns)
        except (pa.ArrowException, TypeError, ValueError, OverflowError) as error:
            raise self._unfit(found, error) from None

    def _unfit(self, found: Sequence[object], error: Exception) -> FunctionFailedError:
        """Which value is none of the type; Arrow says it of the column."""
        for value in found:
            try:
                pa.array([value], type=self.returns)
            except (pa.ArrowException, TypeError, ValueError, OverflowError) as one:
                return self._wrong_value(value, (), _first_line(one))
        return self._wrong_value("", (), _first_line(error))

    def _as_column(self, found: Any, rows: int) -> pa.Array:
        try:
            if self.code.over == "pandas" and not hasattr(found, "to_numpy"):
                raise TypeError("it is no Series")
            column = pa.array(found) if self.code.over == "pandas" else found
            if isinstance(column, pa.ChunkedArray):
                column = column.combine_chunks()
            if not isinstance(column, pa.Array):
                raise TypeError("it is no array of Arrow")
            if len(column) != rows:
                raise TypeError(f"it has {len(column):,} values for {rows:,} rows")
            return column if column.type == self.returns else column.cast(self.returns)
        except (pa.ArrowException, TypeError, ValueError) as error:
            raise self._wrong_value(type(found).__name__, (), _first_line(error)) from None

    def _failed(self, error: BaseException, row: Sequence[object] = ()) -> FunctionFailedError:
        """An exception of the author's code, with the last line of it that was executed."""
        texts = dict(self.code.files)
        file, line, at = self.code.files[0][0], 1, error.__traceback__
        while at is not None:
            if at.tb_frame.f_code.co_filename in texts:
                file, line = at.tb_frame.f_code.co_filename, at.tb_lineno
            at = at.tb_next
        what = f"{type(error).__name__}: {_first_line(error)}".removesuffix(": ")
        return self._error(file, line, f"raised {what}", row)

    def _wrong_value(self, value: object, row: Sequence[object], why: str) -> FunctionFailedError:
        file, text = self.code.files[0]
        found = (
            number
            for number, line in enumerate(text.splitlines(), 1)
            if line.split("(")[0].split() == ["def", self.code.function]
        )
        shown = f"returned {_shown(value)}, which is no {self.code.returns}: {why}"
        return self._error(file, next(found, 1), shown, row)

    def _error(self, file: str, line: int, what: str, row: Sequence[object]) -> FunctionFailedError:
        lines = dict(self.code.files)[file].splitlines()
        facts = {
            "function": self.code.function,
            "file": file,
            "line": line,
            "text": lines[line - 1] if line <= len(lines) else "",
            "what": what,
            "arguments": ", ".join(map(_shown, row)),
        }
        return FunctionFailedError(FUNCTION_FAILED + json.dumps(facts))


def _unlike(value: object, type_: pa.DataType) -> Iterator[str]:
    """Values that Arrow would take for one of the type, and change."""
    if value is None:
        return
    if pa.types.is_list(type_):
        yield from (why for one in _items(value) for why in _unlike(one, type_.value_type))
    elif pa.types.is_map(type_):
        for key, one in value.items() if isinstance(value, dict) else _items(value):
            yield from _unlike(key, type_.key_type)
            yield from _unlike(one, type_.item_type)
    elif pa.types.is_struct(type_) and isinstance(value, dict):
        known = {field.name for field in type_}
        yield from (f"it has no field {name!r}" for name in value if name not in known)
        for field in type_:
            yield from _unlike(value.get(field.name), field.type)
    else:
        yield from _unlike_scalar(value, type_)


def _unlike_scalar(value: object, type_: pa.DataType) -> Iterator[str]:
    if isinstance(value, bool) and not pa.types.is_boolean(type_):
        yield "a bool is no number"
    elif isinstance(value, float) and pa.types.is_integer(type_):
        yield "a float is no whole number"
    elif isinstance(value, str) and pa.types.is_binary(type_):
        yield "a str is not bytes"
    elif pa.types.is_date(type_) and (isinstance(value, datetime) or not isinstance(value, date)):
        yield "it is no date"
    elif pa.types.is_timestamp(type_):
        yield from _unlike_time(value, type_)


def _unlike_time(value: object, type_: pa.DataType) -> Iterator[str]:
    if not isinstance(value, datetime):
        yield "it is no datetime"
    elif type_.tz is not None and value.tzinfo is None:
        yield "a datetime without a time zone is no instant"
    elif type_.tz is None and value.tzinfo is not None:
        yield "a datetime with a time zone is no local time"


def _items(value: object) -> Sequence[Any]:
    return value if isinstance(value, list | tuple) else ()


def _values(column: pa.Array) -> list[Any]:
    """The values of a column as a function of rows is given them."""
    values = column.to_pylist()
    return [_plain(value, column.type) for value in values] if _is_apart(column.type) else values


def _is_apart(type_: pa.DataType) -> bool:
    """Whether Arrow's own values of a type, or of a part of it, are not those that are given."""
    parts = (type_.field(at).type for at in range(type_.num_fields))
    return pa.types.is_timestamp(type_) or pa.types.is_map(type_) or any(map(_is_apart, parts))


def _plain(value: Any, type_: pa.DataType) -> Any:
    """A value of Arrow's with its instants in Python's UTC, and its maps as dicts."""
    if value is None:
        return None
    if pa.types.is_timestamp(type_):
        return value if type_.tz is None else value.astimezone(UTC)
    if pa.types.is_map(type_):
        key, item = type_.key_type, type_.item_type
        return {_plain(one, key): _plain(two, item) for one, two in value}
    if pa.types.is_list(type_):
        return [_plain(one, type_.value_type) for one in value]
    if pa.types.is_struct(type_):
        return {field.name: _plain(value[field.name], field.type) for field in type_}
    return value


def _shown(value: object) -> str:
    text = repr(value)
    return text if len(text) <= _SHOWN else text[:_SHOWN] + "…"


_SHOWN = 60


def _first_line(error: BaseException) -> str:
    return next(iter(str(error).splitlines()), "")[:300]
