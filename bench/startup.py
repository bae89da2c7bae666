"""
What a fresh process costs that starts Spark, writes a small Iceberg table and merges into it.

    python bench/startup.py [--repeats 3] [--variants default,small,archived]

Every repeat runs all variants one after the other, each in a process of its own, so that a noisy
minute of the machine falls on all of them. Whole-process seconds, session and work are printed
as medians, with each variant's ratio to Spark's default settings.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

ROWS = 10_000


def _default(folder: Path) -> SparkSession:
    """Spark as it comes: only the catalog and its jars are given."""
    from pyspark.sql import SparkSession

    from infold.spark.jvm.jars import jar_paths
    from infold.spark.tables.iceberg.catalogs import catalog_settings

    os.environ["PYSPARK_PYTHON"] = sys.executable
    builder = SparkSession.builder.master("local[*]")
    builder = builder.config("spark.jars", ",".join(str(jar) for jar in jar_paths()))
    builder = builder.config(
        "spark.sql.extensions",
        "org.apache.iceberg.spark.extensions.IcebergSparkSessionExtensions",
    )
    for key, value in catalog_settings(folder / "warehouse", folder / "catalog.db").items():
        builder = builder.config(key, value)
    return builder.getOrCreate()


def _small(folder: Path) -> SparkSession:
    """Settings for a small run, without the archive of classes."""
    from infold.spark.jvm.spark_session import JavaProcess, start

    process = JavaProcess(has_class_archive=False)
    return start(folder / "warehouse", folder / "catalog.db", size="small", process=process)


def _archived(folder: Path) -> SparkSession:
    """Settings for a small run, with the archive of classes."""
    from infold.spark.jvm.spark_session import start

    return start(folder / "warehouse", folder / "catalog.db", size="small")


def _large(folder: Path) -> SparkSession:
    """Settings for a large run, with the archive of classes."""
    from infold.spark.jvm.spark_session import start

    return start(folder / "warehouse", folder / "catalog.db", size="large")


VARIANTS: dict[str, Callable[[Path], SparkSession]] = {
    "default": _default,
    "large": _large,
    "small": _small,
    "archived": _archived,
}


def work(spark: SparkSession) -> None:
    """A first load, a merge that changes and adds rows, and a table made from the result."""
    properties = ", ".join(
        f"'write.{command}.mode' = 'merge-on-read'" for command in ("merge", "update", "delete")
    )
    spark.sql("CREATE NAMESPACE IF NOT EXISTS infold.shop")
    spark.sql(
        "CREATE TABLE infold.shop.clicks (id BIGINT, url STRING, ts TIMESTAMP) USING iceberg "
        f"PARTITIONED BY (months(ts)) TBLPROPERTIES ('format-version' = '3', {properties})"
    )
    rows = (
        "SELECT id, concat('/', id % 7) AS url, "
        "timestamp'2024-01-01 00:00:00Z' + make_dt_interval(id % 30, id % 24) AS ts FROM range"
    )
    spark.sql(f"INSERT INTO infold.shop.clicks (id, url, ts) {rows}(0, {ROWS})")
    spark.sql(
        "MERGE INTO infold.shop.clicks t "
        f"USING ({rows}({ROWS - 500}, {ROWS + 500})) n ON t.id = n.id AND t.ts = n.ts "
        "WHEN MATCHED THEN UPDATE SET url = 'changed' "
        "WHEN NOT MATCHED THEN INSERT (id, url, ts) VALUES (n.id, n.url, n.ts)"
    )
    spark.sql(
        "CREATE TABLE infold.shop.daily USING iceberg AS "
        "SELECT cast(ts AS date) AS day, count(*) AS clicks FROM infold.shop.clicks GROUP BY 1"
    )
    days = spark.sql("SELECT * FROM infold.shop.daily").toArrow()
    total = sum(days.column("clicks").to_pylist())
    if total != ROWS + 500:
        raise SystemExit(f"{total} rows instead of {ROWS + 500}")


def once(variant: str) -> None:
    """One process's share: start, work, and print the two durations as JSON."""
    with tempfile.TemporaryDirectory() as name:
        began = time.monotonic()
        spark = VARIANTS[variant](Path(name))
        started = time.monotonic()
        work(spark)
        done = time.monotonic()
        print(json.dumps({"session": started - began, "work": done - started}))


def _timed(variant: str, env: dict[str, str]) -> dict[str, float]:
    began = time.monotonic()
    ran = subprocess.run(
        [sys.executable, __file__, "--once", variant],
        env=env,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL if variant == "default" else None,
        text=True,
        check=True,
    )
    seconds: dict[str, float] = json.loads(ran.stdout.splitlines()[-1])
    return {**seconds, "process": time.monotonic() - began}


def main() -> None:
    """Measure in a cache of its own, so that the cost of making the archive shows too."""
    options = argparse.ArgumentParser(description=__doc__.strip().splitlines()[0])
    options.add_argument("--once", choices=VARIANTS)
    options.add_argument("--repeats", type=int, default=3)
    options.add_argument("--variants", default="default,large,small,archived")
    chosen = options.parse_args()
    if chosen.once:
        once(chosen.once)
        return

    from infold.spark.jvm.jars import jar_paths
    from infold.system.kept_files import cache_dir

    jar_paths()
    cache = Path(tempfile.mkdtemp(prefix="infold-bench-"))
    shutil.copytree(cache_dir() / "jars", cache / "jars")
    env = {**os.environ, "INFOLD_CACHE": str(cache)}
    try:
        began = time.monotonic()
        subprocess.run([sys.executable, "-m", "infold.api.warm_up"], env=env, check=True)
        print(f"making the archive: {time.monotonic() - began:.1f} s, once\n", flush=True)
        _compare(chosen.variants.split(","), chosen.repeats, env)
    finally:
        shutil.rmtree(cache, ignore_errors=True)


def _compare(variants: list[str], repeats: int, env: dict[str, str]) -> None:
    taken: dict[str, list[dict[str, float]]] = {variant: [] for variant in variants}
    for _ in range(repeats):
        for variant in variants:
            taken[variant].append(_timed(variant, env))
    median = {
        variant: {key: statistics.median(run[key] for run in runs) for key in runs[0]}
        for variant, runs in taken.items()
    }
    base = median[variants[0]]["process"]
    print(f"| settings | process | session | work | against {variants[0]} |")
    print("|---|---|---|---|---|")
    for variant, of in median.items():
        print(
            f"| {variant} | {of['process']:.1f} s | {of['session']:.1f} s | {of['work']:.1f} s "
            f"| {of['process'] / base:.2f}x |"
        )


if __name__ == "__main__":
    main()
