"""What every commit of a storage has in common: its stamp, write points, tasks and rows."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql import types as T
from pyspark.sql.types import DataType

from infold.core import write_points
from infold.core.interval import Ranges
from infold.core.own_columns import STATE, STATE_COLUMN
from infold.spark.content import column, range_predicate
from infold.spark.tables.port import Layout, Stamp

ROWS_OF_A_FILE = 500_000
"""How many rows of replaced partitions each writing task gets."""


def stamped(stamp: Stamp) -> Mapping[str, str]:
    """A stamp as the properties of a commit."""
    return {
        "infold.run": stamp.run,
        "infold.step": stamp.step,
        "infold.version": str(stamp.version),
        "infold.inputs": json.dumps(dict(stamp.inputs), sort_keys=True),
    }


@contextmanager
def commit_point(table: str) -> Iterator[None]:
    """
    The commit inside is a numbered write point, before and after (see
    ``infold.core.write_points``).
    """
    write_points.point(f"table {table}: before commit")
    yield
    write_points.point(f"table {table}: after commit")


def writing_tasks(touched: Ranges, about: int) -> int:
    """By how many tasks about so many rows are written, each of which makes files of its own."""
    return (1 if len(touched) < 4 else 2) + about // ROWS_OF_A_FILE


def touched_partitions(layout: Layout, ranges: Ranges) -> Ranges:
    """The times of the partitions that ranges touch; all of a table without partitions."""
    return Ranges.ever() if layout.partition is None else layout.partition.cover(ranges)


def with_other_cells(
    stored: DataFrame, rows: DataFrame, column: str, ranges: Ranges, touched: Ranges
) -> DataFrame:
    """The rows of touched partitions, of which those of ``ranges`` are ``rows`` from now on."""
    type_ = dict(stored.dtypes)[column]
    carried = stored.where(range_predicate(column, type_, touched - ranges, exact=True))
    return carried.unionByName(rows)


def evolved(
    rows: DataFrame,
    layout: Layout,
    names: Sequence[tuple[str, str]],
    types: Sequence[tuple[Sequence[str], DataType]],
) -> tuple[DataFrame, Layout]:
    """All rows with other names and wider types, and the layout by these names."""
    new, column = dict(names), layout.column
    renamed = retyped(rows, {tuple(path): type_ for path, type_ in types}).withColumnsRenamed(new)
    return renamed, replace(layout, column=None if column is None else new.get(column, column))


# Iceberg's reader takes whole columns at a time, but row by row wherever a struct is among them. So
# a scan that needs one number of each state would read everything else slowly as well. Delta does
# not, and has the same columns, so that a table looks the same in both.


def with_columns(rows: DataFrame) -> DataFrame:
    """Rows as a table has them: the fields of ``_state`` in its place."""
    if STATE not in rows.columns:
        return rows
    columns: list[Column] = []
    for field in rows.schema:
        if field.name == STATE and isinstance(field.dataType, T.StructType):
            columns += [
                F.col(STATE)[part.name].alias(STATE_COLUMN + part.name) for part in field.dataType
            ]
        else:
            columns.append(column(field.name))
    return rows.select(*columns)


def with_struct(rows: DataFrame) -> DataFrame:
    """Rows of a table with ``_state``: the inverse of :func:`with_columns`."""
    parts = [name for name in rows.columns if name.startswith(STATE_COLUMN)]
    if not parts:
        return rows
    state = F.struct(*(column(name).alias(name.removeprefix(STATE_COLUMN)) for name in parts))
    columns: list[Column] = []
    for name in rows.columns:
        if name == parts[0]:
            columns.append(state.alias(STATE))
        elif name not in parts:
            columns.append(column(name))
    return rows.select(*columns)


def retyped(rows: DataFrame, parts: Mapping[tuple[str, ...], T.DataType]) -> DataFrame:
    """The rows with some columns, or parts of columns (``("tags", "element")``), of new types."""
    columns = []
    for field in rows.schema:
        name = field.name.lower()
        inner = {path[1:]: type_ for path, type_ in parts.items() if path[0].lower() == name}
        cast = column(field.name)
        if inner:
            cast = cast.cast(_with_parts(field.dataType, (), inner)).alias(field.name)
        columns.append(cast)
    return rows.select(*columns)


def _with_parts(
    type_: T.DataType, at: tuple[str, ...], new: Mapping[tuple[str, ...], T.DataType]
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
            T.StructField(field.name, _with_parts(field.dataType, (*at, field.name), new))
            for field in type_
        ]
        return T.StructType(fields)
    return type_
