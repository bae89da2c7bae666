"""
Tables of a changed definition, made from their own stored rows.

The rows are evaluated over the snapshot of the table's newest version, cut to the cells that the
model may have, and put in its place by one commit. States of cells are known before that commit, so
a run that dies over it is finished by the next one.

Values are exact only if every type is the one that the new query gives. Storing makes ``int`` of
``tinyint`` and ``smallint``; columns that the query still has get their own type back. Where a type
is not known, or where a condition on a group might tell representations of a number apart, nothing
is derived.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import nullcontext
from dataclasses import replace
from functools import reduce

from pyspark.errors import PySparkException
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql import types as T

from infold.core.definition import Derivation
from infold.core.interval import Ranges
from infold.core.own_columns import FILE, VERSION
from infold.core.plan import Step
from infold.core.project import Node
from infold.core.record import Outcome, Receipt
from infold.core.trace import changes_of_rewrite
from infold.spark.analyser import empty_frame, with_columns_to_be
from infold.spark.content import column, user_columns
from infold.spark.inputs.changed_rows import count_row_changes
from infold.spark.jvm.session_settings import settings_for_few_rows
from infold.spark.reading import source_rows
from infold.spark.step_commit import Computed, WholeTable, commit_step
from infold.spark.step_context import Work
from infold.spark.stored_types import contains_type, same_type, stored_type
from infold.spark.time_range.cell_states import partition_column, states_of_cells
from infold.spark.time_range.recompute import clamped

_FLOATING = (T.FloatType, T.DoubleType)
_ROW = "_infold_row"
FEW_ROWS = 200_000
"""Up to so many rows, a shuffle costs more time than a second processor saves."""


def derives_exactly(work: Work, step: Step) -> bool:
    """Whether the derived rows have the values and types that the query would give."""
    try:
        schema = _schema_of_query(work, work.project[step.model])
    except PySparkException:
        return True  # a definition that is wrong is reported as such
    try:
        return _derived_rows(work, step, schema) is not None
    except PySparkException:
        return False


def carry_out(work: Work, step: Step) -> Outcome:
    """Replace the table by the rows that follow from it, in one commit."""
    node, derivation = work.project[step.model], step.derivation
    before = work.cells(step.model)
    stored = sum(state.rows for state in before)
    beyond = Ranges.of(state.cell for state in before) - step.cells
    rows = _derived_rows(work, step, _schema_of_query(work, node))
    assert rows is not None, "a derivation is checked before it is carried out"
    assert derivation is not None, "a step that derives has a derivation"
    if derivation.changes_nothing and not beyond:
        return commit_step(work, step, None, Computed())
    with settings_for_few_rows(work.spark) if stored <= FEW_ROWS else nullcontext():
        changes = changes_of_rewrite(before, states_of_cells(rows, node).cells.values())
        changes = count_row_changes(
            work.project, node, changes, lambda: (work.frame(step.model, step.version - 1), rows)
        )
        layout = work.tables.layout(step.model)
        if layout.column is not None:
            layout = replace(layout, column=partition_column(node))
        table = WholeTable(rows, layout)
        return commit_step(work, step, table, Computed(changes, Receipt(scanned=stored)))


def _schema_of_query(work: Work, node: Node) -> T.StructType:
    """The types of the new columns, by the query; no row is read."""
    tables = (entry.name for entry in node.stored_inputs)
    inputs = with_columns_to_be(work, {n: user_columns(work.tables.read(n)) for n in tables})
    if node.source is not None:
        source = work.project.sources[node.source].without_columns(node.unread_columns)
        columns = source_rows.column_types(work.spark, work.project, source)
        inputs[source.name] = empty_frame(work.spark, columns)
    return work.sql(node, inputs).schema


def _derived_rows(work: Work, step: Step, schema: T.StructType) -> DataFrame | None:
    """The rows that follow from the stored ones; None where they may differ from those built."""
    if step.derivation is None:
        return None
    table = work.frame(step.model, step.version - 1)
    files = [name for name in table.columns if name == FILE]  # of events, the one of each
    stored = table.select(*map(column, user_columns(table).columns), *files)
    rows = rows_over_stored(stored, step.derivation, schema, files)
    if rows is None:
        return None
    if VERSION in table.columns:
        rows = rows.withColumn(VERSION, F.lit(step.version).cast("bigint"))
    return clamped(work.project[step.model], step.cells, rows)


def rows_over_stored(
    stored: DataFrame, derived: Derivation, schema: T.StructType, carried: Sequence[str] = ()
) -> DataFrame | None:
    """
    The rows that follow from stored ones; None where they may differ from those of the query.

    ``schema`` has the types of the query's columns. Columns that are ``carried`` are kept beside.
    """
    if len(schema) != len(derived.columns):
        return None
    fields = [field for field in stored.schema if field.name not in carried]
    types = {field.name.lower(): field.dataType for field in fields}
    if not _as_given(derived, types) or {name.lower() for name in derived.stored} != types.keys():
        return None
    read_types = dict(types)
    old_names = {name.lower(): old.lower() for name, old in derived.plain}
    for field in schema:
        old = old_names.get(field.name.lower())
        if old is not None:
            if stored_type(field.dataType) != stored_type(types[old], same_type):
                return None
            # Stored arrays may hold NULL, and Spark casts none to one that may not.
            read_types[old] = stored_type(field.dataType, same_type)
    rows = stored.select(
        *(
            column(field.name)
            if read_types[field.name.lower()] == field.dataType
            else column(field.name).cast(read_types[field.name.lower()]).alias(field.name)
            for field in fields
        ),
        *carried,
    )
    rows = _rows_where(rows, derived.where)
    pairs = zip(derived.columns, schema, strict=True)
    rows = rows.select(
        *(
            (F.lit(None).cast(field.dataType) if name in derived.added else F.expr(sql)).alias(
                field.name
            )
            for (name, sql), field in pairs
        ),
        *carried,
    )
    for derived_field, field in zip(rows.schema, schema, strict=False):
        if stored_type(derived_field.dataType, same_type) != stored_type(field.dataType, same_type):
            return None
    return rows


def _rows_where(rows: DataFrame, conditions: Sequence[str]) -> DataFrame:
    """
    The rows that fulfil all conditions.

    Iceberg takes no part in those about floating-point numbers: for its statistics -0.0 is less
    than 0.0, and NaN is not greater than any number. A condition on a number of the row, which only
    Spark makes, keeps them from it.
    """
    if not conditions:
        return rows
    names = rows.columns
    tests = [F.expr(condition) for condition in conditions]
    if any(contains_type(field.dataType, *_FLOATING) for field in rows.schema):
        rows = rows.withColumn(_ROW, F.monotonically_increasing_id())
        tests.append(F.col(_ROW) >= 0)
    return rows.where(reduce(Column.__and__, tests)).select(*map(column, names))


def _as_given(derivation: Derivation, types: dict[str, T.DataType]) -> bool:
    """Whether stored values are all that expressions over them need to know."""
    kept_names = {old for _, old in derivation.plain}
    return not any(
        contains_type(types[name.lower()], *_FLOATING) for name in derivation.grouped
    ) and not any(
        contains_type(_type_at(types, path), T.IntegerType)
        for path in derivation.read_by_value
        if path[0] not in kept_names
    )


def _type_at(types: dict[str, T.DataType], path: tuple[str, ...]) -> T.DataType:
    """The type of a column, or of a field within it."""
    type_ = types[path[0].lower()]
    for name in path[1:]:
        assert isinstance(type_, T.StructType), "only structs have fields"
        type_ = type_[name].dataType
    return type_
