"""Spark sessions start silently and write Iceberg tables that other tools read."""

from __future__ import annotations

import fcntl
import os
import signal
import subprocess
import sys
import textwrap
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from infold import api
from infold.core.engines import FIXED
from infold.core.project import Project
from infold.core.target import Target
from infold.spark.jvm import given_settings
from infold.spark.jvm.session_settings import Size
from infold.system.kept_files import cache_dir

if TYPE_CHECKING:
    from pyiceberg.table import Table
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark

Start = Callable[[str], "SparkSession"]


@pytest.fixture
def start(tmp_path: Path) -> Start:
    """Start a session on a folder of its own, by name."""
    from infold.spark.jvm.spark_session import start as start_session

    return lambda name: start_session(tmp_path / name, tmp_path / f"{name}.db")


def read(folder: Path, name: str, table: str) -> Table:
    """The table as pyiceberg sees it, through the same catalog file."""
    from pyiceberg.catalog.sql import SqlCatalog

    return SqlCatalog(
        "infold", uri=f"sqlite:///{folder / name}.db", warehouse=str(folder / name)
    ).load_table(table)


def python(code: str, *options: str, cache: Path | None = None) -> subprocess.Popen[str]:
    """A fresh process that runs ``code``, in a cache of its own if given."""
    more = {} if cache is None else {"INFOLD_CACHE": str(cache)}
    return subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(code), *options],
        env={**os.environ, **more},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        close_fds=False,
    )


class TestTables:
    """The session's default catalog holds ordinary Iceberg tables."""

    def test_a_merged_v3_table_is_read_by_pyiceberg(self, start: Start, tmp_path: Path) -> None:
        """A MERGE leaves deletion vectors, and pyiceberg, without a JVM, reads the outcome."""
        spark = start("lake")
        spark.sql("CREATE NAMESPACE shop")
        spark.sql(
            "CREATE TABLE shop.clicks (id BIGINT, url STRING, ts TIMESTAMP) USING iceberg "
            "PARTITIONED BY (months(ts)) "
            "TBLPROPERTIES ('format-version' = '3', 'write.merge.mode' = 'merge-on-read')"
        )
        spark.sql(
            "INSERT INTO shop.clicks (id, url, ts) "
            "SELECT id, 'old', timestamp'2024-01-01 12:00:00' FROM range(5)"
        )
        spark.sql(
            "MERGE INTO shop.clicks t USING (SELECT id + 4 AS id FROM range(2)) n ON t.id = n.id "
            "WHEN MATCHED THEN UPDATE SET url = 'new' WHEN NOT MATCHED THEN "
            "INSERT (id, url, ts) VALUES (n.id, 'new', timestamp'2024-02-29 23:59:59.999999')"
        )

        table = read(tmp_path, "lake", "shop.clicks")

        rows = table.scan().to_arrow().sort_by("id").to_pydict()
        assert table.metadata.format_version == 3
        assert rows["url"] == ["old", "old", "old", "old", "new", "new"]
        assert rows["ts"][0].isoformat() == "2024-01-01T12:00:00+00:00"
        assert rows["ts"][-1].isoformat() == "2024-02-29T23:59:59.999999+00:00"
        assert list((tmp_path / "lake").rglob("*.puffin"))

    def test_a_second_start_has_its_own_catalog(self, start: Start) -> None:
        """One process can work on several warehouses with one JVM."""
        one, two = start("one"), start("two")
        one.sql("CREATE NAMESPACE only_in_one")

        assert one.sql("SHOW NAMESPACES").toArrow().num_rows == 1
        assert two.sql("SHOW NAMESPACES").toArrow().num_rows == 0

    def test_another_process_s_commit_is_seen_at_once(self, start: Start, tmp_path: Path) -> None:
        """Commits by pyiceberg are seen at once, not hidden by a cached table."""
        spark = start("shared")
        spark.sql("CREATE NAMESPACE shop")
        spark.sql("CREATE TABLE shop.t USING iceberg AS SELECT 1 AS id")
        spark.table("shop.t").toArrow()
        table = read(tmp_path, "shared", "shop.t")

        table.append(table.scan().to_arrow())

        assert spark.table("shop.t").toArrow().num_rows == 2


def test_settings_that_every_run_can_rely_on(start: Start) -> None:
    """Timestamps are UTC with microseconds, names resolve in the Iceberg catalog, and ANSI mode is
    on: a bad cast is an error and not a NULL.
    """
    spark, instant = start("lake"), "2024-03-09 00:00:00.000001"
    found = spark.sql(
        "SELECT current_timezone() AS zone, current_catalog() AS catalog, "
        f"cast(timestamp'{instant}' AS string) AS at"
    )

    assert found.toArrow().to_pylist() == [{"zone": "UTC", "catalog": "infold", "at": instant}]
    with pytest.raises(Exception, match="CAST_INVALID_INPUT"):
        spark.sql("SELECT cast('x' AS int)").toArrow()


@pytest.mark.parametrize("size", ["small", "large"])
def test_a_target_s_own_settings_go_before_those_of_a_run_s_size(
    tmp_path: Path, size: Size
) -> None:
    """Others are the size's; their number of tasks follows from the engine's cores."""
    own = (("spark.sql.shuffle.partitions", "7"),)
    for spark, found in ((own, "7"), ((), "1" if size == "small" else "")):
        target = Target("dev", warehouse=str(tmp_path / f"w{len(spark)}"), spark=spark)
        session = api.session(Project("shop", tmp_path, None, {}, (), target), size=size)
        cores = session.sparkContext.defaultParallelism
        assert session.conf.get("spark.sql.shuffle.partitions") == (found or str(2 * cores))
        assert session.conf.get("spark.sql.adaptive.enabled") == str(size != "small").lower()


STARTS = """
    import fcntl, os, sys, time
    from pathlib import Path
    from infold.spark.jvm.spark_session import start

    folder = Path(sys.argv[1])
    lock = os.open(folder / "lock", os.O_RDWR | os.O_CREAT)
    fcntl.flock(lock, fcntl.LOCK_EX)
    spark = start(folder, folder / "catalog.db", log=folder / "spark.log", inherit=[lock])
    print(spark.sql("SELECT 1 AS one").toArrow().to_pydict())
    from pyspark import SparkContext
    print(SparkContext._gateway.proc.pid, flush=True)
    time.sleep(600)
"""


def test_another_process_with_a_broken_class_archive(tmp_path: Path) -> None:
    """
    With a broken class archive Spark starts all the same, and prints nothing. When the process is
    killed, a lock that it handed on is free only after its JVM has ended too, so nothing is
    committed later.
    """
    cache = tmp_path / "cache"
    cache.mkdir()
    (cache / "jars").symlink_to(cache_dir() / "jars")
    rubbish = python(
        "from infold.spark.jvm import class_archive, jars, java\n"
        "file = class_archive._file(java.find_java(), jars.jar_paths())\n"
        "file.parent.mkdir()\n"
        "file.write_bytes(b'rubbish' * 1000)",
        cache=cache,
    )
    assert rubbish.wait() == 0

    process = python(STARTS, str(tmp_path), cache=cache)
    assert process.stdout is not None
    assert process.stdout.readline() == "{'one': [1]}\n"
    jvm = int(process.stdout.readline())
    process.send_signal(signal.SIGKILL)
    process.wait()
    with (tmp_path / "lock").open() as held:
        fcntl.flock(held, fcntl.LOCK_EX)

    assert _ended(jvm)
    assert process.stderr is not None
    assert process.stderr.read() == ""


def _ended(pid: int) -> bool:
    """Whether the process is gone, or is on its very last steps with its files closed."""
    for _ in range(50):
        try:
            os.kill(pid, 0)
        except ProcessLookupError:
            return True
        status = Path(f"/proc/{pid}/status")
        if status.exists() and "\nState:\tZ" in status.read_text():
            return True
        time.sleep(0.1)
    return False


def test_the_tour_for_the_class_archive_completes(start: Start, tmp_path: Path) -> None:
    """The tour that the class archive is made from still works on this Spark and Iceberg."""
    from infold.spark.jvm.warm_up import tour

    session = start("lake")

    tour(session, tmp_path)

    assert session.sql("SHOW TABLES IN infold.tour").toArrow().num_rows == 2


def test_the_runs_for_the_class_archive_complete(spark: SparkSession, tmp_path: Path) -> None:
    """They build a project from nothing, with late files, and without one again."""
    from infold import api
    from infold.api.warm_up import build_starter

    build_starter(tmp_path)

    project = api.open_project(tmp_path / "starter")
    assert [run.state for run in api.history(project)] == ["done"] * 3
    assert not spark.sparkContext._jsc.sc().isStopped()


def test_an_extension_changes_no_fixed_setting(start: Start) -> None:
    """Delta Lake's extension turns a setting on with a session's first query: not in infold's."""
    first = start("before")
    first.sql("SELECT 1").collect()

    second = start("after")  # a session whose settings are checked again
    second.sql("SELECT 1").collect()

    for session in (first, second):
        assert session.conf.get(given_settings.CHANGED) == FIXED[given_settings.CHANGED]
