"""Python functions of a project made known to a Spark session, each once by its own name."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any
from weakref import WeakKeyDictionary

import pyarrow as pa
from pyspark.sql import SparkSession
from pyspark.sql import types as T
from pyspark.sql.pandas.functions import ArrowUDFType, arrow_udf
from pyspark.sql.pandas.types import to_arrow_type
from pyspark.sql.types import ArrayType, BooleanType

from infold.core.functions import FunctionCode
from infold.core.project import Node
from infold.spark.python_functions.author_code import (
    AuthorCode,
    FunctionFailedError,
    WrongValueError,
    as_column,
    first_line,
    named,
    shown,
    values_of,
)

_known: WeakKeyDictionary[SparkSession, set[str]] = WeakKeyDictionary()


def register_functions(spark: SparkSession, nodes: Iterable[Node]) -> None:
    """Make the Python functions known that some models call; those that are known stay."""
    known = _known.setdefault(spark, set())
    for node in nodes:
        for called in node.model.functions:
            code = called.python
            if code is not None and code.registered not in known:
                spark.udf.register(code.registered, _arrow_function(code))
                known.add(code.registered)


def scalar_function(call: Callable[..., pa.Array], returns: T.DataType) -> Any:
    """A function of Spark's over columns of Arrow: batches of rows -> as many results."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # it prefers type hints, which say no type
        return arrow_udf(call, returns, ArrowUDFType.SCALAR)


def _arrow_function(code: FunctionCode) -> Any:
    returns = T.DataType.fromDDL(code.returns)
    function = scalar_function(ArrowCall(code, to_arrow_type(returns)).__call__, returns)
    return function if code.deterministic else function.asNondeterministic()


# A function of rows is called once for each row, with plain Python values (`values_of`). One over
# `arrow` is called with the columns as they are, one over `pandas` with Series of Arrow's types,
# which know NULL from NaN.


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

            given = [column.to_pandas(types_mapper=pd.ArrowDtype) for column in columns]
        try:
            results = function(*given)
        except BaseException as error:  # noqa: BLE001 (also an exit: the worker would be lost)
            raise self._author.failed(error) from None
        return self._as_column(results, len(columns[0]))

    @property
    def _author(self) -> AuthorCode:
        return AuthorCode.of(self.code)

    def _by_row(self, function: Callable[..., Any], columns: Sequence[pa.Array]) -> pa.Array:
        rows = list(zip(*map(values_of, columns), strict=True))
        results = []
        for row in rows:
            try:
                results.append(function(*row))
            except BaseException as error:  # noqa: BLE001 (as above)
                raise self._author.failed(error, _arguments(row)) from None
        try:
            return as_column(results, self.returns)
        except WrongValueError as error:
            value = shown(results[error.at])
            raise self._wrong_value(value, error.why, _arguments(rows[error.at])) from None

    def _as_column(self, returned: Any, rows: int) -> pa.Array:
        try:
            if self.code.over == "pandas" and not hasattr(returned, "to_numpy"):
                raise TypeError("it is no Series")
            column = pa.array(returned) if self.code.over == "pandas" else returned
            if isinstance(column, pa.ChunkedArray):
                column = column.combine_chunks()
            if not isinstance(column, pa.Array):
                raise TypeError("it is no array of Arrow")
            if len(column) != rows:
                raise TypeError(f"it has {len(column):,} values for {rows:,} rows")
            return column if column.type == self.returns else column.cast(self.returns)
        except (pa.ArrowException, TypeError, ValueError) as error:
            raise self._wrong_value(shown(type(returned).__name__), first_line(error)) from None

    def _wrong_value(self, value: str, why: str, given: str = "") -> FunctionFailedError:
        return self._author.wrong(
            f"returned {value}, which is no {named(self.returns)}: {why}", given
        )


def _arguments(row: Sequence[object]) -> str:
    return ", ".join(map(shown, row))


# A rule is a generator. It is handed one event and has to answer before it is handed the next, so
# an answer cannot depend on what comes later. With each session it starts again, so an answer does
# not depend on what was before. Events of one instant are never parted: if a rule ends the session
# at any of them, the next one begins with the first of them.

Event = Mapping[str, Any]
"""``time``, an instant in UTC, and the parameters of the rule."""


def rule_function(code: FunctionCode) -> Any:
    """
    The rule as a function of Spark's: the events of a session -> which of them begin another.

    The former is an array of structs in order, with ``time`` first; the latter an array of booleans
    as long.
    """
    return session_function(RuleCall(code).__call__)


def session_function(call: Callable[[pa.Array], pa.Array]) -> Any:
    """A function of Spark's that has answers for the events of sessions."""
    return scalar_function(call, ArrayType(BooleanType()))


@dataclass(frozen=True)
class RuleCall:
    """A rule as Spark calls it, for a batch of sessions."""

    code: FunctionCode

    def __call__(self, column: pa.Array) -> pa.Array:
        """Which events begin a session."""
        author = AuthorCode.of(self.code)
        rule = author.loaded()
        answers = [self._begins_of_session(author, rule, session) for session in values_of(column)]
        return pa.array(answers, pa.list_(pa.bool_()))

    def _begins_of_session(
        self, author: AuthorCode, rule: Callable[..., Any], session: Sequence[Event]
    ) -> list[bool]:
        flags: list[bool] = []
        run = _RuleRun(author, rule)
        for number, (_, instant) in enumerate(groupby(session, key=lambda event: event["time"])):
            events = list(instant)
            answers = [run.begins(event) for event in events]
            begins = number > 0 and any(answers)
            if begins:
                run.close()
                run = _RuleRun(author, rule)
                for event in events:
                    run.begins(event)
            flags += [begins, *([False] * (len(events) - 1))]
        run.close()
        return flags


class _RuleRun:
    """One run of a rule: over the events of one session, from its first."""

    def __init__(self, author: AuthorCode, rule: Callable[..., Any]) -> None:
        self._author = author
        self._given: list[Event] = []
        self._answers: Any = self._call_author(lambda: iter(rule(self._handed_out())))

    def begins(self, event: Event) -> bool:
        """What the rule answers for the next event."""
        self._given.append(event)
        answer = self._call_author(lambda: next(self._answers, _NOTHING), event)
        if answer is _NOTHING:
            raise self._author.wrong("ended before the last event", shown(event))
        if self._given:
            raise self._author.wrong("yielded twice for one event, or before the first", "")
        if not isinstance(answer, bool):
            raise self._author.wrong(f"yielded {shown(answer)}, which is no bool", shown(event))
        return answer

    def close(self) -> None:
        """No more events: the rule is left where it is."""
        close = getattr(self._answers, "close", None)
        if close is not None:
            self._call_author(close)

    def _handed_out(self) -> Iterator[Event]:
        while True:
            if not self._given:
                raise self._author.wrong(
                    "took the next event before it yielded for the one before", ""
                )
            yield self._given.pop()

    def _call_author(self, call: Callable[[], Any], event: Event | None = None) -> Any:
        try:
            return call()
        except FunctionFailedError:
            raise
        except BaseException as error:  # noqa: BLE001 (also an exit: the worker would be lost)
            raise self._author.failed(error, "" if event is None else shown(event)) from None


_NOTHING = object()
