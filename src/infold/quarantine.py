"""
What people say of sessions by hand: which sessions they mean, and that it is written down.

Nothing is computed here. An entry is one more thing that a table follows from, beside the events:
the next run heeds it, and so does every rebuild.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from typing import Any

from infold import errors
from infold.interval import micros
from infold.manual import ManualEntry, session_id
from infold.model import IDENTIFIER, Kind, Sessions, table_name
from infold.ports import Lake, Ledger
from infold.project import Project


def entries(
    project: Project,
    ledger: Ledger,
    lake: Lake,
    model: str,
    *,
    terms: Sequence[str],
    users: Sequence[str] = (),
    held: bool,
    reason: str = "",
) -> tuple[ManualEntry, ...]:
    """
    Entries about the sessions that people name, in the words of the ledger.

    A term is a session's id, or in sessions by identifier the identifier, which means all its
    sessions, also those to come; so do ``users`` in sessions by user and gap. Raises
    ``errors.not_sessions`` and ``errors.unknown_session``.
    """
    if model not in project:
        raise errors.unknown_model(model, [node.name for node in project])
    said = project[model].model.sessions
    if project[model].model.kind is not Kind.SESSIONS or said is None:
        raise errors.not_sessions(model, [n.name for n in project if n.model.kind is Kind.SESSIONS])
    finder = _Finder(ledger, lake, model, said)
    if users and said.identifier and said.fallback_gap is None:
        raise errors.sessions_by_identifier(model)
    spans = [
        *(finder.meant(term) for term in terms),
        *((finder.user(user), None, None) for user in users),
    ]
    return tuple(ManualEntry(0, of, held, start, end, reason) for of, start, end in spans)


class _Finder:
    """Finds what sessions of one model are of, by the names that people know them by."""

    def __init__(self, ledger: Ledger, lake: Lake, model: str, said: Sessions) -> None:
        self.lake, self.model, self.said = lake, model, said
        self.held = ledger.quarantined(model)
        self.built = model in ledger.traces()

    def meant(self, term: str) -> tuple[str, int | None, int | None]:
        """What a session is of and its span; no span for all sessions of an identifier."""
        for one in self.held:
            if session_id(one.of, one.start) == term:
                return one.of, one.start, one.end
        for row in self._stored(term):
            start = _at(row["session_start"])
            for of in self._named(row):
                if session_id(of, start) == term:
                    return of, start, _at(row["session_end"])
        if not self.said.identifier:
            raise errors.unknown_session(self.model, term)
        return (f"i{term}" if self._fallback else term), None, None

    def user(self, user: str) -> str:
        """What the sessions of a user are of."""
        return f"u{user}" if self._fallback else user

    @property
    def _fallback(self) -> bool:
        return self.said.fallback_gap is not None

    def _stored(self, term: str) -> Sequence[dict[str, Any]]:
        if not self.built:
            return []
        wanted = ["session_id", "session_start", "session_end"]
        if self.said.identifier:
            wanted.append(IDENTIFIER)
        if self.said.user_column:
            wanted.append(self.said.user_column)
        quoted = term.replace("'", "''")
        found = self.lake.rows(
            table_name(self.model), columns=wanted, where=f"session_id = '{quoted}'"
        )
        rows: list[dict[str, Any]] = found.to_pylist()
        return rows

    def _named(self, row: dict[str, Any]) -> Iterator[str]:
        """What a stored session may be of, as the ledger writes it."""
        for column, letter in ((IDENTIFIER, "i"), (self.said.user_column, "u")):
            value = row.get(column or "")
            if value is not None:
                text = str(value).lower() if isinstance(value, bool) else str(value)
                yield letter + text if self._fallback else text


def _at(value: datetime) -> int:
    return micros(value if value.tzinfo else value.replace(tzinfo=UTC))
