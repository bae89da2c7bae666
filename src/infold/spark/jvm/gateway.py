"""The JVM: how it is started, reached and ended, and who it is in HDFS."""

from __future__ import annotations

import logging
import os
import shlex
import signal
import struct
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from types import SimpleNamespace
from typing import IO, TYPE_CHECKING, Any, Protocol

import py4j
from py4j.java_gateway import JavaGateway

from infold.lake.stores.settings import HDFS_USER, HDFS_USER_SETTING
from infold.messages import store_errors
from infold.spark.jvm.java import submit_command
from infold.spark.jvm.round_trips import (
    keep_looked_up_classes,
    pass_lists_at_once,
)
from infold.system import signals
from infold.system.circumstances import session_priority, set_session_priority

if TYPE_CHECKING:
    from pyspark import SparkContext
    from pyspark.sql import SparkSession


class Process(Protocol):
    """The process of a JVM, which this process or another one started."""

    @property
    def pid(self) -> int:
        """Its number."""

    def poll(self) -> int | None:
        """None while it runs."""

    def wait(self, timeout: float | None = None) -> int:
        """Wait for its end. Raises subprocess.TimeoutExpired."""


@dataclass(frozen=True)
class Jvm:
    """A JVM that infold started, and how Python reaches it."""

    process: Process
    input: int
    """Its standard input; it ends by itself when nobody has that open any more."""
    port: str
    secret: str = field(repr=False)


_started: list[Process] = []
_reached: list[Jvm] = []


def launch(
    settings: Mapping[str, str],
    folder: Path,
    output: IO[str],
    inherit: Sequence[int],
    meanwhile: Callable[[], object] = lambda: None,
) -> JavaGateway:
    """
    Start a JVM with Spark in it, and connect to it; ``meanwhile`` is called while it starts.

    It differs from PySpark's own ``launch_gateway`` in four things. The JVM is in a session of its
    own, so that signals from a terminal reach this process only. It is ended when its start is
    interrupted: PySpark removes the file in which the JVM is about to write its address, and a JVM
    that cannot write it waits for ever. And infold's settings come after those of
    ``PYSPARK_SUBMIT_ARGS``, so they win. And Spark's scripts are left out where they would add
    nothing (:func:`submit_command`).

    A JVM ends by itself when its input is closed, which is when this process ends.
    """
    address = folder / "address"
    arguments = _submit_args()
    for key, value in settings.items():
        arguments += ["--conf", f"{key}={value}"]
    env = {
        **os.environ,
        "SPARK_CONNECT_MODE": "0",
        "_PYSPARK_DRIVER_CONN_INFO_PATH": str(address),
        # Goes before spark.local.dir.
        "SPARK_LOCAL_DIRS": settings.get("spark.local.dir", str(folder)),
        **environment(settings),
    }
    command, env = submit_command([*arguments, "pyspark-shell"], env)
    with signals.deferred():
        process = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=output,
            stderr=output,
            env=env,
            pass_fds=tuple(inherit),
            start_new_session=True,
        )
        _started.append(process)
        signals.end_with_process(end_jvm)
    set_session_priority(process.pid, session_priority(os.getpid()))
    try:
        meanwhile()
        # PySpark's `lit` imports it, and pandas with it where that is installed.
        import pyspark.testing.utils  # noqa: F401

        port, secret = _await_address(process, address)
        assert process.stdin is not None
        return _connect(Jvm(process, process.stdin.fileno(), port, secret))
    except BaseException:
        end_jvm()
        raise


def reach(jvm: Jvm) -> JavaGateway:
    """Connect to a JVM that another process started; from now on it ends as one of its own does."""
    _started.append(jvm.process)
    signals.end_with_process(end_jvm)
    return _connect(jvm)


def _connect(jvm: Jvm) -> JavaGateway:
    from pyspark.java_gateway import launch_gateway

    with _environment(PYSPARK_GATEWAY_PORT=jvm.port, PYSPARK_GATEWAY_SECRET=jvm.secret):
        gateway = launch_gateway()
    gateway.proc = jvm.process
    quieten_py4j()
    keep_looked_up_classes(gateway.jvm)
    pass_lists_at_once()
    _reached[:] = [jvm]
    return gateway


def reached() -> Jvm | None:
    """The running JVM that this process started or reached; None if there is none."""
    running = bool(_started) and _started[-1].poll() is None
    return _reached[-1] if _reached and running else None


@contextmanager
def own_signals() -> Iterator[None]:
    """
    Keep the handler of Ctrl-C: PySpark's would call a JVM that may be busy or lost.

    It is not put back afterwards, but never replaced: a Ctrl-C may come at any moment between.
    """
    from pyspark.core import context

    known = vars(context)
    whole = known["signal"]
    known["signal"] = SimpleNamespace(signal=lambda *_: None, SIGINT=signal.SIGINT)
    try:
        yield
    finally:
        known["signal"] = whole


def quieten_py4j() -> None:
    """
    Silence the logs of py4j and PySpark: an error reports what went wrong, once.

    py4j logs a stack trace for each call to a lost JVM, PySpark one for each failed query.
    """
    from pyspark.logger import PySparkLogger

    for name in ("SQLQueryContextLogger", "DataFrameQueryContextLogger"):
        PySparkLogger.getLogger(name).disabled = True
    logging.getLogger("py4j").propagate = False
    logging.getLogger().addFilter(_not_py4j)


def _not_py4j(record: logging.LogRecord) -> bool:
    return not record.pathname.startswith(str(Path(py4j.__file__).parent))


def has_started() -> bool:
    """Whether infold started this process's JVM."""
    return bool(_started)


def is_submitted() -> bool:
    """Whether this process is the application of a spark-submit, whose JVM has started it."""
    return "PYSPARK_GATEWAY_PORT" in os.environ


def jvm_pid() -> int:
    """The process of the JVM that infold started last."""
    return _started[-1].pid


def has_deleted(file: Path) -> bool:
    """Whether the JVM that infold started uses a file that was deleted since, or replaced."""
    if not has_started():
        return False
    name = f"{file.resolve()} (deleted)"
    with suppress(OSError):  # not Linux, or the JVM has just ended
        opened = f"/proc/{jvm_pid()}/fd"
        for number in os.listdir(opened):  # noqa: PTH208 (hundreds of them)
            with suppress(FileNotFoundError):  # closed meanwhile
                if os.readlink(f"{opened}/{number}") == name:  # noqa: PTH115
                    return True
    return False


def is_lost() -> bool:
    """Whether the JVM that infold started has ended; True once for each JVM."""
    if not _started or _started[-1].poll() is None:
        return False
    _started.clear()
    return True


def forget_dead() -> bool:
    """Forget a lost JVM, so that the next start makes another; whether there was one."""
    if not is_lost():
        return False
    from pyspark import SparkContext
    from pyspark.sql import SparkSession

    SparkContext._gateway = SparkContext._jvm = None  # noqa: SLF001
    SparkContext._active_spark_context = None  # noqa: SLF001
    SparkSession._instantiatedSession = None  # noqa: SLF001
    return True


def is_stopped() -> bool:
    """Whether no Spark runs in this process: it was never started, or was stopped."""
    context = _imported_context()
    return context is None or context._active_spark_context is None  # noqa: SLF001 - no public way to ask


def existing_gateway() -> JavaGateway | None:
    """
    What connects this process to its JVM, if it has one.

    A JVM whose Spark was stopped goes on, and a process cannot have a second one.
    """
    context = _imported_context()
    return None if context is None else context._gateway  # noqa: SLF001 - no public way to ask


def _imported_context() -> type[SparkContext] | None:
    """PySpark's, once that is imported, which can wait until a JVM is about to start."""
    if "pyspark" not in sys.modules:
        return None
    from pyspark import SparkContext

    return SparkContext


def end_jvm() -> None:
    """Kill the JVM, if there is one, and the processes that its start-up scripts started."""
    for process in _started:
        if process.poll() is None:
            with suppress(ProcessLookupError, PermissionError):
                os.killpg(process.pid, signal.SIGKILL)
            with suppress(subprocess.TimeoutExpired):
                process.wait(10)


def _submit_args() -> list[str]:
    """The words of ``PYSPARK_SUBMIT_ARGS``, without the one that has to come last."""
    words = shlex.split(os.environ.get("PYSPARK_SUBMIT_ARGS", ""))
    return words[:-1] if words[-1:] == ["pyspark-shell"] else words


def _await_address(process: subprocess.Popen[bytes], address: Path) -> tuple[str, str]:
    """The JVM's port and secret, when it has written them; it renames the complete file."""
    while process.poll() is None and not address.is_file():
        time.sleep(0.01)
    if not address.is_file():
        raise ChildProcessError(f"Java ended with code {process.returncode} before it was ready")
    text = address.read_bytes()
    address.unlink()
    (port,) = struct.unpack("!i", text[:4])
    (length,) = struct.unpack("!i", text[4:8])
    return str(port), text[8 : 8 + length].decode("utf-8")


@contextmanager
def _environment(**values: str) -> Iterator[None]:
    """Environment variables for the block only."""
    os.environ.update(values)
    try:
        yield
    finally:
        for name in values:
            os.environ.pop(name, None)


def environment(settings: Mapping[str, str]) -> Mapping[str, str]:
    """What the environment of a new JVM needs to be that user."""
    return {HDFS_USER: settings[HDFS_USER_SETTING]} if HDFS_USER_SETTING in settings else {}


def refuse_other(running: SparkSession, settings: Mapping[str, str]) -> None:
    """Raise if a JVM that runs is another user than the one of these settings."""
    expected_user = settings.get(HDFS_USER_SETTING)
    if not expected_user:
        return
    jvm: Any = running.sparkContext._jvm  # noqa: SLF001 (no public way)
    group = jvm.org.apache.hadoop.security.UserGroupInformation
    current_user = group.getCurrentUser().getShortUserName()
    if current_user != expected_user:
        raise store_errors.other_user(one=current_user, other=expected_user)
