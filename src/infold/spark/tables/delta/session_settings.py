"""The Spark settings of a session with tables in Delta Lake, and whether a session has them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from infold.core.storages import STORAGE_SETTINGS, Storage, extensions
from infold.messages import delta_errors
from infold.messages.errors import InfoldError
from infold.system import failures

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

EXTENSIONS = "spark.sql.extensions"
DELTA_CATALOG = {
    "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog"
}
"""What Delta demands of every session, also of one that never looks for a table in it."""

OWN = {
    # A step that changes nothing is a commit too: its id has to be in the log.
    "spark.databricks.delta.skipRecordingEmptyCommits": "false",
    # By default Spark makes 50 tasks to read a table's log, for tables of millions of files.
    "spark.databricks.delta.snapshotPartitions": "2",
}
"""What every session is given that writes tables."""

ONE_TRY = {"spark.databricks.delta.maxCommitAttempts": "0"}
"""
A commit is not made again as a later version if there is one of its number: that may be this one.
"""

USER_METADATA = "spark.databricks.delta.commitInfo.userMetadata"
_FILES = {
    # Times and dates of all years, as they are: what Iceberg writes, too.
    "spark.sql.parquet.outputTimestampType": "TIMESTAMP_MICROS",
    "spark.sql.parquet.datetimeRebaseModeInWrite": "CORRECTED",
    "spark.sql.parquet.compression.codec": "zstd",
}


@contextmanager
def writing(session: SparkSession, more: Mapping[str, str] | None = None) -> Iterator[None]:
    """Settings for a commit in the block, and ``more`` of them; those of before come back."""
    settings = {**OWN, **_FILES, **(more or {})}
    before: dict[str, Any] = {key: session.conf.get(key, None) for key in settings}
    for key, value in settings.items():
        session.conf.set(key, value)
    try:
        yield
    finally:
        for key, value in before.items():
            if value is None:
                session.conf.unset(key)
            else:
                session.conf.set(key, value)


def session_settings(empty: Path) -> Mapping[str, str]:
    """
    The settings of a session.

    Tables are found by their folders and names in queries are temporary views. So the default
    catalog, which every session has to have, is one without tables: Iceberg's, in the folder
    ``empty``.
    """
    return {
        EXTENSIONS: extensions(Storage.DELTA),
        "spark.sql.catalog.infold": "org.apache.iceberg.spark.SparkCatalog",
        "spark.sql.catalog.infold.type": "hadoop",
        "spark.sql.catalog.infold.warehouse": str(empty),
        "spark.sql.defaultCatalog": "infold",
        **DELTA_CATALOG,
        **OWN,
    }


def refuse_without_delta(session: SparkSession) -> None:
    """Refuse a session that infold did not start if it cannot open tables of Delta Lake."""
    from py4j.protocol import Py4JError
    from pyspark.errors import PySparkException

    required = {EXTENSIONS: STORAGE_SETTINGS[Storage.DELTA].extension, **DELTA_CATALOG}
    for key, value in required.items():
        if value not in (session.conf.get(key, "") or ""):
            raise delta_errors.spark_without_delta(why=f"{key} lacks {value}")
    try:
        session.sql("SELECT reflect('io.delta.package', 'VERSION')").collect()  # one row
    except (PySparkException, Py4JError) as error:
        if known := failures.known_failure(error):
            raise known from error
        raise _without(error) from error


def _without(error: BaseException) -> InfoldError:
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return delta_errors.spark_without_delta(why=next(iter(lines), type(error).__name__))
