"""
A part of a table of sessions: a stretch of event time with one definition.

After a forward-only change its border ends sessions. So each part is a table of sessions of its
own, over the events of its stretch, and is folded like one.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from hashlib import md5

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql import types as T

from infold.core.interval import MAX, Interval, Ranges
from infold.core.own_columns import FIRST, STATE, VERSION
from infold.core.plan import Step
from infold.core.project import Node
from infold.core.queries import SessionsQuery, quoted
from infold.spark.content import column, time_predicate
from infold.spark.inputs.feed import Feed
from infold.spark.sessions.fold_changes import OLD, key_of
from infold.spark.step_context import Work
from infold.spark.stored_types import refuse_other_type, stored_type


@dataclass(frozen=True)
class Part:
    """
    One part, in one step.

    ``work`` and ``step`` have its definition, and the inputs of that alone; ``query`` is cut to
    its ``times``. ``rows`` are the columns that the definition gives its sessions, ``schema`` those
    of the table after the step.
    """

    times: Interval
    work: Work
    step: Step
    query: SessionsQuery
    keeps_sessions: bool
    """Whether its stored sessions are of its definition; others are built."""
    has_new_end: bool
    """Whether its end is new, so that stored sessions may reach over it."""
    rows: T.StructType = dataclasses.field(default_factory=T.StructType)
    schema: T.StructType = dataclasses.field(default_factory=T.StructType)

    @property
    def node(self) -> Node:
        """The model as the definition of this part declares it, which may be an earlier one."""
        return self.work.project[self.step.model]

    @cached_property
    def feed(self) -> Feed:
        """What its definition reads, and what changed in it."""
        return Feed(self.work, self.node, self.step, self.query.input)

    @property
    def ranges(self) -> Ranges:
        """The half-open stretch of event time that its sessions lie in, as ranges."""
        return Ranges((self.times,))

    @property
    def border(self) -> int | None:
        """The instant before which its sessions end; None for the last part."""
        return self.times.end if self.times.end < MAX else None

    @property
    def changes(self) -> bool:
        """Whether a session of it may change: by events, entries, or its new end."""
        applied = self.step.previous_trace.applied_entry if self.step.previous_trace else 0
        has_new_entry = any(entry.number > applied for entry in self.query.entries)
        return self.has_new_end or has_new_entry or self.feed.times.overlaps(self.times)

    def stored(self) -> DataFrame:
        """Its rows as the table has them, before the step."""
        table = self.work.tables.read(self.step.model, column=FIRST, ranges=self.ranges)
        return table.where(time_predicate(table, FIRST, self.ranges, exact=True))

    def as_stored(self, rows: DataFrame, *keep: str) -> DataFrame:
        """Rows of its definition as the table has them after the step."""
        return as_stored(rows, self.schema, self.step.model, keep)

    def restored(self, stored: DataFrame) -> DataFrame:
        """Stored rows as its definition wrote them."""
        return as_defined(stored, self.rows)

    def keyed(self, stored: DataFrame) -> DataFrame:
        """Stored rows as its definition wrote them, each with its key."""
        rows_after = self.as_stored(self.restored(stored))
        key = key_of(rows_after, self.node.model.granularity)
        return as_defined(rows_after.withColumn(OLD, key), self.rows, (OLD,))


# The table has the columns of the newest definition, NULL where an earlier one lacks them. Its
# `_state` has the fields of all definitions. Fields of one name and type are shared; one of another
# type gets a name of its own, which follows from the type. Each definition reads back exactly what
# it wrote: its own fields, under its own names.


def table_schema(
    model: str, newest: T.StructType, earlier: Sequence[T.StructType], stored: T.StructType | None
) -> T.StructType:
    """
    The columns of a table with sessions of several definitions; ``stored`` are those it has.

    Raises ``other_type_forward_only`` where a column that stays would be of another type.
    """
    fields: dict[str, T.StructField] = {}
    for rows in (newest, *earlier, *([stored] if stored is not None else [])):
        for field in rows:
            if field.name in (STATE, VERSION):
                continue
            name = field.name.lower()
            known = fields.setdefault(name, T.StructField(field.name, stored_type(field.dataType)))
            refuse_other_type(model, known, field.dataType)
    schemas = [*([stored] if stored is not None else []), *earlier, newest]
    states = T.StructType()
    for rows in schemas:
        for field in _state_fields(rows):
            name = _state_name(states, field)
            if name not in states.names:
                states.add(name, stored_type(field.dataType))
    technical_fields = [T.StructField(STATE, states), T.StructField(VERSION, T.LongType())]
    return T.StructType([*fields.values(), *technical_fields])


def same_columns(left: T.StructType, right: T.StructType) -> bool:
    """Whether two schemas have the same columns, of the same types, in the same order."""

    def described(rows: T.StructType) -> list[tuple[str, str]]:
        return [(field.name, stored_type(field.dataType).simpleString()) for field in rows]

    return described(left) == described(right)


def as_stored(
    rows: DataFrame, schema: T.StructType, model: str, keep: Sequence[str] = ()
) -> DataFrame:
    """
    Rows of one definition as the table has them, NULL in what it lacks; ``keep`` come along.

    Raises ``other_type_forward_only`` for a column of another type than the table has.
    """
    given = {field.name.lower(): field for field in rows.schema if field.name not in keep}
    found: list[Column] = []
    for field in schema:
        own = given.get(field.name.lower())
        if field.name == STATE:
            found.append(_state_as_stored(rows.schema, field.dataType).alias(STATE))
        elif own is None:
            found.append(F.lit(None).cast(field.dataType).alias(field.name))
        else:
            refuse_other_type(model, field, own.dataType)
            found.append(column(own.name).cast(field.dataType).alias(field.name))
    return rows.select(*found, *map(column, keep))


def as_defined(rows: DataFrame, defined: T.StructType, keep: Sequence[str] = ()) -> DataFrame:
    """
    Stored rows as a definition with ``defined`` columns wrote them; ``keep`` come along.

    They have its own columns and states, and no others.
    """
    stored = T.StructType(list(_state_fields(rows.schema)))
    fields = [
        _state_field(_state_name(stored, field)).cast(field.dataType).alias(field.name)
        for field in _state_fields(defined)
    ]
    names = {field.name.lower() for field in defined}
    own_names = [name for name in rows.columns if name.lower() in names and name != STATE]
    return rows.select(*map(column, own_names), F.struct(*fields).alias(STATE), *map(column, keep))


def _state_fields(rows: T.StructType) -> Iterable[T.StructField]:
    state = rows[STATE].dataType
    assert isinstance(state, T.StructType), "a state is a struct"
    return state.fields


def _state_name(stored: T.StructType, field: T.StructField) -> str:
    """The name of a definition's state in the table: its own, or one that has its type too."""
    type_ = stored_type(field.dataType)
    for known in stored:
        if known.name == field.name and stored_type(known.dataType) != type_:
            return (
                f"{field.name}_{md5(type_.json().encode(), usedforsecurity=False).hexdigest()[:8]}"
            )
    return field.name


def _state_as_stored(rows: T.StructType, state: T.DataType) -> Column:
    assert isinstance(state, T.StructType), "a state is a struct"
    fields = {_state_name(state, field): field for field in _state_fields(rows)}
    return F.struct(
        *(
            (_state_field(fields[field.name].name) if field.name in fields else F.lit(None))
            .cast(field.dataType)
            .alias(field.name)
            for field in state
        )
    )


def _state_field(name: str) -> Column:
    return F.expr(f"{STATE}.{quoted(name)}")
