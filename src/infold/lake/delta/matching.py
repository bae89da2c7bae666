"""Rows of a Delta table for which one of several predicates is true, with those that are."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import reduce
from pathlib import Path
from typing import TYPE_CHECKING

from infold.lake.delta.rows import columns_of, read_rows
from infold.lake.iceberg.matching import named_truths

if TYPE_CHECKING:
    import pyarrow as pa


def matching_rows(
    folder: Path,
    tests: Mapping[str, str],
    by: str,
    beside: Sequence[str],
    limit: int | None,
) -> pa.Table:
    """See ``lake.iceberg.matching``."""
    from pyiceberg.expressions import AlwaysFalse, BooleanExpression, Or

    from infold.lake.arrow_filter import RowFilter
    from infold.lake.iceberg.filter import predicate

    schema = columns_of(folder)
    truths = {name: predicate(text, schema) for name, text in tests.items()}
    nothing: BooleanExpression = AlwaysFalse()
    names = [field.name for field in schema.fields]
    wanted = [name for name in names if not name.startswith("_") or name in beside]
    any_of = reduce(Or, truths.values(), nothing)
    found = read_rows(folder, wanted, rows=RowFilter(any_of, schema), limit=limit)
    return named_truths(found, truths, schema, by)
