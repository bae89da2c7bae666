"""Rows in memory for which a predicate is true, as ``ports.Lake.rows`` takes it."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pyarrow as pa


def filtered_rows(rows: pa.Table, where: str) -> pa.Table:
    """
    The rows for which ``where`` is true, as ``infold show --where`` writes it.

    Columns are of strings, whole numbers or instants, as those of a manifest are.
    """
    from pyiceberg.schema import Schema
    from pyiceberg.types import LongType, NestedField, StringType, TimestamptzType

    from infold.lake.arrow_filter import RowFilter
    from infold.lake.filter import predicate
    from infold.messages import command_errors

    types = {"string": StringType, "int64": LongType}
    schema = Schema(
        *(
            NestedField(
                number, field.name, types.get(str(field.type), TimestamptzType)(), required=False
            )
            for number, field in enumerate(rows.schema, 1)
        )
    )
    try:
        chosen = RowFilter(predicate(where, schema), schema)
    except (ValueError, TypeError) as error:
        raise command_errors.bad_filter(where=where, why=str(error)) from error
    return chosen(rows)
