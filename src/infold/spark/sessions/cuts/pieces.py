"""Sessions in pieces: where a cut divides what all others leave whole, by a list of instants."""

from __future__ import annotations

from collections.abc import Sequence

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F

from infold.spark.sessions.cuts.running_count import running_count
from infold.spark.sessions.frames import TIME

PIECE = "__piece"
"""The number of an event's piece of its session."""

_PIECE_START = "__piece_start"


def by_session(session: Sequence[str]) -> list[Column]:
    """The columns that name a session, by which the instants of :func:`in_pieces` are found."""
    return [F.col(key).alias(name) for key, name in zip(session, _names(session), strict=True)]


def in_pieces(
    rows: DataFrame, session: Sequence[str], sessions: DataFrame, starts: Column
) -> tuple[DataFrame, Sequence[str]]:
    """
    Events with the number of their piece, and the column of it.

    ``starts`` are, over ``sessions`` grouped by :func:`by_session`, the instants at which a piece
    begins; a session that is not there stays whole.
    """
    names = _names(session)
    begun = sessions.select(*names, F.explode(starts).alias(_PIECE_START))
    same = F.col(TIME) == F.col(_PIECE_START)
    for key, name in zip(session, names, strict=True):
        same = same & (F.col(key) == F.col(name))
    marked = rows.join(begun, same, "left")
    by_time = Window.partitionBy(*session).orderBy(TIME)
    number = running_count(F.col(_PIECE_START).isNotNull(), by_time)
    return marked.withColumn(PIECE, number).drop(_PIECE_START, *names), [PIECE]


def _names(session: Sequence[str]) -> list[str]:
    return [f"__session_key{at}" for at in range(len(session))]
