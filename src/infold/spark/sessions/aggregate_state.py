"""
The state of an aggregate: columns of an island, from which its value is computed.

An aggregate is *mergeable* if its value for two islands together follows from a small state of
each. The state is a tuple of :class:`StateColumn`. One that the stored row shows anyway
(``count(*) AS events``) is restored from there; the others are stored in the row's ``_state``.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from pyspark.sql import Column
from pyspark.sql import functions as F
from pyspark.sql import types as T

ORDER = "__order"
"""
A placeholder in SQL for the total order of events, a struct.

:meth:`CompiledAggregates.events_sql` replaces it.
"""


class EvaluationMode(Enum):
    """How an aggregate over events has to be evaluated."""

    ANY = "any"
    """The result does not depend on the order of events."""
    ORDERED = "ordered"
    """One event after the other, in the total order, with no partial results merged."""
    COLLECTED = "collected"
    """Through a buffer object of Spark's own; in a query of its own, or it unorders the others."""


@dataclass(frozen=True, slots=True)
class StateColumn:
    """
    A column of an island, beside its ends and its number of events.

    ``events`` is SQL that aggregates prepared events, ``merge`` SQL that aggregates islands (None:
    cannot be merged), ``restore`` SQL that finds it in a stored row (None: it is in ``_state``).
    """

    name: str
    events: str
    merge: str | None = None
    restore: str | None = None
    mode: EvaluationMode = EvaluationMode.ANY

    @classmethod
    def of_new_events(cls, name: str, function: str, column: str) -> StateColumn:
        """A state column of new events alone: nothing stored has it."""
        return cls(name, f"{function}({column})", f"{function}({name})", restore="NULL")


@dataclass(frozen=True, slots=True)
class FirstOrLast:
    """
    A first or last value: the state columns of its time (``at``) and of itself (``value``).

    ``argument`` is the column of prepared events that it is taken from, ``where`` the FILTER clause
    for the events that take part. At the ``edge`` all do, and the time is the island's own end.
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
    """One aggregate: its state, SQL for its value, and its first or last value if it is one."""

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


def differ_in_a_tie(pick: FirstOrLast, known: str) -> Column:
    """
    Whether a stored and a new event tie for first or last, with different values.

    The state knows the time of the event and not its key, so such a component is read again.
    """
    end, by = ("max", "max_by") if pick.last else ("min", "min_by")
    old, new = f"FILTER (WHERE {known})", f"FILTER (WHERE NOT {known})"
    at, value = pick.at, pick.value
    return F.expr(
        f"coalesce({end}({at}) {old} = {end}({at}) {new}, false) AND NOT"
        f" ({by}({value}, {at}) {old} <=> {by}({value}, {at}) {new})"
    )
