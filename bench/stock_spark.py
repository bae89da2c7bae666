"""Stock Spark: its default settings, with the catalog and nothing else set up."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def stock_spark(
    warehouse: Path, catalog_db: Path, *, extra: Mapping[str, str] | None = None, **_: object
) -> SparkSession:
    """Spark with its defaults: only the catalog, its jars and the time zone are given."""
    from pyspark.sql import SparkSession

    from infold.spark.jvm.jars import jar_paths
    from infold.spark.tables.iceberg.catalogs import catalog_settings

    os.environ["PYSPARK_PYTHON"] = sys.executable
    settings = {
        "spark.master": "local[*]",
        "spark.jars": ",".join(str(jar) for jar in jar_paths()),
        "spark.sql.extensions": (
            "org.apache.iceberg.spark.extensions.IcebergSparkSessionExtensions"
        ),
        "spark.sql.session.timeZone": "UTC",
        **catalog_settings(warehouse, catalog_db),  # the very same tables
        **(extra or {}),
    }
    builder = SparkSession.builder
    for key, value in settings.items():
        builder = builder.config(key, value)
    return builder.getOrCreate()
