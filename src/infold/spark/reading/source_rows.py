"""
The rows of given versions of a source's files, exactly, in one frame.

| column         | type          | meaning                                                  |
|----------------|---------------|----------------------------------------------------------|
| the declared ones | as declared | its values; all NULL where ``_problem`` is not NULL     |
| `_source_file` | bigint        | the id of the file's version                             |
| `_raw`         | string        | the row as text; may be NULL where it is not asked for   |
| `_problem`     | string        | why the row cannot be used; NULL when it can             |

How a format is read, what makes a row unparsable and a file drift, is in the format's module.
"""

from __future__ import annotations

import os
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from functools import reduce
from typing import NamedTuple

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql import types as T

from infold.core.files import (
    IngestedFile,
    ListedFile,
    folder_values,
    is_as_listed,
    set_aside_whole,
    stat_fingerprint,
    written_at,
)
from infold.core.formats import FORMATS
from infold.core.model import Drift, Source
from infold.core.object_store import is_url
from infold.core.own_columns import FILE
from infold.core.project import Project
from infold.lake.reading.object_listing import changed_objects
from infold.lake.reading.source_file import SourceFile, location, source_file
from infold.lake.stores.bucket import ReplacedError
from infold.messages import run_errors
from infold.spark.content import column as column_of
from infold.spark.reading import fit
from infold.spark.reading.drift import (
    FileShape,
    PresentFile,
    readable_files,
    refuse_drifted,
    refuse_unseen,
)
from infold.spark.reading.failures import as_error, unread_file
from infold.spark.reading.formats import READERS, FormatReader
from infold.spark.reading.paths import takeable, uri

File = ListedFile | IngestedFile


def read(
    spark: SparkSession, project: Project, source: Source, files: Sequence[tuple[int, File]]
) -> DataFrame:
    """The rows of the files, each given with the id of its version; see :func:`read_counted`."""
    return read_counted(spark, project, source, files).rows


class ReadRows(NamedTuple):
    """The rows of files, and what is known of them before they are looked at."""

    rows: DataFrame
    counts: Mapping[int, int] | None
    """How many each file has, by its id; None where not all files say that themselves."""
    without_texts: frozenset[int]
    """The files whose rows have no ``_raw``."""


def read_counted(
    spark: SparkSession,
    project: Project,
    source: Source,
    files: Sequence[tuple[int, File]],
    *,
    texts: bool = True,
) -> ReadRows:
    """
    The rows of the files.

    Each file is given with the id of its version. Without ``texts`` rows may come without ``_raw``.

    Raises ``run_errors.drift`` for files that drift, before anything is read, and
    ``run_errors.unreadable_file`` for a file that cannot be read; both unless the source sets such
    files aside. Raises ``run_errors.source_changed`` for an object that was replaced meanwhile.
    """
    try:
        return _read_files(spark, project, source, files, texts)
    except ReplacedError as error:
        raise run_errors.source_changed(source=source.name, path=str(error)) from error


def _read_files(
    spark: SparkSession,
    project: Project,
    source: Source,
    files: Sequence[tuple[int, File]],
    texts: bool,
) -> ReadRows:
    if source.file_time_column is not None or source.partition_columns:
        texts_of = [folder_values(file.path, source.partition_columns) for _, file in files]
        drifted = _drifted_folders(source, files, texts_of)
        read_rows = read_counted(spark, project, source.of_files, files, texts=texts)
        rows = read_rows.rows
        if source.partition_columns:
            rows = _with_folder_values(spark, rows, source, files, texts_of, drifted)
        if source.file_time_column is not None:
            rows = _with_file_times(spark, rows, source.file_time_column, files)
        return read_rows._replace(rows=rows)
    reader = READERS[source.format]
    present = [_present(project, source, id_, file, texts=texts) for id_, file in files]
    good, bad = readable_files(source, present, reader.check_readable)
    shapes = reader.inspect(spark, project, source, good)
    refuse_drifted(source, shapes, good)
    if source.on_unreadable is Drift.SET_ASIDE and FORMATS[source.format].has_types:
        bad |= _unread_files(spark, project, source, reader, shapes, good)
        shapes = {id_: shape for id_, shape in shapes.items() if id_ not in bad}
    together = _files_by_shape(shapes, good)
    frames = [reader.rows(spark, source, shape, group) for shape, group in together.items()]
    in_catalog = FORMATS[source.format].is_in_catalog
    for frame, (shape, group) in zip(frames, together.items(), strict=True):
        # A table of a catalog is read by its metadata, which names its files: none is overlooked.
        if not (shape.read or in_catalog):
            refuse_unseen(source, frame, group)
    if bad:
        frames.append(_unreadable(spark, source, [f for f in present if f.id in bad], bad))
    if not frames:
        return ReadRows(_no_rows(spark, project, source), {}, frozenset())
    rows = reduce(DataFrame.unionByName, frames)
    # What Spark opens as a table has the rows of all its files, else there are those asked for.
    how = "inner" if in_catalog else "left"
    ids = [(file.spark_path, file.id) for file in present]
    counts = {id_: shape.rows for id_, shape in shapes.items() if shape.rows is not None}
    counted = len(counts) == len(shapes) and not bad
    without = frozenset(id_ for id_, shape in shapes.items() if shape.read)
    return ReadRows(_with_file_ids(spark, rows, ids, how), counts if counted else None, without)


def _files_by_shape(
    shapes: Mapping[int, FileShape], files: Iterable[PresentFile]
) -> dict[FileShape, list[PresentFile]]:
    """The files that are read, by their shapes."""
    files_by_shape: dict[FileShape, list[PresentFile]] = defaultdict(list)
    for file in files:
        if file.id in shapes:
            files_by_shape[shapes[file.id]].append(file)
    return files_by_shape


def _unread_files(
    spark: SparkSession,
    project: Project,
    source: Source,
    reader: FormatReader,
    shapes: Mapping[int, FileShape],
    files: Iterable[PresentFile],
) -> dict[int, str]:
    """
    Why Spark cannot read those of new files that it cannot.

    It reads all of them for that, as any other reader would judge otherwise of some; once more
    without the first that it cannot read, which its message names, and in halves once there are
    several: so each file is read a few times, not once for each bad one.
    """
    pending = [[file for file in files if not file.known]]
    bad: dict[int, str] = {}
    while pending:
        part = pending.pop()
        together = _files_by_shape(shapes, part).items()
        frames = [reader.rows(spark, source, shape, group) for shape, group in together]
        if not frames:
            continue
        try:
            reduce(DataFrame.unionByName, frames).write.format("noop").mode("overwrite").save()
        except Exception as error:
            location, why = unread_file(str(error)) or ("", "")
            unread = {file.id: why for file in part if file.file.location == location}
            known = as_error(project, source, str(error))
            if not unread or known is None or known.slug != "unreadable-file":
                raise
            bad |= unread
            rest = [file for file in part if file.id not in bad]
            half = len(rest) // 2 if len(bad) > len(unread) else 0
            pending += [rest[:half], rest[half:]]
    return bad


def _present(project: Project, source: Source, id_: int, file: File, *, texts: bool) -> PresentFile:
    known = isinstance(file, IngestedFile) and not set_aside_whole(file)
    if FORMATS[source.format].is_in_catalog:  # Spark names its files as the table does
        at, spark_path = SourceFile(file.path, file.size), file.path
    elif is_url(file.path):
        at = source_file(project.root, file, project.target.stores, of_table=source.is_table)
        spark_path = uri(file.path)
    else:
        path = takeable(project.root, file.path)
        at, spark_path = SourceFile(path, file.size), uri(path)
    return PresentFile(id_, file.path, at, file.size, known, spark_path, file.fingerprint, texts)


def refuse_changed(project: Project, source: Source, files: Iterable[File]) -> None:
    """Raise ``errors.source_changed`` when a file is no longer what its listing showed."""
    if source.is_table:
        return  # checked when it was opened, and read at that version
    objects = []
    for file in files:
        if is_url(file.path):
            objects.append(file)
        elif not unchanged(project, source, file):
            raise run_errors.source_changed(source=source.name, path=file.path)
    for path in changed_objects(project, source, objects)[:1]:
        raise run_errors.source_changed(source=source.name, path=path)


def unchanged(project: Project, source: Source, file: File) -> bool:
    """Whether a file, or an object, is the one that its listing showed."""
    if source.is_table:
        return True
    if is_url(file.path):
        return not changed_objects(project, source, [file])
    try:
        stat = os.stat(location(project.root, file.path))  # noqa: PTH116 - as fast as the listing
    except FileNotFoundError:
        return False
    return is_as_listed(file.fingerprint, stat_fingerprint(stat))


def _with_file_ids(
    spark: SparkSession, rows: DataFrame, ids: list[tuple[str, int]], how: str
) -> DataFrame:
    """The rows with the id of their file for its path."""
    plain = rows.columns
    if len(ids) == 1 and how == "left":
        with_ids, id_ = rows, F.lit(ids[0][1]).cast("bigint")
    else:
        table = pa.table(
            {"_of": [path for path, _ in ids], "_id": [id_ for _, id_ in ids]},
            schema=pa.schema([("_of", pa.string()), ("_id", pa.int64())]),
        )
        # At most a row for each file of the step.
        ids_by_path = F.broadcast(spark.createDataFrame(table))
        with_ids = rows.join(ids_by_path, rows[fit.PATH] == ids_by_path["_of"], how)
        # A path that Spark spells in another way than we do must never lose its rows silently.
        unknown = F.raise_error(F.concat(F.lit("not a file of this step: "), fit.PATH))
        id_ = F.coalesce("_id", unknown.cast("bigint"))
    names = [name for name in plain if name not in (fit.PATH, fit.RAW, fit.PROBLEM)]
    return with_ids.select(*map(column_of, names), id_.alias(FILE), fit.RAW, fit.PROBLEM)


def _drifted_folders(
    source: Source, files: Sequence[tuple[int, File]], texts: Sequence[Mapping[str, str | None]]
) -> dict[int, str]:
    """
    How files drift that are in no folder with the value of a column, by their ids.

    Raises ``run_errors.drift`` for them unless the source sets such files aside.
    """
    drifted = {}
    for (id_, _), values in zip(files, texts, strict=True):
        missing = [name for name in source.partition_columns if name not in values]
        if missing:
            drifted[id_] = "; ".join(f"missing folder {name}=" for name in missing)
    if drifted and source.on_drift is not Drift.SET_ASIDE:
        raise run_errors.drift(
            source.name, [(file.path, drifted[id_]) for id_, file in files if id_ in drifted]
        )
    return drifted


def _with_folder_values(
    spark: SparkSession,
    rows: DataFrame,
    source: Source,
    files: Sequence[tuple[int, File]],
    texts: Sequence[Mapping[str, str | None]],
    drifted: Mapping[int, str],
) -> DataFrame:
    """The rows with the values that the folders of their files have."""
    columns = [column for column in source.columns if column.name in source.partition_columns]
    names = [fit.text_name(at) for at in range(len(columns))]
    table = pa.table(
        {
            "_id": [id_ for id_, _ in files],
            "_drift": [drifted.get(id_) and f"drift: {drifted[id_]}" for id_, _ in files],
        }
        | {
            name: [text.get(declared.name) for text in texts]
            for name, declared in zip(names, columns, strict=True)
        },
        schema=pa.schema(
            [("_id", pa.int64()), *((name, pa.string()) for name in ("_drift", *names))]
        ),
    )
    # At most a row for each file of the step.
    known = F.broadcast(
        fit.typed_rows(
            spark.createDataFrame(table).select(
                *names,
                F.col("_id").cast("string").alias(fit.PATH),
                F.lit(None).cast("string").alias(fit.RAW),
                fit.broken(F.col("_drift")),
            ),
            columns,
            source.timestamp_format,
        ).select(
            *(
                column_of(declared.name).alias(name)
                for name, declared in zip(names, columns, strict=True)
            ),
            F.col(fit.PATH).cast("bigint").alias("_id"),
            F.col(fit.PROBLEM).alias("_of_folder"),
        )
    )
    problem = F.coalesce(F.col(fit.PROBLEM), F.col("_of_folder"))
    others = [other for other in rows.columns if other not in (FILE, fit.RAW, fit.PROBLEM)]
    return rows.join(known, rows[FILE] == known["_id"], "left").select(
        *(F.when(problem.isNull(), column_of(other)).alias(other) for other in others),
        *(
            F.when(problem.isNull(), F.col(name)).alias(declared.name)
            for name, declared in zip(names, columns, strict=True)
        ),
        FILE,
        fit.RAW,
        problem.alias(fit.PROBLEM),
    )


def _with_file_times(
    spark: SparkSession, rows: DataFrame, name: str, files: Sequence[tuple[int, File]]
) -> DataFrame:
    """The rows with the modification time of their files; NULL where a row cannot be used."""
    table = pa.table(
        {
            "_id": [id_ for id_, _ in files],
            "_at": [written_at(file.fingerprint) for _, file in files],
        },
        schema=pa.schema([("_id", pa.int64()), ("_at", pa.int64())]),
    )
    # At most a row for each file of the step.
    times = F.broadcast(spark.createDataFrame(table))
    time = F.when(F.col(fit.PROBLEM).isNull(), F.timestamp_micros("_at"))
    names = [other for other in rows.columns if other not in (FILE, fit.RAW, fit.PROBLEM)]
    timed = rows.join(times, rows[FILE] == times["_id"], "left").withColumn(name, time)
    return timed.select(*map(column_of, names), column_of(name), FILE, fit.RAW, fit.PROBLEM)


def _no_rows(spark: SparkSession, project: Project, source: Source) -> DataFrame:
    schema = column_types(spark, project, source).add(FILE, T.LongType())
    schema = schema.add(fit.RAW, T.StringType()).add(fit.PROBLEM, T.StringType())
    return spark.createDataFrame([], schema)


def _unreadable(
    spark: SparkSession, source: Source, files: Sequence[PresentFile], why: Mapping[int, str]
) -> DataFrame:
    """One row without values for each file that cannot be read: how many it has is unknown."""
    table = pa.table(
        {
            fit.PATH: [file.spark_path for file in files],
            fit.PROBLEM: [f"unreadable: {why[file.id]}" for file in files],
        }
    )
    problem, no_text = F.col(fit.PROBLEM), F.lit(None).cast("string")
    return fit.unusable_rows(
        spark.createDataFrame(table), source.columns, F.col(fit.PATH), no_text, problem
    )


def column_types(spark: SparkSession, project: Project, source: Source) -> T.StructType:
    """The columns of a source, with the types that its rows have once they are read."""
    columns = READERS[source.format].columns(spark, project, source.of_files)
    columns = [
        *columns,
        *(declared for declared in source.columns if declared.name in source.partition_columns),
    ]
    types = T.StructType(
        [T.StructField(declared.name, fit.stored_type(declared)) for declared in columns]
    )
    name = source.file_time_column
    return types if name is None else types.add(name, T.TimestampType())
