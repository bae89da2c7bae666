"""
A part of a table of sessions: a stretch of event time with one definition.

After a forward-only change its border ends sessions. So each part is a table of sessions of its
own, over the events of its stretch, and is folded like one.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property

from pyspark.sql import DataFrame
from pyspark.sql import types as T

from infold.core.interval import MAX, Interval, Ranges
from infold.core.plan import Step
from infold.core.project import Node
from infold.core.queries import SessionsQuery
from infold.core.session_columns import FIRST
from infold.spark.content import time_predicate
from infold.spark.inputs.feed import Feed
from infold.spark.sessions.fold_changes import OLD, key_of
from infold.spark.sessions.stored_rows import as_defined, as_stored
from infold.spark.step_context import Work


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
    kept: bool
    """Whether its stored sessions are of its definition; others are built."""
    cut: bool
    """Whether its end is new, so that stored sessions may reach over it."""
    rows: T.StructType = field(default_factory=T.StructType)
    schema: T.StructType = field(default_factory=T.StructType)

    @property
    def node(self) -> Node:
        """The model by its definition."""
        return self.work.project[self.step.model]

    @cached_property
    def feed(self) -> Feed:
        """What its definition reads, and what changed in it."""
        return Feed(self.work, self.node, self.step, self.query.input)

    @property
    def ranges(self) -> Ranges:
        """Its times."""
        return Ranges((self.times,))

    @property
    def border(self) -> int | None:
        """The instant before which its sessions end; None for the last part."""
        return self.times.end if self.times.end < MAX else None

    @property
    def changes(self) -> bool:
        """Whether a session of it may change: by events, entries, or its new end."""
        applied = self.step.previous_trace.applied_entry if self.step.previous_trace else 0
        spoken = any(entry.number > applied for entry in self.query.entries)
        return self.cut or spoken or self.feed.times.overlaps(self.times)

    def stored(self) -> DataFrame:
        """Its rows as the table has them, before the step."""
        table = self.work.tables.read(self.step.model)
        return table.where(time_predicate(table, FIRST, self.ranges, exact=True))

    def as_stored(self, rows: DataFrame, *keep: str) -> DataFrame:
        """Rows of its definition as the table has them after the step."""
        return as_stored(rows, self.schema, self.step.model, keep)

    def restored(self, stored: DataFrame) -> DataFrame:
        """Stored rows as its definition wrote them."""
        return as_defined(stored, self.rows)

    def keyed(self, stored: DataFrame) -> DataFrame:
        """Stored rows as its definition wrote them, each with its key."""
        now = self.as_stored(self.restored(stored))
        key = key_of(now, self.node.model.granularity)
        return as_defined(now.withColumn(OLD, key), self.rows, (OLD,))
