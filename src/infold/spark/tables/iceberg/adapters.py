"""
Everything that Iceberg brings as a storage: what ``infold.spark.storages`` chooses.

What needs pyspark or pyiceberg is imported where it is used, so that ``plan`` and ``status`` open
the tables of a target at once.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from infold.core.project import Project
from infold.core.storages import CATALOG_FILE
from infold.core.target import Publish
from infold.lake.iceberg.open_catalog import open_catalog
from infold.lake.iceberg.sql_catalog import restore_rows as put_rows_back
from infold.lake.iceberg.sql_catalog import table_rows
from infold.lake.iceberg.tables import IcebergLake
from infold.lake.stores.places import use
from infold.spark.tables.catalog import Jar, SparkCatalog

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from infold.core.ports import Lake, SnapshotReader
    from infold.spark.tables.port import MaintainedTables

JARS = (
    Jar(
        "org.apache.iceberg",
        "iceberg-spark-runtime-4.1_2.13",
        "1.12.0",
        "3123c3798af642dd537230923548e013ef41cc28b6626e5225808cf5670a0f82",
    ),
    Jar(
        "org.xerial",
        "sqlite-jdbc",
        "3.50.3.0",
        "a3f53a2aa15ae9425a9e793bbe9c8e5288febeb4b65ef5c1a4e80d4c2045cf08",
    ),
)


def jars() -> tuple[Jar, ...]:
    """Iceberg for Spark, and SQLite for its catalog."""
    return JARS


def lake(project: Project) -> IcebergLake:
    """The tables of the target's catalog, read by their metadata files."""
    return _lake(project, together=project.target.publish is Publish.TOGETHER)


def published_lake(project: Project) -> IcebergLake:
    """The same as readers see them."""
    return _lake(project, published=True)


def _lake(project: Project, **how: bool) -> IcebergLake:
    use(project)
    catalog, warehouse = open_catalog(project), project.warehouse_location
    alone = catalog.place == str(Path(warehouse, CATALOG_FILE))  # of the warehouse itself
    return IcebergLake(catalog, project.namespace, warehouse, alone=alone, **how)


def snapshot_reader(project: Project) -> SnapshotReader:
    """The snapshots that these tables still have."""
    from infold.lake.iceberg.tables import IcebergSnapshotReader

    return IcebergSnapshotReader(lake(project))


def tables(spark: SparkSession, project: Project, lake: Lake) -> MaintainedTables:
    """The tables of the session's catalog."""
    from infold.spark.tables.iceberg.tables import IcebergTables

    return IcebergTables(spark, project.namespace, lake)


def sqlite_catalog(warehouse: Path | str, catalog_db: Path) -> SparkCatalog:
    """A catalog on SQLite."""
    from infold.spark.tables.iceberg import catalogs

    return SparkCatalog(catalogs.catalog_settings(warehouse, catalog_db))


def catalog(project: Project) -> SparkCatalog:
    """The catalog that the target declares."""
    from infold.spark.tables.iceberg.catalogs import spark_catalog

    return spark_catalog(project)


def refuse_session(spark: SparkSession) -> None:
    """Raises ``faults.spark_without_iceberg``."""
    from infold.spark.tables.iceberg import catalogs

    catalogs.refuse_without_catalog(spark)


def version_there(spark: SparkSession) -> str:
    """As Iceberg says it; an executor is asked."""
    error_text = "reflect('org.apache.iceberg.IcebergBuild', 'version') AS version"
    # One row.
    return str(spark.range(1).selectExpr(error_text).collect()[0]["version"])


def write_samples(spark: SparkSession, events: DataFrame) -> None:
    """As runs write them."""
    from infold.spark.tables.iceberg.samples import write_samples as write

    write(spark, events)


def tables_now(project: Project) -> tuple[tuple[Any, ...], ...]:
    """The rows of the catalog; the files of a table are only ever added to."""
    return table_rows(project.catalog_db)


def put_back(project: Project, tables: tuple[tuple[Any, ...], ...]) -> None:
    """The catalog has these rows again."""
    put_rows_back(project.catalog_db, tables)
