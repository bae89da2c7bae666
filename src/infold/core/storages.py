"""
The storages of a target: the one list of them, and the Spark settings that each must have.

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
