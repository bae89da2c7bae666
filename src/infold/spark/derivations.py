"""
Changed definitions whose rows follow from the stored ones: a SELECT over these, in one commit.

Where each column is a stored one in its place, metadata alone is written: other names and wider
types of columns (the commit makes a snapshot too, so that a run that died over it is finished by
the next one, and the older snapshots have the older names and types), or other cells, in the ledger
alone. Else the rows are evaluated over the snapshot of the table's newest version and put in its
place. States of cells are known before the commit, so a run that dies over it is finished by the
next one. They are those in the ledger, or sums of these, wherever values hash as before; else the
rows are read once for them.

Values are exact only if every type is the one that the new query gives. Storing makes ``int`` of
``tinyint`` and ``smallint``; columns that the query still has get their own type back. Where a type
is not known, or where a condition on a group might tell representations of a number apart, nothing
is derived.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import replace
from functools import reduce
from operator import and_

from pyspark.errors import PySparkException
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql import types as T

from infold.analysis.names.subject import time_column
from infold.core.definition import Derivation
from infold.core.files import FileCell, FilesOutcome, IngestedFile
from infold.core.interval import Granularity, Interval, Ranges
from infold.core.model import Kind
from infold.core.own_columns import FILE, VERSION
from infold.core.plan import Action, Step
from infold.core.project import Node
from infold.core.queries import quoted
from infold.core.record import Outcome, Receipt
from infold.core.trace import CellState, added_up, changes_of_rewrite, signed
from infold.spark.analyser import empty_frame, with_columns_to_be
from infold.spark.content import cell_start, cell_stats, column, time_predicate, user_columns
from infold.spark.events.arrivals import RAW, STATE, AdmittedTimes, RowState, judged_arrivals
from infold.spark.events.build import DICTIONARY
from infold.spark.events.copies import PLACE, Identity, rank_copies, row_order
from infold.spark.events.ingest import (
    ROWS,
    FileAndCell,
    Ingest,
    content_of,
    model_columns,
)
from infold.spark.events.set_aside import files_without_cells, remove_older_set_aside
from infold.spark.inputs.changed_rows import count_row_changes
from infold.spark.jvm.session_settings import FEW_ROWS, settings_for_few_rows
from infold.spark.reading import failures, source_rows
from infold.spark.sessions import derived as derived_sessions
from infold.spark.sessions.fold import SessionsFold
from infold.spark.sessions.stored import states_of_sessions
from infold.spark.step_commit import (
    Computed,
    NewColumns,
    RowChanges,
    WholeTable,
    Write,
    commit_step,
    without_trace,
)
from infold.spark.step_context import Work
from infold.spark.stored_types import FLOATING, contains_type, same_type, stored_type
from infold.spark.tables.commit import retyped
from infold.spark.time_range.cell_states import states_of_cells
from infold.spark.time_range.recompute import CellRows, clamped, rows_carried

_ROW = "_infold_row"
_NEW = "_infold_new"
"""The columns read from files, by their numbers, until they have their names."""
_FROM_FILE = "_infold_of"

NewTable = tuple[WholeTable, Iterable[CellState], Computed]
"""Rows in the place of a table's, the states of its cells then, and what else is to be recorded."""


def derives_exactly(work: Work, step: Step) -> bool:
    """As ``ports.Engine.derives_exactly``: whether values have the types that the query gives."""
    node, derivation = work.project[step.model], _derivation_of(step)
    try:
        if node.model.kind is Kind.SESSIONS:
            return derived_sessions.follows_exactly(work, step)
        try:
            schema = _schema_of_query(work, node)
        except PySparkException:
            return True  # a definition that is wrong is reported as such
        stored = _with_nulls(_stored_rows(work, step), derivation, schema)
        return _rows_over_stored(stored, derivation, schema) is not None
    except PySparkException:
        return False


def carry_out(work: Work, step: Step) -> Outcome:
    """One step about the rows that a table has, in one commit."""
    if step.action is Action.REFOLD:
        return SessionsFold(work, work.project[step.model], step).carry_out()
    if step.action is Action.DERIVE:
        return _replace_rows(work, step)
    if step.action is Action.EXPIRE:
        return _take_out_cells(work, step)
    return _keep_rows(work, step)


def _take_out_cells(work: Work, step: Step) -> Outcome:
    """Take out all rows of the step's cells; the ledger knows how many these are."""
    node, before = work.project[step.model], work.cells(step.model, step.cells)
    assert node.model.timeseries is not None, "what has a start has times"
    series, is_events = node.model.timeseries, node.model.kind is Kind.EVENTS
    name = series.event_time_column if is_events else series.partition_column
    changes = changes_of_rewrite(before, ())
    stored = work.tables.read(step.model)
    write: Write = CellRows(stored.limit(0), name, step.cells, changes)
    if rows_carried(work, step, step.cells) > sum(state.rows for state in before):
        # Rows of other cells in their partitions stay where they are.
        inside = time_predicate(stored, name, step.cells, exact=True)
        found_by = FILE if is_events else name
        # At most a row for each file or cell that is too old.
        old = stored.where(inside).select(column(found_by)).distinct()
        keys = work.spark.createDataFrame(old.toArrow())
        write = RowChanges(
            stored.limit(0), keys, (found_by,), inside, column=name, ranges=step.cells
        )
    files = files_without_cells(work, step) if is_events else None
    outcome = commit_step(work, step, write, Computed(changes, files=files))
    if not is_events:
        return outcome
    commits = outcome.receipt.commits + remove_older_set_aside(work, step)
    return replace(outcome, receipt=replace(outcome.receipt, commits=commits))


def _derivation_of(step: Step) -> Derivation:
    assert step.derivation is not None, "a step over stored rows has a derivation"
    return step.derivation


def _stored_rows(work: Work, step: Step) -> DataFrame:
    """The table as it is before the step, with its technical columns."""
    return work.frame(step.model, step.version - 1)


def _keep_rows(work: Work, step: Step) -> Outcome:
    """Give columns their names and types, or divide the rows into other cells: metadata alone."""
    node, derivation = work.project[step.model], _derivation_of(step)
    if step.action is Action.EVOLVE and not derivation.retyped:
        names = NewColumns(derivation.renamed, (), is_whole=False)
        return commit_step(work, step, names, Computed())
    before = work.cells(step.model)
    cells, scanned = _cells_by_definition(work, step, before)
    receipt = Receipt(scanned=scanned)
    if step.action is Action.REBUCKET:
        is_events, granularity = node.model.kind is Kind.EVENTS, node.model.granularity
        files = _files_in_new_cells(work, node, granularity) if is_events and granularity else None
        return commit_step(work, step, None, Computed((), receipt, files=files, cells=cells))
    types = [
        (part.path, T.DataType.fromDDL(part.after))
        for part in derivation.retyped
        if not part.is_stored_alike
    ]
    # It counts as a table that was replaced, so that readers see that a column is of another type.
    columns = NewColumns(derivation.renamed, types, is_whole=True)
    return commit_step(work, step, columns, Computed(changes_of_rewrite(before, cells), receipt))


def _cells_by_definition(
    work: Work, step: Step, before: Sequence[CellState]
) -> tuple[tuple[CellState, ...], int]:
    """The states of the cells, and how many rows were read for them."""
    node, changed_types = work.project[step.model], _derivation_of(step).retyped
    granularity = node.model.granularity
    known = tuple(before) if granularity is None else added_up(before, granularity)
    if known is not None and all(part.keeps_hash for part in changed_types):
        return known, 0
    types = {part.path: T.DataType.fromDDL(part.after) for part in changed_types}
    rows = retyped(user_columns(_stored_rows(work, step)), types)
    if node.model.kind is Kind.SESSIONS:
        cells: Iterable[CellState] = states_of_sessions(rows, granularity)
    else:
        cells = states_of_cells(rows, node).cells.values()
    return tuple(sorted(cells, key=lambda state: state.cell)), sum(state.rows for state in before)


def _files_in_new_cells(work: Work, node: Node, granularity: Granularity) -> FilesOutcome:
    """The files that were ingested, with their rows in the new cells."""
    return FilesOutcome(
        source=node.source or "",
        ingested=tuple(work.ledger.files(node.name)),
        cells=cells_of_files(work.ledger.file_cells(node.name), granularity),
    )


def cells_of_files(entries: Iterable[FileCell], granularity: Granularity) -> tuple[FileCell, ...]:
    """The rows of files in longer cells."""
    file_cells: dict[tuple[int, Interval], FileCell] = {}
    for entry in entries:
        cell = granularity.cell(entry.cell.start)
        known = file_cells.get((entry.file_id, cell), FileCell(entry.file_id, cell, 0))
        rows, dropped = known.rows + entry.rows, known.dropped + entry.dropped
        file_cells[entry.file_id, cell] = FileCell(entry.file_id, cell, rows, dropped)
    return tuple(file_cells.values())


def _replace_rows(work: Work, step: Step) -> Outcome:
    """Replace a table by the rows that follow from it, and from files that the step names."""
    node, before = work.project[step.model], work.cells(step.model)
    files = () if step.files is None else (*step.files.new_columns_of, *step.files.reingest)
    beyond = Ranges.of(state.cell for state in before) - step.cells
    if _derivation_of(step).changes_nothing and not beyond and not files:
        return commit_step(work, step, None, Computed())
    stored, read = sum(state.rows for state in before), sum(file.rows for file in files)
    with settings_for_few_rows(work.spark) if stored + read <= FEW_ROWS else nullcontext():
        new_table = _new_table(work, step)
        if new_table is None:
            return without_trace(work, step)
        table, cells, computed = new_table
        changes = changes_of_rewrite(before, cells)
        if node.model.kind is not Kind.SESSIONS:  # their states differ, and nobody reads these
            changes = count_row_changes(
                work.project, node, changes, lambda: (_stored_rows(work, step), table.rows)
            )
        receipt = computed.receipt + Receipt(read=read, scanned=stored + read)
        computed = replace(computed, changes=changes, receipt=receipt)
        if node.model.kind is Kind.EVENTS:  # copies may differ in what was not stored before
            copies = sum(file.dropped for file in work.ledger.files(step.model))
            computed = replace(computed, left_out=copies)
        return commit_step(work, step, table, computed)


def _new_table(work: Work, step: Step) -> NewTable | None:
    """The table that follows; None where files and stored rows do not fit each other."""
    node = work.project[step.model]
    if node.model.kind is Kind.SESSIONS:
        return derived_sessions.new_table(work, step)
    # After a forward-only change, stored events stay as they are.
    is_forward_only = step.trace is not None and bool(step.trace.earlier)
    if node.model.kind is Kind.EVENTS and not is_forward_only:
        ingest = Ingest.of(work, step)
        with failures.naming_files(work.project, ingest.source):
            return _new_events(ingest, _derivation_of(step))
    rows = _rows_over_stored(
        _stored_rows(work, step), _derivation_of(step), _schema_of_query(work, node)
    )
    assert rows is not None, "a derivation is checked before it is carried out"
    if VERSION in rows.columns:
        rows = rows.withColumn(VERSION, F.lit(step.version).cast("bigint"))
    rows = clamped(node, step.cells, rows)
    return _table_of(work, node, rows), states_of_cells(rows, node).cells.values(), Computed()


def _table_of(work: Work, node: Node, rows: DataFrame) -> WholeTable:
    """Rows as the table of a model lies on disk; its time may be another column now."""
    layout = work.tables.layout(node.name)
    if layout.column is not None:
        layout = replace(layout, column=time_column(node))
    if node.model.kind is Kind.EVENTS:
        layout = replace(layout, dictionary=DICTIONARY)
    return WholeTable(rows, layout)


# The SELECT: over stored rows, by the types that the query has.


def _schema_of_query(work: Work, node: Node) -> T.StructType:
    """The types of the new columns, by the query; no row is read."""
    tables = (entry.name for entry in node.stored_inputs)
    inputs = with_columns_to_be(work, {n: user_columns(work.tables.read(n)) for n in tables})
    if node.source is not None:
        source = work.project.sources[node.source].without_columns(node.unread_columns)
        columns = source_rows.column_types(work.spark, work.project, source)
        inputs[source.name] = empty_frame(work.spark, columns)
    return work.sql(node, inputs).schema


def _numbered_columns(derivation: Derivation) -> dict[str, str]:
    """The columns that are read from files, with the names that they have until they are stored."""
    return {name: f"{_NEW}{at}" for at, name in enumerate(derivation.from_files)}


def _with_nulls(stored: DataFrame, derivation: Derivation, schema: T.StructType) -> DataFrame:
    """Stored rows with NULL in what is read from files."""
    numbers = _numbered_columns(derivation)
    nulls = {new: F.lit(None).cast(schema[name].dataType) for name, new in numbers.items()}
    return stored.withColumns(nulls) if nulls else stored


def _rows_over_stored(
    stored: DataFrame, derived: Derivation, schema: T.StructType
) -> DataFrame | None:
    """
    The rows that follow from stored ones, with their technical columns.

    ``stored`` has those that are read from files by number. None where rows may differ from those
    of the query.
    """
    numbers = _numbered_columns(derived)
    columns = tuple(
        (name, quoted(numbers[name]) if name in numbers else sql) for name, sql in derived.columns
    )
    carried = [name for name in (FILE, VERSION, *numbers.values()) if name in stored.columns]
    rows = _select_over_stored(stored, replace(derived, columns=columns), schema, carried)
    return None if rows is None else rows.drop(*numbers.values())


def _select_over_stored(
    stored: DataFrame, derived: Derivation, schema: T.StructType, carried: Sequence[str]
) -> DataFrame | None:
    """
    The rows that follow from stored ones; None where they may differ from those of the query.

    ``schema`` has the types of the query's columns. Columns that are ``carried`` are kept beside.
    """
    if len(schema) != len(derived.columns):
        return None
    fields = [field for field in stored.schema if field.name not in carried]
    types = {field.name.lower(): field.dataType for field in fields}
    if not _as_given(derived, types) or {name.lower() for name in derived.stored} != types.keys():
        return None
    read_types = dict(types)
    old_names = {name.lower(): old.lower() for name, old in derived.plain}
    for field in schema:
        old = old_names.get(field.name.lower())
        if old is not None:
            if stored_type(field.dataType) != stored_type(types[old], same_type):
                return None
            # Stored arrays may hold NULL, and Spark casts none to one that may not.
            read_types[old] = stored_type(field.dataType, same_type)
    rows = stored.select(
        *(
            column(field.name)
            if read_types[field.name.lower()] == field.dataType
            else column(field.name).cast(read_types[field.name.lower()]).alias(field.name)
            for field in fields
        ),
        *carried,
    )
    rows = _rows_where(rows, derived.where)
    pairs = zip(derived.columns, schema, strict=True)
    rows = rows.select(
        *(
            (F.lit(None).cast(field.dataType) if name in derived.added else F.expr(sql)).alias(
                field.name
            )
            for (name, sql), field in pairs
        ),
        *carried,
    )
    for derived_field, field in zip(rows.schema, schema, strict=False):
        if stored_type(derived_field.dataType, same_type) != stored_type(field.dataType, same_type):
            return None
    return rows


def _rows_where(rows: DataFrame, conditions: Sequence[str]) -> DataFrame:
    """
    The rows that fulfil all conditions.

    Iceberg takes no part in those about floating-point numbers: for its statistics -0.0 is less
    than 0.0, and NaN is not greater than any number. A condition on a number of the row, which only
    Spark makes, keeps them from it.
    """
    if not conditions:
        return rows
    names = rows.columns
    tests = [F.expr(condition) for condition in conditions]
    if contains_type(rows.schema, *FLOATING):
        rows = rows.withColumn(_ROW, F.monotonically_increasing_id())
        tests.append(F.col(_ROW) >= 0)
    return rows.where(reduce(Column.__and__, tests)).select(*map(column, names))


def _as_given(derivation: Derivation, types: dict[str, T.DataType]) -> bool:
    """Whether stored values are all that expressions over them need to know."""
    kept_names = {old for _, old in derivation.plain}
    return not any(
        contains_type(types[name.lower()], *FLOATING) for name in derivation.grouped
    ) and not any(
        contains_type(_type_at(types, path), T.IntegerType)
        for path in derivation.read_by_value
        if path[0] not in kept_names
    )


def _type_at(types: dict[str, T.DataType], path: tuple[str, ...]) -> T.DataType:
    """The type of a column, or of a field within it."""
    type_ = types[path[0].lower()]
    for name in path[1:]:
        assert isinstance(type_, T.StructType), "only structs have fields"
        type_ = type_[name].dataType
    return type_


# Events. Each stored row is a row of one file, found there again by its key and its time. So a
# column that was never read is read alone, beside these. Where an event had copies in a cell,
# another of them may be the one to keep: all rows of such a cell are evaluated again, and compete
# as in a first load.
#
# What is read is kept until the commit, so that all counts are of the rows that are stored. If rows
# and files are not as the ledger has them, or a value cannot be used, nothing is written, and all
# files are ingested again.


def _new_events(ingest: Ingest, derivation: Derivation) -> NewTable | None:
    """The events that follow; None where files and stored rows do not fit each other."""
    work, files, contested = ingest.work, ingest.file_diff, derivation.contested
    schema = _schema_of_query(work, ingest.node)
    stored = _stored_outside(ingest, _stored_rows(work, ingest.step), contested)
    if derivation.from_files:
        joined = _with_new_columns(ingest, derivation, stored, schema)
        if joined is None:
            return None
        stored = joined
    rows = _rows_over_stored(stored, derivation, schema)
    assert rows is not None, "a derivation is checked before it is carried out"
    competing: Mapping[FileAndCell, int] = {}
    if files.reingest:
        arriving = _evaluated_files(ingest, files.reingest)
        arriving = _admitted_in(ingest, arriving, contested).localCheckpoint()
        ingest.refuse_changed(files.reingest)
        competing = _by_file_and_cell(ingest, arriving)
        rows = rows.unionByName(_first_copies(ingest, arriving))
    cells, kept = _counted(ingest, rows)
    copies = sum(competing.values()) - sum(kept[spot] for spot in competing)
    recounted = derivation.where or files.reingest
    counts = _recounted_files(ingest, kept, competing) if recounted else None
    computed = Computed(receipt=Receipt(deduplicated=copies), files=counts)
    return _table_of(work, ingest.node, rows), cells, computed


def _evaluated_files(ingest: Ingest, files: Sequence[IngestedFile]) -> DataFrame:
    """The rows of files that the query keeps, judged as they were before, without their text."""
    work, bounds = ingest.work, {file.id: AdmittedTimes(file.horizon) for file in files}
    known = [(file.id, file) for file in files]
    rows = source_rows.read(work.spark, work.project, ingest.source, known)
    rows = rows.withColumn(RAW, F.lit(None).cast("string"))  # it would need all columns
    return judged_arrivals(work, ingest.node, ingest.source, rows, bounds, erasures=ingest.erasures)


def _with_new_columns(
    ingest: Ingest, derivation: Derivation, stored: DataFrame, schema: T.StructType
) -> DataFrame | None:
    """
    Stored rows with what the files have in new columns.

    None where a value cannot be used, or where not each row is found once.
    """
    numbers, files = _numbered_columns(derivation), ingest.file_diff.new_columns_of
    if not files:
        return _with_nulls(stored, derivation, schema)
    identity = (FILE, *row_order(ingest.node))
    read = _evaluated_files(ingest, files).select(
        STATE,
        *(column(name).alias(f"{_FROM_FILE}{at}") for at, name in enumerate(identity)),
        *(column(name).alias(new) for name, new in numbers.items()),
    )
    if derivation.other_source_columns:
        read = read.localCheckpoint()
        if read.where(F.col(STATE) == int(RowState.SET_ASIDE)).limit(1).count():
            return None
    read = read.where(F.col(STATE) == int(RowState.ADMITTED)).drop(STATE)
    same = [column(name) == F.col(f"{_FROM_FILE}{at}") for at, name in enumerate(identity)]
    joined = stored.join(read, reduce(and_, same), "inner")
    joined = joined.drop(*(f"{_FROM_FILE}{at}" for at, _ in enumerate(identity))).localCheckpoint()
    ingest.refuse_changed(files)
    outside = {
        (entry.file_id, entry.cell): entry.rows
        for entry in ingest.work.ledger.file_cells(ingest.step.model)
        if entry.rows and not derivation.contested.overlaps(entry.cell)
    }
    return joined if _by_file_and_cell(ingest, joined) == outside else None


def _admitted_in(ingest: Ingest, rows: DataFrame, cells: Ranges) -> DataFrame:
    """The admitted rows in some cells."""
    rows = rows.where(F.col(STATE) == int(RowState.ADMITTED))
    if ingest.time is None:
        return rows
    return rows.where(time_predicate(rows, ingest.time, cells, exact=True))


def _stored_outside(ingest: Ingest, rows: DataFrame, cells: Ranges) -> DataFrame:
    """The stored rows in all cells but some."""
    if not cells:
        return rows
    if ingest.time is None:
        return rows.where(F.lit(False))
    return rows.where(time_predicate(rows, ingest.time, Ranges.ever() - cells, exact=True))


def _first_copies(ingest: Ingest, arriving: DataFrame) -> DataFrame:
    """One copy of each event."""
    columns, identity = model_columns(arriving), Identity.of(ingest.node)
    ranked = rank_copies(identity.prepared(arriving, columns), identity)
    first_copies = ranked.where(F.col(PLACE) == 1).select(*map(column, columns), FILE)
    return first_copies.withColumn(VERSION, F.lit(ingest.step.version).cast("bigint"))


def _by_file_and_cell(ingest: Ingest, rows: DataFrame) -> dict[FileAndCell, int]:
    """How many rows there are of each file in each cell."""
    cell = cell_start(ingest.time_or_null(), ingest.granularity).alias("cell")
    # At most a row for each file and cell.
    counts = rows.groupBy(FILE, cell).agg(F.count(F.lit(1)).alias(ROWS)).collect()
    return {(row[FILE], ingest.cell(row["cell"])): row[ROWS] for row in counts}


def _counted(ingest: Ingest, rows: DataFrame) -> tuple[list[CellState], Counter[FileAndCell]]:
    """The states of all cells, and how many rows of each file are in each."""
    states: dict[Interval, CellState] = {}
    rows_by_spot: Counter[FileAndCell] = Counter()
    stats = cell_stats(rows, ingest.time_or_null(), ingest.granularity, by=[F.col(FILE)])
    # At most a row for each file and cell.
    for row in stats.collect():
        cell = ingest.cell(row["cell"])
        known = states.get(cell, CellState(cell, 0, 0))
        times = [at for at in (known.last, row["last"]) if at is not None]
        states[cell] = CellState(
            cell,
            known.rows + row[ROWS],
            signed(known.content + content_of(row)),
            max(times, default=None),
        )
        rows_by_spot[row[FILE], cell] = row[ROWS]
    return list(states.values()), rows_by_spot


def _recounted_files(
    ingest: Ingest, stored: Mapping[FileAndCell, int], competing: Mapping[FileAndCell, int]
) -> FilesOutcome:
    """The files that were ingested, with their rows as the new definition counts them."""
    counts = {**stored, **competing}
    cells = [
        FileCell(*spot, counts[spot], counts[spot] - stored.get(spot, 0)) for spot in sorted(counts)
    ]
    rows: Counter[int] = Counter()
    dropped: Counter[int] = Counter()
    for file_cell in cells:
        rows[file_cell.file_id] += file_cell.rows
        dropped[file_cell.file_id] += file_cell.dropped
    files = ingest.work.ledger.files(ingest.step.model)
    return FilesOutcome(
        source=ingest.source.name,
        ingested=tuple(replace(f, rows=rows[f.id], dropped=dropped[f.id]) for f in files),
        cells=tuple(cells),
        recounted=True,
    )
