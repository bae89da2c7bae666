"""Entries that people make by hand in the quarantine of sessions."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

from infold.api.opening import (
    lake_of,
    ledger_of,
)
from infold.core.interval import micros_of
from infold.core.model import Kind, table_name
from infold.core.ports import Lake, Ledger
from infold.core.project import Project
from infold.core.queries import text_literal
from infold.core.sessions import IDENTIFIER, ManualEntry, Sessions, session_id
from infold.messages import command_errors, errors


def add_quarantine_entries(
    project: Project,
    model: str,
    *,
    terms: Sequence[str],
    users: Sequence[str] = (),
    numbers: Sequence[int] = (),
    in_quarantine: bool | None,
    reason: str = "",
    force: bool = False,
) -> tuple[ManualEntry, ...]:
    """
    Put sessions into quarantine by hand, or release them (``in_quarantine`` is false).

    None takes the earlier entries about them back. Nothing is computed: the next run applies the
    new entries, as every rebuild does.

    A term is a session's id, or in sessions by identifier the identifier, which means all its
    sessions, also later ones; so do ``users`` in sessions by user and gap. ``numbers`` are entries
    about the sessions that are meant. Unknown users and identifiers are refused, unless ``force``
    says that they are to come. An entry without a reason takes that of the entry before it, if it
    does the same.

    Raises ``command_errors.not_sessions``, ``command_errors.unknown_session`` and the like.
    """
    if model not in project:
        raise command_errors.unknown_model(model, [node.name for node in project])
    sessions = project[model].model.sessions
    if project[model].model.kind is not Kind.SESSIONS or sessions is None:
        raise command_errors.not_sessions(
            model, [n.name for n in project if n.model.kind is Kind.SESSIONS]
        )
    ledger = ledger_of(project)
    finder = _SessionFinder(ledger, lake_of(project), model, sessions, force)
    if users and sessions.identifier and sessions.fallback_gap is None:
        raise command_errors.sessions_by_identifier(model=model)
    spans = [
        *(finder.sessions_of_term(term) for term in terms),
        *((finder.owner_of_user(user), None, None) for user in users),
        *(finder.sessions_of_entry(number) for number in numbers),
    ]
    entries = tuple(
        ManualEntry(
            0,
            of,
            in_quarantine,
            start,
            end,
            reason or finder.earlier_reason(of, start, end, in_quarantine),
        )
        for of, start, end in spans
    )
    ledger.add_entries(model, entries)
    return tuple(_as_shown(project, model, entry) for entry in entries)


def list_quarantine_entries(project: Project) -> Mapping[str, tuple[tuple[ManualEntry, bool], ...]]:
    """The manual entries of every model's quarantine, and whether a run has applied them."""
    ledger = ledger_of(project)
    traces = ledger.traces()
    return {
        model: tuple(
            (
                _as_shown(project, model, entry),
                model in traces and entry.number <= traces[model].applied_entry,
            )
            for entry in ledger.entries(model)
        )
        for model in sorted(ledger.newest_entries())
    }


def _as_shown(project: Project, model: str, entry: ManualEntry) -> ManualEntry:
    """An entry as shown: without the letter that separates users from identifiers."""
    declared = project[model].model.sessions if model in project else None
    fallback = declared is not None and declared.fallback_gap is not None
    return replace(entry, owner=entry.owner[1:]) if fallback else entry


class _SessionFinder:
    """Finds the owners and spans of one model's sessions by the names that people know."""

    def __init__(
        self, ledger: Ledger, lake: Lake, model: str, sessions: Sessions, force: bool
    ) -> None:
        self.lake, self.model, self.sessions, self.force = lake, model, sessions, force
        self.quarantined = ledger.quarantined(model)
        self.entries = ledger.entries(model)
        self.built = model in ledger.traces()

    def sessions_of_term(self, term: str) -> tuple[str, int | None, int | None]:
        """What a session is of and its span; no span for all sessions of an identifier."""
        for session in self.quarantined:
            if session_id(session.owner, session.start) == term:
                return session.owner, session.start, session.end
        for row in self._stored_sessions("session_id", term):
            start = _micros(row["session_start"])
            for owner in self._owners_of(row):
                if session_id(owner, start) == term:
                    return owner, start, _micros(row["session_end"])
        if not self.sessions.identifier:
            raise command_errors.unknown_session(model=self.model, session=term)
        owner = f"i{term}" if self._fallback else term
        if not self._is_known(owner, IDENTIFIER, term):
            raise command_errors.unknown_owner(model=self.model, what="identifier", value=term)
        return owner, None, None

    def owner_of_user(self, user: str) -> str:
        """
        The owner that the ledger has for a user: marked ``u`` where sessions have identifiers too.

        Raises ``unknown_owner`` where nothing of theirs is known.
        """
        owner = f"u{user}" if self._fallback else user
        if not self._is_known(owner, self.sessions.user_column, user):
            raise command_errors.unknown_owner(model=self.model, what="user", value=user)
        return owner

    def sessions_of_entry(self, number: int) -> tuple[str, int | None, int | None]:
        """The owner and the span of an entry, both ends None for all of an owner's sessions."""
        for entry in self.entries:
            if entry.number == number:
                return entry.owner, entry.start, entry.end
        raise command_errors.unknown_entry(self.model, number, [one.number for one in self.entries])

    def earlier_reason(
        self, of: str, start: int | None, end: int | None, in_quarantine: bool | None
    ) -> str:
        """The reason of the newest entry about the same sessions, if it does the same."""
        about = (
            one
            for one in reversed(self.entries)
            if one.owner == of and (start is None or end is None or one.applies_to(of, start, end))
        )
        last = next(about, None)
        return last.reason if last is not None and last.in_quarantine is in_quarantine else ""

    def _is_known(self, of: str, column: str | None, value: str) -> bool:
        """Whether there are sessions of a user or identifier, or entries about them."""
        mentioned = {one.owner for one in self.entries} | {one.owner for one in self.quarantined}
        if self.force or of in mentioned:
            return True
        return column is not None and bool(self._stored_sessions(column, value))

    @property
    def _fallback(self) -> bool:
        return self.sessions.fallback_gap is not None

    def _stored_sessions(self, column: str, value: str) -> Sequence[dict[str, Any]]:
        """A few of the stored sessions that have a value; none where the column cannot have it."""
        if not self.built:
            return []
        columns = ["session_id", "session_start", "session_end"]
        if self.sessions.identifier:
            columns.append(IDENTIFIER)
        if self.sessions.user_column:
            columns.append(self.sessions.user_column)
        where = f"`{column}` = {text_literal(value)}"
        try:
            table = self.lake.rows(table_name(self.model), columns=columns, where=where, limit=9)
        except errors.InfoldError as error:
            if error.slug != "bad-filter":
                raise
            return []
        rows: list[dict[str, Any]] = table.to_pylist()
        return rows

    def _owners_of(self, row: dict[str, Any]) -> Iterator[str]:
        """What a stored session may be of, as the ledger writes it."""
        for column, letter in ((IDENTIFIER, "i"), (self.sessions.user_column, "u")):
            value = row.get(column or "")
            if value is not None:
                text = str(value).lower() if isinstance(value, bool) else str(value)
                yield letter + text if self._fallback else text


def _micros(value: datetime) -> int:
    return micros_of(value if value.tzinfo else value.replace(tzinfo=UTC))
