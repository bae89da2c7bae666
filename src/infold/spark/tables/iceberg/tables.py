"""
Iceberg behind the port ``Tables``: format v3, merge-on-read with deletion vectors.

Partitions are calendar time, coarser than the cells: late rows touch many old cells with few rows
each, and a file for each touched day would be too many files. ``replace`` rewrites the touched
partitions as a whole, with the rows of other cells: one atomic overwrite without delete files. Step
ids are in snapshot properties, set by write options, or for MERGE by a setting of the session.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce
from operator import and_
from typing import TYPE_CHECKING, Any

from pyspark.errors import PySparkException
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import DataType

from infold.core.interval import MAX, MIN, Granularity, Ranges
from infold.core.model import table_name
from infold.core.ports import Lake
from infold.core.queries import quoted
from infold.lake.iceberg.metadata_file import (
    kept_with_rows_of,
    known_history,
    partition_cell,
    read_metadata,
)
from infold.messages import run_errors
from infold.spark.content import column as column_of
from infold.spark.content import range_predicate
from infold.spark.session_facts import is_remote
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
from infold.spark.tables.port import Layout, PartitionFiles, Stamp

if TYPE_CHECKING:
    import pyarrow as pa

_PROPERTY = "snapshot-property."
_SESSION_PROPERTY = "spark.sql.iceberg.snapshot-property."
_PROPERTIES = {
    "format-version": "3",
    "write.delete.mode": "merge-on-read",
    "write.update.mode": "merge-on-read",
    "write.merge.mode": "merge-on-read",
    "write.distribution-mode": "none",
    "write.spark.fanout.enabled": "true",
    "write.target-file-size-bytes": str(128 * 1024 * 1024),
    "write.metadata.delete-after-commit.enabled": "true",
    "write.metadata.previous-versions-max": "10",
}


@dataclass(frozen=True)
class IcebergTables:
    """The tables of one project in the session's catalog ``infold``."""

    spark: SparkSession
    namespace: str
    lake: Lake

    def identifier(self, table: str) -> str:
        """The table's full name as Spark SQL takes it."""
        return f"infold.{self._procedure_name(table)}"

    def exists(self, table: str) -> bool:
        """Whether the table is there."""
        return self.lake.metadata(table_name(table)) is not None

    def read(
        self,
        table: str,
        snapshot: int | None = None,
        *,
        column: str | None = None,
        ranges: Ranges | None = None,
    ) -> DataFrame:
        """All rows: the plan that reads them skips files by its own predicates, without a job."""
        del column, ranges
        if snapshot is None and is_remote(self.spark):
            # There a frame is looked up anew by each query: it would follow the table's commits.
            snapshot = self._newest_snapshot(table)
        if snapshot is None:
            return with_struct(self.spark.read.table(self.identifier(table)))
        try:
            return self._rows_at(table, snapshot)
        except PySparkException:
            same = self._with_same_rows(table, snapshot)
            if same is None:
                raise
            return self._rows_at(table, same)

    def _rows_at(self, table: str, snapshot: int) -> DataFrame:
        reader = self.spark.read.option("versionAsOf", str(snapshot))
        return with_struct(reader.table(self.identifier(table)))

    def _with_same_rows(self, table: str, snapshot: int) -> int | None:
        """A kept snapshot with the rows of one that others rewrote, and had expire."""
        location = self.lake.location(table_name(table))
        if location is None:
            return None
        metadata = read_metadata(location)
        return kept_with_rows_of(snapshot, metadata, known_history(metadata, read_metadata))

    def values(self, table: str, column: str, snapshot: int, limit: int) -> pa.Array | None:
        """Distinct strings of a column, without NULL, maybe more; None if files list none."""
        return self.lake.string_values(table_name(table), column, snapshot, limit)

    def create(self, table: str, rows: DataFrame, layout: Layout, stamp: Stamp) -> int:
        """Replace schema, layout and content by ``rows``, or make the table."""
        self.spark.sql(f"CREATE NAMESPACE IF NOT EXISTS infold.{quoted(self.namespace)}")
        writer = with_columns(rows).writeTo(self.identifier(table)).using("iceberg")
        for key, value in {**_PROPERTIES, **_layout_properties(layout)}.items():
            writer = writer.tableProperty(key, value)
        for key, value in stamped(stamp).items():
            writer = writer.option(_PROPERTY + key, value)
        if layout.column is not None and layout.partition is not None:
            writer = writer.partitionedBy(_transform(layout.column, layout.partition))
        if not self.exists(table) and (folder := self.lake.folder_for_new(table_name(table))):
            writer = writer.tableProperty("location", folder)
        with commit_point(table):
            writer.createOrReplace()
        return self._committed_snapshot(table, stamp)

    def append(self, table: str, rows: DataFrame, stamp: Stamp) -> int:
        """Add rows; columns are matched by name."""
        writer = with_columns(rows).writeTo(self.identifier(table))
        for key, value in stamped(stamp).items():
            writer = writer.option(_PROPERTY + key, value)
        with commit_point(table):
            writer.append()
        return self._committed_snapshot(table, stamp)

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
        """One MERGE: rows to remove match on their keys, rows to add have none and match none."""
        del column, ranges  # as in ``read``
        insert = with_columns(insert)
        # The source has names that no table has: a condition can only mean the table's columns.
        keys = [(name, f"_on_{at}") for at, name in enumerate(on)]
        new = [(name, f"_new_{at}") for at, name in enumerate(insert.columns)]
        removed = delete.select(*(column_of(name).alias(key) for name, key in keys))
        added = insert.select(*(column_of(name).alias(key) for name, key in new))
        matches = (F.expr(f"{quoted(name)} = {key}") for name, key in keys)
        values = {quoted(name): F.col(key) for name, key in new}
        with commit_point(table), _session_stamp(self.spark, stamp):
            (
                added.unionByName(removed, allowMissingColumns=True)
                .mergeInto(self.identifier(table), reduce(and_, matches, F.expr(condition)))
                .whenMatched()
                .delete()
                .whenNotMatched(F.col(keys[0][1]).isNull())
                .insert(values)
                .merge()
            )
        return self._committed_snapshot(table, stamp)

    def evolve(
        self,
        table: str,
        names: Sequence[tuple[str, str]],
        types: Sequence[tuple[Sequence[str], DataType]],
        stamp: Stamp,
    ) -> int:
        """
        Change the schema and append nothing, in one transaction: the new snapshot has the new
        names and types, and the stamp.

        A server of Spark Connect has no such transactions: there all rows are written again.
        """
        if is_remote(self.spark):
            rows, layout = evolved(self.read(table), self.layout(table), names, types)
            return self.create(table, rows, layout, stamp)
        jvm: Any = self.spark._jvm  # noqa: SLF001 (SQL has no transactions of several changes)
        session = self.spark._jsparkSession  # noqa: SLF001 (as above)
        loaded = jvm.org.apache.iceberg.spark.Spark3Util.loadIcebergTable(
            session, self.identifier(table)
        )
        transaction = loaded.newTransaction()
        schema = transaction.updateSchema()
        for old, new in names:
            schema = schema.renameColumn(old, new)
        for path, type_ in types:
            parsed = jvm.org.apache.spark.sql.types.DataType.fromJson(type_.json())
            wider = jvm.org.apache.iceberg.spark.SparkSchemaUtil.convert(parsed)
            schema = schema.updateColumn(".".join(path), wider.asPrimitiveType())
        schema.commit()
        append = transaction.newFastAppend()
        for key, value in stamped(stamp).items():
            append.set(key, value)
        append.commit()
        with commit_point(table):
            transaction.commitTransaction()
        self.spark.catalog.refreshTable(self.identifier(table))
        return self._committed_snapshot(table, stamp)

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
        stored = self.read(table)
        type_ = dict(stored.dtypes)[column]
        result = with_columns(with_other_cells(stored, rows, column, ranges, touched))
        writer = result.coalesce(writing_tasks(touched, about)).writeTo(self.identifier(table))
        for key, value in stamped(stamp).items():
            writer = writer.option(_PROPERTY + key, value)
        whole = any(part.start <= MIN and part.end >= MAX for part in touched)
        condition = (
            F.lit(True) if whole else F.expr(range_predicate(column, type_, touched, exact=True))
        )
        with commit_point(table):
            writer.overwrite(condition)
        return self._committed_snapshot(table, stamp)

    def layout(self, table: str) -> Layout:
        """How the table was laid out when it was made."""
        stored = self.lake.layout(table_name(table))
        return Layout() if stored is None else Layout(stored.column, stored.partition, stored.type)

    def partition_files(self, table: str) -> Sequence[PartitionFiles]:
        """Files of each partition, counted in Iceberg's metadata table of files."""
        partitioned = self.layout(table).partition is not None
        rows = self.spark.sql(
            f"SELECT {'partition' if partitioned else '1'} AS part,"
            " sum(if(content = 0, 1, 0)) AS data,"
            " sum(if(content = 0, 0, 1)) AS deletes,"
            " sum(if(content = 0, file_size_in_bytes, 0)) AS bytes"
            f" FROM {self.identifier(table)}.files GROUP BY 1"
        ).collect()  # at most a row for each partition
        return [
            PartitionFiles(
                row["part"][0] if partitioned else None, row["data"], row["deletes"], row["bytes"]
            )
            for row in rows
        ]

    def rewrite(self, table: str, partition: Any) -> None:
        """Rewrite the files of one partition (None: of the table), sorted as they were laid out."""
        layout = self.layout(table)
        column = layout.column
        sort = f", strategy => 'sort', sort_order => '{quoted(column)} ASC'" if column else ""
        where = "" if partition is None else partition_filter(layout, partition)
        only = f', where => "{where}"' if where else ""
        self.spark.sql(
            f"CALL infold.system.rewrite_data_files(table => '{self._procedure_name(table)}'{sort}"
            f"{only}, options => map('rewrite-all', 'true'))"
        ).collect()  # one row

    def forget_removed_files(self, table: str) -> None:
        """
        Write the manifests again that name removed files, with bounds of what was in them.

        Iceberg leaves one manifest alone if one is enough. So for a moment two are to be.
        """
        manifests = self.spark.sql(
            "SELECT sum(length) AS bytes, sum(deleted_data_files_count) + "
            f"sum(deleted_delete_files_count) AS removed FROM {self.identifier(table)}.manifests"
        ).collect()[0]  # one row
        if not manifests["removed"]:
            return
        size = "'commit.manifest.target-size-bytes'"
        name = self.identifier(table)
        half = max(1, manifests["bytes"] // 2)
        self.spark.sql(f"ALTER TABLE {name} SET TBLPROPERTIES ({size} = '{half}')")
        try:
            self.spark.sql(
                "CALL infold.system.rewrite_manifests("
                f"table => '{self._procedure_name(table)}', use_caching => false)"
            ).collect()  # one row
        finally:
            self.spark.sql(f"ALTER TABLE {name} UNSET TBLPROPERTIES ({size})")

    def expire(self, table: str, *, before: float, keep: int) -> None:
        """Expire snapshots older than ``before`` (seconds since 1970), but the ``keep`` newest."""
        older = time.strftime("%Y-%m-%d %H:%M:%S", time.gmtime(before))
        self.spark.sql(
            "CALL infold.system.expire_snapshots("
            f"table => '{self._procedure_name(table)}',"
            f" older_than => TIMESTAMP '{older}', retain_last => {keep})"
        ).collect()  # one row

    def _procedure_name(self, table: str) -> str:
        """The table's name as Iceberg's procedures take it: without the catalog."""
        name = self.lake.stored_name(table_name(table))
        return f"{quoted(self.namespace)}.{quoted(name)}"

    def _committed_snapshot(self, table: str, stamp: Stamp) -> int:
        """The snapshot that a commit made. Raises ``foreign_write`` where others made one too."""
        head = self.lake.metadata(table_name(table))
        if head is None or head.snapshot is None:
            raise RuntimeError(f"{table} has no snapshot right after a commit")
        if head.foreign is not None:
            raise run_errors.foreign_write(head.table, head.foreign)
        return head.steps.get(stamp.step, head.snapshot)  # none by a MERGE that finds nothing

    def _newest_snapshot(self, table: str) -> int | None:
        head = self.lake.metadata(table_name(table))
        return None if head is None else head.snapshot


def partition_filter(layout: Layout, value: Any) -> str:
    """
    The rows of one partition, as a predicate on the column that it is made from.

    ``value`` is Iceberg's own for the partition.
    """
    assert layout.column is not None
    assert layout.partition is not None
    part = Ranges((partition_cell(layout.partition, value),))
    return range_predicate(layout.column, layout.type, part)


def _layout_properties(layout: Layout) -> dict[str, str]:
    dictionary = {"write.parquet.dict-size-bytes": str(layout.dictionary)}
    if layout.column is None or layout.partition is None:
        return dictionary
    return dictionary | {
        "infold.column": layout.column,
        "infold.partition": layout.partition.value,
        "infold.type": layout.type,
    }


def _transform(name: str, partition: Granularity) -> Column:
    functions = {
        Granularity.HOUR: F.partitioning.hours,
        Granularity.DAY: F.partitioning.days,
        Granularity.MONTH: F.partitioning.months,
        Granularity.YEAR: F.partitioning.years,
    }
    return functions[partition](quoted(name))


class _session_stamp:  # noqa: N801 - reads as a statement
    """Sets the stamp for the statements in the block, which have no write options."""

    def __init__(self, spark: SparkSession, stamp: Stamp) -> None:
        self._spark = spark
        self._settings = {_SESSION_PROPERTY + key: value for key, value in stamped(stamp).items()}

    def __enter__(self) -> None:
        for key, value in self._settings.items():
            self._spark.conf.set(key, value)

    def __exit__(self, *_: object) -> None:
        for key in self._settings:
            self._spark.conf.unset(key)
