"""
What an ingest adds to an events table and removes from it.

With a key, new, stored and returning copies of one event compete (``copies``); without one, rows
come and go with their files. Either way the result is a :class:`TableChange`, not yet written.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property, reduce

from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as F

from infold.core.files import IngestedFile
from infold.core.interval import Interval, Ranges
from infold.core.own_columns import FILE, VERSION
from infold.spark.content import (
    cell_start,
    cell_stats,
    column,
    content,
    row_hash,
    user_columns,
)
from infold.spark.events import copies
from infold.spark.events.arrivals import HASH, STATE, AdmittedTimes, RowCount, RowState
from infold.spark.events.copies import (
    BACK,
    COMPETING_COPIES,
    DIFFERS,
    ELSEWHERE,
    FATE,
    GONE,
    NEW,
    ORIGIN,
    STORED,
    CopyFate,
    Identity,
    row_order,
)
from infold.spark.events.erasures import ERASED
from infold.spark.events.ingest import (
    ROWS,
    Ingest,
    IngestCounts,
    content_of,
    model_columns,
    rows_and_content,
    with_hash,
)
from infold.spark.frame_schema import FrameColumn, FrameSchema, returns
from infold.spark.reading import source_rows
from infold.spark.time_range.recompute import as_stored

_STORED_HASH = "_stored_hash"

TWO_PHASES = 1_000_000
"""Above so many stored rows in the touched cells, times are compared before keys."""

BROADCAST = 500_000
"""Up to so many new rows are broadcast instead of shuffled."""

MOST_TIMES = 100_000
"""Up to so many instants are told apart: they come to the driver, and go into a condition."""

WIDE = 4
"""Above so many times the columns that tell whose a row is, these are read before all others."""

ADDED_ROWS = FrameSchema(
    "a row to add to the table",
    (
        FrameColumn(FILE, "bigint", "the id of the file's version that it is from"),
        FrameColumn(VERSION, "bigint", "the table's version that inserts it"),
    ),
    "the event",
)


@dataclass(frozen=True)
class TableChange:
    """
    Rows to add, and rows to remove: those equal to ``delete`` on ``on``, all in ``cells``.

    ``read`` counts rows evaluated besides those of new files, ``scanned`` rows scanned for them.
    """

    insert: DataFrame | None = None
    delete: DataFrame | None = None
    on: tuple[str, ...] = ()
    cells: Ranges = Ranges()
    read: int = 0
    scanned: int = 0
    removed: DataFrame | None = None
    """The stored rows that leave for good, where they are computed once and kept."""

    def __bool__(self) -> bool:
        return self.insert is not None or self.delete is not None

    @staticmethod
    def together(
        changes: Sequence[TableChange], table: DataFrame, on: Sequence[str]
    ) -> TableChange:
        """What several definitions change, each in its own cells, as one."""
        if len(changes) == 1:
            return changes[0]
        insert = [change.added_rows(table) for change in changes if change.insert is not None]
        delete = [
            change.delete.select(*(column(name).alias(name) for name in on))
            for change in changes
            if change.delete is not None
        ]
        return TableChange(
            reduce(DataFrame.unionByName, insert) if insert else None,
            reduce(DataFrame.unionByName, delete) if delete else None,
            tuple(on),
            Ranges.of(part for change in changes for part in change.cells),
            sum(change.read for change in changes),
            sum(change.scanned for change in changes),
        )

    @returns(ADDED_ROWS)
    def added_rows(self, table: DataFrame) -> DataFrame:
        """The rows to add, with the table's columns."""
        rows = table.limit(0) if self.insert is None else self.insert
        return rows.select(*map(column, table.columns))


def apply_without_key(
    ingest: Ingest, arriving: DataFrame | None, row_counts: Sequence[RowCount], tally: IngestCounts
) -> TableChange:
    """Rows without a key: those of new files are added, those of gone files leave."""
    insert = delete = None
    for count in row_counts:
        if count.state is RowState.ADMITTED and count.cell is not None:
            tally.add(count.cell, count.rows, count.content, count.last)
            tally.written += count.rows
            tally.erased -= count.rows if count.file in ingest.reingested else 0
    if arriving is not None and tally.written:
        insert = arriving.where(F.col(STATE) == int(RowState.ADMITTED))
        insert = insert.withColumn(VERSION, F.lit(ingest.step.version).cast("bigint"))
    diff = ingest.file_diff
    removed_files = [file.id for file in (*diff.removed, *diff.reingest) if file.rows]
    gone = {file.id for file in diff.removed}
    erased = erased_rows(ingest, removed_files)
    if not removed_files and erased is None:
        return TableChange(insert)
    spots = ingest.work.ledger.file_cells(ingest.step.model, removed_files)
    cells, on = Ranges.of(spot.cell for spot in spots), [FILE]
    leaving = ingest.stored(cells).where(F.col(FILE).isin(removed_files))
    if erased is not None:
        cells, on, leaving = erased.cells, [FILE, *erased.found_by], erased.rows.drop(HASH)
    # At most a row for each cell and file that rows leave.
    stats = cell_stats(leaving, ingest.time_or_null(), ingest.granularity, by=[F.col(FILE)])
    for start, file, rows, hi, lo, _ in stats.collect():
        cell = ingest.cell(start)
        tally.remove(cell, rows, content(hi, lo))
        tally.removed += rows
        if file not in removed_files:
            tally.rows[file, cell] -= rows
        if file not in gone:
            tally.erased += rows
    if tally.removed:
        delete = leaving.select(*map(column, on)).distinct()
    scanned = sum(spot.rows for spot in spots) + (erased.scanned if erased else 0)
    return TableChange(insert, delete, tuple(on), cells, scanned=scanned)


@dataclass(frozen=True)
class ErasedRows:
    """
    Stored rows of persons who were asked to be erased, with their hash.

    ``found_by`` are the columns that tell them from others of their file.
    """

    ingest: Ingest
    rows: DataFrame
    found_by: tuple[str, ...]
    scanned: int

    @cached_property
    def cells(self) -> Ranges:
        """The cells that they are in; it takes a job."""
        return _cells_of(self.ingest, self.rows)


def _cells_of(ingest: Ingest, rows: DataFrame) -> Ranges:
    """The cells that some rows are in."""
    cell = cell_start(ingest.time_or_null(), ingest.granularity).alias("cell")
    # At most a row for each cell.
    return Ranges.of(ingest.cell(row["cell"]) for row in rows.select(cell).distinct().collect())


def erased_rows(ingest: Ingest, without: Sequence[int]) -> ErasedRows | None:
    """The stored rows to erase but for those of some files; None where there are none."""
    names = ingest.names_of_erased
    if not ingest.erases or ingest.erasures is None or names is None:
        return None
    stored = ingest.work.tables.read(ingest.step.model, ranges=Ranges.ever())
    if ingest.time is not None and ingest.erasures.given is not None:
        narrow = dict.fromkeys((ingest.time, *names.values()))
        if len(stored.columns) > WIDE * len(narrow):
            found = ingest.erasures.candidates(stored.select(*map(column, narrow)), names)
            at = found.select(ingest.micros().alias("at"))
            # At most ``MOST_TIMES`` rows and one.
            instants = at.distinct().limit(MOST_TIMES + 1).toArrow()["at"].to_pylist()
            if not instants:
                return None
            if len(instants) <= MOST_TIMES:
                stored = ingest.stored(Ranges.of(Interval(at, at + 1) for at in instants))
    others = stored.where(~F.col(FILE).isin(list(without))) if without else stored
    marked = ingest.erasures.marked(ingest.erasures.candidates(others, names), names)
    rows = with_hash(marked.where(F.col(ERASED)).drop(ERASED)).localCheckpoint(eager=False)
    scanned = sum(state.rows for state in ingest.work.cells(ingest.step.model))
    return ErasedRows(ingest, rows, tuple(names.values()), scanned)


def deduplicate(ingest: Ingest, arriving: DataFrame | None, tally: IngestCounts) -> TableChange:
    """Rows with a key: new, stored and returning copies of one event compete."""
    identity = Identity.of(ingest.node)
    new = None
    if arriving is not None and ingest.own_cells(Ranges.of(cell for _, cell in tally.rows)):
        new = arriving.where(F.col(STATE) == int(RowState.ADMITTED))
    diff = ingest.file_diff
    file_ids = [f.id for f in (*diff.removed, *diff.reingest) if f.rows > f.dropped]
    erased = erased_rows(ingest, file_ids)
    reingested, scanned = _leaving_rows(ingest, new, file_ids, erased)
    reread: Sequence[IngestedFile] = ()
    parts = [
        _competing(rows, identity, STORED) for rows in (reingested.unchanged,) if rows is not None
    ]
    if reingested.new is not None:
        parts.append(_competing(reingested.new, identity, NEW))
        rivals, rows_scanned = _stored_copies(
            ingest, identity, reingested.new, tally, file_ids, erased
        )
        scanned += rows_scanned
        if rivals is not None:
            parts.append(_competing(rivals, identity, STORED))
    if reingested.lost is not None:
        parts.append(_competing(reingested.lost, identity, STORED, gone=True))
        returning, reread = _returning_copies(ingest, identity, reingested, erased)
        scanned += sum(file.rows for file in reread)
        if returning is not None:
            parts.append(_competing(returning, identity, BACK))
    if not parts:
        return TableChange(scanned=scanned)
    competing = reduce(lambda a, b: a.unionByName(b, allowMissingColumns=True), parts)
    if VERSION not in competing.columns:
        competing = competing.withColumn(VERSION, F.lit(None).cast("bigint"))
    judged = copies.copy_fates(competing, identity, ingest.step.version)
    judged, hashed = _as_in_table(ingest, judged)
    judged = judged.localCheckpoint(eager=False)
    leaving, read = _count_copies(ingest, judged, tally, hashed)
    ingest.refuse_changed(reread)  # not before: it is now that they were read
    insert = delete = removed = None
    if tally.written:
        insert = judged.where(F.col(FATE).isin([fate.value for fate in copies.INSERTED]))
    if leaving:
        delete = judged.where(F.col(FATE).isin([fate.value for fate in copies.DELETED]))
        removed = judged.where(F.col(FATE).isin([fate.value for fate in copies.GONE_FOR_GOOD]))
    return TableChange(insert, delete, row_order(ingest.node), leaving, read, scanned, removed)


def _as_in_table(ingest: Ingest, judged: DataFrame) -> tuple[DataFrame, str]:
    """
    Judged copies with the columns of the table, and the name of the hash of these.

    Which copy is kept follows from the hash by their definition; the content of a cell is made of
    the hashes of the rows as they are stored. They differ where the definition is an earlier one.
    """
    if ingest.is_newest:
        return judged, HASH
    stored = user_columns(ingest.work.tables.read(ingest.step.model)).schema
    model_names = {name.lower() for name in ingest.node.columns}
    beside = [name for name in judged.columns if name.lower() not in model_names]
    rows = as_stored(stored, ingest.step.model, judged, beside)
    return rows.withColumn(_STORED_HASH, row_hash(stored)), _STORED_HASH


def _count_copies(
    ingest: Ingest, judged: DataFrame, tally: IngestCounts, hashed: str
) -> tuple[Ranges, int]:
    """Count the fates of all copies; the cells that rows leave, and how many were stored."""
    stats = judged.groupBy(
        cell_start(ingest.time_or_null(), ingest.granularity).alias("cell"),
        *(FILE, FATE, ORIGIN, DIFFERS, ELSEWHERE),
    ).agg(*rows_and_content(hashed), F.max(ingest.micros()).alias("last"))
    leaving: list[Interval] = []
    removed = {file.id for file in ingest.file_diff.removed}
    read = 0
    # At most a few rows for each file of the step and cell.
    for row in stats.collect():
        cell, fate, rows = ingest.cell(row["cell"]), CopyFate(row[FATE]), row[ROWS]
        spot = (row[FILE], cell)
        if row[ORIGIN] != NEW:
            read += rows
        if fate is CopyFate.ADDED:
            tally.add(cell, rows, content_of(row), row["last"])
        if fate in (CopyFate.REMOVED, CopyFate.BEATEN):
            tally.remove(cell, rows, content_of(row))
        if fate in copies.INSERTED:
            tally.written += rows
            tally.dropped[spot] -= rows if row[ORIGIN] == BACK else 0
        if fate in copies.DELETED:
            tally.removed += rows
            leaving.append(cell)
        if ingest.erases and fate is CopyFate.REMOVED and row[FILE] not in removed:
            tally.erased += rows
            if row[FILE] not in ingest.reingested:  # the files of others are not counted again
                tally.rows[spot] -= rows
        if fate in (CopyFate.LEFT_OUT, CopyFate.BEATEN):
            tally.dropped[spot] += rows
            tally.copies += rows
            tally.conflicting += rows if row[DIFFERS] else 0
            tally.elsewhere += rows if row[ELSEWHERE] else 0
    return Ranges.of(leaving), read


@returns(COMPETING_COPIES)
def _competing(
    rows: DataFrame, identity: Identity, origin: int, *, gone: bool = False
) -> DataFrame:
    """Rows as competing copies; only stored ones have a version already."""
    names = model_columns(rows)
    columns = [*names, FILE, HASH, *([VERSION] if origin == STORED else [])]
    rivals = rows.select(
        *map(column, columns), F.lit(origin).alias(ORIGIN), F.lit(gone).alias(GONE)
    )
    return identity.prepared(rivals, names)


def _stored_copies(
    ingest: Ingest,
    identity: Identity,
    new: DataFrame,
    tally: IngestCounts,
    removed: Sequence[int],
    erased: ErasedRows | None,
) -> tuple[DataFrame | None, int]:
    """
    Stored copies of the new events, and how many rows were scanned for them.

    Copies of one event time are in the touched cells; copies of any time may be in all cells. Where
    these have many rows, narrow columns are compared first: times in the one case, keys in the
    other. That mostly leaves nothing, or a few ranges of time to read the other columns from.
    """
    everywhere = identity.time is not None
    touched = None if everywhere else ingest.own_cells(Ranges.of(cell for _, cell in tally.rows))
    states = ingest.work.cells(ingest.step.model, touched)
    scanned = sum(state.rows for state in states)
    if not scanned:
        return None, 0
    tally.keys_scanned += scanned if everywhere else 0
    is_small = sum(tally.rows.values()) <= BROADCAST
    keys = new.select(*map(column, identity.keys))
    # At most ``BROADCAST`` rows.
    keys = F.broadcast(keys) if is_small else keys
    cells = Ranges.of(state.cell for state in states)
    if ingest.time is not None and scanned > TWO_PHASES:
        cells = (
            _times_of_keys(ingest, identity, keys)
            if everywhere
            else _times_in_both(ingest, new, cells, is_small)
        )
        if not cells:
            return None, scanned
    rows = ingest.stored(cells)
    if removed:
        rows = rows.where(~F.col(FILE).isin(list(removed)))
    if erased is not None:
        rows = copies.rows_without_identity_of(rows, erased.rows, row_order(ingest.node))
    return with_hash(copies.rows_with_identity_of(rows, keys, identity.keys)), scanned


def _times_in_both(ingest: Ingest, new: DataFrame, cells: Ranges, few: bool) -> Ranges:
    """
    The instants in some cells that both new and stored rows have; the cells if these are too many.

    As where files are delivered once more: then nearly all rows of the cells are to be read anyway.
    """
    assert ingest.time is not None
    times = new.select(column(ingest.time)).distinct()
    stored = ingest.stored(cells).select(column(ingest.time))
    # At most ``BROADCAST`` rows are sent.
    equal = copies.rows_with_identity_of(
        stored, F.broadcast(times) if few else times, [ingest.time]
    )
    shared = equal.select(ingest.micros().alias("at")).distinct()
    # At most ``MOST_TIMES`` rows and one.
    instants = shared.limit(MOST_TIMES + 1).toArrow()["at"].to_pylist()
    return (
        cells if len(instants) > MOST_TIMES else Ranges.of(Interval(at, at + 1) for at in instants)
    )


def _times_of_keys(ingest: Ingest, identity: Identity, keys: DataFrame) -> Ranges:
    """The ranges of time, one for each cell, that have stored rows with one of the keys."""
    assert ingest.time is not None
    stored = ingest.work.tables.read(ingest.step.model, ranges=Ranges.ever())
    stored = stored.select(column(ingest.time), *map(column, identity.keys))
    rows = copies.rows_with_identity_of(stored, keys, identity.keys)
    cell = cell_start(ingest.time_or_null(), ingest.granularity)
    at = ingest.micros()
    # At most a row for each cell.
    ends = rows.groupBy(cell).agg(F.min(at).alias("first"), F.max(at).alias("last")).collect()
    return Ranges.of(Interval(row["first"], row["last"] + 1) for row in ends)


def _leaving_rows(
    ingest: Ingest, new: DataFrame | None, ids: Sequence[int], erased: ErasedRows | None
) -> tuple[ReingestDiff, int]:
    """What leaves: rows of files that are gone or ingested again, and of persons; rows scanned."""
    diff, scanned = _leaving_files(ingest, new, ids)
    if erased is None:
        return diff, scanned
    lost = erased.rows if diff.lost is None else diff.lost.unionByName(erased.rows)
    return replace(diff, lost=lost), scanned + erased.scanned


def _leaving_files(
    ingest: Ingest, new: DataFrame | None, ids: Sequence[int]
) -> tuple[ReingestDiff, int]:
    """What files that are gone or ingested again leave, and how many rows were scanned."""
    if not ids:
        return ReingestDiff(new), 0
    lost, cells, scanned = _stored_rows_of(ingest, ids)
    if not cells:
        return ReingestDiff(new), scanned
    if new is None or not ingest.reingested:
        return ReingestDiff(new, None, lost, cells), scanned
    return reingest_diff(ingest, new, lost), scanned


def _stored_rows_of(ingest: Ingest, file_ids: Sequence[int]) -> tuple[DataFrame, Ranges, int]:
    """The stored rows of files that are gone, their cells, and how many rows were scanned."""
    spots = ingest.work.ledger.file_cells(ingest.step.model, file_ids)
    cells = ingest.own_cells(Ranges.of(spot.cell for spot in spots if spot.rows > spot.dropped))
    scanned = sum(state.rows for state in ingest.work.cells(ingest.step.model, cells))
    rows = ingest.stored(cells).where(F.col(FILE).isin(list(file_ids)))
    return with_hash(rows).localCheckpoint(eager=False), cells, scanned


def _returning_copies(
    ingest: Ingest, identity: Identity, leaving: ReingestDiff, erased: ErasedRows | None
) -> tuple[DataFrame | None, Sequence[IngestedFile]]:
    """
    Copies that had lost to rows which leave now, and the files that an action reads them from.

    Copies of one event may have several times. Then one may have lost in any cell, and every file
    with a copy that lost is read. None is where rows are erased alone and all copies are equal:
    these are rows of the same person.
    """
    assert leaving.lost is not None, "only then rows may come back"
    cells, ledger, model = leaving.cells, ingest.work.ledger, ingest.step.model
    if erased is not None:
        if not cells and ingest.copies_are_equal:
            return None, ()
        cells |= erased.cells
    left_out = {file.id for file in ingest.file_diff.removed} | {*ingest.reingested}
    losing = {
        spot.file_id
        for spot in ledger.file_cells(model)
        if spot.dropped > 0
        and spot.file_id not in left_out
        and (identity.time is not None or cells.overlaps(spot.cell))
    }
    lost_files: list[IngestedFile] = [file for file in ledger.files(model) if file.id in losing]
    if not lost_files:
        return None, ()
    files_by_id: dict[int, source_rows.File] = {file.id: file for file in lost_files}
    bounds = {file.id: AdmittedTimes(file.horizon) for file in lost_files}
    read = ingest.read(files_by_id, bounds).rows
    admitted = read.where(F.col(STATE) == int(RowState.ADMITTED))
    returning = copies.rows_with_identity_of(admitted, leaving.lost, identity.keys)
    return returning, lost_files


# All of their rows are evaluated again. Most give the row that is stored; these stay as they are.
# So the change of the table is the rows that differ, one by one, and what reads the table folds
# them.
#
# The frames here are judged arrivals (`arrivals`), and stored rows with `_hash` (`table_change`).

_NTH = "_nth"


@dataclass(frozen=True)
class ReingestDiff:
    """
    How the rows of some files differ from the stored rows of these files.

    ``new`` are rows that are not stored, with those of new files; ``unchanged`` are stored rows
    that came out again; ``lost`` are stored rows that did not, in ``cells``.
    """

    new: DataFrame | None
    unchanged: DataFrame | None = None
    lost: DataFrame | None = None
    cells: Ranges = Ranges()


def reingest_diff(ingest: Ingest, new: DataFrame, stored: DataFrame) -> ReingestDiff:
    """
    How files that are ingested again differ from what is stored; rows of gone files are ``lost``.

    ``stored`` are their stored rows: one at most of equal rows of a file, as rows have a key.
    """
    is_reingested = F.col(FILE).isin([*ingest.reingested])
    equal = Window.partitionBy(FILE, HASH).orderBy(HASH)
    numbered = new.withColumn(_NTH, F.row_number().over(equal))
    stored_hashes = _with_prefixed_names(stored.where(is_reingested).select(FILE, HASH))
    evaluated = _with_prefixed_names(new.where(is_reingested).select(FILE, HASH))
    same = (F.col(FILE) == F.col(f"_of{FILE}")) & (F.col(HASH) == F.col(f"_of{HASH}"))
    new_rows = numbered.join(stored_hashes, same & (F.col(_NTH) == 1), "left_anti").drop(_NTH)
    lost = stored.join(evaluated, same, "left_anti").localCheckpoint(eager=False)
    cells = _cells_of(ingest, lost)
    kept_rows = stored.join(evaluated, same, "left_semi")
    return ReingestDiff(new_rows, kept_rows, lost if cells else None, cells)


def _with_prefixed_names(rows: DataFrame) -> DataFrame:
    """Rows with other column names, to be joined with rows that have the same."""
    return rows.toDF(*(f"_of{name}" for name in rows.columns))
