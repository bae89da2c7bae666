"""
The program without Spark: its own observer, planner, runner and ledger over tables in Python.

Only what is computed is replaced: a step's rows come from the reference, evaluated over the
versions of the inputs that the step names, and of a time-range table only the cells that the step
names are replaced. So a cell that the planner forgets stays wrong, and is found, in milliseconds
and with a program that Hypothesis can make small. Deaths at write points work as in ``crash``.
"""

from __future__ import annotations

import hashlib
import tempfile
from collections import Counter, defaultdict
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, cast

import pyarrow as pa
from tests.arrivals.play import DRY, Play, Tally, usable_rows
from tests.arrivals.programs import Program
from tests.arrivals.shape import (
    PERSON,
    Rows,
    Shape,
    SourceSpec,
    TableSpec,
    cell_start,
    during,
    entries_key,
    entry_row,
    model_path,
    project_file,
)
from tests.reference.tables import Deduplicated
from tests.reference.world import (
    Erased,
    Record,
    Row,
    Usable,
    dated_since,
    frozen,
    without_erased,
)

from infold import api
from infold.core import write_points
from infold.core.files import FilesOutcome, IngestedFile, ListedFile
from infold.core.interval import EVER, MIN, Interval, Ranges
from infold.core.model import Kind, Source, table_name
from infold.core.plan import Action, ChangedKeyRows, FileDiff, PlanOptions, Step
from infold.core.ports import Announce, Lake, Progress, TableMetadata
from infold.core.project import Node, Project, Validity
from infold.core.record import Outcome, Receipt
from infold.core.report import RunResult
from infold.core.sessions import ManualEntry
from infold.core.swap import Renaming
from infold.core.trace import UNKNOWN, CellChange, CellState, signed
from infold.core.type_changes import Type
from infold.declare.definitions import definitions_of
from infold.inspecting.as_built import Stretches, project_as_built
from infold.inspecting.changed_definitions import ChangedDefinitions
from infold.lake.iceberg.tables import NamedByCatalog
from infold.ledger.store import SqlLedger
from infold.messages import mismatches
from infold.messages.errors import InfoldError, InfoldErrors
from infold.planning.selection import select_models, with_landed
from infold.running.erasures import ask_to_erase
from infold.running.execute import Runner
from infold.running.observe import Observer
from infold.running.run_progress import Request

Given = dict[tuple[str, str], Rows]
"""The rows that each version of a file gave when it was read last, by path and fingerprint."""


@dataclass
class Stored:
    """A table in memory: all its snapshots (number to rows), and which step made which."""

    snapshots: dict[int, Rows] = field(default_factory=dict)
    steps: dict[str, int] = field(default_factory=dict)
    columns: tuple[str, ...] = ()
    replaced: int = 0
    """The snapshot that replaced all content last: the main branch begins with it."""
    folder: str = ""


@dataclass
class Memory(NamedByCatalog):
    """Tables in memory, as the runner sees stored ones (``ports.Lake``)."""

    tables: dict[str, Stored] = field(default_factory=dict)
    rows_of: dict[int, Rows] = field(default_factory=dict)
    """All snapshots that there ever were, also of tables that were dropped."""
    made: int = 0
    given: dict[str, Given] = field(default_factory=dict)
    """What files gave, by table of events."""
    incomplete: set[str] = field(default_factory=set)
    """Tables that lost a file, as its name tells."""
    unreadable: set[str] = field(default_factory=set)
    """Tables with a file that cannot be read, as only its reader finds out."""

    @property
    def commits(self) -> int:
        """Snapshots are numbered through all tables, as tables may swap their names."""
        return len(self.rows_of)

    def moved_tables(self, known: Mapping[str, str]) -> Mapping[str, str | None]:
        """Tables that have another newest snapshot than known."""
        now = {table: self.location(table) for table in known}
        return {table: at for table, at in now.items() if at != known[table]}

    def hold_back(self, tables: Collection[str]) -> None:
        """Every commit is seen at once."""
        del tables

    def publish(self, *, hold_back: bool, tables: Collection[str] | None = None) -> tuple[str, ...]:
        """Every commit is seen at once."""
        del hold_back, tables
        return ()

    def check_views(self, tables: Collection[str] | None) -> None:
        """Nobody wants any."""
        assert tables is None

    def refresh_views(self, tables: Collection[str], *, only_new: bool = False) -> Sequence[str]:
        """It has none."""
        del tables, only_new
        return ()

    def file_list_id(self, table: str) -> str:
        """Nothing lies in files, so all that can be told is whether one is gone."""
        return "incomplete" if table in self.incomplete else "complete"

    def lost_files(self, table: str) -> Sequence[str]:
        """The files that a table lost."""
        return ("rows.parquet",) if table in self.incomplete else ()

    def columns(self, table: str, snapshot: int | None = None) -> Mapping[str, Type]:
        """Rows of the reference have the columns of their definitions."""
        del table, snapshot
        return {}

    def metadata(self, table: str) -> TableMetadata | None:
        """The newest snapshot, and which steps are in the table's history."""
        if table not in self.tables:
            return None
        found = self.tables[table]
        return TableMetadata(
            table, self.location(table) or "", max(found.snapshots), dict(found.steps)
        )

    def was_renamed(self, renamings: Sequence[Renaming]) -> bool:
        """Whether a process renamed them before it died."""
        return any(self.location(one.to) == one.location for one in renamings)

    def made_tables(self) -> Sequence[str]:
        """All of them."""
        return sorted(self.tables)

    def can_set_back(self, table: str, snapshot: int) -> bool:
        """Whether it has the snapshot, and was not replaced since."""
        found = self.tables[table]
        return snapshot in found.snapshots and snapshot >= found.replaced

    def set_back(self, table: str, snapshot: int) -> None:
        """What came later is gone."""
        write_points.point(f"set back {table}: before")
        found = self.tables[table]
        found.snapshots = {at: rows for at, rows in found.snapshots.items() if at <= snapshot}
        found.steps = {step: at for step, at in found.steps.items() if at <= snapshot}
        write_points.point(f"set back {table}: after")

    def commit(
        self, table: str, step: str, rows: Rows, columns: Sequence[str], *, whole: bool
    ) -> int:
        """Another snapshot."""
        write_points.point(f"table {table}: before commit")
        if table not in self.tables:
            self.made += 1
            self.tables[table] = Stored(folder=f"t{self.made}")
        found, number = self.tables[table], self.commits + 1
        self.rows_of[number] = rows
        if whole:
            found.replaced, found.steps = number, {}
        found.snapshots[number] = rows
        found.steps[step] = number
        found.columns = tuple(columns)
        self.incomplete.discard(table)
        self.unreadable.discard(table)
        write_points.point(f"table {table}: after commit")
        return number

    def location(self, table: str) -> str | None:
        """Where the newest metadata is: a table's folder stays with it."""
        found = self.tables.get(table)
        return f"{found.folder}/{max(found.snapshots)}" if found else None

    def is_free(self, table: str) -> bool:
        """Whether no table has this name."""
        return table not in self.tables

    def size(self, table: str) -> int:
        """Memory is not counted."""
        del table
        return 0

    def drop(self, table: str) -> bool:
        """Take a table away."""
        write_points.point(f"drop {table}: before")
        found = self.tables.pop(table, None)
        self.given.pop(table, None)
        write_points.point(f"drop {table}: after")
        return found is not None

    def delete_folder(self, location: str) -> None:
        """Nothing lies in folders."""
        write_points.point(f"delete {location}: after")

    def rename(self, renamings: Sequence[Renaming]) -> bool:
        """All at once, or none."""
        moved = {one.table for one in renamings}
        if any(self.location(one.table) != one.location for one in renamings):
            return False
        if any(one.to in self.tables and one.to not in moved for one in renamings):
            return False
        write_points.point("rename: before commit")
        found = {one.to: self.tables[one.table] for one in renamings}
        given = {one.to: self.given.pop(one.table, {}) for one in renamings}
        for name in moved:
            del self.tables[name]
        self.tables.update(found)
        self.given.update(given)
        write_points.point("rename: after commit")
        return True

    def rows(self, table: str, *, limit: int | None = None) -> pa.Table:
        """The columns alone."""
        assert limit == 0
        return pa.schema([(name, pa.string()) for name in self.tables[table].columns]).empty_table()


Frozen = tuple[tuple[str, Any], ...]
"""A row as a value."""


def _held(
    rows: Counter[Frozen], names: Sequence[Sequence[str]], validity: Validity, row: Row
) -> Counter[Frozen]:
    """What a row of an input sees of a lookup that it reads as of its time."""
    ends, found = (validity.start, validity.end), Counter[Frozen]()
    at = row[validity.time.strip("`")]
    for record, count in rows.items():
        one = dict(record)
        start, end = (one[name] for name in ends)
        if any(row[name] != one[own] for name, own in names) or start > at:
            continue
        if (end is None and validity.open) or (end is not None and at < end):
            values = {k: v for k, v in one.items() if validity.passed_on or k not in ends}
            found[frozen(values)] += count
    return found


@dataclass
class DryEngine:
    """Carries out steps by the reference (``ports.Engine``)."""

    play: DryPlay
    project: Project
    ledger: SqlLedger
    models_at_once: int = 1

    def find_changed_keys(self, model: str, lookup: str, since: int, upto: int) -> ChangedKeyRows:
        """Where the input has rows of changed keys; keys are plain columns here."""
        before, after = (Counter(map(frozen, self._at(lookup, at))) for at in (since, upto))
        changed = [*(before - after), *(after - before)]
        times = []
        for match in self.project[model].matches_of(lookup):
            names = [[sql.strip("`") for sql in pair] for pair in match.pairs]
            keys = {tuple(dict(row)[own] for _, own in names) for row in changed}
            rows = self._at(match.input, self.ledger.newest_versions()[match.input].number)
            found = [row for row in rows if tuple(row[name] for name, _ in names) in keys]
            known = [row for row in found if all(row[name] is not None for name, _ in names)]
            validity = match.validity
            if validity is not None:
                known = [
                    row
                    for row in known
                    if _held(before, names, validity, row) != _held(after, names, validity, row)
                ]
            cells = Ranges.of(_cells(self.project[match.input], known))
            times.append((match.input, cells, len(known)))
        return ChangedKeyRows(tuple(times))

    def analyse(self, models: Sequence[str]) -> Mapping[str, InfoldError]:
        """The reference's definitions are all right."""
        del models
        return {}

    def column_types(self, models: Sequence[str]) -> Mapping[str, Mapping[str, Type]]:
        """Values of the reference have no types of their own."""
        del models
        return {}

    def derives_exactly(self, step: Step) -> bool:
        """Whether what stored rows were made from is there; values have no types."""
        return all(self._is_there(name, upto) for name, (_, upto) in step.inputs.items())

    def concurrent(self, number: int) -> DryEngine:
        """The same one: memory sets nothing."""
        del number
        return self

    def maintain(self, models: Sequence[str]) -> Sequence[str]:
        """Memory needs no care."""
        del models
        return ()

    def carry_out(self, step: Step, step_id: str, announce: Announce) -> Outcome:
        """The step's rows, compared cell by cell with those before, and one commit."""
        node = self.project[step.model]
        if step.action is Action.REBUCKET:
            return announce(self._rebucketed(node, step))
        table = table_name(step.model)
        memory = self.play.memory
        if step.action.of_own_rows and table in memory.unreadable:
            raise mismatches.damaged_table(step.model, "rows.parquet")
        if step.action is Action.EVOLVE:
            return self._evolved(node, step, step_id, announce)
        stored = memory.tables.get(table)
        before = self._known(step.model)
        files, column = None, _time_column(node)
        if step.action is Action.EXPIRE:
            assert column is not None
            after = [row for row in before if cell_start(row[column]) not in step.cells]
        elif step.action is Action.DERIVE and step.trace and step.trace.earlier:
            after = [dict.fromkeys(node.columns) | row for row in before]
        elif node.model.kind is Kind.EVENTS:
            after, files = self._ingested(node, step)
        else:
            after = self._evaluated(step, step.model)
        build = step.replaces_all or step.action is Action.DERIVE or stored is None
        # What held before is what the ledger says: a dead run may have replaced the table since.
        held = {state.cell: (state.rows, state.content) for state in self.ledger.cells(step.model)}
        expires = step.action is Action.EXPIRE
        if node.model.kind is Kind.INCREMENTAL_TABLE and column is not None and not expires:
            after = _clamped(column, step, [], after)
            if step.action is Action.DERIVE and not (step.trace and step.trace.earlier):
                after = _derived(column, step, before, after)
            if not build:
                held = {cell: kept for cell, kept in held.items() if step.cells.overlaps(cell)}
        changes = self._changes(node, held, before, after, whole=build)
        trace = step.trace
        assert trace is not None
        outcome = Outcome(
            step.model,
            step.version,
            trace,
            changes,
            whole=build,
            committed=build or bool(changes),
            files=files,
            receipt=Receipt(read=len(after)),
        )
        if not build or step.action is Action.DERIVE:
            outcome = announce(outcome)
        # What other batches committed meanwhile is carried along; the ledger knows of all of it.
        now = self._known(step.model)
        counted = sum(cell.rows for cell in self.ledger.cells(step.model))
        assert counted == len(now), "the ledger lost count"
        by_cell = node.model.kind is Kind.INCREMENTAL_TABLE and not expires
        if by_cell and column is not None and not build:
            after = _clamped(column, step, now, after)
        snapshot = None
        if outcome.committed:
            snapshot = memory.commit(table, step_id, after, node.columns, whole=build)
        return replace(outcome, snapshot=snapshot)

    def _rebucketed(self, node: Node, step: Step) -> Outcome:
        """The states of the new cells; no row is written, and there is no version."""
        assert step.trace is not None
        states = tuple(
            CellState(cell, len(rows), signed(sum(map(_hash, rows))))
            for cell, rows in sorted(_cells(node, self._known(step.model)).items())
        )
        return Outcome(step.model, step.version, step.trace, committed=False, cells=states)

    def _evolved(self, node: Node, step: Step, step_id: str, announce: Announce) -> Outcome:
        """The same rows under other names; their hashes here have the names in them."""
        assert step.trace is not None
        assert step.derivation is not None
        names = dict(step.derivation.renamed)
        rows = [
            {names.get(name, name): value for name, value in row.items()}
            for row in self._known(step.model)
        ]
        states = tuple(
            CellState(cell, len(some), signed(sum(map(_hash, some))))
            for cell, some in sorted(_cells(node, rows).items())
        )
        outcome = announce(Outcome(step.model, step.version, step.trace, cells=states))
        memory = self.play.memory
        snapshot = memory.commit(table_name(step.model), step_id, rows, node.columns, whole=True)
        return replace(outcome, snapshot=snapshot)

    def spec(self, name: str) -> TableSpec:
        """The definition of one of the project's models."""
        return self.play.spec(name)

    def read_as(self, name: str, read: str) -> str:
        """The project's name for what a model of it reads."""
        del name
        return read

    def _known(self, model: str) -> Rows:
        """A table as the ledger knows it: without a commit that a dead run did not record."""
        head = self.ledger.newest_versions().get(model)
        if head is None or head.snapshot is None:
            return []
        return self.play.memory.tables[table_name(model)].snapshots[head.snapshot]

    def _evaluated(self, step: Step, name: str) -> Rows:
        """A table's rows by its definitions in force, over the versions that the step reads."""
        spec = self.spec(name)
        earlier = step.trace.earlier if step.trace and name == step.model else ()
        held = Ranges.of(part for one in earlier for part in one.cells)
        if spec.sessions and earlier:
            return self._sessions_in_force(step, name, spec)
        found = self._rows_by(step, name, spec)
        if not earlier:
            return found
        assert spec.cell is not None
        found = [row for row in found if cell_start(row[spec.cell]) not in held]
        for one in earlier:
            [kept] = self.ledger.definitions([one.definition]).values()
            rows = self._rows_by(step, name, self.play.shape.by_query(spec.name, kept.sql))
            found += [row for row in rows if cell_start(row[spec.cell]) in one.cells]
        columns = self.project[name].columns
        return [{column: row.get(column) for column in columns} for row in found]

    def _sessions_in_force(self, step: Step, name: str, spec: TableSpec) -> Rows:
        """Sessions by their definitions in force: each over the events of its stretch alone."""
        assert step.trace is not None
        parts = [(spec, part) for part in Ranges.ever() - step.trace.earlier_ranges]
        for one in step.trace.earlier:
            [kept] = self.ledger.definitions([one.definition]).values()
            by = self.play.shape.by_query(spec.name, kept.sql)
            parts += [(by, part) for part in one.cells]
        columns = [one for one in self.project[name].columns if one != "session_id"]
        return [
            {column: row.get(column) for column in columns}
            for by, part in parts
            for row in self._rows_by(step, name, by, part)
        ]

    def _rows_by(self, step: Step, name: str, spec: TableSpec, times: Interval = EVER) -> Rows:
        """A table's rows by one of its definitions, over the events of some time."""
        assert spec.rows is not None
        given = {read: self._input(step, self.read_as(name, read)) for read in spec.reads}
        if times != EVER:
            given = dict(during(given, spec.reads[0], times))
        applied = step.trace.applied_entry if step.trace else 0
        given[entries_key(spec.name)] = [
            entry_row(one) for one in self.ledger.entries(name) if one.number <= applied
        ]
        return spec.rows(given)

    def _input(self, step: Step, name: str) -> Rows:
        if self.spec(name).view:
            return self._evaluated(step, name)
        return self._at(name, step.inputs[name][1])

    def _at(self, name: str, version: int) -> Rows:
        """A stored table at a version; one that was dropped with it has no rows."""
        [found] = [v for v in self.ledger.versions(name, version - 1) if v.number == version]
        if found.snapshot is None:
            return []
        return self.play.memory.tables[table_name(name)].snapshots[found.snapshot]

    def _is_there(self, name: str, version: int) -> bool:
        """Whether a version of a stored table can be read; it may have been dropped since."""
        table = self.play.memory.tables.get(table_name(name))
        known = [v for v in self.ledger.versions(name, version - 1) if v.number == version]
        return table is not None and any(one.snapshot in table.snapshots for one in known)

    def _ingested(self, node: Node, step: Step) -> tuple[Rows, FilesOutcome]:
        """All rows of the files that are taken in afterwards, and what the ledger keeps of them."""
        diff = step.files if step.files is not None else FileDiff("")
        spec = self.spec(step.model)
        ids = self.ledger.register_files(diff.source, diff.new)
        gone = {file.path for file in diff.removed}
        due = {file.path for file in diff.come_due}
        held = {file.path: file for file in self.ledger.files(step.model)}
        if step.action is Action.BUILD:
            gone |= set(held)
        stay = [path for path in held if path not in gone]
        erased = self.play.erased_by(step)
        before = step.previous_trace.applied_entry if step.previous_trace else 0
        again = stay if step.trace and step.trace.applied_entry != before else due
        since = step.trace.retention.start if step.trace else MIN
        taken = [
            self._taken(spec, path, id_, diff.as_of, erased, since)
            for path, id_ in (*ids.items(), *((path, held[path].id) for path in again))
        ]
        source = self.play.shape.source(diff.source)
        records = [
            record
            for path in dict.fromkeys((*stay, *ids))
            for record in self.play.world.files[path]
        ]
        known = dated_since(without_erased(records, erased), since)
        rows = usable_rows(spec, known, source.rules, diff.as_of).rows
        removed = tuple(held[path].id for path in gone if path in held)
        outcome = FilesOutcome(diff.source, tuple(taken), removed)
        return (chosen_rows(spec.best(rows)) if spec.best else rows), outcome

    def _taken(
        self, spec: TableSpec, path: str, id_: int, as_of: int, erased: Sequence[Erased], since: int
    ) -> IngestedFile:
        source = self.play.shape.source(spec.source or "")
        records = dated_since(without_erased(self.play.world.files[path], erased), since)
        found = usable_rows(spec, records, source.rules, as_of)
        return ingested_file(self.play, path, id_, as_of, found)

    @staticmethod
    def _changes(
        node: Node,
        held: Mapping[Interval, tuple[int, int]],
        before: Rows,
        after: Rows,
        *,
        whole: bool,
    ) -> tuple[CellChange, ...]:
        """One change for each cell that holds other rows than before; for every cell if whole."""
        old, new = _cells(node, before), _cells(node, after)
        changes = []
        for cell in sorted({*held, *new}):
            rows_before, content_before = held.get(cell, (0, 0))
            rows_after = len(new.get(cell, ()))
            content_after = signed(sum(map(_hash, new.get(cell, ()))))
            change = CellChange(
                cell,
                rows_after,
                rows_before,
                rows_before,
                rows_after,
                content_before,
                content_after,
            )
            if change.changes_rows or whole:
                stay = {frozen(row) for row in old.get(cell, ())}
                if node.model.kind is Kind.EVENTS and stay <= {
                    frozen(row) for row in new.get(cell, ())
                }:
                    change = _added_only(change)
                changes.append(change)
        return tuple(changes)


def ingested_file(play: DryPlay, path: str, id_: int, as_of: int, found: Usable) -> IngestedFile:
    """What the ledger keeps of a file with these rows."""
    return IngestedFile(
        id=id_,
        path=path,
        size=1,
        fingerprint=play.prints[path],
        horizon=as_of,
        next_due=min((row["event_ts"] for row in found.waiting), default=None),
        rows=len(found.rows),
        waiting=len(found.waiting),
        set_aside=found.aside.total(),
    )


def chosen_rows(found: Deduplicated) -> Rows:
    """One row for each event; which of equally preferred copies follows from their content."""
    return found.rows(min(copies, key=_hash) for copies in found.groups.values())


def _clamped(column: str, step: Step, before: Rows, after: Rows) -> Rows:
    """Rows of the step's cells as they should be, the others as they were."""
    old = [] if step.action in (Action.BUILD, Action.DERIVE) else before
    return [row for row in old if cell_start(row[column]) not in step.cells] + [
        row for row in after if cell_start(row[column]) in step.cells
    ]


def _derived(column: str, step: Step, before: Rows, after: Rows) -> Rows:
    """Rows that follow from stored ones, at times of these; pending cells are left out."""
    assert step.previous_trace is not None
    times, stale = {row[column] for row in before}, step.previous_trace.pending_ranges
    return [row for row in after if row[column] in times and cell_start(row[column]) not in stale]


def _added_only(change: CellChange) -> CellChange:
    """The same change where rows were added and none was removed."""
    return replace(change, added=change.rows_after - change.rows_before, removed=0)


def _time_column(node: Node) -> str | None:
    if node.model.kind is Kind.SESSIONS:
        return "session_start"
    if node.model.timeseries is None or node.model.granularity is None:
        return None
    if node.model.kind is Kind.EVENTS:
        return node.model.timeseries.event_time_column
    return node.model.timeseries.partition_column


def _cells(node: Node, rows: Rows) -> dict[Interval, Rows]:
    column, granularity = _time_column(node), node.model.granularity
    found: dict[Interval, Rows] = defaultdict(list)
    for row in rows:
        cell = EVER
        if column is not None and granularity is not None:
            cell = granularity.cell(cell_start(row[column]))
        found[cell].append(row)
    return found


def _hash(row: Row) -> int:
    digest = hashlib.blake2b(repr(frozen(row)).encode(), digest_size=8).digest()
    return int.from_bytes(digest, signed=True)


_opened: dict[tuple[Any, ...], Project | None] = {}
"""Projects by their files: reading one takes longer than running it."""


def opened(
    shape: Shape, specs: Mapping[str, TableSpec], more: str = "", *, declared: bool = False
) -> Project | None:
    """The project of these definitions, with more in infold.yml; None where it has a mistake."""
    files = {model_path(name, spec.text): spec.text for name, spec in specs.items() if spec.text}
    files["infold.yml"] = project_file("dry", "warehouse", shape) + more
    key = (declared, *sorted(files.items()))
    if key not in _opened:
        with tempfile.TemporaryDirectory(prefix="infold-dry-") as folder:
            (Path(folder) / "models").mkdir()
            for path, text in files.items():
                (Path(folder) / path).write_text(text, encoding="utf-8")
            try:
                _opened[key] = api.open_project(Path(folder), declared=declared)
            except InfoldErrors:
                _opened[key] = None
    return _opened[key]


@dataclass
class DryPlay(Play):
    """A play without files, Spark or stored tables."""

    tally: Tally = field(default_factory=lambda: DRY)
    memory: Memory = field(default_factory=Memory)
    prints: dict[str, str] = field(default_factory=dict)
    requests: dict[int, list[Erased]] = field(default_factory=dict)
    """Who asked to be erased, by the number of the request."""
    progress: Progress | None = None
    jobs: int | None = None
    models_at_once: int = 1
    fail_fast: bool = False

    @property
    def ledger(self) -> SqlLedger:
        """The real ledger; another connection each time, as another process would have."""
        return SqlLedger(self.folder / "ledger.db")

    @property
    def project(self) -> Project:
        """The project as it would be read from its folder."""
        found = opened(self.shape, {name: self.spec(name) for name in self.versions})
        assert found is not None
        return found

    def _begin(self) -> None:
        self.folder.mkdir(parents=True, exist_ok=True)

    def _put(self, path: str, source: SourceSpec, records: Sequence[Record]) -> None:
        self.prints[path] = str(int(self.prints.get(path, 0)) + 1)

    def _drop(self, path: str) -> None:
        del self.prints[path]

    def _model(self, name: str, text: str) -> None:
        """The project has it without a folder."""

    def _listing(self, source: Source) -> tuple[Sequence[ListedFile], Sequence[str]]:
        folder = self.shape.source(source.name).folder
        paths = [path for path in self.world.files if path.startswith(f"{folder}/")]
        return [ListedFile(path, 1, 0, self.prints[path]) for path in sorted(paths)], ()

    def _add_entries(self, name: str, entries: Sequence[ManualEntry]) -> None:
        self.ledger.add_entries(name, entries)

    def _erase(self, names: Sequence[str], before: int | None) -> None:
        request = ask_to_erase(self.project, self.ledger, PERSON, names, before=before)
        self.requests[request.number] = [Erased(name, before) for name in names]

    def erased_by(self, step: Step) -> list[Erased]:
        """Who is erased by the requests that a step applies."""
        applied = step.trace.applied_entry if step.trace else 0
        asked = [one for number, one in self.requests.items() if number <= applied]
        return [erased for one in asked for erased in one]

    def runner(self, ledger: SqlLedger) -> Runner:
        """The program's own runner, over the play's files and tables."""
        project = self.project
        lake = cast("Lake", self.memory)  # rows are read from it directly
        return Runner(
            project,
            ledger,
            lake,
            Observer(
                project,
                ledger,
                lake,
                self._listing,
                self.world.as_of,
                redefinitions=ChangedDefinitions(project, ledger),
                stretches=Stretches(project, ledger, declared=True),
            ),
            lambda run, plan: DryEngine(self, project, ledger, self.models_at_once),
            self.progress or api.SilentProgress(),
            lambda: definitions_of(project),
        )

    def _run(self, window: Interval | None, terms: Sequence[str]) -> RunResult:
        project, ledger = self.project, self.ledger
        runner = self.runner(ledger)
        try:
            chosen = with_landed(project, select_models(project, terms)) if terms else None
            asked = PlanOptions(window=window, selected=chosen, jobs=self.jobs)
            try:
                return runner.run(Request(asked, fail_fast=self.fail_fast))
            except InfoldError as error:
                if error.slug != "source-shrank":
                    raise
                request = Request(asked, fail_fast=self.fail_fast, allow_removals=True)
                return runner.run(request)
        finally:
            ledger.close()

    def _contradictions(self) -> Mapping[str, str]:
        return self.ledger.contradictions()

    def _read(self, name: str) -> Rows:
        found = self.memory.tables[table_name(name)].snapshots
        return found[max(found)]

    def _counts(self, name: str) -> tuple[int, int]:
        files = self.ledger.files(name)
        return sum(file.set_aside for file in files), sum(file.waiting for file in files)

    def _check_aside(self, spec: TableSpec) -> None:
        """Nothing is written down but how many they are."""

    def _check_left_out(self, spec: TableSpec) -> None:
        """The engine here counts none."""

    def _check_session_ids(self, name: str, rows: Sequence[Row]) -> None:
        """The reference's sessions have no ids."""

    def check(
        self, names: set[str], window: Interval | None, result: RunResult | None = None
    ) -> None:
        """Every table as ever, and that what built it is kept."""
        super().check(names, window, result)
        self._check_definitions()

    def _check_definitions(self) -> None:
        """The definition that built each table was kept, and gives that table's node again."""
        project, ledger = self.project, self.ledger
        for name, trace in ledger.traces().items():
            if trace.fingerprint == UNKNOWN:
                continue
            kept = ledger.definitions([trace.definition]).get(trace.definition)
            if kept is None or kept.fingerprint != trace.fingerprint:
                self._fail(f"{name}: the definition that built it was not kept")
            as_built = project_as_built(project, ledger, trace)
            if as_built[name].fingerprint != trace.fingerprint:
                self._fail(f"{name}: its definition cannot be compiled again")

    def check_again(self) -> None:
        """Each table is declared as in the files by what the ledger kept of its definition."""
        project, ledger = self.project, self.ledger
        changed = replace(
            project, nodes=tuple(replace(node, fingerprint="changed") for node in project)
        )
        for name, trace in ledger.traces().items():
            if trace.fingerprint == project[name].fingerprint:
                as_built = project_as_built(changed, ledger, trace)[name]
                # A landed source of the ledger has only the columns that are read.
                as_built = replace(as_built, unread_columns=project[name].unread_columns)
                if as_built != project[name]:
                    self._fail(f"{name}: {as_built} was kept of {project[name]}")


def play_through(kind: type[DryPlay], shape: Shape, program: Program, **more: Any) -> None:
    """All of a program, in a folder of its own."""
    with tempfile.TemporaryDirectory(prefix="infold-dry-") as name:
        folder = Path(name)
        kind(shape, folder, shape.name, folder, program.users, **more).play(program)
