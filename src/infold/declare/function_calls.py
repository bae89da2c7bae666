"""Calls of the project's functions in the SQL of front matter, expanded there."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from infold.core.audits import Audit, AuditKind
from infold.core.functions import CalledFunction
from infold.core.model import Model
from infold.core.session_cuts import Campaign, DeclaredCut, Rule, StartEvents
from infold.core.session_rules import Sessions
from infold.declare.functions import ProjectFunctions
from infold.messages.errors import InfoldError, Spot


def with_calls_expanded(
    model: Model,
    places: Mapping[str, Spot],
    functions: ProjectFunctions,
    errors: list[InfoldError],
) -> Model:
    """A model with the calls in its keys expanded, and the functions that these call."""
    work = _Expansion(Spot(model.place.file), places, functions, errors)
    audits = tuple(map(work.audit, model.audits))
    sessions = work.sessions(model.sessions) if model.sessions else None
    called = with_called(model, *work.called)
    return replace(called, audits=audits, sessions=sessions)


def with_called(model: Model, *called: CalledFunction) -> Model:
    """A model that calls these functions too."""
    if not called:
        return model
    known = {one.name: one for one in (*model.functions, *called)}
    return replace(model, functions=tuple(known[name] for name in sorted(known)))


@dataclass(slots=True)
class _Expansion:
    at: Spot
    places: Mapping[str, Spot]
    functions: ProjectFunctions
    errors: list[InfoldError]
    called: list[CalledFunction] = field(default_factory=list)

    def audit(self, audit: Audit) -> Audit:
        """An audit's condition and expression."""
        if audit.kind is AuditKind.QUERY:
            return audit
        where = self._expanded(audit.at, audit.where)
        return replace(audit, where=where, sql=self._expanded(audit.at, audit.sql))

    def sessions(self, sessions: Sessions) -> Sessions:
        """The owner of a session, and where it ends."""
        user = sessions.user and self._of_key("sessions.user", sessions.user)
        identifier = tuple(
            self._of_key(f"sessions.identifier.{at}", sql, "sessions.identifier")
            for at, sql in enumerate(sessions.identifier)
        )
        cuts = tuple(map(self._cut, sessions.cuts))
        return replace(sessions, user=user, identifier=identifier, cuts=cuts)

    def _cut(self, cut: DeclaredCut) -> DeclaredCut:
        if isinstance(cut, StartEvents):
            return replace(cut, sql=self._of_key(f"sessions.{cut.key}", cut.sql))
        if isinstance(cut, Campaign):
            key = f"sessions.{cut.key}"
            columns = (
                self._of_key(f"{key}.columns.{at}", sql, f"{key}.{at}", key)
                for at, sql in enumerate(cut.columns)
            )
            return replace(cut, columns=tuple(columns))
        return self._rule(cut) if isinstance(cut, Rule) else cut

    def _rule(self, cut: Rule) -> Rule:
        try:
            found = self.functions.rule(self._place(f"sessions.{cut.key}"), cut.sql)
        except InfoldError as error:
            self.errors.append(error)
            return cut
        self.called.extend(found.called)
        return Rule(found.sql, found.code)

    def _of_key(self, key: str, sql: str, *others: str) -> str:
        return self._expanded(self._place(key, *others), sql)

    def _place(self, *keys: str) -> Spot:
        return next((self.places[one] for one in keys if one in self.places), self.at)

    def _expanded(self, at: Spot, sql: str) -> str:
        if not sql:
            return sql
        try:
            found, called = self.functions.expression(at, sql)
        except InfoldError as error:
            self.errors.append(error)
            return sql
        self.called.extend(called)
        return found
