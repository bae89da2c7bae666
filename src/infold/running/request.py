"""What a run was asked for, and how the ledger writes it down."""

from __future__ import annotations

import time
import uuid
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from infold.core.plan import Action, PlanOptions, Step
from infold.core.record import Receipt
from infold.core.report import ModelState


@dataclass(frozen=True)
class Request:
    """What a run was asked for."""

    options: PlanOptions = field(default_factory=PlanOptions)
    max_rows: int | None = None
    wait: float = 0.0
    command: str = "run"
    allow_refresh: bool = False
    """Whether tables of a protected target may be rebuilt."""
    fail_fast: bool = False
    """Whether the first failure ends the run."""
    allow_removals: bool = False
    """Whether any part of a source may be removed."""


def is_selected(request: Request, entry: ModelState) -> bool:
    """Whether a run was asked for this model."""
    return request.options.selected is None or entry.model in request.options.selected


MOST_STEPS = 3


def new_id() -> str:
    """An id for a run: its start to the second, for people, and a random part."""
    return time.strftime("%Y%m%dT%H%M%S", time.gmtime()) + "-" + uuid.uuid4().hex[:6]


def still_asked(asked: PlanOptions, done: Sequence[tuple[Step, Receipt]]) -> PlanOptions:
    """
    What is still to be done: a restated model that was begun has it in its trace now.

    A backfill that was begun ends where its first step said, however many batches that takes.
    """
    begun = {step.model for step, _ in done if step.action is not Action.DERIVE}
    left = {name: cells for name, cells in asked.restated.items() if name not in begun}
    upto = {
        step.model: step.backfill_end for step, _ in reversed(done) if step.backfill_end is not None
    }
    return replace(asked, restated=left, backfill_ends=upto)


def same_work(step: Step, other: Step) -> bool:
    """Whether two steps repeat the same work, as batches of one model do not."""
    return step.model == other.model and (step.batches, step.cells) == (other.batches, other.cells)


def request_detail(request: Request) -> dict[str, Any]:
    """A request as the ledger keeps it, in plain values."""
    asked = request.options
    return {
        "window": str(asked.window) if asked.window else None,
        "selected": sorted(asked.selected) if asked.selected is not None else None,
        "max_rows": request.max_rows,
        "batch_size": asked.batch_size,
        "ignore_cron": asked.ignore_cron,
        "forward_only": dict(asked.forward_only),
        "restated": {
            name: [[part.start, part.end] for part in cells]
            for name, cells in asked.restated.items()
        },
    }


def step_detail(step: Step) -> dict[str, Any]:
    """A step as the ledger keeps it, in plain values."""
    return {
        "cells": [[part.start, part.end] for part in step.cells],
        "reasons": [
            {"cause": reason.cause.value, "detail": reason.detail, "rows": reason.rows}
            for reason in step.reasons
        ],
        "inputs": {name: list(pair) for name, pair in step.inputs.items()},
        "version": step.version,
    }
