"""
Tables divided into other cells: the same rows, and other states in the ledger.

States of longer cells are sums of those of their parts, as contents are; of others the stored rows
are read once. The ledger keeps the rows of each file by cell too, for events.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from pyspark.sql import functions as F

from infold.core.files import FileCell, FilesOutcome
from infold.core.interval import Granularity, Interval
from infold.core.model import Kind
from infold.core.plan import Step
from infold.core.ports import Prepared
from infold.core.project import Node
from infold.core.record import Outcome, Receipt
from infold.core.session_columns import FIRST, LAST
from infold.core.trace import CellState, added_up
from infold.spark.content import cell_of, cell_stats, content, micros, user_columns
from infold.spark.step_context import Work
from infold.spark.time_range.cell_states import states_of_cells


def carry_out_rebucketed(work: Work, step: Step, prepared: Prepared) -> Outcome:
    """Record the states of the new cells; no row is written, and no version is made."""
    node, before = work.project[step.model], work.cells(step.model)
    granularity = node.model.granularity
    assert granularity is not None, "only a table with cells is divided into others"
    assert step.trace is not None, "a planned step has a trace"
    cells = added_up(before, granularity)
    scanned = 0 if cells is not None else sum(state.rows for state in before)
    if cells is None:
        cells = _counted(work, node, step, granularity)
    outcome = Outcome(
        step.model,
        step.version,
        step.trace,
        committed=False,
        receipt=Receipt(scanned=scanned),
        cells=cells,
    )
    if node.model.kind is Kind.EVENTS:
        outcome = replace(outcome, files=_files(work, node, granularity))
    return prepared(outcome)


def _counted(work: Work, node: Node, step: Step, granularity: Granularity) -> tuple[CellState, ...]:
    """The states of all cells, by the rows of the table."""
    rows = user_columns(work.frame(step.model, step.version - 1))
    if node.model.kind is not Kind.SESSIONS:
        return tuple(state for _, state in sorted(states_of_cells(rows, node).cells.items()))
    stats = cell_stats(rows, F.col(FIRST), granularity, last=micros(F.col(LAST)))
    return tuple(
        CellState(
            cell_of(row["cell"], granularity),
            row["rows"],
            content(row["hi"], row["lo"]),
            row["last"],
        )
        # At most a row for each cell.
        for row in stats.orderBy("cell").collect()
    )


def _files(work: Work, node: Node, granularity: Granularity) -> FilesOutcome:
    """The files that were ingested, with their rows in the new cells."""
    return FilesOutcome(
        source=node.source or "",
        ingested=tuple(work.ledger.files(node.name)),
        cells=cells_of_files(work.ledger.file_cells(node.name), granularity),
    )


def cells_of_files(entries: Iterable[FileCell], granularity: Granularity) -> tuple[FileCell, ...]:
    """The rows of files in longer cells."""
    found: dict[tuple[int, Interval], FileCell] = {}
    for entry in entries:
        cell = granularity.cell(entry.cell.start)
        known = found.get((entry.file_id, cell), FileCell(entry.file_id, cell, 0))
        rows, dropped = known.rows + entry.rows, known.dropped + entry.dropped
        found[entry.file_id, cell] = FileCell(entry.file_id, cell, rows, dropped)
    return tuple(found.values())
