"""
A JVM that outlives the command that started it, and is used by later ones, one after the other.

A command *attaches* to a JVM that is *offered* to its process, if that was started with what the
command would start its own with (``needs``). It gets sessions of its own. When it ends it *tidies
up*: nothing that it made stays in the JVM. What does stay are loaded and compiled classes.
"""

from __future__ import annotations

import hashlib
import os
import select
import signal
import subprocess
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any
from weakref import WeakSet

from infold.spark.jvm import gateway
from infold.spark.jvm.gateway import Jvm
from infold.spark.jvm.java import settings_folder, spark_home
from infold.spark.jvm.session_settings import Size, size_settings

if TYPE_CHECKING:
    from py4j.java_gateway import JavaGateway
    from pyspark.sql import SparkSession

ANSWER_SECONDS = 3
"""A JVM at rest that does not answer in this time hangs."""
GARBAGE_BYTES = 384 * 1024 * 1024
"""From how much used heap a JVM at rest is asked to collect its garbage."""
WORKERS = "pythonWorkers"
"""A field of Spark's environment: what starts Python processes."""
CATALOG = "spark.sql.catalog."
STORES = "fs."
"""How the settings of stores begin."""
JARS = ("spark.jars", "spark.driver.extraClassPath")


@dataclass(frozen=True)
class ForeignProcess:
    """The process of a JVM that another process started. ``watched`` is its pidfd."""

    pid: int
    watched: int

    def poll(self) -> int | None:
        """None while it runs; how it ended is not known."""
        poll = select.poll()  # unlike select for any number of descriptors
        poll.register(self.watched, select.POLLIN)
        return -signal.SIGKILL if poll.poll(0) else None

    def wait(self, timeout: float | None = None) -> int:
        """Wait for its end."""
        poll = select.poll()
        poll.register(self.watched, select.POLLIN)
        if not poll.poll(None if timeout is None else timeout * 1000):
            raise subprocess.TimeoutExpired("java", timeout or 0)
        return -signal.SIGKILL


@dataclass(frozen=True)
class Offer:
    """A JVM at rest. ``needs`` and ``large`` say what it was started with."""

    jvm: Jvm
    needs: str
    large: bool
    taken: Callable[[], None] = lambda: None
    """Called before a process does anything in the JVM."""


class _JvmState:
    """What is offered to this process, and what it attached to or started."""

    def __init__(self) -> None:
        self.offered: Offer | None = None
        self.started: tuple[str, bool] | None = None
        self.kept: Any = None
        self.sessions: WeakSet[SparkSession] = WeakSet()


_state = _JvmState()


def offer(jvm_offer: Offer) -> None:
    """Offer a JVM to this process; the first session is one in it, if it fits."""
    _state.offered = jvm_offer


def needs(
    settings: Mapping[str, str],
    java: Sequence[str],
    inherit: Sequence[int],
    secrets: Mapping[str, str] = {},
) -> str:
    """
    A digest of what a JVM cannot change once it runs: options, jars, files of settings, locks.

    Catalogs, and what depends on a run's size, are settings of a session. So are ``secrets``, but
    Hadoop keeps a connection to a bucket for whoever asks next, with the first one's address and
    keys: those of stores count. ``inherit`` are the files that the JVM has open, to lock them for
    its target.
    """
    by_size = size_settings("large")
    static = {
        key: value
        for key, value in settings.items()
        if key not in by_size and not key.startswith(CATALOG)
    }
    jars = [jar for key in JARS for jar in _split(static.get(key, ""))]
    home = spark_home()
    named = (settings_folder(home), os.environ.get("HADOOP_CONF_DIR"))
    folders = [Path(folder) for folder in named if folder]
    inside = (file for folder in folders if folder.is_dir() for file in sorted(folder.iterdir()))
    files: list[str | Path] = [*jars, home / "jars", *folders, *inside]
    locks = [str(Path(f"/dev/fd/{number}").resolve()) for number in inherit]
    facts = [
        *java,
        *locks,
        *(f"{key}={static[key]}" for key in sorted(static)),
        *(f"{key}={secrets[key]}" for key in sorted(secrets) if key.startswith(STORES)),
        *map(_file_stamp, files),
    ]
    return hashlib.sha256("\n".join(facts).encode(errors="surrogateescape")).hexdigest()


def _split(paths: str) -> list[str]:
    return [path for part in paths.split(",") for path in part.split(":") if path]


def _file_stamp(path: str | Path) -> str:
    try:
        stat = Path(path).stat()
    except OSError:
        return f"{path} -"
    return f"{path} {stat.st_mtime_ns} {stat.st_size}"


def attach(needed: str, size: Size) -> bool:
    """
    Attach to the offered JVM, so that this process has a running Spark.

    False if none is offered, or it is not what is needed: then it has ended, for a process has one
    JVM, and two are too much for the memory of many machines.
    """
    offered, _state.offered = _state.offered, None
    if offered is None:
        return False
    offered.taken()
    if offered.needs == needed and (offered.large or size != "large") and _answers(offered.jvm):
        try:
            _state.kept = _attached(gateway.reach(offered.jvm))
        except Exception:  # noqa: BLE001 (it is about to end, or has; the next one is our own)
            gateway.end_jvm()
            gateway.forget_dead()
        else:
            _state.started = None
            return True
    end(offered.jvm)
    return False


def end(jvm: Jvm) -> None:
    """Kill a JVM with all that it started, and wait until it is gone."""
    if jvm.process.poll() is None:
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(jvm.process.pid, signal.SIGKILL)
        with suppress(subprocess.TimeoutExpired):
            jvm.process.wait(10)


def _answers(jvm: Jvm) -> bool:
    """Whether the JVM runs and answers: one that was stopped takes connections and says nothing."""
    import socket

    if jvm.process.poll() is not None:
        return False
    try:
        with socket.create_connection(("127.0.0.1", int(jvm.port)), ANSWER_SECONDS) as connection:
            connection.settimeout(ANSWER_SECONDS)
            connection.sendall(f"A\n{jvm.secret}\n".encode())
            return bool(connection.recv(16))
    except OSError:
        return False


def _attached(java_gateway: JavaGateway) -> Any:
    """Make the Python side of the JVM's Spark; the objects that were there before."""
    from pyspark import SparkConf, SparkContext
    from pyspark.sql import SparkSession

    jvm = java_gateway.jvm
    objects_before = _names_of_objects(java_gateway)
    context = jvm.org.apache.spark.SparkContext.getOrCreate()
    java = jvm.JavaSparkContext.fromSparkContext(context)
    with gateway.own_signals():
        conf = SparkConf(_jconf=context.getConf())
        python = SparkContext(conf=conf, gateway=java_gateway, jsc=java)
    session = SparkSession(python, jvm.SparkSession.getDefaultSession().get())
    # Equal plans of two commands are not of equal data.
    session.catalog.clearCache()
    return objects_before


def _names_of_objects(java_gateway: JavaGateway) -> Any:
    return java_gateway.jvm.java.util.HashSet(_kept_objects(java_gateway).keySet())


def _kept_objects(java_gateway: JavaGateway) -> Any:
    """The objects that the JVM keeps because Python might ask for them."""
    return java_gateway.java_gateway_server.getGateway().getBindings()


def started(needed: str, size: Size) -> None:
    """Note what this process has just started a JVM with."""
    from pyspark import SparkContext

    _state.started = needed, size == "large"
    with suppress(Exception):  # a JVM that cannot be tidied up is not left to anyone
        _state.kept = _names_of_objects(SparkContext._gateway)  # noqa: SLF001 (no public way)


def made(session: SparkSession) -> None:
    """Note a session, whose catalogs are closed when the JVM is tidied up."""
    _state.sessions.add(session)


def to_leave() -> Offer | None:
    """The JVM that this process started and that still runs Spark; None if there is none."""
    jvm = gateway.reached()
    if jvm is None or None in (_state.started, _state.kept) or gateway.is_stopped():
        return None
    assert _state.started is not None
    tidy_up()
    return Offer(jvm, *_state.started)


def has_attached() -> bool:
    """Whether this process works in a JVM that was offered to it."""
    return _state.kept is not None and _state.started is None


def tidy_up() -> None:
    """
    Leave nothing in the JVM: no connection, cached rows, Python worker, or object for Python.

    Connections to stores are Hadoop's, which would give them to later sessions
    whatever their settings.

    Raises what py4j does where the JVM does not answer.
    """
    from pyspark import SparkContext

    java_gateway, jvm = SparkContext._gateway, gateway.reached()  # noqa: SLF001 (no public way)
    if java_gateway is None or jvm is None:
        return
    for session in _state.sessions:
        session.catalog.clearCache()
        close_catalog(session)
    java_gateway.jvm.org.apache.hadoop.fs.FileSystem.closeAll()
    _end_workers(java_gateway)
    objects = _kept_objects(java_gateway).keySet()
    runtime = java_gateway.jvm.java.lang.Runtime.getRuntime()
    used = runtime.totalMemory() - runtime.freeMemory()
    if _state.kept is not None:
        objects.retainAll(_state.kept)
    if used > GARBAGE_BYTES:
        java_gateway.jvm.java.lang.System.gc()


def close_catalog(session: SparkSession) -> None:
    """Close what a session's catalog has open: connections to a database, or to a server."""
    with suppress(Exception):  # not every catalog can be closed
        manager = session._jsparkSession.sessionState().catalogManager()  # noqa: SLF001
        manager.currentCatalog().icebergCatalog().close()


def _end_workers(java_gateway: JavaGateway) -> None:
    """
    End the Python processes that the JVM has started.

    They have imported what a project's functions import, and the next command's may be others.
    Spark can end them, and start others later; it has no public way to be asked to.
    """
    env = java_gateway.jvm.org.apache.spark.SparkEnv.get()
    (field,) = (
        member for member in env.getClass().getDeclaredFields() if member.getName() == WORKERS
    )
    field.setAccessible(True)
    converters = java_gateway.jvm.scala.jdk.javaapi.CollectionConverters
    for factory in converters.asJavaCollection(field.get(env).values()).toArray():
        factory.stop()
