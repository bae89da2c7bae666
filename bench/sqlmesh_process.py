"""
SQLMesh for the comparison in ``bench.versus_sqlmesh``: a process in SQLMesh's environment.

Reads one JSON command a line and answers each with one line. ``build`` appends files to the events
table and plans and applies everything; ``day`` appends one file (timed by itself), then runs what
is due (timed by itself). Spark has infold's jars, memory, cores and time zone; its other settings
are its own, or infold's for large runs. SQLMesh's context is loaded once and kept.
"""

from __future__ import annotations

import json
import os
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bench.stock_spark import stock_spark

from infold.spark.jvm.session_settings import default_memory
from infold.spark.jvm.spark_session import JavaProcess, start
from infold.spark.tables.iceberg.catalogs import PREFIX

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def main(root: Path, cores: int, tasks: int, settings: str) -> None:
    """Answer commands until there are no more; ``settings`` are ``spark``'s own or ``infold``'s."""
    answers = os.fdopen(os.dup(1), "w", buffering=1)
    os.dup2(2, 1)  # whatever SQLMesh prints is no answer
    (root / "warehouse").mkdir(parents=True, exist_ok=True)
    spark = (_stock if settings == "spark" else _with_infold_settings)(root, cores)
    side = Side(root, spark, tasks)
    for line in sys.stdin:
        command = json.loads(line)
        answers.write(json.dumps(getattr(side, command.pop("do"))(**command)) + "\n")


class Side:
    """A Spark session, the events table, and a SQLMesh context over three models."""

    def __init__(self, root: Path, spark: SparkSession, tasks: int) -> None:
        self.root = root
        self.spark = spark
        self.tasks = tasks
        self.context: Any = None

    def build(self, files: list[str], until: str) -> dict[str, Any]:
        """The history: one append, then a plan of everything up to ``until``."""
        self.spark.sql("CREATE NAMESPACE IF NOT EXISTS infold.raw")
        rows = self.spark.read.parquet(*files)
        rows.writeTo("infold.raw.clicks").using("iceberg").partitionedBy(_days()).create()
        self.context = self._context()
        self.context.plan(auto_apply=True, no_prompts=True, execution_time=until, skip_tests=True)
        return {}

    def day(self, file: str, until: str) -> dict[str, Any]:
        """One more day: seconds of the append, seconds of SQLMesh's run, Spark jobs of the run."""
        began = time.perf_counter()
        self.spark.read.parquet(file).writeTo("infold.raw.clicks").append()
        appended = time.perf_counter()
        before = self._jobs()
        self.context.run(execution_time=until, skip_janitor=True)
        return {
            "append": appended - began,
            "run": time.perf_counter() - appended,
            "jobs": self._jobs() - before,
        }

    def rows(self, query: str) -> list[list[str]]:
        """What a query finds, as text, to be compared with the other side's."""
        return [[str(value) for value in row] for row in self.spark.sql(query).collect()]

    def _context(self) -> Any:
        from sqlmesh import Context  # type: ignore[import-not-found]
        from sqlmesh.core.config import (  # type: ignore[import-not-found]
            Config,
            DuckDBConnectionConfig,
            GatewayConfig,
            ModelDefaultsConfig,
            SparkConnectionConfig,
        )

        gateway = GatewayConfig(
            connection=SparkConnectionConfig(catalog="infold", concurrent_tasks=self.tasks),
            state_connection=DuckDBConnectionConfig(database=str(self.root / "state.db")),
        )
        config = Config(
            gateways={"spark": gateway},
            default_gateway="spark",
            model_defaults=ModelDefaultsConfig(dialect="spark"),
            disable_anonymized_analytics=True,
        )
        return Context(paths=str(self.root), config=config)

    def _jobs(self) -> int:
        found = self.spark.sparkContext.statusTracker().getJobIdsForGroup(None)
        return max(found, default=-1) + 1


def _stock(root: Path, cores: int) -> SparkSession:
    own = {
        "spark.master": f"local[{cores}]",
        "spark.driver.memory": default_memory(),
        f"{PREFIX}.cache-enabled": "true",  # Iceberg's default
    }
    return stock_spark(root / "warehouse", root / "catalog.db", extra=own)


def _with_infold_settings(root: Path, cores: int) -> SparkSession:
    return start(
        root / "warehouse",
        root / "catalog.db",
        size="large",
        process=JavaProcess(log=root / "spark.log"),
        extra={"spark.master": f"local[{cores}]"},
    )


def _days() -> Any:
    from pyspark.sql import functions as F

    return F.partitioning.days("event_ts")


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3]), sys.argv[4])
