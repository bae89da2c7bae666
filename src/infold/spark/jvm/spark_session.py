"""
Starting Spark, in one of three sizes. The settings themselves are in ``session_settings``.

The plan is known before the JVM starts, so its size chooses. A *small* run is over before a
compiler's work pays: it gets the quick compiler only, no generated code, one shuffle partition. A
*medium* one, a day's tens of thousands of rows or a few of them into millions, gains from Spark's
generated code and not yet from the JVM's second compiler. A *large* one gets all of it. Each is
about half of the time that it would take in its neighbour's settings; see bench/startup.py.
"""

from __future__ import annotations

import fcntl
import os
import shutil
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, TextIO

from infold.core.storages import DEFAULT_STORAGE, Storage
from infold.core.target import FIXED, LOCAL, Engine
from infold.messages import catalog_errors
from infold.messages.errors import InfoldError
from infold.messages.faults import spark_failed_to_start
from infold.spark.jvm import class_archive, cluster, lasting, session_settings, submitted
from infold.spark.jvm.gateway import (
    end_jvm,
    existing_gateway,
    forget_dead,
    has_started,
    is_stopped,
    launch,
    own_signals,
    quieten_py4j,
)
from infold.spark.jvm.gateway import refuse_other as refuse_other_user
from infold.spark.jvm.jars import jar_paths
from infold.spark.jvm.java import find_java, spark_home
from infold.spark.jvm.session_settings import (
    UNREGISTERED,
    Size,
    all_settings,
    common_settings,
    default_memory,
    java_options,
    local_settings,
    log_settings,
    refuse_connect,
    refuse_environment,
    refuse_given,
    refuse_session,
    size_settings,
    table_file_settings,
)
from infold.spark.session_facts import parallelism
from infold.spark.storages import StorageAdapters, adapters_of
from infold.spark.tables.catalog import Jar, SparkCatalog
from infold.system import failures
from infold.system.kept_files import cache_dir, open_log

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


LOG_BYTES = 10_000_000
LOCAL_ENGINE = Engine()
LOOPBACK = "127.0.0.1"
CLASS_PATH = "spark.driver.extraClassPath"
CATALOG_SETTINGS = f"spark.sql.catalog.{FIXED['spark.sql.defaultCatalog']}."


@dataclass(frozen=True)
class JavaProcess:
    """
    How a process starts its JVM, if it has none yet.

    ``memory`` is the heap (``2g``; None: the environment's ``INFOLD_MEMORY``, or the default).
    Whatever the JVM prints goes to ``log``, by default a file in the cache; the terminal stays the
    caller's.
    ``inherit`` are open file descriptors that the JVM gets too. A JVM can outlive a killed Python
    by a moment, and commit in it; a lock on such a descriptor is free when both have ended.
    Rows that do not fit in memory go to a private folder of the process below ``spill`` (by default
    beside the log).
    ``meanwhile`` is called while the JVM starts: to import what is needed next.
    """

    memory: str | None = None
    has_class_archive: bool = True
    log: Path = field(default_factory=lambda: cache_dir() / "spark.log")
    inherit: Sequence[int] = ()
    spill: Path | None = None
    meanwhile: Callable[[], object] = lambda: None

    def spill_parents(self, settings: Mapping[str, str]) -> tuple[Path, ...]:
        """The folders for spilled rows: below those configured for them, else our own."""
        configured = settings.get("spark.local.dir") or os.environ.get("SPARK_LOCAL_DIRS") or ""
        names = [name.strip() for name in configured.split(",") if name.strip()]
        own = self.spill or self.log.parent / "spill"
        return tuple(Path(name) / f"infold-{os.getuid()}" for name in names) or (own.resolve(),)


def start(
    warehouse: Path | str,
    catalog_db: Path,
    *,
    size: Size = "small",
    process: JavaProcess | None = None,
    extra: Mapping[str, str] | None = None,
    storage: Storage = DEFAULT_STORAGE,
    catalog: SparkCatalog | None = None,
    engine: Engine = LOCAL_ENGINE,
    target: str = "dev",
) -> SparkSession:
    """
    A Spark session whose default catalog has the tables of ``warehouse``, of one ``storage``.

    ``catalog_db`` is the SQLite file of the catalog, made when it is missing, unless another
    ``catalog`` is given. ``process`` says how the JVM is started, if this process has none.
    ``extra`` overrides any setting but those that exactness depends on (``fixed_settings``).
    ``engine`` is that of ``target``: where Spark computes, here or with executors elsewhere.

    A process has one JVM. Called again while Spark runs, this gives a new session with a catalog
    and SQL settings of its own in the same JVM; heap, compiler and executors stay as they were.
    Raises ``engine_faults.other_engine`` if the target wants others.

    Timestamps: ask for Arrow (``toArrow``). Rows from ``collect`` come in the local time zone.
    """
    adapters = adapters_of(storage)
    catalog = catalog or adapters.sqlite_catalog(warehouse, catalog_db)
    settings = {
        **common_settings(),
        **catalog.settings,
        **size_settings(size),
        **(extra or {}),
    }
    refuse_connect(target, engine.name)
    refuse_given("targets.spark of infold.yml", extra or {})
    forget_dead()
    running = _running_session()
    is_ours = running is None or has_started()
    if is_ours and not (engine.is_cluster or engine.submitted):
        settings = {**table_file_settings(CATALOG_SETTINGS), **settings}
    if running is not None:
        quieten_py4j()
        if submitted.has_started():
            submitted.refuse_other(engine, target)
        cluster.refuse_other(running, engine, target)
        refuse_missing_jars(running, catalog.jars, target)
        refuse_other_user(running, catalog.settings)
        session = _new_session(running, {**settings, **catalog.secrets}, adapters)
        if Engine(running.sparkContext.master or LOCAL).is_cluster:
            cluster.send_package(session)
        return session
    submitted.refuse_other(engine, target)
    if engine.submitted:
        quieten_py4j()
        return submitted.start(settings, extra or {}, adapters, engine, catalog)
    refuse_environment(spark_home())
    process = process or JavaProcess()
    settings.setdefault("spark.driver.memory", process.memory or default_memory())
    given = f"`engine` of target {target} in infold.yml"
    if engine.is_cluster:
        cluster.refuse_unreachable(engine, given)
        settings = {**cluster.driver_settings(engine, settings, jar_paths(catalog.jars))}
    else:
        settings = {**local_settings(engine.master), **settings}
    session = _first_session(settings, size, process, catalog, adapters)
    catalog.set_secrets(session)
    if engine.is_cluster:
        try:
            cluster.await_executor(session, engine, given)
            cluster.send_package(session)
        except BaseException:
            end_jvm()
            forget_dead()
            raise
    return session


def tune(session: SparkSession, size: Size, given: Mapping[str, str]) -> None:
    """Give a running session the SQL settings for a run of another size, but those ``given``."""
    cores = parallelism(session)
    given = {**submitted.given_settings(), **given}
    for key, value in size_settings(size, cores).items():
        session.conf.set(key, given.get(key, value))


def stop(*, wait_seconds: float = 0) -> None:
    """
    End Spark; with ``wait_seconds``, also its JVM, and wait until that is gone.

    It need not be called at the end of a process: the JVM ends by itself.
    """
    from pyspark import SparkContext
    from pyspark.sql import SparkSession

    if not is_stopped():
        SparkSession.builder.getOrCreate().stop()
    gateway = SparkContext._gateway  # noqa: SLF001
    if wait_seconds and gateway is not None:
        gateway.shutdown()
        gateway.proc.stdin.close()
        SparkContext._gateway = SparkContext._jvm = None  # noqa: SLF001
        gateway.proc.wait(wait_seconds)


def _running_session() -> SparkSession | None:
    """This process's first session if Spark runs, whatever the thread."""
    if is_stopped():
        return None
    from pyspark.sql import SparkSession

    return SparkSession.builder.getOrCreate()


def _new_session(
    running: SparkSession, settings: Mapping[str, str], adapters: StorageAdapters
) -> SparkSession:
    """A session beside ``running``: temporary views, settings and catalogs are its own."""
    ours = has_started() or submitted.has_started()
    refuse_session(running, ours=ours)
    session = running.newSession()
    for key in all_settings(session):
        # Of another catalog, for which the JVM was started: a type and an address are of one.
        if key.startswith(CATALOG_SETTINGS) and key not in settings:
            session.conf.unset(key)
    for key, value in settings.items():
        if session.conf.isModifiable(key) or key.startswith(UNREGISTERED):
            session.conf.set(key, value)
    session_settings.put_back_fixed(session)
    if not ours:
        adapters.refuse_session(session)
    lasting.made(session)
    return session


def refuse_missing_jars(running: SparkSession, jars: Sequence[Jar], target: str) -> None:
    """Raise ``catalog_errors.other_jars`` if the JVM that infold started lacks some."""
    class_path = running.conf.get(CLASS_PATH, "") or ""
    missing = [jar.coordinates for jar in jars if jar.file_name not in class_path]
    if missing and has_started():
        raise catalog_errors.other_jars(target=target, jars=missing)


def _first_session(
    settings: dict[str, str],
    size: Size,
    process: JavaProcess,
    catalog: SparkCatalog,
    adapters: StorageAdapters,
) -> SparkSession:
    """
    Start the JVM and a session in it.

    Where a JVM is offered that was started with the same, a session in that.
    """
    java, jars = find_java(), jar_paths()
    # On the JVM's own class path: unlike spark.jars nothing is copied, and the archive covers the
    # first of them.
    settings[CLASS_PATH] = os.pathsep.join(map(str, jar_paths(catalog.jars)))
    of_java = (str(java.home), java.version, *java_options("large"))
    needed = lasting.needs(settings, of_java, process.inherit, catalog.secrets)
    _set_environment(java.home, settings)
    if lasting.attach(needed, size):
        running = _running_session()
        assert running is not None
        return _new_session(running, {**settings, **catalog.secrets}, adapters)
    options = [
        *java_options(size),
        f"-Dlog4j2.configurationFile={log_settings().as_uri()}",
        *(class_archive.reading_options(java, jars) if process.has_class_archive else ()),
    ]
    more = settings.get("spark.driver.extraJavaOptions", "")
    ours = " ".join(f'"{option}"' for option in options)
    settings["spark.driver.extraJavaOptions"] = f"{more} {ours}".strip()
    try:
        session = _launch(settings, process)
    except Exception as error:
        raise failures.known_failure(error) or spark_failed_to_start(
            why=_first_line(error), log=str(process.log)
        ) from error
    try:
        refuse_session(session, ours=True)
    except InfoldError:
        end_jvm()
        forget_dead()
        raise
    session_settings.put_back_fixed(session)
    lasting.started(needed, size)
    lasting.made(session)
    return session


def _set_environment(java_home: Path, settings: Mapping[str, str]) -> None:
    """Set what PySpark and its scripts read, also where a process attaches to a JVM."""
    os.environ["JAVA_HOME"] = str(java_home)
    os.environ["SPARK_HOME"] = str(spark_home())  # never another Spark that happens to be there
    os.environ["PYSPARK_DRIVER_PYTHON"] = sys.executable
    if not Engine(settings["spark.master"]).is_cluster:
        os.environ["PYSPARK_PYTHON"] = sys.executable
        os.environ.setdefault("SPARK_LOCAL_IP", LOOPBACK)  # asks no resolver who we are
    else:
        os.environ["PYSPARK_PYTHON"] = cluster.worker_python(settings)
        if os.environ.get("SPARK_LOCAL_IP") == LOOPBACK:  # of a Spark that computed here, before
            del os.environ["SPARK_LOCAL_IP"]


def _launch(settings: dict[str, str], process: JavaProcess) -> SparkSession:
    gateway = existing_gateway()
    if gateway is None:
        spills = [new_spill_folder(parent) for parent in process.spill_parents(settings)]
        folders = [folder for folder, _ in spills]
        settings["spark.local.dir"] = ",".join(map(str, folders))
        # Last, so that it wins: jars unpack their native libraries here.
        settings["spark.driver.extraJavaOptions"] += f' "-Djava.io.tmpdir={folders[0]}"'
        with _open_log(process.log) as output:
            descriptors = (*process.inherit, *(lock for _, lock in spills))
            gateway = launch(settings, folders[0], output, descriptors, process.meanwhile)
    from pyspark import SparkConf, SparkContext
    from pyspark.sql import SparkSession

    conf = SparkConf(loadDefaults=False)
    for key, value in settings.items():
        conf.set(key, value)
    with own_signals():
        return SparkSession(SparkContext(conf=conf, gateway=gateway))


def running_master() -> str:
    """Where the Spark of this process computes."""
    running = _running_session()
    return (running.sparkContext.master if running is not None else None) or LOCAL


def _open_log(log: Path) -> TextIO:
    """The log, opened to append; a new one when it has grown long."""
    log.parent.mkdir(parents=True, exist_ok=True)
    if log.exists() and log.stat().st_size > LOG_BYTES:
        log.unlink()
    return open_log(log)


def _first_line(error: BaseException) -> str:
    """The cause of an error; for a call into Java it is below the line of the call."""
    lines = str(error).strip().splitlines() or [type(error).__name__]
    if len(lines) > 1 and lines[1].startswith(": "):
        return lines[1].removeprefix(": ")
    return lines[0]


# Each process that starts Spark has a folder of its own, with a file in it that the process and its
# JVM keep locked. A killed JVM does not clean up, so the next process that makes a folder removes
# those that are not locked any more.

_LOCK = "in-use"


def new_spill_folder(parent: Path) -> tuple[Path, int]:
    """
    A new folder below ``parent``, and the open file that is locked while the folder is in use.

    Folders of processes that have ended are removed first.
    """
    if not parent.is_dir():
        parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        parent.chmod(0o700)
    with _folder_lock(parent):
        _sweep(parent)
        folder = Path(tempfile.mkdtemp(dir=parent, prefix=f"{os.getpid()}-"))
        lock = os.open(folder / _LOCK, os.O_RDWR | os.O_CREAT, 0o600)
        fcntl.flock(lock, fcntl.LOCK_EX)
    return folder, lock


@contextmanager
def _folder_lock(parent: Path) -> Iterator[None]:
    """Keep other processes from removing a folder that is not locked yet."""
    with (parent / ".lock").open("a") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def _sweep(parent: Path) -> None:
    """Only what a process made here: the folder may lead to one that has others of the user."""
    for folder in parent.glob("[0-9]*-*"):
        if not folder.is_symlink() and _is_left(folder / _LOCK):
            shutil.rmtree(folder, ignore_errors=True)


def _is_left(lock: Path) -> bool:
    """Whether a folder was in use, and is not any more."""
    try:
        with lock.open("r+") as file:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:  # it is locked, or missing
        return False
    return True
