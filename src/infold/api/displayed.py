"""
What the methods of a :class:`infold.api.notebook.Project` return: values that show themselves.

Each prints as the command of its name does, and a notebook draws it. ``value`` is what the function
of ``infold.api`` returns, ``to_dict()`` the result as the command has it with ``--json``.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from infold.core import plan, report
from infold.core.arrow_values import rows_of
from infold.messages import command_errors
from infold.render.html import rows_html, screen_html
from infold.render.table import table_screen

if TYPE_CHECKING:
    import duckdb
    import pandas as pd
    import polars as pl
    import pyarrow as pa

Value = TypeVar("Value")
JsonObject = dict[str, Any]

SHOWN_ROWS = 20
"""How many rows of a table are drawn; the conversions have all."""


@dataclass(frozen=True, repr=False)
class _Displayed(Generic[Value]):
    """A result of ``infold.api`` with the screen that the command prints of it."""

    value: Value
    text: str = field(compare=False)
    _shape: Callable[[], JsonObject] = field(compare=False)

    def to_dict(self) -> JsonObject:
        """The result as the command prints it with ``--json``."""
        return self._shape()

    def __repr__(self) -> str:
        return self.text

    def _repr_html_(self) -> str:
        return screen_html(self.text)


class Plan(_Displayed[plan.Plan]):
    """What a run would do, and why; true if that is anything."""

    def __bool__(self) -> bool:
        return bool(self.value.steps)


class Run(_Displayed[report.RunResult]):
    """What a run did."""


class Explanation(_Displayed[report.Explanation]):
    """What is known about a model, or about one cell of it."""


class Status(_Displayed[tuple[report.ModelStatus, ...]]):
    """The state of each model."""


class Verification(_Displayed[report.VerificationReport]):
    """Whether the tables equal a rebuild; true if they do."""

    def __bool__(self) -> bool:
        return self.value.equal


@dataclass(frozen=True, repr=False)
class Table:
    """
    Rows of a table, which are read when they are asked for, each time as they are then.

    A notebook draws the first ones.
    """

    name: str
    _read: Callable[[int | None], pa.Table] = field(compare=False)
    limit: int | None = None

    def to_arrow(self) -> pa.Table:
        """All rows as a table of pyarrow."""
        return self._read(self.limit)

    def to_pandas(self) -> pd.DataFrame:
        """All rows as a data frame of pandas, which has to be installed."""
        _check_installed("pandas", "to_pandas")
        return self.to_arrow().to_pandas()

    def to_polars(self) -> pl.DataFrame:
        """All rows as a data frame of Polars, which has to be installed."""
        _check_installed("polars", "to_polars")
        import polars as pl

        found = pl.from_arrow(self.to_arrow())
        assert isinstance(found, pl.DataFrame), "a table of columns is no series"
        return found

    def to_duckdb(
        self, connection: duckdb.DuckDBPyConnection | None = None
    ) -> duckdb.DuckDBPyRelation:
        """
        All rows as a relation of DuckDB, which has to be installed.

        In ``connection``, or in DuckDB's own, which ``duckdb.sql`` uses.
        """
        _check_installed("duckdb", "to_duckdb")
        import duckdb

        return (connection or duckdb.default_connection()).from_arrow(self.to_arrow())

    def __repr__(self) -> str:
        columns, rows, more = self._first()
        return table_screen(self.name, columns, rows, more=None if more else 0)

    def _repr_html_(self) -> str:
        columns, rows, more = self._first()
        note = f"{self.name}: {len(rows)} rows" + (" shown, there are more." if more else ".")
        return rows_html(columns, rows, note)

    def _first(self) -> tuple[Sequence[str], list[list[Any]], bool]:
        """The columns, the first rows, and whether there are more."""
        most = SHOWN_ROWS + 1 if self.limit is None else min(self.limit, SHOWN_ROWS + 1)
        found = self._read(most)
        rows = [list(row.values()) for row in rows_of(found.slice(0, SHOWN_ROWS))]
        return found.column_names, rows, found.num_rows > SHOWN_ROWS


def _check_installed(package: str, method: str) -> None:
    from importlib.util import find_spec

    if find_spec(package) is None:
        raise command_errors.package_missing(package=package, method=method)
