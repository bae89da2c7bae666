"""
What a replaced table has left unchanged for its readers, found by comparing rows.

Once a table is replaced, its cells have other content wherever a column was added, taken away or
computed in another way. Readers that use none of these columns need not be built. For each set of
columns that some reader uses, the rows before and after are compared in these columns alone, as the
content of cells is: by sums of hashes.

Only cells with as many rows as before are compared; others are different for everybody.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from pyspark.sql import DataFrame

from infold.analysis.definitions.columns_read import ColumnsRead
from infold.analysis.names.subject import time_column
from infold.core.interval import Interval, Ranges
from infold.core.model import Kind
from infold.core.plan import Step
from infold.core.project import Node, Project
from infold.core.record import Outcome
from infold.core.trace import CellState
from infold.core.unchanged import Unchanged
from infold.spark.content import cell_states, column, rows_in_cells
from infold.spark.step_context import Work

_MOST_SETS = 16
"""Of so many sets of columns readers profit; each costs two more passes over the table's rows."""


def with_unchanged_columns(work: Work, step: Step, outcome: Outcome) -> Outcome:
    """The outcome of a step, with what it left unchanged if it replaced a table that was there."""
    if not outcome.whole or outcome.snapshot is None:
        return outcome
    old = work.snapshot(step.model, outcome.version - 1)
    cells = [c.cell for c in outcome.changes if c.changes_rows and c.rows_before == c.rows_after]
    if old is None or not cells:
        return outcome
    before, now = (work.tables.read(step.model, at) for at in (old, outcome.snapshot))
    same, node = _same_columns(before, now), work.project[step.model]
    found = []
    for columns in _columns_read(work.project, node)[:_MOST_SETS]:
        if columns <= same.keys():
            names = [same[name] for name in sorted(columns)]
            one, two = (_contents(node, rows, names, cells) for rows in (before, now))
            equal = Ranges.of(cell for cell in cells if cell in one and one[cell] == two.get(cell))
            found += [Unchanged(columns, equal)] if equal else []
    return replace(outcome, unchanged=tuple(found))


def _columns_read(project: Project, of: Node) -> list[frozenset[str]]:
    """
    The sets of columns that the readers of a table use, those of all columns left out.

    The column that puts rows into cells is always one of them.
    """
    read, time = ColumnsRead(project), time_column(of)
    found = {
        read(node.name, of.name)
        for node in project
        if node.model.kind is not Kind.VIEW
        and any(entry.name == of.name for entry in node.stored_inputs)
    }
    of_cells = {time.lower()} if time else set[str]()
    every = {columns | of_cells for columns in found if columns is not None}
    return sorted(every, key=sorted)


def _same_columns(before: DataFrame, now: DataFrame) -> Mapping[str, str]:
    """The columns that both have with one type: the lower-case name, and the name as it is now."""
    old = {field.name.lower(): field.dataType for field in before.schema.fields}
    return {
        field.name.lower(): field.name
        for field in now.schema.fields
        if old.get(field.name.lower()) == field.dataType
    }


def _contents(
    node: Node, rows: DataFrame, names: Sequence[str], cells: Sequence[Interval]
) -> Mapping[Interval, CellState]:
    """The states of some cells, seen in some columns."""
    granularity, time = node.model.granularity, time_column(node)
    near = rows if time is None else rows_in_cells(rows, time, cells, granularity)
    return cell_states(near.select(*map(column, names)), time, granularity)
