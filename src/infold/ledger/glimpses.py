"""
Short looks at the ledger for pages that list much: runs without steps, steps by their ids.

``reader.runs`` reads every step of each run, which is what a history prints and more than a list
of runs needs.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from infold.core.record import RunRecord, StepRecord
from infold.ledger.query import LedgerDatabase
from infold.ledger.reader import run_of, step_of


def run_heads(database: LedgerDatabase, limit: int) -> Sequence[RunRecord]:
    """The newest runs, without their steps."""
    with database.read() as query:
        return tuple(run_of(row, ()) for row in query.all("runs", limit=limit))


def steps_by_id(database: LedgerDatabase, ids: Iterable[str]) -> Mapping[str, StepRecord]:
    """The steps with these ids, as far as they are known."""
    with database.read() as query:
        found = {id_: query.one("step", id=id_) for id_ in dict.fromkeys(ids)}
    return {id_: step_of(row) for id_, row in found.items() if row is not None}


def definition_history(database: LedgerDatabase) -> Sequence[tuple[str, str, int]]:
    """Every definition that was kept: its model, its digest, and since when; oldest first."""
    with database.read() as query:
        return tuple((model, digest, at) for model, digest, at in query.all("definition_history"))
