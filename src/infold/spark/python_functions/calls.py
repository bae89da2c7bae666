"""
Calls of a project's Python functions over columns of Arrow, in Spark's Python workers.

A function of rows is called once for each row, with plain Python values (``values``). One over
``arrow`` is called with the columns as they are, one over ``pandas`` with Series of Arrow's types,
which know NULL from NaN.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from infold.core.functions import FunctionCode
from infold.spark.python_functions.author_code import AuthorCode, FunctionFailedError
from infold.spark.python_functions.values import (
    WrongValueError,
    as_column,
    first_line,
    named,
    shown,
    values_of,
)


@dataclass(frozen=True)
class ArrowCall:
    """A function of the project as Spark calls it. ``returns`` is the type of the result."""

    code: FunctionCode
    returns: pa.DataType

    def __call__(self, *columns: pa.Array) -> pa.Array:
        """The results for a batch of rows."""
        function = self._author.loaded()
        if self.code.over == "row":
            return self._by_row(function, columns)
        given: Sequence[Any] = columns
        if self.code.over == "pandas":
            import pandas as pd

            given = [one.to_pandas(types_mapper=pd.ArrowDtype) for one in columns]
        try:
            found = function(*given)
        except BaseException as error:  # noqa: BLE001 (also an exit: the worker would be lost)
            raise self._author.failed(error) from None
        return self._as_column(found, len(columns[0]))

    @property
    def _author(self) -> AuthorCode:
        return AuthorCode.of(self.code)

    def _by_row(self, function: Callable[..., Any], columns: Sequence[pa.Array]) -> pa.Array:
        rows = list(zip(*map(values_of, columns), strict=True))
        found = []
        for row in rows:
            try:
                found.append(function(*row))
            except BaseException as error:  # noqa: BLE001 (as above)
                raise self._author.failed(error, _arguments(row)) from None
        try:
            return as_column(found, self.returns)
        except WrongValueError as error:
            value = shown(found[error.at])
            raise self._wrong_value(value, error.why, _arguments(rows[error.at])) from None

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
            raise self._wrong_value(shown(type(found).__name__), first_line(error)) from None

    def _wrong_value(self, value: str, why: str, given: str = "") -> FunctionFailedError:
        return self._author.wrong(
            f"returned {value}, which is no {named(self.returns)}: {why}", given
        )


def _arguments(row: Sequence[object]) -> str:
    return ", ".join(map(shown, row))
