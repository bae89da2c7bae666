"""
Stored columns that get other names or wider types: one commit of metadata for each table.

The commit makes a snapshot too, without a change of rows. It has the step's id, so that a run that
died over it is finished by the next one; and it has the new names and types, which older snapshots
have not. Where values of a wider type hash to other numbers, the stored rows are read once for the
content of each cell; no row is written. The version counts as one that replaced the table, so that
readers see that a column is of another type.
"""

from __future__ import annotations

from collections.abc import Sequence

from pyspark.sql import DataFrame
from pyspark.sql import types as T

from infold.analysis.names.subject import time_column
from infold.core.plan import Step
from infold.core.ports import Prepared
from infold.core.record import Outcome, Receipt
from infold.core.trace import CellChange, changes_of_rewrite
from infold.core.widened_types import Retyping
from infold.spark.content import cell_states, column, user_columns
from infold.spark.step_context import Work


def carry_out(work: Work, step: Step, prepared: Prepared) -> Outcome:
    """Give the columns of a table their new names and types; no row is written."""
    assert step.trace is not None, "a planned step has a trace"
    changes, scanned = _changes(work, step) if step.retyped else ((), 0)
    receipt = Receipt(commits=1, scanned=scanned)
    outcome = Outcome(
        step.model,
        step.version,
        step.trace,
        changes=changes,
        whole=bool(step.retyped),
        receipt=receipt,
    )
    outcome = prepared(outcome)
    types = [
        (part.path, T.DataType.fromDDL(part.after))
        for part in step.retyped
        if not part.is_stored_alike
    ]
    snapshot = work.tables.evolve(step.model, step.renamed, types, work.stamp(step))
    return Outcome(
        outcome.model,
        outcome.version,
        outcome.trace,
        changes=outcome.changes,
        whole=outcome.whole,
        snapshot=snapshot,
        receipt=outcome.receipt,
    )


def _changes(work: Work, step: Step) -> tuple[tuple[CellChange, ...], int]:
    """The cells with their contents before and after; how many rows were read for that."""
    before = tuple(work.cells(step.model))
    if all(part.keeps_hash for part in step.retyped):
        return changes_of_rewrite(before, before), 0
    node = work.project[step.model]
    rows = _retyped(user_columns(work.tables.read(step.model)), step.retyped)
    after = cell_states(rows, time_column(node), node.model.granularity)
    return changes_of_rewrite(before, after.values()), sum(state.rows for state in before)


def _retyped(rows: DataFrame, parts: Sequence[Retyping]) -> DataFrame:
    """The rows with their columns of the new types."""
    columns = []
    for field in rows.schema:
        inner = {
            part.path[1:]: T.DataType.fromDDL(part.after)
            for part in parts
            if part.path[0].lower() == field.name.lower()
        }
        type_ = _with_parts(field.dataType, (), inner)
        columns.append(column(field.name).cast(type_).alias(field.name))
    return rows.select(*columns)


def _with_parts(
    type_: T.DataType, at: tuple[str, ...], new: dict[tuple[str, ...], T.DataType]
) -> T.DataType:
    """A type with some parts of other types."""
    if at in new:
        return new[at]
    if isinstance(type_, T.ArrayType):
        return T.ArrayType(_with_parts(type_.elementType, (*at, "element"), new))
    if isinstance(type_, T.MapType):
        value = _with_parts(type_.valueType, (*at, "value"), new)
        return T.MapType(type_.keyType, value)
    if isinstance(type_, T.StructType):
        fields = [
            T.StructField(one.name, _with_parts(one.dataType, (*at, one.name), new))
            for one in type_
        ]
        return T.StructType(fields)
    return type_
