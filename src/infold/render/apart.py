"""Tables that are built apart, in words."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from infold.core.project import Project
from infold.core.report import BuiltApart


def apart_text(one: BuiltApart) -> str:
    """How far a table is: ``being built apart: 2 of 9 days (1.2 MB), replaces … when complete``."""
    unit = one.granularity.value if one.granularity is not None else "cell"
    size = f" ({one.bytes / 1_000_000:,.1f} MB)" if one.bytes else ""
    many = f"{one.built:,} of {one.cells:,} {unit if one.cells == 1 else unit + 's'}"
    return f"being built apart: {many}{size}, replaces {one.model} when complete"


def apart_note(one: BuiltApart) -> str:
    """The same as a note of a run or a plan."""
    return f"{one.model}: {apart_text(one)}; until then readers have the old table"


def apart_json(one: BuiltApart) -> Mapping[str, Any]:
    """The same for programs."""
    return {
        "model": one.model,
        "table": one.key,
        "built": one.built,
        "cells": one.cells,
        "bytes": one.bytes,
    }


def waiting_notes(project: Project) -> tuple[str, ...]:
    """What is said of models whose definition waits for a table that is built apart."""
    tables = ", ".join(sorted(project.apart.values()))
    said = f"its definition waits until the table of {tables} is replaced"
    return tuple(f"{name}: {said}" for name in project.waits)
