"""Processes around a JVM: which one is used again, what is spilt, how it starts, what it says."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from unittest.mock import MagicMock
from weakref import WeakSet

import grpc  # type: ignore[import-untyped]
import pytest
from py4j.protocol import Py4JError
from pyspark.sql.connect.client.retries import Retrying

from infold.lake.stores.settings import HDFS_USER_SETTING
from infold.spark.connect import MOST, Retries
from infold.spark.engine import words_and_condition
from infold.spark.jvm import gateway, lasting, spark_session
from infold.spark.jvm.gateway import Jvm
from infold.spark.jvm.java import Java
from infold.spark.jvm.lasting import ForeignProcess, Offer, needs
from infold.spark.jvm.session_settings import Size
from infold.spark.jvm.spark_session import new_spill_folder

SETTINGS = {"spark.driver.memory": "2g", "spark.master": "local[*]"}


@pytest.fixture
def other() -> Iterator[subprocess.Popen[bytes]]:
    """A process that takes the place of a JVM, and listens to nobody."""
    made = subprocess.Popen(["sleep", "600"], start_new_session=True)
    yield made
    made.kill()
    made.wait()


def test_what_a_jvm_cannot_change_is_needed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """
    Memory, options, Java, jars and locks; the user of HDFS, and what Hadoop's own files say, which
    a JVM reads once; addresses and keys of stores, which nobody can read in it. Not catalogs, their
    secrets, and what a run's size sets.
    """
    monkeypatch.delenv("HADOOP_CONF_DIR", raising=False)
    jar = tmp_path / "a.jar"
    jar.write_text("a")
    lock = os.open(tmp_path / "dev.lock", os.O_CREAT | os.O_RDWR)
    with_jar = {**SETTINGS, "spark.jars": str(jar)}
    first = needs(with_jar, ["17"], [])
    jar.write_text("ab")
    keys = {"fs.s3a.endpoint": "http://one", "fs.s3a.secret.key": "hush"}

    found = [
        needs(SETTINGS, ["17"], []),
        needs({**SETTINGS, "spark.driver.memory": "3g"}, ["17"], []),
        needs({**SETTINGS, HDFS_USER_SETTING: "etl"}, ["17"], []),
        needs(SETTINGS, ["21"], []),
        needs(SETTINGS, ["17"], [lock]),
        first,
        needs(with_jar, ["17"], []),
        needs(SETTINGS, ["17"], [], {**keys, "fs.s3a.endpoint": "http://two"}),
        needs(SETTINGS, ["17"], [], {**keys, "fs.s3a.secret.key": "hush-hush"}),
        needs(SETTINGS, ["17"], [], keys),
    ]
    of_size = {"spark.sql.catalog.infold.warehouse": "x", "spark.sql.shuffle.partitions": "9"}
    os.close(lock)

    assert needs({**SETTINGS, **of_size}, ["17"], []) == found[0]
    of_catalog = {"spark.sql.catalog.infold.token": "hush"}
    assert needs(SETTINGS, ["17"], [], {**keys, **of_catalog}) == found[-1]
    assert not any("hush" in text for text in found)
    monkeypatch.setenv("HADOOP_CONF_DIR", str(tmp_path))
    for text in ("a", "ab"):
        (tmp_path / "hdfs-site.xml").write_text(text)
        found.append(needs(SETTINGS, ["17"], []))
    assert len({*found}) == len(found)


def test_connections_to_stores_are_closed(monkeypatch: pytest.MonkeyPatch) -> None:
    """When the JVM is tidied up; else the next command would use this one's address and keys."""
    from pyspark import SparkContext

    reached = MagicMock()
    reached.jvm.java.lang.Runtime.getRuntime().totalMemory.return_value = 0
    reached.jvm.java.lang.Runtime.getRuntime().freeMemory.return_value = 0
    monkeypatch.setattr(SparkContext, "_gateway", reached)
    monkeypatch.setattr(gateway, "reached", lambda: Jvm(ForeignProcess(0, 0), 0, "1", "secret"))
    monkeypatch.setattr(lasting, "_end_workers", lambda _: None)
    monkeypatch.setattr(lasting._state, "sessions", WeakSet())  # other tests leave some

    lasting.tidy_up()

    reached.jvm.org.apache.hadoop.fs.FileSystem.closeAll.assert_called_once_with()


@pytest.mark.deep
@pytest.mark.parametrize("way", ["other needs", "a large run", "it hangs", "nobody listens"])
def test_what_does_not_fit_ends(
    other: subprocess.Popen[bytes], monkeypatch: pytest.MonkeyPatch, way: str
) -> None:
    """It is marked as used before, and gone after; a second question has no offer."""
    monkeypatch.setattr(lasting, "ANSWER_SECONDS", 0.2)
    taken: list[bool] = []
    listening = socket.create_server(("127.0.0.1", 0))
    port = listening.getsockname()[1]
    if way == "nobody listens":
        listening.close()
    watched = os.pidfd_open(other.pid)
    process = ForeignProcess(other.pid, watched)
    assert process.poll() is None
    jvm = Jvm(process, 0, str(port), "secret")
    lasting.offer(Offer(jvm, "these", large=False, taken=lambda: taken.append(True)))
    size: Size = "large" if way == "a large run" else "small"

    attached = lasting.attach("those" if way == "other needs" else "these", size)
    again = lasting.attach("these", "small")

    assert (attached, again, taken) == (False, False, [True])
    assert process.poll() is not None
    os.close(watched)
    listening.close()


def test_functions_run_in_this_python(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also in a JVM that is attached to: PySpark reads which Python it is while it attaches."""
    names = ("PYSPARK_PYTHON", "PYSPARK_DRIVER_PYTHON", "SPARK_HOME", "JAVA_HOME", "SPARK_LOCAL_IP")
    for name in names:
        monkeypatch.setenv(name, "")
        monkeypatch.delenv(name)
    seen: list[str | None] = []

    def attach(*_: object) -> bool:
        seen.extend(os.environ.get(name) for name in names[:2])
        raise InterruptedError

    monkeypatch.setattr(lasting, "attach", attach)
    monkeypatch.setattr(spark_session, "find_java", lambda: Java(tmp_path, "17"))
    monkeypatch.setattr(spark_session, "jar_paths", lambda *_: ())
    monkeypatch.setattr(spark_session, "_running_session", lambda: None)
    process = spark_session.JavaProcess(log=tmp_path / "spark.log")
    with pytest.raises(InterruptedError):
        spark_session.start(tmp_path, tmp_path / "catalog.db", process=process)

    assert seen == [sys.executable] * 2


def test_only_its_owner_may_look_into_it(tmp_path: Path) -> None:
    """Others can read neither the spill folder nor the one around it, whatever the umask."""
    before = os.umask(0)
    try:
        folder, held = new_spill_folder(tmp_path / "spill")
    finally:
        os.umask(before)
    os.close(held)

    assert [path.stat().st_mode & 0o777 for path in (folder, folder.parent)] == [0o700, 0o700]


def test_the_next_process_removes_unused_folders(tmp_path: Path) -> None:
    """The next process removes folders of killed processes and keeps those in use."""
    one, held_by_one = new_spill_folder(tmp_path)
    two, held_by_two = new_spill_folder(tmp_path)
    (one / "rows").write_text("ann")
    (two / "rows").write_text("bob")
    os.close(held_by_one)

    three, held_by_three = new_spill_folder(tmp_path)

    assert not one.exists()
    assert (two / "rows").read_text() == "bob"
    assert three.is_dir()
    os.close(held_by_two)
    os.close(held_by_three)


def test_a_folder_of_anything_else_is_left_alone(tmp_path: Path) -> None:
    """A project may come with a link in the place of the folder, and it may lead home."""
    home = tmp_path / "home"
    for name in ("documents", "2024-taxes"):
        (home / name).mkdir(parents=True)
        (home / name / "kept").touch()
    home.chmod(0o755)
    (tmp_path / "spill").symlink_to(home)

    _, held = new_spill_folder(tmp_path / "spill")
    os.close(held)

    assert sorted(path.parent.name for path in home.glob("*/kept")) == ["2024-taxes", "documents"]
    assert home.stat().st_mode & 0o777 == 0o755


@pytest.mark.deep
def test_the_lock_is_inherited(tmp_path: Path) -> None:
    """A process that inherits the lock keeps it, because a
    JVM outlives its killed parent by a moment.
    """
    folder, held = new_spill_folder(tmp_path)
    child = subprocess.Popen(
        [sys.executable, "-c", "input()"], stdin=subprocess.PIPE, pass_fds=(held,)
    )
    os.close(held)
    _, other = new_spill_folder(tmp_path)
    os.close(other)
    assert folder.exists()

    child.communicate(b"\n")
    _, last = new_spill_folder(tmp_path)
    os.close(last)

    assert not folder.exists()


AUTOGROUP = Path("/proc/self/autogroup")

GIVES_WAY = f"""
from contextlib import contextmanager
from pathlib import Path
from infold.api import warm_up
@contextmanager
def nothing():
    yield None
warm_up.class_archive.archive_to_make = nothing
warm_up.main()
print(Path("{AUTOGROUP}").read_text())
"""


@pytest.mark.deep
@pytest.mark.skipif(not AUTOGROUP.exists(), reason="processors are shared among processes")
@pytest.mark.parametrize(("priority", "group"), [(19, 19), (0, 0)])
def test_its_session_gives_way_if_it_has_the_lowest_priority(priority: int, group: int) -> None:
    """The priority alone counts among the processes of one session; a make target has the usual."""
    found = subprocess.run(
        ["nice", "-n", f"{priority}", sys.executable, "-c", GIVES_WAY],
        capture_output=True,
        text=True,
        check=True,
        start_new_session=True,
    )

    assert found.stdout.split()[-2:] == ["nice", f"{group}"]


START = """
import subprocess, sys
from pathlib import Path
from infold.spark.jvm import gateway
from infold.spark.jvm.spark_session import JavaProcess, start

imported = []

class NoJvm(subprocess.Popen):
    def __init__(self, command, **options):
        if "org.apache.spark.launcher.Main" not in command:  # which only says how to start one
            imported.append("pyspark" in sys.modules)
            command = [sys.executable, "-c", ""]
        super().__init__(command, **options)

gateway.subprocess.Popen = NoJvm
folder = Path(sys.argv[1])
try:
    process = JavaProcess(meanwhile=lambda: imported.append("meanwhile"))
    start(folder / "w", folder / "c.db", process=process)
except Exception as error:
    assert "before it was ready" in str(error), error
print(imported, "pyspark.testing.utils" in sys.modules)
"""


@pytest.mark.spark
def test_the_jvm_starts_before_pyspark_is_imported(tmp_path: Path) -> None:
    """Its import takes as long as a tenth of the JVM's start, on another core."""
    done = subprocess.run(
        [sys.executable, "-c", START, str(tmp_path)], capture_output=True, text=True, check=False
    )
    assert done.stdout.splitlines()[-1:] == ["[False, 'meanwhile'] True"], done.stderr


class _Unavailable(grpc.RpcError):  # type: ignore[misc]
    """Nobody answers at the server's address."""

    def code(self) -> grpc.StatusCode:
        return grpc.StatusCode.UNAVAILABLE

    def trailing_metadata(self) -> None:
        """It has none."""


def _made(retries: Retries, fails: int, waits: list[float]) -> None:
    """A call that comes through after so many times."""
    for attempt in Retrying(retries, waits.append):
        with attempt:
            if len(waits) < fails:
                raise _Unavailable


def test_a_call_that_comes_through() -> None:
    """The next one has all its retries."""
    retries = Retries()
    for fails in (2, MOST):
        waits: list[float] = []
        _made(retries, fails, waits)
        assert len(waits) == fails


@pytest.mark.filterwarnings("ignore:.*RETRIES_EXCEEDED")
def test_after_one_that_was_given_up_none_waits() -> None:
    """Each frame of a run that lost its server calls once more as Python forgets it."""
    retries = Retries()
    with pytest.raises(_Unavailable):
        _made(retries, MOST + 1, [])
    waits: list[float] = []
    with pytest.raises(_Unavailable):
        _made(retries, 1, waits)
    assert (retries.given_up, waits) == (True, [])


BROADCAST = """An error occurred while calling o3521.localCheckpoint.
: java.util.concurrent.ExecutionException: org.apache.spark.SparkArithmeticException: \
[NUMERIC_VALUE_OUT_OF_RANGE.WITH_SUGGESTION] 5.25 is no Decimal(38, 6). SQLSTATE: 22003
\tat java.base/java.util.concurrent.FutureTask.report(FutureTask.java:122)
Caused by: org.apache.spark.SparkArithmeticException: [OTHER] later
"""


def test_what_a_broadcast_failed_of() -> None:
    """An error inside of another that Java has around it is Spark's own, with its condition."""
    assert words_and_condition(Py4JError(BROADCAST)) == (
        "[NUMERIC_VALUE_OUT_OF_RANGE.WITH_SUGGESTION] 5.25 is no Decimal(38, 6). SQLSTATE: 22003",
        "NUMERIC_VALUE_OUT_OF_RANGE.WITH_SUGGESTION",
    )
    assert words_and_condition(Py4JError("java.lang.ClassCastException: a is not b")) is None
