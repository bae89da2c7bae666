"""
The rows of a model's inputs that have a key which changed in one of its lookups.

A lookup's rows are compared by their values: where a file is replaced by one with the same rows, or
a table is built again, only the keys whose rows differ count as changed.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import reduce
from operator import and_

from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as F
from pyspark.sql import types as T

from infold.core.interval import Interval, Ranges
from infold.core.model import Kind
from infold.core.own_columns import FILE
from infold.core.plan import ChangedKeyRows
from infold.core.project import Match, Node, Validity
from infold.spark.content import (
    cell_of,
    cell_start,
    column,
    has_alike_values,
    row_hash,
    rows_without,
    user_columns,
)
from infold.spark.frame_schema import ANY, FrameColumn, FrameSchema, returns
from infold.spark.inputs.changed_rows import ChangedRows, changed_table, traceable_table
from infold.spark.reading import source_rows
from infold.spark.step_context import Work

MOST_BROADCAST_KEYS = 400_000
"""Up to so many changed rows, their keys are broadcast instead of shuffled."""

CHANGED_KEYS = FrameSchema(
    "a key that changed in a lookup",
    (FrameColumn("__key0", ANY, "the lookup's side of the match's first pair; never NULL"),),
    "__key1 …, the same for further pairs",
)

_TIME, _FROM, _TO, _VALUES, _STEP = "__time_of", "__from", "__to", "__values", "__step"

_TIMES = (T.TimestampType, T.TimestampNTZType, T.DateType)

CHANGED_STRETCHES = FrameSchema(
    "a stretch of time in which a key has other rows in a lookup than before",
    (
        FrameColumn("__key0", ANY, "the lookup's side of the match's first pair; never NULL"),
        FrameColumn(_FROM, ANY, "its first instant"),
        FrameColumn(_TO, ANY, "the first one after it; NULL: it has no end"),
    ),
    "__key1 …, the same for further pairs",
)

CHANGED_LOOKUP_ROWS = FrameSchema(
    "a row that only one of a lookup's two versions has",
    (),
    "the lookup's columns, technical ones left out",
)


def locate_changed_keys(
    work: Work, node: Node, lookup: str, since: int, upto: int
) -> ChangedKeyRows:
    """Where the rows with changed keys are, and how many; ``everywhere`` if that is unknown."""
    if not traceable_table(work, lookup, since, upto, compared=True):
        return ChangedKeyRows(everywhere=True)
    changed = changed_table(work, lookup, since, upto)
    if node.model.kind is Kind.EVENTS:
        return _locate_in_files(work, node, changed, node.matches_of(lookup))
    times, scanned = [], changed.rows_to_scan
    for name in dict.fromkeys(match.input for match in node.matches_of(lookup)):
        matches = [match for match in node.matches_of(lookup) if match.input == name]
        frame = work.frame(name, work.ledger.newest_versions()[name].number)
        cells = _rows_by_cell(
            work, node, name, rows_with_changed_key(frame, matches, {lookup: changed})
        )
        times.append((name, Ranges.of(cells), sum(cells.values())))
        scanned += sum(state.rows for state in work.cells(name))
    return ChangedKeyRows(tuple(times), scanned)


def _locate_in_files(
    work: Work, node: Node, changed: ChangedRows, matches: Sequence[Match]
) -> ChangedKeyRows:
    """The files of a source that have rows with changed keys, among files that did not change."""
    source = work.project.sources[node.source or node.name].without_columns(node.unread_columns)
    files = [
        file
        for file in work.ledger.files(node.name)
        if source_rows.unchanged(work.project, source, file)
    ]
    rows = source_rows.read(work.spark, work.project, source, [(file.id, file) for file in files])
    keyed = rows_with_changed_key(rows, matches, {match.lookup: changed for match in matches})
    # At most a row for each file of the source.
    counts = {row[FILE]: row["count"] for row in keyed.groupBy(FILE).count().collect()}
    scanned = sum(file.rows + file.waiting + file.set_aside for file in files)
    return ChangedKeyRows(
        ((source.name, Ranges(), sum(counts.values())),),
        changed.rows_to_scan + scanned,
        files=tuple(sorted(counts)),
    )


def _rows_by_cell(work: Work, node: Node, name: str, rows: DataFrame) -> dict[Interval, int]:
    """How many of some rows of an input are in each cell."""
    time, granularity = node.input(name).time_column, work.project[name].model.granularity
    assert time is not None, "a lookup is matched with rows that have a time"
    # At most a row for each cell.
    counts = rows.groupBy(cell_start(column(time), granularity).alias("cell")).count().collect()
    return {
        cell_of(row["cell"], granularity): row["count"] for row in counts if row["cell"] is not None
    }


def rows_with_changed_key(
    rows: DataFrame, matches: Iterable[Match], changed: Mapping[str, ChangedRows]
) -> DataFrame:
    """The rows of an input that have a changed key by any of the matches, once each."""
    parts, rest = [], rows
    for match in matches:
        parts.append(_join_changed_keys(rest, match, changed[match.lookup], "left_semi"))
        rest = _join_changed_keys(rest, match, changed[match.lookup], "left_anti")
    return reduce(DataFrame.unionByName, parts) if parts else rows.where(F.lit(False))


def rows_without_changed_key(
    rows: DataFrame, matches: Iterable[Match], changed: Mapping[str, ChangedRows]
) -> DataFrame:
    """The rows of an input that have no changed key by any of the matches."""
    for match in matches:
        rows = _join_changed_keys(rows, match, changed[match.lookup], "left_anti")
    return rows


def _join_changed_keys(rows: DataFrame, match: Match, changed: ChangedRows, how: str) -> DataFrame:
    """Rows with one of the changed keys (``left_semi``), or without (``left_anti``)."""
    validity = _usable_validity(rows, match, changed)
    values = {f"__key{at}_of": F.expr(sql) for at, (sql, _) in enumerate(match.pairs)}
    same = reduce(and_, (F.col(name) == F.col(name.removesuffix("_of")) for name in values))
    if validity is None:
        keys = _changed_keys(match, changed)
    else:
        keys = _changed_stretches(match, validity, changed)
        values[_TIME] = F.expr(validity.time)
        before = F.col(_TO).isNull() | (F.col(_TIME) < F.col(_TO))
        same = same & (F.col(_TIME) >= F.col(_FROM)) & before
    # At most ``MOST_BROADCAST_KEYS`` rows.
    joined = F.broadcast(keys) if changed.rows <= MOST_BROADCAST_KEYS else keys
    return rows.withColumns(values).join(joined, same, how).drop(*values)


def _usable_validity(rows: DataFrame, match: Match, changed: ChangedRows) -> Validity | None:
    """The stretch of a match, if times are compared as what they are: no text is read as a time."""
    validity = match.validity
    if validity is None:
        return None
    ends = changed.current.select(column(validity.start), column(validity.end)).schema.fields
    [time] = rows.select(F.expr(validity.time)).schema.fields
    types = {field.dataType for field in (*ends, time)}
    return validity if len(types) == 1 and isinstance(time.dataType, _TIMES) else None


@returns(CHANGED_KEYS)
def _changed_keys(match: Match, changed: ChangedRows) -> DataFrame:
    """The keys of a lookup's changed rows, once each."""
    keys = [F.expr(sql).alias(f"__key{at}") for at, (_, sql) in enumerate(match.pairs)]
    return changed_lookup_rows(changed).select(*keys).dropna().distinct()


@returns(CHANGED_STRETCHES)
def _changed_stretches(match: Match, validity: Validity, changed: ChangedRows) -> DataFrame:
    """
    When which keys of a lookup have other rows than before, read as of a time.

    At each instant the rows that hold then are compared: those with the same values cancel out,
    whatever their stretches are. The two columns count as values where the query passes them on.
    """
    ends = {validity.start.lower(), validity.end.lower()}
    removed = changed.removed()
    sides = [(changed.added(), 1), *([] if removed is None else [(removed, -1)])]
    points = []
    for side, sign in sides:
        rows = user_columns(side)
        names = [name for name in rows.columns if validity.passed_on or name.lower() not in ends]
        start, end = column(validity.start), column(validity.end)
        lasts = (end > start) | (end.isNull() & F.lit(validity.open))
        valid = rows.where(start.isNotNull() & lasts)
        keys = [F.expr(sql).alias(f"__key{at}") for at, (_, sql) in enumerate(match.pairs)]
        passed = T.StructType([rows.schema[name] for name in names])
        exactly = [row_hash(passed)] if has_alike_values(passed) else []
        values = F.struct(F.lit(0), *map(column, names), *exactly).alias(_VALUES)
        for at, step in ((start, sign), (end, -sign)):
            points.append(valid.select(*keys, values, at.alias(_FROM), F.lit(step).alias(_STEP)))
    names = [f"__key{at}" for at in range(len(match.pairs))]
    dated = reduce(DataFrame.unionAll, points).where(F.col(_FROM).isNotNull()).dropna(subset=names)
    steps = dated.groupBy(*names, _VALUES, _FROM).agg(F.sum(_STEP).alias(_STEP))
    steps = steps.where(F.col(_STEP) != 0)
    in_turn = Window.partitionBy(*names, _VALUES).orderBy(_FROM)
    stretches = steps.select(
        *names,
        _FROM,
        F.lead(_FROM).over(in_turn).alias(_TO),
        F.sum(_STEP).over(in_turn).alias(_STEP),
    )
    return stretches.where(F.col(_STEP) != 0).drop(_STEP).distinct()


@returns(CHANGED_LOOKUP_ROWS)
def changed_lookup_rows(changed: ChangedRows) -> DataFrame:
    """The rows of a lookup that only one of its two versions has."""
    added, removed = user_columns(changed.added()), changed.removed()
    if removed is None:
        return added
    removed = user_columns(removed).select(*map(column, added.columns))
    if not changed.numbered:  # they were compared
        return added.unionAll(removed)
    return rows_without(added, removed).unionAll(rows_without(removed, added))
