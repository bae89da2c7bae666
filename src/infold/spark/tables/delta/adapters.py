"""
Everything that Delta Lake brings as a storage: what ``infold.spark.storages`` chooses.

Its jars come with its sessions, not with every JVM: who has no such table downloads none of them.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from infold.core.ports import Lake, SnapshotReader
from infold.core.project import Project
from infold.lake.delta import expiry
from infold.lake.delta.metastore import Metastore
from infold.lake.delta.tables import DeltaLake
from infold.lake.hive_client import HiveClient
from infold.lake.stores.places import use
from infold.spark.tables.catalog import Jar, SparkCatalog
from infold.spark.tables.delta import session_settings
from infold.spark.tables.store_access import reaching_stores

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from infold.spark.tables.port import MaintainedTables

_DELTA = "io.delta"
_VERSION = "4.4.0"

JARS = (
    Jar(
        _DELTA,
        "delta-spark_4.1_2.13",
        _VERSION,
        "75a9400986853c061f5109f012547de2545a5759e5e752e5ef633dabe16a4f10",
    ),
    Jar(
        _DELTA,
        "delta-storage",
        _VERSION,
        "c46735481fa8e326b0957be02b4420cbcab4b325bb08009b7f2045a95133f1cc",
    ),
    Jar(
        _DELTA,
        "delta-kernel-api",
        _VERSION,
        "ee9b5a14ac3b7efdff4d61a58478fe8eb0e5a3fbca43889dca7290795fe79a11",
    ),
    Jar(
        _DELTA,
        "delta-kernel-defaults",
        _VERSION,
        "225c975199e4718b38ee5b7e6da7f19e9585024262b2cec2656b32151a856b0b",
    ),
    Jar(
        _DELTA,
        "delta-kernel-unitycatalog",
        _VERSION,
        "cea22dfb4ac562b3cd27bf652697750e8336009d73fb06631363aaaad5345ffa",
    ),
)
"""Delta Lake for Spark; what else its POM names is in Spark, or is for catalogs of Unity."""

EMPTY = ".no-tables"
"""A folder on the disk for a catalog in which nothing is ever made."""


def jars() -> tuple[Jar, ...]:
    """Delta Lake for Spark."""
    return JARS


def lake(project: Project) -> DeltaLake:
    """The tables in the folders of the target's warehouse; nothing is asked for yet."""
    use(project)
    return DeltaLake(project.warehouse_location, project.namespace, _metastore(project))


def _metastore(project: Project) -> Metastore | None:
    """Where the tables have names beside their folders."""
    if not project.target.registers:
        return None
    key = f"catalog of target {project.target.name}"
    client = HiveClient(project.target.catalog, project.root, key)
    return Metastore(client, project.catalog_namespace.lower())


def published_lake(project: Project) -> DeltaLake:
    """The same: readers see every commit at once."""
    return lake(project)


def snapshot_reader(project: Project) -> SnapshotReader:
    """The versions that these tables still have."""
    from infold.lake.delta.tables import DeltaSnapshotReader

    return DeltaSnapshotReader(lake(project))


def tables(spark: SparkSession, project: Project, lake_: Lake) -> MaintainedTables:
    """
    The same tables as the lake's.

    Raises ``delta_errors.extra_missing``: no run begins that could not read what it writes.
    """
    from infold.lake.delta.rows import need_reader
    from infold.spark.tables.delta.tables import DeltaTables

    del lake_  # it knows the folders by names; so does another one
    delta_lake = lake(project)
    need_reader(delta_lake.warehouse)
    return DeltaTables(spark, delta_lake)


def sqlite_catalog(warehouse: Path | str, catalog_db: Path) -> SparkCatalog:
    """A session for the tables in a folder; there is no catalog."""
    del catalog_db
    return SparkCatalog(session_settings.session_settings(Path(warehouse) / EMPTY), jars=JARS)


def catalog(project: Project) -> SparkCatalog:
    """The same for a target, and its stores."""
    target = project.target
    empty = project.root / ".infold" if target.in_store else project.warehouse
    return reaching_stores(project, sqlite_catalog(empty, project.catalog_db))


def refuse_session(spark: SparkSession) -> None:
    """Raises ``delta_errors.spark_without_delta``."""
    session_settings.refuse_without_delta(spark)


def version_there(spark: SparkSession) -> str:
    """As Delta says it."""
    error_text = "reflect('io.delta.package', 'VERSION') AS version"
    # One row.
    return str(spark.range(1).selectExpr(error_text).collect()[0]["version"])


def write_samples(spark: SparkSession, events: DataFrame) -> None:
    """Nothing: a JVM that is warmed up for every target does not have Delta's classes."""
    del spark, events


def tables_now(project: Project) -> dict[str, int]:
    """The version of each table."""
    return expiry.scratch_versions(project.warehouse / project.namespace)


def put_back(project: Project, tables: Any) -> None:
    """Each table ends at its version again."""
    expiry.put_scratch_back(project.warehouse / project.namespace, tables)
