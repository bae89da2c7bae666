"""The Spark settings of a catalog of Iceberg tables, and whether a session has one."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from infold.lake.stores.places import absolute
from infold.messages import faults
from infold.system import failures

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

CATALOG = "infold"
"""The name of the catalog in Spark; pyiceberg finds its tables under the same name only."""


def catalog_settings(warehouse: Path | str, catalog_db: Path) -> Mapping[str, str]:
    """The Iceberg catalog on SQLite, which pyiceberg reads without a JVM."""
    prefix = f"spark.sql.catalog.{CATALOG}"
    return {
        prefix: "org.apache.iceberg.spark.SparkCatalog",
        f"{prefix}.catalog-impl": "org.apache.iceberg.jdbc.JdbcCatalog",
        # Two runs may write at once; SQLite lets one wait for the other.
        f"{prefix}.uri": f"jdbc:sqlite:{catalog_db.resolve()}?busy_timeout=30000",
        f"{prefix}.jdbc.schema-version": "V1",
        f"{prefix}.warehouse": absolute(str(warehouse)),
        # A cached table would hide another process's commit for half a minute.
        f"{prefix}.cache-enabled": "false",
        "spark.sql.defaultCatalog": CATALOG,
    }


def refuse_without_catalog(session: SparkSession) -> None:
    """Refuse a session that infold did not start if it cannot open infold's catalog."""
    from py4j.protocol import Py4JError
    from pyspark.errors import PySparkException

    try:
        session.sql(f"USE {CATALOG}")
    except (PySparkException, Py4JError) as error:
        if known := failures.known_failure(error):
            raise known from error
        # For a call into Java, the first line is the call and the cause is below it.
        lines = [line for line in str(error).splitlines() if line.strip()]
        caused = [line.removeprefix(": ") for line in lines if line.startswith(": ")]
        raise faults.spark_without_iceberg(why=next(iter((*caused, *lines)), "")) from error
