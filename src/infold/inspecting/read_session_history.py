"""
Reads a session's history: its row, its events, its table's kept snapshots, runs.

No JVM is started. What only Spark could tell (events behind views, computed owners) is reported as
missing, with the reason, unless Spark may be asked; nothing is guessed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from infold.core.interval import DAY, EVER, MAX, MIN, Interval, instants_of, show_instant
from infold.core.model import Kind, table_name
from infold.core.own_columns import FIRST, ID, LAST, VERSION
from infold.core.ports import Ledger, SnapshotReader, TimeSpan
from infold.core.project import Node, Project
from infold.core.queries import SessionsQuery
from infold.core.record import QuarantinedSession
from infold.core.sessions import IDENTIFIER
from infold.core.trace import Version
from infold.inspecting.as_built import in_force_at
from infold.inspecting.manifest import names_of_quarantined, quarantine_reasons
from infold.inspecting.session_events import UserEvents, events_of, snapshot_read
from infold.inspecting.session_history import (
    Event,
    EventBatch,
    InputVersions,
    Session,
    SessionHistories,
    SessionHistory,
    Verb,
    changes_in_span,
    changes_since,
    event_batches,
    session_changes,
)
from infold.messages import command_errors

if TYPE_CHECKING:
    import pyarrow as pa

MOST_SHOWN = 5
"""How many sessions of one identifier are shown."""

MOST_READS = 60
"""How many snapshots of a table are read for one history; older changes are left out."""

MOST_RUNS = 1000
"""How many runs are searched for the input versions of a table's version."""

SparkEventReader = Callable[
    [Node, Mapping[str, Any], Mapping[str, "int | None"], int, int], UserEvents
]
"""
The events of somebody from one instant to another, by Spark.

Given are what their sessions have, and the snapshots of the inputs to look at (None: as it is now).
"""


def read_session_histories(
    project: Project,
    ledger: Ledger,
    snapshots: SnapshotReader,
    id_: str,
    model: str | None,
    by_spark: SparkEventReader | None = None,
) -> SessionHistories:
    """
    The histories of a session, or of the sessions of an identifier, in one model or in all.

    ``by_spark`` is asked for what only Spark could tell.
    """
    nodes = [
        node for node in project if node.model.kind is Kind.SESSIONS and model in (None, node.name)
    ]
    if not nodes:
        raise command_errors.no_sessions_models()
    traces = ledger.traces()
    built = [node for node in nodes if node.name in traces]
    if not built:
        raise command_errors.not_built(name=", ".join(node.name for node in nodes))
    histories: list[SessionHistory] = []
    more = 0
    for node in built:
        reader = _HistoryReader(project, ledger, snapshots, node, by_spark)
        sessions = reader.find(id_)
        room = MOST_SHOWN - len(histories)
        histories.extend(reader.in_force_at(one.start).history(one) for one in sessions[:room])
        more += max(0, len(sessions) - room)
    if not histories:
        raise command_errors.session_nowhere(id_, [node.name for node in built])
    return SessionHistories(id_, tuple(histories), more)


@dataclass(frozen=True, slots=True)
class _FoundSession:
    """A session as it is now: its row, its entry in quarantine, or (its head stays) both."""

    id: str
    row: Session | None
    quarantined: QuarantinedSession | None

    @property
    def start(self) -> int:
        known = self.row or self.quarantined
        assert known is not None, "something was found"
        return known.start


@dataclass
class _HistoryReader:
    """Reads the histories of one model's sessions."""

    project: Project
    ledger: Ledger
    snapshots: SnapshotReader
    node: Node
    by_spark: SparkEventReader | None = None
    times: Interval = EVER
    """Since when its definition is in force, and until when: its sessions end there."""
    snapshots_read: int = 0
    kept_snapshots: frozenset[int] = frozenset()
    versions: Sequence[Version] = ()

    def __post_init__(self) -> None:
        self.kept_snapshots = self.snapshots.kept_snapshots(self.table)
        self.versions = self.ledger.versions(self.node.name)
        self._versions_losing: dict[Interval, frozenset[int]] = {}
        self._sessions_read: dict[tuple[int, int, int], tuple[Session, ...] | None] = {}

    @property
    def table(self) -> str:
        """The stored table's name, without namespace."""
        return table_name(self.node.name)

    @property
    def query(self) -> SessionsQuery:
        """What the model says a session is."""
        assert self.node.query is not None, "a sessions model has a compiled query"
        return self.node.query

    # -- the session as it is now

    def find(self, id_: str) -> list[_FoundSession]:
        """The sessions that an id means, or those of an identifier, by start."""
        rows = {row.id: _FoundSession(row.id, row, None) for row in self._find_rows(id_)}
        sessions = self.node.model.sessions
        assert sessions is not None, "a sessions model says what a session is"
        for entry in self.ledger.quarantined(self.node.name):
            session_key, identifier, _ = names_of_quarantined(sessions, entry)
            if session_key in rows:
                rows[session_key] = replace(rows[session_key], quarantined=entry)
            elif id_ in (session_key, identifier):
                rows[session_key] = _FoundSession(session_key, None, entry)
        return sorted(rows.values(), key=lambda one: (one.start, one.id))

    def _find_rows(self, id_: str) -> tuple[Session, ...]:
        """Found by the id alone in narrow columns, then read whole from the few files."""
        sessions = self.node.model.sessions
        matches = [{ID: id_}, *([{IDENTIFIER: id_}] if sessions and sessions.identifier else [])]
        ids = self.snapshots.rows_equal_to(self.table, matches, columns=[ID, FIRST])
        if not ids:
            return ()
        starts = instants_of(ids, FIRST)
        span = TimeSpan(FIRST, FIRST, min(starts), max(starts))
        return self._as_sessions(
            self.snapshots.rows_equal_to(self.table, matches, columns=self._columns, near=span)
        )

    @property
    def _columns(self) -> list[str]:
        """The columns of its table, and the version that wrote each row."""
        return [*self.query.fixed_columns, *(output.name for output in self.query.outputs), VERSION]

    def _as_sessions(self, rows: pa.Table | None) -> tuple[Session, ...]:
        """Rows of the table as sessions, by start."""
        if rows is None or VERSION not in rows.column_names:
            return ()
        counted = self._count_column
        starts, ends = instants_of(rows, FIRST), instants_of(rows, LAST)
        sessions = []
        for start, end, row in zip(starts, ends, rows.to_pylist(), strict=True):
            id_, version = row.pop(ID), row.pop(VERSION)
            for name in (FIRST, LAST):
                row.pop(name)
            sessions.append(Session(id_, start, end, version, row.get(counted or ""), row))
        return tuple(sorted(sessions, key=lambda one: one.start))

    @property
    def _count_column(self) -> str | None:
        """The column that counts all events of a session, where there is one."""
        every = {
            aggregate.name
            for aggregate in self.query.aggregates
            if aggregate.call == "count" and aggregate.argument is None and aggregate.filter is None
        }
        return next((out.name for out in self.query.outputs if out.sql.strip() in every), None)

    # -- its history

    def in_force_at(self, at: int) -> _HistoryReader:
        """The reader by the definition in force at an instant."""
        trace = self.ledger.traces()[self.node.name]
        if not trace.earlier:
            return self
        project, times = in_force_at(self.project, self.ledger, trace, at)
        of = project, self.ledger, self.snapshots, project[self.node.name], self.by_spark
        return _HistoryReader(*of, times)

    def history(self, found: _FoundSession) -> SessionHistory:
        """One session: as it is now, its events by arrival, what each run did to it."""
        match, of = self._owner_of(found)
        stored = found.quarantined or found.row
        start, end = found.start, stored.end if stored else found.start
        self.snapshots_read, self._sessions_read = 0, {}
        changes, blind = changes_in_span(
            self.versions,
            lambda version, first, last: self._sessions_at(match, version, first, last),
            self._may_have_lost,
            start,
            end,
        )
        spans = [change.span for change in changes if change.span]
        wide = (min([start, *(a for a, _ in spans)]), max([end, *(b for _, b in spans)]))
        user_events = self._events_of_user(match, *wide)
        made_from, before = self._inputs_of_versions()
        limited = self.query.quarantine_after or self.ledger.entries(self.node.name)
        done = session_changes(changes, made_from, before, user_events.events if limited else ())
        events = [event for event in user_events.events if start <= event.at <= end]
        lately = changes_since(done, start, end)
        known = bool(lately) and lately[0].verb in (Verb.CREATED, Verb.RETURNED)
        read_at_creation = made_from.get(lately[0].change.version.number, {}) if lately else {}
        groups = self._event_batches(events, read_at_creation, known=known)
        with_snapshot = [
            version for version in self.versions if version.snapshot in self.kept_snapshots
        ]
        blind = blind or (not done and len(with_snapshot) < len(self.versions))
        return SessionHistory(
            model=self.node.name,
            id=found.id,
            owner=of,
            session=found.row,
            quarantined=found.quarantined,
            why_quarantined=quarantine_reasons(self.node, self.ledger)(found.quarantined)
            if found.quarantined
            else "",
            inputs=self.inputs,
            event_batches=groups,
            why_no_events=user_events.why_missing,
            session_changes=done,
            oldest_kept=with_snapshot[0]
            if blind and with_snapshot and self.snapshots_read < MOST_READS
            else None,
            notes=tuple(self._notes(found, user_events, len(events))),
        )

    def _events_of_user(self, match: Mapping[str, Any], start: int, end: int) -> UserEvents:
        """
        The events of its user or identifier in a range of time; Spark is asked where
        it has to be.
        """
        events = events_of(self.project, self.ledger, self.snapshots, self.node, match, start, end)
        if self.by_spark is None or not events.spark_can_tell:
            return events
        snapshots = {
            entry.name: snapshot_read(self.ledger, self.snapshots, self.node, entry.name)
            for entry in self.node.inputs
        }
        return self.by_spark(self.node, match, snapshots, start, end)

    def _event_batches(
        self, events: Sequence[Event], read_at_creation: Mapping[str, int], *, known: bool
    ) -> tuple[EventBatch, ...]:
        """
        Events by the versions that added them, in order of arrival, those of all
        inputs together.
        """
        groups: list[EventBatch] = []
        for name in self.inputs:
            of_input = [event for event in events if event.input == name]
            files = {file.id: file.path for file in self.ledger.files(name)} if of_input else {}
            versions = self.ledger.versions(name)
            groups += event_batches(
                of_input, versions, files, read_at_creation.get(name), known=known, name=name
            )
        return tuple(sorted(groups, key=lambda one: one.version.committed_at if one.version else 0))

    def _owner_of(self, session: _FoundSession) -> tuple[Mapping[str, Any], tuple[str, Any]]:
        """The values that rows of the same owner have in the table, and how the owner is shown."""
        query, sessions = self.query, self.node.model.sessions
        chosen = query.chosen_user.name if query.chosen_user else query.user
        if session.row is not None:
            value = session.row.values.get(query.user)
            if value is None:  # of a user, for want of an identifier
                user = session.row.values.get(chosen)
                return {query.user: None, chosen: user}, (chosen, user)
            return {query.user: value}, (query.user, value)
        assert sessions is not None
        assert session.quarantined is not None
        _, identifier, user = names_of_quarantined(sessions, session.quarantined)
        if sessions.identifier and identifier is None:
            return {query.user: None, chosen: user}, (chosen, user)
        value = user if identifier is None else identifier
        return {query.user: value}, (query.user, value)

    def _sessions_at(
        self, match: Mapping[str, Any], version: Version, start: int, end: int
    ) -> tuple[Session, ...] | None:
        """The owner's sessions that overlap a span, at a version."""
        if version.snapshot is None:
            return ()
        place = (version.snapshot, start, end)
        if place not in self._sessions_read:
            if version.snapshot not in self.kept_snapshots or self.snapshots_read >= MOST_READS:
                return None
            self.snapshots_read += 1
            span = TimeSpan(FIRST, LAST, start, end)
            rows = self.snapshots.rows_equal_to(
                self.table, [match], columns=self._columns, near=span, snapshot=version.snapshot
            )
            self._sessions_read[place] = None if rows is None else self._as_sessions(rows)
        return self._sessions_read[place]

    def _may_have_lost(self, version: Version, start: int, end: int) -> bool:
        """Whether a session of that time may have left the table with a version."""
        around = Interval(start - DAY, end + 1)  # it is in the cell of its start
        if around not in self._versions_losing:
            self._versions_losing[around] = frozenset(
                self.ledger.versions_losing_rows(self.node.name, around)
            )
        return version.whole or version.number in self._versions_losing[around]

    @property
    def inputs(self) -> tuple[str, ...]:
        """The stored tables that its events are in."""
        return tuple(entry.name for entry in self.node.folded_inputs)

    def _inputs_of_versions(
        self,
    ) -> tuple[Mapping[int, InputVersions], Mapping[int, InputVersions]]:
        """For each version the input versions that it was made from, and those read just before."""
        numbers = {version.step: version.number for version in self.versions}
        made_from: dict[int, InputVersions] = {}
        before: dict[int, InputVersions] = {}
        last: InputVersions | None = None
        for run in reversed(self.ledger.runs(MOST_RUNS, self.node.name)):
            for step in run.steps:
                inputs = step.outcome.trace.inputs if step.outcome else {}
                read = {name: inputs[name] for name in self.inputs if name in inputs}
                if step.model != self.node.name or step.state != "done" or not read:
                    continue
                if step.id in numbers:
                    made_from[numbers[step.id]] = read
                    if last is not None:
                        before[numbers[step.id]] = last
                last = read
        return made_from, before

    def _notes(self, session: _FoundSession, events: UserEvents, event_count: int) -> Iterator[str]:
        """What one has to know to read the history right; ``event_count`` of events found."""
        if self.times != EVER:
            since, until = self.times.start > MIN, self.times.end < MAX
            ends = [f"from {show_instant(self.times.start)} on"] if since else []
            ends += [f"before {show_instant(self.times.end)}"] if until else []
            yield f"Its definition is in force {', '.join(ends)}: sessions end there."
        stored = session.quarantined or session.row
        counted = stored.events if stored else None
        # With as many events as there have to be, none is among them that should not be.
        if events.unapplied_where and counted != event_count:
            doubt = "may be among its events: only Spark can tell (`--deep`)."
            yield f"What {events.unapplied_where} leaves out {doubt}"
        for name in events.undated:
            yield f"{name} is recomputed cell by cell: no row says when it came."
        if not events.why_missing and counted not in (None, event_count):
            yield f"The session counts {counted:,} events; {event_count:,} are found now."
        traced, heads = self.ledger.traces()[self.node.name].inputs, self.ledger.newest_versions()
        for name in self.inputs:
            head, read = heads.get(name), traced.get(name)
            if head is not None and read is not None and head.number > read:
                yield (
                    f"{name} has moved on to version {head.number}; {self.node.name} has read it "
                    f"up to version {read}: `infold run` folds in what came since."
                )
        if session.quarantined is not None and session.row is not None:
            yield "Its head stays in the table: changes are shown for the head alone."
        if self.snapshots_read >= MOST_READS:
            yield f"{MOST_READS} snapshots were read: older changes are not shown."
