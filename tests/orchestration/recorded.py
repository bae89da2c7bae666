"""What infold says to schedulers, for the command in its place."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

GRAPH = {
    "project": "shop", "target": "prod",
    "nodes": [
        {"name": "raw.clicks", "kind": "source", "reads": [], "columns": ["id", "ts"]},
        {"name": "clicks", "kind": "events", "reads": ["raw.clicks"], "granularity": "day"},
        {"name": "recent", "kind": "view", "reads": ["clicks"]},
        {
            "name": "daily", "kind": "table", "reads": ["recent"],
            "description": "One row per day.", "tags": ["report"], "columns": ["day", "clicks"],
            "incremental": True, "granularity": "day", "start": "2024-03-01T00:00:00Z",
            "audits": [
                {"name": "not_null", "severity": "error"},
                {"name": "row_count", "severity": "warn"},
            ],
        },
        {"name": "users", "kind": "table", "reads": ["clicks"], "incremental": False},
    ],
}  # fmt: skip
"""A project with each kind of model that a scheduler treats in its own way."""


def error(slug: str, exit_code: int, **more: Any) -> dict[str, Any]:
    """An error as ``--json`` prints it."""
    return {"slug": slug, "what": "this", "facts": {}, "todo": "", "exit_code": exit_code, **more}


def step(model: str, *cells: tuple[str | None, str | None], written: int = 3) -> dict[str, Any]:
    """A step of a run."""
    receipt = {"written": written, "seconds": 1.5}
    return {"model": model, "action": "build", "cells": list(map(list, cells)), "receipt": receipt}


def says(folder: Path, name: str, **how: Any) -> None:
    """Let the command in infold's place do something when it is called so."""
    (folder / f"{name}.json").write_text(json.dumps(how))


def lay_out_stand_in(folder: Path) -> Path:
    """A folder for the command in infold's place, with an end of each kind."""
    folder.mkdir()
    says(folder, "dag", result=GRAPH)
    plan = {"steps": [step("clicks"), step("daily")], "refused": [], "rows": 3, "unapplied": []}
    says(folder, "plan", result=plan)
    done = {"step": 1, "model": "daily", "action": "build", "receipt": {"written": 3, "seconds": 1}}
    says(
        folder,
        "run",
        result={"steps": [step("daily")], "receipt": {"set_aside": 2}, "states": ["much"]},
        log=[{"event": "step_done", **done}],
    )
    says(folder, "run-locked", code=3, result={"error": error("locked", 3)})
    says(folder, "run-wrong", code=2, result={"error": error("unknown-key", 2)})
    says(folder, "run-nothing", result={"steps": []})
    says(folder, "run-killed", sleep=60, stops_caller=True)
    says(folder, "run-slow", sleep=60)
    says(folder, "verify", code=4, result={"equal": False, "models": []})
    return folder
