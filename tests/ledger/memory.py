"""
A ledger in memory: the contract of ``ports.Ledger`` without a file, for tests of other rooms.

``test_contract.py`` runs against both, so a test on this one says something about the other.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import Any

from infold.core.audits import AuditResult, AuditState, JudgedAudit
from infold.core.clock import Clock
from infold.core.definition import Definition
from infold.core.environment import PRODUCTION, Environment
from infold.core.files import FileCell, FilesOutcome, IngestedFile, ListedFile
from infold.core.interval import Interval, Ranges
from infold.core.manual_entry import ManualEntry
from infold.core.model import table_name
from infold.core.record import (
    FILES,
    FULL_LISTING,
    LISTED,
    Applied,
    Arrival,
    ForwardOnly,
    Outcome,
    QuarantinedSession,
    Receipt,
    RunRecord,
    StepRecord,
)
from infold.core.swap import DoneSwap, Swap
from infold.core.trace import CellChange, CellState, Trace, Version
from infold.core.unchanged import Unchanged
from infold.ledger.apply_outcome import vanished
from infold.ledger.codec import without_rows_of_tables
from infold.ledger.store import SystemClock
from infold.messages import run_errors


@dataclass
class _Model:
    """What is kept of one model: its table's versions and cells, and the files in it."""

    versions: list[Version] = field(default_factory=list)
    changes: list[tuple[int, CellChange]] = field(default_factory=list)
    cells: dict[Interval, CellState] = field(default_factory=dict)
    files: dict[int, IngestedFile] = field(default_factory=dict)
    file_cells: dict[tuple[int, Interval], FileCell] = field(default_factory=dict)
    arrivals: list[Arrival] = field(default_factory=list)
    quarantined: dict[tuple[str, int], QuarantinedSession] = field(default_factory=dict)
    left_out: int | None = None
    unchanged: dict[int, tuple[Unchanged, ...]] = field(default_factory=dict)


class MemoryLedger:
    """``ports.Ledger`` over dictionaries; nothing is ever pruned."""

    def __init__(self, *, clock: Clock | None = None) -> None:
        self._clock: Clock = clock or SystemClock()
        self._holder: str | None = None
        self._runs: dict[str, RunRecord] = {}
        self._steps: dict[str, StepRecord] = {}
        self._traces: dict[str, Trace] = {}
        self._entries: dict[str, list[ManualEntry]] = {}
        self._models: dict[str, _Model] = {}
        self._ids: dict[tuple[str, str, str], int] = {}
        self._locations: dict[str, str] = {}
        self._definitions: dict[str, tuple[Definition, int]] = {}
        self._applied: dict[str, dict[str, Applied]] = {}
        self._forward_only: dict[str, ForwardOnly] = {}
        self._environments: dict[str, Environment] = {}
        self._belongs: tuple[str, str] | None = None
        self._audits: list[JudgedAudit] = []

    # -- the lease

    def acquire(self, run: str, *, wait: float = 0.0) -> None:
        """Take the lease; in one process nobody else can hold it."""
        del wait
        self._bury(run)
        self._holder = run

    def release(self) -> None:
        """Give the lease back."""
        self._holder = None

    def _write(self) -> int:
        if self._holder is None:
            raise run_errors.lease_lost("")
        return self._clock.now()

    def _bury(self, run: str) -> None:
        for entry in self._runs.values():
            if entry.state == "running" and entry.id != run:
                self._runs[entry.id] = replace(entry, state="died")

    # -- runs and steps

    def begin_run(self, run: str, command: str, as_of: int, detail: Mapping[str, Any]) -> None:
        """Record a run as running."""
        del detail
        now = self._write()
        self._bury(run)
        self._runs[run] = RunRecord(run, command, "running", as_of, now)

    def finish_run(self, run: str, state: str, receipt: Receipt, error: str | None = None) -> None:
        """Close a run."""
        now = self._write()
        self._runs[run] = replace(
            self._runs[run], state=state, finished_at=now, receipt=receipt, error=error
        )

    def begin_step(
        self, run: str, step: str, seq: int, model: str, action: str, detail: Mapping[str, Any]
    ) -> None:
        """Record the intent of a step."""
        now = self._write()
        self._steps[step] = StepRecord(
            step, run, seq, model, action, "intent", dict(detail), None, now
        )

    def prepare_step(self, step: str, outcome: Outcome) -> None:
        """Keep the outcome."""
        self._write()
        if not self._open(step):
            raise ValueError(f"step {step!r} is not open")
        self._steps[step] = replace(self._steps[step], state="prepared", outcome=outcome)

    def finish_step(self, step: str, outcome: Outcome) -> None:
        """The step is done: its outcome holds."""
        now = self._write()
        record = self._steps.get(step)
        if record is None:
            raise ValueError(f"no step {step!r}")
        if record.state == "done":
            return
        if not self._open(step):
            raise ValueError(f"step {step!r} is {record.state}")
        self._steps[step] = replace(
            record, state="done", outcome=without_rows_of_tables(outcome), finished_at=now
        )
        model = self._models.setdefault(outcome.model, _Model())
        if outcome.committed:
            started = self._runs[record.run].started_at
            _commit(model, outcome, record, Interval(started, max(started, now) + 1), now)
        if outcome.cells is not None:
            model.cells = {state.cell: state for state in outcome.cells}
        if outcome.files is not None:
            _move_files(model, outcome.files)
            self._locations.pop(LISTED.format(outcome.model), None)
        if outcome.whole:
            model.quarantined = {}
        for key in outcome.released:
            model.quarantined.pop(key, None)
        model.quarantined.update((held.key, held) for held in outcome.quarantined)
        model.left_out = model.left_out if outcome.left_out is None else outcome.left_out
        self._put_audits(outcome.model, outcome.audits, record.run, step)
        self._put_trace(outcome.trace)

    def audits(self) -> Sequence[JudgedAudit]:
        """What audits found."""
        return tuple(
            sorted(self._audits, key=lambda j: (j.result.model, j.result.stored, j.result.audit))
        )

    def record_audits(self, model: str, results: Sequence[AuditResult]) -> None:
        """Record what audits found of stored rows."""
        self._put_audits(model, results, "", "")

    def _put_audits(self, model: str, results: Sequence[AuditResult], run: str, step: str) -> None:
        for stored in {one.stored for one in results}:
            own = [one for one in results if one.stored is stored]
            self._audits = [
                one
                for one in self._audits
                if one.result.model != model
                or one.result.stored is not stored
                or (
                    one.result.state is AuditState.FAILED
                    and not one.result.cells.overlaps(own[0].cells)
                )
            ]
            now = self._clock.now()
            self._audits += [JudgedAudit(one, now, run, step) for one in own]

    def close_step(
        self,
        step: str,
        state: str,
        error: str | None = None,
        audits: Sequence[AuditResult] = (),
    ) -> None:
        """Mark an open step failed or forgotten."""
        for model in {one.model for one in audits}:
            self._put_audits(model, audits, self._steps[step].run, step)
        now = self._write()
        if self._open(step):
            self._steps[step] = replace(
                self._steps[step], state=state, error=error, finished_at=now
            )

    def _open(self, step: str) -> bool:
        return step in self._steps and self._steps[step].state in {"intent", "prepared"}

    def step_models(self, steps: Iterable[str]) -> Mapping[str, str]:
        """The models of those that are known."""
        return {step: self._steps[step].model for step in steps if step in self._steps}

    def closed_steps(self, steps: Iterable[str]) -> frozenset[str]:
        """Those that failed or were forgotten."""
        known = (self._steps[step] for step in steps if step in self._steps)
        return frozenset(step.id for step in known if step.state in ("failed", "forgotten"))

    def owner(self) -> tuple[str, str] | None:
        """The project whose ledger this is, and its warehouse."""
        return self._belongs

    def set_owner(self, project: str, warehouse: str) -> None:
        """Be the ledger of this project."""
        self._write()
        self._belongs = project, warehouse

    def unfinished(self) -> Sequence[StepRecord]:
        """Open steps of earlier runs, oldest first."""
        order = {run: i for i, run in enumerate(self._runs)}
        found = [
            step
            for step in self._steps.values()
            if self._open(step.id) and step.run != self._holder
        ]
        return tuple(sorted(found, key=lambda step: (order[step.run], step.seq)))

    def runs(
        self,
        limit: int = 10,
        model: str | None = None,
        run: str | None = None,
        command: str | None = None,
    ) -> Sequence[RunRecord]:
        """Past runs with their steps, newest first."""
        found = []
        for entry in reversed(self._runs.values()):
            steps = tuple(
                sorted(
                    (step for step in self._steps.values() if step.run == entry.id),
                    key=lambda step: step.seq,
                )
            )
            if run is not None and entry.id != run:
                continue
            if command is not None and entry.command != command:
                continue
            if model is not None and all(step.model != model for step in steps):
                continue
            found.append(replace(entry, steps=steps))
        return tuple(found[:limit])

    # -- files

    def register_files(self, source: str, files: Iterable[ListedFile]) -> Mapping[str, int]:
        """Ids for these versions of files."""
        self._write()
        return {
            file.path: self._ids.setdefault(
                (source, file.path, file.fingerprint), len(self._ids) + 1
            )
            for file in files
        }

    def files(self, model: str, ids: Iterable[int] | None = None) -> Sequence[IngestedFile]:
        """The files in a model's table."""
        files = self._model(model).files
        return tuple(files[id_] for id_ in sorted(files if ids is None else files.keys() & {*ids}))

    def file_versions(self, model: str) -> Mapping[str, tuple[str, int]]:
        """Fingerprints and ids by path."""
        return {file.path: (file.fingerprint, file.id) for file in self.files(model)}

    def files_due(self, model: str, until: int) -> tuple[IngestedFile, ...]:
        """The files with rows that wait up to an instant."""
        waiting = ((file, file.next_due) for file in self.files(model))
        return tuple(file for file, due in waiting if due is not None and due <= until)

    def files_set_aside(self, model: str) -> Sequence[IngestedFile]:
        """The files with rows set aside."""
        return tuple(file for file in self.files(model) if file.set_aside)

    def file_cells(self, model: str, files: Iterable[int] | None = None) -> Sequence[FileCell]:
        """Which cells files hold."""
        wanted = None if files is None else set(files)
        cells = self._model(model).file_cells
        return tuple(cells[key] for key in sorted(cells) if wanted is None or key[0] in wanted)

    # -- tables and traces

    def traces(self) -> Mapping[str, Trace]:
        """The trace of every model."""
        return dict(self._traces)

    def newest_versions(self) -> Mapping[str, Version]:
        """The newest version of every table."""
        return {name: model.versions[-1] for name, model in self._models.items() if model.versions}

    def versions(self, table: str, since: int = 0) -> Sequence[Version]:
        """Versions newer than ``since``."""
        return tuple(version for version in self._model(table).versions if version.number > since)

    def changes(self, table: str, since: int) -> Sequence[CellChange]:
        """Changes by versions newer than ``since``."""
        found = self.changes_by_version(table, since)
        return tuple(change for changes in found.values() for change in changes)

    def changes_by_version(self, table: str, since: int) -> Mapping[int, Sequence[CellChange]]:
        """The same changes, by version."""
        found = [entry for entry in self._model(table).changes if entry[0] > since]
        numbers = sorted({number for number, _ in found})
        return {
            number: sorted(
                (replace(c, last=None) for at, c in found if at == number),
                key=lambda change: change.cell,
            )
            for number in numbers
        }

    def unchanged(self, table: str, since: int) -> Mapping[int, Sequence[Unchanged]]:
        """What versions left unchanged for readers of some columns."""
        found = self._model(table).unchanged
        return {number: some for number, some in found.items() if number > since}

    def advance(self, inputs: Mapping[str, Mapping[str, int]]) -> None:
        """Tables are right for newer versions of their inputs."""
        self._write()
        for model, versions in inputs.items():
            trace = self._traces[model]
            self._traces[model] = replace(trace, inputs={**trace.inputs, **versions})

    def versions_losing_rows(self, table: str, within: Interval) -> Sequence[int]:
        """The versions with which cells that overlap ``within`` lost rows."""
        found = {
            number
            for number, change in self._model(table).changes
            if change.removed and change.cell.overlaps(within)
        }
        return tuple(sorted(found))

    def cells(self, table: str, within: Ranges | None = None) -> Sequence[CellState]:
        """The non-empty cells now."""
        cells = self._model(table).cells
        return tuple(
            cells[cell] for cell in sorted(cells) if within is None or within.overlaps(cell)
        )

    def arrivals(self, model: str, limit: int = 1000) -> Sequence[Arrival]:
        """What arrived, newest first."""
        found = sorted(
            self._model(model).arrivals, key=lambda entry: (entry.version, entry.cell), reverse=True
        )
        return tuple(found[:limit])

    def quarantined(self, model: str) -> Sequence[QuarantinedSession]:
        """A model's sessions in quarantine, by start."""
        found = self._model(model).quarantined.values()
        return tuple(sorted(found, key=lambda held: (held.start, held.owner)))

    def left_out(self) -> Mapping[str, int]:
        """How many rows of what they read are in no session."""
        found = {name: model.left_out for name, model in self._models.items()}
        return {name: rows for name, rows in found.items() if rows is not None}

    def entries(self, model: str) -> Sequence[ManualEntry]:
        """The manual entries, by number."""
        return tuple(self._entries.get(model, ()))

    def newest_entries(self) -> Mapping[str, int]:
        """The number of the newest manual entry of each model that has any."""
        return {model: entries[-1].number for model, entries in self._entries.items()}

    def add_entries(self, model: str, entries: Iterable[ManualEntry]) -> None:
        """Add manual entries."""
        for entry in entries:
            known = self._entries.setdefault(model, [])
            number = len(known) + 1
            known.append(replace(entry, number=number, made_at=self._clock.now()))

    def keep_definitions(
        self,
        definitions: Mapping[str, Definition],
        applied: Mapping[str, str],
        adopted: Mapping[str, str],
        forward_only: Mapping[str, ForwardOnly] = MappingProxyType({}),
        environment: str = PRODUCTION,
    ) -> None:
        """Keep definitions."""
        now = self._write()
        for digest, one in definitions.items():
            self._definitions.setdefault(digest, (one, now))
        before = self._applied.get(environment, {})
        self._applied[environment] = {
            name: before[name]
            if name in before and before[name].digest == digest
            else Applied(digest, now)
            for name, digest in applied.items()
        }
        for name in before.keys() | applied.keys():
            if environment == PRODUCTION and before.get(name) != self.applied().get(name):
                self._forward_only.pop(name, None)
        self._forward_only |= forward_only
        for name, digest in adopted.items():
            of, trace = definitions[digest].fingerprint, self._traces[name]
            earlier = tuple(one for one in trace.earlier if one.definition != digest)
            trace = replace(trace, definition=digest, fingerprint=of, earlier=earlier)
            self._put_trace(trace)

    def _put_trace(self, trace: Trace) -> None:
        self._traces[trace.model] = trace
        change = self._forward_only.get(trace.model)
        if change is not None and change.digest == trace.definition:
            del self._forward_only[trace.model]

    def forward_only(self) -> Mapping[str, ForwardOnly]:
        """Those that are yet to be carried out."""
        return dict(self._forward_only)

    def definitions(self, digests: Iterable[str]) -> Mapping[str, Definition]:
        """Those that were kept."""
        return {one: self._definitions[one][0] for one in digests if one in self._definitions}

    def kept_at(self, digest: str) -> int | None:
        """When it was first kept."""
        return self._definitions[digest][1] if digest in self._definitions else None

    def applied(self, environment: str = PRODUCTION) -> Mapping[str, Applied]:
        """The definition that runs use for each model."""
        return dict(self._applied.get(environment, {}))

    def environments(self) -> Mapping[str, Environment]:
        """All environments."""
        return dict(self._environments)

    def put_environment(self, environment: Environment) -> None:
        """Record an environment."""
        self._write()
        kept = {one.key for one in environment.tables}
        self._erase_tables(environment.name, kept)
        self._environments[environment.name] = environment

    def remove_environment(self, name: str) -> None:
        """Forget an environment."""
        self._write()
        self._erase_tables(name, frozenset())
        self._environments.pop(name, None)
        self._applied.pop(name, None)

    def _erase_tables(self, environment: str, kept: Collection[str]) -> None:
        known = self._environments.get(environment)
        for key in (one.key for one in known.tables if one.key not in kept) if known else ():
            self._models.pop(key, None)
            self._traces.pop(key, None)
            self._entries.pop(key, None)
            self._audits = [one for one in self._audits if one.result.model != key]
            own = (LISTED.format(key), FULL_LISTING.format(key))
            for name in (table_name(key), FILES.format(table_name(key)), *own):
                self._locations.pop(name, None)

    def locations(self) -> Mapping[str, str]:
        """Where metadata was."""
        return dict(self._locations)

    def remember_locations(self, locations: Mapping[str, str]) -> None:
        """Keep where metadata is."""
        self._write()
        self._locations.update(locations)

    def forget(self, model: str, *, step: str | None = None) -> None:
        """Drop a model's trace, cells and files."""
        now = self._write()
        known = self._models.get(model)
        if step is not None and known is not None and known.versions:
            number = known.versions[-1].number + 1
            gone = Outcome(model, number, Trace(model, ""), whole=True)
            _commit(known, gone, self._steps[step], Interval(now, now + 1), now)
        self._traces.pop(model, None)
        self._forward_only.pop(model, None)
        for name in (table_name(model), LISTED.format(model), FULL_LISTING.format(model)):
            self._locations.pop(name, None)
        self._audits = [one for one in self._audits if one.result.model != model]
        if known is not None:
            known.cells, known.quarantined, known.left_out = {}, {}, None
            if step is None:
                known.files, known.file_cells = {}, {}

    def finish_swap(self, step: str, swap: Swap) -> None:
        """Tables are exchanged in the file only, whose rows are what is exchanged."""
        raise NotImplementedError

    def know_steps(self, steps: Mapping[str, str]) -> None:
        """Steps that were found in tables."""
        now = self._write()
        for step, model in steps.items():
            run = step.rpartition("-")[0]
            found = StepRecord(step, run, 0, model, "unknown", "done", {}, None, now, now)
            self._steps.setdefault(step, found)

    def erase_tables(self, tables: Iterable[str]) -> None:
        """Nothing is known of these tables any more, but what people entered."""
        self._write()
        for name in tables:
            self._models.pop(name, None)
            self._traces.pop(name, None)

    def contradictions(self) -> Mapping[str, str]:
        """Nothing is written twice here."""
        return {}

    def swaps(self) -> Sequence[DoneSwap]:
        """None was ever done."""
        return ()

    def forget_swap(self, id_: str) -> None:
        """None was ever done."""
        raise NotImplementedError

    def destroy(self) -> None:
        """Forget everything."""
        self._write()
        self.__init__(clock=self._clock)  # type: ignore[misc]

    def _model(self, name: str) -> _Model:
        return self._models.get(name) or _Model()


def _commit(
    model: _Model, outcome: Outcome, step: StepRecord, received: Interval, now: int
) -> None:
    changes = outcome.changes
    if outcome.whole:
        before = [(state.cell, state.rows, state.content) for state in model.cells.values()]
        changes += vanished(before, changes)
        model.cells = {}
    for change in changes:
        model.cells.pop(change.cell, None)
        if change.rows_after:
            model.cells[change.cell] = CellState(
                change.cell, change.rows_after, change.content_after, change.last
            )
    model.changes += [(outcome.version, change) for change in changes]
    if outcome.unchanged:
        model.unchanged[outcome.version] = outcome.unchanged
    model.versions.append(
        Version(
            table=outcome.model,
            number=outcome.version,
            snapshot=outcome.snapshot,
            step=step.id,
            run=step.run,
            committed_at=now,
            rows=sum(state.rows for state in model.cells.values()),
            whole=outcome.whole,
        )
    )
    if outcome.files is not None:
        model.arrivals += [
            Arrival(outcome.model, outcome.version, received, change.cell, change.added)
            for change in outcome.changes
            if change.added
        ]


def _move_files(model: _Model, files: FilesOutcome) -> None:
    moved = {*files.removed, *(file.id for file in files.ingested)}
    model.files = {id_: file for id_, file in model.files.items() if id_ not in moved}
    model.file_cells = {
        key: entry for key, entry in model.file_cells.items() if key[0] not in moved
    }
    model.files.update((file.id, file) for file in files.ingested)
    model.file_cells.update(((entry.file_id, entry.cell), entry) for entry in files.cells)
    for lost in files.dropped:
        key = (lost.file_id, lost.cell)
        if key in model.file_cells:
            entry = model.file_cells[key]
            model.file_cells[key] = replace(entry, dropped=entry.dropped + lost.dropped)
        if lost.file_id in model.files:
            file = model.files[lost.file_id]
            model.files[lost.file_id] = replace(file, dropped=file.dropped + lost.dropped)
