"""
Rows of a table with several definitions: each cell is computed by the one in force there.

The stored table says which columns there are, in which order and of which types. A column that an
earlier definition lacks is NULL in its cells. A query that gives another type than the table has is
refused: the table keeps cells that nobody computes again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import reduce

from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql import types as T

from infold.core.interval import Ranges
from infold.core.plan import Step
from infold.core.project import Node
from infold.core.quoting import quoted
from infold.messages import apply_errors
from infold.spark.content import column, time_predicate, user_columns
from infold.spark.step_context import Work
from infold.spark.time_range.cell_states import partition_column
from infold.spark.time_range.types import stored_type

Compute = Callable[[Work, Node, Step], DataFrame]
"""The rows of a step by one definition, from what is read for its cells."""


def rows_in_force(work: Work, step: Step, compute: Compute) -> DataFrame:
    """The rows of the step's cells, each by the definition in force; rows without a cell stay."""
    stored = user_columns(work.tables.read(step.model)).schema
    parts = [
        as_stored(stored, step.model, _rows_of(own, own.project[step.model], some, compute))
        for own, some in steps_in_force(work, step)
    ]
    return reduce(DataFrame.unionByName, parts)


def steps_in_force(work: Work, step: Step) -> Iterator[tuple[Work, Step]]:
    """The step for the cells of each definition, with what that one is evaluated with."""
    held = Ranges.of(part for one in work.earlier for part in one.cells)
    parts = [(work, step.cells - held)]
    parts += [
        (replace(work, project=one.project, earlier=()), step.cells & one.cells)
        for one in work.earlier
    ]
    for own, cells in parts:
        if cells:
            yield own, replace(step, cells=cells)


def _rows_of(work: Work, node: Node, step: Step, compute: Compute) -> DataFrame:
    """The rows of one definition in its cells, and those that are in no cell."""
    rows, name = compute(work, node, step), partition_column(node)
    inside = time_predicate(rows, name, step.cells, exact=True)
    return rows.where(f"{quoted(name)} IS NULL OR {inside}")


def as_stored(
    stored: T.StructType, model: str, rows: DataFrame, beside: Sequence[str] = ()
) -> DataFrame:
    """
    Rows with exactly the columns of the table, NULL where they have none of that name.

    Columns ``beside`` these stay. Raises ``other_type_forward_only`` for a column of another type.
    """
    given = {field.name.lower(): field for field in rows.schema if field.name not in beside}
    found = []
    for field in stored:
        own = given.get(field.name.lower())
        if own is None:
            found.append(F.lit(None).cast(field.dataType).alias(field.name))
            continue
        if stored_type(own.dataType) != stored_type(field.dataType):
            raise apply_errors.other_type_forward_only(
                column=field.name,
                model=model,
                stored=field.dataType.simpleString(),
                given=own.dataType.simpleString(),
            )
        found.append(column(own.name).alias(field.name))
    return rows.select(*found, *map(column, beside))
