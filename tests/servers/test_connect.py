"""
Projects on a real server of Spark Connect: right there too, whoever of the two sides dies.

Its executors are those of a cluster, and targets have catalogs of each kind that it may reach.
"""

from __future__ import annotations

import json
import re
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import DataFrame
from pyspark.sql.types import LongType
from tests.crash.scenario import Life, kill
from tests.docs.pages import DOCS, code
from tests.servers import standalone
from tests.servers.catalogs import opened
from tests.servers.connect_server import TOKEN, ConnectServer, running
from tests.servers.moved import MovedScenario, Starter, retarget

from infold import api
from infold.api.spark_sessions import session
from infold.core.interval import Granularity
from infold.core.plan import Step
from infold.core.record import Receipt
from infold.core.report import RunFailed
from infold.core.storages import Storage
from infold.ledger.store import kept_sessions
from infold.messages.errors import InfoldError
from infold.spark.connect import session as connect
from infold.spark.connect.clients import RemoteSession, end
from infold.spark.storages import adapters_of, storage_of
from infold.spark.tables.port import Layout, Stamp
from infold.system.failures import known_failure

pytestmark = [pytest.mark.servers, pytest.mark.spark]

PAGE = DOCS / "clusters.md"
USERS = 6


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ConnectServer]:
    """A server on a cluster; a process has one Spark, so that of other tests ends first."""
    api.close()
    with (
        standalone.running(tmp_path_factory.mktemp("cluster")) as cluster,
        running(tmp_path_factory.mktemp("connect"), cluster.url) as found,
        pytest.MonkeyPatch.context() as patch,
    ):
        patch.setenv(TOKEN, found.token)
        yield found
        api.close()


def on(server: ConnectServer, folder: Path, **more: Any) -> None:
    """Have the project's targets compute on the server."""
    retarget(folder, {**server.target(), **more})


@pytest.fixture(scope="module")
def scenario(
    server: ConnectServer, request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[MovedScenario]:
    """A project with functions in Python and a catalog in PostgreSQL; its first files are there."""
    folder = tmp_path_factory.mktemp("lost")
    where = folder / "lost", "lost", folder / "warehouse"
    with opened("jdbc", request, tmp_path_factory.mktemp("jdbc")) as shelf:
        catalog = {**shelf.declared, "namespace": "lost"}
        move = partial(on, server, catalog=catalog)
        found = MovedScenario(standalone.SHAPE, *where, USERS, move=move)
        found.deliver(1)
        found.deliver(2)
        yield found


def test_a_client_dies_and_what_it_asked_for_goes_no_further(
    server: ConnectServer, scenario: MovedScenario
) -> None:
    """
    The session of the dead run is in the ledger; the next run ends it, and is right.

    Executors call functions in Python with infold's package, and find the jars and the catalog.
    """
    ended = kill(scenario, "table sessions: after commit")
    assert ended.returncode == -signal.SIGKILL, ended.stderr
    assert {one["server"] for one in kept_sessions(api.ledger_of(scenario.project))} == {server.url}
    scenario.take_in()
    assert not kept_sessions(api.ledger_of(scenario.project))


class Work:
    """What a server does for half a minute, in a session of another client."""

    def __init__(
        self, server: ConnectServer, spark: Any, action: Callable[[DataFrame], object]
    ) -> None:
        self.failed: list[Exception] = []
        slow = spark.range(2).selectExpr("reflect('java.lang.Thread', 'sleep', 30000L) AS s", "id")

        def work() -> None:
            try:
                action(slow)
            except Exception as error:  # noqa: BLE001 (the test says which)
                self.failed.append(error)

        self._thread = threading.Thread(target=work)
        before = len(server.log.read_bytes())
        self._thread.start()
        until = time.monotonic() + 60
        while b"Starting task" not in server.log.read_bytes()[before:]:
            assert time.monotonic() < until, "it does not begin"
            time.sleep(0.1)

    def error(self) -> Exception:
        """What it has failed by."""
        self._thread.join(90)
        [found] = self.failed
        return found


@dataclass
class Restarting(Life):
    """A run that goes on, while its server is another one after the first step."""

    server: ConnectServer | None = None
    work: Work | None = None

    def done(self, step: Step, receipt: Receipt) -> None:
        """A step has ended; the server ends in the middle of something else."""
        super().done(step, receipt)
        if self.server is not None and self.work is None:
            spark = connect._new_session(self.server.secret_url)
            self.work = Work(self.server, spark, lambda slow: slow.collect())
            self.server.restart()


def test_a_server_dies_and_is_started_again(server: ConnectServer, scenario: MovedScenario) -> None:
    """What goes on says what was lost; the next run, at a server that knows nothing, is right."""
    scenario.deliver(3)
    life = Restarting(server=server)
    with pytest.raises(RunFailed) as failed:
        scenario.go(life)
    assert {one.error.slug for one in failed.value.result.failures} == {"server-lost"}
    assert life.work is not None
    known = known_failure(life.work.error())
    assert known is not None
    assert known.slug == "server-lost"
    scenario.take_in()


def test_what_a_dead_client_left_is_interrupted_and_waited_for(
    server: ConnectServer, scenario: MovedScenario
) -> None:
    """A write that goes on is ended before anything is looked at, and its session takes no more."""
    spark = session(scenario.project)
    table = "infold.`lost`.late"
    work = Work(server, spark, lambda slow: slow.writeTo(table).using("iceberg").create())
    left = RemoteSession.of(scenario.project.target.engine, spark)
    began = time.monotonic()
    end(left, server.secret_url)
    assert time.monotonic() - began < 20, "it was not interrupted"
    work.error()
    with pytest.raises(Exception, match=r"SESSION_CLOSED|SESSION_NOT_FOUND"):
        spark.range(1).count()
    assert not session(scenario.project).catalog.tableExists(table)

    end(replace(left, session=_NOBODY), server.secret_url)  # is not there any more
    with pytest.raises(OSError, match="refused"):
        end(replace(left, server="sc://127.0.0.1:1"), "sc://127.0.0.1:1")


_NOBODY = "6ba7b810-9dad-41d1-80b4-00c04fd430c8"


def test_a_server_that_is_gone_is_not_waited_for_at_the_end() -> None:
    """Neither by infold nor by PySpark, which cleans up once more when the process ends."""
    gone: Any = connect._new_session("sc://127.0.0.1:1")
    began = time.monotonic()
    connect._stop(gone)
    gone.client._cleanup_ml_cache()
    assert time.monotonic() - began < 10


def test_tables_are_kept_in_shape(scenario: MovedScenario) -> None:
    """Rows are put into few files, snapshots go, columns get names and types, each in a commit."""
    project, lake = scenario.project, api.lake_of(scenario.project)
    spark = session(project)
    tables = storage_of(project).tables(spark, project, lake)
    rows = spark.range(3).selectExpr(
        "id", "timestamp_seconds(id) AS at", "named_struct('n', cast(id AS int)) AS s"
    )
    layout = Layout("at", Granularity.MONTH)
    tables.create("_shape", rows, layout, Stamp("r", "1", 1))
    first = tables.append("_shape", rows, Stamp("r", "2", 2))
    [before] = tables.partition_files("_shape")
    tables.rewrite("_shape", before.partition)
    [after] = tables.partition_files("_shape")
    assert (before.data > after.data, after.data) == (True, 1)
    read = tables.read("_shape")
    step = tables.evolve("_shape", [("at", "time")], [(("s", "n"), LongType())], Stamp("r", "3", 3))
    assert step != first
    assert read.count() == 6, "a frame stays at the snapshot that it is of"
    assert tables.layout("_shape") == replace(layout, column="time")
    found = tables.read("_shape")
    assert dict(found.dtypes) == {"id": "bigint", "time": "timestamp", "s": "struct<n:bigint>"}
    assert found.count() == 6
    tables.expire("_shape", before=time.time(), keep=1)
    head = lake.metadata("_shape")
    assert head is not None
    assert head.steps["3"] == step
    lake.drop("_shape")


def test_what_a_server_lacks_is_said(
    server: ConnectServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A wrong token, other settings, nobody there, no jar: named, and nothing is made."""
    shop, root = Starter(tmp_path / "shop"), tmp_path / "shop"
    plain = (root / "infold.yml").read_text()
    gone = {"engine": {"remote": "sc://localhost:1", "shared_disk": True}}
    large: dict[str, Any] = {"spark": {"spark.executor.memory": "30g"}}
    said = []
    for token, more in (("wrong", {}), (server.token, large), (server.token, gone)):
        monkeypatch.setenv(TOKEN, token)
        (root / "infold.yml").write_text(plain)
        on(server, root, **more)
        said.append(shop("run", code=1))
        assert server.token not in said[-1]
    slugs = ("server-refuses", "server-settings", "server-unreachable")
    for slug, output in zip(slugs, said, strict=True):
        assert f"{slug}: " in output
    assert "spark.executor.memory is 450m, not 30g" in said[1]
    assert not list((root / "warehouse").glob("shop/*"))

    spark = connect._new_session(server.secret_url)
    spark.conf.set("spark.sql.catalog.infold", "org.nobody.has.this.Jar")
    engine = api.open_project(root).target.engine
    with pytest.raises(InfoldError, match="no-iceberg"):
        connect._refuse_without_storage(spark, adapters_of(Storage.ICEBERG), engine)
    connect._stop(spark)


def test_a_catalog_by_rest_and_a_session_that_is_lost(
    server: ConnectServer, request: pytest.FixtureRequest, tmp_path: Path
) -> None:
    """
    A promote gives its names to an environment's tables, and runs go on with them.

    PySpark asks its first session what types are; another project's may be gone by then.
    """
    first, second = Starter(tmp_path / "first"), Starter(tmp_path / "second")
    on(server, second.root)
    (tmp_path / "rest").mkdir()
    with opened("rest", request, tmp_path / "rest") as shelf:
        on(server, first.root, catalog=shelf.declared)
        first("run")
        project = api.open_project(first.root)
        daily = api.lake_of(project).rows("daily").to_pylist()
        assert sorted(row["sessions"] for row in daily) == [2, 3]
        first.add_a_column()
        first("run --env most")
        assert "Promoted 1 table of most" in first("promote most --yes")
        assert "Nothing to do" in first("run")
        daily = api.lake_of(project).rows("daily").to_pylist()
        assert {str(row["most"]) for row in daily} == {"59.90", "None"}
        end(RemoteSession.of(project.target.engine, session(project)), server.secret_url)

    second("doctor")


def test_the_page_on_servers_and_every_command(server: ConnectServer, tmp_path: Path) -> None:
    """
    With the page's target: versions of keys and a function in Python; a change forward-only,
    quarantine by hand, audits, renamed columns, a lost ledger, unit tests: each table is what its
    definition says.
    """
    root = tmp_path / "shop"
    (targets,) = [text for text in code(PAGE, "yaml") if "remote:" in text]
    targets = re.sub(r"remote: .*", f"remote: {server.remote}", targets)
    does = Starter(root, re.findall(r"^  (\w+):$", targets, re.MULTILINE)[0])
    does.declare(targets, {"/srv/shop": str(root)})
    models = root / "models"
    (models / "pages.sql").write_text(_VERSIONS)
    (models / "counted.py").write_text(_COUNTED)
    outside = models / "outside.py"
    outside.write_text(_COUNTED.replace("counted", "outside").replace(*_OUTSIDE))
    daily, sessions = models / "daily.sql", models / "sessions.sql"
    sessions.write_text(sessions.read_text().replace("---\n", _AUDITS, 1))
    assert f"on the server {server.url} ({server.master})" in does("doctor")
    assert "reads-unseen: outside" in does("run", code=2)
    outside.unlink()

    daily.write_text(daily.read_text().replace("count(*) AS", "count(*) + 100 AS"))
    does("quarantine add sessions --user ann --reason bot")
    shutil.copy(root / "later" / "2024-03-10.json", root / "landing" / "clicks")
    does("run --forward-only daily")
    assert "bot" in does("show quarantined_sessions")
    counts = [int(one["sessions"]) for one in _rows(does("show daily --json"))]
    assert (min(counts) < 100, max(counts) > 100) == (True, True)
    does("quarantine auto sessions --user ann")

    renamed = daily.read_text().replace("sum(revenue) AS revenue", _RENAMED[0])
    daily.write_text(renamed.replace("---\n", _RENAMED[1], 1))
    late = root / "landing" / "clicks" / "late.json"
    late.write_text(_BAD)
    assert "at least one" in does("run", code=1)
    late.unlink()
    (root / ".infold" / f"{does.target}.db").unlink()
    does("repair --yes")
    does("run")
    shown = does("show daily")
    assert ("most" in shown, "income" in shown) == (True, True)
    does("audit")
    does("verify")
    api.close()
    unit_tests = ["-C", str(root), "--target", does.target, "test", "A click far*", "--no-shuffle"]
    program = [sys.executable, "-m", "infold", *unit_tests]
    done = subprocess.run(program, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def _rows(text: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in text.splitlines() if line.startswith("{")]


_VERSIONS = """---
materialization: scd_type_2
unique_key: [user_id]
scd_type_2: {updated_at: event_ts, columns: [url]}
---
SELECT user_id, event_ts, url FROM clicks"""
_COUNTED = """from infold import model


@model(materialization="table", columns={"user_id": "string", "n": "bigint"})
def counted(sessions):
    return sessions.groupBy("user_id").agg({"*": "count"}).toDF("user_id", "n")
"""
_OUTSIDE = (
    "sessions.groupBy",
    "getattr(sessions, 'spark' + 'Session').createDataFrame([('a',)], 'user_id string').groupBy",
)
"""What a function does beside its inputs, written so that only its plan shows it."""
_RENAMED = (
    "max(revenue) AS most,\n  sum(revenue) AS income",
    "---\nrenamed_from: {income: revenue}\n",
)
_AUDITS = """---
audits:
  - expression: events < 6
    name: at least one
  - accepted_range: {column: payments, max: 0}
    severity: warn
  - unique: [user_id, session_start]
"""
_BAD = "".join(
    f'{{"event_id": "l{at}", "user_id": "eve", "event_ts": "2024-03-11T09:0{at}:00Z",'
    ' "url": "/", "amount": null}\n'
    for at in range(6)
)
