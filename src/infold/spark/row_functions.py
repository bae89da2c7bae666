"""
Models in Python that are functions of rows: of one row of a source, or of all rows of one key.

Spark's workers call the function with plain Python values and nothing else, so what a row gives
follows from that row alone, and what a key gives from its rows. Which rows are together in a batch,
in a file or in a run cannot show.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from hashlib import sha256
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql import types as T
from pyspark.sql.pandas.types import to_arrow_type

from infold.core.python_code import PythonCode
from infold.spark.content import column
from infold.spark.python_functions.author_code import AuthorCode
from infold.spark.python_functions.values import (
    WrongValueError,
    as_column,
    first_line,
    named,
    shown,
    shown_rows,
    values_of,
)

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
    each = F.sort_array(F.collect_list(F.struct(*(column(name).alias(name) for name in given))))
    own = [column(name).alias(name) for name, _ in columns if name.lower() in keys]
    grouped = rows.groupBy(*own).agg(each.alias(_ROWS))
    passed = [name for name in grouped.columns if name != _ROWS]
    schema = T.StructType([grouped.schema[name] for name in passed])
    for name, type_ in filled:
        schema.add(name, type_)
    calls = EachKey(_function(code, filled, frozenset(passed)), tuple(passed))
    found = grouped.mapInArrow(calls.__call__, schema)
    return found.select(*(column(name) for name, _ in columns))


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
            found = function(given)
            if found is None:
                return []
            plural = several and isinstance(found, Iterable) and not isinstance(found, str | bytes)
            rows = list(found) if plural and not isinstance(found, Mapping) else [found]
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
        found = []
        for name, type_ in self.columns:
            try:
                found.append(as_column([row[name] for row in rows], type_))
            except WrongValueError as error:
                value = shown(rows[error.at][name])
                what = f"returned {value} as {name!r}, which is no {named(type_)}: {error.why}"
                raise self.code.wrong(what, shown_rows(given(error.at))) from None
        return found


@dataclass(frozen=True)
class EachRow:
    """Calls a function for each row of batches; see :func:`rows_of_each`."""

    function: RowFunction
    given: tuple[str, ...]
    carried: str | None = None

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """The rows that the rows of each batch give."""
        function = self.function.code.loaded()
        nothing = dict.fromkeys(name for name, _ in self.function.columns)
        for batch in batches:
            problems: Sequence[object] = [None] * batch.num_rows
            if self.carried is not None:
                problems = batch.column(self.carried).field("problem").to_pylist()
            values = [self.function.values(name, batch.column(name)) for name in self.given]
            found, places = [], []
            for at, problem in enumerate(problems):
                if problem is not None:
                    rows = [nothing]
                else:
                    rows = self.function.rows(function, self._row(values, at), several=True)
                found += rows
                places += [at] * len(rows)
            columns = self.function.columns_of(found, partial(self._given, values, places))
            names = [name for name, _ in self.function.columns]
            if self.carried is not None:
                taken = batch.column(self.carried).take(pa.array(places, pa.int64()))
                columns, names = [*columns, taken], [*names, self.carried]
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
            found, places = [], []
            every = batch.column(_ROWS)
            for at in range(batch.num_rows):  # one key after the other: some have many rows
                [rows] = self.function.values("rows", every.slice(at, 1))
                own = self.function.rows(function, rows, several=False)
                found += own
                places += [at] * len(own)
            taken = [batch.column(name).take(pa.array(places, pa.int64())) for name in self.keys]
            columns = [
                *taken,
                *self.function.columns_of(found, partial(self._given, every, places)),
            ]
            names = [*self.keys, *(name for name, _ in self.function.columns)]
            yield pa.RecordBatch.from_arrays(columns, names=names)

    def _given(self, every: pa.Array, places: Sequence[int], at: int) -> Any:
        [rows] = self.function.values("rows", every.slice(places[at], 1))
        return rows
