"""One ingest: a step on an events model, with what all parts of it need, and its numbers."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, reduce
from typing import Any, NamedTuple

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from infold.analysis.definitions.column_sources import columns_passed
from infold.core.files import FileCell, FilesOutcome, IngestedFile, ListedFile
from infold.core.interval import MIN, Granularity, Interval, Ranges, now
from infold.core.model import Deduplicate, Source
from infold.core.own_columns import FILE, VERSION
from infold.core.plan import FileDiff, Step
from infold.core.project import Node
from infold.core.record import Outcome, Receipt
from infold.core.trace import CellChange, CellState, signed
from infold.planning.destructive import refuse_lost_rows
from infold.spark.content import (
    cell_of,
    column,
    content,
    content_sums,
    is_technical,
    micros,
    row_hash,
    time_predicate,
    user_columns,
)
from infold.spark.events.arrivals import (
    AT,
    HASH,
    OWN,
    STATE,
    AdmittedTimes,
    RowCount,
    RowState,
    has_filter,
    judged_arrivals,
)
from infold.spark.events.erasures import ERASED, Erasures
from infold.spark.events.set_aside import tidy_rows_set_aside, write_rows_set_aside
from infold.spark.observed import Aggregates, KnownAggregates, observed
from infold.spark.reading import source_rows
from infold.spark.step_commit import Computed
from infold.spark.step_context import DefinitionInForce, Work

ROWS = "rows"


class Arriving(NamedTuple):
    """Judged arrivals of files, how many rows these have, and whose rows have no texts."""

    rows: DataFrame
    observed: Aggregates | Mapping[int, int] | None
    without_texts: frozenset[int]


@dataclass(frozen=True)
class Ingest:
    """A step with its model, source and files; ``new`` are the files not ingested before, by id."""

    work: Work
    step: Step
    node: Node
    source: Source
    file_diff: FileDiff
    new: Mapping[int, source_rows.File]
    cells_in_force: Ranges | None = None
    """The cells that its definition is in force in; None for all."""
    is_newest: bool = True
    """Whether its definition is the newest one, which rows without a time follow too."""

    @staticmethod
    def of(work: Work, step: Step) -> Ingest:
        """The ingest of a step; new files get their ids here."""
        node = work.project[step.model]
        source = work.project.sources[node.source or node.name].without_columns(node.unread_columns)
        file_diff = step.files if step.files is not None else FileDiff(source.name)
        ids = work.ledger.register_files(source.name, file_diff.new) if file_diff.new else {}
        return Ingest(
            work, step, node, source, file_diff, {ids[file.path]: file for file in file_diff.new}
        )

    def parts(self) -> tuple[Ingest, ...]:
        """The ingest by each definition in force, for the cells of each; by the newest first."""
        if not self.work.earlier:
            return (self,)
        return tuple(
            replace(
                self,
                work=in_force.work,
                node=in_force.node,
                source=source_in_force(self.source, in_force),
                cells_in_force=in_force.cells,
                is_newest=in_force.is_newest,
            )
            for in_force in self.work.definitions_of(self.step.model)
        )

    @cached_property
    def reingested(self) -> Mapping[int, IngestedFile]:
        """The files ingested before that are ingested again, by id: a lookup changed."""
        return {file.id: file for file in self.file_diff.reingest}

    @cached_property
    def due(self) -> Mapping[int, IngestedFile]:
        """The files ingested before that have rows whose time has come, by id."""
        others = self.new.keys() | self.reingested.keys()
        return {file.id: file for file in self.file_diff.come_due if file.id not in others}

    @cached_property
    def erasures(self) -> Erasures | None:
        """Who is erased from the source; None where nobody is."""
        return Erasures.of(self.work, self.source, self.step)

    @property
    def erases(self) -> bool:
        """Whether persons were asked to be erased since the table was built."""
        before, after = self.step.previous_trace, self.step.trace
        applied = before.applied_entry if before is not None else 0
        return self.erasures is not None and after is not None and after.applied_entry != applied

    @cached_property
    def names_of_erased(self) -> Mapping[str, str] | None:
        """
        What the table calls the columns of the source by which rows are erased, with the time.

        None where it does not have all of them as they are, so that only files tell whose rows are
        whose. Nor of rows without a key, where these would not be found by values alone: as files
        leave in the same step, or one of several columns may be NULL.
        """
        if self.erasures is None or self.work.earlier:
            return None
        if not self.node.model.unique_key and (
            len(self.erasures.columns) > 1
            or any(file.rows for file in self.file_diff.removed)
            or any(f.waiting or f.set_aside for f in self.work.ledger.files(self.step.model))
        ):
            return None
        passed = columns_passed(self.work.project, self.node, self.source)
        needed = [entry.column for entry in self.erasures.columns]
        needed += [self.source.event_time_column] if self.source.event_time_column else []
        if any(name.lower() not in passed for name in needed):
            return None
        return {name: passed[name.lower()] for name in needed}

    def with_erased_files(self) -> Ingest:
        """
        The ingest that takes files again of which not only stored rows are erased.

        Rows that wait, or are set aside, and those of a table without the columns of erasures.
        """
        if not self.erases or self.erasures is None:
            return self
        gone = {file.id for file in self.file_diff.removed} | {*self.reingested}
        files = [
            file
            for file in self.work.ledger.files(self.step.model)
            if file.id not in gone
            and (file.waiting or file.set_aside or self.names_of_erased is None)
            and source_rows.unchanged(self.work.project, self.source, file)
        ]
        if not files:
            return self
        known = [(file.id, file) for file in files]
        rows = source_rows.read(self.work.spark, self.work.project, self.source, known)
        erased = self.erasures.marked(rows).where(F.col(ERASED)).select(FILE).distinct()
        # At most a row for each file of the source.
        ids = {row[FILE] for row in erased.collect()}
        again = (*self.file_diff.reingest, *(file for file in files if file.id in ids))
        return replace(self, file_diff=replace(self.file_diff, reingest=again))

    def with_expired_files(self) -> Ingest:
        """The ingest that takes files again with rows that are too old: their copies may be not."""
        before, after = self.step.previous_trace, self.step.trace
        everywhere = self.node.model.deduplicate is Deduplicate.EVERYWHERE
        if not everywhere or before is None or after is None or before.retention == after.retention:
            return self
        old = Ranges((Interval(MIN, after.retention.start),))
        spots = self.work.ledger.file_cells(self.step.model)
        ids = {spot.file_id for spot in spots if spot.rows and old.overlaps(spot.cell)}
        ids -= {file.id for file in self.file_diff.removed} | {*self.reingested}
        files = [file for file in self.work.ledger.files(self.step.model) if file.id in ids]
        again = (*self.file_diff.reingest, *files)
        return replace(self, file_diff=replace(self.file_diff, reingest=again))

    @property
    def time(self) -> str | None:
        """The event time column; None for a lookup."""
        return self.node.model.timeseries.event_time_column if self.node.model.timeseries else None

    @property
    def granularity(self) -> Granularity | None:
        """The length of the table's cells."""
        return self.node.model.granularity

    def time_or_null(self) -> Column:
        """The event time, NULL for a lookup."""
        return F.lit(None).cast("timestamp") if self.time is None else column(self.time)

    def micros(self) -> Column:
        """The event time in microseconds, NULL for a lookup."""
        return micros(self.time_or_null())

    def read(
        self,
        files: Mapping[int, source_rows.File],
        bounds: Mapping[int, AdmittedTimes],
        *,
        texts: bool = True,
    ) -> Arriving:
        """
        The judged arrivals of some files (``arrivals``), and how many rows new files have.

        Without ``texts`` rows that are set aside may come without theirs.

        The number (``rows``) is of interest when the model has a WHERE. Where the files do not say
        it themselves it is observed: it is known once an action has read the rows, and asking for
        it before waits for ever. Where lookups are joined, the rows of each file are kept, and are
        counted at once if need be: those with a problem do not go through the query.
        """
        work, files_by_id = self.work, list(files.items())
        rows, counts, without_texts = source_rows.read_counted(
            work.spark, work.project, self.source, files_by_id, texts=texts
        )
        if self.node.stored_inputs:
            rows = rows.localCheckpoint(eager=False)
            if counts is None:
                # At most a row for each file of the step.
                counts = {row[FILE]: row["count"] for row in rows.groupBy(FILE).count().collect()}
            beside = lookups(work, self.node, self.step)
            judged = judged_arrivals(
                work, self.node, self.source, rows, bounds, beside, self.erasures
            )
            return Arriving(self.own_rows(judged), counts, without_texts)
        row_count: Aggregates | None = None
        if self._counts_left_out and counts is not None:
            row_count = KnownAggregates({ROWS: sum(counts.get(id_, 0) for id_ in self.new)})
        elif self._counts_left_out and not rows.isLocal():
            # A list of many files is a call of the JVM for each.
            new = (
                F.lit(True) if files.keys() <= self.new.keys() else F.col(FILE).isin(list(self.new))
            )
            rows, row_count = observed(rows, F.count_if(new).alias(ROWS))
        judged = judged_arrivals(work, self.node, self.source, rows, bounds, erasures=self.erasures)
        return Arriving(self.own_rows(judged), row_count, without_texts)

    @property
    def _counts_left_out(self) -> bool:
        """Whether not all rows of a file are among its judged rows, and it is to count them."""
        nodes = (self.node, *(stretch.node for stretch in self.work.earlier))
        return self.is_newest and any(map(has_filter, nodes))

    def own_rows(self, judged: DataFrame) -> DataFrame:
        """The judged arrivals that its definition is in force for."""
        if self.cells_in_force is None:
            return judged
        tests = [
            (F.col(AT) >= F.lit(stretch.start)) & (F.col(AT) < F.lit(stretch.end))
            for stretch in self.cells_in_force
        ]
        inside = reduce(Column.__or__, tests, F.lit(False))
        return judged.where(F.col(AT).isNull() | inside if self.is_newest else inside)

    def own_cells(self, cells: Ranges) -> Ranges:
        """Those of some cells that its definition is in force in."""
        return cells if self.cells_in_force is None else cells & self.cells_in_force

    def stored(self, cells: Ranges) -> DataFrame:
        """The stored rows in some cells, with the columns that its definition gives them."""
        own = self.own_cells(cells)
        rows = self.work.tables.read(self.step.model, column=self.time, ranges=own)
        if not self.is_newest:
            rows = rows.select(*map(column, (*self.node.columns, FILE, VERSION)))
        return rows if self.time is None else rows.where(self.cells_predicate(rows, own))

    def cells_predicate(self, rows: DataFrame, cells: Ranges) -> str:
        """The predicate that a row is in some cells; a superset when there are many."""
        if self.time is None:
            return "true"
        return time_predicate(rows, self.time, cells)

    def with_texts(
        self,
        arriving: DataFrame,
        files: Mapping[int, source_rows.File],
        bounds: Mapping[int, AdmittedTimes],
    ) -> DataFrame:
        """
        The rows set aside, with their texts: ``files``, whose rows came without, are read again.

        Raises ``errors.source_changed`` unless the files are still what was listed.
        """
        aside = arriving.where(F.col(STATE) == int(RowState.SET_ASIDE))
        if not files:
            return aside
        read_again = self.read(files, {id_: bounds[id_] for id_ in files if id_ in bounds}).rows
        texts = read_again.where(F.col(STATE) == int(RowState.SET_ASIDE)).localCheckpoint()
        self.refuse_changed(files.values())
        return aside.where(~F.col(FILE).isin([*files])).unionAll(texts)

    def write_set_aside(
        self,
        arriving: Sequence[tuple[Ingest, Arriving]],
        files: Mapping[int, source_rows.File],
        bounds: Mapping[int, AdmittedTimes],
        tally: IngestCounts,
    ) -> int:
        """
        Store the rows set aside, before the step's own commit; the number of commits.

        ``arriving`` are the rows of ``files`` by each definition in force, read with ``bounds``.
        """
        affected = {id_ for id_, rows in tally.aside.items() if rows}
        if not arriving or not affected:
            return 0
        paths = {id_: file.path for id_, file in {**self.new, **self.reingested}.items()}
        aside = [
            part.with_texts(
                read.rows,
                {id_: files[id_] for id_ in read.without_texts & affected & paths.keys()},
                bounds,
            )
            for part, read in arriving
        ]
        return write_rows_set_aside(self.work, self.step, aside, paths)

    def tidy_set_aside(self, outcome: Outcome, tally: IngestCounts) -> Outcome:
        """After the step's commit: remove the rows set aside of files that are gone."""
        before = self.work.ledger.files_set_aside(self.step.model)
        removed_files = {
            file.id for file in (before if outcome.whole else self.file_diff.removed)
        } | {*self.reingested}
        if not (any(file.id in removed_files for file in before) or self._last_run_failed()):
            return outcome  # looking costs a Spark job
        keep = {file.id for file in before} - removed_files
        keep.update(file for file, rows in tally.aside.items() if rows)
        commits = tidy_rows_set_aside(self.work, self.step, keep)
        receipt = replace(outcome.receipt, commits=outcome.receipt.commits + commits)
        return replace(outcome, receipt=receipt)

    def _last_run_failed(self) -> bool:
        """Whether the model's last run did not end well, and may have left rows behind."""
        runs = self.work.ledger.runs(2, model=self.step.model)
        return any(run.state != "done" for run in runs if run.id != self.work.run)

    def refuse_losses(self, tally: IngestCounts, counts: Mapping[int, int] | None = None) -> None:
        """
        Raise ``mismatches.source_shrank`` where files were replaced by too few rows.

        ``counts`` are the rows of each file before a lookup is joined, which may leave fewer.
        """
        rows = tally.rows_by_file() if counts is None else counts
        counted = {file.path: rows.get(id_, 0) for id_, file in self.new.items()}
        refuse_lost_rows(self.source, replace(self.file_diff, row_counts=counted))

    def refuse_changed(self, files: Iterable[source_rows.File]) -> None:
        """Raise ``errors.source_changed`` unless the files are still what was listed."""
        source_rows.refuse_changed(self.work.project, self.source, files)

    def computed(
        self,
        tally: IngestCounts,
        removed: Collection[int],
        *,
        whole: bool = False,
        commits: int,
        read: int,
        scanned: int,
    ) -> Computed:
        """What it computed; ``commits`` is how many have stored rows that are set aside."""
        work, step = self.work, self.step
        known_files = {} if whole else {**self.due, **self.reingested}
        cells: Sequence[FileCell] = ()
        if self.due and not whole:
            cells = work.ledger.file_cells(step.model, list(self.due))
        touched = tally.changes(work.cells(step.model, Ranges.of(tally.touched)))
        changes = tuple(change for change in touched if whole or change.changes_rows)
        receipt = Receipt(
            arrived=tally.arrived,
            read=read,
            scanned=scanned,
            # Rows that get another file, or that come and go in a cell that stays as it is.
            written=tally.written - sum(change.added for change in changes),
            removed=tally.removed - sum(change.removed for change in changes),
            set_aside=sum(tally.aside.values()),
            before_start=tally.before,
            erased=tally.erased,
            waiting=sum(tally.waiting.values()),
            deduplicated=tally.copies,
            conflicting=tally.conflicting,
            elsewhere=tally.elsewhere,
            keys_scanned=tally.keys_scanned,
            files_new=len(self.new),
            files_removed=len(removed),
            folders_listed=self.file_diff.folders,
            folders_left_out=self.file_diff.folders_left_out,
            commits=commits,
            set_aside_by=tuple(sorted(tally.reasons.items())),
        )
        files = tally.files(
            self.source.name,
            {**self.new, **known_files},
            cells,
            removed,
            horizon=self.file_diff.as_of,
            received_at=now(),
        )
        left_out = self._copies_left_out(tally, whole=whole)
        return Computed(changes, receipt, len(touched) - len(changes), files, left_out=left_out)

    def _copies_left_out(self, tally: IngestCounts, *, whole: bool) -> int | None:
        """As ``Outcome.left_out``: how many copies may differ from those that are kept."""
        if not self.node.model.unique_key:
            return None
        differing = tally.conflicting + tally.elsewhere
        if whole:  # copies that were not observed may differ
            return differing + abs(sum(tally.dropped.values()) - tally.copies)
        known = self.work.ledger.left_out().get(self.step.model)
        if known is None:
            return None
        if self.step.files is not None and self.step.files.reingest:
            # Other files may have copies that nobody evaluated again.
            known += sum(file.dropped for file in self.work.ledger.files(self.step.model))
        return known + differing

    @property
    def copies_are_equal(self) -> bool:
        """Whether each copy that was left out is known to have the values of the stored row."""
        left_out = self.work.ledger.left_out().get(self.step.model)
        return left_out == 0 and not self.node.stored_inputs

    def cell(self, start: int) -> Interval:
        """The cell of the table's granularity that starts at ``start`` (µs)."""
        return cell_of(start, self.granularity)


def source_in_force(newest: Source, in_force: DefinitionInForce) -> Source:
    """The source as a definition reads it: with its columns, and else as it is now."""
    if in_force.is_newest:
        return newest
    own_source = in_force.work.project.sources[in_force.node.source or in_force.node.name]
    own_source = own_source.without_columns(in_force.node.unread_columns)
    names = {entry.name for entry in own_source.columns}
    declared = (*(entry.name for entry in newest.columns), *newest.unread_columns)
    others = tuple(name for name in declared if name not in names)
    return replace(newest, columns=own_source.columns, unread_columns=others)


def lookups(work: Work, node: Node, step: Step) -> Mapping[str, DataFrame]:
    """The stored tables that an events model joins, at the versions that a step reads."""
    return {
        entry.name: user_columns(work.frame(entry.name, step.inputs[entry.name][1]))
        for entry in node.stored_inputs
    }


def model_columns(rows: DataFrame) -> list[str]:
    """The model's columns among those of a frame of judged arrivals."""
    return [name for name in rows.columns if not is_technical(name) and name not in OWN]


def with_hash(rows: DataFrame) -> DataFrame:
    """Stored rows with their hash."""
    return rows.withColumn(HASH, row_hash(rows.schema))


def rows_and_content(hashed: str = HASH) -> tuple[Column, ...]:
    """Rows and the two halves of their content, for an aggregation of rows that carry a hash."""
    return (F.count(F.lit(1)).alias(ROWS), *content_sums(F.col(hashed)))


def content_of(row: Any) -> int:
    """The content that :func:`rows_and_content` added up."""
    return content(row["hi"], row["lo"])


# It adds up the rows that the step's few Spark actions collect, and makes the ledger's values of
# them. Nothing here calls Spark.

FileAndCell = tuple[int, Interval]
"""A file and a cell."""


@dataclass(slots=True)
class CellCounts:
    """What enters one cell and leaves it."""

    added: int = 0
    removed: int = 0
    content: int = 0
    last: int | None = None


@dataclass(slots=True)
class IngestCounts:
    """
    The sums of one ingest.

    ``rows`` and ``dropped`` are by file and cell. For files that were ingested before they are
    differences to what the ledger has. ``erased`` rows are those of new files and stored ones.
    """

    rows: dict[FileAndCell, int] = field(default_factory=lambda: defaultdict(int))
    dropped: dict[FileAndCell, int] = field(default_factory=lambda: defaultdict(int))
    cells: dict[Interval, CellCounts] = field(default_factory=lambda: defaultdict(CellCounts))
    waiting: dict[int, int] = field(default_factory=lambda: defaultdict(int))
    next_due: dict[int, int] = field(default_factory=dict)
    aside: dict[int, int] = field(default_factory=lambda: defaultdict(int))
    reasons: dict[str, int] = field(default_factory=lambda: defaultdict(int))
    reingested: frozenset[int] = frozenset()
    erased: int = 0
    arrived: int = 0
    before: int = 0
    copies: int = 0
    conflicting: int = 0
    elsewhere: int = 0
    keys_scanned: int = 0
    written: int = 0
    removed: int = 0

    def arrive(
        self,
        counts: Collection[RowCount],
        new_files: Iterable[int],
        rows_of_new_files: int | None = None,
        again: Iterable[int] = (),
    ) -> None:
        """
        Add the rows of files: all of ``new_files``, of others those that came due or still wait.

        ``rows_of_new_files`` is how many rows these have, where WHERE leaves some out. All rows of
        files ingested ``again`` are judged again, and none of them arrived.
        """
        new, self.reingested = frozenset(new_files), frozenset(again)
        for count in counts:
            if count.state is RowState.ADMITTED and count.cell is not None:
                self.rows[count.file, count.cell] += count.rows
            elif count.state is RowState.WAITING:
                self.waiting[count.file] += count.rows
                if count.first is not None:
                    self.next_due[count.file] = min(
                        count.first, self.next_due.get(count.file, count.first)
                    )
            elif count.state is RowState.SET_ASIDE and count.file in new | self.reingested:
                self.aside[count.file] += count.rows
                self.reasons[count.reason or ""] += count.rows
            elif count.state is RowState.BEFORE_START and count.file in new:
                self.before += count.rows
            elif count.state is RowState.ERASED and count.file in new:
                self.erased += count.rows
        counted = sum(count.rows for count in counts if count.file in new)
        self.arrived = counted if rows_of_new_files is None else rows_of_new_files

    def rows_by_file(self) -> Counter[int]:
        """How many rows each file has; rows that wait count too."""
        counts = Counter(self.waiting)
        for (file, _), rows in self.rows.items():
            counts[file] += rows
        return counts

    def add(self, cell: Interval, rows: int, content: int, last: int | None) -> None:
        """Rows that enter a cell."""
        entry = self.cells[cell]
        entry.added += rows
        entry.content += content
        if last is not None:
            entry.last = last if entry.last is None else max(last, entry.last)

    def remove(self, cell: Interval, rows: int, content: int) -> None:
        """Rows that leave a cell."""
        entry = self.cells[cell]
        entry.removed += rows
        entry.content -= content

    @property
    def touched(self) -> tuple[Interval, ...]:
        """The cells that rows enter or leave, in order, also where their content stays."""
        return tuple(sorted(self.cells))

    def changes(self, before: Iterable[CellState]) -> tuple[CellChange, ...]:
        """One change for each touched cell, real or not, in order."""
        known = {state.cell: state for state in before}
        return tuple(
            _cell_change(known.get(cell, CellState(cell, 0, 0)), entry)
            for cell, entry in sorted(self.cells.items())
        )

    def files(
        self,
        source: str,
        taken: Mapping[int, ListedFile | IngestedFile],
        known: Iterable[FileCell],
        removed: Iterable[int],
        *,
        horizon: int,
        received_at: int,
    ) -> FilesOutcome:
        """What the ledger records of files; ``known`` are the cells of those ingested before."""
        removed_ids = frozenset(removed)
        spots: dict[FileAndCell, tuple[int, int]] = {
            (entry.file_id, entry.cell): (entry.rows, entry.dropped) for entry in known
        }
        elsewhere = []
        for spot in sorted({*self.rows, *self.dropped}):
            rows, dropped = self.rows.get(spot, 0), self.dropped.get(spot, 0)
            if spot[0] in taken:
                counts_before = spots.get(spot, (0, 0))
                spots[spot] = (counts_before[0] + rows, counts_before[1] + dropped)
            elif (rows or dropped) and spot[0] not in removed_ids:
                elsewhere.append(FileCell(spot[0], spot[1], rows, dropped))
        cells = [FileCell(id_, cell, *pair) for (id_, cell), pair in sorted(spots.items())]
        sums: dict[int, list[int]] = defaultdict(lambda: [0, 0])
        for cell in cells:
            sums[cell.file_id][0] += cell.rows
            sums[cell.file_id][1] += cell.dropped
        files = tuple(
            IngestedFile(
                id=id_,
                path=file.path,
                size=file.size,
                fingerprint=file.fingerprint,
                horizon=horizon,
                next_due=self.next_due.get(id_),
                rows=sums[id_][0],
                waiting=self.waiting.get(id_, 0),
                set_aside=file.set_aside
                if isinstance(file, IngestedFile) and id_ not in self.reingested
                else self.aside.get(id_, 0),
                dropped=sums[id_][1],
                received_at=file.received_at if isinstance(file, IngestedFile) else received_at,
            )
            for id_, file in sorted(taken.items())
        )
        return FilesOutcome(
            source=source,
            ingested=files,
            removed=tuple(sorted(removed_ids)),
            cells=tuple(cells),
            dropped=tuple(elsewhere),
        )


def _cell_change(old: CellState, entry: CellCounts) -> CellChange:
    last = entry.last
    if old.last is not None and (last is None or old.last > last):
        last = old.last
    return CellChange(
        cell=old.cell,
        added=entry.added,
        removed=entry.removed,
        rows_before=old.rows,
        rows_after=old.rows + entry.added - entry.removed,
        content_before=old.content,
        content_after=signed(old.content + entry.content),
        last=last,
    )
