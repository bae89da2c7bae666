"""Sample tables, written and read in the ways of a run: see ``jvm.warm_up``."""

from __future__ import annotations

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as fn


def write_samples(spark: SparkSession, events: DataFrame) -> None:
    """Write, append, merge, overwrite and replace tables of the default catalog, and read them."""
    modes = ", ".join(
        f"'write.{command}.mode' = 'merge-on-read'" for command in ("merge", "update", "delete")
    )
    spark.sql("CREATE NAMESPACE IF NOT EXISTS infold.tour")
    spark.sql(
        "CREATE TABLE infold.tour.events (id BIGINT, who STRING, ts TIMESTAMP, "
        "amount DECIMAL(18, 2), _state_n BIGINT, _state_s DOUBLE) USING iceberg "
        f"PARTITIONED BY (months(ts)) TBLPROPERTIES ('format-version' = '3', {modes})"
    )
    states = fn.lit(1).cast("bigint").alias("_state_n"), fn.lit(0.5).alias("_state_s")
    rows = events.select("id", "who", "ts", "amount", *states)
    rows.writeTo("infold.tour.events").option("snapshot-property.tour", "1").append()
    rows.where("id < 50").createOrReplaceTempView("news")
    for _ in range(2):
        spark.sql(
            "MERGE INTO infold.tour.events t USING news n ON t.id = n.id AND t.ts = n.ts "
            "AND t.ts >= timestamp'2024-01-01' WHEN MATCHED AND n.id < 10 THEN DELETE "
            "WHEN MATCHED THEN UPDATE SET amount = n.amount + 1, _state_n = n._state_n "
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
