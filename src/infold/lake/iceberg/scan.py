"""
Rows of one snapshot for which an expression is true.

pyiceberg works out, for each file, what its partition leaves of the expression. It fails there
where a partition is NULL and an alternative (OR) asks whether its column is less or greater than
something. Nothing is read by what it works out, so files are chosen without such alternatives, and
rows by the whole expression.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import TYPE_CHECKING, Any

from pyiceberg.expressions import (
    AlwaysTrue,
    And,
    BooleanExpression,
    GreaterThan,
    GreaterThanOrEqual,
    LessThan,
    LessThanOrEqual,
    Or,
)

if TYPE_CHECKING:
    import pyarrow as pa
    from pyiceberg.table import StaticTable


def scan_rows(
    stored: StaticTable,
    rows: BooleanExpression,
    columns: Sequence[str],
    *,
    limit: int | None = None,
    snapshot: int | None = None,
) -> pa.Table:
    """Columns of the rows for which an expression is true, at most ``limit`` of them."""
    from pyiceberg.io.pyarrow import ArrowScan

    from infold.lake.iceberg.nulls import keep_null_lists

    keep_null_lists()
    metadata = stored.metadata
    by = {
        metadata.schema().find_column_name(field.source_id)
        for spec in metadata.partition_specs
        for field in spec.fields
    }
    scan = stored.scan(_choosing(rows, by), tuple(columns), snapshot_id=snapshot, limit=limit)
    whole = ArrowScan(metadata, scan.io, scan.projection(), rows, limit=limit)
    return whole.to_table(scan.plan_files())


def _choosing(rows: BooleanExpression, by: Collection[str | None]) -> BooleanExpression:
    """A weaker expression, which pyiceberg can evaluate for every partition."""
    if isinstance(rows, And):
        return And(_choosing(rows.left, by), _choosing(rows.right, by))
    return AlwaysTrue() if isinstance(rows, Or) and _ordered(rows, by) else rows


def _ordered(rows: BooleanExpression, by: Collection[str | None]) -> bool:
    """Whether a part compares a column of the partitioning by order."""
    if isinstance(rows, And | Or):
        return _ordered(rows.left, by) or _ordered(rows.right, by)
    part: Any = rows
    return isinstance(rows, _ORDERED) and part.term.name in by


_ORDERED = (LessThan, LessThanOrEqual, GreaterThan, GreaterThanOrEqual)
