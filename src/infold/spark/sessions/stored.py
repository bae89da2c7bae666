"""Sessions as their table stores them: sessions → rows, and rows → sessions again."""

from __future__ import annotations

from collections.abc import Sequence

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F
from pyspark.sql import types as T

from infold.core.interval import Granularity, Interval, Ranges
from infold.core.own_columns import FIRST, ID, LAST, STATE, VERSION
from infold.core.queries import SessionsQuery, quoted
from infold.core.sessions import NUMBERS
from infold.core.trace import CellState
from infold.spark.content import cell_of, cell_stats, column, content, micros
from infold.spark.frame_schema import ANY, FrameColumn, FrameSchema, returns
from infold.spark.inputs.changed_keys import MOST_BROADCAST_KEYS
from infold.spark.sessions.aggregates import CompiledAggregates, StateColumn
from infold.spark.sessions.cuts import cuts_of
from infold.spark.sessions.fold_changes import (
    CHANGED_COMPONENTS,
    KEY,
    NEW,
    OLD,
    ROW,
    key_of,
    keys_to_delete,
    rows_to_insert,
)
from infold.spark.sessions.frames import END, EVENTS, OWNER, START
from infold.spark.sessions.islands import shown_owner

TABLE_ROWS = FrameSchema(
    "a row of the table",
    (
        FrameColumn(ID, "string", "MD5 of owner and start"),
        FrameColumn(FIRST, ANY, "its first event's time, of the type of the input's time column"),
        FrameColumn(LAST, ANY, "its last event's time"),
        FrameColumn(STATE, "struct<…", "what the other columns do not show of it"),
        FrameColumn(VERSION, "bigint", "the version of the table that wrote it"),
    ),
    "the column of its user or identifier, the outputs of the SELECT, and columns that a caller"
    " keeps beside them",
)

_STATE_OWNER = "of"
"""The owner in ``_state_struct``, where the table's own column does not show all of it."""


def session_id(user: Column, start: Column) -> Column:
    """
    A session's id: MD5, in lower-case hex, of the text ``user|start``.

    The user (or identifier) is cast to a string, the start is in microseconds. A start has no bar
    in it, so different pairs are different texts.
    """
    return F.md5(F.concat_ws("|", user.cast("string"), start.cast("string")))


@returns(TABLE_ROWS)
def table_rows(
    sessions: DataFrame,
    query: SessionsQuery,
    compiled: CompiledAggregates,
    time: T.DataType,
    version: int,
    keep: Sequence[str] = (),
) -> DataFrame:
    """
    Sessions as rows of the table.

    ``time`` is the type of the input's time column; columns to ``keep`` come along at the end.
    """
    named = sessions.select(
        session_id(F.col(OWNER), F.col(START)).alias(ID),
        shown_owner(query).alias(query.user),
        F.timestamp_micros(START).cast(time).alias(FIRST),
        F.timestamp_micros(END).cast(time).alias(LAST),
        *(F.expr(sql).alias(name) for name, sql in compiled.values),
        _state_struct(query, compiled).alias(STATE),
        *keep,
    )
    if query.numbered:  # the numbers are found when all sessions of a user are known
        number, first = NUMBERS
        named = named.withColumns(
            {number: F.lit(None).cast("bigint"), first: F.lit(None).cast("boolean")}
        )
    if query.chosen_user:
        named = named.withColumn(query.chosen_user.name, F.expr(query.chosen_user.sql))
    return named.select(
        *map(column, query.fixed_columns),
        *(F.expr(output.sql).alias(output.name) for output in query.outputs),
        STATE,
        F.lit(version).cast("bigint").alias(VERSION),
        *keep,
    )


def _state_struct(query: SessionsQuery, compiled: CompiledAggregates) -> Column:
    """What the other columns do not show of a session and of its aggregates' states."""
    parts = [F.col(part.name) for part in compiled.stored]
    if query.fallback:
        parts.append(F.col(OWNER).alias(_STATE_OWNER))
    for cut in cuts_of(query).inner:
        parts += [F.col(name).alias(stored) for name, stored in cut.state.items()]
    return F.struct(*parts) if parts else F.struct(F.lit(None).cast("boolean").alias("none"))


def stored_owner(query: SessionsQuery) -> Column:
    """The owner of a stored session."""
    return F.col(f"{STATE}.{_STATE_OWNER}") if query.fallback else column(query.user)


def restored_columns(
    query: SessionsQuery, compiled: CompiledAggregates, types: T.StructType
) -> list[Column]:
    """The columns of a session, found in a stored row; ``types`` is the schema of islands."""
    return [
        stored_owner(query).cast(types[OWNER].dataType).alias(OWNER),
        micros(column(FIRST)).alias(START),
        micros(column(LAST)).alias(END),
        *(
            F.col(f"{STATE}.{stored}").alias(name)
            for cut in cuts_of(query).inner
            for name, stored in cut.state.items()
        ),
        *(
            stored_part(part).cast(types[part.name].dataType).alias(part.name)
            for part in compiled.parts
            if part.merge is not None
        ),
    ]


def stored_part(part: StateColumn) -> Column:
    """Where a stored row has a part of an aggregate's state."""
    return F.expr(part.restore or f"{STATE}.{quoted(part.name)}")


def cells_reaching(cells: Sequence[CellState], ranges: Ranges) -> list[CellState]:
    """The cells that may have a session which reaches into ``ranges``."""
    reaching = []
    for state in cells:
        last = state.cell.end if state.last is None else max(state.last + 1, state.cell.end)
        if ranges.overlaps(Interval(state.cell.start, last)):
            reaching.append(state)
    return reaching


# A session that comes, goes or moves renumbers those of its user that follow it and no others.
# Sessions without a user have no number.

_USER = "__user_of_changed"
"""A user who has a changed session."""
_ID, _FIRST = "__id", "__first"
"""A session: its id and its start."""


def with_session_numbers(rows: DataFrame, query: SessionsQuery) -> DataFrame:
    """Rows, which are all sessions of some users, with their numbers."""
    number, first = NUMBERS
    user = column(query.owner_column)
    in_order = Window.partitionBy(user).orderBy(FIRST, ID)
    session_number = F.when(user.isNotNull(), F.row_number().over(in_order).cast("bigint"))
    return rows.withColumns({number: session_number, first: session_number == 1})


@returns(CHANGED_COMPONENTS)
def renumbered_sessions(
    changed: DataFrame,
    table: DataFrame,
    query: SessionsQuery,
    granularity: Granularity | None,
    version: int,
    *,
    rows: int,
) -> DataFrame:
    """
    What has to be changed of a table for every session to have its number, session by session.

    ``changed`` are the components of a fold, without numbers, which change ``rows`` of ``table`` as
    it was before. All sessions of users who have a changed one are looked at.
    """
    user = column(query.owner_column)
    added, removed_keys = rows_to_insert(changed), keys_to_delete(changed)
    if rows <= MOST_BROADCAST_KEYS:
        removed_keys = F.broadcast(removed_keys)  # at most ``MOST_BROADCAST_KEYS`` rows
    removed = table.join(removed_keys, [ID, FIRST], "left_semi")
    users = added.select(user.alias(_USER)).union(removed.select(user.alias(_USER))).distinct()
    if rows <= MOST_BROADCAST_KEYS:
        users = F.broadcast(users)  # at most ``MOST_BROADCAST_KEYS`` rows
    sessions = table.join(users, user == F.col(_USER), "left_semi")
    sessions = sessions.unionByName(removed.where(user.isNull()))
    unchanged = sessions.join(removed_keys, [ID, FIRST], "left_anti")
    numbered = with_session_numbers(unchanged.unionByName(added), query)
    numbered = numbered.withColumn(VERSION, F.lit(version).cast("bigint"))
    # Joins by name reorder columns, and hashes would differ.
    numbered = numbered.select(*map(column, table.columns))
    return sessions_that_differ(sessions, numbered, granularity)


@returns(CHANGED_COMPONENTS)
def sessions_that_differ(
    before: DataFrame, current: DataFrame, granularity: Granularity | None
) -> DataFrame:
    """What has to be changed of rows of the table for them to be others, session by session."""
    row = F.struct(*map(column, before.columns))
    old = before.select(key_of(before, granularity).alias(KEY), F.lit(None).cast(before.schema))
    keyed_now = current.select(key_of(current, granularity).alias(KEY), row)
    both = old.toDF(KEY, ROW).unionAll(keyed_now.toDF(KEY, ROW))
    session = [F.col(f"{KEY}.id").alias(_ID), F.col(f"{KEY}.first").alias(_FIRST)]
    pairs = both.groupBy(*session).agg(
        F.collect_list(F.when(F.col(ROW).isNull(), F.col(KEY))).alias(OLD),
        F.collect_list(F.when(F.col(ROW).isNotNull(), F.struct(KEY, ROW))).alias(NEW),
    )
    differs = F.col(OLD) != F.transform(NEW, lambda new: new[KEY])
    return pairs.where(differs).select(OLD, NEW, F.lit(0).alias(EVENTS))


def states_of_sessions(
    rows: DataFrame, granularity: Granularity | None, total: Column | None = None
) -> dict[CellState, int]:
    """The states of the cells of stored sessions, each with the sum of a column over it."""
    last, summed = micros(F.col(LAST)), F.lit(0) if total is None else total
    stats = cell_stats(rows, F.col(FIRST), granularity, last=last, total=summed)
    return {
        CellState(
            cell_of(row["cell"], granularity),
            row["rows"],
            content(row["hi"], row["lo"]),
            row["last"],
        ): row["total"]
        # At most a row for each cell.
        for row in stats.collect()
    }
