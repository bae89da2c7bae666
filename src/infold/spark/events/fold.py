"""
What a fold of files adds to an events table and takes out of it.

With a key, new, stored and returning copies of one event compete in one window; without one, rows
come and go with their files. Either way the result is a :class:`Change`, not yet written.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from infold.core.files import FileKnown
from infold.core.interval import Interval, Ranges
from infold.spark.content import cell_start, cell_stats, column
from infold.spark.events import copies
from infold.spark.events.arrivals import FILE, HASH, STATE, Bounds, Count, State
from infold.spark.events.copies import (
    BACK,
    DIFFERS,
    ELSEWHERE,
    FATE,
    GONE,
    NEW,
    ORIGIN,
    STORED,
    VERSION,
    CopyFate,
    Identity,
    place,
)
from infold.spark.events.ingest import ROWS, Ingest, hashed, model_columns, summed, sums
from infold.spark.events.ingest_counts import Tally
from infold.spark.events.reingest import ReingestDiff, differing
from infold.spark.reading import source_rows

TWO_PHASES = 1_000_000
"""Stored rows in the touched cells from which their times are compared before their keys."""

BROADCAST = 500_000
"""New rows up to which they are sent to every task instead of shuffled."""


@dataclass(frozen=True)
class Change:
    """
    Rows to add, and rows to remove: those equal to ``delete`` on ``on``, all in ``cells``.

    ``read`` are rows evaluated besides those of new files, ``scanned`` those looked through.
    """

    insert: DataFrame | None = None
    delete: DataFrame | None = None
    on: tuple[str, ...] = ()
    cells: Ranges = Ranges()
    read: int = 0
    scanned: int = 0

    def __bool__(self) -> bool:
        return self.insert is not None or self.delete is not None


def apply_without_key(
    ingest: Ingest, arriving: DataFrame | None, found: Sequence[Count], tally: Tally
) -> Change:
    """Rows without a key: those of new files are added, those of gone files leave."""
    insert = delete = None
    for count in found:
        if count.state is State.ADMITTED and count.cell is not None:
            tally.add(count.cell, count.rows, count.content, count.last)
            tally.written += count.rows
    if arriving is not None and tally.written:
        insert = arriving.where(F.col(STATE) == int(State.ADMITTED))
        insert = insert.withColumn(VERSION, F.lit(ingest.step.version).cast("bigint"))
    gone = [file.id for file in ingest.news.gone if file.rows]
    if not gone:
        return Change(insert)
    spots = ingest.work.ledger.file_cells(ingest.step.model, gone)
    cells = Ranges.of(spot.cell for spot in spots)
    leaving = ingest.stored(cells).where(F.col(FILE).isin(gone))
    for row in cell_stats(leaving, ingest.time_or_null(), ingest.granularity).collect():
        tally.remove(ingest.cell(row["cell"]), row[ROWS], summed(row))
        tally.removed += row[ROWS]
    if tally.removed:
        delete = leaving.select(FILE).distinct()
    return Change(insert, delete, (FILE,), cells, scanned=sum(spot.rows for spot in spots))


def deduplicate(ingest: Ingest, arriving: DataFrame | None, tally: Tally) -> Change:
    """Rows with a key: new, stored and returning copies of one event compete."""
    identity = Identity.of(ingest.node)
    new = None
    if arriving is not None and tally.rows:
        new = arriving.where(F.col(STATE) == int(State.ADMITTED))
    ids = [f.id for f in (*ingest.news.gone, *ingest.news.again) if f.rows > f.dropped]
    found, scanned = _left(ingest, new, ids)
    parts = [_copies(rows, identity, STORED) for rows in (found.stay,) if rows is not None]
    if found.new is not None:
        parts.append(_copies(found.new, identity, NEW))
        rivals, looked = _rivals(ingest, identity, found.new, tally, ids)
        scanned += looked
        if rivals is not None:
            parts.append(_copies(rivals, identity, STORED))
    if found.gone is not None:
        parts.append(_copies(found.gone, identity, STORED, gone=True))
        back, again = _returning(ingest, identity, found.gone, found.cells)
        scanned += again
        if back is not None:
            parts.append(_copies(back, identity, BACK))
    if not parts:
        return Change(scanned=scanned)
    every = reduce(lambda a, b: a.unionByName(b, allowMissingColumns=True), parts)
    if VERSION not in every.columns:
        every = every.withColumn(VERSION, F.lit(None).cast("bigint"))
    judged = copies.fates(every, identity, ingest.step.version)
    judged = judged.localCheckpoint(eager=False)
    leaving, read = _tally_copies(ingest, judged, tally)
    insert = delete = None
    if tally.written:
        insert = judged.where(F.col(FATE).isin([fate.value for fate in copies.INSERTED]))
    if leaving:
        delete = judged.where(F.col(FATE).isin([fate.value for fate in copies.DELETED]))
    return Change(insert, delete, place(ingest.node), leaving, read, scanned)


def _tally_copies(ingest: Ingest, judged: DataFrame, tally: Tally) -> tuple[Ranges, int]:
    """Count what becomes of all copies; the cells that rows leave, and how many were stored."""
    stats = judged.groupBy(
        cell_start(ingest.time_or_null(), ingest.granularity).alias("cell"),
        *(FILE, FATE, ORIGIN, DIFFERS, ELSEWHERE),
    ).agg(*sums(), F.max(ingest.micros()).alias("last"))
    leaving: list[Interval] = []
    read = 0
    for row in stats.collect():
        cell, fate, rows = ingest.cell(row["cell"]), CopyFate(row[FATE]), row[ROWS]
        spot = (row[FILE], cell)
        if row[ORIGIN] != NEW:
            read += rows
        if fate is CopyFate.ADDED:
            tally.add(cell, rows, summed(row), row["last"])
        if fate in (CopyFate.REMOVED, CopyFate.BEATEN):
            tally.remove(cell, rows, summed(row))
        if fate in copies.INSERTED:
            tally.written += rows
            tally.dropped[spot] -= rows if row[ORIGIN] == BACK else 0
        if fate in copies.DELETED:
            tally.removed += rows
            leaving.append(cell)
        if fate in (CopyFate.LEFT_OUT, CopyFate.BEATEN):
            tally.dropped[spot] += rows
            tally.copies += rows
            tally.conflicting += rows if row[DIFFERS] else 0
            tally.elsewhere += rows if row[ELSEWHERE] else 0
    return Ranges.of(leaving), read


def _copies(rows: DataFrame, identity: Identity, origin: int, *, gone: bool = False) -> DataFrame:
    """Rows as copies that compete; only stored ones have a version already."""
    own = model_columns(rows)
    kept = [*own, FILE, HASH, *([VERSION] if origin == STORED else [])]
    found = rows.select(*map(column, kept), F.lit(origin).alias(ORIGIN), F.lit(gone).alias(GONE))
    return identity.prepared(found, own)


def _rivals(
    ingest: Ingest, identity: Identity, new: DataFrame, tally: Tally, gone: Sequence[int]
) -> tuple[DataFrame | None, int]:
    """
    Stored copies of the new events, and how many rows were looked through for them.

    Copies of one time are in the touched cells, those of any time may be in all. Where that is
    much, narrow columns are compared first: times in the one case, keys in the other. Mostly that
    leaves nothing, or a few ranges of time to read all the rest from.
    """
    everywhere = identity.time is not None
    touched = None if everywhere else Ranges.of(cell for _, cell in tally.rows)
    known = ingest.work.cells(ingest.step.model, touched)
    looked = sum(state.rows for state in known)
    if not looked:
        return None, 0
    tally.keys_scanned += looked if everywhere else 0
    few = sum(tally.rows.values()) <= BROADCAST
    keys = new.select(*map(column, identity.keys))
    keys = F.broadcast(keys) if few else keys
    cells = Ranges.of(state.cell for state in known)
    if ingest.time is not None and looked > TWO_PHASES:
        cells = _by_key(ingest, identity, keys) if everywhere else _by_time(ingest, new, cells, few)
        if not cells:
            return None, looked
    rows = ingest.stored(cells)
    if gone:
        rows = rows.where(~F.col(FILE).isin(list(gone)))
    return hashed(copies.among(rows, keys, identity.keys)), looked


def _by_time(ingest: Ingest, new: DataFrame, cells: Ranges, few: bool) -> Ranges:
    """The instants, inside some cells, at which there are both new and stored rows."""
    assert ingest.time is not None
    times = new.select(column(ingest.time)).distinct()
    stored = ingest.stored(cells).select(column(ingest.time))
    equal = copies.among(stored, F.broadcast(times) if few else times, [ingest.time])
    at = equal.select(ingest.micros().alias("at")).distinct().collect()
    return Ranges.of(Interval(row["at"], row["at"] + 1) for row in at)


def _by_key(ingest: Ingest, identity: Identity, keys: DataFrame) -> Ranges:
    """The stretches, one for each cell, in which there are stored rows with one of the keys."""
    assert ingest.time is not None
    stored = ingest.work.tables.read(ingest.step.model)
    stored = stored.select(column(ingest.time), *map(column, identity.keys))
    found = copies.among(stored, keys, identity.keys)
    cell = cell_start(ingest.time_or_null(), ingest.granularity)
    at = ingest.micros()
    ends = found.groupBy(cell).agg(F.min(at).alias("first"), F.max(at).alias("last")).collect()
    return Ranges.of(Interval(row["first"], row["last"] + 1) for row in ends)


def _left(ingest: Ingest, new: DataFrame | None, ids: Sequence[int]) -> tuple[ReingestDiff, int]:
    """What differs in files that are gone or taken in again, and the rows looked through."""
    if not ids:
        return ReingestDiff(new), 0
    lost, cells, looked = _lost(ingest, ids)
    if new is None or not ingest.again:
        return ReingestDiff(new, None, lost, cells), looked
    return differing(ingest, new, lost), looked


def _lost(ingest: Ingest, gone: Sequence[int]) -> tuple[DataFrame, Ranges, int]:
    """The stored rows of files that are gone, the cells they are in, the rows looked through."""
    spots = ingest.work.ledger.file_cells(ingest.step.model, gone)
    cells = Ranges.of(spot.cell for spot in spots if spot.rows > spot.dropped)
    looked = sum(state.rows for state in ingest.work.cells(ingest.step.model, cells))
    rows = ingest.stored(cells).where(F.col(FILE).isin(list(gone)))
    return hashed(rows).localCheckpoint(eager=False), cells, looked


def _returning(
    ingest: Ingest, identity: Identity, lost: DataFrame, cells: Ranges
) -> tuple[DataFrame | None, int]:
    """
    Copies of events that leave, in files that once lost with them, read again.

    A copy at another time may have lost in any cell, so then every file with a copy that lost
    is read.
    """
    ledger, model = ingest.work.ledger, ingest.step.model
    out = {file.id for file in ingest.news.gone} | {*ingest.again}
    wanted = {
        spot.file_id
        for spot in ledger.file_cells(model)
        if spot.dropped > 0
        and spot.file_id not in out
        and (identity.time is not None or cells.overlaps(spot.cell))
    }
    known: list[FileKnown] = [file for file in ledger.files(model) if file.id in wanted]
    if not known:
        return None, 0
    files: dict[int, source_rows.File] = {file.id: file for file in known}
    bounds = {file.id: Bounds(file.horizon) for file in known}
    found, _ = ingest.read(files, bounds)
    ingest.unchanged(known)
    found = found.where(F.col(STATE) == int(State.ADMITTED))
    back = copies.among(found, lost, identity.keys)
    return back, sum(file.rows for file in known)
