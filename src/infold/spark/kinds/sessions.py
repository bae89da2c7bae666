"""
Sessions by gap: the first build, and the choice between building and folding.

What islands are is in ``islands``, what a row of the table is in ``stored``, and how changed
events are folded in is in ``fold``.
"""

from __future__ import annotations

from collections.abc import Iterable

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from infold.interval import Granularity
from infold.plan import Action, Step
from infold.ports import Prepared
from infold.project import Node, SessionsQuery
from infold.record import Outcome, Receipt
from infold.spark.content import cell_of, cell_stats, column, content, micros
from infold.spark.kinds.delta import type_of
from infold.spark.kinds.fold import NULL_USER, fold, foldable, query_of, view_of
from infold.spark.kinds.islands import compiled, islands, prepared, wanted
from infold.spark.kinds.micro import quick_islands
from infold.spark.kinds.stored import FIRST, LAST, rows
from infold.spark.tables.port import Layout
from infold.spark.work import Work
from infold.trace import CellChange, CellState

LARGE = 300_000
"""From so many events on, looking at them beforehand pays."""


def carry_out(work: Work, step: Step, announce: Prepared) -> Outcome:
    """Build the table, or fold in what changed in its input since the step's trace."""
    node = work.project[step.model]
    if step.action is Action.FOLD and foldable(work, node, step):
        return fold(work, node, step, announce)
    return _build(work, node, step)


def build(events: DataFrame, query: SessionsQuery, version: int = 1, size: int = 0) -> DataFrame:
    """
    All sessions of all events, as the table stores them.

    ``size`` is about how many events there are; it decides about speed alone.
    """
    over = compiled(events, query)
    ready = prepared(events, query, over)
    if over.mergeable and size >= LARGE:
        found = quick_islands(ready, query.gap, over)
    else:
        found = islands(ready, query.gap, over)
    return rows(found, query, over, type_of(events, query.time_column), version)


def _build(work: Work, node: Node, step: Step) -> Outcome:
    """Everything anew, in one commit; what it holds is read back from the commit."""
    query = query_of(node)
    assert step.trace is not None, "a planned step says what will hold"
    name = node.inputs[0].name
    events = view_of(work, node)(work.frame(name, step.inputs[name][1]))
    read = sum(state.rows for state in work.cells(name))
    snapshot = work.tables.create(
        step.model,
        build(events, query, step.version, read),
        Layout(FIRST, Granularity.MONTH),
        work.stamp(step),
    )
    nobody = wanted(events, query).where(column(query.user).isNull()).count()
    table = work.tables.read(step.model, snapshot)
    changes = _changes(work.cells(step.model), _states(table, node))
    added = sum(change.added for change in changes)
    receipt = Receipt(
        read=read,
        scanned=read,
        written=added,
        removed=sum(change.removed for change in changes),
        set_aside=nobody,
        set_aside_by=((NULL_USER, nobody),) if nobody else (),
        cells_built=len(changes),
        cells_cut_off=sum(not change.real for change in changes),
        sessions_new=added,
        commits=1,
    )
    return Outcome(
        model=step.model,
        version=step.version,
        trace=step.trace,
        changes=changes,
        whole=True,
        snapshot=snapshot,
        receipt=receipt,
    )


def _states(table: DataFrame, node: Node) -> dict[int, CellState]:
    granularity = node.model.granularity
    stats = cell_stats(table, F.col(FIRST), granularity, last=micros(F.col(LAST)))
    found = {}
    for row in stats.collect():
        cell = cell_of(row["cell"], granularity)
        found[cell.start] = CellState(cell, row["rows"], content(row["hi"], row["lo"]), row["last"])
    return found


def _changes(before: Iterable[CellState], after: dict[int, CellState]) -> tuple[CellChange, ...]:
    """Every cell before or after: all its rows are removed, and all its rows are added."""
    old = {state.cell.start: state for state in before}
    changes = []
    for start in sorted(old.keys() | after.keys()):
        cell = (after.get(start) or old[start]).cell
        was = old.get(start, CellState(cell, 0, 0))
        now = after.get(start, CellState(cell, 0, 0))
        changes.append(
            CellChange(
                cell=cell,
                added=now.rows,
                removed=was.rows,
                rows_before=was.rows,
                rows_after=now.rows,
                content_before=was.content,
                content_after=now.content,
                last=now.last,
            )
        )
    return tuple(changes)
