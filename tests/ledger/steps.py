"""Changes, outcomes and steps for the tests of a ledger."""

from __future__ import annotations

from infold.core.definition import Definition
from infold.core.files import FilesOutcome
from infold.core.interval import Interval
from infold.core.model import Materialization, Model
from infold.core.ports import Ledger
from infold.core.record import Outcome
from infold.core.trace import CellChange, Trace


def change(cell: Interval, rows: int, *, before: int = 0, last: int | None = None) -> CellChange:
    """``cell`` went from ``before`` rows to ``rows``."""
    return CellChange(
        cell, max(0, rows - before), max(0, before - rows), before, rows, before * 7, rows * 7, last
    )


def outcome(
    version: int, *changes: CellChange, whole: bool = False, files: FilesOutcome | None = None
) -> Outcome:
    """A commit of table ``events``."""
    return Outcome(
        "events", version, Trace("events", "f"), changes, whole=whole, snapshot=version, files=files
    )


def do(ledger: Ledger, what: Outcome, *, run: str = "r1") -> str:
    """Carry out a step of ``run`` from intent to done; its id."""
    seq = len(ledger.runs(run=run)[0].steps) + 1
    step = f"{run}-{seq}"
    ledger.begin_step(run, step, seq, what.model, "fold", {"why": ["late"]})
    ledger.prepare_step(step, what)
    ledger.finish_step(step, what)
    return step


def next_run(ledger: Ledger, run: str) -> None:
    """A later run takes the lease."""
    ledger.release()
    ledger.acquire(run)
    ledger.begin_run(run, "run", 6, {})


def kept_of(name: str, sql: str = "SELECT 1") -> Definition:
    """A definition of a view."""
    model = Model(name, Materialization.VIEW, "")
    return Definition(name, sql, f"models/{name}.sql", 4, model, None, None, None, ("a",), {}, "f")
