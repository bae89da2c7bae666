"""
Sessions in quarantine: longer than the limit or put there by hand, known by their spans alone.

They are in the ledger and not in the table, so a session that goes on for years costs what its
new events cost: an *entry* takes part in a fold as a stored session does, and of its events none
are read again but those that stay in the table (``keep: head``), when something changes in them.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import astuple

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F
from pyspark.sql import types as T

from infold.core.manual_entry import ManualEntry
from infold.core.project import SessionsQuery
from infold.core.record import QuarantinedSession
from infold.core.session_columns import FIRST, LAST
from infold.core.session_rules import Keep
from infold.spark.content import column, micros
from infold.spark.sessions.cuts import (
    ALL,
    CARRIED,
    COUNT,
    IN_FORCE,
    NAMED,
    NAMED_AT,
    UNTIL,
    WHOLE_USER,
    WHOLE_USER_AT,
)
from infold.spark.sessions.delta import ANY_BEGINS, GONE, LEAST_CAMPAIGN, MOST_CAMPAIGN
from infold.spark.sessions.islands import END, EVENTS, START, USER
from infold.spark.sessions.manual_entries import RULED, about, ruled, said
from infold.spark.sessions.stored import of
from infold.spark.sessions.totals import OLD

ENTRY = "__entry"
"""Of what takes part in a fold: where an entry begins; NULL for what is none."""

HELD, FREED = "__held", "__freed"
"""Of a component: its entries as they are now, and where those begin that it had."""

OUT = "__out"
"""Whether nothing stays in the table of a session in quarantine."""

HEAD = "__head"
"""Of a component: the last instant that is read again, where that is not its own."""

_ENTRY = T.StructType(
    [
        T.StructField("of", T.StringType()),
        T.StructField("start", T.LongType()),
        T.StructField("end", T.LongType()),
        T.StructField("events", T.LongType()),
        T.StructField("user", T.StringType()),
        T.StructField("user_at", T.LongType()),
        T.StructField("carried", T.StringType()),
        T.StructField("campaign", T.StringType()),
    ]
)


_SPAN = T.StructType(
    [
        T.StructField(USER, T.StringType()),
        T.StructField(START, T.LongType()),
        T.StructField(END, T.LongType()),
    ]
)


def with_entries(everything: DataFrame, entries: Sequence[QuarantinedSession]) -> DataFrame:
    """
    Islands and stored sessions, with entries beside them.

    What the table keeps of a session in quarantine has been counted in its entry already.
    """
    types = {field.name: field.dataType for field in everything.schema}
    if CARRIED in types:
        types[IN_FORCE] = T.StringType()
    values = [astuple(entry) for entry in entries]
    names = (USER, START, END, COUNT, NAMED, NAMED_AT, CARRIED, IN_FORCE)
    made = everything.sparkSession.createDataFrame(values, _ENTRY).toDF(*names)
    rows = made.select(
        *(F.col(name).cast(types[name]).alias(name) for name in names if name in types),
        F.lit(0).cast("bigint").alias(EVENTS),
        F.lit(False).alias(GONE),
        F.col(START).alias(ENTRY),
    )
    found = everything.unionByName(rows, allowMissingColumns=True)
    entered = F.max(ENTRY).over(Window.partitionBy(USER, START)).isNotNull()
    head = F.col(OLD).isNotNull() & entered
    parts = [name for name in (COUNT, NAMED, NAMED_AT) if name in types]
    return found.withColumns({name: F.when(~head, F.col(name)) for name in parts})


def beside(delta: DataFrame, entries: Sequence[QuarantinedSession]) -> DataFrame:
    """Where something changed, and where entries of the same users lie: their heads count too."""
    spans = _spans(delta, entries, delta.schema[USER].dataType)
    theirs = spans.join(delta.select(USER), USER, "left_semi").select(USER, START, END)
    return delta.select(USER, START, END).unionByName(theirs)


def _spans(
    frame: DataFrame, entries: Iterable[QuarantinedSession], of_type: T.DataType
) -> DataFrame:
    """Where entries lie, as rows."""
    values = [(entry.owner, entry.start, entry.end) for entry in entries]
    made = frame.sparkSession.createDataFrame(values, _SPAN)
    return made.select(F.col(USER).cast(of_type).alias(USER), START, END)


def concerned(
    table: DataFrame,
    query: SessionsQuery,
    entries: Sequence[ManualEntry],
    held: Sequence[QuarantinedSession],
    of_type: T.DataType,
) -> DataFrame:
    """The spans of the stored sessions, and of those in quarantine, that entries are about."""
    spoken = said(table, entries)
    first, last = micros(column(FIRST)), micros(column(LAST))
    same = of(query).cast("string") == F.col("__of")
    there = table.join(
        F.broadcast(spoken), same & about(F.col("since"), F.col("until"), first, last), "left_semi"
    ).select(of(query).cast(of_type).alias(USER), first.alias(START), last.alias(END))
    kept = (
        one
        for one in held
        if any(entry.applies_to(one.owner, one.start, one.end) for entry in entries)
    )
    return there.unionByName(_spans(table, kept, of_type))


def judged(
    components: DataFrame,
    query: SessionsQuery,
    *,
    one: Column,
    again: Column,
    tied: Column,
    changed: Column,
) -> DataFrame:
    """
    Components with their entries, and in ``__again`` whether events have to be read again.

    ``one`` says which are one session each whatever their events are; ``again`` whether they would
    be read again were there no quarantine; ``tied`` whether their user cannot be told from parts;
    ``changed`` is the first instant of something new. Of what goes on in quarantine nothing is
    read again but the head, if that changed: the component then ends with its head.
    """
    rows = ruled(components, query, F.col(START), F.col(END))
    until = F.col(START) + F.lit(query.quarantine_after).cast("bigint")
    held = one & _held(query, F.col(END) - F.col(START))
    out = held & _out(query)
    head = tied | (~out & (changed <= until))
    entries = F.array(entry(rows, F.col(END), F.col(COUNT), NAMED, NAMED_AT))
    alone = F.when(held & head & ~tied, until)
    was = F.size(FREED) > 0
    return rows.withColumns(
        {
            HELD: F.when(held, entries).otherwise(nothing()),
            OUT: out,
            HEAD: alone,
            END: F.coalesce(alone, END),
            "__again": F.when(held, head).otherwise(again | was),
        }
    ).drop(RULED)


def uncut(query: SessionsQuery) -> Column:
    """
    Whether a component is one session in quarantine that nothing new can end or begin anew.

    One campaign is in force in a session from its first instant on. Events with that campaign, or
    with none, leave it whole wherever they lie in it, and so do events that begin no session.
    """
    found = (F.size(FREED) == 1) & (F.get(FREED, F.lit(0)) == F.col(START))
    found = found & (F.size(OLD) == F.size(stays(OLD)))
    if query.cuts.start:
        found = found & ~F.coalesce(ANY_BEGINS, F.lit(False))
    if query.cuts.campaign:
        for new in (F.col(LEAST_CAMPAIGN), F.col(MOST_CAMPAIGN)):
            found = found & (new.isNull() | (new == F.col(IN_FORCE)))
    return F.coalesce(found, F.lit(False))


def _held(query: SessionsQuery, length: Column) -> Column:
    """Whether a session is in quarantine: as somebody said, else by its length."""
    longer = F.lit(False)
    if query.quarantine_after is not None:
        longer = length > query.quarantine_after
    return F.coalesce(F.col(RULED), longer)


def _out(query: SessionsQuery) -> Column:
    """Of sessions in quarantine: whether nothing of them stays."""
    return F.lit(query.keep is Keep.NOTHING) | F.coalesce(F.col(RULED), F.lit(False))


def entry(
    rows: DataFrame, end: Column, events: Column, user: str = NAMED, at: str = NAMED_AT
) -> Column:
    """An entry of rows that have what they are of and where they start."""
    named, cut = user in rows.columns, IN_FORCE in rows.columns
    unknown = F.lit(None).cast("string")
    values = {
        "of": F.col(USER).cast("string"),
        "start": F.col(START),
        "end": end,
        "events": events,
        "user": F.col(user).cast("string") if named else unknown,
        "user_at": F.col(at) if named else F.lit(None).cast("bigint"),
        "carried": F.col(CARRIED) if cut else unknown,
        "campaign": F.col(IN_FORCE) if cut else unknown,
    }
    return F.struct(*(value.alias(name) for name, value in values.items()))


def nothing() -> Column:
    """No entry."""
    return F.array().cast(T.ArrayType(_ENTRY))


def entered(found: DataFrame, query: SessionsQuery) -> DataFrame:
    """Sessions made from their events, each with its entry if it is in quarantine, and ``OUT``."""
    rows = ruled(found, query, F.col(START), F.col(UNTIL))
    held = _held(query, F.col(UNTIL) - F.col(START))
    one = F.array(entry(rows, F.col(UNTIL), F.col(ALL), WHOLE_USER, WHOLE_USER_AT))
    made = rows.withColumns({HELD: F.when(held, one).otherwise(nothing()), OUT: held & _out(query)})
    return made.drop(UNTIL, ALL, WHOLE_USER, WHOLE_USER_AT, IN_FORCE, RULED)


def whole(found: DataFrame) -> DataFrame:
    """Islands that are whole sessions, with what sessions made from their events say besides."""
    said = {UNTIL: F.col(END), ALL: F.col(EVENTS)}
    if NAMED in found.columns:
        said |= {WHOLE_USER: F.col(NAMED), WHOLE_USER_AT: F.col(NAMED_AT)}
    return found.withColumns(said)


def stays(old: str) -> Column:
    """The key of what stays in the table of a session in quarantine, among those there were."""
    return F.filter(old, lambda key: micros(key["first"]) == F.col(START))


Moved = tuple[tuple[QuarantinedSession, ...], tuple[tuple[str, int], ...]]
"""Entries as they are now, and the keys of entries that were there."""


def taken(changed: DataFrame) -> Moved:
    """The entries of changed components as they are now, and those they had."""
    moved = changed.where((F.size(HELD) > 0) | (F.size(FREED) > 0))
    held, freed = [], []
    for row in moved.select(F.col(USER).cast("string").alias("of"), HELD, FREED).collect():
        held += [QuarantinedSession(*entry) for entry in row[HELD]]
        freed += [(row["of"], start) for start in row[FREED]]
    return tuple(held), tuple(freed)


def all_held(found: DataFrame) -> tuple[QuarantinedSession, ...]:
    """The entries of all sessions of a first build."""
    rows = found.where(F.size(HELD) > 0).select(F.explode(HELD).alias("e")).select("e.*")
    return tuple(QuarantinedSession(*row) for row in rows.collect())
