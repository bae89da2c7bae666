"""
Rows of files on their way into an events table: the model's query, then the rules for rows.

The query is row-wise. It runs as the user wrote it, with two changes: one more column is carried
through it (:data:`CARRIED`: file, raw row, problem and received time), and WHERE lets rows with a
problem pass. So one scan finds the rows to keep and the rows to set aside.

What happens to a row depends on its values, and on the times that are admitted from its file: after
``low`` (rows up to it were ingested before) and up to ``high`` (now; later rows wait).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from enum import IntEnum

from pyspark.sql import Column, DataFrame, Row
from pyspark.sql import functions as F
from pyspark.sql import types as T

from infold.core.interval import Granularity, Interval
from infold.core.model import Source
from infold.core.own_columns import FILE
from infold.core.project import Node, Reference
from infold.core.queries import quoted
from infold.spark.content import (
    cell_of,
    cell_start,
    column,
    content,
    content_sums,
    micros,
    row_hash,
    type_of,
)
from infold.spark.events.erasures import ERASED, Erasures
from infold.spark.frame_schema import FrameColumn, FrameSchema, returns
from infold.spark.python_models import python_events
from infold.spark.step_context import Work

CARRIED = "_infold_row"
_CARRIED_LAST = f"{CARRIED}_last"
"""What a query gives it as: its ``*`` may have given it once already."""
STATE, REASON, RAW, HASH = "_state", "_reason", "_raw", "_hash"
AT = "_at"
OWN = (STATE, REASON, RAW, FILE, HASH, AT)

QUERIED_ROWS = FrameSchema(
    "a row of a file that the model's query keeps",
    (FrameColumn(CARRIED, "struct<file:bigint,raw:…", "its file, text, problem, received time"),),
    "the model's columns; NULL in rows with a problem",
)

JUDGED_ARRIVALS = FrameSchema(
    "a row of a file that the model's query keeps, and what happens to it",
    (
        FrameColumn(FILE, "bigint", "the id of the file's version"),
        FrameColumn(STATE, "int", "what happens to the row: RowState"),
        FrameColumn(REASON, "string", "why it is set aside; NULL unless it is"),
        FrameColumn(RAW, "string", "the row as text if it is set aside, else NULL"),
        FrameColumn(AT, "bigint", "the event time, microseconds; NULL if there is none"),
        FrameColumn(HASH, "bigint", "the hash of the model's columns: equal rows, equal hash"),
    ),
    "the model's columns; NULL in rows with a problem",
)

_FIRST_DATE, _LAST_DATE = "DATE'0001-01-01'", "DATE'9999-12-31'"
_FIRST, _LAST = -62_135_596_800_000_000, 253_402_300_799_999_999


class RowState(IntEnum):
    """What happens to a row."""

    ADMITTED = 0
    WAITING = 1
    """It is dated in the future; it is admitted when its time comes."""
    SET_ASIDE = 2
    """It cannot be used, for the reason given."""
    INGESTED = 3
    """It was ingested before."""
    BEFORE_START = 4
    """It is dated before the model's start, and is left out."""
    ERASED = 5
    """A person of it was asked to be erased."""


@dataclass(frozen=True, slots=True)
class AdmittedTimes:
    """The event times of a file whose rows are admitted: after ``low``, up to ``high``."""

    high: int
    low: int | None = None


@dataclass(frozen=True, slots=True)
class RowCount:
    """Rows of one file in one state; of one cell when admitted, for one reason when set aside."""

    file: int
    state: RowState
    cell: Interval | None
    reason: str | None
    rows: int
    first: int | None
    last: int | None
    content: int


@returns(JUDGED_ARRIVALS)
def judged_arrivals(
    work: Work,
    node: Node,
    source: Source,
    rows: DataFrame,
    bounds: Mapping[int, AdmittedTimes],
    lookups: Mapping[str, DataFrame] = {},
    erasures: Erasures | None = None,
) -> DataFrame:
    """
    Every row that the model's query keeps, and what happens to it.

    ``rows`` is a frame of ``source_rows.read``. With ``lookups``, the stored tables that the query
    joins, rows with a problem do not go through the query: a join may lose or repeat them.
    """
    source_columns = [name for name in rows.columns if name not in (FILE, RAW, "_problem")]
    if erasures is not None:
        rows = erasures.marked(rows)
    carried = F.struct(
        F.col(FILE).alias("file"),
        F.col(RAW).alias("raw"),
        F.col("_problem").alias("problem"),
        _received_micros(rows, source).alias("received"),
        *([F.col(ERASED).alias("erased")] if erasures is not None else ()),
    )
    wrong = F.col("_problem").isNotNull()
    queried = rows.where(~wrong) if lookups else rows
    queried = queried.select(*map(column, source_columns), carried.alias(CARRIED))
    queried_rows = _query_rows(work, node, {**lookups, source.name: queried})
    names = [name for name in queried_rows.columns if name != CARRIED]
    plain = queried_rows.select(
        *map(column, names),
        F.col(f"{CARRIED}.file").alias(FILE),
        F.col(f"{CARRIED}.raw").alias(RAW),
        F.col(f"{CARRIED}.problem").alias("_problem"),
        F.col(f"{CARRIED}.received").alias("_received"),
        _event_time(node, queried_rows).alias(AT),
        *([F.col(f"{CARRIED}.erased").alias(ERASED)] if erasures is not None else ()),
    )
    if lookups:
        empty = [F.lit(None).cast(plain.schema[name].dataType) for name in names]
        received, no_time = _received_micros(rows, source), F.lit(None).cast("bigint")
        own = [FILE, RAW, "_problem", received, no_time, *([ERASED] if erasures else ())]
        plain = plain.unionAll(rows.where(wrong).select(*empty, *own))
    return _with_states(node, source, plain, names, bounds)


@returns(QUERIED_ROWS)
def _query_rows(work: Work, node: Node, frames: Mapping[str, DataFrame]) -> DataFrame:
    """The model's query over frames, through views, with :data:`CARRIED` once and last."""
    name = node.references[0].name
    if name not in frames:
        frames = {**frames, name: _query_rows(work, work.project[name], frames)}
    if node.model.python is not None:
        return python_events(node, _without_wrong_times(frames[name]), CARRIED)
    rows = work.sql(with_carried_column(node), frames)
    names = (name for name in rows.columns if name not in (CARRIED, _CARRIED_LAST))
    return rows.select(*map(column, names), F.col(_CARRIED_LAST).alias(CARRIED))


def _without_wrong_times(rows: DataFrame) -> DataFrame:
    """The rows for a function in Python, which has no times outside the calendar."""
    problems = [F.col(f"{CARRIED}.problem")]
    for field in rows.schema.fields:
        if isinstance(field.dataType, T.TimestampType | T.DateType):
            wrong = column(field.name).isNotNull() & _calendar_micros(rows, field.name).isNull()
            problems.append(F.when(wrong, F.lit(f"invalid time: {field.name}")))
    problem = F.coalesce(*problems)
    return rows.withColumn(CARRIED, F.col(CARRIED).withField("problem", problem))


def with_carried_column(node: Node) -> Node:
    """The model with :data:`CARRIED` in its SELECT and a WHERE that lets problems pass."""
    from sqlglot import TokenType, tokenize

    sql, reference = node.model.sql, node.references[0]
    tokens = tokenize(sql, read="spark")
    start = max(
        token.start
        for token in tokens
        if token.token_type is TokenType.FROM and token.start < reference.start
    )
    where = next(
        (
            token
            for token in tokens
            if token.token_type is TokenType.WHERE and token.start > reference.end
        ),
        None,
    )
    end = max(token.end for token in tokens if token.token_type is not TokenType.SEMICOLON) + 1
    added = f", {quoted(CARRIED)} AS {quoted(_CARRIED_LAST)} "
    rest = sql[start:end]
    if where is not None:
        cut = where.end + 1
        rest = f"{sql[start:cut]} ({sql[cut:end]}) OR {quoted(CARRIED)}.problem IS NOT NULL"
    shifted = tuple(
        Reference(entry.name, entry.start + len(added), entry.end + len(added))
        for entry in node.references  # none is after WHERE
    )
    model = replace(node.model, sql=sql[:start] + added + rest)
    return replace(node, model=model, references=shifted)


def has_filter(node: Node) -> bool:
    """Whether the model's query may leave rows out, or make several of one."""
    from sqlglot import TokenType, tokenize

    if node.model.python is not None or node.references[0].name != node.source:
        return True
    tokens = tokenize(node.model.sql, read="spark")
    return any(token.token_type is TokenType.WHERE for token in tokens)


def _event_time(node: Node, rows: DataFrame) -> Column:
    """The event time in microseconds; NULL of a lookup, and where it is outside the calendar."""
    if node.model.timeseries is None:
        return F.lit(None).cast("bigint")
    return _calendar_micros(rows, node.model.timeseries.event_time_column)


def _received_micros(rows: DataFrame, source: Source) -> Column:
    if source.received_column is None:
        return F.lit(None).cast("bigint")
    return _calendar_micros(rows, source.received_column)


def _calendar_micros(rows: DataFrame, name: str) -> Column:
    """A time column in microseconds; NULL where it is outside the calendar."""
    value = column(name)
    if isinstance(type_of(rows, name), T.DateType):
        inside = value.between(F.expr(_FIRST_DATE), F.expr(_LAST_DATE))
        return F.when(inside, micros(value))
    at = micros(value)
    return F.when(at.between(_FIRST, _LAST), at)


def _with_states(
    node: Node,
    source: Source,
    rows: DataFrame,
    names: Sequence[str],
    bounds: Mapping[int, AdmittedTimes],
) -> DataFrame:
    """Each row with its state, the reason when it is set aside, and its hash."""
    model = node.model
    rules = [F.when(F.col("_problem").isNotNull(), F.col("_problem"))]
    if model.timeseries is not None:
        time = model.timeseries.event_time_column
        rules.append(F.when(column(time).isNull(), F.lit("null event time")))
        rules.append(F.when(F.col(AT).isNull(), F.lit("invalid event time")))
    rules += [F.when(column(key).isNull(), F.lit(f"null key: {key}")) for key in model.unique_key]
    waits = model.timeseries is not None and source.received_column is None
    if model.timeseries is not None and source.received_column is not None:
        latest = F.col("_received") + F.lit(source.future_tolerance)
        rules.append(F.when(F.col("_received").isNull(), F.lit("null received")))
        rules.append(F.when(F.col(AT) > latest, F.lit("future: later than received")))
    start = F.lit(None) if node.start is None or model.timeseries is None else F.lit(node.start)
    is_early = F.col("_problem").isNull() & (F.col(AT) < start)
    reason = F.coalesce(*rules)
    is_left_out, before = is_early, F.lit(int(RowState.BEFORE_START))
    state = F.when(is_early, before)
    if ERASED in rows.columns:
        is_left_out = is_early | F.col(ERASED)
        state = F.when(F.col(ERASED), F.lit(int(RowState.ERASED))).when(is_early, before)
    state = state.when(reason.isNotNull(), F.lit(int(RowState.SET_ASIDE)))
    if waits:
        lows = {id_: entry.low for id_, entry in bounds.items() if entry.low is not None}
        if lows:
            ingested = F.col(AT) <= _value_by_file(lows, len(bounds))
            state = state.when(ingested, F.lit(int(RowState.INGESTED)))
        highs = {id_: entry.high for id_, entry in bounds.items()}
        if highs:
            ahead = F.col(AT) > _value_by_file(highs, len(bounds))
            state = state.when(ahead, F.lit(int(RowState.WAITING)))
    model_schema = T.StructType([rows.schema.fields[i] for i in range(len(names))])
    # In one projection: each is analysed with all columns, and there may be thousands of them.
    return rows.select(
        *map(column, names),
        FILE,
        state.otherwise(F.lit(int(RowState.ADMITTED))).alias(STATE),
        reason.alias(REASON),
        F.when(is_left_out, F.lit(None)).when(reason.isNotNull(), F.col(RAW)).alias(RAW),
        AT,
        row_hash(model_schema).alias(HASH),
    )


def _value_by_file(values: Mapping[int, int], files: int) -> Column:
    """A value for the row's file; NULL for files without one."""
    distinct: dict[int, list[int]] = {}
    for id_, value in values.items():
        distinct.setdefault(value, []).append(id_)
    if len(distinct) == 1 and len(values) == files:
        return F.lit(next(iter(distinct)))
    value_of_file = F.when(F.lit(False), F.lit(0).cast("bigint"))
    for value, ids in distinct.items():
        value_of_file = value_of_file.when(F.col(FILE).isin(ids), F.lit(value))
    return value_of_file


def count_rows(rows: DataFrame, node: Node, *, with_content: bool) -> list[RowCount]:
    """
    How many rows of each file are in each state; one Spark action.

    Their content is added up only if it is asked for: otherwise no row has to be hashed.
    """
    granularity = node.model.granularity
    time = F.lit(None).cast("timestamp")
    if node.model.timeseries is not None:
        time = column(node.model.timeseries.event_time_column)
    admitted = F.col(STATE) == int(RowState.ADMITTED)
    grouped = rows.groupBy(
        FILE,
        STATE,
        F.when(admitted, cell_start(time, granularity)).alias("cell"),
        # Without the details: there may be many different ones.
        F.substring_index(REASON, ":", 1).alias("reason"),
    ).agg(
        F.count(F.lit(1)).alias("rows"),
        F.min(AT).alias("first"),
        F.max(AT).alias("last"),
        *(content_sums(F.col(HASH)) if with_content else ()),
    )
    # At most a row for each file of the step, cell and state.
    return [_row_count(row, granularity, with_content=with_content) for row in grouped.collect()]


def _row_count(row: Row, granularity: Granularity | None, *, with_content: bool) -> RowCount:
    """A row of the counts by file, state, cell and reason; by place, as names are looked up."""
    file, state, start, reason, rows, first, last, *sums = row
    return RowCount(
        file=file,
        state=RowState(state),
        cell=None if start is None else cell_of(start, granularity),
        reason=reason,
        rows=rows,
        first=first,
        last=last,
        content=content(*sums) if with_content else 0,
    )
