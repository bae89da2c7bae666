"""
Delta Lake behind the port ``Tables``: deletion vectors, partitions of calendar time.

A table is a folder, read and written by its path. Partitions are coarser than the cells, as in
Iceberg, and are a column of infold's own (``PARTITION``), which is left out of every frame. The
stamp of a commit is its ``userMetadata``.

Delta can skip a write that it has seen (``txnAppId``, ``txnVersion``). infold does not use that: it
looks for the step before it repeats one, and to skip a write silently is the worst of errors.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from uuid import uuid4

from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql import types as T
from pyspark.sql.types import DataType

from infold.core.interval import MAX, MIN, Granularity, Ranges
from infold.core.model import table_name
from infold.core.own_columns import PARTITION
from infold.core.ports import StoredLayout
from infold.core.queries import quoted
from infold.lake.delta.commit import Action, fingerprint
from infold.lake.delta.files import (
    as_json,
    files_during,
    files_of_partitions,
    live_files,
    newest_files,
    partition_files,
    partition_of,
    removal,
    with_deleted,
)
from infold.lake.delta.folders import clear
from infold.lake.delta.log import Log, layout_metadata, layout_of, without_details
from infold.lake.delta.tables import DeltaLake
from infold.lake.stores import places
from infold.messages import command_errors, delta_errors, run_errors
from infold.spark.content import column
from infold.spark.content import column as column_of
from infold.spark.stored_types import as_stored
from infold.spark.tables.commit import (
    commit_point,
    evolved,
    stamped,
    touched_partitions,
    with_columns,
    with_other_cells,
    with_struct,
    writing_tasks,
)
from infold.spark.tables.delta.session_settings import ONE_TRY, USER_METADATA, writing
from infold.spark.tables.port import Layout, PartitionFiles, Stamp

if TYPE_CHECKING:
    import pyarrow as pa

_FOR_EVER = "interval 5200 weeks"
_PROPERTIES = {
    "delta.enableDeletionVectors": "true",
    # infold itself deletes what no version needs that it keeps.
    "delta.logRetentionDuration": _FOR_EVER,
    "delta.deletedFileRetentionDuration": _FOR_EVER,
}
_STATISTICS = "delta.dataSkippingNumIndexedCols"
_MOST_FILES = 10_000
"""Of more files it is Spark that finds those a plan needs."""
_FILE_BYTES = 128 * 1024 * 1024
_REWRITE = "infold.rewrite"
_VERSION_IS_THERE = ("DELTA_MAX_COMMIT_RETRIES_EXCEEDED", "DELTA_PROTOCOL_CHANGED")
"""What Delta says when it gives up; the second of the first version of a table."""

_REFUSED_CHARACTERS = frozenset(" ,;{}()\n\t=")
"""What no name of a column has in a table without column mapping."""


@dataclass(frozen=True)
class DeltaTables:
    """The tables of one project, by their folders."""

    spark: SparkSession
    lake: DeltaLake

    def exists(self, table: str) -> bool:
        """Whether the table is there."""
        return self._refreshed_log(table) is not None

    def read(
        self,
        table: str,
        snapshot: int | None = None,
        *,
        column: str | None = None,
        ranges: Ranges | None = None,
    ) -> DataFrame:
        """
        All rows of a version, by default of the newest one there is now.

        The frame stays at it: without a version, Delta would follow the table's commits.
        """
        log = self._refreshed_log(table)
        return _shown(self._rows(table, log, snapshot, column=column, ranges=ranges))

    def _rows(
        self,
        table: str,
        log: Log | None,
        snapshot: int | None = None,
        *,
        column: str | None = None,
        ranges: Ranges | None = None,
    ) -> DataFrame:
        version = None if log is None else log.newest if snapshot is None else log.version(snapshot)
        if log is None or version is None or version < log.commits[0]:
            # Delta's own error says what is missing.
            reader = self.spark.read.format("delta").option("versionAsOf", str(snapshot or 0))
            return reader.load(self._folder(table))
        files = self._files_for(log, version, column, ranges)
        return rows_of_version(self.spark, log.folder, version, files)

    def _files_for(
        self, log: Log, version: int, column: str | None, ranges: Ranges | None
    ) -> Sequence[Action] | None:
        """The files that rows of some times are in; None for Delta itself to find them."""
        layout = layout_of(log.schema(version).fields)
        if ranges is None and layout.column is not None:
            return None
        files = [*(live_files(log, version) or {}).values()] or None
        if files is not None and column is not None and ranges is not None:
            files = files_during(log, files, column, ranges, layout)
        return None if files is not None and len(files) > _MOST_FILES else files

    def values(self, table: str, column: str, snapshot: int, limit: int) -> pa.Array | None:
        """Distinct strings of a column, without NULL, maybe more; None if files list none."""
        return self.lake.string_values(table_name(table), column, snapshot, limit)

    def create(self, table: str, rows: DataFrame, layout: Layout, stamp: Stamp) -> int:
        """Replace schema, layout and content by ``rows``, or make the table."""
        bad = [name for name in names_in(rows.schema) if not _REFUSED_CHARACTERS.isdisjoint(name)]
        if bad:
            raise delta_errors.column_names(model=table, names=bad)
        if self._refreshed_log(table) is None and places.in_store(self._folder(table)):
            clear(self._folder(table))
        return self._write(table, rows, layout, stamp, mode="overwrite", overwriteSchema="true")

    def layout(self, table: str) -> Layout:
        """How the table was laid out when it was made."""
        stored = self.lake.layout(table_name(table))
        return Layout() if stored is None else Layout(stored.column, stored.partition, stored.type)

    def append(self, table: str, rows: DataFrame, stamp: Stamp) -> int:
        """Add rows; columns are matched by name."""
        return self._commit(table, self._known_log(table), rows, stamp)

    def merge(
        self,
        table: str,
        *,
        insert: DataFrame,
        delete: DataFrame,
        on: Sequence[str],
        condition: str,
        stamp: Stamp,
        column: str | None = None,
        ranges: Ranges | None = None,
    ) -> int:
        """
        Mark the rows to remove as deleted, where they are, and write those to add.

        Delta's MERGE looks for the files with jobs, and reads them three times.
        """
        log = self._known_log(table)
        stored = self._rows(table, log, column=column, ranges=ranges)
        rows, files = _positions(stored.where(condition), delete, on), newest_files(log)
        by_name = {file.rpartition("/")[2]: file for file in files}
        deleted = {by_name[name]: positions for name, positions in rows.items()}
        removed, added = with_deleted(log.folder, files, deleted)
        return self._commit(table, log, insert, stamp, removed, added)

    def evolve(
        self,
        table: str,
        names: Sequence[tuple[str, str]],
        types: Sequence[tuple[Sequence[str], DataType]],
        stamp: Stamp,
    ) -> int:
        """Write all rows again: a column's name is that in the files."""
        rows, layout = evolved(self.read(table), self.layout(table), names, types)
        return self.create(table, rows, layout, stamp)

    def replace(
        self,
        table: str,
        *,
        column: str,
        ranges: Ranges,
        rows: DataFrame,
        stamp: Stamp,
        about: int = 0,
    ) -> int:
        """Overwrite the partitions of ``ranges``, with the rows of other cells in them."""
        layout = self.layout(table)
        touched = touched_partitions(layout, ranges)
        log = self._known_log(table)
        stored = _shown(self._rows(table, log, column=column, ranges=touched))
        result = with_other_cells(stored, rows, column, ranges, touched)
        result = result.coalesce(writing_tasks(touched, about))
        old = list(newest_files(log).values())
        whole = any(part.start <= MIN and part.end >= MAX for part in touched)
        if layout.partition is not None and not whole:
            old = files_of_partitions(old, layout.partition, touched)
        return self._commit(table, log, result, stamp, [removal(file) for file in old])

    def partition_files(self, table: str) -> Sequence[PartitionFiles]:
        """Files of each partition, counted in the table's log."""
        files = newest_files(self._known_log(table)).values()
        return [PartitionFiles(*counts) for counts in partition_files(files)]

    def rewrite(self, table: str, partition: Any) -> None:
        """Rewrite one partition, by a commit that says of itself that it changes no row."""
        log = self._known_log(table)
        old = [file for file in newest_files(log).values() if partition_of(file) == partition]
        rows, layout = rows_of_version(self.spark, log.folder, log.newest, old), self.layout(table)
        if layout.column is not None:
            rows = rows.sortWithinPartitions(column_of(layout.column))
        rows = rows.coalesce(max(1, sum(file["size"] for file in old) // _FILE_BYTES))
        mark = uuid4().hex
        settings = {USER_METADATA: json.dumps({_REWRITE: mark})}
        removed = [removal(file, changes=False) for file in old]
        with self._committing(table, mark, settings):
            commit(rows, log.folder, log.newest, removed=removed, changes=False)

    def forget_removed_files(self, table: str) -> None:
        """Nothing: the log of earlier versions goes as a whole."""
        del table

    def expire(self, table: str, *, before: float, keep: int) -> None:
        """Forget versions older than ``before`` (seconds since 1970), but the ``keep`` newest."""
        from infold.lake.delta.expiry import forget_before

        log = self._refreshed_log(table)
        if log is None:
            return
        main = list(log.main())
        kept = [commit for n, commit in enumerate(main) if n < keep or commit.at >= before * 1000]
        oldest = min(commit.version for commit in kept)
        if oldest > log.commits[0]:
            forget_before(log, oldest)
            forget_changed(self.spark, log.folder, None)

    # -- writing

    def _write(
        self,
        table: str,
        rows: DataFrame,
        layout: Layout,
        stamp: Stamp,
        *,
        mode: str,
        **options: str,
    ) -> int:
        writer = self._as_stored(rows, layout).write.format("delta").mode(mode)
        if layout.partition is not None:
            writer = writer.partitionBy(PARTITION)
        indexed = columns_with_statistics(rows.schema, layout.column)
        for key, value in {**_PROPERTIES, _STATISTICS: indexed, **options}.items():
            writer = writer.option(key, value)
        writer = writer.option("userMetadata", _user_metadata(stamp))
        with commit_point(table), self._committing(table, stamp.step):
            writer.save(self._folder(table))
        return self._committed_snapshot(table, stamp)

    def _commit(
        self,
        table: str,
        log: Log,
        rows: DataFrame,
        stamp: Stamp,
        removed: Sequence[Action] = (),
        added: Sequence[Action] = (),
    ) -> int:
        """One commit of rows, and of changes to files, after a version that is known here."""
        stored = _in_columns_of(self._as_stored(rows, layout_of(log.schema().fields)), log)
        settings = {USER_METADATA: _user_metadata(stamp)}
        with commit_point(table), self._committing(table, stamp.step, settings):
            commit(stored, log.folder, log.newest, removed=removed, added=added)
        return self._committed_snapshot(table, stamp)

    @contextmanager
    def _committing(
        self, table: str, mark: str, settings: Mapping[str, str] | None = None
    ) -> Iterator[None]:
        """
        The settings for a commit in the block, which leaves ``mark`` in the log.

        In a store one fails where a version of its number is there. Its own may be: the answer to
        a request was lost, and what was done is refused when it is asked for once more. So it is
        the log that says whether the commit was made.
        """
        if not places.in_store(self.lake.warehouse):
            with writing(self.spark, settings):
                yield
            return
        try:
            with writing(self.spark, {**ONE_TRY, **(settings or {})}):
                yield
        except (PySparkException, Py4JError) as error:
            if self._is_newest(table, mark):
                return
            if any(condition in str(error) for condition in _VERSION_IS_THERE):
                raise run_errors.foreign_write(table, None) from error
            raise

    def _is_newest(self, table: str, mark: str) -> bool:
        log = self.lake.log(table_name(table))
        return log is not None and mark in log.commit(log.newest).own.values()

    def _as_stored(self, rows: DataFrame, layout: Layout | StoredLayout) -> DataFrame:
        """Rows as the table has them: types, columns for states, and one for the partition."""
        stored = in_types_of_tables(with_columns(rows))
        if layout.column is None or layout.partition is None:
            return stored
        about = layout_metadata(layout.column, layout.partition, layout.type)
        start = F.expr(_PARTITION_START[layout.partition].format(quoted(layout.column)))
        return stored.select("*", start.alias(PARTITION, metadata=dict(about)))

    def _folder(self, table: str) -> str:
        return self.lake.folder(table_name(table))

    def _refreshed_log(self, table: str) -> Log | None:
        """The log now; the JVM forgets what it knows of another table, or of later versions."""
        log = self.lake.log(table_name(table))
        forget_changed(self.spark, self._folder(table), log)
        return log

    def _known_log(self, table: str) -> Log:
        """The log now. Raises ``not_built`` without a table."""
        log = self._refreshed_log(table)
        if log is None:
            raise command_errors.not_built(name=table)
        return log

    def _committed_snapshot(self, table: str, stamp: Stamp) -> int:
        """The snapshot that a commit made. Raises ``foreign_write`` where others made one too."""
        head = self.lake.metadata(table_name(table))
        if head is None or stamp.step not in head.steps:
            if places.in_store(self.lake.warehouse):  # which writes over what is there
                raise run_errors.foreign_write(table, None)
            raise RuntimeError(f"{table} has no step {stamp.step} right after its commit")
        if head.foreign is not None:
            raise run_errors.foreign_write(table, head.foreign)
        return head.steps[stamp.step]


_PARTITION_START = {
    Granularity.HOUR: "date_trunc('HOUR', {0})",
    Granularity.DAY: "CAST({0} AS DATE)",
    Granularity.MONTH: "trunc({0}, 'MONTH')",
    Granularity.YEAR: "trunc({0}, 'YEAR')",
}
"""The start of a row's partition."""


def _user_metadata(stamp: Stamp) -> str:
    return json.dumps(dict(stamped(stamp)))


def _shown(rows: DataFrame) -> DataFrame:
    """Rows without the column that is only on disk, and with states as they were before."""
    return with_struct(rows.drop(PARTITION) if PARTITION in rows.columns else rows)


def _in_columns_of(rows: DataFrame, log: Log) -> DataFrame:
    """Rows with the columns of a table, as from here on they are written as they are."""
    stored = T.StructType.fromJson({"fields": list(log.schema().fields)})
    if [(one.name, _type_of(one)) for one in rows.schema] == [
        (one.name, _type_of(one)) for one in stored
    ]:
        return rows
    given = {field.name.lower(): field for field in rows.schema}
    columns = []
    for field in stored:
        own = given.pop(field.name.lower(), None)
        value = F.lit(None) if own is None else column_of(own.name)
        if own is None or _type_of(own) != _type_of(field):
            nested = isinstance(field.dataType, T.ArrayType | T.MapType | T.StructType)
            assert own is None or not nested, f"{field.name} has another type than in the table"
            value = value.cast(field.dataType)
        columns.append(value.alias(field.name, metadata=field.metadata))
    assert not given, f"the table has no {', '.join(given)}"
    return rows.select(*columns)


def _type_of(field: T.StructField) -> Any:
    return without_details(field.dataType.jsonValue())


def _positions(stored: DataFrame, delete: DataFrame, on: Sequence[str]) -> Mapping[str, pa.Array]:
    """Where the stored rows that equal one of ``delete`` are: the names of files, and positions."""
    place = stored.metadataColumn("_metadata")
    rows = stored.select(
        *(column_of(name).alias(f"_on_{at}") for at, name in enumerate(on)),
        place["file_name"].alias("_file"),
        place["row_index"].alias("_at"),
    )
    removed = delete.select(*(column_of(name).alias(f"_on_{at}") for at, name in enumerate(on)))
    rows = rows.join(removed, [f"_on_{at}" for at in range(len(on))], "left_semi")
    # At most a name and a number for each row that is removed: 12 bytes.
    places = rows.select("_file", "_at").toArrow()
    grouped = places.group_by("_file").aggregate([("_at", "list")])
    positions = (scalar.values for scalar in grouped["_at_list"])
    return dict(zip(grouped["_file"].to_pylist(), positions, strict=True))


# It takes for granted that a path is one table, with versions that only rise. infold gives tables
# other names, drops them, and takes versions of scratch tables away.

_known_logs: dict[str, tuple[str, int, str]] = {}
"""The table, its newest version and what tells that from others, as last seen of each folder."""


def forget_changed(spark: SparkSession, folder: str, log: Log | None) -> None:
    """Let the JVM forget a folder's log if it is not one that goes on from the one it knows."""
    before = _known_logs.get(folder)
    if log is None:
        _known_logs.pop(folder, None)
    else:
        file = fingerprint(log.file(log.newest), log.mark(log.newest))
        head = (log.schema().table_id, log.newest, f"{log.location}:{file}")
        _known_logs[folder] = head
        if before is not None and before[0] == head[0] and (before[1] < head[1] or before == head):
            return
    jvm: Any = spark._jvm  # noqa: SLF001 (no public way)
    path = jvm.org.apache.hadoop.fs.Path(folder)
    session = spark._jsparkSession  # noqa: SLF001 (as above)
    jvm.org.apache.spark.sql.delta.DeltaLog.invalidateCache(session, path)


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


_STATISTICS_COLUMNS = 32
"""Of so many columns, the first ones, Delta keeps the least and the greatest value in a file."""


def columns_with_statistics(schema: T.StructType, time: str | None) -> str:
    """Of how many columns a table has statistics: files are skipped by those of its time."""
    before = 0
    for field in schema:
        before += 1 + len([*names_in(field.dataType)])
        if field.name == time:
            return str(max(_STATISTICS_COLUMNS, before))
    return str(_STATISTICS_COLUMNS)


def names_in(type_: T.DataType) -> Iterator[str]:
    """The names of all fields of a type, whatever they are inside of."""
    if isinstance(type_, T.StructType):
        for field in type_:
            yield field.name
            yield from names_in(field.dataType)
    elif isinstance(type_, T.ArrayType):
        yield from names_in(type_.elementType)
    elif isinstance(type_, T.MapType):
        yield from names_in(type_.keyType)
        yield from names_in(type_.valueType)


# Versions inside the JVM, by what Delta's readers and writers go by themselves. Its public ways
# look for the files of a version with jobs of Spark, for each plan; these are told them.

_ADDED = "org.apache.spark.sql.delta.actions.AddFile"
_REMOVED = "org.apache.spark.sql.delta.actions.RemoveFile"


def rows_of_version(
    spark: SparkSession, folder: str, version: int, files: Iterable[Action] | None
) -> DataFrame:
    """The rows of a version: of these files of it, or None, of those that a plan may need."""
    jvm: Any = spark._jvm  # noqa: SLF001 (as all here: no public way)
    log = _log(spark, folder)
    snapshot, nothing = _snapshot(jvm, log, version), jvm.scala.Option.empty()
    if files is None:
        no_filters = jvm.org.apache.spark.api.python.PythonUtils.toSeq(jvm.java.util.ArrayList())
        of_version = jvm.scala.Option.apply(snapshot)
        relation = log.createRelation(no_filters, of_version, nothing, True)
        rows = spark._jsparkSession.baseRelationToDataFrame(relation)  # noqa: SLF001
    else:
        chosen = _actions(jvm, _ADDED, ({**file, "stats": None} for file in files))
        rows = log.createDataFrame(snapshot, chosen, False, nothing)
    return DataFrame(rows, spark)


def commit(
    rows: DataFrame,
    folder: str,
    version: int,
    *,
    removed: Iterable[Mapping[str, Any]] = (),
    added: Iterable[Action] = (),
    changes: bool = True,
) -> None:
    """
    Write rows and commit them after a version, with files that go, and some that have other rows.

    It is refused where others removed one of the files that go, or rows of it, meanwhile. What else
    they did, who commits finds in the log.

    Without ``changes`` the commit says that the table has the rows that it had.
    """
    spark = rows.sparkSession
    jvm: Any = spark._jvm  # noqa: SLF001
    log = _log(spark, folder)
    nothing = jvm.scala.Option.empty()
    before = jvm.scala.Option.apply(_snapshot(jvm, log, version))
    transaction = log.startTransaction(nothing, before)
    actions = transaction.writeFiles(rows._jdf)  # noqa: SLF001
    if not changes:
        text = jvm.org.apache.spark.sql.delta.util.JsonUtils.mapper().writeValueAsString(actions)
        same = ({**file, "dataChange": False} for file in json.loads(text))
        actions = _actions(jvm, _ADDED, same)
    actions = actions.appendedAll(_actions(jvm, _REMOVED, removed))
    actions = actions.appendedAll(_actions(jvm, _ADDED, added))
    operations = jvm.org.apache.spark.sql.delta
    mode = jvm.org.apache.spark.sql.SaveMode.Append
    operation = getattr(operations, "DeltaOperations$Write")(mode, *[nothing] * 8)
    transaction.commit(actions, operation)


def _log(spark: SparkSession, folder: str) -> Any:
    jvm: Any = spark._jvm  # noqa: SLF001
    session = spark._jsparkSession  # noqa: SLF001
    # Delta plans in the session that is active in this thread.
    jvm.org.apache.spark.sql.classic.SparkSession.setActiveSession(session)
    return jvm.org.apache.spark.sql.delta.DeltaLog.forTable(session, folder)


def _snapshot(jvm: Any, log: Any, version: int) -> Any:
    """A version; where the JVM knows none as new, it looks at the log again."""
    known = log.unsafeVolatileSnapshot()
    if known.version() == version:
        return known
    nothing = jvm.scala.Option.empty()
    return log.getSnapshotAt(version, nothing, nothing, False)


def _actions(jvm: Any, kind: str, actions: Iterable[Mapping[str, Any]]) -> Any:
    """Actions of one kind for the JVM, all in one call."""
    mapper = jvm.org.apache.spark.sql.delta.util.JsonUtils.mapper()
    listed = mapper.getTypeFactory().constructFromCanonical(
        f"scala.collection.immutable.List<{kind}>"
    )
    return mapper.readValue(as_json(actions), listed)
