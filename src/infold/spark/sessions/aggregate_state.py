"""
What travels with an island for an aggregate: columns of state, and values made from them.

An aggregate is *mergeable* when a small state says enough of an island's events. The state is a
tuple of :class:`StateColumn`. One that the stored row shows anyway (``count(*) AS events``) is
restored from there; the others go into the row's ``_state``.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from pyspark.sql import types as T

TIME = "__t"
"""The event's time in microseconds, in prepared events."""


ORDER = "__order"
"""
Stands in SQL for the total order of events, a struct; :meth:`CompiledAggregates.over` fills it in.
"""


class EvaluationMode(Enum):
    """How an aggregate over events has to be evaluated."""

    ANY = "any"
    """The result does not depend on the order of events."""
    ORDERED = "ordered"
    """One event after the other, in the total order, with no partial results merged."""
    COLLECTED = "collected"
    """Through a buffer object of Spark's own; kept apart, for it would unorder the others."""


@dataclass(frozen=True, slots=True)
class StateColumn:
    """
    A column that travels with an island.

    ``events`` is SQL that aggregates prepared events, ``merge`` SQL that aggregates islands (None:
    cannot be merged), ``restore`` SQL that finds it in a stored row (None: it is in ``_state``).
    """

    name: str
    events: str
    merge: str | None = None
    restore: str | None = None
    way: EvaluationMode = EvaluationMode.ANY


@dataclass(frozen=True, slots=True)
class FirstOrLast:
    """
    A first or last value: which parts hold its time and itself. Equal times are ambiguous.

    ``argument`` is the column of prepared events it is picked from, ``where`` the FILTER clause
    that says which events take part; at the ``edge`` all do, and the time is the island's own.
    """

    at: str
    value: str
    last: bool
    argument: str
    where: str
    edge: bool


@dataclass(frozen=True, slots=True)
class PreparedArguments:
    """One aggregate's columns in prepared events: argument, and condition to take part."""

    argument: str
    condition: str | None

    def where(self, *more: str) -> str:
        """The FILTER clause: the condition and ``more``."""
        tests = [*([self.condition] if self.condition else []), *more]
        return f" FILTER (WHERE {' AND '.join(tests)})" if tests else ""


@dataclass(frozen=True, slots=True)
class Compiled:
    """One aggregate: its state, SQL for its value, and what it picks."""

    parts: tuple[StateColumn, ...]
    value: str
    pick: FirstOrLast | None = None
    raw: bool = False


def orderable(type_: T.DataType) -> bool:
    """Whether Spark can compare values of the type."""
    if isinstance(type_, T.ArrayType):
        return orderable(type_.elementType)
    if isinstance(type_, T.StructType):
        return all(orderable(field.dataType) for field in type_.fields)
    return not isinstance(type_, T.MapType | T.VariantType)
