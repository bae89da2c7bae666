"""
The number of each session among those of its user, in order of start and id, from 1.

A session that comes, goes or moves renumbers those of its user that follow it and no others.
Sessions without a user have no number.
"""

from __future__ import annotations

from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as F

from infold.core.interval import Granularity
from infold.core.own_columns import FIRST, ID, VERSION
from infold.core.queries import SessionsQuery
from infold.core.session_rules import NUMBERS
from infold.spark.content import column
from infold.spark.frame_schema import returns
from infold.spark.inputs.changed_keys import SMALL
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
from infold.spark.sessions.frames import EVENTS

_USER = "__user_of_changed"
"""A user who has a changed session."""
_ID, _FIRST = "__id", "__first"
"""A session: its id and its start."""


def with_session_numbers(rows: DataFrame, query: SessionsQuery) -> DataFrame:
    """Rows, which are all sessions of some users, with their numbers."""
    number, first = NUMBERS
    user = column(query.owner_column)
    in_order = Window.partitionBy(user).orderBy(FIRST, ID)
    found = F.when(user.isNotNull(), F.row_number().over(in_order).cast("bigint"))
    return rows.withColumns({number: found, first: found == 1})


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
    fresh, gone = rows_to_insert(changed), keys_to_delete(changed)
    if rows <= SMALL:
        gone = F.broadcast(gone)  # at most ``SMALL`` rows
    lost = table.join(gone, [ID, FIRST], "left_semi")
    users = fresh.select(user.alias(_USER)).union(lost.select(user.alias(_USER))).distinct()
    if rows <= SMALL:
        users = F.broadcast(users)  # at most ``SMALL`` rows
    theirs = table.join(users, user == F.col(_USER), "left_semi")
    theirs = theirs.unionByName(lost.where(user.isNull()))
    stay = theirs.join(gone, [ID, FIRST], "left_anti")
    now = with_session_numbers(stay.unionByName(fresh), query)
    now = now.withColumn(VERSION, F.lit(version).cast("bigint"))
    now = now.select(*map(column, table.columns))  # joins by name reorder, and hashes would differ
    return sessions_that_differ(theirs, now, granularity)


@returns(CHANGED_COMPONENTS)
def sessions_that_differ(
    was: DataFrame, now: DataFrame, granularity: Granularity | None
) -> DataFrame:
    """What has to be changed of rows of the table for them to be others, session by session."""
    row = F.struct(*map(column, was.columns))
    old = was.select(key_of(was, granularity).alias(KEY), F.lit(None).cast(was.schema))
    made = now.select(key_of(now, granularity).alias(KEY), row)
    both = old.toDF(KEY, ROW).unionAll(made.toDF(KEY, ROW))
    session = [F.col(f"{KEY}.id").alias(_ID), F.col(f"{KEY}.first").alias(_FIRST)]
    pairs = both.groupBy(*session).agg(
        F.collect_list(F.when(F.col(ROW).isNull(), F.col(KEY))).alias(OLD),
        F.collect_list(F.when(F.col(ROW).isNotNull(), F.struct(KEY, ROW))).alias(NEW),
    )
    other = F.col(OLD) != F.transform(NEW, lambda new: new[KEY])
    return pairs.where(other).select(OLD, NEW, F.lit(0).alias(EVENTS))
