"""
Rows of one snapshot for which an expression is true.

pyiceberg works out, for each file, what its partition leaves of the expression. It fails there
where a partition is NULL and an alternative (OR) asks whether its column is less or greater than
something. Nothing is read by what it works out, so files are chosen without such alternatives, and
rows by the whole expression.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from functools import wraps
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc
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
from pyiceberg.io.pyarrow import ArrowProjectionVisitor, ArrowScan

if TYPE_CHECKING:
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
    keep_null_lists()
    metadata = stored.metadata
    by = {
        metadata.schema().find_column_name(field.source_id)
        for spec in metadata.partition_specs
        for field in spec.fields
    }
    scan = stored.scan(_choosing(rows, by), tuple(columns), snapshot_id=snapshot, limit=limit)
    chosen_rows = ArrowScan(metadata, scan.io, scan.projection(), rows, limit=limit)
    return chosen_rows.to_table(scan.plan_files())


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


# Lists and maps of structs that are NULL are kept apart from empty ones. pyiceberg rebuilds each
# that it reads from offsets and values alone, so that NULL ones become empty. Here they are made
# NULL again: the methods of its visitor are wrapped by ones that restore the NULLs.


def keep_null_lists() -> None:
    """Make pyiceberg keep NULL lists and maps; calling it again changes nothing."""
    for name in ("list", "map"):
        own = getattr(ArrowProjectionVisitor, name)
        if not hasattr(own, "__wrapped__"):
            setattr(ArrowProjectionVisitor, name, _keeping_nulls(own))


def _keeping_nulls(own: Any) -> Any:
    @wraps(own)
    def method(self: Any, kind: Any, before: Any, *parts: Any) -> Any:
        after = own(self, kind, before, *parts)
        if after is None or before is None or after.null_count == before.null_count:
            return after
        return _with_nulls(after, before.is_null())

    return method


def _with_nulls(array: Any, mask: pa.Array) -> pa.Array:
    """The same lists or maps, NULL where the mask is true."""
    offsets = pc.add(array.offsets, 0)  # a copy: Arrow takes no mask beside a slice
    if isinstance(array, pa.MapArray):
        return pa.MapArray.from_arrays(offsets, array.keys, array.items, array.type, mask=mask)
    return type(array).from_arrays(offsets, array.values, array.type, mask=mask)
