"""
Schemas of the frames that the steps of a fold hand on: columns, Spark types, meaning.

A module declares the schemas of its frames at its head, and ``@returns`` names the one that a
function returns. Nothing is checked in a run. The tests set ``CHECKED`` and so compare every frame
of the random programs with its schema.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import wraps
from typing import ParamSpec, TypeVar

from pyspark.sql import DataFrame

_P = ParamSpec("_P")
_F = TypeVar("_F", bound=DataFrame | None)

CHECKED = False
"""Whether frames are compared with their schemas: in tests only, as it asks Spark for each type."""

ANY = "any"
"""A type that depends on the model: that of a user column, of an aggregate, of a table's row."""


@dataclass(frozen=True, slots=True)
class FrameColumn:
    """
    A column of a frame.

    ``type`` is Spark's name for it (``bigint``, ``array<…>`` for an array of anything), or ``ANY``.
    ``when`` names the models that have the column, if not all do.
    """

    name: str
    type: str
    meaning: str
    when: str = ""

    def fits(self, type_: str) -> bool:
        """Whether a column of this type is what is declared."""
        start, inexact, _ = self.type.partition("…")
        return self.type == ANY or (type_.startswith(start) if inexact else type_ == start)


@dataclass(frozen=True, slots=True)
class FrameSchema:
    """What a row of a frame is, its columns, and which further ones there may be."""

    row: str
    columns: tuple[FrameColumn, ...]
    others: str = ""
    """What columns without a declaration are; empty if there are none."""

    def plus(self, row: str, *columns: FrameColumn) -> FrameSchema:
        """A schema that has more columns."""
        return FrameSchema(row, (*self.columns, *columns), self.others)

    def check(self, frame: DataFrame) -> None:
        """Raise AssertionError unless a frame has these columns."""
        types = dict(frame.dtypes)
        for column in self.columns:
            assert column.when or column.name in types, (
                f"{self.row}: no {column.name} in {[*types]}"
            )
            type_ = types.pop(column.name, None)
            assert type_ is None or column.fits(type_), f"{self.row}: {column.name} is {type_}"
        assert self.others or not types, f"{self.row}: {types} is not declared"


def returns(schema: FrameSchema) -> Callable[[Callable[_P, _F]], Callable[_P, _F]]:
    """Declare the schema of the frame that a function returns, if it returns one."""

    def declared(function: Callable[_P, _F]) -> Callable[_P, _F]:
        @wraps(function)
        def checked(*args: _P.args, **kwargs: _P.kwargs) -> _F:
            frame = function(*args, **kwargs)
            if CHECKED and frame is not None:
                schema.check(frame)
            return frame

        return checked

    return declared
