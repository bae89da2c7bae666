"""Sessions start silently, write tables that others read, and spare round trips to the JVM."""

from __future__ import annotations

import fcntl
import os
import signal
import subprocess
import sys
import textwrap
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from decimal import Decimal
from enum import IntEnum
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from py4j.clientserver import ClientServerConnection
from pyspark.sql import functions as F

from infold import api
from infold.core.project import Project
from infold.core.target import FIXED, Target
from infold.spark.jvm import round_trips, session_settings
from infold.spark.jvm.round_trips import KnownCalls, ListsAtOnce
from infold.spark.jvm.session_settings import Size, all_settings
from infold.system.kept_files import cache_dir

if TYPE_CHECKING:
    from pyspark.sql import Column, SparkSession


Start = Callable[[str], "SparkSession"]


@pytest.fixture
def start(tmp_path: Path) -> Start:
    """Start a session on a folder of its own, by name."""
    from infold.spark.jvm.spark_session import start as start_session

    return lambda name: start_session(tmp_path / name, tmp_path / f"{name}.db")


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


@pytest.mark.spark
def test_another_process_s_commit_is_seen_at_once(start: Start, tmp_path: Path) -> None:
    """Commits by pyiceberg are seen at once, not hidden by a cached table."""
    from pyiceberg.catalog.sql import SqlCatalog

    spark = start("shared")
    spark.sql("CREATE NAMESPACE shop")
    spark.sql("CREATE TABLE shop.t USING iceberg AS SELECT 1 AS id")
    spark.table("shop.t").toArrow()
    at = {"uri": f"sqlite:///{tmp_path}/shared.db", "warehouse": str(tmp_path / "shared")}
    table = SqlCatalog("infold", **at).load_table("shop.t")

    table.append(table.scan().to_arrow())

    assert spark.table("shop.t").toArrow().num_rows == 2


@pytest.mark.spark
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
@pytest.mark.spark
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
    from infold.spark.jvm.spark_session import JavaProcess, start

    folder = Path(sys.argv[1])
    lock = os.open(folder / "lock", os.O_RDWR | os.O_CREAT)
    fcntl.flock(lock, fcntl.LOCK_EX)
    process = JavaProcess(log=folder / "spark.log", inherit=[lock])
    spark = start(folder, folder / "catalog.db", process=process)
    print(spark.sql("SELECT 1 AS one").toArrow().to_pydict())
    from pyspark import SparkContext
    print(SparkContext._gateway.proc.pid, flush=True)
    time.sleep(600)
"""


@pytest.mark.spark
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


@pytest.mark.spark
def test_the_tour_for_the_class_archive_completes(start: Start, tmp_path: Path) -> None:
    """The tour that the class archive is made from still works on this Spark and Iceberg."""
    from infold.spark.jvm.warm_up import tour

    session = start("lake")

    tour(session, tmp_path)

    assert session.sql("SHOW TABLES IN infold.tour").toArrow().num_rows == 2


@pytest.mark.spark
def test_the_runs_for_the_class_archive_complete(spark: SparkSession, tmp_path: Path) -> None:
    """They build a project from nothing, with late files, and without one again."""
    from infold import api
    from infold.api.warm_up import build_starter

    build_starter(tmp_path)

    project = api.open_project(tmp_path / "starter")
    assert [run.state for run in api.history(project)] == ["done"] * 3
    assert not spark.sparkContext._jsc.sc().isStopped()


@pytest.mark.spark
def test_an_extension_changes_no_fixed_setting(start: Start) -> None:
    """Delta Lake's extension turns a setting on with a session's first query: not in infold's."""
    first = start("before")
    first.sql("SELECT 1").collect()

    second = start("after")  # a session whose settings are checked again
    second.sql("SELECT 1").collect()

    for session in (first, second):
        assert session.conf.get(session_settings.CHANGED) == FIXED[session_settings.CHANGED]


class _One(IntEnum):
    ONE = 1


@dataclass
class _Member:
    """A method of an object in the JVM, that writes down how it is called."""

    target_id: str = "o1"
    name: str = "cast"
    calls: list[tuple[Any, ...]] = field(default_factory=list)
    made: object = None

    def __call__(self, *arguments: Any) -> object:
        self.calls.append(arguments)
        return self.made or object()


class TestKnownCalls:
    """A column is made once."""

    def test_a_call_that_is_known_is_not_made_again(self) -> None:
        """The same method of the same object with the same arguments, and no other."""
        known, member = KnownCalls(), _Member()
        first = known.result(member, ("a", 1))

        assert known.result(member, ("a", 1)) is first
        assert known.result(_Member(calls=member.calls), ("a", 1)) is first
        for other in (_Member("o2"), _Member(name="try_cast")):
            assert known.result(other, ("a", 1)) is not first
        assert member.calls == [("a", 1)]

    @pytest.mark.parametrize(
        ("one", "other"),
        [
            (1, True),
            (0, False),
            (1, 1.0),
            (0.0, -0.0),
            (Decimal("1.0"), Decimal("1.00")),
            (Decimal(1), Decimal(1)),
            (1, _One.ONE),
            (["a"], "a"),
            (["a", ["b"]], ["a", "b"]),
            (None, 0),
        ],
        ids=repr,
    )
    def test_values_that_python_takes_for_equal_are_told_apart(
        self, one: object, other: object
    ) -> None:
        """The JVM gets each as it is: another type or scale is another literal. Decimals without a
        plain type are passed each time.
        """
        known, member = KnownCalls(), _Member()

        assert known.result(member, (one,)) is not known.result(member, (other,))
        assert len(member.calls) == 2

    @pytest.mark.spark
    def test_columns_that_are_built_alike_are_one(self, spark: SparkSession) -> None:
        """And give what they gave, in any frame."""

        def built() -> Column:
            odd = F.when(F.col("id") % 2 == 1, F.lit("odd")).otherwise(F.lit("even"))
            return F.concat(odd, F.lit(" "), F.col("id").cast("string")).alias("said")

        rows, others = spark.range(2), spark.sql("SELECT 7 AS id")
        first = [row.said for row in rows.select(built()).collect()]
        with _calls() as made:
            again = built()

        assert not made
        assert first == ["even 0", "odd 1"]
        assert [row.said for row in others.select(again, again).toDF("said", "b").collect()] == [
            "odd 7"
        ]

    def test_those_used_last_are_kept(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """So many, also where the steps of a run make columns at the same time."""
        monkeypatch.setattr(round_trips, "MOST_KEPT_COLUMNS", 2)
        known, member = KnownCalls(), _Member()
        for name in "xyxzxy":
            known.result(member, (name,))
        assert member.calls == [("x",), ("y",), ("z",), ("y",)]

        monkeypatch.setattr(round_trips, "MOST_KEPT_COLUMNS", 50)
        before = sys.getswitchinterval()
        sys.setswitchinterval(1e-6)
        try:
            with ThreadPoolExecutor(4) as threads:
                done = [
                    threads.submit(lambda at: known.result(member, (at % 97,)), at)
                    for at in range(8_000)
                ]
                assert all(one.result() is not None for one in done)
        finally:
            sys.setswitchinterval(before)

    @pytest.mark.spark
    def test_what_is_drawn_is_drawn_each_time(self, spark: SparkSession) -> None:
        """Two random columns have two seeds."""
        row = spark.range(1).select(F.rand().alias("a"), F.rand().alias("b")).collect()[0]

        assert row.a != row.b


class TestLists:
    """Lists reach the JVM with few round trips."""

    @pytest.mark.parametrize("value", [[], ["a", None], "text", b"bytes", {"a": 1}, {1}, 7])
    def test_what_list_of_does_not_take_is_left_to_py4j(self, value: object) -> None:
        """It refuses NULL; anything else than a list is no list."""
        assert not ListsAtOnce().can_convert(value)

    @pytest.mark.spark
    def test_a_list_has_its_elements_in_order(self, spark: SparkSession) -> None:
        """Whatever their number, and where each is a list too; one with NULL goes by Py4J."""
        of_java: Any = spark._jvm.java.util.ArrayList  # type: ignore[union-attr]
        for count in (1, 2, 9, 10, 11, 20, 21, 45):
            values = [f"v{at}" for at in range(count)]
            pairs = [[value, at] for at, value in enumerate(values)]
            assert list(of_java(values)) == values
            assert [list(one) for one in of_java(pairs)] == pairs
        assert list(of_java(["a", None, "b"])) == ["a", None, "b"]

    @pytest.mark.spark
    def test_twenty_columns_take_a_dozen_calls(self, spark: SparkSession) -> None:
        """Not one for each column, and none again for those that were made before."""
        rows = spark.range(3)
        columns = [F.col("id").alias(f"c{at}") for at in range(20)]
        rows.select(*columns)
        with _calls() as made:
            found = rows.select(*(F.col("id") for _ in range(20)))

        assert found.columns == ["id"] * 20
        assert len([call for call in made if call[:1] != "m"]) <= 12


@pytest.mark.spark
def test_all_settings_come_in_one_call(spark: SparkSession) -> None:
    """PySpark asks for each of them; a class is found by a call for each part of its name."""
    with _calls() as sent:
        found = all_settings(spark)

    assert found == dict(spark.conf.getAll)
    assert len(found) > 40
    assert len(sent) < 12


@contextmanager
def _calls() -> Iterator[list[str]]:
    """What is sent to the JVM meanwhile."""
    sent: list[str] = []
    before = ClientServerConnection.send_command

    def send(self: Any, command: str) -> str:
        if not command.startswith("m\nd\n"):  # Python lets go of an object, whenever it does
            sent.append(command)
        return str(before(self, command))

    ClientServerConnection.send_command = send
    try:
        yield sent
    finally:
        ClientServerConnection.send_command = before
