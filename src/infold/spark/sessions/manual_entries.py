"""Manual entries of the quarantine: sessions that people put there or release."""

from __future__ import annotations

from collections.abc import Sequence

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql import types as T

from infold.core.manual_entry import ManualEntry
from infold.core.queries import SessionsQuery
from infold.spark.frame_schema import FrameColumn, FrameSchema, returns
from infold.spark.sessions.frames import OWNER

HELD_BY_HAND = "__held_by_hand"
"""The latest manual entry about a row's session: TRUE is held, FALSE released; NULL is none."""

ENTRY_OWNER, ENTRY_START, ENTRY_END, ENTRY_HELD = (
    "__entry_owner",
    "__entry_start",
    "__entry_end",
    "__entry_held",
)

MANUAL_ENTRIES = FrameSchema(
    "a manual entry",
    (
        FrameColumn(ENTRY_OWNER, "string", "the user or identifier that it is about, as text"),
        FrameColumn(ENTRY_START, "bigint", "the span that it is about; NULL: all sessions"),
        FrameColumn(ENTRY_END, "bigint", "the end of the span, included"),
        FrameColumn(ENTRY_HELD, "boolean", "held, released, or (NULL) neither any more"),
    ),
)

_ENTRIES = "__entries"
"""All entries about an owner, oldest first."""

_MANUAL_ENTRY = [
    T.StructField(ENTRY_START, T.LongType()),
    T.StructField(ENTRY_END, T.LongType()),
    T.StructField(ENTRY_HELD, T.BooleanType()),
]
_OWNER = T.StructField(ENTRY_OWNER, T.StringType())
_ROW = T.StructType([_OWNER, *_MANUAL_ENTRY])
_BY_OWNER = T.StructType([_OWNER, T.StructField(_ENTRIES, T.ArrayType(T.StructType(_MANUAL_ENTRY)))])


def with_manual_entries(
    rows: DataFrame, query: SessionsQuery, start: Column, end: Column
) -> DataFrame:
    """Rows of an ``OWNER``, with the latest entry about a session of it from start to end."""
    if not query.entries:
        return rows.withColumn(HELD_BY_HAND, F.lit(None).cast("boolean"))
    by_owner: dict[str, list[tuple[object, ...]]] = {}
    for one in query.entries:
        by_owner.setdefault(one.owner, []).append((one.start, one.end, one.in_quarantine))
    every = rows.sparkSession.createDataFrame(list(by_owner.items()), _BY_OWNER)
    same = F.col(OWNER).cast("string") == F.col(ENTRY_OWNER)
    # At most a row for each manual entry.
    known = rows.join(F.broadcast(every), same, "left")
    matching = F.filter(
        _ENTRIES, lambda one: is_about(one[ENTRY_START], one[ENTRY_END], start, end)
    )
    last = F.try_element_at(matching, F.lit(-1))
    return known.withColumn(HELD_BY_HAND, last[ENTRY_HELD]).drop(ENTRY_OWNER, _ENTRIES)


def is_about(entry_start: Column, entry_end: Column, start: Column, end: Column) -> Column:
    """Whether an entry about one span is about a session of another span."""
    return entry_start.isNull() | ((start <= entry_end) & (end >= entry_start))


@returns(MANUAL_ENTRIES)
def manual_entry_rows(frame: DataFrame, entries: Sequence[ManualEntry]) -> DataFrame:
    """Entries as rows, made by the session of a frame."""
    values = [(one.owner, one.start, one.end, one.in_quarantine) for one in entries]
    return frame.sparkSession.createDataFrame(values, _ROW)
