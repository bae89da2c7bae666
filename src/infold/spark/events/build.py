"""
Building an events table: files in, files out, one row for each event.

New files are read once. What happens to each of their rows depends on its values. With a unique
key the copies of one event compete by content; only stored rows of the touched cells, and of them
only those with an event's own identity, take part. When a file is deleted, its rows leave, and a
copy that had lost to one of them returns: the ledger knows which files have such copies, in which
cells. Without a key rows come and go with their files.

A large first load streams from the files to the table: one scan to count and to choose the layout,
one to load. Every other step keeps its few rows in memory, reads them twice, and commits once.

The frames are those of ``arrivals`` (rows on their way in) and ``fold`` (rows as stored).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import reduce

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from infold.core.files import IngestedFile
from infold.core.interval import DAY, Granularity, Interval, Ranges
from infold.core.model import Deduplicate, Source
from infold.core.own_columns import FILE, VERSION
from infold.core.plan import Step
from infold.core.project import Node
from infold.core.record import Outcome
from infold.spark import key_filter
from infold.spark.content import (
    cell_start,
    cell_stats,
    column,
    content,
    micros,
    time_type,
    type_of,
    user_columns,
)
from infold.spark.events import copies
from infold.spark.events.arrivals import (
    STATE,
    AdmittedTimes,
    RowCount,
    RowState,
    count_rows,
    judged_arrivals,
)
from infold.spark.events.copies import DIFFERS, ELSEWHERE, Identity, rank_copies, row_order
from infold.spark.events.erasures import Erasures, keep_requests
from infold.spark.events.ingest import (
    ROWS,
    Arriving,
    Ingest,
    IngestCounts,
    lookups,
    model_columns,
    source_in_force,
)
from infold.spark.events.table_change import TableChange, apply_without_key, deduplicate
from infold.spark.observed import Aggregates, KnownAggregates, observed
from infold.spark.reading import failures, source_rows
from infold.spark.reading.paths import worth_keeping
from infold.spark.step_commit import Computed, RowChanges, WholeTable, commit_step
from infold.spark.step_context import RemovedRows, Work
from infold.spark.tables.port import Layout
from infold.spark.time_range.recompute import as_stored, clamped, steps_in_force

IN_MEMORY = 16 * 1024 * 1024
"""Up to about so many bytes of files, a first load keeps its rows in memory too."""

ROWS_OF_A_FILE = 500_000
"""How many rows of an append each writing task gets."""

MOST_KEPT = 2_000_000
"""Up to so many rows of a step stay in memory, or on disk, until the run ends."""


def carry_out(work: Work, step: Step) -> Outcome:
    """Take files in and out."""
    ingest = Ingest.of(work, step)
    if ingest.erases:
        keep_requests(work, step)
    with failures.naming_files(work.project, ingest.source):
        if step.replaces_all or not work.tables.exists(step.model):
            return _build_table(ingest)
        return _fold_files(ingest)


def definition(
    work: Work,
    node: Node,
    step: Step,
    ingested: Sequence[IngestedFile],
    sample: Ranges | None = None,
) -> DataFrame:
    """
    The model's rows from scratch: its query over all files that were ``ingested``, one copy of each
    event.

    Of a ``sample``, at least those in its cells: files without rows there are not read.

    In each cell by the definition in force there. ``step`` names the versions of the lookups. The
    files are read by an action, later: whether they still were what was ingested is to be asked
    after it (:func:`refuse_changed`).

    Raises ``errors.source_changed`` where they no longer are.
    """
    source = work.project.sources[node.source or node.name].without_columns(node.unread_columns)
    files = _files_of_definition(work, ingested)
    if not work.earlier:
        if sample is not None and node.model.deduplicate is not Deduplicate.EVERYWHERE:
            source_rows.refuse_changed(work.project, source, files)
            files = _files_of_cells(work, node, files, sample) or files[:1]
        return _defined_rows(work, node, step, source, files)
    stored = user_columns(work.tables.read(step.model)).schema
    parts = []
    for in_force, part in steps_in_force(work, step):
        rows = _defined_rows(
            in_force.work, in_force.node, part, source_in_force(source, in_force), files
        )
        parts.append(as_stored(stored, step.model, clamped(in_force.node, part.cells, rows)))
    return reduce(DataFrame.unionByName, parts)


def refuse_changed(work: Work, node: Node, ingested: Sequence[IngestedFile]) -> None:
    """Raise ``errors.source_changed`` unless the files of a definition are what was ingested."""
    source = work.project.sources[node.source or node.name]
    source_rows.refuse_changed(work.project, source, _files_of_definition(work, ingested))


def _files_of_definition(work: Work, ingested: Sequence[IngestedFile]) -> Sequence[IngestedFile]:
    """The files whose rows can be a definition's: an earlier one may have had rows of any."""
    return ingested if work.earlier else [file for file in ingested if file.rows]


def _files_of_cells(
    work: Work, node: Node, files: Sequence[IngestedFile], cells: Ranges
) -> Sequence[IngestedFile]:
    """
    The files that have rows in ``cells``, copies that are left out included, by the ledger.

    And those of which it counts other rows by cell than in all: which cells they have is not known.
    """
    counted: dict[int, int] = defaultdict(int)
    inside: set[int] = set()
    for part in work.ledger.file_cells(node.name):
        counted[part.file_id] += part.rows
        if cells.overlaps(part.cell):
            inside.add(part.file_id)
    return [file for file in files if file.id in inside or counted[file.id] != file.rows]


def _defined_rows(
    work: Work, node: Node, step: Step, source: Source, files: Sequence[IngestedFile]
) -> DataFrame:
    """The rows of one definition from scratch, from these files."""
    source_rows.refuse_changed(work.project, source, files)
    rows = source_rows.read(work.spark, work.project, source, [(file.id, file) for file in files])
    bounds = {file.id: AdmittedTimes(file.horizon) for file in files}
    beside, erasures = lookups(work, node, step), Erasures.of(work, source, step)
    judged = judged_arrivals(work, node, source, rows, bounds, beside, erasures)
    admitted = judged.where(F.col(STATE) == int(RowState.ADMITTED))
    if node.model.unique_key:
        identity = copies.Identity.of(node)
        admitted = identity.prepared(admitted, model_columns(admitted))
        ranked = copies.rank_copies(admitted, identity)
        admitted = ranked.where(F.col(copies.PLACE) == 1)
    return admitted.select(*map(column, model_columns(judged)))


def _build_table(ingest: Ingest) -> Outcome:
    """Replace the table by the rows of all files."""
    work, step = ingest.work, ingest.step
    bounds = {id_: AdmittedTimes(ingest.file_diff.as_of) for id_ in ingest.new}
    arriving, observed, without_texts = ingest.read(ingest.new, bounds, texts=False)
    sizes = [file.size for file in ingest.new.values()]
    if sum(sizes) <= IN_MEMORY or worth_keeping(sizes):
        arriving = _in_memory(arriving, observed)
    tally = IngestCounts()
    row_counts = count_rows(arriving, ingest.node, with_content=False)
    tally.arrive(row_counts, ingest.new, _rows_read(observed, row_counts, ingest.new))
    ingest.refuse_losses(tally, observed if isinstance(observed, Mapping) else None)
    ingest.refuse_changed(ingest.new.values())
    before = work.ledger.files(step.model)
    arrivals = [(ingest, Arriving(arriving, observed, without_texts))]
    commits = ingest.write_set_aside(arrivals, ingest.new, bounds, tally)
    admitted = arriving.where(F.col(STATE) == int(RowState.ADMITTED))
    plan = load_plan(ingest.node, admitted, row_counts)
    rows, left_out = rows_to_load(ingest.node, admitted, plan)
    rows = rows.withColumn(VERSION, F.lit(step.version).cast("bigint"))
    cells = work.cells(step.model)

    def count(snapshot: int) -> Computed:
        ingest.refuse_changed(ingest.new.values())  # the run fails, and the next one builds again
        for state in cells:
            tally.remove(state.cell, state.rows, state.content)
            tally.removed += state.rows
        _count_stored(ingest, snapshot, tally)
        if left_out is not None and any(tally.dropped.values()):
            counts = left_out.get
            tally.copies, tally.conflicting = counts["copies"], counts["conflicting"]
            tally.elsewhere = counts["elsewhere"]
        removed = {file.id for file in before} - set(ingest.new)
        read = tally.arrived
        return ingest.computed(tally, removed, whole=True, commits=commits, read=read, scanned=read)

    outcome = commit_step(work, step, WholeTable(rows, plan.layout), count=count)
    return ingest.tidy_set_aside(outcome, tally)


def _count_stored(ingest: Ingest, snapshot: int, tally: IngestCounts) -> None:
    """Count what a load stored, by cell and file; other admitted rows are copies."""
    stored = ingest.work.tables.read(ingest.step.model, snapshot, ranges=Ranges.ever())
    stats = cell_stats(stored, ingest.time_or_null(), ingest.granularity, by=[F.col(FILE)])
    stored_rows: dict[tuple[int, Interval], int] = {}
    # At most a row for each file of the step and cell.
    for start, file, rows, hi, lo, last in stats.collect():
        cell = ingest.cell(start)
        tally.add(cell, rows, content(hi, lo), last)
        tally.written += rows
        stored_rows[file, cell] = rows
    for file_and_cell, rows in tally.rows.items():
        if rows > stored_rows.get(file_and_cell, 0):
            tally.dropped[file_and_cell] += rows - stored_rows.get(file_and_cell, 0)


def _fold_files(ingest: Ingest) -> Outcome:
    """Ingest new and due rows, remove rows of gone files and persons; one commit, or none."""
    ingest = ingest.with_erased_files().with_expired_files()
    file_diff, step = ingest.file_diff, ingest.step
    to_read: dict[int, source_rows.File] = {**ingest.new, **ingest.due, **ingest.reingested}
    bounds = {id_: AdmittedTimes(file_diff.as_of) for id_ in (*ingest.new, *ingest.reingested)}
    bounds |= {
        id_: AdmittedTimes(file_diff.as_of, low=file.horizon) for id_, file in ingest.due.items()
    }
    tally, counts, reread = IngestCounts(), list[RowCount](), 0
    parts = ingest.parts()
    arrivals: list[Arriving] = []
    rows_by_part: list[DataFrame] = []
    if to_read:
        arrivals = [part.read(to_read, bounds, texts=False) for part in parts]
        observed = arrivals[0].observed
        arrivals = [part._replace(rows=_in_memory(part.rows, part.observed)) for part in arrivals]
        rows_by_part = [part.rows for part in arrivals]
        counts = [
            count
            for part, rows in zip(parts, rows_by_part, strict=True)
            for count in count_rows(rows, part.node, with_content=not part.node.model.unique_key)
        ]
        tally.arrive(
            counts, ingest.new, _rows_read(observed, counts, ingest.new), ingest.reingested
        )
        ingest.refuse_losses(tally, observed if isinstance(observed, Mapping) else None)
        again = sum(count.rows for count in counts if count.file in ingest.reingested)
        reread = _rows_read(observed, counts, ingest.reingested) or again if again else 0
        ingest.refuse_changed(to_read.values())
    commits = ingest.write_set_aside([*zip(parts, arrivals, strict=False)], to_read, bounds, tally)
    if ingest.node.model.unique_key:
        change = _deduplicated(parts, rows_by_part, tally)
    else:
        arriving = rows_by_part[0] if rows_by_part else None
        change = apply_without_key(ingest, arriving, counts, tally)
    computed = ingest.computed(
        tally,
        {file.id for file in file_diff.removed},
        commits=commits,
        read=tally.arrived + reread + change.read,
        scanned=tally.arrived + reread + change.scanned + step.scanned,
    )
    # A request that concerns no row is committed all the same: an older ledger is noticed then.
    rows = _row_changes(ingest, change, tally) if change or ingest.erases else None
    outcome = commit_step(ingest.work, step, rows, computed)
    if tally.arrived + change.read <= MOST_KEPT:
        _keep_removed(ingest, outcome, change)
    return ingest.tidy_set_aside(outcome, tally)


def _keep_removed(ingest: Ingest, outcome: Outcome, change: TableChange) -> None:
    """Let later steps of the run have the removed rows, which no snapshot has by itself."""
    if change.removed is None or outcome.snapshot is None:
        return
    table = ingest.work.tables.read(outcome.model).schema
    as_in_table = (column(one.name).cast(one.dataType).alias(one.name) for one in table)
    rows = change.removed.select(*as_in_table)
    ingest.work.removed[outcome.model] = RemovedRows(outcome.snapshot, rows)


def _deduplicated(
    parts: Sequence[Ingest], arrivals: Sequence[DataFrame], tally: IngestCounts
) -> TableChange:
    """What copies of events change, by each definition in its own cells."""
    newest, table = parts[0], parts[0].work.tables.read(parts[0].step.model)
    if len(parts) > 1 and arrivals:  # those of earlier ones are compared with the table as well
        columns_of_arrivals = arrivals[0].select(*map(column, model_columns(arrivals[0])))
        as_stored(user_columns(table).schema, newest.step.model, columns_of_arrivals)
    changes = [
        deduplicate(part, arrivals[at] if arrivals else None, tally)
        for at, part in enumerate(parts)
    ]
    return TableChange.together(changes, table, row_order(newest.node))


def _in_memory(arriving: DataFrame, observed: Aggregates | Mapping[int, int] | None) -> DataFrame:
    """
    The rows, kept in memory, so that the files are read once.

    A frame that is merely persisted would be read again once a table in its plan is written. The
    first action fills it, unless reading itself is observed.
    """
    is_known = isinstance(observed, Mapping | KnownAggregates | None)
    return arriving.localCheckpoint(eager=not is_known)


def _rows_read(
    observed: Aggregates | Mapping[int, int] | None, counts: list[RowCount], files: Iterable[int]
) -> int | None:
    """How many rows some files have, if they were counted; only new files are observed."""
    if isinstance(observed, Mapping):
        return sum(observed.get(id_, 0) for id_ in files)
    # Spark forgets what it observed in a plan that turned out to be empty.
    is_observed = isinstance(observed, KnownAggregates) or counts
    return int(observed.get[ROWS]) if observed is not None and is_observed else None


def _row_changes(ingest: Ingest, change: TableChange, tally: IngestCounts) -> RowChanges:
    """A change as it is written: an append if no row leaves, else one merge."""
    table = ingest.work.tables.read(ingest.step.model)
    insert = change.added_rows(table)
    if change.delete is None:
        files = max(1, -(-tally.written // ROWS_OF_A_FILE))
        insert = insert.coalesce(files)
        if ingest.time is not None:
            insert = insert.sortWithinPartitions(column(ingest.time))
        return RowChanges(insert, None, change.on)
    delete = change.delete.select(*map(column, change.on))
    condition, shuffled, time = ingest.cells_predicate(table, change.cells), None, ingest.time
    matched = sum(state.rows for state in ingest.work.cells(ingest.step.model, change.cells))
    if time is not None and time in change.on and key_filter.pays(tally.removed, matched):
        at = column(time).cast(type_of(table, time))
        # At most ``key_filter.MOST_KEYS`` numbers.
        hashes = delete.select(F.xxhash64(at).alias("at")).toArrow()["at"].to_pylist()
        condition += f" AND {key_filter.may_have(hashes, time)}"
        shuffled = key_filter.rows_passed(len(hashes), matched) + tally.written
    return RowChanges(insert, delete, change.on, condition, shuffled, time, change.cells)


# Late rows touch many old cells with few rows each, so partitions are months (years for little data
# over a long time), and rows are sorted by event time in them. A first load is shuffled by a period
# of event time that is as coarse as the data allows. Copies of an event then meet in one task, the
# window that compares them needs no second shuffle, and its sort is the order of the written files.
#
# The frames here are of judged arrivals (`arrivals`) on the way in, and of the stored columns on
# the way out: the model's and `_source_file`, without `_version`.

ROWS_FOR_PARTITIONS = 500_000
ROWS_OF_A_TASK = 1_000_000
_MONTH_LENGTH = 30 * DAY
_PERIOD_LENGTH = 8 * DAY
_ROWS_OF_A_MONTH = 20_000
DICTIONARY = 128 * 1024
"""Dictionaries up to this size let a column's values be read without its rows."""
_PERIOD_COLUMN = "_period"


@dataclass(frozen=True, slots=True)
class LoadPlan:
    """
    A table's layout, and how its first load is shuffled: over how many tasks, by which value.

    ``period`` is the start of a period of event time, in microseconds; None for a lookup.
    """

    layout: Layout
    tasks: int
    period: Column | None


def load_plan(node: Node, rows: DataFrame, counted: Iterable[RowCount]) -> LoadPlan:
    """How to lay out and load a table of about the rows that were counted."""
    admitted = [count for count in counted if count.state is RowState.ADMITTED]
    total = sum(count.rows for count in admitted)
    tasks = -(-total // ROWS_OF_A_TASK) or 1
    layout = Layout(dictionary=DICTIONARY)
    if node.model.timeseries is None or not admitted:
        return LoadPlan(layout, tasks, None)
    name = node.model.timeseries.event_time_column
    first_time = min(count.first or 0 for count in admitted)
    months = (max(count.last or 0 for count in admitted) - first_time) // _MONTH_LENGTH + 1
    partition = Granularity.MONTH if total / months >= _ROWS_OF_A_MONTH else Granularity.YEAR
    if total >= ROWS_FOR_PARTITIONS:
        layout = replace(layout, column=name, partition=partition, type=time_type(rows, name))
    if months >= 2 * tasks:
        return LoadPlan(layout, tasks, cell_start(column(name), Granularity.MONTH))
    event_time = micros(column(name))
    return LoadPlan(layout, tasks, event_time - F.pmod(event_time, F.lit(_PERIOD_LENGTH)))


def rows_to_load(node: Node, rows: DataFrame, how: LoadPlan) -> tuple[DataFrame, Aggregates | None]:
    """
    The rows to store, one copy of each event, in the order to write them.

    The observation counts the ``copies`` left out, how many of them are ``conflicting``, and how
    many have another event time than the kept one (``elsewhere``).
    """
    columns = model_columns(rows)
    names = [*columns, FILE]
    order = row_order(node)
    if not node.model.unique_key:
        if how.period is None:
            return rows.select(*map(column, names)), None
        shuffled = rows.repartition(how.tasks, how.period)
        return shuffled.select(*map(column, names)).sortWithinPartitions(*map(column, order)), None
    identity = Identity.of(node)
    period: Column | None = None
    rows = identity.prepared(rows, columns)
    if how.period is None or identity.time is not None:
        shuffled = rows.repartition(how.tasks, *map(column, identity.keys))
    else:
        shuffled = rows.withColumn(_PERIOD_COLUMN, how.period)
        period = F.col(_PERIOD_COLUMN)
        shuffled = shuffled.repartition(how.tasks, period)
    is_copy = F.col("_copy") > 1
    ranked, copy_counts = observed(
        rank_copies(shuffled, identity, period),
        F.count_if(is_copy).alias("copies"),
        F.count_if(is_copy & F.col(DIFFERS)).alias("conflicting"),
        F.count_if(is_copy & F.col(ELSEWHERE)).alias("elsewhere"),
    )
    first_copies = ranked.where(F.col("_copy") == 1).select(*map(column, names))
    if identity.time is not None and how.period is not None:
        # Copies met by key; files are written by time.
        shuffled = first_copies.repartition(how.tasks, how.period)
        first_copies = shuffled.sortWithinPartitions(*map(column, order))
    return first_copies, copy_counts
