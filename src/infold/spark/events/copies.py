"""
Which copy of an event is kept, and what that does to a table.

The identity of an event is its key and its event time; with ``deduplicate: everywhere`` its key
alone. Among its copies the declared preference decides, then the earliest event time, then the row
hash: content alone, never arrival or file. Copies of equal hash are equal, and among these a stored
one stays where it is, so that a repeated delivery changes nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from functools import reduce
from operator import and_

from pyspark.sql import Column, DataFrame, Window, WindowSpec
from pyspark.sql import functions as F
from pyspark.sql import types as T

from infold.core.model import Deduplicate
from infold.core.own_columns import FILE, VERSION
from infold.core.project import Node
from infold.spark.content import column, row_hash
from infold.spark.frame_schema import FrameColumn, FrameSchema, returns

HASH, ORIGIN, GONE, FATE = "_hash", "_origin", "_gone", "_fate"
DIFFERS, ELSEWHERE, _REST = "_differs", "_elsewhere", "_rest"
PLACE = "_copy"

STORED, NEW, BACK = 0, 1, 2
"""Where a copy is from: the table, a file that is ingested now, one that was before."""

_HASHED = (
    FrameColumn(FILE, "bigint", "the id of the file's version"),
    FrameColumn(HASH, "bigint", "the hash of the model's columns"),
    FrameColumn(_REST, "bigint", "the hash without the event time", "deduplicate: everywhere"),
)
_COMPARED = (
    FrameColumn(DIFFERS, "boolean", "whether it differs from the kept one where it should not"),
    FrameColumn(ELSEWHERE, "boolean", "whether it has another event time than the kept one"),
)

RANKED_COPIES = FrameSchema(
    "a copy of an event, among all of its copies",
    (*_HASHED, FrameColumn(PLACE, "int", "1 for the one to keep"), *_COMPARED),
    "the event, and what else the rows carry",
)

COMPETING_COPIES = FrameSchema(
    "a copy of an event that others may replace",
    (
        *_HASHED,
        FrameColumn(VERSION, "bigint", "the version that inserted it", "stored copies"),
        FrameColumn(ORIGIN, "int", "where it is from: STORED, NEW or BACK"),
        FrameColumn(GONE, "boolean", "whether it is stored and its file is gone"),
    ),
    "the event",
)

JUDGED_COPIES = FrameSchema(
    "a copy of an event, and what happens to it",
    (
        *_HASHED,
        FrameColumn(VERSION, "bigint", "the version to store it with"),
        FrameColumn(ORIGIN, "int", "where it is from: STORED, NEW or BACK"),
        FrameColumn(GONE, "boolean", "whether it is stored and its file is gone"),
        FrameColumn(FATE, "string", "what happens to it: CopyFate"),
        *_COMPARED,
    ),
    "the event",
)


class CopyFate(StrEnum):
    """What happens to a copy."""

    STAYS = "stays"
    ADDED = "added"
    MOVED_IN = "moved in"
    """It replaces an equal row whose file is gone: the content stays the same."""
    REMOVED = "removed"
    MOVED_OUT = "moved out"
    LEFT_OUT = "left out"
    """It is new, and not the one kept."""
    BEATEN = "beaten"
    """It is stored, and leaves because a better copy arrived."""
    STILL_LOST = "still lost"
    """It lost before, and lost again."""


INSERTED = (CopyFate.ADDED, CopyFate.MOVED_IN)
GONE_FOR_GOOD = (CopyFate.REMOVED, CopyFate.BEATEN)
DELETED = (*GONE_FOR_GOOD, CopyFate.MOVED_OUT)


@dataclass(frozen=True, slots=True)
class Identity:
    """
    What makes rows copies of one event, and which of them is preferred.

    ``keys`` are equal in all copies. ``time`` is the event time where copies may differ in it.
    """

    keys: tuple[str, ...]
    time: str | None = None
    prefer: tuple[str, ...] = ()

    @staticmethod
    def of(node: Node) -> Identity:
        """What a model with a key declares."""
        if node.model.deduplicate is Deduplicate.EVERYWHERE and node.model.timeseries:
            time = node.model.timeseries.event_time_column
            return Identity(node.model.unique_key, time, node.model.prefer)
        return Identity(row_order(node), None, node.model.prefer)

    def order(self) -> list[Column]:
        """The order of copies, best first; the caller adds the row hash."""
        return [*preference_order(self.prefer), *([column(self.time).asc()] if self.time else [])]

    def prepared(self, rows: DataFrame, names: Sequence[str]) -> DataFrame:
        """
        The rows with ``_rest``: the hash of ``names`` without the event time.

        Copies of one event time are compared by the row hash, and nothing is added.
        """
        if self.time is None:
            return rows
        hashed = [rows.schema[name] for name in names if name.lower() != self.time.lower()]
        return rows.withColumn(_REST, row_hash(T.StructType(hashed)))

    def compared(self, window: WindowSpec) -> tuple[Column, Column]:
        """``_differs`` and ``_elsewhere``, against the first row of a window."""
        rest = F.col(HASH if self.time is None else _REST)
        differs = rest != F.first(rest).over(window)
        if self.time is None:
            return differs.alias(DIFFERS), F.lit(False).alias(ELSEWHERE)
        time = column(self.time)
        return differs.alias(DIFFERS), (time != F.first(time).over(window)).alias(ELSEWHERE)


def row_order(node: Node) -> tuple[str, ...]:
    """The columns that find a stored row, and sort rows: event time, then key."""
    time = (node.model.timeseries.event_time_column,) if node.model.timeseries else ()
    # The event time may be part of the key as well.
    keys = [key for key in node.model.unique_key if key.lower() not in map(str.lower, time)]
    return (*time, *keys)


@returns(RANKED_COPIES)
def rank_copies(rows: DataFrame, identity: Identity, at: Column | None = None) -> DataFrame:
    """
    The rows with their place among the copies of their event, and how they differ.

    ``rows`` are ``identity.prepared``. ``at`` is a coarse function of the identity by which the
    rows are partitioned already: then the window needs no shuffle of its own. It comes last, as
    Spark sorts by the first column's values and looks at the others where these are equal.
    """
    coarse = () if at is None else (at,)
    window = Window.partitionBy(*map(column, identity.keys), *coarse).orderBy(
        *identity.order(), F.col(HASH), F.col(FILE)
    )
    return rows.select(
        "*",
        F.row_number().over(window).alias(PLACE),
        *identity.compared(window),
    )


def preference_order(prefer: Sequence[str]) -> list[Column]:
    """The declared order as sort columns; NULL is never preferred."""
    columns = []
    for entry in prefer:
        name, _, direction = entry.strip().rpartition(" ")
        if direction.lower() not in ("asc", "desc") or not name:
            name, direction = entry.strip(), "asc"
        by = column(name.strip().strip("`"))
        columns.append(by.desc_nulls_last() if direction.lower() == "desc" else by.asc_nulls_last())
    return columns


@returns(JUDGED_COPIES)
def copy_fates(copies: DataFrame, identity: Identity, version: int) -> DataFrame:
    """
    Competing copies with what happens to each.

    ``copies`` are ``identity.prepared``; at most one copy of an identity is stored.
    """
    alike = Window.partitionBy(*map(column, identity.keys))
    order = alike.orderBy(F.col(GONE), *identity.order(), F.col(HASH), F.col(ORIGIN), F.col(FILE))
    stored = F.col(ORIGIN) == STORED
    ranked = copies.select(
        "*",
        F.row_number().over(order).alias("_place"),
        F.first(HASH).over(order).alias("_best"),
        *identity.compared(order),
        F.first(GONE).over(order).alias("_none"),  # even the first is gone: nothing is kept
        F.max(F.when(stored & F.col(GONE), F.col(HASH))).over(alike).alias("_left"),
        F.max(F.when(stored & F.col(GONE), F.col(VERSION))).over(alike).alias("_since"),
    )
    wins = (F.col("_place") == 1) & ~F.col(GONE)
    moved = F.col("_left").isNotNull() & (F.col("_left") == F.col("_best")) & ~F.col("_none")
    fate = (
        F.when(stored & wins, CopyFate.STAYS.value)
        .when(stored & F.col(GONE) & moved, CopyFate.MOVED_OUT.value)
        .when(stored & F.col(GONE), CopyFate.REMOVED.value)
        .when(stored, CopyFate.BEATEN.value)
        .when(wins & moved, CopyFate.MOVED_IN.value)
        .when(wins, CopyFate.ADDED.value)
        .when(F.col(ORIGIN) == BACK, CopyFate.STILL_LOST.value)
        .otherwise(CopyFate.LEFT_OUT.value)
    )
    kept_version = F.when(~stored & wins & moved, F.col("_since"))  # of one that is moved in
    new_version = F.coalesce(kept_version, F.lit(version).cast("bigint")).alias(VERSION)
    return ranked.select(
        *(new_version if name == VERSION else column(name) for name in copies.columns),
        *(DIFFERS, ELSEWHERE),
        fate.alias(FATE),
    )


def rows_with_identity_of(rows: DataFrame, others: DataFrame, identity: Sequence[str]) -> DataFrame:
    """The rows whose identity is that of one of ``others``; identities are never NULL."""
    return _rows_by_identity(rows, others, identity, "left_semi")


def rows_without_identity_of(
    rows: DataFrame, others: DataFrame, identity: Sequence[str]
) -> DataFrame:
    """The rows whose identity none of ``others`` has."""
    return _rows_by_identity(rows, others, identity, "left_anti")


def _rows_by_identity(
    rows: DataFrame, others: DataFrame, identity: Sequence[str], how: str
) -> DataFrame:
    keys = others.select(*(column(name).alias(f"_i{at}") for at, name in enumerate(identity)))
    same = [column(name) == F.col(f"_i{at}") for at, name in enumerate(identity)]
    return rows.join(keys, reduce(and_, same), how)
