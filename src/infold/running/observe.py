"""
Observes sources, tables and the ledger: everything that a plan follows from, without a JVM.

Each :class:`Observer` lists a source once. So a run, which observes again after each step, ends
even while files keep arriving: files that arrive meanwhile are ingested by the next run.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, TypeVar

from infold.core.definition import How, Redefinition
from infold.core.files import without_rows
from infold.core.interval import MIN, Interval, Ranges
from infold.core.model import Kind, Source, table_name
from infold.core.plan import (
    Action,
    ChangedKeyRows,
    FileDiff,
    InputDiff,
    ModelObservation,
    Observations,
)
from infold.core.project import Node, Project, Stretch
from infold.core.record import RunRecord
from infold.core.trace import (
    UNKNOWN,
    CellChange,
    CellState,
    Trace,
    Version,
    changes_of_rewrite,
    was_dropped,
)
from infold.messages import errors, run_errors
from infold.messages.errors import InfoldError
from infold.planning.forward_only import by_definitions_in_force, inputs_in_force
from infold.planning.retention import retained_since
from infold.running.damaged_tables import DAMAGED, Damage, given_up_if_damaged
from infold.running.ledger_consistency import foreign_tables, refuse_other_project
from infold.running.read_columns import InputChanges
from infold.running.source_listings import (
    SourceListings,
    UnlistedError,
    listed_by_policy,
    redefined_files,
)

if TYPE_CHECKING:
    from infold.core.erasure import ErasureRequest
    from infold.core.ports import Lake, Ledger
    from infold.running.source_listings import (
        Count,
        DatedLook,
        EstimateCells,
        Listing,
        Redefinitions,
    )

Seen = TypeVar("Seen")

_OF_OWN_ROWS = {action.value for action in Action if action.of_own_rows}

VANISHED = "{0}: its table was dropped, not by infold; all of it is rebuilt"
"""The note on a table that was dropped."""


@dataclass
class Observer:
    """Observes one project; each source is listed at most once in its life."""

    project: Project
    ledger: Ledger
    lake: Lake
    listing: Listing
    as_of: int
    estimate: EstimateCells | None = None
    restated: frozenset[str] = frozenset()
    """Models that are to be built again although nothing that they read may have changed."""
    count_rows: Count | None = None
    removals_allowed: bool = False
    """Whether this run may remove any part of a source."""
    redefinitions: Redefinitions = lambda _: {}
    """Where no change is known, each model with another fingerprint is rebuilt."""
    stretches: Callable[[Trace], tuple[Stretch, ...]] = lambda _: ()
    """The cells with rows of earlier definitions; raises where one is not understood."""
    unrecovered: Mapping[str, errors.InfoldError] = field(default_factory=dict)
    """Models with a table that a dead run may have written to, and that cannot be looked at."""
    damage: Damage = field(init=False)
    compared: dict[str, str] = field(default_factory=dict)
    """Listings with exactly a model's ingested files, to keep as locations; see ``LISTED``."""
    dated: DatedLook | None = None
    """Lists sources without some of their dated folders; None: all are listed."""
    full_listing: bool = False
    other_files: Callable[[Source], str] = lambda _: ""
    """Says which files are where no file of a source is found."""
    _locations: Mapping[str, str] = field(default_factory=dict)
    """The ledger's locations when the observation began: one read for all tables."""
    _refused: dict[str, errors.InfoldError] = field(default_factory=dict)
    empty: dict[str, str] = field(default_factory=dict)
    """Notes on sources without a file, as the looks found them."""
    _others: dict[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.damage = Damage(self.ledger, self.lake)

    def observe(self) -> Observations:
        """
        The present state of everything.

        Raises the errors that :meth:`observe_all` only notes for a table or a source, and those
        that it raises.
        """
        observed = self.observe_all()
        if len(observed.refused) > 1:
            raise errors.InfoldErrors(observed.refused.values())
        for error in observed.refused.values():
            raise error
        return observed

    def observe_all(self) -> Observations:
        """
        The present state of everything, and the models that cannot be observed, each with the
        error.

        Raises InfoldError where ledger and tables do not belong together (see
        ``ledger_consistency``).
        """
        refuse_other_project(self.project, self.ledger)
        traces = self.ledger.traces()
        heads = self.ledger.newest_versions()
        entries = self._newest_entries()
        self._locations = self.ledger.locations()
        moved = self._moved_tables(heads)
        self._refused = {n: error for n, error in self.unrecovered.items() if n in self.project}
        self._refused |= foreign_tables(self.project, self.ledger, self.lake, heads, moved)
        lost = self._lost(traces, heads, moved)
        traces = {name: trace for name, trace in traces.items() if name not in lost}
        damaged = self.damage.find(self.project, heads, moved)
        self._refused |= {name: damaged[name] for name in damaged if name not in lost}
        retyped = without_retyped_inputs(self.project, self._changes, self.lake, traces, heads)
        traces |= retyped.traces
        self._refused = {**retyped.unreadable, **self._refused}
        changes = self.redefinitions(traces)
        traces = {name: self._restamped(trace, changes) for name, trace in traces.items()}
        redefined = {n: change for n, change in changes.items() if change.how is not How.RESTAMP}
        for name, change in redefined.items():
            if change.refused is not None:
                self._refused.setdefault(name, change.refused)
        erasures = self._unapplied_erasures(traces, entries)
        models = {
            node.name: replace(
                self._observe_model(
                    node,
                    traces.get(node.name),
                    heads,
                    entries.get(node.name, 0),
                    redefined.get(node.name),
                ),
                erasures=erasures.get(node.name, ()),
                inputs_kept=frozenset(
                    entry.name
                    for entry in node.stored_inputs
                    if entry.name in redefined
                    and not getattr(traces.get(node.name), "earlier", ())
                    and self._changes.keeps(node, entry.name, redefined[entry.name])
                ),
            )
            for node in self.project
            if node.model.kind.is_stored
        }
        notes = (*lost.values(), *self.empty.values())
        return Observations(self.as_of, models, notes, dict(self._refused))

    def _newest_entries(self) -> Mapping[str, int]:
        """
        The number of the newest entry by model: in a quarantine by hand, or a request to erase.

        Raises what :func:`refuse_other_erasures` raises.
        """
        known = self.ledger.known_erasures()
        if not known.newest:
            return self.ledger.newest_entries()
        from infold.running.erasures import newest_request, refuse_other_erasures

        refuse_other_erasures(self.project, known)
        erased = {
            node.name: newest_request(self.project, known, node)
            for node in self.project
            if node.model.kind is Kind.EVENTS
        }
        return {**self.ledger.newest_entries(), **erased}

    def _unapplied_erasures(
        self, traces: Mapping[str, Trace], entries: Mapping[str, int]
    ) -> Mapping[str, tuple[ErasureRequest, ...]]:
        """The requests that built tables of events have yet to apply, by model."""
        behind = {
            name: trace
            for name, trace in traces.items()
            if name in self.project
            and self.project[name].model.kind is Kind.EVENTS
            and trace.applied_entry < entries.get(name, 0)
        }
        if not behind:
            return {}
        from infold.running.erasures import unapplied_requests

        requests = self.ledger.erasures(min(trace.applied_entry for trace in behind.values()))
        return {
            name: unapplied_requests(self.project, self.project[name], trace, requests)
            for name, trace in behind.items()
        }

    def _restamped(self, trace: Trace, changes: Mapping[str, Redefinition]) -> Trace:
        """The trace, as of the present definition if the rows are proven to be the same by it."""
        change = changes.get(trace.model)
        if change is None or change.how is not How.RESTAMP:
            return trace
        return replace(trace, fingerprint=self.project[trace.model].fingerprint)

    def check_ledger(self) -> Mapping[str, errors.InfoldError]:
        """
        The tables that are not as the ledger says, each with the error, without listing any source.

        Raises what :meth:`observe_all` raises.
        """
        refuse_other_project(self.project, self.ledger)
        self._newest_entries()
        heads = self.ledger.newest_versions()
        moved = self._moved_tables(heads)
        foreign = foreign_tables(self.project, self.ledger, self.lake, heads, moved)
        return {**self.damage.find(self.project, heads, moved), **foreign}

    def vanished(self) -> tuple[str, ...]:
        """Models with a table that somebody else dropped: it is not in the catalog any more."""
        heads = self.ledger.newest_versions()
        models = self._vanished(self.ledger.traces(), heads, self._moved_tables(heads))
        return tuple(name for name in models if name not in self.project.shared)

    def lost(self) -> Mapping[str, str]:
        """Models with a table that is to be rebuilt as somebody else dropped or damaged it: why."""
        heads = self.ledger.newest_versions()
        reasons = self._lost(self.ledger.traces(), heads, self._moved_tables(heads))
        return {name: why for name, why in reasons.items() if name not in self.project.shared}

    def _lost(
        self,
        traces: Mapping[str, Trace],
        heads: Mapping[str, Version],
        moved: Mapping[str, str | None],
    ) -> Mapping[str, str]:
        vanished = self._vanished(traces, heads, moved)
        damaged = self.damage.find(self.project, heads, moved)
        changes = self.redefinitions(traces) if damaged else {}
        given_up = (
            name for name in damaged if given_up_if_damaged(self.project, changes.get(name))
        )
        return {
            **{name: VANISHED.format(name) for name in vanished},
            **{name: DAMAGED.format(name) for name in given_up},
        }

    def _vanished(
        self,
        traces: Mapping[str, Trace],
        heads: Mapping[str, Version],
        moved: Mapping[str, str | None],
    ) -> tuple[str, ...]:
        built = [node.name for node in self.project if node.name in traces and node.name in heads]
        return tuple(
            name
            for name in built
            if heads[name].snapshot is not None and moved.get(table_name(name), "") is None
        )

    def _moved_tables(self, heads: Mapping[str, Version]) -> Mapping[str, str | None]:
        """
        Tables with another metadata location than the ledger has; None where they do
        not exist.
        """
        known = self.ledger.locations()
        return self.lake.moved_tables({t: known.get(t, "") for t in map(table_name, heads)})

    def _observe_model(
        self,
        node: Node,
        trace: Trace | None,
        heads: Mapping[str, Version],
        entries: int,
        change: Redefinition | None,
    ) -> ModelObservation:
        head = heads.get(node.name)
        node = node if trace is None else node.starting(trace.retention.start)
        fresh = trace is None or trace.fingerprint != node.fingerprint
        # Files are ingested again, unless rows of earlier definitions stay, or are to stay.
        stays = change.effective_from is not None if change else bool(trace and trace.earlier)
        reingest = (fresh or node.name in self.restated) and not stays
        earlier = self._stretches_of(node, trace, change)
        # What follows from stored sessions is up to date with versions read before, so it matters
        # what changed since.
        stored = (How.REFOLD, How.DERIVE) if node.model.kind is Kind.SESSIONS else ()
        rebuilt = fresh and (change is None or change.how not in stored)
        inputs = tuple(
            self._input_diff(node, name, trace, heads, earlier, fresh=rebuilt)
            for name in inputs_in_force(node, earlier)
        )
        if any(diff.changes for diff in inputs):  # what one changes is built from the others too
            inputs = tuple(
                diff if diff.cells else replace(diff, cells=tuple(self.ledger.cells(diff.name)))
                for diff in inputs
            )
        files = None
        if node.model.kind is Kind.EVENTS and node.name not in self.project.shared:
            # Most files are as they were. All are asked for where not only other files make it due.
            every = change is not None or node.name in self.restated or bool(earlier)
            every = every or any(diff.changes for diff in inputs) or bool(trace and trace.pending)
            files = self._file_diff(node, first=head is None, fresh=reingest, every=every)
            if change is not None and change.how is How.DERIVE:
                files = replace(files, cells=tuple(self.ledger.file_cells(node.name)))
            files = replace(files, redefined=redefined_files(self.ledger, trace, files))
        incremental = node.model.incremental
        waits = incremental is not None and incremental.cron is not None
        cells: Sequence[CellState] = ()
        if waits or (fresh and trace is not None):
            cells = self.ledger.cells(node.name)
        elif files and files.estimate:  # whether new rows are late
            within = Ranges.of(state.cell for state in files.estimate)
            cells = self.ledger.cells(node.name, within)
        run = self._run_behind(node, head)
        snapshots = node.versions.snapshot_files if node.versions is not None else None
        return ModelObservation(
            trace=trace,
            version=head.number if head else 0,
            files=files,
            inputs=inputs,
            cells=tuple(cells),
            rows=head.rows if head else 0,
            as_of=run.as_of if run else None,
            unfinished=run is not None and run.state != "done",
            newest_entry=entries,
            earlier=earlier,
            redefined=change,
            snapshots=without_rows(self.ledger.files(snapshots.source)) if snapshots else (),
            snapshots_read=tuple(self.ledger.files(node.name)) if snapshots else (),
            has_states=self._has_states(node),
            expired=tuple(self._expired_cells(node)) if trace is not None else (),
        )

    def _expired_cells(self, node: Node) -> Iterator[CellState]:
        """The cells with rows that are older than they, or the events of sessions, are kept."""
        if node.name in self.project.shared:
            return
        of_sessions = node.model.kind is Kind.SESSIONS
        inputs = {entry.name for entry in node.stored_inputs}
        by = (one for one in self.project if one.name in inputs) if of_sessions else (node,)
        since = max((retained_since(self.project, one, self.as_of) for one in by), default=MIN)
        if since > MIN:
            for state in self.ledger.cells(node.name, Ranges((Interval(MIN, since),))):
                if state.rows and (of_sessions or state.cell.end <= since):
                    yield state

    def _has_states(self, node: Node) -> bool:
        """Whether rows may follow from the states that they have, of this definition."""
        from infold.core.own_columns import state_mark

        if node.grouped is None or node.grouped.followed is None:
            return False
        known = self._tried(node.name, None, lambda: self.lake.metadata(table_name(node.name)))
        return known is not None and known.state == state_mark(node.fingerprint)

    def _tried(self, model: str, otherwise: Seen, look: Callable[[], Seen]) -> Seen:
        """What a look finds; the model is refused where that has an error."""
        try:
            return look()
        except errors.InfoldError as error:
            self._refused.setdefault(model, error)
            return otherwise

    def _stretches_of(
        self, node: Node, trace: Trace | None, change: Redefinition | None
    ) -> tuple[Stretch, ...]:
        """The stretches of a table; it is refused where one is not understood any more."""
        trace = trace and by_definitions_in_force(node, trace, change)
        return () if trace is None else self._tried(trace.model, (), lambda: self.stretches(trace))

    def _run_behind(self, node: Node, head: Version | None) -> RunRecord | None:
        """
        The run behind a model's newest version, where a cron asks for it.

        None if it is not done and that version is of stored rows alone: the inputs are yet to be
        read.
        """
        incremental = node.model.incremental
        if head is None or incremental is None or incremental.cron is None:
            return None
        run = next(iter(self.ledger.runs(1, run=head.run)), None)
        if run is None or run.state == "done":
            return run
        is_own = any(step.id == head.step and step.action in _OF_OWN_ROWS for step in run.steps)
        return None if is_own else run

    def _input_diff(
        self,
        node: Node,
        name: str,
        trace: Trace | None,
        heads: Mapping[str, Version],
        earlier: Sequence[Stretch],
        *,
        fresh: bool,
    ) -> InputDiff:
        head = heads[name].number if name in heads else 0
        since, changes = trace.inputs.get(name, 0) if trace else 0, tuple[CellChange, ...]()
        if not fresh:
            since, changes = self._changes.since(node, name, since, head, earlier)
        if trace is not None and trace.keeps_cells and not (fresh or changes):
            changes = self._retyped_cells(node, name, trace, heads)
            since = trace.inputs[name] if changes else since
        pending = bool(trace and trace.pending)
        needs_cells = changes or fresh or pending or node.name in self.restated
        cells = tuple(self.ledger.cells(name)) if needs_cells else ()
        # A table that was dropped meanwhile has no snapshot left that its reader has read.
        dropped_since = bool(changes) and was_dropped(self.ledger.versions(name, since))
        keys = ChangedKeyRows(everywhere=True) if dropped_since and node.matches_of(name) else None
        return InputDiff(name, since, head, changes, cells, dropped_since, keys)

    def _retyped_cells(
        self, node: Node, name: str, trace: Trace, heads: Mapping[str, Version]
    ) -> tuple[CellChange, ...]:
        """
        All cells of an input as changes, if only types of it have changed that a model reads.

        Hashes may be alike then although values are not: those of 100 and 1.00 as decimals. A table
        with cells of earlier definitions is not built as a whole: its cells are, by their own ones.
        """
        if name not in trace.inputs:
            return ()
        retyped = self._tried(
            node.name,
            False,
            lambda: _is_retyped(node, name, trace, heads, self._changes, self.lake),
        )
        return changes_of_rewrite((), self.ledger.cells(name)) if retyped else ()

    @cached_property
    def _changes(self) -> InputChanges:
        return InputChanges(self.project, self.ledger)

    @cached_property
    def _sources(self) -> SourceListings:
        return SourceListings(
            *(self.ledger, self.listing, self.dated, self.as_of, self.compared),
            full=self.full_listing,
        )

    def _note_empty(self, node: Node, source: Source, *, first: bool) -> None:
        """Note a source that never had a file; the first build from it is refused."""
        there = self._others.setdefault(source.name, "") or self.other_files(source)
        self._others[source.name] = there
        if first:
            wrong = run_errors.no_file_matches(source=source.name, pattern=source.path, there=there)
            self._refused.setdefault(node.name, wrong)
            return
        said = f"{source.name}: no file matches {source.path}"
        self.empty[source.name] = f"{said}; {there}" if there else said

    def _file_diff(self, node: Node, *, first: bool, fresh: bool, every: bool) -> FileDiff:
        source = self.project.sources[node.source or node.name]
        try:
            listed, changes = self._sources.changes(
                node.name, source, self._locations, everything=fresh or every
            )
        except UnlistedError as error:
            self._refused.setdefault(node.name, error.known_as)
            return FileDiff(source=source.name, as_of=self.as_of)
        has_files = listed.files or listed.settling or listed.left_out or changes.removed
        if not (has_files or source.is_table or source.url or source.may_be_empty):
            self._note_empty(node, source, first=first)
        # What is lost is told as a part of all.
        every = every or fresh or bool(changes.lost or changes.replaced)
        ingested = tuple(self.ledger.files(node.name)) if every else ()
        new = listed_by_policy(listed.files, ingested, source) if fresh else changes.changed
        estimate = None
        granularity = node.model.granularity
        if new and self.estimate is not None and granularity is not None:
            estimate = self.estimate(source, new, granularity, self.as_of)
        if estimate is not None and node.start is not None:
            estimate = (
                tuple(cell for cell in estimate[0] if cell.cell.end > node.start),
                estimate[1],
            )
        count = self.count_rows if changes.replaced and not self.removals_allowed else None
        return FileDiff(
            source=source.name,
            new=new,
            removed=changes.removed,
            come_due=() if fresh else changes.due,
            settling=len(listed.settling),
            unchanged=changes.unchanged,
            estimate=None if estimate is None else estimate[0],
            future_rows=0 if estimate is None else estimate[1],
            as_of=self.as_of,
            ingested=ingested,
            lost=changes.lost,
            row_counts={} if count is None else count(source, changes.replaced),
            removals_allowed=self.removals_allowed,
            of_table=source.is_table,
            folders=listed.folders,
            folders_left_out=len(listed.left_out),
        )


# Row hashes do not always tell a type from a wider one, and a table may have no rows yet. Nothing
# in the contents of cells says then that a rebuild would give the model's own columns other types.
# The metadata of the tables does.


@dataclass(frozen=True)
class RetypedInputs:
    """What became of traces, and the inputs whose metadata cannot be read, each with the error."""

    traces: dict[str, Trace] = field(default_factory=dict)
    """By model, those that hold no longer: their fingerprint unknown, without a definition."""
    unreadable: dict[str, InfoldError] = field(default_factory=dict)


def without_retyped_inputs(
    project: Project,
    changes: InputChanges,
    lake: Lake,
    traces: Mapping[str, Trace],
    heads: Mapping[str, Version],
) -> RetypedInputs:
    """
    The traces that hold no longer, as a column that the model reads is of another type.

    A table with cells of earlier definitions is not built as a whole: see ``_retyped_cells``. Where
    its own columns would be of other types, the next step is refused.
    """
    inputs = RetypedInputs()
    for node in project:
        trace = traces.get(node.name)
        if trace is None or trace.fingerprint != node.fingerprint or node.name in project.shared:
            continue
        if trace.keeps_cells:
            continue
        for name in trace.inputs:
            try:
                retyped = _is_retyped(node, name, trace, heads, changes, lake)
            except InfoldError as error:
                inputs.unreadable[name] = error
                continue
            if retyped:
                inputs.traces[node.name] = replace(trace, fingerprint=UNKNOWN, definition="")
                break
    return inputs


def _is_retyped(
    node: Node,
    name: str,
    trace: Trace,
    heads: Mapping[str, Version],
    changes: InputChanges,
    lake: Lake,
) -> bool:
    """
    Whether only types of an input have changed, and one of a column that the model reads.

    Up to the version that a step would begin with: it compares the types from there on itself.
    """
    read, head = trace.inputs[name], heads.get(name)
    if not read or head is None or head.number <= read:
        return False
    versions = changes.ledger.versions(name, read - 1)
    whole = min((one.number for one in versions if one.whole and one.number > read), default=None)
    if whole is None:
        return False
    since, changed = changes.since(node, name, read, head.number)
    last = since if changed else head.number
    snapshots = {version.number: version.snapshot for version in versions}
    before, after = snapshots.get(read), snapshots.get(last)
    if before is None or after is None or last < whole:
        return False
    old, new = (
        {column.lower(): type_ for column, type_ in columns.items()}
        for columns in (lake.columns(table_name(name), at) for at in (before, after))
    )
    retyped = {column for column in old.keys() & new.keys() if old[column] != new[column]}
    columns = changes.columns(node.name, name) if retyped else None
    return bool(retyped if columns is None else retyped & columns)
