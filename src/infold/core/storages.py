"""
The storages of a target, the Spark settings that each must have, and the catalog of its tables.

What reads and writes a storage's tables is behind the ports (``ports.Lake``, ``Tables``);
``infold.spark.storages`` chooses it by :class:`Storage`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum


class Storage(StrEnum):
    """How the tables of a target are stored: the values of ``storage`` in infold.yml."""

    ICEBERG = "iceberg"
    DELTA = "delta"


DEFAULT_STORAGE = Storage.ICEBERG
"""That of a target that names none."""


@dataclass(frozen=True, slots=True)
class StorageSettings:
    """What a storage asks of Spark's settings, so that its tables have one meaning."""

    extension: str
    """A class of ``spark.sql.extensions``."""
    refused: tuple[str, ...] = ()
    """Beginnings of settings that stay as the storage has them."""
    own: tuple[str, ...] = ()
    """Beginnings of those that infold sets itself, for a commit, or the storage after one."""
    by_folders: bool = False
    """Whether tables are found by their folders, and not by a catalog."""


STORAGE_SETTINGS: Mapping[Storage, StorageSettings] = {
    Storage.ICEBERG: StorageSettings(
        extension="org.apache.iceberg.spark.extensions.IcebergSparkSessionExtensions",
        refused=("spark.sql.iceberg.",),
        own=("spark.sql.iceberg.snapshot-property.",),
    ),
    Storage.DELTA: StorageSettings(
        extension="io.delta.sql.DeltaSparkSessionExtension",
        refused=("spark.databricks.delta.",),
        own=(
            "spark.databricks.delta.commitInfo.userMetadata",
            "spark.databricks.delta.lastCommitVersionInSession",
            "spark.databricks.delta.maxCommitAttempts",
            "spark.databricks.delta.skipRecordingEmptyCommits",
            "spark.databricks.delta.snapshotPartitions",
        ),
        by_folders=True,
    ),
}


def extensions(*more: Storage) -> str:
    """
    The extensions of a Spark session: Iceberg's, as its tables may be sources, and of ``more``.

    They are those of the JVM, so a session may have more than its own storage needs.
    """
    named = dict.fromkeys((DEFAULT_STORAGE, *more))
    return ",".join(STORAGE_SETTINGS[storage].extension for storage in named)


class CatalogType(StrEnum):
    """What keeps the names of tables: the values of ``catalog.type`` in infold.yml."""

    SQLITE = "sqlite"
    """A file: in the warehouse, unless that is in an object store."""
    JDBC = "jdbc"
    """A database on a PostgreSQL server."""
    REST = "rest"
    """A server of Iceberg's REST protocol."""
    HIVE = "hive"
    """A Hive metastore."""


SQLITE_FILE = "sqlite:///"
"""What the URI of a SQLite file begins with; a relative path is the project's."""

CATALOG_FILE = "catalog.db"
"""The catalog of a target that names none, in its warehouse."""

NOT_PERMITTED = "catalog-not-permitted"
"""The slug of the error that may be one table's, and may be that of all."""

PLANNED_CATALOGS = ("glue",)
"""Catalogs that infold knows by name and does not have yet."""


@dataclass(frozen=True, slots=True)
class Catalog:
    """
    Where a target's tables are found by their names.

    The texts are those of infold.yml: with references to secrets, and no secret.
    """

    type: CatalogType = CatalogType.SQLITE
    uri: str = ""
    namespace: str = ""
    """Where the tables are in the catalog; empty for a namespace named after the project."""
    warehouse: str = ""
    """The name by which a REST server knows one of its catalogs."""
    token: str = ""
    credential: str = ""
    scope: str = ""
    oauth2_server_uri: str = ""
    """Where a credential is exchanged for a token; empty for the server itself."""

    @property
    def is_in_warehouse(self) -> bool:
        """Whether it is the file that a warehouse in a folder has."""
        return self.type is CatalogType.SQLITE and not self.uri

    @property
    def at_once(self) -> bool:
        """Whether several tables can change at one instant."""
        return self.type not in (CatalogType.REST, CatalogType.HIVE)
