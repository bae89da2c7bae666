"""The settings that every Spark session is started with, and what each is for."""

from __future__ import annotations

import json
import os
import shlex
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from infold.core import target as engines
from infold.core.storages import STORAGE_SETTINGS, Storage
from infold.core.target import FIXED
from infold.messages import faults
from infold.spark.jvm.java import settings_folder
from infold.system.kept_files import cache_dir

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


Size = Literal["small", "medium", "large"]

DEFAULT_MEMORY = "2g"

UNREGISTERED = (
    *("spark.sql.catalog.", "fs.", "ipc.", "parquet.hadoop."),
    "spark.sql.streaming.checkpoint",
)
"""Settings that Spark takes for a session without knowing them: of catalogs, and of stores."""

REDACTED = "spark.redaction.regex"
"""Which settings Spark shows nobody, neither on a page nor in a log of events."""


def default_memory() -> str:
    """The driver's heap if no setting gives one."""
    return os.environ.get("INFOLD_MEMORY") or DEFAULT_MEMORY


def common_settings() -> dict[str, str]:
    """The settings of every run: first for exactness, then for silence and speed."""
    return {
        "spark.app.name": "infold",
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        # For exactness: times are UTC, overflow and bad casts are errors.
        **engines.FIXED,
        # No spark-warehouse folder where the command is run.
        "spark.sql.warehouse.dir": str(cache_dir() / "spark-warehouse"),
        # No message of infold's names the line of Python that made an expression, and finding it
        # costs a dozen round trips to the JVM for each call: half of a small run.
        "spark.python.sql.dataFrameDebugging.enabled": "false",
        "spark.sql.dataFrameQueryContext.enabled": "false",
        # Nobody reads the plans that Spark writes out for each query; this is the cheapest way.
        "spark.sql.ui.explainMode": "simple",
        # Generated code that differs only in the number of its stage is compiled once.
        "spark.sql.codegen.useIdInClassName": "false",
        # A step has up to a hundred classes, as many as Spark keeps by default: the next step would
        # then compile all of its own again, and the JVM interpret them again.
        "spark.sql.codegen.cache.maxEntries": "500",
        # Spark concludes from filters what else is true, of columns and of what they are called
        # elsewhere. That doubles with each column that is renamed (SPARK-33152): tables of 24
        # columns take minutes to plan, those of 135 all memory.
        "spark.sql.constraintPropagation.enabled": "false",
        # More than 32 files are listed by a job, which has a task for each file by default.
        "spark.sql.sources.parallelPartitionDiscovery.parallelism": "16",
        # A setting of the JVM: catalogs with credentials may be those of a later session.
        REDACTED: "(?i)secret|password|token|access[.]?key|credential",
        # Asked for by pyspark's own data frames in tests and Python models only.
        "spark.sql.execution.arrow.pyspark.enabled": "true",
    }


def local_settings(master: str) -> dict[str, str]:
    """The settings of an engine in one process."""
    return {
        "spark.master": master,
        # Nothing listens beyond this machine, whatever its name resolves to.
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        # All data is on this machine, so no task has to wait for a closer executor.
        "spark.locality.wait": "0",
    }


def table_file_settings(catalog: str) -> dict[str, str]:
    """
    How a catalog makes files of its tables on this machine's disk, in a JVM that infold started.

    For each file, and for that with its checksums, Hadoop starts a process ``chmod``: ten in a
    commit, 3 ms each. Hadoop keeps one file system for all that is local, which is left as it is.
    """
    name = f"{catalog}hadoop.fs.file.impl"
    return {
        name: "com.globalmentor.apache.hadoop.fs.BareLocalFileSystem",
        f"{name}.disable.cache": "true",
    }


def size_settings(size: Size, cores: int = 2) -> dict[str, str]:
    """SQL settings for a run that is over in seconds, or for one that is not."""
    if size == "small":
        return {
            "spark.sql.shuffle.partitions": "1",
            "spark.sql.adaptive.enabled": "false",
            "spark.sql.codegen.wholeStage": "false",
            "spark.sql.codegen.factoryMode": "NO_CODEGEN",
        }
    return {
        "spark.sql.shuffle.partitions": str(2 * cores),
        "spark.sql.adaptive.enabled": "true",
        "spark.sql.codegen.wholeStage": "true",
        "spark.sql.codegen.factoryMode": "FALLBACK",
    }


def executor_options() -> tuple[str, ...]:
    """The options of every JVM, also of one that only computes."""
    return (
        "-Duser.timezone=UTC",
        # Spark makes one method of a stage. The JVM only interprets those of more than 8,000 bytes,
        # which 64 ranges of times have: a million rows then take 6.6 s of processor time, not 0.6.
        "-XX:-DontCompileHugeMethods",
        # Spark needs a deep stack for a query of a thousand ORs or UNION ALLs; memory is only
        # taken for the part of it that is used.
        "-Xss8m",
    )


def java_options(size: Size) -> tuple[str, ...]:
    """The JVM's options, by the size of the run."""
    # The collector for throughput: a large first build takes 0.85 of the time with G1.
    common = (
        *executor_options(),
        "-XX:+IgnoreUnrecognizedVMOptions",
        "-XX:+UseParallelGC",
    )
    if size != "large":
        # The quick compiler only. Alone it gets 48 MB for its code; a process of many runs would
        # fill them and spend its time cleaning up. What was not used for some seconds would be
        # thrown away all the same, and compiled again by the next run: half of it.
        return (
            *common,
            "-XX:TieredStopAtLevel=1",
            "-XX:ReservedCodeCacheSize=240m",
            "-XX:-UseCodeCacheFlushing",
        )
    return common


def log_settings() -> Path:
    """The log4j2 file for the JVM: warnings, but not those of every start."""
    file = cache_dir() / "log4j2.properties"
    if not file.is_file() or file.read_text(encoding="utf-8") != _LOG4J2:
        file.parent.mkdir(parents=True, exist_ok=True)
        temporary = file.with_suffix(f".{os.getpid()}")
        temporary.write_text(_LOG4J2, encoding="utf-8")
        temporary.replace(file)
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


_TASKS = "spark.sql.shuffle.partitions"

_UNSHUFFLED = {
    _TASKS: "1",
    "spark.sql.adaptive.enabled": "false",
    # The query contains dates, so each day's code would be new, and compiled for one use.
    "spark.sql.codegen.wholeStage": "false",
}


FEW_ROWS = 200_000
"""Up to so many rows to read, a shuffle costs more time than a second processor saves."""


@contextmanager
def settings_for_few_rows(session: SparkSession) -> Iterator[None]:
    """
    Settings for a step over few rows, each input read by one task, whatever the run's size.

    Such a plan needs no shuffle, so adaptive execution has nothing to adapt; it would only run each
    stage as a job of its own.
    """
    with _with_settings(session, _UNSHUFFLED):
        yield


@contextmanager
def settings_of_one_plan(session: SparkSession, most_tasks: int) -> Iterator[None]:
    """
    Settings for actions over few rows, of large tables: each is planned once, as one job.

    Adaptive execution would run each stage as a job of its own, planned when those before it are
    over. That takes longer than what it could improve. It would also choose few tasks for few rows;
    here their number is given.
    """
    tasks = min(most_tasks, int(session.conf.get(_TASKS) or most_tasks))
    with _with_settings(session, {"spark.sql.adaptive.enabled": "false", _TASKS: str(tasks)}):
        yield


@contextmanager
def settings_for_union(session: SparkSession) -> Iterator[None]:
    """
    Settings for a union of frames of one partition each, to keep these as partitions.

    By default Spark makes them one partition, which a single task reads.
    """
    with _with_settings(session, {"spark.sql.unionOutputPartitioning": "false"}):
        yield


@contextmanager
def _with_settings(session: SparkSession, settings: Mapping[str, str]) -> Iterator[None]:
    before = {key: session.conf.get(key) or "" for key in settings}
    for key, value in settings.items():
        session.conf.set(key, value)
    try:
        yield
    finally:
        for key, value in before.items():
            session.conf.set(key, value)


DEFAULTS = "spark-defaults.conf"


CONNECT = ("SPARK_REMOTE", "SPARK_CONNECT_MODE_ENABLED")
"""Variables that turn PySpark to a server; a first session there sets the second itself."""


def refuse_connect(target: str, wanted: str) -> None:
    """Raise ``engine_faults.connect`` where PySpark would use Spark Connect, and a target not."""
    for name in CONNECT:
        if name in os.environ:
            value = os.environ[name].partition(";")[0]
            raise faults.connect(name=name, value=value, target=target, wanted=wanted)


def all_settings(session: SparkSession) -> dict[str, str]:
    """
    All settings of a session with a JVM, as text in one call.

    PySpark asks for each of them, several times: a warm command would spend a tenth of a second.
    """
    conf: Any = session.conf
    mapper: Any = session._jvm.com.fasterxml.jackson.databind.ObjectMapper()  # type: ignore[union-attr] # noqa: SLF001 (Spark brings it; no public way)
    settings: dict[str, str] = json.loads(mapper.writeValueAsString(conf._jconf.getAllAsJava()))  # noqa: SLF001 (as above)
    return settings


def refuse_given(where: str, settings: Mapping[str, str]) -> None:
    """Raise ``faults.fixed_setting`` for settings that exactness does not allow."""
    changed = tuple(engines.changed_settings(settings))
    if changed:
        raise faults.fixed_setting(where, changed)


def refuse_environment(spark_home: Path) -> None:
    """The same for the settings that spark-submit reads by itself."""
    words = shlex.split(os.environ.get("PYSPARK_SUBMIT_ARGS", ""))
    refuse_given("PYSPARK_SUBMIT_ARGS", dict(_confs(words)))
    files = [Path(name) for name in _values(words, "--properties-file")]
    for file in files or [settings_folder(spark_home) / DEFAULTS]:
        refuse_given(str(file), dict(given_settings(file)))


def refuse_session(session: SparkSession, *, ours: bool) -> None:
    """
    The same for a session, which has the settings of spark-env.sh and of system properties too.

    In a session that infold did not start, a setting that it can still set is refused only if it
    was given.
    """
    given = all_settings(session)
    if ours:
        given = {
            key: value
            for key, value in given.items()
            if not key.startswith(f"spark.sql.catalog.{engines.FIXED['spark.sql.defaultCatalog']}")
        }
    else:
        # None, and not a text: Spark raises for a text that the setting may not have.
        for key, default in _DEFAULTS.items():
            given.setdefault(key, session.conf.get(key, None) or default)
        given.pop("spark.sql.defaultCatalog", None)
        if DELTA in given[EXTENSIONS]:
            given.pop(CHANGED, None)  # it is put back in the session that is made of this one
    refuse_given(
        "the settings of Spark's start" if ours else "the Spark session of this process", given
    )


_DEFAULTS = {"spark.sql.extensions": "", "spark.sql.catalogImplementation": "in-memory"}
"""The values of settings that were not given at the start."""


def _confs(words: list[str]) -> Iterator[tuple[str, str]]:
    for value in (*_values(words, "--conf"), *_values(words, "-c")):
        key, _, text = value.partition("=")
        yield key.strip(), text.strip()


def _values(words: list[str], option: str) -> Iterator[str]:
    """The values of an option, written apart or with an equals sign."""
    for word, after in zip(words, [*words[1:], ""], strict=False):
        if word == option:
            yield after
        elif word.startswith(f"{option}="):
            yield word.removeprefix(f"{option}=")


def given_settings(file: Path) -> Iterator[tuple[str, str]]:
    """A file of properties as Spark reads it: key and value parted by a space, = or a colon."""
    if not file.is_file():
        return
    for line in file.read_text(encoding="utf-8", errors="replace").splitlines():
        text = line.strip()
        if not text or text.startswith(("#", "!")):
            continue
        at = next((i for i, letter in enumerate(text) if letter in " \t=:"), len(text))
        yield text[:at], text[at:].lstrip(" \t=:").strip()


EXTENSIONS = "spark.sql.extensions"
DELTA = STORAGE_SETTINGS[Storage.DELTA].extension
CHANGED = "spark.sql.parquet.fieldId.read.enabled"
"""
Delta Lake turns it on for tables that map columns by ids. Infold makes none of those, and reads
files of others by the names that the ids have in each.
"""


def put_back_fixed(session: SparkSession) -> None:
    """
    Let a session have the fixed value again.

    The extension changes it when the session makes its analyser, for its first query. So that is
    made now.
    """
    if DELTA in (session.conf.get(EXTENSIONS, "") or ""):
        java: Any = session._jsparkSession  # noqa: SLF001 (no public way)
        java.sessionState().analyzer()
        session.conf.set(CHANGED, FIXED[CHANGED])
