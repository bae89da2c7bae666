"""
Sessions in quarantine: longer than the limit or put there by hand, known by their spans alone.

They are in the ledger and not in the table. So a session that goes on for years costs as much as
its new events: its *entry* takes part in a fold as a stored session does, and none of its events
are read again but those that stay in the table (``keep: head``), when something changes in them.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import astuple

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F
from pyspark.sql import types as T

from infold.core.own_columns import FIRST, LAST
from infold.core.queries import SessionsQuery
from infold.core.record import QuarantinedSession
from infold.core.sessions import Keep, ManualEntry
from infold.spark.content import column, micros
from infold.spark.frame_schema import ANY, FrameColumn, FrameSchema, returns
from infold.spark.sessions.cuts import cuts_of
from infold.spark.sessions.fold_changes import OLD, REMOVED
from infold.spark.sessions.frames import (
    AGAIN,
    END,
    EVENT_COUNT,
    EVENTS,
    ISLANDS,
    OWNER,
    START,
    USER_AT,
    USER_VALUE,
    WHOLE_END,
    WHOLE_EVENTS,
    WHOLE_USER,
    WHOLE_USER_AT,
)
from infold.spark.sessions.stored import stored_owner

OLD_ENTRY = "__old_entry"
"""Of what takes part in a fold: the start of an entry; NULL for what is none."""

NEW_ENTRIES, OLD_ENTRIES = "__new_entries", "__old_entries"
"""Of a component: its entries as they are now, and the starts of those that it had."""

LEAVES_TABLE = "__leaves_table"
"""Whether nothing stays in the table of a session in quarantine."""

HEAD_END = "__head_end"
"""Of a component: the last instant that is read again, where that is not its own."""

_ENTRY = T.StructType(
    [
        T.StructField("owner", T.StringType()),
        T.StructField("start", T.LongType()),
        T.StructField("end", T.LongType()),
        T.StructField("events", T.LongType()),
        T.StructField("user", T.StringType()),
        T.StructField("user_at", T.LongType()),
        T.StructField("carried", T.StringType()),
        T.StructField("campaign", T.StringType()),
    ]
)
"""An entry: the fields of ``QuarantinedSession``."""

_SPAN = T.StructType(
    [
        T.StructField(OWNER, T.StringType()),
        T.StructField(START, T.LongType()),
        T.StructField(END, T.LongType()),
    ]
)

ENTRY_SPANS = FrameSchema(
    "where a session lies",
    (
        FrameColumn(OWNER, ANY, "the user or identifier"),
        FrameColumn(START, "bigint", "its first instant"),
        FrameColumn(END, "bigint", "its last instant"),
    ),
)

JUDGED_SESSIONS = ISLANDS.plus(
    "a session with its entry, if it is in quarantine",
    FrameColumn(NEW_ENTRIES, "array<struct<…", "its entry, or nothing"),
    FrameColumn(LEAVES_TABLE, "boolean", "whether nothing of it stays in the table"),
)


def with_entries(
    stored_and_islands: DataFrame, query: SessionsQuery, entries: Sequence[QuarantinedSession]
) -> DataFrame:
    """
    Islands and stored sessions, with entries beside them.

    What the table keeps of a session in quarantine has been counted in its entry already.
    """
    by_field = {
        "owner": OWNER,
        "start": START,
        "end": END,
        "events": EVENT_COUNT,
        "user": USER_VALUE,
        "user_at": USER_AT,
    }
    types = {field.name: field.dataType for field in stored_and_islands.schema}
    for cut in cuts_of(query).inner:
        for field, name in cut.entry_fields.items():
            by_field[field] = name
            types.setdefault(name, _ENTRY[field].dataType)
    values = [astuple(entry) for entry in entries]
    entry_rows = stored_and_islands.sparkSession.createDataFrame(values, _ENTRY)
    rows = entry_rows.select(
        *(
            F.col(field).cast(types[name]).alias(name)
            for field, name in by_field.items()
            if name in types
        ),
        F.lit(0).cast("bigint").alias(EVENTS),
        F.lit(False).alias(REMOVED),
        F.col("start").alias(OLD_ENTRY),
    )
    participants = stored_and_islands.unionByName(rows, allowMissingColumns=True)
    entered = F.max(OLD_ENTRY).over(Window.partitionBy(OWNER, START)).isNotNull()
    head = F.col(OLD).isNotNull() & entered
    parts = [name for name in (EVENT_COUNT, USER_VALUE, USER_AT) if name in types]
    return participants.withColumns({name: F.when(~head, F.col(name)) for name in parts})


@returns(ENTRY_SPANS)
def changed_or_entered(changes: DataFrame, entries: Sequence[QuarantinedSession]) -> DataFrame:
    """Where something changed, and where entries of the same owners lie, which may have heads."""
    spans = entry_spans(changes, entries, changes.schema[OWNER].dataType)
    entered = spans.join(changes.select(OWNER), OWNER, "left_semi").select(OWNER, START, END)
    return changes.select(OWNER, START, END).unionByName(entered)


@returns(ENTRY_SPANS)
def entry_spans(
    frame: DataFrame, entries: Iterable[QuarantinedSession], owner_type: T.DataType
) -> DataFrame:
    """Where entries lie, as rows."""
    values = [(entry.owner, entry.start, entry.end) for entry in entries]
    rows = frame.sparkSession.createDataFrame(values, _SPAN)
    return rows.select(F.col(OWNER).cast(owner_type).alias(OWNER), START, END)


@returns(ENTRY_SPANS)
def manual_entry_spans(
    table: DataFrame,
    query: SessionsQuery,
    entries: Sequence[ManualEntry],
    quarantined: Sequence[QuarantinedSession],
    owner_type: T.DataType,
) -> DataFrame:
    """Where the sessions lie, stored and in quarantine, that manual entries are about."""
    about_spans = manual_entry_rows(table, entries)
    first, last = micros(column(FIRST)), micros(column(LAST))
    same = stored_owner(query).cast("string") == F.col(ENTRY_OWNER)
    about = same & is_about(F.col(ENTRY_START), F.col(ENTRY_END), first, last)
    # At most a row for each manual entry.
    stored = table.join(F.broadcast(about_spans), about, "left_semi").select(
        stored_owner(query).cast(owner_type).alias(OWNER), first.alias(START), last.alias(END)
    )
    entered = (
        session
        for session in quarantined
        if any(entry.applies_to(session.owner, session.start, session.end) for entry in entries)
    )
    return stored.unionByName(entry_spans(table, entered, owner_type))


def with_judgement(
    components: DataFrame,
    query: SessionsQuery,
    *,
    is_single: Column,
    tied: Column,
    changed: Column,
) -> DataFrame:
    """
    Components with their entries, and in ``AGAIN`` whether events have to be read again.

    ``is_single`` is true of components that are one session each; ``tied`` of those with a user
    that does not follow from the merged states. ``changed`` is the first instant of something new.
    Before, ``AGAIN`` is true of components that would be read again without a quarantine. Of a
    session that stays in quarantine only the head is read again, if that changed: the component
    then ends there.
    """
    rows = with_manual_entries(components, query, F.col(START), F.col(END))
    until = F.col(START) + F.lit(query.quarantine_after).cast("bigint")
    entered = is_single & _in_quarantine(query, F.col(END) - F.col(START))
    leaves = entered & _leaves_table(query)
    read_again = tied | (~leaves & (changed <= until))
    entries = F.array(_entry(rows, query, F.col(END), F.col(EVENT_COUNT), USER_VALUE, USER_AT))
    head_end = F.when(entered & read_again & ~tied, until)
    had_entry = F.size(OLD_ENTRIES) > 0
    return rows.withColumns(
        {
            NEW_ENTRIES: F.when(entered, entries).otherwise(no_entries()),
            LEAVES_TABLE: leaves,
            HEAD_END: head_end,
            END: F.coalesce(head_end, END),
            AGAIN: F.when(entered, read_again).otherwise(F.col(AGAIN) | had_entry),
        }
    ).drop(HELD_BY_HAND)


def stays_whole(query: SessionsQuery) -> Column:
    """Of a component: whether it is one session, whatever the cuts do with its new events."""
    cuts = cuts_of(query)
    stays = F.lit(True)
    if not cuts.merge:  # then only what is an entry is known to be one session
        stays = (F.size(OLD_ENTRIES) == 1) & (F.get(OLD_ENTRIES, F.lit(0)) == F.col(START))
        stays = stays & (F.size(OLD) == F.size(keys_of_head(OLD)))
    for cut in cuts.inner:
        whole = cut.leaves_whole()
        stays = stays if whole is None else stays & whole
    return F.coalesce(stays, F.lit(False))


def _in_quarantine(query: SessionsQuery, length: Column) -> Column:
    """Whether a session is in quarantine: by its latest manual entry, else by its length."""
    longer = F.lit(False)
    if query.quarantine_after is not None:
        longer = length > query.quarantine_after
    return F.coalesce(F.col(HELD_BY_HAND), longer)


def _leaves_table(query: SessionsQuery) -> Column:
    """Of a session in quarantine: whether nothing of it stays."""
    return F.lit(query.keep is Keep.NOTHING) | F.coalesce(F.col(HELD_BY_HAND), F.lit(False))


def _entry(
    rows: DataFrame, query: SessionsQuery, end: Column, events: Column, user: str, user_at: str
) -> Column:
    """The entry of a row that has an owner, a start, and what the cuts keep."""
    values = {
        "owner": F.col(OWNER),
        "start": F.col(START),
        "end": end,
        "events": events,
        **({"user": F.col(user), "user_at": F.col(user_at)} if user in rows.columns else {}),
        **{
            field: F.col(name)
            for cut in cuts_of(query).inner
            for field, name in cut.entry_fields.items()
        },
    }
    unknown = F.lit(None)
    return F.struct(
        *(
            values.get(field.name, unknown).cast(field.dataType).alias(field.name)
            for field in _ENTRY.fields
        )
    )


def no_entries() -> Column:
    """An empty array of entries."""
    return F.array().cast(T.ArrayType(_ENTRY))


@returns(JUDGED_SESSIONS)
def with_new_entries(sessions: DataFrame, query: SessionsQuery) -> DataFrame:
    """Sessions made from their events, each with its entry if it is in quarantine."""
    rows = with_manual_entries(sessions, query, F.col(START), F.col(WHOLE_END))
    entered = _in_quarantine(query, F.col(WHOLE_END) - F.col(START))
    entry = F.array(
        _entry(rows, query, F.col(WHOLE_END), F.col(WHOLE_EVENTS), WHOLE_USER, WHOLE_USER_AT)
    )
    judged = rows.withColumns(
        {
            NEW_ENTRIES: F.when(entered, entry).otherwise(no_entries()),
            LEAVES_TABLE: entered & _leaves_table(query),
        }
    )
    others = entry_columns(query)
    return judged.drop(WHOLE_END, WHOLE_EVENTS, WHOLE_USER, WHOLE_USER_AT, HELD_BY_HAND, *others)


def entry_columns(query: SessionsQuery) -> list[str]:
    """What cuts keep of a session for its entry alone, and not in the table."""
    return [
        name
        for cut in cuts_of(query).inner
        for name in cut.entry_fields.values()
        if name not in cut.state
    ]


def with_whole_columns(islands: DataFrame) -> DataFrame:
    """Islands that are whole sessions, with the columns that ``sessions_of`` adds for entries."""
    added = {WHOLE_END: F.col(END), WHOLE_EVENTS: F.col(EVENTS)}
    if USER_VALUE in islands.columns:
        added |= {WHOLE_USER: F.col(USER_VALUE), WHOLE_USER_AT: F.col(USER_AT)}
    return islands.withColumns(added)


def keys_of_head(old: str) -> Column:
    """The key of what stays in the table of a session in quarantine, among a component's keys."""
    return F.filter(old, lambda key: micros(key["first"]) == F.col(START))


MovedEntries = tuple[tuple[QuarantinedSession, ...], tuple[tuple[str, int], ...]]
"""Entries as they are now, and the keys of entries that were there."""


def moved_entries(changed: DataFrame) -> MovedEntries:
    """The entries of changed components as they are now, and those they had."""
    moved = changed.where((F.size(NEW_ENTRIES) > 0) | (F.size(OLD_ENTRIES) > 0))
    new, old = [], []
    owner = F.col(OWNER).cast("string").alias("owner")
    # At most a row for each session in quarantine, as the ledger has them.
    for row in moved.select(owner, NEW_ENTRIES, OLD_ENTRIES).collect():
        new += [QuarantinedSession(*entry) for entry in row[NEW_ENTRIES]]
        old += [(row["owner"], start) for start in row[OLD_ENTRIES]]
    return tuple(new), tuple(old)


def all_entries(sessions: DataFrame) -> tuple[QuarantinedSession, ...]:
    """The entries in ``NEW_ENTRIES`` of all sessions of a first build, collected."""
    entry = F.explode(NEW_ENTRIES).alias("e")
    rows = sessions.where(F.size(NEW_ENTRIES) > 0).select(entry).select("e.*")
    # At most a row for each session in quarantine, as the ledger has them.
    return tuple(QuarantinedSession(*row) for row in rows.collect())


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
_ENTRIES_BY_OWNER = T.StructType(
    [_OWNER, T.StructField(_ENTRIES, T.ArrayType(T.StructType(_MANUAL_ENTRY)))]
)


def with_manual_entries(
    rows: DataFrame, query: SessionsQuery, start: Column, end: Column
) -> DataFrame:
    """Rows of an ``OWNER``, with the latest entry about a session of it from start to end."""
    if not query.entries:
        return rows.withColumn(HELD_BY_HAND, F.lit(None).cast("boolean"))
    by_owner: dict[str, list[tuple[object, ...]]] = {}
    for manual in query.entries:
        by_owner.setdefault(manual.owner, []).append(
            (manual.start, manual.end, manual.in_quarantine)
        )
    entries_by_owner = rows.sparkSession.createDataFrame(list(by_owner.items()), _ENTRIES_BY_OWNER)
    same = F.col(OWNER).cast("string") == F.col(ENTRY_OWNER)
    # At most a row for each manual entry.
    rows_with_entries = rows.join(F.broadcast(entries_by_owner), same, "left")
    matching = F.filter(
        _ENTRIES, lambda entry: is_about(entry[ENTRY_START], entry[ENTRY_END], start, end)
    )
    last = F.try_element_at(matching, F.lit(-1))
    return rows_with_entries.withColumn(HELD_BY_HAND, last[ENTRY_HELD]).drop(ENTRY_OWNER, _ENTRIES)


def is_about(entry_start: Column, entry_end: Column, start: Column, end: Column) -> Column:
    """Whether an entry about one span is about a session of another span."""
    return entry_start.isNull() | ((start <= entry_end) & (end >= entry_start))


@returns(MANUAL_ENTRIES)
def manual_entry_rows(frame: DataFrame, entries: Sequence[ManualEntry]) -> DataFrame:
    """Entries as rows, made by the session of a frame."""
    values = [(entry.owner, entry.start, entry.end, entry.in_quarantine) for entry in entries]
    return frame.sparkSession.createDataFrame(values, _ROW)
