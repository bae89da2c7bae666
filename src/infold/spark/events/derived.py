"""
Events of a changed definition, made from their own stored rows, and as few files as will do.

Each stored row is a row of one file, found there again by its key and its time. So a column that
was never read is read alone, beside these. Where an event had copies in a cell, another of them may
be the one to keep: all rows of such a cell are evaluated again, and compete as in a first load. A
single commit replaces the table, which stays as it is until then.

What is read is kept until the commit, so that all counts are of the rows that are stored. If rows
and files are not as the ledger has them, or a value cannot be used, nothing is written, and all
files are ingested again.

The frames here are stored rows, judged arrivals (``arrivals``), and the rows to store.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, replace
from functools import reduce
from operator import and_

from pyspark.errors import PySparkException
from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql import types as T

from infold.core.definition import Derivation
from infold.core.files import FileCell, FilesOutcome, IngestedFile
from infold.core.interval import Interval, Ranges
from infold.core.own_columns import FILE, VERSION
from infold.core.plan import Step
from infold.core.queries import quoted
from infold.core.record import Outcome, Receipt
from infold.core.trace import CellState, changes_of_rewrite, signed
from infold.spark.analyser import with_columns_to_be
from infold.spark.content import cell_start, cell_stats, column, time_predicate
from infold.spark.events.arrivals import (
    RAW,
    STATE,
    AdmittedTimes,
    RowState,
    judged_arrivals,
)
from infold.spark.events.build import DICTIONARY
from infold.spark.events.copies import PLACE, Identity, rank_copies, row_order
from infold.spark.events.ingest import ROWS, FileAndCell, Ingest, content_of, lookups, model_columns
from infold.spark.inputs.changed_rows import count_row_changes
from infold.spark.jvm.session_settings import settings_for_few_rows
from infold.spark.reading import failures, source_rows
from infold.spark.step_commit import Computed, WholeTable, commit_step, without_trace
from infold.spark.step_context import Work
from infold.spark.time_range.derived import FEW_ROWS, rows_over_stored

_NEW = "_infold_new"
"""The columns read from files, by their numbers, until they have their names."""
_FROM_FILE = "_infold_of"


def derives_exactly(work: Work, step: Step) -> bool:
    """Whether the derived rows have the values and types that the query would give."""
    ingest, derivation = Ingest.of(work, step), step.derivation
    assert derivation is not None, "a step that derives has a derivation"
    try:
        schema = _schema_of_query(ingest)
    except PySparkException:
        return True  # a definition that is wrong is reported as such
    stored = _stored(ingest)
    for name, number in _numbered_columns(derivation).items():
        stored = stored.withColumn(number, F.lit(None).cast(schema[name].dataType))
    try:
        return _rows_over(stored, derivation, schema) is not None
    except PySparkException:
        return False


def carry_out(work: Work, step: Step) -> Outcome:
    """Replace the table by the rows that follow from it and from some files, in one commit."""
    ingest, derivation = Ingest.of(work, step), step.derivation
    assert derivation is not None, "a step that derives has a derivation"
    files = (*ingest.file_diff.new_columns_of, *ingest.file_diff.reingest)
    if derivation.changes_nothing and not files:
        return commit_step(work, step, None, Computed())
    stored = sum(state.rows for state in work.cells(step.model))
    few = stored + sum(file.rows for file in files) <= FEW_ROWS
    with (
        failures.naming_files(work.project, ingest.source),
        settings_for_few_rows(work.spark) if few else nullcontext(),
    ):
        rows = _rows_to_store(ingest, derivation)
        if rows is None:
            return without_trace(work, step)
        return _replace_table(ingest, derivation, rows)


@dataclass(frozen=True, slots=True)
class _NewRows:
    """The rows to store, and how many rows of each file compete for contested cells."""

    rows: DataFrame
    competing: Mapping[FileAndCell, int]


def _rows_to_store(ingest: Ingest, derivation: Derivation) -> _NewRows | None:
    """The rows to store; None where files and stored rows do not fit each other."""
    files, contested = ingest.file_diff, ingest.step.contested
    stored = _stored_outside(ingest, _stored(ingest), contested)
    if derivation.from_files:
        joined = _with_new_columns(ingest, derivation, stored)
        if joined is None:
            return None
        stored = joined
    rows = _rows_over(stored, derivation, _schema_of_query(ingest))
    assert rows is not None, "a derivation is checked before it is carried out"
    competing: Mapping[FileAndCell, int] = {}
    if files.reingest:
        arriving = _evaluated_files(ingest, files.reingest)
        arriving = _admitted_in(ingest, arriving, contested).localCheckpoint()
        ingest.refuse_changed(files.reingest)
        competing = _by_file_and_cell(ingest, arriving)
        rows = rows.unionByName(_first_copies(ingest, arriving))
    return _NewRows(rows, competing)


def _replace_table(ingest: Ingest, derivation: Derivation, new: _NewRows) -> Outcome:
    """Count the rows, and put them in the place of the table."""
    work, step, node = ingest.work, ingest.step, ingest.node
    before = work.cells(step.model)
    after, stored = _counted(ingest, new.rows)
    changes = changes_of_rewrite(before, after)
    changes = count_row_changes(work.project, node, changes, lambda: (_stored(ingest), new.rows))
    read = sum(file.rows for file in (*ingest.file_diff.new_columns_of, *ingest.file_diff.reingest))
    receipt = Receipt(
        read=read,
        scanned=sum(state.rows for state in before) + read,
        deduplicated=sum(new.competing.values()) - sum(stored[spot] for spot in new.competing),
    )
    recounted = derivation.where or ingest.file_diff.reingest
    files = _recounted_files(ingest, stored, new.competing) if recounted else None
    layout = replace(work.tables.layout(step.model), dictionary=DICTIONARY)
    if layout.column is not None and ingest.time is not None:
        layout = replace(layout, column=ingest.time)
    table = WholeTable(new.rows, layout)
    return commit_step(work, step, table, Computed(changes, receipt, files=files))


def _stored(ingest: Ingest) -> DataFrame:
    """The table as it is before the step, with its technical columns."""
    return ingest.work.frame(ingest.step.model, ingest.step.version - 1)


def _schema_of_query(ingest: Ingest) -> T.StructType:
    """The types of the new columns, by the query; no row is read."""
    work, node, source = ingest.work, ingest.node, ingest.source
    rows = source_rows.read(work.spark, work.project, source, [])
    rows = rows.select(*(column(declared.name) for declared in source.columns))
    beside = with_columns_to_be(work, lookups(work, node, ingest.step))
    return work.sql(node, {**beside, source.name: rows}).schema


def _numbered_columns(derivation: Derivation) -> dict[str, str]:
    """The columns that are read from files, with the names that they have until they are stored."""
    return {name: f"{_NEW}{at}" for at, name in enumerate(derivation.from_files)}


def _rows_over(stored: DataFrame, derived: Derivation, schema: T.StructType) -> DataFrame | None:
    """As ``rows_over_stored``, with the technical columns; stored rows have new ones by number."""
    numbers = _numbered_columns(derived)
    columns = tuple(
        (name, quoted(numbers[name]) if name in numbers else sql) for name, sql in derived.columns
    )
    carried = (FILE, VERSION, *numbers.values())
    rows = rows_over_stored(stored, replace(derived, columns=columns), schema, carried)
    return None if rows is None else rows.drop(*numbers.values())


def _evaluated_files(ingest: Ingest, files: Sequence[IngestedFile]) -> DataFrame:
    """The rows of files that the query keeps, judged as they were before, without their text."""
    work, bounds = ingest.work, {file.id: AdmittedTimes(file.horizon) for file in files}
    known = [(file.id, file) for file in files]
    rows = source_rows.read(work.spark, work.project, ingest.source, known)
    rows = rows.withColumn(RAW, F.lit(None).cast("string"))  # it would need all columns
    return judged_arrivals(work, ingest.node, ingest.source, rows, bounds)


def _with_new_columns(
    ingest: Ingest, derivation: Derivation, stored: DataFrame
) -> DataFrame | None:
    """
    Stored rows with what the files have in new columns.

    None where a value cannot be used, or where not each row is found once.
    """
    numbers, files = _numbered_columns(derivation), ingest.file_diff.new_columns_of
    if not files:
        schema = _schema_of_query(ingest)
        nulls = {new: F.lit(None).cast(schema[name].dataType) for name, new in numbers.items()}
        return stored.withColumns(nulls)
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
        if entry.rows and not ingest.step.contested.overlaps(entry.cell)
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
