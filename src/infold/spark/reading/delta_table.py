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
from infold.lake.reading.delta_mapping import ELEMENT, KEY, VALUE, ColumnMapping, Path
from infold.lake.reading.delta_table import SourceTable, table_now
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

At = tuple[tuple[Path, str], ...]
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
    name_of = _names(mapping, footer.fields)
    types, at = {}, dict[Path, str]()
    for one in columns:
        path = (one.name,)
        name = name_of(path)
        if name is None or name not in stored:
            continue
        at[path] = name
        types[one.name] = _as_in_table(stored[name], one.dataType, path, mapping, at)
    return FileFields(types, tuple(sorted(at.items())))


Name = Callable[[Path], str | None]


def _names(mapping: ColumnMapping, fields: Iterable[pa.Field]) -> Name:
    """What each column, or field of a struct, is called; None for one that is not there by id."""
    if not mapping.ids:
        return lambda path: mapping.names.get(path, path[-1])
    by_id = names_by_id(fields)
    if by_id is None:  # "must refuse to read that file", says the protocol
        raise NoIdsError
    return lambda path: by_id.get(mapping.ids[path])


def _as_in_table(
    found: pa.DataType, wanted: T.DataType, path: Path, mapping: ColumnMapping, at: dict[Path, str]
) -> pa.DataType:
    """A type of a file with the table's names and fields; ``at`` gets those of the file."""
    if pa.types.is_struct(found) and isinstance(wanted, T.StructType):
        own = {one.name: one.type for one in found}
        name_of, taken = _names(mapping, found), {one.name.lower() for one in found}
        parts = []
        for one in wanted:
            below = (*path, one.name)
            name = name_of(below)
            if name is not None and name in own:
                type_ = _as_in_table(own[name], one.dataType, below, mapping, at)
            else:
                name, type_ = _free(name or one.name, taken), to_arrow_type(one.dataType)
            at[below] = name
            parts.append(pa.field(one.name, type_))
        return pa.struct(parts)
    if pa.types.is_list(found) and isinstance(wanted, T.ArrayType):
        return pa.list_(
            _as_in_table(found.value_type, wanted.elementType, (*path, ELEMENT), mapping, at)
        )
    if pa.types.is_map(found) and isinstance(wanted, T.MapType):
        return pa.map_(
            _as_in_table(found.key_type, wanted.keyType, (*path, KEY), mapping, at),
            _as_in_table(found.item_type, wanted.valueType, (*path, VALUE), mapping, at),
        )
    return found


def _free(name: str, taken: set[str]) -> str:
    """A name that no field of a struct has, however Spark compares names; it is taken then."""
    while name.lower() in taken:
        name = f"{name}_"
    taken.add(name.lower())
    return name


def as_in_file(type_: T.DataType, path: Path, at: Mapping[Path, str]) -> T.DataType:
    """A type of the table by the names that a file has."""
    if isinstance(type_, T.StructType):
        found = T.StructType()
        for one in type_:
            below = (*path, one.name)
            found = found.add(at.get(below, one.name), as_in_file(one.dataType, below, at))
        return found
    if isinstance(type_, T.ArrayType):
        return T.ArrayType(as_in_file(type_.elementType, (*path, ELEMENT), at))
    if isinstance(type_, T.MapType):
        return T.MapType(
            as_in_file(type_.keyType, (*path, KEY), at),
            as_in_file(type_.valueType, (*path, VALUE), at),
        )
    return type_


_PATH, _AT = "_of_file", "_at_row"


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
    See ``FormatReader``; columns that are not declared are ignored.

    Raises ``errors.source_changed`` where a file is no longer what it was when it was listed, and
    ``errors.drift`` for the table: one of its files cannot be set aside.
    """
    del spark
    table = table_now(project, source)
    refuse_moved(source, files, table.listed)
    asked = [one for one in _schema(table) if _is_asked(source, one.name)]
    types = {one.name: to_arrow_type(one.dataType) for one in asked}
    refuse_drift(source, source.path or source.table or "", types)
    in_files = [one for one in asked if one.name not in table.partitioned_by]
    of_table = {one.name: types[one.name] for one in asked if one not in in_files}
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
        found = fields_in(footer, columns, table.mapping)
    except NoIdsError:
        raise delta_errors.source_unreadable(
            source=source.name,
            folder=table.folder,
            why=f"it finds columns by field ids, and {file.path} has none, or one of them twice",
        ) from None
    names = dict(found.at)
    in_file = {names[name,]: name for name in found.types}
    others = [
        *parquet_files.too_fine(file, footer, in_file),
        *(f"column {one} is there twice" for one in in_file if footer.fields.names.count(one) > 1),
    ]
    # A file may be older than a column of the table, and has NULL for it.
    own = [replace(one, optional=True) for one in source.columns if one.name in found.types]
    of_file = replace(as_a_whole(source), columns=tuple(own))
    of_columns = tuple(found.types), tuple(found.types.values())
    return DeltaShape(
        (*found.types, *of_table),
        (*found.types.values(), *of_table.values()),
        drift=drift_of(of_file, file, *of_columns, others),
        at=found.at,
        table=table,
    )


def rows(
    spark: SparkSession, source: Source, shape: DeltaShape, files: Sequence[PresentFile]
) -> DataFrame:
    """See ``FormatReader``."""
    declared = source.columns or columns_of(_schema(shape.table))
    of_files = parquet_files.reader(spark, shape, files)
    read = partial(_present_rows, spark, shape, files, of_files)
    return stored_rows(replace(source, columns=tuple(declared)), shape, read)


def columns(_spark: SparkSession, project: Project, source: Source) -> Sequence[Column]:
    """See ``FormatReader``: of a source that declares none, those of the table."""
    return source.columns or columns_of(_schema(table_now(project, source)))


def _schema(table: SourceTable) -> T.StructType:
    """The columns of the table: Delta writes them down as Spark does."""
    return T.StructType.fromJson(json.loads(table.schema_json))


def _is_asked(source: Source, name: str) -> bool:
    return not source.columns or any(one.name == name for one in source.columns)


def _present_rows(
    spark: SparkSession,
    shape: DeltaShape,
    files: Sequence[PresentFile],
    of_files: Read,
    schema: T.StructType,
) -> DataFrame:
    """The rows of files that are not deleted, with the columns that are in no file."""
    table, names = shape.table, dict(shape.at)
    in_files = [one for one in schema if one.name not in table.partitioned_by]
    stored = T.StructType()
    for one in in_files:
        top = (one.name,)
        stored = stored.add(names[top], as_in_file(one.dataType, top, names))
    found = of_files(stored)
    if [*stored] != in_files:
        pairs = zip(stored, in_files, strict=True)
        found = found.select(*(_named(own, one) for own, one in pairs))
    # Of one file all rows are its own, however Spark spells its path.
    path = F.lit(files[0].spark_path) if len(files) == 1 else F.col("_metadata.file_path")
    at = F.col("_metadata.row_index")
    if (deleted := _deleted(table, files)).num_rows:
        gone = spark.createDataFrame(deleted)
        found = found.join(gone, (path == gone[_PATH]) & (at == gone[_AT]), "left_anti")
    if len(in_files) < len(schema):
        # At most a row for each file of the step.
        values = F.broadcast(spark.createDataFrame(_partitions(table, files)))
        found = found.join(values, path == values[_PATH], "left")
    return found.select(*(column_of(one.name).cast(one.dataType) for one in schema))


def _named(own: T.StructField, wanted: T.StructField) -> SparkColumn:
    """A column of a file with the table's name and the table's names of its fields."""
    found = column_of(own.name)
    if own.dataType != wanted.dataType:
        found = found.cast(wanted.dataType)
    return found.alias(wanted.name)


def _deleted(table: SourceTable, files: Sequence[PresentFile]) -> pa.Table:
    """The deleted rows of files: a row for each, with the path as Spark has it."""
    found = [(file.spark_path, table.deleted[file.path]) for file in files if _has(table, file)]
    paths = [pa.array([path] * len(rows), pa.string()) for path, rows in found]
    return pa.table(
        {
            _PATH: pa.chunked_array(paths, pa.string()),
            _AT: pa.chunked_array([rows for _, rows in found], pa.int64()),
        }
    )


def _has(table: SourceTable, file: PresentFile) -> bool:
    return file.path in table.deleted


def _partitions(table: SourceTable, files: Sequence[PresentFile]) -> pa.Table:
    """The partition values of files: a row for each, with the path as Spark has it."""
    by_path = {file.path: file.spark_path for file in files}
    asked = pa.array(list(by_path), pa.string())
    found = table.partitions.filter(pc.is_in(table.partitions["_path"], asked))
    paths = [by_path[path] for path in found["_path"].to_pylist()]
    return found.drop_columns(["_path"]).append_column(_PATH, pa.array(paths, pa.string()))
