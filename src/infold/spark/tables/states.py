"""
States as columns of a table: ``_state`` has a field for each part, the table a column.

Iceberg's reader takes whole columns at a time, but row by row wherever a struct is among them. So a
scan that needs one number of each state would read everything else slowly as well. Delta does not,
and has the same columns, so that a table looks the same in both.
"""

from __future__ import annotations

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql import types as T

from infold.core.own_columns import STATE_COLUMN
from infold.core.session_columns import STATE
from infold.spark.content import column


def with_columns(rows: DataFrame) -> DataFrame:
    """Rows as a table has them: the fields of ``_state`` in its place."""
    if STATE not in rows.columns:
        return rows
    found: list[Column] = []
    for field in rows.schema:
        if field.name == STATE and isinstance(field.dataType, T.StructType):
            found += [
                F.col(STATE)[part.name].alias(STATE_COLUMN + part.name) for part in field.dataType
            ]
        else:
            found.append(column(field.name))
    return rows.select(*found)


def with_struct(rows: DataFrame) -> DataFrame:
    """Rows of a table with ``_state``: the inverse of :func:`with_columns`."""
    parts = [name for name in rows.columns if name.startswith(STATE_COLUMN)]
    if not parts:
        return rows
    state = F.struct(*(column(name).alias(name.removeprefix(STATE_COLUMN)) for name in parts))
    found: list[Column] = []
    for name in rows.columns:
        if name == parts[0]:
            found.append(state.alias(STATE))
        elif name not in parts:
            found.append(column(name))
    return rows.select(*found)
