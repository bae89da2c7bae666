"""The types of a table's columns: those of every storage, whatever Delta could store."""

from __future__ import annotations

from pyspark.sql import DataFrame

from infold.spark.content import column
from infold.spark.stored_types import as_stored


def in_types_of_tables(rows: DataFrame) -> DataFrame:
    """Rows with ``byte`` and ``short`` as ``int``, also inside of other types."""
    if all(as_stored(field.dataType) == field.dataType for field in rows.schema):
        return rows
    return rows.select(
        *(
            column(field.name)
            if as_stored(field.dataType) == field.dataType
            else column(field.name).cast(as_stored(field.dataType)).alias(field.name)
            for field in rows.schema
        )
    )
