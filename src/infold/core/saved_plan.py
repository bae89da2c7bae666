"""A plan that was saved to be carried out later, exactly as it was reviewed; and its JSON."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from infold.core.interval import Interval, datetime_of
from infold.core.plan import FileDiff, Observations, Plan, PlanOptions

MARK = "infold_plan"
"""The key by which a file is known as a saved plan; its value is the version of the form."""

FORM = 1

KEYS = (
    MARK,
    "project",
    "target",
    "warehouse",
    "as_of",
    "asked",
    "applied",
    "definitions",
    "versions",
    "entries",
    "files",
    "steps",
)

Files = tuple[tuple[str, str], ...]
"""Files as pairs of path and fingerprint, sorted by path."""


@dataclass(frozen=True, slots=True)
class SavedFiles:
    """The files of one model's source that a plan covers."""

    new: Files = ()
    removed: Files = ()
    due: Files = ()

    @classmethod
    def of(cls, diff: FileDiff) -> SavedFiles:
        """The files of a difference of listing and ingested files."""
        return cls(
            tuple(sorted((file.path, file.fingerprint) for file in diff.new)),
            tuple(sorted((file.path, file.fingerprint) for file in diff.removed)),
            tuple(sorted((file.path, file.fingerprint) for file in diff.come_due)),
        )


@dataclass(frozen=True, slots=True)
class SavedPlan:
    """
    What a plan followed from: if all of this is as it was, the steps are too.

    ``applied`` are the digests of the definitions that were applied before, ``definitions`` those
    that the plan was made of. ``versions`` are those of all tables, ``entries`` the newest manual
    entries, ``files`` are by model. ``steps`` are for reading.
    """

    project: str
    target: str
    warehouse: str
    as_of: int
    asked: PlanOptions
    applied: Mapping[str, str]
    definitions: Mapping[str, str]
    versions: Mapping[str, int]
    entries: Mapping[str, int]
    files: Mapping[str, SavedFiles]
    steps: tuple[Mapping[str, Any], ...] = field(default=(), compare=False)


def files_of(observed: Observations) -> Mapping[str, SavedFiles]:
    """The files that a plan from these observations covers, by model."""
    return {
        name: SavedFiles.of(model.files)
        for name, model in observed.models.items()
        if model.files is not None
    }


def steps_of(plan: Plan) -> tuple[Mapping[str, Any], ...]:
    """The steps of a plan as somebody reads them."""
    return tuple(
        {
            "model": step.model,
            "action": step.action.value,
            "cells": [str(part) for part in step.stale_cells],
            "rows": step.rows_to_read,
        }
        for step in plan.steps
    )


def text_of(saved: SavedPlan) -> str:
    """A saved plan as JSON."""
    window = saved.asked.window
    selected = saved.asked.selected
    value = {
        MARK: FORM,
        "project": saved.project,
        "target": saved.target,
        "warehouse": saved.warehouse,
        "as_of": saved.as_of,
        "as_of_text": f"{datetime_of(saved.as_of):%Y-%m-%d %H:%M:%S} UTC",
        "asked": {
            "window": None if window is None else [window.start, window.end],
            "selected": None if selected is None else sorted(selected),
            "batch_size": saved.asked.batch_size,
            "ignore_cron": saved.asked.ignore_cron,
            "full_listing": saved.asked.full_listing,
            "allow_destructive": sorted(saved.asked.allow_destructive),
            "forward_only": dict(sorted(saved.asked.forward_only.items())),
        },
        "applied": dict(sorted(saved.applied.items())),
        "definitions": dict(sorted(saved.definitions.items())),
        "versions": dict(sorted(saved.versions.items())),
        "entries": dict(sorted(saved.entries.items())),
        "files": {
            name: {"new": files.new, "removed": files.removed, "due": files.due}
            for name, files in saved.files.items()
        },
        "steps": saved.steps,
    }
    return json.dumps(value, indent=2, ensure_ascii=False) + "\n"


def plan_of_text(text: str) -> SavedPlan:
    """
    The plan that :func:`text_of` wrote.

    Raises ValueError with what is wrong: no JSON, another form, a missing key, a value of another
    kind.
    """
    try:
        value = json.loads(text)
    except (ValueError, RecursionError) as error:
        why = f"it is no JSON: {error}"
        raise ValueError(why) from None
    if not isinstance(value, dict) or MARK not in value:
        why = f"it has no key {MARK}"
        raise ValueError(why)
    if value[MARK] != FORM:
        why = f"its form is {value[MARK]}, and this infold knows {FORM}"
        raise ValueError(why)
    missing = [key for key in KEYS if key not in value]
    if missing:
        why = f"it lacks {', '.join(missing)}"
        raise ValueError(why)
    try:
        return _plan(value)
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        why = f"a value is of another kind than saved: {error}"
        raise ValueError(why) from None


def _plan(value: Mapping[str, Any]) -> SavedPlan:
    options = value["asked"]
    window, selected = options["window"], options["selected"]
    size = options["batch_size"]
    return SavedPlan(
        project=_text(value["project"]),
        target=_text(value["target"]),
        warehouse=_text(value["warehouse"]),
        as_of=_number(value["as_of"]),
        asked=PlanOptions(
            window=None if window is None else Interval(*map(_number, window)),
            selected=None if selected is None else frozenset(map(_text, selected)),
            batch_size=None if size is None else _number(size),
            ignore_cron=bool(options["ignore_cron"]),
            full_listing=bool(options.get("full_listing", False)),
            allow_destructive=frozenset(map(_text, options.get("allow_destructive", []))),
            forward_only={
                _text(name): None if at is None else _number(at)
                for name, at in options.get("forward_only", {}).items()
            },
        ),
        applied=_texts(value["applied"]),
        definitions=_texts(value["definitions"]),
        versions=_numbers(value["versions"]),
        entries=_numbers(value["entries"]),
        files={
            _text(name): SavedFiles(*(_files(files[part]) for part in ("new", "removed", "due")))
            for name, files in value["files"].items()
        },
        steps=tuple(value["steps"]),
    )


def _text(value: object) -> str:
    if not isinstance(value, str):
        raise TypeError(value)
    return value


def _number(value: object) -> int:
    if not isinstance(value, int) or isinstance(value, bool):
        raise TypeError(value)
    return value


def _texts(value: Mapping[str, object]) -> dict[str, str]:
    return {name: _text(one) for name, one in value.items()}


def _numbers(value: Mapping[str, object]) -> dict[str, int]:
    return {name: _number(one) for name, one in value.items()}


def _files(value: object) -> Files:
    if not isinstance(value, list):
        raise TypeError(value)
    return tuple((_text(path), _text(fingerprint)) for path, fingerprint in value)
