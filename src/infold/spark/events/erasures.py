"""
Rows of persons who were asked to be erased, found by keyed hashes of their keys.

The ledger has these hashes and no key, so each row's key is hashed, by the HMAC of
``core.erasure.KeyHasher`` in Spark's SQL. The secret comes as a row and not as a literal: literals
are in plans, which logs and Spark's pages show.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from threading import Lock

import pyarrow as pa
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from infold.core.erasure import (
    ErasedColumn,
    KeyForm,
    KeyHasher,
    as_number,
    latest_by_key,
    message,
)
from infold.core.model import ERASURES, Source
from infold.core.plan import Step
from infold.messages import mismatches
from infold.running.erasures import GIVEN, hasher_of
from infold.spark.content import column, micros
from infold.spark.frame_schema import FrameColumn, FrameSchema, returns
from infold.spark.step_context import Work
from infold.spark.tables.port import Layout

ERASED = "_infold_erased"
_INNER, _OUTER = "_infold_inner", "_infold_outer"
_GIVEN = "_infold_given"

MARKED_ROWS = FrameSchema(
    "a row, and whether a person of it is erased",
    (FrameColumn(ERASED, "boolean", "whether a key of it is erased; never NULL"),),
    "the row",
)


@dataclass(frozen=True)
class Erasures:
    """
    Who is erased from a source: by each of ``columns`` the hashes of keys of its erasure.

    A hash comes with the instant before which rows are erased; None: all of them.
    """

    work: Work
    source: Source
    columns: Sequence[ErasedColumn]
    keys: Mapping[str, Mapping[str, int | None]]
    hasher: KeyHasher
    given: Sequence[str] | None = None
    """The keys of all requests that are new to the step, where this process was given them."""

    @staticmethod
    def of(work: Work, source: Source, step: Step) -> Erasures | None:
        """Those that a step applies; None where nobody is erased."""
        upto = step.trace.applied_entry if step.trace is not None else 0
        columns = work.project.erased_columns.get(source.name, ())
        if not upto or not columns:
            return None
        requests = [
            request
            for request in work.ledger.erasures()
            if request.number <= upto and request.is_about(source.name)
        ]
        names = {entry.erasure for entry in columns}
        keys = {
            name: latest_by_key(request for request in requests if request.erasure == name)
            for name in names
        }
        kept = [entry for entry in columns if keys[entry.erasure]]
        if not kept:
            return None
        hasher = hasher_of(work.project, work.ledger.known_erasures().secret)
        before = step.previous_trace.applied_entry if step.previous_trace is not None else 0
        new = [GIVEN.get(frozenset(one.keys)) for one in requests if one.number > before]
        given = [key for keys_given in new if keys_given for key in keys_given]
        return Erasures(work, source, kept, keys, hasher, given if all(new) else None)

    def candidates(self, rows: DataFrame, names: Mapping[str, str]) -> DataFrame:
        """The rows that may have a key which is new to the step; all, where nobody knows it."""
        if self.given is None:
            return rows
        parts, rest = [], rows
        for entry in self.columns:
            number = entry.form is KeyForm.NUMBER
            texts = [as_number(key) if number else key for key in self.given]
            table = pa.table({_GIVEN: pa.array({text for text in texts if text}, pa.string())})
            # At most a row for each key that a command was given.
            keys = F.broadcast(self.work.spark.createDataFrame(table))
            value = self._column_of(rows, entry.column, names).cast("string")
            parts.append(rest.join(keys, value == F.col(_GIVEN), "left_semi"))
            rest = rest.join(keys, value == F.col(_GIVEN), "left_anti")
        return reduce(DataFrame.unionAll, parts)

    @returns(MARKED_ROWS)
    def marked(self, rows: DataFrame, names: Mapping[str, str] = {}) -> DataFrame:
        """
        Rows with ``ERASED``; ``names`` are their columns by those of the source, if they differ.

        Raises ``mismatches.erasure_column_unread`` where the rows lack a column.
        """
        inner, outer = self.hasher.pads
        pads = pa.table({_INNER: [inner], _OUTER: [outer]})
        # One row.
        hashed = rows.crossJoin(F.broadcast(self.work.spark.createDataFrame(pads)))
        erased: list[Column] = []
        for at, entry in enumerate(self.columns):
            key, before = f"_infold_key{at}", f"_infold_before{at}"
            value = self._column_of(rows, entry.column, names)
            latest = self.keys[entry.erasure]
            table = pa.table(
                {key: list(latest), before: pa.array(latest.values(), pa.int64())},
            )
            # At most a row for each key that was asked to be erased.
            keys = F.broadcast(self.work.spark.createDataFrame(table))
            text = F.concat(F.lit(message(entry.erasure, entry.form)), value.cast("string"))
            hashed = hashed.join(keys, _hmac(text) == F.col(key), "left")
            erased.append(F.col(key).isNotNull() & self._is_before(rows, F.col(before), names))
        mark = reduce(Column.__or__, erased).alias(ERASED)
        return hashed.select(*map(column, rows.columns), mark)

    def _is_before(self, rows: DataFrame, before: Column, names: Mapping[str, str]) -> Column:
        """Whether a row is as old as a request says."""
        time = self.source.event_time_column
        if time is None or all(at is None for keys in self.keys.values() for at in keys.values()):
            return before.isNull()
        at = micros(self._column_of(rows, time, names))
        return before.isNull() | F.coalesce(at < before, F.lit(False))

    def _column_of(self, rows: DataFrame, name: str, names: Mapping[str, str]) -> Column:
        known = {other.lower() for other in rows.columns}
        if names.get(name, name).lower() not in known:
            raise mismatches.erasure_column_unread(
                model=self.source.name, column=name, source=self.source.name
            )
        return column(names.get(name, name))


def _hmac(text: Column) -> Column:
    """HMAC-SHA-256 of a text as hexadecimal digits, by the two pads beside it."""
    inner = F.sha2(F.concat(F.col(_INNER), text.cast("binary")), 256)
    return F.sha2(F.concat(F.col(_OUTER), F.unhex(inner)), 256)


# The ledger may be lost, and a backup of it may be older than a request. So the requests are in a
# table beside those that they are about, before the first of these is without a row. `repair` takes
# them from there.

KEPT_REQUESTS = pa.schema(
    [
        *(("number", pa.int64()), ("id", pa.string()), ("erasure", pa.string())),
        *(("source", pa.string()), ("before_at", pa.int64()), ("reason", pa.string())),
        *(("made_at", pa.int64()), ("key", pa.string())),
        *(("columns", pa.string()), ("secret", pa.string())),
    ]
)
"""A row for each keyed hash of a request, or one without; what it is applied to, as JSON."""

_keeping = Lock()
"""Steps side by side keep a request once."""


def keep_requests(work: Work, step: Step) -> None:
    """Write the requests that a step applies to their table, as far as it does not have them."""
    with _keeping:
        exists = work.tables.exists(ERASURES)
        kept = 0
        if exists:
            newest = work.tables.read(ERASURES).agg(F.max("number").alias("newest"))
            kept = newest.collect()[0]["newest"] or 0  # one row
        known = work.ledger.known_erasures()
        if max(known.newest.values(), default=0) <= kept:
            return
        requests = work.ledger.erasures(kept)
        columns = json.dumps([[*names, column] for names, column in known.columns.items()])
        applied_to = {"columns": columns, "secret": known.secret}
        rows = [
            {
                "number": one.number,
                "id": one.id,
                "erasure": one.erasure,
                "source": one.source,
                "before_at": one.before,
                "reason": one.reason,
                "made_at": one.made_at,
                "key": key,
                **applied_to,
            }
            for one in requests
            for key in one.keys or (None,)
        ]
        frame = work.spark.createDataFrame(pa.Table.from_pylist(rows, KEPT_REQUESTS))
        if exists:
            work.tables.append(ERASURES, frame, work.stamp(step))
        else:
            work.tables.create(ERASURES, frame, Layout(), work.stamp(step))
