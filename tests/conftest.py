"""What all tests share: how many examples Hypothesis draws, and the count of random steps."""

from __future__ import annotations

import atexit
import gc
import os
import re
import sqlite3
import sys
from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import HealthCheck, settings
from tests.times import read_longest

if TYPE_CHECKING:
    from tests.servers.azure_store import AzureStore
    from tests.servers.google_store import GoogleStore
    from tests.servers.hdfs import Hdfs
    from tests.servers.hive_metastore import HiveMetastore
    from tests.servers.object_store import ObjectStore
    from tests.servers.postgresql import Postgresql
    from tests.servers.rest_catalog import RestServer

    from infold.spark.tables.catalog import SparkCatalog

TESTS = Path(__file__).parent
SLOW = re.compile(r"^pytestmark = pytest\.mark\.(spark|deep|servers)$", re.MULTILINE)

gc.disable()  # until all tests are collected: nothing of their modules is garbage

# Tests share the machine with everything else, so no deadline: a slow moment is no failure.
# Quick is for the one who waits for an answer and, as make soak, draws anew each time. Before a
# change lands, .ci/run is thorough, and draws the same for the same code: what fails there is due
# to the change.
settings.register_profile("quick", max_examples=15, deadline=None)
settings.register_profile("thorough", max_examples=15, deadline=None, derandomize=True)
settings.register_profile(
    "soak", max_examples=2_000, deadline=None, suppress_health_check=list(HealthCheck)
)
settings.load_profile(os.environ.get("INFOLD_HYPOTHESIS", "quick"))


def pytest_addoption(parser: Any) -> None:
    """``--rewrite``: write the expected screens again; a person then reads the diff."""
    parser.addoption("--rewrite", action="store_true", help="write the expected screens again")


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """A file with slow tests only is not imported where ``-m`` leaves all of them out."""
    if collection_path.suffix != ".py" or "not " not in config.option.markexpr:
        return None
    slow = SLOW.search(collection_path.read_text(encoding="utf-8"))
    return True if slow and f"not {slow[1]}" in config.option.markexpr.split(" and ") else None


LAST = ("system", "servers", "docs/test_python_api.py")
"""Folders and files with tests that end the JVM of their process, which all before them share."""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """What needs a JVM says so, and is tried by the longest file first, within what shares one."""
    unmarked = [
        item.nodeid
        for item in items
        if {"spark", "warehouse"} <= {*getattr(item, "fixturenames", ())}
        and not item.get_closest_marker("spark")
    ]
    if unmarked:
        raise pytest.UsageError(f"tests with Spark that are not marked so: {unmarked}")
    if not any(
        item.get_closest_marker("spark") or item.get_closest_marker("servers") for item in items
    ):
        return
    seconds = read_longest()

    def order(item: pytest.Item) -> tuple[int, float, str]:
        file = item.path.relative_to(TESTS).as_posix()
        part = next((at for at, one in enumerate(LAST, 1) if file.startswith(one)), 0)
        return part, -seconds.get(file, 0.0), file

    items.sort(key=order)


def pytest_collection_finish() -> None:
    """What thousands of collected tests are made of stays: no use in looking for garbage there."""
    gc.freeze()
    gc.set_threshold(20_000, 20, 20)
    gc.enable()
    atexit.register(gc.unfreeze)  # what libraries in C++ own is let go of before they are


def pytest_unconfigure() -> None:
    """What tests with a JVM leave is let go of in order; after others pytest would find nothing."""
    if JVMS["started"]:
        gc.unfreeze()


@pytest.fixture(autouse=True, scope="session")
def _no_power_cut() -> Iterator[None]:
    """SQLite does not wait for the disk: processes die in tests, but the power stays on."""
    real = sqlite3.connect

    def connect(*words: Any, **options: Any) -> sqlite3.Connection:
        found: sqlite3.Connection = real(*words, **options)
        with suppress(sqlite3.DatabaseError):  # it is none: for the program to find out
            found.execute("PRAGMA synchronous = OFF")
        return found

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sqlite3, "connect", connect)
        yield


@pytest.fixture(scope="session")
def postgresql() -> Iterator[Postgresql]:
    """A PostgreSQL server, for tests marked ``servers``."""
    from tests.servers.postgresql import running

    with running() as found:
        yield found


@pytest.fixture(scope="session")
def rest_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RestServer]:
    """A server of Iceberg's REST protocol, for tests marked ``servers``."""
    from tests.servers.rest_catalog import running

    with running(tmp_path_factory.mktemp("rest")) as found:
        yield found


@pytest.fixture(scope="session")
def hive_metastore(tmp_path_factory: pytest.TempPathFactory) -> Iterator[HiveMetastore]:
    """A Hive metastore, for tests marked ``servers``."""
    from tests.servers.hive_metastore import running

    with running(tmp_path_factory.mktemp("hive")) as found:
        yield found


@pytest.fixture(scope="session")
def object_store(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ObjectStore]:
    """A server of S3's protocol, for tests marked ``servers``."""
    from tests.servers.object_store import ENVIRONMENT, running

    with pytest.MonkeyPatch.context() as patch:
        for name in [name for name in os.environ if name.startswith("AWS_")]:
            patch.delenv(name)
        for name, value in ENVIRONMENT.items():
            patch.setenv(name, value)
        with running(tmp_path_factory.mktemp("store")) as found:
            yield found


@pytest.fixture(scope="session")
def google_store(tmp_path_factory: pytest.TempPathFactory) -> Iterator[GoogleStore]:
    """A server of Google Cloud Storage, for tests marked ``servers``."""
    from tests.servers.google_store import key_of, running

    folder = tmp_path_factory.mktemp("google")
    with pytest.MonkeyPatch.context() as patch, running(folder) as found:
        patch.setenv("GOOGLE_KEY", key_of(found.url))
        patch.setenv("GOOGLE_APPLICATION_CREDENTIALS", str(folder / "none.json"))
        yield found


@pytest.fixture(scope="session")
def azure_store() -> Iterator[AzureStore]:
    """A stand-in for Azure Data Lake, for tests marked ``servers``."""
    from tests.servers.azure_store import KEY, running

    with pytest.MonkeyPatch.context() as patch, running() as found:
        for name in [name for name in os.environ if name.startswith("AZURE_")]:
            patch.delenv(name)
        patch.setenv("AZURE_KEY", KEY)
        yield found


@pytest.fixture(scope="session")
def hdfs(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Hdfs]:
    """An HDFS, for tests marked ``servers``."""
    from tests.servers.hdfs import running

    with pytest.MonkeyPatch.context() as patch:
        patch.delenv("HADOOP_USER_NAME", raising=False)
        with running(tmp_path_factory.mktemp("hdfs")) as found:
            yield found


@pytest.fixture(autouse=True, scope="session")
def _no_power_cut_in_java(request: pytest.FixtureRequest) -> Iterator[None]:
    """Nor does SQLite in the JVM of this process: a commit is twenty times as fast."""
    if not any(item.get_closest_marker("spark") for item in request.session.items):
        yield
        return
    from infold.spark.tables.iceberg import catalogs

    real = catalogs.catalog_settings

    def catalog_settings(*place: Any) -> dict[str, str]:
        waits = "?busy_timeout=30000"
        return {
            key: text.replace(waits, f"{waits}&synchronous=OFF")
            for key, text in real(*place).items()
        }

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(catalogs, "catalog_settings", catalog_settings)
        yield


JVMS = Counter[str]()
"""How many JVMs were started in the processes of this run, not by commands that they started."""


@pytest.fixture(autouse=True, scope="session")
def _jvms_are_counted(request: pytest.FixtureRequest) -> Iterator[None]:
    """Each start takes seconds: a process shares one JVM."""
    if not any(item.get_closest_marker("spark") for item in request.session.items):
        yield
        return
    from infold.spark.jvm import gateway, spark_session

    real = gateway.launch

    def launch(*words: Any, **options: Any) -> Any:
        JVMS["started"] += 1
        return real(*words, **options)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(spark_session, "launch", launch)
        yield


@pytest.fixture(autouse=True, scope="session")
def _every_jar(request: pytest.FixtureRequest) -> Iterator[None]:
    """
    Spark of this process has what every storage and format needs: the JVM is one for all. With
    servers that is also every connector and driver, and a user of HDFS.
    """
    items = [item for item in request.session.items if item.get_closest_marker("spark")]
    if not items:
        yield
        return
    from infold.core.storages import Storage, extensions
    from infold.spark.jvm import spark_session
    from infold.spark.reading.avro_files import AVRO
    from infold.spark.tables.delta.adapters import JARS
    from infold.spark.tables.delta.session_settings import DELTA_CATALOG

    first, jars = spark_session._first_session, [*JARS, AVRO]
    more = {**DELTA_CATALOG, "spark.databricks.delta.snapshotPartitions": "1"}
    if any(item.get_closest_marker("servers") for item in items):
        from tests.servers.hdfs import USER

        from infold.lake.stores.settings import HDFS_USER_SETTING
        from infold.spark.tables.iceberg.catalogs import POSTGRESQL
        from infold.spark.tables.store_access import JARS as CONNECTORS

        more[HDFS_USER_SETTING] = USER
        jars += [POSTGRESQL, *(jar for each in CONNECTORS.values() for jar in each)]

    def first_session(
        settings: dict[str, str], size: Any, process: Any, catalog: SparkCatalog, *words: Any
    ) -> Any:
        every = {**settings, **more, "spark.sql.extensions": extensions(*Storage)}
        with_all = replace(catalog, jars=tuple(dict.fromkeys((*catalog.jars, *jars))))
        return first(every, size, process, with_all, *words)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(spark_session, "_first_session", first_session)
        yield


def pytest_sessionfinish(session: Any) -> None:
    """One of several processes hands over its counts."""
    output = getattr(session.config, "workeroutput", None)
    if output is not None:
        output["jvms"] = JVMS["started"]
    play = sys.modules.get("tests.arrivals.play")
    if output is not None and play is not None:
        output["tallies"] = [asdict(play.TALLY), asdict(play.DRY)]


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node: Any) -> None:
    """Add up the counts of several processes."""
    from tests.arrivals import play

    JVMS["started"] += getattr(node, "workeroutput", {}).get("jvms", 0)

    found = getattr(node, "workeroutput", {}).get("tallies", ())
    for tally, counts in zip((play.TALLY, play.DRY), found, strict=False):
        tally.add(counts)


def pytest_terminal_summary(terminalreporter: Any) -> None:
    """Say how many JVMs were started, and random steps made, if any were."""
    if JVMS["started"]:
        terminalreporter.write_line(f"JVMs started: {JVMS['started']}")
    play = sys.modules.get("tests.arrivals.play")
    if play is not None and play.TALLY.runs:
        terminalreporter.write_line(f"arrivals: {play.TALLY}")
    if play is not None and play.DRY.runs:
        terminalreporter.write_line(f"arrivals without Spark: {play.DRY}")
