"""
Sessions from scratch, the textbook way: what the fold is compared with, written independently.

A session starts where the silence before an event exceeds the gap; a running count of starts
numbers the sessions of a user; Spark's own aggregates do the rest. Where more than silences ends
a session, the instants of a user are processed one after the other.

This is slow and plain on purpose. It has its own reading of every declared cut, and imports nothing
of ``spark/sessions``: a mistake in code that both shared would never be found.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import reduce
from itertools import chain
from typing import Any, TypeVar

import pyarrow as pa
from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F
from pyspark.sql import types as T

from infold.core.functions import FunctionCode
from infold.core.interval import Ranges
from infold.core.plan import Step
from infold.core.queries import VALID_FROM, VALID_TO, Aggregate, SessionsQuery, VersionedQuery
from infold.core.sessions import (
    Campaign,
    DeclaredCut,
    Keep,
    MaxLength,
    Midnight,
    Nulls,
    Rule,
    StartEvents,
)
from infold.spark.content import column, micros, time_predicate
from infold.spark.frame_schema import ANY, FrameColumn, FrameSchema, returns
from infold.spark.python_functions.author_code import AuthorCode, values_of
from infold.spark.python_functions.register import session_function
from infold.spark.sessions.components import query_of
from infold.spark.step_context import Work

_NUMBER, _OWNER, _AT, _DECISION = "_infold_number", "_infold_of", "_infold_at", "_infold_word"

NUMBERED_EVENTS = FrameSchema(
    "an event with its session",
    (
        FrameColumn(_OWNER, ANY, "the user or identifier that the session belongs to"),
        FrameColumn(_AT, "bigint", "the event time, microseconds since 1970 UTC"),
        FrameColumn(_NUMBER, "bigint", "the session's number, or its start in microseconds"),
    ),
    "the input's columns, and those that numbered the sessions",
)

KEPT_EVENTS = NUMBERED_EVENTS.plus(
    "an event that stays out of quarantine",
    FrameColumn(
        _DECISION, "boolean", "whether the last manual entry quarantines it; NULL: no entry"
    ),
)

QUARANTINED = FrameSchema(
    "a session in quarantine",
    (
        FrameColumn("of", "string", "the user or identifier"),
        FrameColumn("start", "bigint", "its first instant, microseconds since 1970 UTC"),
        FrameColumn("end", "bigint", "its last instant"),
        FrameColumn("events", "bigint", "how many events it has"),
    ),
)


@returns(QUARANTINED)
def quarantined(events: DataFrame, query: SessionsQuery) -> DataFrame:
    """The sessions in quarantine."""
    rows = _numbered_events(events, query, _event_order(events, query))
    spans = rows.groupBy(_OWNER, _NUMBER).agg(
        F.min(_AT).alias("start"), F.max(_AT).alias("end"), F.count(F.lit(1)).alias("events")
    )
    decided = _with_entries(spans, query, "start", "end")
    is_quarantined = _in_quarantine(query, F.col("start"), F.col("end"))
    named = decided.where(is_quarantined).withColumn("of", F.col(_OWNER).cast("string"))
    return named.select("of", "start", "end", "events")


@returns(NUMBERED_EVENTS)
def _numbered_events(events: DataFrame, query: SessionsQuery, order: Column) -> DataFrame:
    """The events of sessions, each with its session's number."""
    rows = events.where(query.where) if query.where else events
    rows = rows.withColumn(_OWNER, _owner(query)).where(F.col(_OWNER).isNotNull())
    rows = rows.withColumn(_AT, micros(column(query.time_column)))
    if not _cut_by_more(query):
        return _cut_by_silences(rows, query)
    rows, rule = _cut_step_by_step(rows, query, order), _declared_cut(query, Rule)
    return rows if rule is None else _cut_by_rule(rows, rule, order)


def sessions(events: DataFrame, query: SessionsQuery) -> DataFrame:
    """All sessions of ``events``: the columns that every session has, and the query's outputs."""
    order = _event_order(events, query)
    rows = _numbered_events(events, query, order)
    if query.may_quarantine:
        rows = _without_quarantine(rows, query)
    time = events.select(column(query.time_column)).schema.fields[0].dataType
    grouped = rows.groupBy(_OWNER, _NUMBER).agg(
        F.timestamp_micros(F.min(_AT)).cast(time).alias("session_start"),
        F.timestamp_micros(F.max(_AT)).cast(time).alias("session_end"),
        F.min(_AT).alias(_AT),
        *(aggregate(call, order, events).alias(call.name) for call in query.aggregates),
    )
    grouped = _with_one_zero(grouped, query)
    named = grouped.withColumn("session_id", session_id(F.col(_OWNER), F.col(_AT)))
    named = named.withColumn(query.user, _shown_owner(query))
    if query.chosen_user:
        named = named.withColumn(query.chosen_user.name, F.expr(query.chosen_user.sql))
    if query.numbered:
        named = with_session_numbers(named, column(query.owner_column))
    return named.select(
        *map(column, query.fixed_columns),
        *(F.expr(output.sql).alias(output.name) for output in query.outputs),
    )


def _with_one_zero(grouped: DataFrame, query: SessionsQuery) -> DataFrame:
    """0.0 and -0.0 are equal, so which of them min and max give depends on order: it is 0.0."""
    for call in query.aggregates:
        of = grouped.schema[call.name].dataType
        if call.call in ("min", "max") and isinstance(of, T.DoubleType | T.FloatType):
            value = column(call.name) + F.lit(0).cast(of)
            grouped = grouped.withColumn(call.name, value)
    return grouped


def with_session_numbers(rows: DataFrame, user: Column) -> DataFrame:
    """Sessions with their number among their user's sessions, by start."""
    first, number = "is_first_session", "session_number"
    earlier = Window.partitionBy(user).orderBy("session_start", "session_id")
    counted = F.count(F.lit(1)).over(earlier.rowsBetween(Window.unboundedPreceding, 0))
    rows = rows.withColumn(number, F.when(user.isNotNull(), counted))
    return rows.withColumn(first, F.col(number) == 1)


def _owner(query: SessionsQuery) -> Column:
    """The user or identifier of an event's session; with a fallback, a letter tells which."""
    identifier = F.expr(query.owner_sql) if query.owner_sql else column(query.user)
    if query.fallback is None:
        return identifier
    user = F.expr(query.fallback.user).cast("string")
    return F.when(
        identifier.isNotNull(), F.concat(F.lit("i"), identifier.cast("string"))
    ).otherwise(F.concat(F.lit("u"), user))


def _shown_owner(query: SessionsQuery) -> Column:
    if query.fallback is None:
        return F.col(_OWNER)
    return F.when(F.col(_OWNER).like("i%"), F.expr(f"substr({_OWNER}, 2)"))


def _cut_by_silences(rows: DataFrame, query: SessionsQuery) -> DataFrame:
    """Events with the number of their session, where only a silence ends one."""
    in_order = Window.partitionBy(_OWNER).orderBy(_AT)
    silence = F.col(_AT) - F.lag(_AT).over(in_order)
    starts = F.when(silence <= F.lit(query.gap), 0).otherwise(1)
    return rows.withColumn("_infold_starts", starts).withColumn(
        _NUMBER, F.sum("_infold_starts").over(in_order)
    )


def _cut_by_more(query: SessionsQuery) -> bool:
    """Whether anything but silences of one length ends sessions."""
    return bool(query.cuts or query.fallback or query.gap is None)


_Cut = TypeVar("_Cut", bound=DeclaredCut)


def _declared_cut(query: SessionsQuery, cut: type[_Cut]) -> _Cut | None:
    """The query's cut of one sort, if it has one."""
    return next((candidate for candidate in query.cuts if isinstance(candidate, cut)), None)


def _cut_step_by_step(rows: DataFrame, query: SessionsQuery, order: Column) -> DataFrame:
    """
    Events with the start of their session, found by processing the instants one by one.

    Three things of an instant matter: its day, its campaign, and whether it begins a session.
    """
    campaign = _campaign_text(query)
    starting, longest = _declared_cut(query, StartEvents), _declared_cut(query, MaxLength)
    begins, most = starting.sql if starting else "false", longest.length if longest else 2**61
    instants = (
        rows.withColumn("_infold_campaign", campaign)
        .groupBy(_OWNER, _AT)
        .agg(
            F.max_by(
                "_infold_campaign", F.when(F.col("_infold_campaign").isNotNull(), order)
            ).alias("campaign"),
            F.bool_or(F.expr(begins)).alias("begins"),
        )
        .withColumn("day", _day_begun(query))
        .groupBy(_OWNER)
        .agg(
            F.array_sort(
                F.collect_list(F.struct(F.col(_AT).alias("t"), "campaign", "begins", "day"))
            ).alias("_infold_instants")
        )
    )
    starts = instants.select(
        F.col(_OWNER).alias("_infold_whose"),
        F.expr(_SESSION_STARTS.format(gap=_gap_sql(query), most=most)).alias("_infold_all"),
    )
    with_starts = rows.join(starts, F.col(_OWNER) == F.col("_infold_whose"))
    start = F.expr(f"array_max(filter(_infold_all, s -> s <= {_AT}))")
    return with_starts.withColumn(_NUMBER, start)


def _cut_by_rule(rows: DataFrame, rule: Rule, order: Column) -> DataFrame:
    """Events with the start of their session, where a function divides what is one so far."""
    assert rule.code is not None, "a rule that was found"
    event = F.struct(order.alias("o"), F.col(_AT).alias("t"), F.expr(rule.sql).alias("given"))
    sessions = rows.groupBy(
        F.col(_OWNER).alias("_infold_ruled_of"), F.col(_NUMBER).alias("_infold_in")
    )
    events = sessions.agg(F.array_sort(F.collect_list(event)).alias("_infold_events"))
    element = events.schema["_infold_events"].dataType
    assert isinstance(element, T.ArrayType), "a list of events"
    assert isinstance(element.elementType, T.StructType), "an event"
    given = element.elementType["given"].dataType
    assert isinstance(given, T.StructType), "a struct of the rule's parameters"
    fields = "".join(f", x.given.`{name}` AS `{name}`" for name in given.fieldNames())
    given_events = f"transform(_infold_events, x -> struct(timestamp_micros(x.t) AS time{fields}))"
    answers = session_function(ReplayedRule(rule.code).__call__)(F.expr(given_events))
    starts = events.select(
        "_infold_ruled_of",
        "_infold_in",
        F.col("_infold_events.t").alias("t"),
        answers.alias("begins"),
    ).withColumn("_infold_starts", F.expr("filter(t, (x, i) -> begins[i])"))
    same = (F.col(_OWNER) == F.col("_infold_ruled_of")) & (F.col(_NUMBER) == F.col("_infold_in"))
    with_starts = rows.join(starts, same)
    latest_start = F.expr(f"array_max(filter(_infold_starts, s -> s <= {_AT}))")
    return with_starts.withColumn(_NUMBER, F.coalesce(latest_start, F.col(_NUMBER)))


_SESSION_STARTS = """aggregate(
  _infold_instants,
  named_struct(
    'start', 0L, 'last', cast(NULL AS bigint), 'day', cast(NULL AS date),
    'campaign', cast(NULL AS string), 'starts', cast(array() AS array<bigint>)
  ),
  (a, x) -> CASE
    WHEN a.last IS NULL OR x.t - a.last > {gap} OR NOT (x.day <=> a.day) THEN named_struct(
      'start', x.t, 'last', x.t, 'day', x.day,
      'campaign', x.campaign, 'starts', array_append(a.starts, x.t))
    WHEN coalesce(x.begins, false) OR x.campaign <> coalesce(a.campaign, '')
      OR x.t - a.start > {most}L THEN named_struct(
      'start', x.t, 'last', x.t, 'day', x.day,
      'campaign', coalesce(x.campaign, a.campaign), 'starts', array_append(a.starts, x.t))
    ELSE named_struct(
      'start', a.start, 'last', x.t, 'day', x.day,
      'campaign', coalesce(x.campaign, a.campaign), 'starts', a.starts)
  END
).starts"""


def _gap_sql(query: SessionsQuery) -> str:
    gap = f"{query.gap if query.gap is not None else 2**61}L"
    if query.fallback is None:
        return gap
    return f"if({_OWNER} LIKE 'u%', {query.fallback.gap}L, {gap})"


def _day_begun(query: SessionsQuery) -> Column:
    """The last day of the time zone that has begun by then; NULL if midnight does not cut."""
    midnight = _declared_cut(query, Midnight)
    if midnight is None:
        return F.lit(None).cast("date")
    zone = midnight.zone
    at = f"timestamp_micros({_AT})"
    utc = f"to_date({at})"
    begun = f"to_utc_timestamp(cast(d AS timestamp), '{zone}') <= {at}"
    days = f"sequence(date_sub({utc}, 2), date_add({utc}, 2))"
    return F.expr(f"array_max(filter({days}, d -> {begun}))")


def _campaign_text(query: SessionsQuery) -> Column:
    """A text for each campaign; no campaign is NULL, or a text too if it counts as a change."""
    campaign = _declared_cut(query, Campaign)
    if campaign is None:
        return F.lit(None).cast("string")
    values = [F.expr(sql).cast("string") for sql in campaign.columns]
    known = [
        F.when(~value.isin(*campaign.direct), value) if campaign.direct else value
        for value in values
    ]
    parts = [F.coalesce(F.concat(F.lit("="), value), F.lit("-")) for value in known]
    text = F.to_json(F.array(*parts))
    if campaign.nulls is Nulls.CHANGE:
        return text
    return F.when(F.coalesce(*known).isNotNull(), text)


@returns(KEPT_EVENTS)
def _without_quarantine(rows: DataFrame, query: SessionsQuery) -> DataFrame:
    """Events of sessions that are not in quarantine, and the kept part of those that are."""
    whole = Window.partitionBy(_OWNER, _NUMBER)
    first, last = F.min(_AT).over(whole), F.max(_AT).over(whole)
    measured = rows.withColumn("_infold_first", first).withColumn("_infold_last", last)
    decided = _with_entries(measured, query, "_infold_first", "_infold_last")
    first, last = F.col("_infold_first"), F.col("_infold_last")
    allowed = ~_in_quarantine(query, first, last)
    if query.keep is Keep.HEAD and query.quarantine_after is not None:
        by_hand = F.coalesce(_DECISION, F.lit(False))
        allowed = allowed | (~by_hand & (F.col(_AT) - first <= query.quarantine_after))
    return decided.where(allowed)


def _in_quarantine(query: SessionsQuery, first: Column, last: Column) -> Column:
    """Whether a session is in quarantine: the last manual entry counts, then its length."""
    by_length = F.lit(False)
    if query.quarantine_after is not None:
        by_length = last - first > query.quarantine_after
    return F.coalesce(_DECISION, by_length)


def _with_entries(rows: DataFrame, query: SessionsQuery, first: str, last: str) -> DataFrame:
    """Rows with the last manual entry about their session: held or not; NULL without any."""
    if not query.entries:
        return rows.withColumn(_DECISION, F.lit(None).cast("boolean"))
    entries = [
        (entry.number, entry.owner, entry.in_quarantine, entry.start, entry.end)
        for entry in query.entries
    ]
    manual = rows.sparkSession.createDataFrame(
        entries, "number bigint, meant string, held boolean, since bigint, until bigint"
    )
    spans = rows.select(_OWNER, _NUMBER, first, last).distinct()
    touches = (F.col(last) >= F.col("since")) & (F.col(first) <= F.col("until"))
    overlaps = F.col("since").isNull() | touches
    matched = spans.join(manual, (F.col(_OWNER).cast("string") == F.col("meant")) & overlaps)
    decisions = matched.groupBy(_OWNER, _NUMBER).agg(F.max_by("held", "number").alias(_DECISION))
    return rows.join(decisions, [_OWNER, _NUMBER], "left")


def session_id(of: Column, start: Column) -> Column:
    """A session's id: from its user or identifier and its first event's time, nothing else."""
    text = F.concat_ws("|", of.cast("string"), start.cast("string"))
    return F.md5(text.cast("binary"))


def _event_order(events: DataFrame, query: SessionsQuery) -> Column:
    """The total order of events: event time, key, and unless the key is unique all columns."""
    names = query.key
    if not (query.key and query.unique):
        fields = [f for f in events.schema if not f.name.startswith("_") and f.name not in names]
        names = (*names, *(f.name for f in fields if "map<" not in f.dataType.simpleString()))
    return F.struct(column(query.time_column), *(column(name) for name in names))


def aggregate(call: Aggregate, order: Column, events: DataFrame) -> Column:
    """An aggregate over a session's events; order-dependent ones follow the order of events."""
    if call.call in ("first", "last") and call.argument is not None:
        value = F.struct(F.expr(call.argument).alias("v"))
        takes_part = _takes_part(call)
        if call.ignore_nulls:
            takes_part = takes_part & F.expr(call.argument).isNotNull()
        by = F.when(takes_part, order)
        picked = F.min_by(value, by) if call.call == "first" else F.max_by(value, by)
        return picked["v"]
    if call.argument is not None and re.match(_COLLECTS, call.sql, re.IGNORECASE):
        return _collected_in_order(call, order)
    if call.call in ("sum", "avg") and _adds_doubles(call, events):
        return _added_in_order(call, order)
    return F.expr(call.sql)


def _adds_doubles(call: Aggregate, events: DataFrame) -> bool:
    """Whether the order of events shows in a sum or an average."""
    of = events.select(F.expr(str(call.argument))).schema.fields[0].dataType
    doubles = T.DoubleType | T.FloatType
    return isinstance(of, doubles if call.call == "sum" else doubles | T.LongType)


def _added_in_order(call: Aggregate, order: Column) -> Column:
    """A sum or an average, of which doubles are added one after the other."""
    value = F.expr(str(call.argument)).cast("double")
    values = _values_in_order(call, value, order)
    total = F.aggregate(values, F.lit(0.0), lambda so_far, term: so_far + term)
    count = F.size(values)
    return F.when(count > 0, total / count if call.call == "avg" else total)


_COLLECTS = r"\s*`?(collect_list|array_agg|collect_set)`?\s*\("


def _collected_in_order(call: Aggregate, order: Column) -> Column:
    """Lists in the order of events, sets sorted: Spark collects rows in any order."""
    value = F.expr(str(call.argument))
    if call.distinct or "set" in call.sql[: call.sql.index("(")].lower():
        takes_part = _takes_part(call) & value.isNotNull()
        return F.sort_array(F.collect_set(F.when(takes_part, value)))
    return _values_in_order(call, value, order)


def _values_in_order(call: Aggregate, value: Column, order: Column) -> Column:
    """The values that take part and are not NULL, in the order of events."""
    takes_part = _takes_part(call) & value.isNotNull()
    pairs = F.collect_list(F.when(takes_part, F.struct(order.alias("o"), value.alias("v"))))
    return F.transform(F.array_sort(pairs, _by_order), lambda pair: pair["v"])


def _takes_part(call: Aggregate) -> Column:
    return F.lit(True) if call.filter is None else F.expr(call.filter)


def _by_order(a: Column, b: Column) -> Column:
    """Compares by order alone: some values cannot be compared."""
    return F.when(a["o"] < b["o"], -1).when(a["o"] > b["o"], 1).otherwise(0)


# The rule runs over all that is left of the events, and its first answer that begins a session
# counts; then it runs again from there. It is only asked, and not watched: that is for the fold.


@dataclass(frozen=True)
class ReplayedRule:
    """A rule over the events of sessions, each a list of structs in order."""

    code: FunctionCode

    def __call__(self, column: pa.Array) -> pa.Array:
        """Which events begin a session."""
        author = AuthorCode.of(self.code)
        rule = author.loaded()
        try:
            answers = [_replayed(rule, events) for events in values_of(column)]
        except BaseException as error:  # noqa: BLE001 (also an exit: the worker would be lost)
            raise author.failed(error) from None
        return pa.array(answers, pa.list_(pa.bool_()))


def _replayed(rule: Any, events: Sequence[Any]) -> list[bool]:
    begins = [False] * len(events)
    start: int | None = 0
    while start is not None:
        start = _next_start(rule, events, start)
        if start is not None:
            begins[start] = True
    return begins


def _next_start(rule: Any, events: Sequence[Any], start: int) -> int | None:
    """The first event of the instant at which the session that begins at ``start`` ends."""
    answers = chain(rule(iter(events[start:])), iter(lambda: False, True))
    for event, answer in zip(events[start:], answers, strict=False):
        if answer and event["time"] != events[start]["time"]:
            return next(at for at, other in enumerate(events) if other["time"] == event["time"])
    return None


# A border between two definitions ends sessions, so no session has events of two stretches.

ReadEvents = Callable[[Work, SessionsQuery, Step], DataFrame]
"""Reads the events of a query, at the versions that a step names."""


def events_of_owners(events: DataFrame, query: SessionsQuery, cells: Ranges) -> DataFrame:
    """
    All events, at any time, of the owners that have one in ``cells``.

    A session begins at an event, so the sessions that begin in these cells are those of all events.
    A session's number counts the sessions of a user, who may have several owners: then all are
    needed.
    """
    if query.numbered and (query.owner_sql or query.chosen_user or query.fallback):
        return events
    inside = events.where(time_predicate(events, query.time_column, cells, exact=True))
    owners = inside.select(_owner(query).alias(_OWNER)).distinct().localCheckpoint()
    if owners.count() <= _OWNERS_SENT:  # else Spark would sort all events by their owners
        owners = F.broadcast(owners)  # at most so many
    return events.withColumn(_OWNER, _owner(query)).join(owners, _OWNER, "left_semi").drop(_OWNER)


_OWNERS_SENT = 500_000
"""So many owners are sent to every task that reads events."""


def sessions_of_stretches(work: Work, step: Step, read: ReadEvents) -> DataFrame:
    """All sessions of a model, each by the definition in force at its events."""
    parts = [sessions(events, query) for events, query in _stretches(work, step, read)]
    rows = reduce(lambda above, below: above.unionByName(below, allowMissingColumns=True), parts)
    query = query_of(work, step)
    if query.numbered and len(parts) > 1:
        return with_session_numbers(rows, column(query.owner_column))
    return rows


def quarantined_in_stretches(
    work: Work, step: Step, read: ReadEvents
) -> set[tuple[str, int, int, int]]:
    """What each session in quarantine is of, its ends, and how many events it has."""
    return {
        (row["of"], row["start"], row["end"], row["events"])
        for events, query in _stretches(work, step, read, quarantining=True)
        # At most a row for each session in quarantine.
        for row in quarantined(events, query).collect()
    }


def _stretches(
    work: Work, step: Step, read: ReadEvents, *, quarantining: bool = False
) -> Iterator[tuple[DataFrame, SessionsQuery]]:
    """
    The events of each stretch, with the query in force there; the newest first.

    ``quarantining``: only of those whose sessions may be in quarantine.
    """
    for in_force in work.definitions_of(step.model):
        query = query_of(in_force.work, step)
        if quarantining and not query.may_quarantine:
            continue
        for part in in_force.cells:
            events = read(in_force.work, query, step)
            if work.earlier:
                test = time_predicate(events, query.time_column, Ranges((part,)), exact=True)
                events = events.where(test)
            yield events, query


# Nothing here is shared with the fold or with what builds a table, which use windows: a mistake of
# theirs shows as a difference.


def versions_from_scratch(
    rows: DataFrame, query: VersionedQuery, without_rows: DataFrame | None
) -> DataFrame:
    """The versions of all keys of a query's rows, which end at instants ``without_rows`` too."""
    names = {f"_{at}": name for at, name in enumerate(rows.columns)}
    places = {name: place for place, name in names.items()}
    types = dict(rows.dtypes)
    # Maps cannot be ordered, and are compared as text.
    ranks = [
        (F.to_json(column(name)) if "map<" in types[name] else column(name)).alias(place)
        for place, name in names.items()
    ]
    values = F.struct(*(column(name).alias(place) for place, name in names.items()))
    keys = [column(name) for name in query.keys]
    packed = rows.select(
        F.struct(*(key.alias(f"_{at}") for at, key in enumerate(keys))).alias("key"),
        column(query.updated_at).alias("at"),
        F.struct(*ranks).alias("rank"),
        values.alias("row"),
    ).where("at IS NOT NULL")
    single = packed.groupBy("key", "at").agg(F.max_by("row", "rank").alias("row"))
    listed = single.groupBy("key").agg(
        F.array_sort(F.collect_list(F.struct("at", "row")), _by_time).alias("seen")
    )
    if query.snapshots:
        times = packed.select("at")
        times = times if without_rows is None else times.union(without_rows)
        instants = F.array_sort(F.collect_set("at")).alias("instants")
        # At most an instant for each copy that was delivered.
        listed = listed.crossJoin(F.broadcast(times.agg(instants)))
    ended = listed.select(F.transform("seen", _row_with_end(query)).alias("all"))
    ended = ended.select("all", _beginning_rows(query, places, types).alias("begun"))
    versions = ended.select("all", "begun", F.posexplode("begun").alias("place", "version"))
    after = F.get(F.col("begun"), F.col("place") + 1)["at"]
    # A version lasts as long as the last row that says so.
    lasting = F.filter("all", lambda version_row: after.isNull() | (version_row["at"] < after))
    return versions.select(
        *(F.col("version")["row"][place].alias(name) for place, name in names.items()),
        F.col("version")["at"].alias(VALID_FROM),
        F.element_at(lasting, -1)["end"].alias(VALID_TO),
    )


def _by_time(version: Column, other: Column) -> Column:
    """The order of two versions of a key; no two have one time."""
    return F.when(version["at"] < other["at"], -1).otherwise(1)


def _row_with_end(query: VersionedQuery) -> Callable[[Column, Column], Column]:
    """A row of a key with the instant at which what it says may be another."""

    def ended(row: Column, at: Column) -> Column:
        after = F.get(F.col("seen"), at + 1)["at"]
        if query.snapshots:
            later = F.filter("instants", lambda instant: instant > row["at"])
            after = F.get(later, F.lit(0))
        return F.struct(row["at"].alias("at"), row["row"].alias("row"), after.alias("end"))

    return ended


def _beginning_rows(query: VersionedQuery, places: dict[str, str], types: dict[str, str]) -> Column:
    """Of the ordered rows of a key, those that begin a version."""
    rows_of_key = F.col("all")
    if query.compared is None:
        return rows_of_key
    compared_fields = [(places[name], "map<" in types[name]) for name in query.compared]

    def begins(row: Column, at: Column) -> Column:
        before = F.get(rows_of_key, at - 1)
        differs = (at == 0) | ~before["end"].eqNullSafe(row["at"])
        for place, text in compared_fields:
            value_before, other = before["row"][place], row["row"][place]
            if text:
                value_before, other = F.to_json(value_before), F.to_json(other)
            differs = differs | ~value_before.eqNullSafe(other)
        return differs

    return F.filter(rows_of_key, begins)
