"""
A Delta table as a source: the rows of those of its data files that a step asks for, and no others.

The files are Parquet, and are read as such. The version's log says the rest: which of their rows
are deleted, and the values of the columns that the table is partitioned by, which are in no file.
So a step costs what its files cost, whatever else the table has, and no engine needs to know Delta.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import Column as SparkColumn
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql import types as T
from pyspark.sql.pandas.types import to_arrow_type

from infold.core.model import Column, Source
from infold.core.project import Project
from infold.lake.reading.delta_table import (
    ELEMENT,
    KEY,
    VALUE,
    ColumnMapping,
    ColumnPath,
    SourceTable,
    table_now,
)
from infold.messages import delta_errors
from infold.spark.content import column as column_of
from infold.spark.reading import parquet_files, stored_columns
from infold.spark.reading.drift import PresentFile, refuse_moved
from infold.spark.reading.parquet_files import Footer, names_by_id
from infold.spark.reading.stored_columns import (
    Read,
    StoredShape,
    as_a_whole,
    columns_of,
    drift_of,
    refuse_drift,
    stored_rows,
)

# The table says what its columns are. A file may be older: it lacks fields that a struct gained,
# and has others that were dropped. Spark reads NULL for what it does not find, and leaves out what
# it is not asked for, so it is given the table's own type with the names that the file has. What is
# read then gets the table's names by a cast: Spark casts structs by the positions of fields.

At = tuple[tuple[ColumnPath, str], ...]
"""What columns, and fields in them, are called in a file."""


class NoIdsError(Exception):
    """A file, or a struct in it, has no field ids, or one of them twice."""


@dataclass(frozen=True, slots=True)
class FileFields:
    """
    The columns of a table that a file has: ``types`` by their names, and what all is called there.

    A type has the table's names and fields, and what the file stores of each.
    """

    types: Mapping[str, pa.DataType]
    at: At


def fields_in(
    footer: Footer, columns: Iterable[T.StructField], mapping: ColumnMapping
) -> FileFields:
    """
    Some columns of the table in a file. Raises :class:`NoIdsError`.

    One that the file lacks is not among them.
    """
    stored = dict(zip(footer.fields.names, footer.types, strict=True))
    name_of = _name_finder(mapping, footer.fields)
    types, at = {}, dict[ColumnPath, str]()
    for top in columns:
        path = (top.name,)
        name = name_of(path)
        if name is None or name not in stored:
            continue
        at[path] = name
        types[top.name] = _as_in_table(stored[name], top.dataType, path, mapping, at)
    return FileFields(types, tuple(sorted(at.items())))


Name = Callable[[ColumnPath], str | None]


def _name_finder(mapping: ColumnMapping, fields: Iterable[pa.Field]) -> Name:
    """What each column, or field of a struct, is called; None for one that is not there by id."""
    if not mapping.ids:
        return lambda path: mapping.names.get(path, path[-1])
    by_id = names_by_id(fields)
    if by_id is None:  # "must refuse to read that file", says the protocol
        raise NoIdsError
    return lambda path: by_id.get(mapping.ids[path])


def _as_in_table(
    file: pa.DataType,
    table: T.DataType,
    path: ColumnPath,
    mapping: ColumnMapping,
    at: dict[ColumnPath, str],
) -> pa.DataType:
    """A type of a file with the table's names and fields; ``at`` gets those of the file."""
    if pa.types.is_struct(file) and isinstance(table, T.StructType):
        types_in_file = {part.name: part.type for part in file}
        name_of, taken = _name_finder(mapping, file), {part.name.lower() for part in file}
        parts = []
        for inner in table:
            below = (*path, inner.name)
            name = name_of(below)
            if name is not None and name in types_in_file:
                type_ = _as_in_table(types_in_file[name], inner.dataType, below, mapping, at)
            else:
                name, type_ = (_unused(name or inner.name, taken), to_arrow_type(inner.dataType))
            at[below] = name
            parts.append(pa.field(inner.name, type_))
        return pa.struct(parts)
    if pa.types.is_list(file) and isinstance(table, T.ArrayType):
        return pa.list_(
            _as_in_table(file.value_type, table.elementType, (*path, ELEMENT), mapping, at)
        )
    if pa.types.is_map(file) and isinstance(table, T.MapType):
        return pa.map_(
            _as_in_table(file.key_type, table.keyType, (*path, KEY), mapping, at),
            _as_in_table(file.item_type, table.valueType, (*path, VALUE), mapping, at),
        )
    return file


def _unused(name: str, taken: set[str]) -> str:
    """A name that no field of a struct has, however Spark compares names; it is taken then."""
    while name.lower() in taken:
        name = f"{name}_"
    taken.add(name.lower())
    return name


def as_in_file(type_: T.DataType, path: ColumnPath, at: Mapping[ColumnPath, str]) -> T.DataType:
    """A type of the table by the names that a file has."""
    if isinstance(type_, T.StructType):
        struct = T.StructType()
        for inner in type_:
            below = (*path, inner.name)
            struct = struct.add(at.get(below, inner.name), as_in_file(inner.dataType, below, at))
        return struct
    if isinstance(type_, T.ArrayType):
        return T.ArrayType(as_in_file(type_.elementType, (*path, ELEMENT), at))
    if isinstance(type_, T.MapType):
        return T.MapType(
            as_in_file(type_.keyType, (*path, KEY), at),
            as_in_file(type_.valueType, (*path, VALUE), at),
        )
    return type_


_PATH, _ROW_INDEX = "_of_file", "_at_row"


@dataclass(frozen=True, slots=True)
class DeltaShape(StoredShape):
    """
    The columns of a file, with those that the table is partitioned by.

    ``at`` has what columns of the table, and fields in them, are called in the file.
    """

    at: At
    table: SourceTable = field(compare=False)


check_readable = stored_columns.check_table_readable


def inspect(
    spark: SparkSession, project: Project, source: Source, files: Sequence[PresentFile]
) -> Mapping[int, DeltaShape]:
    """
    How each file is read, by its id; columns that are not declared are ignored.

    Raises ``errors.source_changed`` where a file is no longer what it was when it was listed, and
    ``errors.drift`` for the table: one of its files cannot be set aside.
    """
    del spark
    table = table_now(project, source)
    refuse_moved(source, files, table.listed)
    selected = [own for own in _table_schema(table) if _is_selected(source, own.name)]
    types = {own.name: to_arrow_type(own.dataType) for own in selected}
    refuse_drift(source, source.path or source.table or "", types)
    in_files = [own for own in selected if own.name not in table.partitioned_by]
    of_table = {own.name: types[own.name] for own in selected if own not in in_files}
    return {file.id: _shape(source, table, in_files, of_table, file) for file in files}


def _shape(
    source: Source,
    table: SourceTable,
    columns: Sequence[T.StructField],
    of_table: Mapping[str, pa.DataType],
    file: PresentFile,
) -> DeltaShape:
    """How a file is read; ``of_table`` are the columns that are in no file."""
    footer = parquet_files.read_footer(file)
    try:
        file_fields = fields_in(footer, columns, table.mapping)
    except NoIdsError:
        raise delta_errors.source_unreadable(
            source=source.name,
            folder=table.folder,
            why=f"it finds columns by field ids, and {file.path} has none, or one of them twice",
        ) from None
    names = dict(file_fields.at)
    in_file = {names[name,]: name for name in file_fields.types}
    others = [
        *parquet_files.too_fine(file, footer, in_file),
        *(
            f"column {name} is there twice"
            for name in in_file
            if footer.fields.names.count(name) > 1
        ),
    ]
    # A file may be older than a column of the table, and has NULL for it.
    own = [
        replace(declared, optional=True)
        for declared in source.columns
        if declared.name in file_fields.types
    ]
    of_file = replace(as_a_whole(source), columns=tuple(own))
    of_columns = tuple(file_fields.types), tuple(file_fields.types.values())
    return DeltaShape(
        (*file_fields.types, *of_table),
        (*file_fields.types.values(), *of_table.values()),
        drift=drift_of(of_file, file, *of_columns, others),
        at=file_fields.at,
        table=table,
    )


def rows(
    spark: SparkSession, source: Source, shape: DeltaShape, files: Sequence[PresentFile]
) -> DataFrame:
    """The rows of files of one shape that the table's version has not deleted."""
    declared = source.columns or columns_of(_table_schema(shape.table))
    of_files = parquet_files.reader(spark, shape, files)
    read = partial(_present_rows, spark, shape, files, of_files)
    return stored_rows(replace(source, columns=tuple(declared)), shape, read)


def columns(_spark: SparkSession, project: Project, source: Source) -> Sequence[Column]:
    """The declared columns; of a source that declares none, those of the table."""
    return source.columns or columns_of(_table_schema(table_now(project, source)))


def _table_schema(table: SourceTable) -> T.StructType:
    """The columns of the table: Delta writes them down as Spark does."""
    return T.StructType.fromJson(json.loads(table.schema_json))


def _is_selected(source: Source, name: str) -> bool:
    return not source.columns or any(declared.name == name for declared in source.columns)


def _present_rows(
    spark: SparkSession,
    shape: DeltaShape,
    files: Sequence[PresentFile],
    of_files: Read,
    schema: T.StructType,
) -> DataFrame:
    """The rows of files that are not deleted, with the columns that are in no file."""
    table, names = shape.table, dict(shape.at)
    in_files = [part for part in schema if part.name not in table.partitioned_by]
    stored = T.StructType()
    for part in in_files:
        top = (part.name,)
        stored = stored.add(names[top], as_in_file(part.dataType, top, names))
    present = of_files(stored)
    if [*stored] != in_files:
        pairs = zip(stored, in_files, strict=True)
        present = present.select(*(_as_table_column(own, wanted) for own, wanted in pairs))
    # Of one file all rows are its own, however Spark spells its path.
    path = F.lit(files[0].spark_path) if len(files) == 1 else F.col("_metadata.file_path")
    at = F.col("_metadata.row_index")
    if (deleted := _deleted_rows(table, files)).num_rows:
        lost = spark.createDataFrame(deleted)
        present = present.join(lost, (path == lost[_PATH]) & (at == lost[_ROW_INDEX]), "left_anti")
    if len(in_files) < len(schema):
        # At most a row for each file of the step.
        values = F.broadcast(spark.createDataFrame(_partition_values(table, files)))
        present = present.join(values, path == values[_PATH], "left")
    return present.select(*(column_of(part.name).cast(part.dataType) for part in schema))


def _as_table_column(stored_field: T.StructField, table_field: T.StructField) -> SparkColumn:
    """A column of a file with the table's name and the table's names of its fields."""
    renamed = column_of(stored_field.name)
    if stored_field.dataType != table_field.dataType:
        renamed = renamed.cast(table_field.dataType)
    return renamed.alias(table_field.name)


def _deleted_rows(table: SourceTable, files: Sequence[PresentFile]) -> pa.Table:
    """The deleted rows of files: a row for each, with the path as Spark has it."""
    deleted = [
        (file.spark_path, table.deleted[file.path]) for file in files if _has_deleted(table, file)
    ]
    paths = [pa.array([path] * len(rows), pa.string()) for path, rows in deleted]
    return pa.table(
        {
            _PATH: pa.chunked_array(paths, pa.string()),
            _ROW_INDEX: pa.chunked_array([rows for _, rows in deleted], pa.int64()),
        }
    )


def _has_deleted(table: SourceTable, file: PresentFile) -> bool:
    return file.path in table.deleted


def _partition_values(table: SourceTable, files: Sequence[PresentFile]) -> pa.Table:
    """The partition values of files: a row for each, with the path as Spark has it."""
    by_path = {file.path: file.spark_path for file in files}
    paths_selected = pa.array(list(by_path), pa.string())
    values = table.partitions.filter(pc.is_in(table.partitions["_path"], paths_selected))
    paths = [by_path[path] for path in values["_path"].to_pylist()]
    return values.drop_columns(["_path"]).append_column(_PATH, pa.array(paths, pa.string()))
