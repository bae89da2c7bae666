"""A session's history on a screen, and as a shape for programs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from infold.core.interval import DAY, HOUR, MINUTE, SECOND, datetime_of, show_instant
from infold.core.record import QuarantinedSession
from infold.core.sessions import ManualEntry
from infold.inspecting.session_history import (
    EventBatch,
    Session,
    SessionChange,
    SessionHistories,
    SessionHistory,
    Verb,
    VersionChange,
    differing_columns,
)
from infold.render import formatting
from infold.render.formatting import iso
from infold.render.table import cell, table_screen

JsonObject = dict[str, Any]

_SHOWN = 3
"""How many values that changed are shown."""

_LONG = 24
"""How many session_changes of a long history are shown: the newest."""


def session_history_screen(value: SessionHistories) -> str:
    """Each session as it is now, its events by arrival, what each run did to it."""
    parts = [_history_text(history) for history in value.histories]
    if value.more_sessions:
        many = formatting.count(value.more_sessions, "more session")
        parts.append(f"{many} of {value.id}: name one by its session_id.")
    return "\n\n\n".join(parts)


def _history_text(history: SessionHistory) -> str:
    parts = [
        f"session {history.id} of {history.model}" + ", in quarantine" * bool(history.quarantined),
        "\n".join(formatting.columns(_facts(history))),
        _events_block(history),
        _changes_text(history),
        "\n".join(_notes(history)),
    ]
    return "\n\n".join(part for part in parts if part)


def _facts(history: SessionHistory) -> list[tuple[str, str]]:
    name, value = history.owner
    facts = [(name, cell(value))]
    if history.quarantined is not None:
        if history.why_quarantined:
            facts.append(("in quarantine", history.why_quarantined))
        facts += [
            ("first event", _instant_text(history.quarantined.start)),
            ("last event", _end_text(history)),
        ]
        facts.append(("events", f"{history.quarantined.events:,}"))
        if history.session is None:
            return [*facts, ("stored", f"nothing in {history.model}")]
        stays = _span_text(history.session.start, history.session.end, history)
        facts.append(("stored", f"its head: {stays}"))
    else:
        facts += [
            ("session_start", _instant_text(history.start)),
            ("session_end", _end_text(history)),
        ]
    assert history.session is not None, "what is not in quarantine has a row"
    rest = [(key, cell(one)) for key, one in history.session.values.items() if key != name]
    return [*facts, *rest]


def _end_text(history: SessionHistory) -> str:
    lasts = (
        f", {_length_text(history.end - history.start)} later"
        if history.end > history.start
        else ""
    )
    return _instant_text(history.end) + lasts


def _events_block(history: SessionHistory) -> str:
    if history.why_no_events:
        return f"Its events are omitted: {history.why_no_events}."
    total = sum(group.events for group in history.event_batches)
    if not total:
        return f"None of its events are in {_input_names(history)} any more."
    rows = []
    for group in history.event_batches:
        version = group.version
        rows.append(
            (
                formatting.clock(version.committed_at) if version else "not known when",
                version.run if version else "",
                _events_text(group.events),
                _span_text(group.first, group.last, history),
                _batch_note(group),
                group.input if len(history.inputs) > 1 else "",
            )
        )
    title = f"Its {formatting.count(total, 'event')} in {_input_names(history)}, by arrival"
    lines = [title if total > 1 else f"Its event in {_input_names(history)}"]
    for line, group in zip(
        formatting.columns(rows, right=(2,)), history.event_batches, strict=True
    ):
        lines.append(line)
        if group.files:
            lines.append(f"{' ' * 23}{_file_names(group)}")
    return "\n".join(lines)


def _input_names(history: SessionHistory) -> str:
    return " and ".join(history.inputs)


def _batch_note(group: EventBatch) -> str:
    if group.rebuilt:
        return "rebuilt then"
    return "late" if group.late else ""


def _file_names(group: EventBatch) -> str:
    named = ", ".join(group.files)
    return f"from {named} and {group.more_files:,} more" if group.more_files else f"from {named}"


def _changes_text(history: SessionHistory) -> str:
    if not history.session_changes:
        if history.oldest_kept is None:
            return f"It was never in {history.model}: it was in quarantine from the first."
        return f"No version of {history.model} that is kept contains it."
    shown = _grouped_by_run(history.session_changes)
    earlier = shown[:-_LONG]
    shown = shown[-_LONG:]
    aligned = iter(
        formatting.columns(
            [row for session_changes in shown for row in _session_rows(session_changes, history)],
            (2,),
            indent=6,
        )
    )
    lines = ["What runs did to it"]
    if earlier:
        lines.append(
            f"  {formatting.count(len(earlier), 'earlier change')} not shown (--json shows all)"
        )
    for session_changes in shown:
        version = session_changes[0].change.version
        done = _VERB_TEXTS[session_changes[0].verb]
        lines.append(f"  {formatting.clock(version.committed_at)}  {version.run}  {done}")
        lines += [next(aligned) for _ in _session_rows(session_changes, history)]
        lines += [
            f"           {text}" for change in session_changes for text in _value_lines(change)
        ]
    return "\n".join(lines)


def _grouped_by_run(session_changes: Sequence[SessionChange]) -> list[list[SessionChange]]:
    """Changes of one kind by one run, each of another session, in one group."""
    groups: list[list[SessionChange]] = []
    for change in session_changes:
        last = groups[-1][-1] if groups else None
        if (
            last is not None
            and change.verb in _GROUPED_VERBS
            and (change.verb, change.change.version) == (last.verb, last.change.version)
        ):
            groups[-1].append(change)
        else:
            groups.append([change])
    return groups


_GROUPED_VERBS = frozenset(
    (
        Verb.CREATED,
        Verb.REMOVED,
        Verb.QUARANTINED,
        Verb.RETURNED,
        Verb.REBUILT,
        Verb.WRITTEN,
    )
)

_VERB_TEXTS = {
    **{verb: verb.value for verb in Verb},
    Verb.QUARANTINED: "put into quarantine",
    Verb.RETURNED: "came back from quarantine",
    Verb.REBUILT: "rebuilt with the whole table, unchanged",
    Verb.WRITTEN: "written as it was then; its earlier history is no longer kept",
}


def _session_rows(
    session_changes: Sequence[SessionChange], history: SessionHistory
) -> list[tuple[str, str, str, str]]:
    """The sessions before and after, one a line; unchanged ones are shown once."""
    changes = [session_change.change for session_change in session_changes]
    now = [one for change in changes for one in change.after]
    if session_changes[0].verb in (Verb.RECOMPUTED, Verb.RENUMBERED, Verb.REBUILT):
        return _labelled_rows("is", now, history)
    was = [one for change in changes for one in change.before or ()]
    return [*_labelled_rows("was", was, history), *_labelled_rows("now", now, history)]


def _labelled_rows(
    word: str, sessions: Sequence[Session], history: SessionHistory
) -> list[tuple[str, str, str, str]]:
    return [_session_row("" if at else word, one, history) for at, one in enumerate(sessions)]


def _session_row(word: str, session: Session, history: SessionHistory) -> tuple[str, str, str, str]:
    counted = "" if session.events is None else _events_text(session.events)
    return word, _span_text(session.start, session.end, history), counted, session.id[:8]


def _events_text(events: int) -> str:
    """A number of events, aligned with others below it."""
    return f"{events:,} event{' ' if events == 1 else 's'}"


def _value_lines(change: SessionChange) -> list[str]:
    """The values that a recomputed session has now and had before."""
    if change.verb not in (Verb.RECOMPUTED, Verb.RENUMBERED):
        return []
    lines = []
    for was, now in zip(change.change.before or (), change.change.after, strict=False):
        differing = differing_columns(was, now)
        for name in differing[:_SHOWN]:
            values = cell(now.values.get(name)), cell(was.values.get(name))
            lines.append(f"{name} is {values[0]}, was {values[1]}")
        if len(differing) > _SHOWN:
            lines.append(f"and {len(differing) - _SHOWN} more columns differ")
    return lines


def _notes(history: SessionHistory) -> list[str]:
    notes = list(history.notes)
    if history.oldest_kept is not None:
        first = history.oldest_kept
        notes.append(
            f"Snapshots of {history.model} are kept from its version {first.number} "
            f"({formatting.clock(first.committed_at)}) on:\n"
            "of earlier runs, only the events that they brought are known."
        )
    return notes


def _instant_text(at: int) -> str:
    """An instant to the second, with the fraction that it has."""
    text = formatting.clock(at)
    return text + datetime_of(at).strftime(".%f").rstrip("0") if at % SECOND else text


def _span_text(start: int, end: int, history: SessionHistory) -> str:
    """From one instant to another; without the day where the whole history is of one."""
    first, last = _instant_text(start), _instant_text(end)
    if _days_covered(history) == 1:
        first, last = first[11:], last[11:]
    elif first[:10] == last[:10]:
        last = last[11:]
    return first if start == end else f"{first} to {last}"


def _days_covered(history: SessionHistory) -> int:
    every = [change.span for change in _version_changes(history)]
    starts = [history.start, *(span[0] for span in every if span)]
    ends = [history.end, *(span[1] for span in every if span)]
    return max(ends) // DAY - min(starts) // DAY + 1


def _version_changes(history: SessionHistory) -> list[VersionChange]:
    return [change.change for change in history.session_changes]


def _length_text(length: int) -> str:
    """How long something lasted, in its two largest units."""
    if length < SECOND:
        return f"{length / SECOND:g} s"
    units = ((DAY, "d"), (HOUR, "h"), (MINUTE, "min"), (SECOND, "s"))
    parts: list[str] = []
    for unit, name in units:
        number, length = divmod(length, unit)
        if number or parts:
            parts.append(f"{number} {name}" if number else "")
    return " ".join(part for part in parts[:2] if part)


# -- for programs ----------------------------------------------------------------------------------


def session_history_shape(value: SessionHistories) -> JsonObject:
    """What ``infold explain session ID --json`` prints."""
    return {
        "id": value.id,
        "sessions": [_history_shape(history) for history in value.histories],
        "more": value.more_sessions,
    }


def _history_shape(history: SessionHistory) -> JsonObject:
    name, of = history.owner
    return {
        "model": history.model,
        "session_id": history.id,
        "of": {"column": name, "value": of},
        "session_start": iso(history.start),
        "session_end": iso(history.end),
        "row": None if history.session is None else dict(history.session.values),
        "quarantine": None
        if history.quarantined is None
        else _quarantine_shape(history.quarantined, history.why_quarantined),
        "input": ", ".join(history.inputs),
        "arrivals": [_event_batch_shape(group) for group in history.event_batches],
        "why_no_events": history.why_no_events,
        "runs": [_session_change_shape(change) for change in history.session_changes],
        "kept_from": history.oldest_kept.number if history.oldest_kept else None,
        "notes": list(history.notes),
    }


def _quarantine_shape(session: QuarantinedSession, why: str) -> JsonObject:
    return {
        "start": iso(session.start),
        "end": iso(session.end),
        "events": session.events,
        "reason": why,
    }


def _event_batch_shape(group: EventBatch) -> JsonObject:
    version = group.version
    return {
        "input": group.input,
        "version": version.number if version else None,
        "run": version.run if version else None,
        "received_at": iso(version.committed_at) if version else None,
        "events": group.events,
        "first": iso(group.first),
        "last": iso(group.last),
        "late": group.late,
        "rebuilt": group.rebuilt,
        "files": list(group.files),
        "more_files": group.more_files,
    }


def _session_change_shape(session_change: SessionChange) -> JsonObject:
    change = session_change.change
    return {
        "verb": session_change.verb.value,
        "version": change.version.number,
        "run": change.version.run,
        "at": iso(change.version.committed_at),
        "before": None if change.before is None else [_session_shape(one) for one in change.before],
        "after": [_session_shape(one) for one in change.after],
    }


def _session_shape(session: Session) -> JsonObject:
    return {
        "session_id": session.id,
        "session_start": iso(session.start),
        "session_end": iso(session.end),
        "events": session.events,
    }


ManualEntries = Mapping[str, Sequence[tuple[ManualEntry, bool]]]
"""By model, manual entries and whether a run has applied them."""


def entries_screen(model: str, entries: Sequence[ManualEntry]) -> str:
    """What ``infold quarantine add``, ``release`` or ``auto`` wrote down."""
    head, then = _DONE_BY_ACTION[entries[0].action]
    lines = [f"{head}, in {model}:"]
    lines += [
        f"  {entry_text(entry)}{f': {entry.reason}' if entry.reason else ''}" for entry in entries
    ]
    lines.append(f"`infold run` {then.format(model)}.")
    return "\n".join(lines)


_DONE_BY_ACTION = {
    "add": ("Into quarantine", "takes them out of {}"),
    "release": ("Released", "brings them back to {}"),
    "auto": ("Taken back", "goes by quarantine_after again, in {}"),
}


def quarantine_screen(quarantined: Sequence[Mapping[str, Any]], manual: ManualEntries) -> str:
    """The sessions in quarantine, then the manual entries, newest last."""
    columns = list(quarantined[0]) if quarantined else []
    rows = [list(row.values()) for row in quarantined]
    parts = [
        table_screen("quarantined_sessions", columns, rows)
        if quarantined
        else "No session is in quarantine."
    ]
    lines = [
        [
            f"{entry.number:,}",
            model,
            entry.action,
            entry_text(entry),
            formatting.clock(entry.made_at),
            "" if applied else "with the next run",
            entry.reason,
        ]
        for model, entries in manual.items()
        for entry, applied in entries
    ]
    if lines:
        parts += ["", "By hand", *formatting.columns(lines, right=[0], indent=2)]
    return "\n".join(parts)


def entry_text(entry: ManualEntry) -> str:
    """Which sessions an entry is about."""
    if entry.start is None or entry.end is None:
        return f"all sessions of {entry.owner}"
    return f"the session of {entry.owner}, {show_instant(entry.start)} to {show_instant(entry.end)}"


def quarantine_json(
    quarantined: Sequence[Mapping[str, Any]],
    manual: ManualEntries,
) -> dict[str, Any]:
    """Sessions in quarantine, and the manual entries with whether a run has applied them."""
    return {
        "quarantined_sessions": [
            {
                name: value.isoformat().replace("+00:00", "Z")
                if isinstance(value, datetime)
                else value
                for name, value in row.items()
            }
            for row in quarantined
        ],
        "entries": [
            {
                "model": model,
                "number": entry.number or None,
                "action": entry.action,
                "of": entry.owner,
                "start": formatting.iso(entry.start),
                "end": formatting.iso(entry.end),
                "reason": entry.reason,
                "made_at": formatting.iso(entry.made_at or None),
                "applied": applied,
            }
            for model, entries in manual.items()
            for entry, applied in entries
        ],
    }
