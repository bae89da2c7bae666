"""
The Spark that spark-submit gave: infold is the application, in a Python that Spark's JVM started.

That JVM has read the options of spark-submit and its spark-defaults.conf: the master, the jars, the
settings. infold starts the application's one Spark context in it, and ends neither. Three things
differ from a JVM of its own:

- Options of the JVM came too early to be infold's. The time zone is set in the JVM; those of
  executors, which start later, are joined with the ones that were given.
- A lock that the JVM would inherit it takes itself (``lock_file``).
- When infold is stopped it asks the JVM to end, which may wait for a job.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import replace
from functools import cache, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from infold.core import target as engines
from infold.core.target import LOCAL, Engine
from infold.messages import faults
from infold.messages.faults import spark_failed_to_start
from infold.spark.jvm import cluster, gateway
from infold.spark.jvm.gateway import is_submitted, own_signals
from infold.spark.jvm.round_trips import keep_looked_up_classes, pass_lists_at_once
from infold.spark.jvm.session_settings import (
    REDACTED,
    executor_options,
    refuse_given,
    refuse_session,
)
from infold.spark.storages import StorageAdapters
from infold.spark.tables.catalog import SparkCatalog
from infold.system import failures, signals

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SPARK = "4.1"
"""The version that the jars of storages are for."""

_GIVEN_BY = "spark-submit"
_FROM_SUBMIT = ("spark.ui.enabled", "spark.app.name", "spark.master")
"""What infold has no opinion on here: who submits sees to it."""

_started: list[SparkSession] = []


def has_started() -> bool:
    """Whether infold started this process's Spark in the JVM that spark-submit gave."""
    return bool(_started)


def refuse_other(engine: Engine, target: str) -> None:
    """Raise where a target computes with what spark-submit gives and nothing did, or conversely."""
    if is_submitted() and not engine.submitted:
        raise faults.submitted(target=target, wanted=engine.name)
    if engine.submitted and not is_submitted():
        raise faults.not_submitted(target=target)


@cache
def given_settings() -> Mapping[str, str]:
    """What spark-submit gave to its application; nothing in any other process."""
    if not is_submitted():
        return {}
    from pyspark import SparkConf

    _jvm()
    return dict(SparkConf().getAll())


def application_settings(
    ours: Mapping[str, str], given: Mapping[str, str], extra: Mapping[str, str]
) -> Mapping[str, str]:
    """
    The settings of the application: ``given`` go before infold's own, but the fixed ones.

    ``extra``, those of the target, go before both, as Spark has it of what a program itself sets.
    """
    own = {key: value for key, value in ours.items() if key not in _FROM_SUBMIT}
    kept = {key: own[key] for key in own if key in engines.FIXED or _is_of_catalog(key)}
    joined = {**own, **given, **kept, **extra}
    options = "spark.executor.extraJavaOptions"
    joined[options] = " ".join(
        filter(None, (given.get(options), extra.get(options), *executor_options()))
    )
    hidden = dict.fromkeys(filter(None, (joined.get(REDACTED), ours.get(REDACTED))))
    if hidden:
        joined[REDACTED] = "|".join(f"({pattern})" for pattern in hidden)
    if jars := ",".join(filter(None, (given.get("spark.jars"), extra.get("spark.jars")))):
        joined["spark.jars"] = jars
    return joined


def _is_of_catalog(key: str) -> bool:
    return key.startswith(f"spark.sql.catalog.{engines.FIXED['spark.sql.defaultCatalog']}")


def start(
    ours: Mapping[str, str],
    extra: Mapping[str, str],
    adapters: StorageAdapters,
    engine: Engine,
    catalog: SparkCatalog,
) -> SparkSession:
    """
    The application's first session, with executors if its master has such.

    It knows the secrets of its ``catalog``. Raises what a start does,
    ``engine_faults.other_submitted_spark`` for another version of Spark, and
    ``faults.spark_without_iceberg`` where no jar of it was given.
    """
    import pyspark
    from pyspark import SparkConf, SparkContext
    from pyspark.sql import SparkSession

    refuse_version(pyspark.__version__)
    jvm, given = _jvm(), given_settings()
    refuse_given("spark-submit", given)
    there = replace(engine, submitted=False, master=given.get("spark.master", LOCAL))
    cluster.refuse_unreachable(there, _GIVEN_BY)
    settings = application_settings(ours, given, extra)
    os.environ["PYSPARK_PYTHON"] = cluster.worker_python(settings)
    jvm.java.util.TimeZone.setDefault(jvm.java.util.TimeZone.getTimeZone("UTC"))
    conf = SparkConf()
    for key, value in settings.items():
        conf.set(key, value)
    try:
        with own_signals():
            session = SparkSession(SparkContext(conf=conf))
    except Exception as error:
        why = next(iter(str(error).split("\n: ")[-1].strip().splitlines()), type(error).__name__)
        raise failures.known_failure(error) or spark_failed_to_start(
            why=why, log="the output of spark-submit"
        ) from error
    _started.append(session)
    catalog.set_secrets(session)
    try:
        adapters.refuse_session(session)
        refuse_session(session, ours=True)
        gateway.refuse_other(session, catalog.settings)
        if there.is_cluster:
            cluster.await_executor(session, there, _GIVEN_BY)
            cluster.send_package(session)
    except BaseException:
        _started.clear()
        session.stop()
        raise
    signals.end_with_process(partial(_ask_to_end, int(jvm.java.lang.ProcessHandle.current().pid())))
    return session


def refuse_version(given: str) -> None:
    """Raise ``engine_faults.other_submitted_spark`` for a Spark that infold is not for."""
    if given.split(".")[:2] != SPARK.split("."):
        raise faults.other_submitted_spark(given=given, ours=SPARK)


def lock_file(path: Path) -> Callable[[], None]:
    """Lock a file in the JVM, until what is returned is called or the JVM ends."""
    from pyspark import SparkContext

    jvm: Any = SparkContext._jvm  # noqa: SLF001 (no other way)
    opened = jvm.java.io.RandomAccessFile(str(path), "rw")
    opened.getChannel().lock()

    def release() -> None:
        with suppress(Exception):  # a JVM that is gone has no locks
            opened.close()

    return release


def _jvm() -> Any:
    from pyspark import SparkContext

    if SparkContext._gateway is None:  # noqa: SLF001 (no public way)
        SparkContext._ensure_initialized()  # noqa: SLF001 (as above)
        keep_looked_up_classes(SparkContext._jvm)  # noqa: SLF001 (as above)
        pass_lists_at_once()
    return SparkContext._jvm  # noqa: SLF001 (as above)


def _ask_to_end(pid: int) -> None:
    """Ask the JVM to end; it cancels what it computes."""
    with suppress(OSError):
        os.kill(pid, signal.SIGTERM)
