"""
Sessions of a changed definition, made from the stored sessions and their states.

Each part of a state is SQL over events. Two definitions of the same sessions have a part in common
if its SQL, with the arguments of its aggregate written out, is the same words: the analysis has put
the old definition into the words of the new one wherever they mean the same, and left out the rest.
From these parts rows are made as a build makes them, so outputs and stored states are a build's.
An output that was stored before is taken as it is.

The types are those of a build over the events that the stored sessions were made from. If a stored
value may not be what the query gave, nothing is derived.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, reduce

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql import types as T

from infold.core.definition import Derivation
from infold.core.own_columns import FIRST, LAST, STATE
from infold.core.plan import Action, Step
from infold.core.queries import Output, SessionsQuery, quoted
from infold.core.record import QuarantinedSession, Receipt
from infold.core.trace import CellState
from infold.spark.content import column, has_alike_values, micros, type_of
from infold.spark.sessions.aggregates import CompiledAggregates, StateColumn, shown_columns
from infold.spark.sessions.build import BY_MONTH, build
from infold.spark.sessions.components import query_of
from infold.spark.sessions.cuts import cuts_of
from infold.spark.sessions.frames import END, OWNER, START
from infold.spark.sessions.islands import compiled_aggregates, islands_of, prepared_events
from infold.spark.sessions.refold import events_as_folded
from infold.spark.sessions.stored import (
    states_of_sessions,
    stored_owner,
    stored_part,
    table_rows,
    with_session_numbers,
)
from infold.spark.step_commit import Computed, WholeTable
from infold.spark.step_context import Work
from infold.spark.stored_types import same_type, stored_type

_STORED = "__stored_"
"""Before the name of a stored output that is kept."""
_OWNER_TEXT = "__owner_text"
"""An owner as the quarantine writes it."""
_OWNER_AND_START = T.StructType(
    [T.StructField(_OWNER_TEXT, T.StringType()), T.StructField(START, T.LongType())]
)
_NOBODY = (None, None)
"""Owner and start that stand for all events without an owner: they are alike to a WHERE."""


def follows_exactly(work: Work, step: Step) -> bool:
    """Whether stored sessions have what a build would store, or can be made into that."""
    if step.action is Action.REFOLD:
        events = events_as_folded(work, step)
        if events is None:
            return False
        built, stored = build(events, query_of(work, step)), work.tables.read(step.model)
        return dict(_described_columns(built)) == dict(_described_columns(stored))
    derived = _derived_sessions(work, step)
    return derived is not None and derived.is_exact()


def new_table(work: Work, step: Step) -> tuple[WholeTable, Collection[CellState], Computed]:
    """The sessions that follow, the states of their cells, and what else is recorded."""
    derived = _derived_sessions(work, step)
    assert derived is not None, "a derivation is checked before it is carried out"
    rows, before = derived.rows(), work.cells(step.model)
    granularity = work.project[step.model].model.granularity
    cells = states_of_sessions(rows, granularity).keys()
    gone = sum(state.rows for state in before) - sum(state.rows for state in cells)
    entries, left_out = _entries_and_left_out(work, step, derived)
    receipt = Receipt(sessions_removed=gone)
    computed = Computed(receipt=receipt, quarantined=entries, left_out=left_out)
    return WholeTable(rows, BY_MONTH), cells, computed


def _derived_sessions(work: Work, step: Step) -> DerivedSessions | None:
    """The stored sessions of a step that derives; None where their events are not there."""
    events, derivation = events_as_folded(work, step), step.derivation
    if events is None or derivation is None or derivation.sessions is None:
        return None
    stored = work.frame(step.model, step.version - 1)
    return DerivedSessions(
        stored, events, derivation, derivation.sessions, query_of(work, step), step.version
    )


def _entries_and_left_out(
    work: Work, step: Step, derived: DerivedSessions
) -> tuple[tuple[QuarantinedSession, ...], int | None]:
    """
    The entries of the quarantine whose owners stay, and how many events have no owner now.

    Events without an owner are all alike to a condition about the owner.
    """
    entries = tuple(work.ledger.quarantined(step.model))
    left_out = work.ledger.left_out().get(step.model)
    if not derived.where:
        return entries, left_out
    kept_owners = derived.kept_owners([*(entry.key for entry in entries), _NOBODY])
    entries_that_stay = tuple(entry for entry in entries if entry.key in kept_owners)
    return entries_that_stay, left_out if left_out is None or _NOBODY in kept_owners else 0


@dataclass(frozen=True)
class DerivedSessions:
    """
    Stored sessions of the definition ``old``, as those of the definition ``new``.

    ``events`` are those that they were made from; nothing but their types is looked at.
    """

    stored: DataFrame
    events: DataFrame
    derivation: Derivation
    old: SessionsQuery
    new: SessionsQuery
    version: int

    @property
    def where(self) -> Sequence[str]:
        """What is said of the owners of sessions that stay."""
        return self.derivation.where

    @cached_property
    def _compiled(self) -> tuple[CompiledAggregates, CompiledAggregates]:
        """The aggregates of the earlier and of the new definition, over the same events."""
        before, after = (compiled_aggregates(self.events, query) for query in (self.old, self.new))
        return before, after

    @cached_property
    def _built_schema(self) -> T.StructType:
        """The columns and types that a build by the new definition would store."""
        return build(self.events, self.new).schema

    @cached_property
    def _island_types(self) -> T.StructType:
        """The columns and types of islands by the new definition, with the parts of states."""
        compiled = self._compiled[1]
        ready = prepared_events(self.events, self.new, compiled)
        return islands_of(ready, self.new, compiled).schema

    @cached_property
    def _state_parts(self) -> Mapping[str, Column]:
        """The parts of new states that follow, by name, as the table stores them."""
        before, redefined = self._compiled
        shown = shown_columns(self.old.aggregates, self.old.outputs)
        stored_parts: dict[str, Column] = {}
        for part in before.parts:
            if part.merge is not None:
                stored_parts[_meaning(before, part)] = stored_part(part)
            elif part.name in shown:
                stored_parts[_meaning(before, part)] = column(shown[part.name])
        follows = (
            (part.name, stored_parts.get(_meaning(redefined, part))) for part in redefined.parts
        )
        return {name: sql for name, sql in follows if sql is not None}

    @cached_property
    def _kept(self) -> Mapping[str, str]:
        """The outputs that are stored, with the names that they have now and had before."""
        names = {output.name for output in self.new.outputs}
        return {name: old for name, old in self.derivation.plain if name in names}

    def is_exact(self) -> bool:
        """Whether rows and states are those that a build would store."""
        if self.where and has_alike_values(self._island_types[OWNER].dataType):
            return False
        redefined = self._compiled[1]
        lacking = {part.name for part in redefined.parts} - self._state_parts.keys()
        if lacking & {part.name for part in redefined.stored} or self._needs_any(lacking):
            return False
        return self._is_stored_as_given() and _described_columns(self.rows()) == [
            (field.name, field.dataType.simpleString()) for field in self._built_schema
        ]

    def _needs_any(self, parts: Collection[str]) -> bool:
        """Whether an output that is computed needs one of some parts."""
        computed = [out.sql for out in self.new.outputs if out.name not in self._kept]
        named = {word for sql in computed for word in _names_in(sql)}
        values = (sql for name, sql in self._compiled[1].values if name in named)
        return any(not _names_in(sql).isdisjoint(parts) for sql in values)

    def _is_stored_as_given(self) -> bool:
        """Whether stored values are of the types that the query gives, as far as these are kept."""
        stored = self.stored.select(
            stored_owner(self.old).alias(OWNER),
            *(sql.alias(name) for name, sql in self._state_parts.items()),
        ).schema
        pairs = [(field.dataType, self._island_types[field.name].dataType) for field in stored]
        kept = {**self._kept, FIRST: FIRST, LAST: LAST}
        types = self.stored.schema, self._built_schema
        pairs += [(types[0][old].dataType, types[1][name].dataType) for name, old in kept.items()]
        return all(stored_type(was, same_type) == stored_type(built) for was, built in pairs)

    def rows(self) -> DataFrame:
        """The sessions as a build stores them."""
        query, compiled = self.new, self._compiled[1]
        outputs = tuple(
            Output(out.name, quoted(_STORED + out.name)) if out.name in self._kept else out
            for out in query.outputs
        )
        keep = [_STORED + name for name in self._kept]
        time = type_of(self.events, query.time_column)
        rows = table_rows(
            self._sessions(), replace(query, outputs=outputs), compiled, time, self.version, keep
        ).drop(*keep)
        return with_session_numbers(rows, query) if query.numbered else rows

    def _sessions(self) -> DataFrame:
        """The sessions that stay, with the parts of their states, and the outputs that are kept."""
        types = self._island_types
        null = F.lit(None)
        sessions = self.stored.select(
            stored_owner(self.old).cast(types[OWNER].dataType).alias(OWNER),
            micros(column(FIRST)).alias(START),
            micros(column(LAST)).alias(END),
            *(
                F.col(f"{STATE}.{stored}").alias(name)
                for cut in cuts_of(self.new).inner
                for name, stored in cut.state.items()
            ),
            *(
                self._state_parts.get(part.name, null)
                .cast(types[part.name].dataType)
                .alias(part.name)
                for part in self._compiled[1].parts
            ),
            *(
                column(old).cast(self._built_schema[name].dataType).alias(_STORED + name)
                for name, old in self._kept.items()
            ),
        )
        return self._with_owners_that_stay(sessions)

    def kept_owners(self, sessions: Sequence[tuple[str | None, int | None]]) -> set[object]:
        """Those of some pairs of an owner and a start whose owner stays."""
        frame = self.stored.sparkSession.createDataFrame(sessions, _OWNER_AND_START)
        typed = frame.withColumn(OWNER, F.col(_OWNER_TEXT).cast(self._island_types[OWNER].dataType))
        # At most a row for each session in quarantine.
        rows = self._with_owners_that_stay(typed).select(_OWNER_TEXT, START).collect()
        return {(row[_OWNER_TEXT], row[START]) for row in rows}

    def _with_owners_that_stay(self, rows: DataFrame) -> DataFrame:
        """The rows with an owner that fulfils all conditions, which name it as the table does."""
        if not self.where:
            return rows
        test = reduce(Column.__and__, map(F.expr, self.where))
        names = rows.columns
        return rows.withColumn(self.new.user, F.col(OWNER)).where(test).select(*map(column, names))


def _meaning(compiled: CompiledAggregates, part: StateColumn) -> str:
    """What a part is of events, in the words of the query."""
    arguments = dict(compiled.arguments)
    sql = compiled.events_sql(part)
    return re.sub(r"\b__[xf]\d+\b", lambda name: f"({arguments.get(name[0], name[0])})", sql)


def _described_columns(rows: DataFrame) -> list[tuple[str, str]]:
    return [(field.name, field.dataType.simpleString()) for field in rows.schema]


def _names_in(sql: str) -> set[str]:
    return {*re.findall(r"\w+", sql)}
