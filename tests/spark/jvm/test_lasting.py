"""A JVM that is offered is used only if it is what would be started, and answers; else it ends."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from unittest.mock import MagicMock

import pytest

from infold.lake.stores.hdfs import USER_SETTING
from infold.spark.jvm import gateway, lasting, spark_session
from infold.spark.jvm.gateway import Jvm
from infold.spark.jvm.java import Java
from infold.spark.jvm.lasting import OfAnother, Offer, needs
from infold.spark.jvm.session_settings import Size

SETTINGS = {"spark.driver.memory": "2g", "spark.master": "local[*]"}


@pytest.fixture
def other() -> Iterator[subprocess.Popen[bytes]]:
    """A process that takes the place of a JVM, and listens to nobody."""
    made = subprocess.Popen(["sleep", "600"], start_new_session=True)
    yield made
    made.kill()
    made.wait()


def test_what_a_jvm_cannot_change_is_needed(tmp_path: Path) -> None:
    """Memory, options, Java, jars and locks; not catalogs, and not what a run's size sets."""
    jar = tmp_path / "a.jar"
    jar.write_text("a")
    lock = os.open(tmp_path / "dev.lock", os.O_CREAT | os.O_RDWR)
    with_jar = {**SETTINGS, "spark.jars": str(jar)}
    first = needs(with_jar, ["17"], [])
    jar.write_text("ab")

    found = [
        needs(SETTINGS, ["17"], []),
        needs({**SETTINGS, "spark.driver.memory": "3g"}, ["17"], []),
        needs(SETTINGS, ["21"], []),
        needs(SETTINGS, ["17"], [lock]),
        first,
        needs(with_jar, ["17"], []),
    ]
    catalog = {"spark.sql.catalog.infold.warehouse": "x", "spark.sql.shuffle.partitions": "9"}
    os.close(lock)

    assert len({*found}) == len(found)
    assert needs({**SETTINGS, **catalog}, ["17"], []) == found[0]


def test_settings_of_hadoop_are_needed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The user of HDFS, and what Hadoop's own files say, which a JVM reads once."""
    monkeypatch.delenv("HADOOP_CONF_DIR", raising=False)
    found = [needs(SETTINGS, ["17"], []), needs({**SETTINGS, USER_SETTING: "etl"}, ["17"], [])]
    monkeypatch.setenv("HADOOP_CONF_DIR", str(tmp_path))
    for text in ("a", "ab"):
        (tmp_path / "hdfs-site.xml").write_text(text)
        found.append(needs(SETTINGS, ["17"], []))
    assert len({*found}) == len(found)


def test_how_stores_are_reached_is_needed() -> None:
    """Their address and keys, which nobody can read in it; not the secrets of a catalog."""
    keys = {"fs.s3a.endpoint": "http://one", "fs.s3a.secret.key": "hush"}

    found = [
        needs(SETTINGS, ["17"], [], secrets)
        for secrets in (
            {},
            keys,
            {**keys, "fs.s3a.endpoint": "http://two"},
            {**keys, "fs.s3a.secret.key": "hush-hush"},
        )
    ]
    catalog = {"spark.sql.catalog.infold.token": "hush"}

    assert len({*found}) == len(found)
    assert needs(SETTINGS, ["17"], [], {**keys, **catalog}) == found[1]
    assert not any("hush" in text for text in found)


def test_connections_to_stores_are_closed(monkeypatch: pytest.MonkeyPatch) -> None:
    """When the JVM is tidied up; else the next command would use this one's address and keys."""
    from pyspark import SparkContext

    reached = MagicMock()
    reached.jvm.java.lang.Runtime.getRuntime().totalMemory.return_value = 0
    reached.jvm.java.lang.Runtime.getRuntime().freeMemory.return_value = 0
    monkeypatch.setattr(SparkContext, "_gateway", reached)
    monkeypatch.setattr(gateway, "reached", lambda: Jvm(OfAnother(0, 0), 0, "1", "secret"))
    monkeypatch.setattr(lasting, "_end_workers", lambda _: None)

    lasting.tidy_up()

    reached.jvm.org.apache.hadoop.fs.FileSystem.closeAll.assert_called_once_with()


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
    process = OfAnother(other.pid, watched)
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
    with pytest.raises(InterruptedError):
        spark_session.start(tmp_path, tmp_path / "catalog.db", log=tmp_path / "spark.log")

    assert seen == [sys.executable] * 2
