"""Environments, promotes, and how the definitions of models changed."""

from __future__ import annotations

from difflib import unified_diff
from itertools import islice

from infold.api.environments import list_environments
from infold.core.definition import Definition
from infold.core.definition_text import digest_of
from infold.core.project import Project
from infold.declare.definitions import definitions_of
from infold.ledger import SqlLedger
from infold.ledger.glimpses import definition_history
from infold.page.shapes import JsonObject, instant
from infold.render.environments import environments_json
from infold.render.formatting import iso

CHANGES = 200
"""How many changes of definitions are shown, the newest."""

LINES = 400
"""How many lines of one change are shown."""


def changes_document(project: Project, ledger: SqlLedger) -> JsonObject:
    """The environments of the target, its swaps, and the definitions that were kept."""
    return {
        **environments_json(list_environments(project)),
        "swaps": [
            {
                "kind": one.kind.value,
                "environment": one.environment,
                "made_at": iso(one.made_at),
                "models": sorted(one.kept),
            }
            for one in ledger.swaps()
        ],
        "waiting": _waiting(project, ledger),
        "unapplied": list(project.unapplied),
        "definitions": _changes(project, ledger),
    }


def _waiting(project: Project, ledger: SqlLedger) -> list[JsonObject]:
    """The definitions of the project that no run has applied yet, against those that were."""
    applied = {name: one.digest for name, one in ledger.applied().items()}
    bodies = ledger.definitions(applied.values())
    found = []
    for name, now in definitions_of(project).items():
        was = bodies.get(applied.get(name, ""))
        # Not by digests: a newer infold writes fields that older texts lack.
        if was is not None and was != now:
            found.append(
                {"model": name, "lines": _lines(was, now), "keys": _changed_keys(was, now)}
            )
    return found


def _changes(project: Project, ledger: SqlLedger) -> list[JsonObject]:
    """Each kept definition with what is different from the one before it, newest first."""
    kept = definition_history(ledger.database)
    bodies = ledger.definitions(digest for _, digest, _ in kept)
    applied = {name: one.digest for name, one in ledger.applied().items()}
    now = {name: digest_of(one) for name, one in definitions_of(project).items()}
    before: dict[str, Definition] = {}
    found: list[JsonObject] = []
    for model, digest, at in kept:
        body, was = bodies.get(digest), before.get(model)
        found.append(
            {
                "model": model,
                "digest": digest[:12],
                "kept_at": instant(at),
                "first": was is None,
                "applied": applied.get(model) == digest,
                "in_files": now.get(model) == digest,
                "lines": _lines(was, body),
                "keys": _changed_keys(was, body),
            }
        )
        if body is not None:
            before[model] = body
    return found[-CHANGES:][::-1]


def _lines(was: Definition | None, body: Definition | None) -> list[str]:
    """The query, by what was removed and added."""
    if body is None:
        return []
    if was is None:
        return [f" {line}" for line in body.sql.strip("\n").splitlines()[:LINES]]
    old, new = (one.sql.strip("\n").splitlines() for one in (was, body))
    return list(islice(unified_diff(old, new, lineterm="", n=3), 2, LINES))


def _changed_keys(was: Definition | None, body: Definition | None) -> list[str]:
    """What else of a declaration is different: the names of its fields."""
    if was is None or body is None:
        return []
    fields = type(body.model).__dataclass_fields__
    own = [name for name in fields if getattr(was.model, name) != getattr(body.model, name)]
    beside = ("source", "start", "backfill_limit", "columns", "views")
    return own + [name for name in beside if getattr(was, name) != getattr(body, name)]
