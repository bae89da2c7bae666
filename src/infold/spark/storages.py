"""
The one place that chooses how tables are stored: by the target's ``storage``.

All else asks the ports: ``ports.Lake`` and ``ports.SnapshotReader`` without a JVM, ``Tables`` with
Spark. To add a storage is to add a package with a module like :class:`StorageAdapters`, and a case
in :func:`adapters_of`. Importing this imports neither pyspark nor what any storage brings.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from infold.core.project import Project
from infold.core.storages import DEFAULT_STORAGE, Storage
from infold.spark.tables.catalog import Jar, SparkCatalog

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from infold.core.ports import Lake, SnapshotReader
    from infold.spark.tables.port import MaintainedTables


class StorageAdapters(Protocol):
    """What a storage brings: the functions of a module of its package."""

    def jars(self) -> tuple[Jar, ...]:
        """The jars that Spark needs for it."""

    def lake(self, project: Project, /) -> Lake:
        """The target's tables, read without a JVM."""

    def published_lake(self, project: Project, /) -> Lake:
        """The same as readers see them, who do not see what is not published."""

    def snapshot_reader(self, project: Project, /) -> SnapshotReader:
        """The same as they were at earlier snapshots."""

    def tables(self, spark: SparkSession, project: Project, lake: Lake, /) -> MaintainedTables:
        """The target's tables, read and written with Spark."""

    def sqlite_catalog(self, warehouse: Path | str, catalog_db: Path, /) -> SparkCatalog:
        """What a session needs to find the tables of a warehouse, named in a SQLite file."""

    def catalog(self, project: Project, /) -> SparkCatalog:
        """What a session needs to find the target's tables by their names."""

    def refuse_session(self, session: SparkSession, /) -> None:
        """Raise if a session that infold did not start cannot open the storage's tables."""

    def version_there(self, session: SparkSession, /) -> str:
        """The version of the storage's jar that a session's Spark has."""

    def write_samples(self, spark: SparkSession, events: DataFrame, /) -> None:
        """
        Write tables and read them in every way that a run does, in a scratch warehouse.

        So a JVM loads the classes for it (``jvm.warm_up``).
        """

    def tables_now(self, project: Project, /) -> Any:
        """What :meth:`put_back` takes to go back to the tables as they are; none may be dropped."""

    def put_back(self, project: Project, tables: Any, /) -> None:
        """Let there be exactly the tables that there were, each as it was. For scratch tables."""


def adapters_of(storage: Storage) -> StorageAdapters:
    """The adapters of a storage, imported when they are first asked for."""
    match storage:
        case Storage.ICEBERG:
            from infold.spark.tables.iceberg import adapters as iceberg

            return iceberg
        case Storage.DELTA:
            from infold.spark.tables.delta import adapters as delta

            return delta


def storage_of(project: Project) -> StorageAdapters:
    """The adapters of a project's target."""
    return adapters_of(project.target.storage)


def common_jars() -> tuple[Jar, ...]:
    """
    The jars of every JVM: Iceberg's, as its tables may be sources of any project.

    Other storages bring theirs with their catalogs.
    """
    return adapters_of(DEFAULT_STORAGE).jars()
