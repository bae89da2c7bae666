"""
A table as the ledger had it at one moment, and the snapshot with its rows of then.

A comparison takes minutes, and runs go on beside it. So all that is known of a table is read
together when its turn comes, and its rows are those of one snapshot, whatever a run does meanwhile.
Nothing here needs Spark, and no lease is taken: runs are not to wait for who only looks.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from infold.core.files import IngestedFile
from infold.core.model import Kind, table_name
from infold.core.ports import Lake, Ledger
from infold.core.project import Node, Project
from infold.core.record import QuarantinedSession
from infold.core.trace import CellState, Trace, Version
from infold.running.ledger_consistency import late_step

TRIES = 3
"""How often something is looked at that runs change meanwhile."""

Marks = Mapping[str, tuple[Trace | None, Version | None]]
"""The trace and the newest version of a model, and of its inputs: each step changes one of them."""


@dataclass(frozen=True, slots=True)
class Moment:
    """
    What the ledger knew of a built model, all of it at once.

    ``snapshot`` has the rows of that (None: of a table that has none). ``dropped`` are those of the
    model and its inputs with a table that was dropped outside infold.
    """

    trace: Trace
    snapshot: int | None
    cells: Sequence[CellState]
    files: Sequence[IngestedFile]
    quarantined: Sequence[QuarantinedSession]
    dropped: frozenset[str]
    marks: Marks

    def is_past(self, ledger: Ledger) -> bool:
        """Whether a run has changed the model or one of its inputs since."""
        return _marks(self.trace, ledger.traces(), ledger.newest_versions()) != self.marks


def moment_of(project: Project, ledger: Ledger, lake: Lake, node: Node) -> Moment | None:
    """The present moment of a model; None if it was never built."""
    found = None
    for _ in range(TRIES):  # a step may end between two of the questions
        traces, heads = ledger.traces(), ledger.newest_versions()
        trace = traces.get(node.name)
        if trace is None:
            return None
        marks = _marks(trace, traces, heads)
        found = Moment(
            trace,
            _snapshot(ledger, lake, heads.get(node.name)),
            ledger.cells(node.name),
            ledger.files(node.name) if node.model.kind is Kind.EVENTS else (),
            ledger.quarantined(node.name) if node.model.kind is Kind.SESSIONS else (),
            _dropped(project, lake, marks),
            marks,
        )
        if not found.is_past(ledger):
            break
    return found


def _marks(trace: Trace, traces: Mapping[str, Trace], heads: Mapping[str, Version]) -> Marks:
    return {name: (traces.get(name), heads.get(name)) for name in (trace.model, *trace.inputs)}


def _snapshot(ledger: Ledger, lake: Lake, head: Version | None) -> int | None:
    """
    The snapshot with the rows of the newest version.

    That is the table's own newest, which may have them in fewer files, or what somebody else wrote.
    Where a step has committed already that the ledger does not count yet, it is the version's.
    """
    now = None if head is None else lake.metadata(table_name(head.table))
    if head is None or now is None:
        return None
    begun = head.step in now.steps and [*now.steps][-1] != head.step
    by_others = now.foreign is not None or late_step(ledger, head, now) is not None
    return head.snapshot if begun and not by_others else now.snapshot


def _dropped(project: Project, lake: Lake, marks: Marks) -> frozenset[str]:
    built = [
        name
        for name, (trace, head) in marks.items()
        if name in project and name not in project.shared
        if trace is not None and head is not None and head.snapshot is not None
    ]
    there = lake.moved_tables({table_name(name): "" for name in built})
    return frozenset(name for name in built if there.get(table_name(name), "") is None)
