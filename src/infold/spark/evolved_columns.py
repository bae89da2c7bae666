"""
Stored columns that get other names or wider types: one commit of metadata for each table.

The commit makes a snapshot too, without a change of rows. It has the step's id, so that a run that
died over it is finished by the next one; and it has the new names and types, which older snapshots
have not. Where values of a wider type hash to other numbers, the stored rows are read once for the
content of each cell; no row is written. The version counts as one that replaced the table, so that
readers see that a column is of another type.
"""

from __future__ import annotations

from collections.abc import Iterable

from pyspark.sql import types as T

from infold.analysis.names.subject import time_column
from infold.core.files import FileCell, FilesOutcome
from infold.core.interval import Granularity, Interval
from infold.core.model import Kind
from infold.core.plan import Step
from infold.core.project import Node
from infold.core.record import Outcome, Receipt
from infold.core.trace import CellChange, CellState, added_up, changes_of_rewrite
from infold.spark.content import cell_states, user_columns
from infold.spark.sessions.stored import states_of_sessions
from infold.spark.step_commit import Computed, NewColumns, commit_step
from infold.spark.step_context import Work
from infold.spark.tables.commit import retyped
from infold.spark.time_range.cell_states import states_of_cells


def carry_out_evolved(work: Work, step: Step) -> Outcome:
    """Give the columns of a table their new names and types; no row is written."""
    changes, scanned = _changes(work, step) if step.retyped else ((), 0)
    types = [
        (part.path, T.DataType.fromDDL(part.after))
        for part in step.retyped
        if not part.is_stored_alike
    ]
    columns = NewColumns(step.renamed, types, is_whole=bool(step.retyped))
    return commit_step(work, step, columns, Computed(changes, Receipt(scanned=scanned)))


def _changes(work: Work, step: Step) -> tuple[tuple[CellChange, ...], int]:
    """The cells with their contents before and after; how many rows were read for that."""
    before = tuple(work.cells(step.model))
    if all(part.keeps_hash for part in step.retyped):
        return changes_of_rewrite(before, before), 0
    node = work.project[step.model]
    parts = {part.path: T.DataType.fromDDL(part.after) for part in step.retyped}
    rows = retyped(user_columns(work.tables.read(step.model)), parts)
    after = cell_states(rows, time_column(node), node.model.granularity)
    return changes_of_rewrite(before, after.values()), sum(state.rows for state in before)


# States of longer cells are sums of those of their parts, as contents are; of others the stored
# rows are read once. The ledger keeps the rows of each file by cell too, for events.


def carry_out_rebucketed(work: Work, step: Step) -> Outcome:
    """Record the states of the new cells; no row is written, and no version is made."""
    node, before = work.project[step.model], work.cells(step.model)
    granularity = node.model.granularity
    assert granularity is not None, "only a table with cells is divided into others"
    cells = added_up(before, granularity)
    scanned = 0 if cells is not None else sum(state.rows for state in before)
    if cells is None:
        cells = _counted_states(work, node, step, granularity)
    files = _files_in_new_cells(work, node, granularity) if node.model.kind is Kind.EVENTS else None
    computed = Computed(receipt=Receipt(scanned=scanned), cells=cells, files=files)
    return commit_step(work, step, None, computed)


def _counted_states(
    work: Work, node: Node, step: Step, granularity: Granularity
) -> tuple[CellState, ...]:
    """The states of all cells, by the rows of the table."""
    rows = user_columns(work.frame(step.model, step.version - 1))
    if node.model.kind is Kind.SESSIONS:
        cells: Iterable[CellState] = states_of_sessions(rows, granularity)
    else:
        cells = states_of_cells(rows, node).cells.values()
    return tuple(sorted(cells, key=lambda state: state.cell))


def _files_in_new_cells(work: Work, node: Node, granularity: Granularity) -> FilesOutcome:
    """The files that were ingested, with their rows in the new cells."""
    return FilesOutcome(
        source=node.source or "",
        ingested=tuple(work.ledger.files(node.name)),
        cells=cells_of_files(work.ledger.file_cells(node.name), granularity),
    )


def cells_of_files(entries: Iterable[FileCell], granularity: Granularity) -> tuple[FileCell, ...]:
    """The rows of files in longer cells."""
    file_cells: dict[tuple[int, Interval], FileCell] = {}
    for entry in entries:
        cell = granularity.cell(entry.cell.start)
        known = file_cells.get((entry.file_id, cell), FileCell(entry.file_id, cell, 0))
        rows, dropped = known.rows + entry.rows, known.dropped + entry.dropped
        file_cells[entry.file_id, cell] = FileCell(entry.file_id, cell, rows, dropped)
    return tuple(file_cells.values())
