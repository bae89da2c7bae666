"""Rows of a stored table for which one of several predicates is true, with those that are."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import reduce
from typing import TYPE_CHECKING

from pyiceberg.expressions import AlwaysFalse, BooleanExpression, Or

from infold.lake.arrow_filter import RowFilter
from infold.lake.iceberg.filter import predicate
from infold.lake.iceberg.scan import scan_rows

if TYPE_CHECKING:
    import pyarrow as pa
    from pyiceberg.schema import Schema
    from pyiceberg.table import StaticTable


def matching_rows(
    stored: StaticTable,
    tests: Mapping[str, str],
    by: str,
    beside: Sequence[str],
    limit: int | None,
) -> pa.Table:
    """
    At most ``limit`` of the rows, with the names of the tests in the column ``by``.

    Raises ValueError if a test needs Spark to be evaluated. Technical columns are left out, except
    those ``beside``.
    """
    schema = stored.schema()
    truths = {name: predicate(text, schema) for name, text in tests.items()}
    nothing: BooleanExpression = AlwaysFalse()
    names = [field.name for field in schema.fields]
    wanted = [name for name in names if not name.startswith("_") or name in beside]
    found = scan_rows(stored, reduce(Or, truths.values(), nothing), wanted, limit=limit)
    return named_truths(found, truths, schema, by)


def named_truths(
    found: pa.Table, truths: Mapping[str, BooleanExpression], schema: Schema, by: str
) -> pa.Table:
    """Rows with the names of the expressions that are true of each, in the column ``by``."""
    import pyarrow as pa

    found = found.append_column(_ROW, pa.array(range(found.num_rows), pa.int64()))
    true: list[list[str]] = [[] for _ in range(found.num_rows)]
    for name, truth in truths.items():
        for row in RowFilter(truth, schema)(found)[_ROW].to_pylist():
            true[row].append(name)
    return found.drop_columns(_ROW).append_column(by, pa.array(true, pa.list_(pa.string())))


_ROW = "_infold_row"
