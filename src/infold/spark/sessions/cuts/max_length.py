"""
The greatest length: a session that grows longer ends, and the next event begins another one.

It is counted from the first event after any other cut, so this cut comes last.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F

from infold.core.session_cuts import MaxLength
from infold.spark.sessions.cuts.base import InnerCut
from infold.spark.sessions.cuts.running_count import running_count
from infold.spark.sessions.frames import END, START, TIME

_PIECE = "__piece"
"""The number of an event's piece of its session."""

_LENGTH, _TIMES, _PIECE_START = "__length", "__times", "__piece_start"
"""Of a session that is too long: its length, its instants in order, and where a piece begins."""

_STARTS = f"""aggregate(
    {_TIMES},
    named_struct('at', {_TIMES}[0], 'starts', array({_TIMES}[0])),
    (a, t) -> if(
        t - a.at > {{most}}L, named_struct('at', t, 'starts', array_append(a.starts, t)), a
    )
).starts"""


@dataclass(frozen=True, slots=True)
class MaxLengthCut(InnerCut):
    """A session that is not too long stays whole, so new events are merged as long as it is not."""

    declared: MaxLength

    def pieces(self, rows: DataFrame, session: Sequence[str]) -> tuple[DataFrame, Sequence[str]]:
        """Sessions in pieces: each begins with the first event too far from the last start."""
        most = self.declared.length
        whole = Window.partitionBy(*session)
        length = F.max(TIME).over(whole) - F.min(TIME).over(whole)
        spans = rows.select(*session, TIME, length.alias(_LENGTH))
        names = [f"__session_key{at}" for at in range(len(session))]
        starts = (
            spans.where(F.col(_LENGTH) > most)
            .groupBy(*(F.col(key).alias(name) for key, name in zip(session, names, strict=True)))
            .agg(F.expr(f"array_sort(collect_set({TIME}))").alias(_TIMES))
            .select(*names, F.explode(F.expr(_STARTS.format(most=most))).alias(_PIECE_START))
        )
        same = F.col(TIME) == F.col(_PIECE_START)
        for key, name in zip(session, names, strict=True):
            same = same & (F.col(key) == F.col(name))
        marked = rows.join(starts, same, "left")
        by_time = Window.partitionBy(*session).orderBy(TIME)
        number = running_count(F.col(_PIECE_START).isNotNull(), by_time)
        return marked.withColumn(_PIECE, number).drop(_PIECE_START, *names), [_PIECE]

    def may_divide(self) -> Column | None:
        """What is longer is more than one session."""
        return F.col(END) - F.col(START) > self.declared.length

    def leaves_whole(self) -> Column | None:
        """It is not too long."""
        return F.col(END) - F.col(START) <= self.declared.length
