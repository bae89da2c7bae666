"""
A session's history: the runs that created, extended, merged or split it, and its events.

Theory. Each row of a sessions table has the number of the version that wrote it. So the history of
a session is found backwards: the version that wrote the rows in a span changed something, and the
rows that overlapped the span before it are what it changed. The span grows with them, so a
session's history is also the history of all sessions that became part of it. A removed row leaves
no mark; cells that lost rows show where to look for one.

Rules of this file: values and pure functions; the content of a table is asked of a function.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from infold.core.record import QuarantinedSession
from infold.core.sessions import NUMBERS
from infold.core.trace import Version


@dataclass(frozen=True, slots=True)
class EventBatch:
    """
    Events of a session that one version of an input added, or (None) an unknown one.

    ``files`` are some of the files that they came in, and ``more_files`` the number of others.
    ``late``: the session existed already; None where that is not known. ``rebuilt``: the input was
    rebuilt by this version, so when the events first arrived is no longer known.
    """

    version: Version | None
    events: int
    first: int
    last: int
    files: tuple[str, ...] = ()
    more_files: int = 0
    late: bool | None = None
    rebuilt: bool = False
    input: str = ""


@dataclass(frozen=True, slots=True)
class Event:
    """One event: its time, its input and the input's version that added it, and its file's id."""

    at: int
    version: int | None = None
    file: int | None = None
    input: str = ""


FILES = 2
"""How many files of an arrival are named."""


def event_batches(
    events: Iterable[Event],
    versions: Iterable[Version],
    paths: Mapping[int, str],
    read_at_creation: int | None,
    *,
    known: bool,
    name: str = "",
) -> tuple[EventBatch, ...]:
    """
    Events of the input ``name``, grouped by the version that added them, in order of arrival.

    ``read_at_creation`` is the input's version that the session was first made from. ``known``:
    it was created then; if not, earlier events may have been late nevertheless.
    """
    by_number = {version.number: version for version in versions}
    groups: dict[int | None, list[Event]] = {}
    for event in events:
        groups.setdefault(event.version, []).append(event)
    batches = []
    for number in sorted(groups, key=lambda entry: -1 if entry is None else entry):
        group = groups[number]
        version = None if number is None else by_number.get(number)
        named = [paths[one.file] for one in group if one.file is not None and one.file in paths]
        files = sorted(set(named), key=lambda path: (-named.count(path), path))
        rebuilt = version is not None and version.whole and version.number > 1
        batches.append(
            EventBatch(
                version=version,
                events=len(group),
                first=min(event.at for event in group),
                last=max(event.at for event in group),
                files=tuple(files[:FILES]),
                more_files=max(0, len(files) - FILES),
                late=None if rebuilt else _is_late(number, read_at_creation, known),
                rebuilt=rebuilt,
                input=name,
            )
        )
    return tuple(batches)


def _is_late(number: int | None, read_at_creation: int | None, known: bool) -> bool | None:
    if number is None or read_at_creation is None:
        return None
    return True if number > read_at_creation else False if known else None


class Verb(StrEnum):
    """What a run did to a session, in one word."""

    CREATED = "created"
    """There was no session at its time."""
    EXTENDED = "extended"
    """It got more events: earlier, later or between."""
    MERGED = "merged"
    """Several became one."""
    SPLIT = "split"
    """One became several."""
    REGROUPED = "regrouped"
    """Several became several others."""
    SHORTENED = "shortened"
    """It lost events."""
    MOVED = "moved"
    """It lost events at one end and got some at the other."""
    RECOMPUTED = "recomputed"
    """It has the same start and end, with other values."""
    RENUMBERED = "renumbered"
    """Only its number among the user's sessions is another."""
    REBUILT = "rebuilt"
    """The whole table was rebuilt, and the session is as before."""
    REMOVED = "removed"
    """Its events were removed, and so was the session."""
    QUARANTINED = "quarantined"
    """It grew beyond the limit and left the table."""
    RETURNED = "returned"
    """It came back from quarantine."""
    WRITTEN = "written"
    """The run wrote it as it is; how it was before is no longer kept."""


@dataclass(frozen=True, slots=True)
class Session:
    """One session at one version of the table; ``version`` is the one that wrote its row."""

    id: str
    start: int
    end: int
    version: int
    events: int | None = None
    """How many events it counts, where the model has a plain ``count(*)``."""
    values: Mapping[str, Any] = field(default_factory=dict)
    """Its other columns, in order."""

    @property
    def key(self) -> tuple[str, int, int, int]:
        """What tells rows of one table apart, over all its versions."""
        return self.id, self.start, self.end, self.version


@dataclass(frozen=True, slots=True)
class VersionChange:
    """The sessions in a span before and after one version; ``before`` None: no longer kept."""

    version: Version
    before: tuple[Session, ...] | None
    after: tuple[Session, ...]

    @property
    def span(self) -> tuple[int, int] | None:
        """From the first to the last instant of all of them."""
        return span_of((*(self.before or ()), *self.after))


@dataclass(frozen=True, slots=True)
class SessionChange:
    """What one run did: the change and the word for it."""

    verb: Verb
    change: VersionChange


@dataclass(frozen=True, slots=True)
class SessionHistory:
    """
    One session: as it is now, its events by arrival, what each run did to it.

    ``session`` is its row, ``quarantined`` its entry in quarantine (with ``why_quarantined``), or
    both. ``owner`` is the column and the value of its user or identifier. ``why_no_events`` says
    why its events are missing. ``oldest_kept`` is the oldest version with a kept snapshot, where
    older ones matter.
    """

    model: str
    id: str
    owner: tuple[str, Any]
    session: Session | None
    quarantined: QuarantinedSession | None = None
    why_quarantined: str = ""
    inputs: tuple[str, ...] = ()
    event_batches: tuple[EventBatch, ...] = ()
    why_no_events: str = ""
    session_changes: tuple[SessionChange, ...] = ()
    oldest_kept: Version | None = None
    notes: tuple[str, ...] = ()

    @property
    def start(self) -> int:
        """Its first instant, even if only a part of it stays in the table."""
        return min(self._ends)

    @property
    def end(self) -> int:
        """Its last instant."""
        return max(self._ends)

    @property
    def _ends(self) -> tuple[int, ...]:
        own = (self.session.start, self.session.end) if self.session else ()
        return (*own, *((self.quarantined.start, self.quarantined.end) if self.quarantined else ()))


@dataclass(frozen=True, slots=True)
class SessionHistories:
    """The histories found under one id; ``more_sessions`` of an identifier are not shown."""

    id: str
    histories: tuple[SessionHistory, ...]
    more_sessions: int = 0


def span_of(sessions: Iterable[Session]) -> tuple[int, int] | None:
    """From the first to the last instant of some sessions."""
    ends = [(session.start, session.end) for session in sessions]
    return (min(start for start, _ in ends), max(end for _, end in ends)) if ends else None


# -- the walk back ---------------------------------------------------------------------------------

SessionsAt = Callable[[Version, int, int], "tuple[Session, ...] | None"]
"""An owner's sessions that overlap a span, at a version; None: its snapshot is not kept."""

MayHaveLost = Callable[[Version, int, int], bool]
"""Whether rows may have left the cells around a span with a version."""


def changes_in_span(
    versions: Sequence[Version], at: SessionsAt, lost: MayHaveLost, start: int, end: int
) -> tuple[tuple[VersionChange, ...], bool]:
    """
    The changes in a span, oldest first, and whether there may be others that are no longer known.

    ``versions`` are all versions of the table, oldest first.
    """
    changes: list[VersionChange] = []
    blind = False
    after = at(versions[-1], start, end) if versions else ()
    for place in range(len(versions) - 1, -1, -1):
        version, older = versions[place], versions[place - 1] if place else None
        wrote = tuple(one for one in after or () if one.version == version.number)
        if not wrote and not lost(version, start, end):
            continue
        sessions = _before_and_after(version, older, at, start, end)
        if sessions is not None:
            changes.extend(reversed(_split_by_time(version, *sessions)))
            start, end = _widened_span((*sessions[0], *sessions[1]), start, end)
            after = sessions[0]
            continue
        blind = True
        if wrote:  # nothing of it is kept: the rows alone say who wrote them
            changes.append(VersionChange(version, None, wrote))
            break
    return tuple(reversed(changes)), blind


BeforeAndAfter = tuple[tuple[Session, ...], tuple[Session, ...]]


def _before_and_after(
    version: Version, older: Version | None, at: SessionsAt, start: int, end: int
) -> BeforeAndAfter | None:
    """
    The sessions in a span before and after a version; the span grows with sessions
    that exceed it.
    """
    while True:
        before = () if older is None else at(older, start, end)
        after = at(version, start, end)
        if after is None or before is None:
            return None
        wider = _widened_span((*before, *after), start, end)
        if wider == (start, end):
            return before, after
        start, end = wider


def _widened_span(sessions: Iterable[Session], start: int, end: int) -> tuple[int, int]:
    ends = span_of(sessions)
    return (min(start, ends[0]), max(end, ends[1])) if ends else (start, end)


def _split_by_time(
    version: Version, before: Sequence[Session], after: Sequence[Session]
) -> list[VersionChange]:
    """
    The changes of one version, in order of time: sessions that do not overlap are
    separate changes.
    """
    unchanged = {session.key for session in before} & {session.key for session in after}
    changed = [(session, False) for session in before if session.key not in unchanged]
    changed += [(session, True) for session in after if session.key not in unchanged]
    changes: list[VersionChange] = []
    reached: int | None = None
    for session, new in sorted(changed, key=lambda entry: (entry[0].start, entry[1])):
        if reached is None or session.start > reached:
            changes.append(VersionChange(version, (), ()))
        last = changes[-1]
        sessions_before, sessions_after = last.before or (), last.after
        changes[-1] = VersionChange(
            version,
            sessions_before if new else (*sessions_before, session),
            (*sessions_after, session) if new else sessions_after,
        )
        reached = session.end if reached is None else max(reached, session.end)
    return changes


# -- the word for it -------------------------------------------------------------------------------


def verb_of(change: VersionChange, *, was_held: bool = False, is_held: bool = False) -> Verb:
    """
    The word for a change.

    ``was_held`` and ``is_held``: there were events before or after, but in no session of the table,
    because they were in quarantine.
    """
    before, after = change.before, change.after
    if before is None:
        return Verb.WRITTEN
    if not before:
        return Verb.RETURNED if was_held else Verb.CREATED
    if not after:
        return Verb.QUARANTINED if is_held else Verb.REMOVED
    if len(before) == 1 and len(after) == 1:
        return _of_one(before[0], after[0], change.version)
    if len(after) == 1:
        return Verb.MERGED
    return Verb.SPLIT if len(before) == 1 else Verb.REGROUPED


def _of_one(before: Session, after: Session, version: Version) -> Verb:
    lost = after.start > before.start or after.end < before.end
    got = after.start < before.start or after.end > before.end
    if not lost and not got and None not in (before.events, after.events):
        assert before.events is not None
        assert after.events is not None
        lost, got = after.events < before.events, after.events > before.events
    if lost or got:
        return Verb.MOVED if lost and got else Verb.SHORTENED if lost else Verb.EXTENDED
    differing = set(differing_columns(before, after))
    if not differing:
        return Verb.REBUILT if version.whole else Verb.RECOMPUTED
    return Verb.RENUMBERED if differing <= set(NUMBERS) else Verb.RECOMPUTED


def differing_columns(before: Session, after: Session) -> tuple[str, ...]:
    """The columns besides id and times in which two sessions differ, or that only one has."""
    names = dict.fromkeys((*before.values, *after.values))
    nothing = object()
    return tuple(
        name
        for name in names
        if before.values.get(name, nothing) != after.values.get(name, nothing)
    )


InputVersions = Mapping[str, int]
"""Inputs, and the version up to which each was read."""


def session_changes(
    changes: Sequence[VersionChange],
    read: Mapping[int, InputVersions],
    read_before: Mapping[int, InputVersions],
    events: Sequence[Event] = (),
) -> tuple[SessionChange, ...]:
    """
    The words for some changes, oldest first.

    ``read`` maps versions of the table to the input versions that they were made from,
    ``read_before`` to those that had been read until then. ``events`` are given for a model with a
    quarantine: an event that had been read, and that no session covers, was in it.
    """

    def there(sessions: Sequence[Session], upto: InputVersions | None) -> bool:
        ends = span_of(sessions)
        return (
            ends is not None
            and upto is not None
            and any(
                event.version is not None and event.version <= upto.get(event.input, 0)
                for event in events
                if ends[0] <= event.at <= ends[1]
            )
        )

    described = []
    for change in changes:
        number, before, after = change.version.number, change.before or (), change.after
        whole = change.version.whole
        was_held = not whole and not before and there(after, read_before.get(number))
        is_held = not after and there(before, read.get(number))
        described.append(SessionChange(verb_of(change, was_held=was_held, is_held=is_held), change))
    return tuple(described)


def changes_since(
    session_changes: Sequence[SessionChange], start: int, end: int
) -> tuple[SessionChange, ...]:
    """The changes since a session is there; what was removed before belongs to another session."""
    removals = [
        place
        for place, change in enumerate(session_changes)
        if change.verb is Verb.REMOVED and _overlaps(change.change.before or (), start, end)
    ]
    return tuple(session_changes[removals[-1] + 1 if removals else 0 :])


def _overlaps(sessions: Iterable[Session], start: int, end: int) -> bool:
    return any(session.start <= end and session.end >= start for session in sessions)


# -- events by arrival -----------------------------------------------------------------------------
