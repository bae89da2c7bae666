"""
Views with rows that are not deterministic: the tables that read them have to allow that.

A view stores no rows, so it cannot differ from a rebuild; a table that reads it can. So the author
of a table vouches for the views that it reads too. A model that folds cannot be allowed: it relies
on stored rows being what a rebuild would find.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from infold.analysis.names.subject import Subject
from infold.analysis.overrides import BY_SLUG, RemainingFindings, key_of_override
from infold.core.model import Kind, Override
from infold.messages.errors import InfoldError

_ANY = Override.NONDETERMINISTIC


@dataclass(slots=True)
class NondeterministicViews:
    """The nondeterministic constructs in views, and their readers that do not allow them."""

    findings: dict[str, tuple[InfoldError, ...]] = field(default_factory=dict)
    """By view, those of the views that it reads included."""
    readers: dict[str, list[tuple[str, Kind]]] = field(default_factory=dict)
    """By view, the models that read it and vouch for nothing."""
    overridden: set[str] = field(default_factory=set)
    """The views with a reader that allows their nondeterminism."""

    def put_off(self, subject: Subject, found: RemainingFindings) -> RemainingFindings:
        """The findings of a model, those of a view put off until something reads it."""
        views = [name for name in subject.tables_read if self.findings.get(name)]
        if subject.model.kind is Kind.VIEW:
            own = tuple(error for error in found.errors if BY_SLUG.get(error.slug) is _ANY)
            read = tuple(error for name in views for error in self.findings[name])
            self.findings[subject.model.name] = (*own, *read)
            return replace(found, errors=tuple(e for e in found.errors if e not in own))
        if not views:
            return found
        may = subject.model.kind in (Kind.INCREMENTAL_TABLE, Kind.TABLE)
        if may and _ANY in subject.model.overrides:
            self.overridden.update(views)
            used = tuple(sorted({*found.overrides_used, _ANY}))
            return replace(found, overrides_used=used, of_views=True)
        for name in views:
            self.readers.setdefault(name, []).append((subject.model.name, subject.model.kind))
        return found

    def unanswered(self) -> list[InfoldError]:
        """What nobody vouches for, or not all that read it do, each once."""
        passed = {id(error) for view in self.overridden for error in self.findings[view]}
        found: dict[int, tuple[InfoldError, dict[str, Kind]]] = {}
        for view, errors in self.findings.items():
            for error in errors:
                readers = self.readers.get(view, [])
                if readers or id(error) not in passed:
                    found.setdefault(id(error), (error, {}))[1].update(readers)
        for error, by in found.values():
            error.facts = (*error.facts, *_facts(by))
        return [error for error, _ in found.values()]


def _facts(by: Mapping[str, Kind]) -> tuple[tuple[str, str], ...]:
    """Who reads a view without vouching for it, and whether that helps."""
    if not set(by.values()) <= {Kind.INCREMENTAL_TABLE, Kind.TABLE}:
        return (("read by", ", ".join(by)),)
    where = f"in {', '.join(by)}" if by else "in what reads it"
    whole = {kind is Kind.TABLE for kind in by.values()}
    override = f"{key_of_override(_ANY, whole=whole == {True})}, {where}"
    if len(whole) != 1:
        override += ", with `enabled: false` where it is built whole"
    return (*((("read by", ", ".join(by)),) if by else ()), ("or vouch", override))
