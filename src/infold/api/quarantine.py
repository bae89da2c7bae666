"""Entries that people make by hand in the quarantine of sessions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from infold.api.opening import (
    lake_of,
    ledger_of,
)
from infold.core.project import Project
from infold.core.sessions import ManualEntry


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

    None takes the earlier entries about them back. The next run applies the new entries. See
    :func:`infold.inspecting.manual_entries.manual_entries_for`.
    """
    from infold.inspecting.manual_entries import manual_entries_for

    ledger = ledger_of(project)
    entries = manual_entries_for(
        project,
        ledger,
        lake_of(project),
        model,
        terms=terms,
        users=users,
        numbers=numbers,
        in_quarantine=in_quarantine,
        reason=reason,
        force=force,
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
