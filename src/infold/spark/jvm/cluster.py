"""
Executors of a cluster: what they get from this machine, and that there are any.

The driver is this process's JVM. Its jars and infold's own package go to the executors with the
application, so nothing of infold has to be installed there but Python for functions in Python.
"""

from __future__ import annotations

import os
import socket
import sys
import time
import zipfile
from collections.abc import Mapping, Sequence
from functools import cache
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING

import infold
from infold.core.target import LOCAL, Engine
from infold.messages import faults
from infold.spark.jvm.gateway import has_started
from infold.spark.jvm.session_settings import executor_options
from infold.system.kept_files import cache_dir

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

ANSWER_SECONDS = 5
_LOOPBACK = ("127.0.0.1", "localhost", "::1", "[::1]")


def driver_settings(
    engine: Engine, given: Mapping[str, str], jars: Sequence[Path]
) -> Mapping[str, str]:
    """
    The settings of a driver whose executors are elsewhere, beside those ``given``.

    Executors connect to the driver, so it listens on the address that Spark finds for its machine
    (``spark.driver.host`` names another), and on loopback if the whole cluster is there.
    """
    alone = engine.addresses and all(host in _LOOPBACK for host, _ in engine.addresses)
    address = {"spark.driver.host": "127.0.0.1", "spark.driver.bindAddress": "127.0.0.1"}
    sent = [given["spark.jars"]] if given.get("spark.jars") else []
    options = [given.get("spark.executor.extraJavaOptions", ""), *executor_options()]
    return {
        **(address if alone else {}),
        **given,
        "spark.master": engine.master,
        "spark.jars": ",".join([*sent, *map(str, jars)]),
        "spark.executor.extraJavaOptions": " ".join(filter(None, options)),
    }


def worker_python(settings: Mapping[str, str]) -> str:
    """The Python that executors call for functions: as set, else the one that runs here."""
    configured = settings.get("spark.pyspark.python") or os.environ.get("PYSPARK_PYTHON")
    return configured or sys.executable


def refuse_unreachable(engine: Engine, given: str) -> None:
    """
    Raise ``engine_faults.master_unreachable`` if no master of a standalone cluster answers.

    ``given`` is where the address comes from. Spark itself tries for a minute, and then says that
    it was stopped.
    """
    reasons = []
    for host, port in engine.addresses:
        try:
            with socket.create_connection((host.strip("[]"), port), ANSWER_SECONDS):
                return
        except OSError as error:
            reasons.append(f"{host}:{port}: {error}")
    if reasons:
        raise faults.master_unreachable(master=engine.master, given=given, why="; ".join(reasons))


def refuse_other(running: SparkSession, engine: Engine, target: str) -> None:
    """
    Raise ``engine_faults.other_engine`` where the process's Spark is not that of the target.

    Executors elsewhere would write the tables of a target that has them on this machine. Which
    cluster it is does not matter in a Spark that the program itself has started.
    """
    master = running.sparkContext.master or LOCAL
    same = master == engine.master or not has_started()
    if engine.submitted:  # what the program has started is what it was given
        same = not has_started()
    elif not engine.is_cluster:
        same = not Engine(master).is_cluster
    else:
        same = same and Engine(master).is_cluster
    if not same:
        raise faults.other_engine(running=master, target=target, wanted=engine.name)


def await_executor(session: SparkSession, engine: Engine, given: str) -> None:
    """
    Wait until there is an executor; raises ``engine_faults.no_executor`` after ``executor_wait``.

    With dynamic allocation they come when there is work.
    """
    if (session.conf.get("spark.dynamicAllocation.enabled", "false") or "") == "true":
        return
    end = time.monotonic() + engine.executor_wait
    while not executors(session):
        if time.monotonic() > end:
            raise faults.no_executor(
                master=engine.master,
                given=given,
                seconds=engine.executor_wait,
                memory=session.conf.get("spark.executor.memory", "1g"),
            )
        time.sleep(0.1)


def executors(session: SparkSession) -> int:
    """How many executors there are."""
    context = session.sparkContext._jsc.sc()  # noqa: SLF001 (no other way to ask)
    return int(context.getExecutorMemoryStatus().size()) - 1  # one is the driver


def send_package(session: SparkSession) -> None:
    """Send infold's package to the executors: it calls the functions in Python there."""
    session.sparkContext.addPyFile(str(package()))


@cache
def package() -> Path:
    """A zip file in the cache with infold's modules; another one for each state of the code."""
    root = Path(infold.__file__).parent
    files = {path.relative_to(root.parent): path for path in sorted(root.rglob("*.py"))}
    texts = {str(name): path.read_bytes() for name, path in files.items()}
    digest = sha256()
    for name, text in texts.items():
        digest.update(f"{name} {len(text)}\n".encode() + text)
    archive = cache_dir() / f"infold-{digest.hexdigest()[:16]}.zip"
    if not archive.is_file() or archive.stat().st_uid != os.geteuid():
        archive.parent.mkdir(parents=True, exist_ok=True)
        temporary = archive.with_suffix(f".{os.getpid()}")
        with zipfile.ZipFile(temporary, "w", zipfile.ZIP_DEFLATED) as opened:
            for name, text in texts.items():
                opened.writestr(name, text)
        temporary.replace(archive)
    return archive
