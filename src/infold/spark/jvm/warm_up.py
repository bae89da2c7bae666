"""
Doing once what runs do, so that a JVM loads the classes they need, which ``class_archive`` keeps.

Here is what files and storages need; ``infold.api.warm_up`` adds runs, and makes the archive.
"""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from infold.core.storages import Storage
from infold.spark.jvm import class_archive
from infold.spark.jvm.spark_session import JavaProcess, start, stop
from infold.spark.storages import adapters_of

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

END_SECONDS = 300


def record(written: Path, folder: Path, more: Callable[[Path], None]) -> None:
    """Run the tour and ``more`` in a JVM that writes its classes to ``written``; wait for it."""
    spark = start(
        folder / "warehouse",
        folder / "catalog.db",
        process=JavaProcess("1g", has_class_archive=False, log=folder / "spark.log"),
        extra={"spark.driver.extraJavaOptions": " ".join(class_archive.recording_options(written))},
    )
    try:
        tour(spark, folder)
        more(folder)
    finally:
        try:
            stop(wait_seconds=END_SECONDS)
        except subprocess.TimeoutExpired:
            written.unlink(missing_ok=True)


def tour(spark: SparkSession, folder: Path) -> None:
    """Read files, and write tables of every storage in every way, and read them."""
    events = _landing(spark, folder)
    for storage in Storage:
        adapters_of(storage).write_samples(spark, events)


def _landing(spark: SparkSession, folder: Path) -> DataFrame:
    """The same few rows as Parquet, CSV and JSON, plain and gzip, read back."""
    rows = spark.sql(
        "SELECT id, concat('u', id % 17) AS who, cast(id AS decimal(18, 2)) AS amount, "
        "timestamp'2024-01-01' + make_dt_interval(id % 40, id % 24) AS ts FROM range(500)"
    )
    schema = "id BIGINT, who STRING, amount DECIMAL(18, 2), ts TIMESTAMP, _bad STRING"
    rows.write.parquet(str(folder / "parquet"))
    rows.write.option("header", "true").csv(str(folder / "csv"), compression="gzip")
    rows.write.json(str(folder / "json"))
    bad = {"mode": "PERMISSIVE", "columnNameOfCorruptRecord": "_bad"}
    read = spark.read.schema(schema).options(**bad)
    csv = read.option("header", "true").csv(str(folder / "csv"))
    json = spark.read.schema(schema).options(**bad).json(str(folder / "json"))
    parquet = spark.read.parquet(str(folder / "parquet"))
    text = spark.read.text(str(folder / "json")).selectExpr(
        "try_cast(get_json_object(value, '$.id') AS bigint) AS id", "_metadata.file_path AS file"
    )
    text.join(csv.drop("_bad"), "id").groupBy("file").count().toArrow()
    both = csv.drop("_bad").unionByName(json.drop("_bad")).unionByName(parquet)
    return both.dropDuplicates(["id", "ts"])
