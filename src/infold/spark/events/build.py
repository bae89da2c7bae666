"""
The fold of events: files in, files out, one row for each event.

Files that came are read once; what becomes of each row follows from what it says. With a unique
key the copies of one event compete by content; only stored rows of the touched cells, and of them
only those with an event's own identity, take part. When a file goes, its rows leave, and a copy
that had lost to one of them comes back: the ledger knows which files hold such copies, in which
cells. Without a key rows come and go with their files.

A large first load streams from the files to the table: one scan to count and to choose the layout,
one to load. Everything else keeps its few rows in memory, looks at them twice, and commits once.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace

from pyspark.sql import DataFrame, Observation
from pyspark.sql import functions as F

from infold.core.interval import Interval
from infold.core.plan import Action, Step
from infold.core.ports import Prepared
from infold.core.project import Node
from infold.core.record import Outcome
from infold.spark.content import cell_stats, column
from infold.spark.events import copies
from infold.spark.events.arrivals import FILE, STATE, Bounds, Count, State, arrivals, counts
from infold.spark.events.copies import VERSION
from infold.spark.events.fold import Change, apply_without_key, deduplicate
from infold.spark.events.ingest import ROWS, Ingest, lookups, model_columns, summed
from infold.spark.events.ingest_counts import Tally
from infold.spark.events.layout import loaded, spread
from infold.spark.reading import failures, source_rows
from infold.spark.step_context import Work

IN_MEMORY = 16 * 1024 * 1024
"""Bytes of files, about, up to which a first load keeps its rows in memory too."""

ROWS_OF_A_FILE = 500_000
"""Rows of an append for each task that writes."""


def carry_out(work: Work, step: Step, prepared: Prepared) -> Outcome:
    """Take files in and out; ``prepared`` unless everything is replaced."""
    ingest = Ingest.of(work, step)
    with failures.named(work.project, ingest.source):
        if step.action is Action.BUILD or not work.tables.exists(step.model):
            return _build(ingest)
        return _fold(ingest, prepared)


def definition(work: Work, node: Node, step: Step) -> DataFrame:
    """
    The model's rows from all files it has taken in, as its definition says, from scratch.

    ``step`` names the versions of the lookups that it joins.
    """
    source = work.project.sources[node.source or node.name].without(node.unread)
    known = [file for file in work.ledger.files(node.name) if file.rows]
    source_rows.refuse_changed(work.project, source, known)
    rows = source_rows.read(work.spark, work.project, source, [(file.id, file) for file in known])
    bounds = {file.id: Bounds(file.horizon) for file in known}
    found = arrivals(work, node, source, rows, bounds, lookups(work, node, step))
    admitted = found.where(F.col(STATE) == int(State.ADMITTED))
    if node.model.unique_key:
        identity = copies.Identity.of(node)
        admitted = identity.prepared(admitted, model_columns(admitted))
        ranked = copies.best(admitted, identity)
        admitted = ranked.where(F.col("_copy") == 1)
    return admitted.select(*map(column, model_columns(found)))


def _build(ingest: Ingest) -> Outcome:
    """Replace the table by the rows of all files."""
    work, step = ingest.work, ingest.step
    bounds = {id_: Bounds(ingest.news.as_of) for id_ in ingest.new}
    arriving, observed = ingest.read(ingest.new, bounds)
    if sum(file.size for file in ingest.new.values()) <= IN_MEMORY:
        arriving = _kept(arriving, observed)
    tally = Tally()
    found = counts(arriving, ingest.node)
    tally.arrive(found, ingest.new, _seen(observed, found, ingest.new))
    ingest.refuse_losses(tally, observed if isinstance(observed, Mapping) else None)
    ingest.unchanged(ingest.new.values())
    before = work.ledger.files(step.model)
    commits = ingest.aside(arriving, tally)
    admitted = arriving.where(F.col(STATE) == int(State.ADMITTED))
    how = spread(ingest.node, admitted, found)
    rows, left_out = loaded(ingest.node, admitted, how)
    rows = rows.withColumn(VERSION, F.lit(step.version).cast("bigint"))
    cells = work.cells(step.model)
    snapshot = work.tables.create(step.model, rows, how.layout, work.stamp(step))
    ingest.unchanged(ingest.new.values())  # else the run fails, and the next one builds it again
    for state in cells:
        tally.remove(state.cell, state.rows, state.content)
        tally.removed += state.rows
    _stored(ingest, snapshot, tally)
    if left_out is not None and any(tally.dropped.values()):
        seen = left_out.get
        tally.copies, tally.conflicting = seen["copies"], seen["conflicting"]
        tally.elsewhere = seen["elsewhere"]
    gone = {file.id for file in before} - set(ingest.new)
    read = tally.arrived
    outcome = ingest.outcome(tally, gone, whole=True, commits=commits + 1, read=read, scanned=read)
    return ingest.tidied(replace(outcome, snapshot=snapshot), tally)


def _stored(ingest: Ingest, snapshot: int, tally: Tally) -> None:
    """Count what a load stored, by cell and file; the rest of what was admitted are copies."""
    stored = ingest.work.tables.read(ingest.step.model, snapshot)
    stats = cell_stats(stored, ingest.time_or_null(), ingest.granularity, by=[F.col(FILE)])
    kept: dict[tuple[int, Interval], int] = {}
    for row in stats.collect():
        cell = ingest.cell(row["cell"])
        tally.add(cell, row[ROWS], summed(row), row["last"])
        tally.written += row[ROWS]
        kept[row[FILE], cell] = row[ROWS]
    for spot, rows in tally.rows.items():
        if rows > kept.get(spot, 0):
            tally.dropped[spot] += rows - kept.get(spot, 0)


def _fold(ingest: Ingest, prepared: Prepared) -> Outcome:
    """Take in what is new and due, take out what is gone; one commit, or none."""
    news, step = ingest.news, ingest.step
    taken: dict[int, source_rows.File] = {**ingest.new, **ingest.due, **ingest.again}
    bounds = {id_: Bounds(news.as_of) for id_ in (*ingest.new, *ingest.again)}
    bounds |= {id_: Bounds(news.as_of, low=file.horizon) for id_, file in ingest.due.items()}
    tally, arriving, found, reread = Tally(), None, [], 0
    if taken:
        arriving, observed = ingest.read(taken, bounds)
        arriving = _kept(arriving, observed)
        found = counts(arriving, ingest.node)
        tally.arrive(found, ingest.new, _seen(observed, found, ingest.new), ingest.again)
        ingest.refuse_losses(tally, observed if isinstance(observed, Mapping) else None)
        reread = _seen(observed, found, ingest.again) or 0 if ingest.again else 0
        ingest.unchanged(taken.values())
    commits = ingest.aside(arriving, tally)
    if ingest.node.model.unique_key:
        change = deduplicate(ingest, arriving, tally)
    else:
        change = apply_without_key(ingest, arriving, found, tally)
    outcome = ingest.outcome(
        tally,
        {file.id for file in news.gone},
        commits=commits + bool(change),
        read=tally.arrived + reread + change.read,
        scanned=tally.arrived + reread + change.scanned + step.scanned,
    )
    if not change:
        outcome = replace(outcome, committed=False)
    prepared(outcome)
    if change:
        outcome = replace(outcome, snapshot=_commit(ingest, change, tally))
    return ingest.tidied(outcome, tally)


def _kept(arriving: DataFrame, observed: Observation | Mapping[int, int] | None) -> DataFrame:
    """
    The rows held in memory, read once.

    A frame that is merely persisted would be read again once a table in its plan is written. It
    is filled by the first action on it, unless somebody observes the reading itself.
    """
    return arriving.localCheckpoint(eager=isinstance(observed, Observation))


def _seen(
    observed: Observation | Mapping[int, int] | None, found: list[Count], files: Iterable[int]
) -> int | None:
    """How many rows some files hold, if that was counted; observed were new files alone."""
    if isinstance(observed, Mapping):
        return sum(observed.get(id_, 0) for id_ in files)
    # Spark forgets what it observed in a plan that turned out to be empty.
    return int(observed.get[ROWS]) if observed is not None and found else None


def _commit(ingest: Ingest, change: Change, tally: Tally) -> int:
    """Write a change: an append where nothing leaves, else one merge."""
    work, step = ingest.work, ingest.step
    table = work.tables.read(step.model)
    names = table.columns
    added = table.limit(0) if change.insert is None else change.insert
    insert = added.select(*map(column, names))
    if change.delete is None:
        files = -(-tally.written // ROWS_OF_A_FILE)
        ordered = insert.coalesce(files)
        if ingest.time is not None:
            ordered = ordered.sortWithinPartitions(column(ingest.time))
        return work.tables.append(step.model, ordered, work.stamp(step))
    return work.tables.merge(
        step.model,
        insert=insert,
        delete=change.delete.select(*map(column, change.on)),
        on=change.on,
        within=ingest.within(table, change.cells),
        stamp=work.stamp(step),
    )
