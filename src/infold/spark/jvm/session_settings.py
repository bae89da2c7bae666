"""The settings that every Spark session is started with, and what each is good for."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Literal

from infold.core import fixed_settings
from infold.spark.jvm.jars import cache_dir

Size = Literal["small", "medium", "large"]

DEFAULT_MEMORY = "2g"


def default_memory() -> str:
    """The driver's heap when nobody says otherwise."""
    return os.environ.get("INFOLD_MEMORY") or DEFAULT_MEMORY


def common_settings() -> dict[str, str]:
    """What holds for every run: exactness first, then quiet."""
    return {
        "spark.app.name": "infold",
        "spark.master": "local[*]",
        # One machine: nothing listens beyond it, whatever its name resolves to.
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        # What exactness stands on: times are UTC, overflow and bad casts are errors.
        **fixed_settings.FIXED,
        # No spark-warehouse folder wherever the command was typed.
        "spark.sql.warehouse.dir": str(cache_dir() / "spark-warehouse"),
        # All data is on this machine, so no task waits for a better place.
        "spark.locality.wait": "0",
        # Where in Python an expression was made is in no message of ours, and finding it costs
        # a dozen round trips to the JVM for each call: half of a small run.
        "spark.python.sql.dataFrameDebugging.enabled": "false",
        "spark.sql.dataFrameQueryContext.enabled": "false",
        # Generated code that differs in the number of its stage only is compiled once.
        "spark.sql.codegen.useIdInClassName": "false",
        # Asked for by pyspark's own data frames in tests and Python models only.
        "spark.sql.execution.arrow.pyspark.enabled": "true",
    }


def size_settings(size: Size) -> dict[str, str]:
    """SQL settings for a run that is over in seconds, or for one that is not."""
    if size == "small":
        return {
            "spark.sql.shuffle.partitions": "1",
            "spark.sql.adaptive.enabled": "false",
            "spark.sql.codegen.wholeStage": "false",
            "spark.sql.codegen.factoryMode": "NO_CODEGEN",
        }
    return {
        "spark.sql.shuffle.partitions": str(2 * (os.cpu_count() or 2)),
        "spark.sql.adaptive.enabled": "true",
        "spark.sql.codegen.wholeStage": "true",
        "spark.sql.codegen.factoryMode": "FALLBACK",
    }


def java_options(size: Size) -> tuple[str, ...]:
    # The collector for throughput: a large first build takes 0.85x of the time with G1.
    """What the JVM is started with, by the size of the run."""
    common = (
        "-Duser.timezone=UTC",
        "-XX:+IgnoreUnrecognizedVMOptions",
        "-XX:+UseParallelGC",
        # A query of a thousand ORs or UNION ALLs is as deep as that for Spark; only what is used
        # of a stack is ever taken.
        "-Xss8m",
    )
    if size != "large":
        # The quick compiler only.
        # Alone, that compiler gets 48 MB for its code; a process of many runs would fill them and
        # spend its time sweeping.
        return (
            *common,
            "-XX:TieredStopAtLevel=1",
            "-XX:ReservedCodeCacheSize=240m",
        )
    return common


def log_settings() -> Path:
    """The log4j2 file for the JVM: warnings, without those that come at every start."""
    file = cache_dir() / "log4j2.properties"
    if not file.is_file() or file.read_text(encoding="utf-8") != _LOG4J2:
        file.parent.mkdir(parents=True, exist_ok=True)
        fresh = file.with_suffix(f".{os.getpid()}")
        fresh.write_text(_LOG4J2, encoding="utf-8")
        fresh.replace(file)
    return file


_LOG4J2 = """\
rootLogger.level = warn
rootLogger.appenderRef.stderr.ref = stderr
appender.stderr.type = Console
appender.stderr.name = stderr
appender.stderr.target = SYSTEM_ERR
appender.stderr.layout.type = PatternLayout
appender.stderr.layout.pattern = %d{yyyy-MM-dd HH:mm:ss} %p %c{1}: %m%n%ex
logger.native.name = org.apache.hadoop.util.NativeCodeLoader
logger.native.level = error
"""
