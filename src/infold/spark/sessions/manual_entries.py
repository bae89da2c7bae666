"""Manual entries of the quarantine: what people said of sessions, beside the sessions."""

from __future__ import annotations

from collections.abc import Sequence

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql import types as T

from infold.core.manual_entry import ManualEntry
from infold.core.project import SessionsQuery
from infold.spark.sessions.islands import USER

RULED = "__ruled"
"""What a person said last of a row's session: TRUE is held, FALSE released; NULL for nothing."""

ASKED = "__asked"
"""Whether something takes part in a fold because a person spoke of it."""

_ABOUT = [
    T.StructField("since", T.LongType()),
    T.StructField("until", T.LongType()),
    T.StructField("held", T.BooleanType()),
]
_OF = T.StructField("__of", T.StringType())
_SAID = T.StructType([_OF, *_ABOUT])
_ALL_SAID = T.StructType([_OF, T.StructField("__said", T.ArrayType(T.StructType(_ABOUT)))])


def ruled(rows: DataFrame, query: SessionsQuery, start: Column, end: Column) -> DataFrame:
    """Rows that have what their session is of, with what was said of a session of such a span."""
    if not query.entries:
        return rows.withColumn(RULED, F.lit(None).cast("boolean"))
    by_session: dict[str, list[tuple[object, ...]]] = {}
    for one in query.entries:
        by_session.setdefault(one.owner, []).append((one.start, one.end, one.in_quarantine))
    every = rows.sparkSession.createDataFrame(list(by_session.items()), _ALL_SAID)
    known = rows.join(F.broadcast(every), F.col(USER).cast("string") == F.col("__of"), "left")
    matching = F.filter("__said", lambda one: about(one["since"], one["until"], start, end))
    last = F.try_element_at(matching, F.lit(-1))
    return known.withColumn(RULED, last["held"]).drop("__of", "__said")


def about(since: Column, until: Column, start: Column, end: Column) -> Column:
    """Whether an entry of such a span is about a session of such a span."""
    return since.isNull() | ((start <= until) & (end >= since))


def said(rows: DataFrame, entries: Sequence[ManualEntry]) -> DataFrame:
    """Entries as rows: ``__of``, ``since``, ``until``, ``held``."""
    values = [(one.owner, one.start, one.end, one.in_quarantine) for one in entries]
    return rows.sparkSession.createDataFrame(values, _SAID)
