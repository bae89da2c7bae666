"""
A tour through what runs do, so that a JVM loads the classes they need: ``class_archive`` keeps
them.

``python -m infold.spark.jvm.warm_up`` does it now and waits; a second call finds nothing to do.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from infold.spark.jvm import class_archive
from infold.spark.jvm.session import start, stop

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

END_SECONDS = 300


def main() -> int:
    """Make the archive if it is missing."""
    with class_archive.making() as written, tempfile.TemporaryDirectory() as name:
        if written is not None:
            record(written, Path(name))
    return 0


def record(written: Path, folder: Path) -> None:
    """Tour in ``folder`` with a JVM that leaves its classes in ``written``; wait for its end."""
    spark = start(
        folder / "warehouse",
        folder / "catalog.db",
        memory="1g",
        app_cds=False,
        log=folder / "spark.log",
        extra={"spark.driver.extraJavaOptions": " ".join(class_archive.recording(written))},
    )
    try:
        tour(spark, folder)
    finally:
        try:
            stop(wait_seconds=END_SECONDS)
        except subprocess.TimeoutExpired:
            written.unlink(missing_ok=True)


def tour(spark: SparkSession, folder: Path) -> None:
    """Read files, write, append, merge, overwrite and replace Iceberg tables, and read them."""
    from pyspark.sql import functions as fn

    events = _landing(spark, folder)
    modes = ", ".join(
        f"'write.{command}.mode' = 'merge-on-read'" for command in ("merge", "update", "delete")
    )
    spark.sql("CREATE NAMESPACE IF NOT EXISTS infold.tour")
    spark.sql(
        "CREATE TABLE infold.tour.events (id BIGINT, who STRING, ts TIMESTAMP, "
        "amount DECIMAL(18, 2), _state STRUCT<n: BIGINT, s: DOUBLE>) USING iceberg "
        f"PARTITIONED BY (months(ts)) TBLPROPERTIES ('format-version' = '3', {modes})"
    )
    state = fn.struct(fn.lit(1).cast("bigint").alias("n"), fn.lit(0.5).alias("s"))
    rows = events.select("id", "who", "ts", "amount", state.alias("_state"))
    rows.writeTo("infold.tour.events").option("snapshot-property.tour", "1").append()
    rows.where("id < 50").createOrReplaceTempView("news")
    for _ in range(2):
        spark.sql(
            "MERGE INTO infold.tour.events t USING news n ON t.id = n.id AND t.ts = n.ts "
            "AND t.ts >= timestamp'2024-01-01' WHEN MATCHED AND n.id < 10 THEN DELETE "
            "WHEN MATCHED THEN UPDATE SET amount = n.amount + 1, _state = n._state "
            "WHEN NOT MATCHED THEN INSERT *"
        )
    spark.sql(
        "SELECT who, ts, lag(ts) OVER (PARTITION BY who ORDER BY ts, id) AS before, "
        "row_number() OVER (PARTITION BY who, ts ORDER BY xxhash64(id, who)) AS rank, "
        "max(ts) OVER (PARTITION BY who ORDER BY ts RANGE BETWEEN INTERVAL 1 HOUR PRECEDING "
        "AND CURRENT ROW) AS latest FROM infold.tour.events"
    ).where("rank = 1").toArrow()
    daily = spark.sql(
        "SELECT cast(ts AS date) AS day, count(*) AS events, sum(amount) AS amount, "
        "count_if(who LIKE 'u1%') AS ones, min_by(who, ts) AS first, sha2(max(who), 256) AS h, "
        "collect_list(id) AS ids, count(DISTINCT who) AS people, "
        "sum(amount) FILTER (WHERE id > 3) AS more FROM infold.tour.events GROUP BY 1"
    )
    daily.writeTo("infold.tour.daily").using("iceberg").createOrReplace()
    daily.writeTo("infold.tour.daily").overwritePartitions()
    daily.writeTo("infold.tour.daily").overwrite(fn.col("day").isNotNull())
    spark.sql("DELETE FROM infold.tour.daily WHERE day = date'2024-01-01' AND events > 0")
    spark.sql("SELECT * FROM infold.tour.daily.snapshots").toArrow()
    spark.sql("SELECT * FROM infold.tour.events.files").collect()
    joined = spark.table("infold.tour.events").join(daily, fn.expr("cast(ts AS date) = day"))
    joined.join(events.select("id"), "id", "left_anti").persist().count()
    spark.createDataFrame(daily.limit(3).toArrow()).exceptAll(daily).collect()


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


if __name__ == "__main__":
    sys.exit(main())
