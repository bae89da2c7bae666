"""
The greatest length: a session that grows longer ends, and the next event begins another one.

It is counted from the first event after any other cut, so this cut comes last.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F

from infold.core.session_cuts import MaxLength
from infold.spark.sessions.cuts.base import InnerCut, by_session, in_pieces
from infold.spark.sessions.frames import END, START, TIME

_LENGTH, _TIMES = "__length", "__times"
"""Of a session that is too long: its length, and its instants in order."""

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

    def pieces(
        self,
        rows: DataFrame,
        session: Sequence[str],
        order: Sequence[str],  # noqa: ARG002
    ) -> tuple[DataFrame, Sequence[str]]:
        """Sessions in pieces: each begins with the first event too far from the last start."""
        most = self.declared.length
        whole = Window.partitionBy(*session)
        length = F.max(TIME).over(whole) - F.min(TIME).over(whole)
        spans = rows.select(*session, TIME, length.alias(_LENGTH))
        sessions = (
            spans.where(F.col(_LENGTH) > most)
            .groupBy(*by_session(session))
            .agg(F.expr(f"array_sort(collect_set({TIME}))").alias(_TIMES))
        )
        return in_pieces(rows, session, sessions, F.expr(_STARTS.format(most=most)))

    def may_divide(self) -> Column | None:
        """What is longer is more than one session."""
        return F.col(END) - F.col(START) > self.declared.length

    def may_divide_stored(self, earlier: Self | None) -> Column | None:
        """What is longer, where less is allowed now."""
        less = earlier is None or self.declared.length < earlier.declared.length
        return self.may_divide() if less else None

    def may_have_parted(self, later: Self | None, distance: Column) -> Column | None:
        """Neighbours that may be one session, as it may be longer now."""
        if later is None:
            return F.lit(True)
        more = later.declared.length > self.declared.length
        return distance <= later.declared.length if more else None

    def leaves_whole(self) -> Column | None:
        """It is not too long."""
        return F.col(END) - F.col(START) <= self.declared.length
