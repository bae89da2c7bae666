"""
A real cluster, for infold, for spark-submit and for a server of Spark Connect: right there too,
whatever is lost, and whoever dies.

Targets of the server have catalogs of each kind that it may reach.
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
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from threading import Timer
from typing import Any

import pytest
from pyspark.sql import DataFrame
from pyspark.sql.types import LongType
from tests.crash.scenario import Life, Scenario, kill
from tests.docs.pages import DOCS, code
from tests.servers.catalogs import opened
from tests.servers.connect_server import TOKEN, ConnectServer
from tests.servers.connect_server import running as connected
from tests.servers.moved import MovedScenario, Starter, retarget
from tests.servers.standalone import SHAPE, Cluster, environment, running

from infold import api
from infold.api.spark_sessions import session
from infold.core.interval import Granularity
from infold.core.plan import Step
from infold.core.report import RunFailed
from infold.core.storages import Storage
from infold.ledger.store import kept_sessions
from infold.messages.errors import InfoldError
from infold.spark import connect
from infold.spark.connect import RemoteSession, end
from infold.spark.jvm.gateway import has_started
from infold.spark.jvm.jars import jar_paths
from infold.spark.jvm.java import spark_home
from infold.spark.storages import adapters_of, storage_of
from infold.spark.tables.port import Layout, Stamp
from infold.system.failures import known_failure

pytestmark = [pytest.mark.servers, pytest.mark.spark]

PAGE = DOCS / "clusters.md"
USERS = 6
HERE = "  here: {warehouse: here, ledger: 'sqlite:///.infold/here.db'}\n"


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """A cluster; a process has one Spark, so that of other tests ends first."""
    api.close()
    with running(tmp_path_factory.mktemp("cluster")) as found:
        yield found
    api.close()


@pytest.fixture(scope="module")
def shop(cluster: Cluster, tmp_path_factory: pytest.TempPathFactory) -> Starter:
    """The starter's project with the page's targets, and one that computes here."""
    shop = Starter(tmp_path_factory.mktemp("clusters") / "shop")
    at = str(shop.root)
    on_cluster, submitted, _ = code(PAGE, "yaml")
    places = {"spark://spark.example.com:7077": cluster.url, "/srv/shop": at, "4g": "450m"}
    here = replaced(submitted, {"/srv/shop": at, "targets:\n": ""})
    shop.declare(replaced(on_cluster, places) + here + HERE, {})
    return shop


def replaced(text: str, parts: Mapping[str, str]) -> str:
    """A text of the page, for this machine."""
    for old, new in parts.items():
        assert old in text
        text = text.replace(old, new)
    return text


def on(place: Cluster | ConnectServer, folder: Path, **more: Any) -> None:
    """Have the project's targets compute there."""
    given = place.target()
    retarget(folder, {**given, **more, "spark": {**given["spark"], **more.get("spark", {})}})


def sessions_by_day(shop: Starter, target: str) -> list[int]:
    """What was built in a target."""
    rows = api.lake_of(api.open_project(shop.root, target)).rows("daily").to_pylist()
    return [row["sessions"] for row in sorted(rows, key=lambda row: row["day"])]


def test_what_a_cluster_cannot_do_is_said(cluster: Cluster, tmp_path: Path) -> None:
    """No executor so large, nobody at the address: the target's key is named, nothing is made."""
    large, nowhere = Starter(tmp_path / "large"), Starter(tmp_path / "nowhere")
    impatient = {**cluster.target()["engine"], "executor_wait": "1 second"}
    on(cluster, large.root, engine=impatient, spark={"spark.executor.memory": "30g"})
    on(cluster, nowhere.root, engine={"master": "spark://127.0.0.1:1", "shared_disk": True})

    for shop, slug in ((large, "no-executor"), (nowhere, "master-unreachable")):
        found = shop("run", code=1)
        assert f"{slug}: " in found
        assert "`engine` of target dev" in found
        assert not has_started(), "half a session would be taken for a whole one"
        assert not list((shop.root / "warehouse").glob("*/*"))


@dataclass
class Losing(Life):
    """A run that loses something in the middle of building some models."""

    losses: dict[str, Callable[[], None]] = field(default_factory=dict)

    def step(self, index: int, total: int | None, step: Step) -> None:
        """A moment later it happens."""
        super().step(index, total, step)
        if step.model in self.losses:
            Timer(0.3, self.losses.pop(step.model)).start()


def failures_of(scenario: Scenario, life: Life) -> set[str]:
    """A run; what its steps failed by."""
    try:
        scenario.go(life)
    except RunFailed as failed:
        return {one.error.slug for one in failed.result.failures}
    return set()


def test_executors_and_workers_are_lost_in_the_middle(cluster: Cluster, tmp_path: Path) -> None:
    """
    Their tasks are done again elsewhere, or the step by the next run; nothing is there twice.

    Executors have Delta's jars as they have Iceberg's, which the next test needs, and infold's
    package for functions in Python; tables equal the reference before and after.
    """
    tables = {name: SHAPE.tables[name] for name in ("clicks", "sessions")}
    shape = replace(SHAPE, storage=Storage.DELTA, tables=tables)
    where = tmp_path / "lost", "lost", tmp_path / "warehouse"
    scenario = MovedScenario(shape, *where, USERS, move=partial(on, cluster))
    scenario.deliver(1)
    scenario.deliver(2)
    scenario.take_in()
    assert len(cluster.executors()) == 2

    scenario.deliver(3)
    life = Losing(losses={"clicks": cluster.kill_executor, "sessions": cluster.lose_worker})
    assert failures_of(scenario, life) <= {"cluster-lost"}
    for loss in life.losses.values():  # those of steps that were not tried
        loss()
    scenario.take_in()
    assert len(cluster.executors()) == 1
    cluster.add_worker("another")


def test_the_page_on_clusters(cluster: Cluster, shop: Starter) -> None:
    """What the page says works, with the addresses of this cluster; the doctor shows it."""
    commands = code(PAGE, "sh")[0].splitlines()
    for line in commands:
        found = shop(line.removeprefix("infold "))
        if "doctor" in line:
            assert re.search(rf"on {cluster.url}, [12] executors? with 2g", found)
    assert "run" in commands[-1]
    assert sessions_by_day(shop, "cluster") == [3, 2]

    assert "other-engine" in shop("--target here run", code=2)


# -- submitted -------------------------------------------------------------------------------------

APPLICATION = Path(sys.executable).with_name("infold-submit.py")
COMMANDS = """
import sys
from click.testing import CliRunner
from infold.cli import cli
for words in sys.argv[1:]:
    done = CliRunner().invoke(cli, words.split())
    print(words, "ended with", done.exit_code)
    print(done.output)
"""
"""An application that is infold several times."""


def submit(*words: str) -> subprocess.CompletedProcess[str]:
    """An application's life; its output is that of infold, its errors are Spark's log."""
    return subprocess.run(
        [str(spark_home() / "bin" / "spark-submit"), *words],
        capture_output=True,
        text=True,
        check=False,
        env=environment(TZ="Asia/Tokyo"),
    )


def words_of_the_page(cluster: Cluster, shop: Starter) -> tuple[list[str], list[str]]:
    """What the page gives to spark-submit, and to infold."""
    (line,) = [text for text in code(PAGE, "sh") if "spark-submit" in text]
    here = str(shop.root)
    places = {"spark://spark.example.com:7077": cluster.url, "/srv/shop": here, "4g": "450m"}
    words = replaced(line.replace("\\\n", ""), places).split()[1:]
    words[words.index("--jars") + 1] = ",".join(map(str, jar_paths()))
    at = words.index("/srv/infold/bin/infold-submit.py")
    return words[:at], words[at + 1 :]


def test_as_the_page_says(cluster: Cluster, shop: Starter, tmp_path: Path) -> None:
    """The cluster computes; a target that computes elsewhere is refused there."""
    api.close()  # its executors would have all cores
    options, words = words_of_the_page(cluster, shop)
    commands = tmp_path / "commands.py"
    commands.write_text(COMMANDS)
    lines = [f"-C {shop.root} --target submitted doctor", " ".join(words)]
    ended = submit(*options, str(commands), *lines, f"-C {shop.root} --target here run")
    said = ended.stdout
    assert "Executor added" in ended.stderr, "the cluster's executors compute"
    codes = [int(line.split()[-1]) for line in said.splitlines() if " ended with " in line]
    assert codes == [0, 0, 2], said
    assert re.search(rf"on {cluster.url}, [12] executors? with 1g", said), said
    assert "submitted: spark-submit gave this process a Spark, and target here computes" in said
    assert sessions_by_day(shop, "submitted") == [3, 2]


def test_what_a_submit_lacks_is_said(shop: Starter) -> None:
    """No jar of Iceberg: refused by name, with infold's exit code; no submit at all likewise."""
    words = (str(APPLICATION), "-C", str(shop.root), "--target", "submitted", "verify")
    bare = submit("--master", "local[1]", *words)
    assert bare.returncode == 2, bare.stdout + bare.stderr[-3000:]
    assert "no-iceberg: " in bare.stdout

    project = api.open_project(shop.root, "submitted")
    with pytest.raises(InfoldError, match="target submitted computes with the Spark"):
        api.session(project)


# -- Spark Connect ---------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def server(cluster: Cluster, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ConnectServer]:
    """A server on the cluster, which Spark of this process has to leave."""
    api.close()
    folder = tmp_path_factory.mktemp("connect")
    with connected(folder, cluster.url) as found, pytest.MonkeyPatch.context() as patch:
        patch.setenv(TOKEN, found.token)
        yield found
        api.close()


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
        found = MovedScenario(SHAPE, *where, USERS, move=move)
        found.deliver(1)
        found.deliver(2)
        yield found


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
    """A run that goes on, while its server is another one from the start of a step."""

    scenario: MovedScenario | None = None
    server: ConnectServer | None = None
    work: Work | None = None
    sessions: int = 0
    """How many sessions the ledger has then."""

    def step(self, index: int, total: int | None, step: Step) -> None:
        """A step begins; the server ends in the middle of something else."""
        super().step(index, total, step)
        if self.server is not None and self.scenario is not None and self.work is None:
            self.sessions = len(kept_sessions(api.ledger_of(self.scenario.project)))
            spark = connect._new_session(self.server.secret_url)
            self.work = Work(self.server, spark, lambda slow: slow.collect())
            self.server.restart()


def test_a_client_dies_and_then_the_server(server: ConnectServer, scenario: MovedScenario) -> None:
    """
    The session of the dead run is in the ledger; the next run ends it.

    In that one the server ends, too, and is started again: what goes on says what was lost; the
    next run, at a server that knows nothing, is right. Executors call functions in Python with
    infold's package, and find the jars and the catalog.
    """
    ended = kill(scenario, "table sessions: after commit")
    assert ended.returncode == -signal.SIGKILL, ended.stderr
    [left] = kept_sessions(api.ledger_of(scenario.project))
    assert left["server"] == server.url

    life = Restarting(scenario=scenario, server=server)
    with pytest.raises(RunFailed) as failed:
        scenario.go(life)
    assert life.sessions == 1, "its own"
    assert {one.error.slug for one in failed.value.result.failures} == {"server-lost"}
    assert life.work is not None
    known = known_failure(life.work.error())
    assert known is not None
    assert known.slug == "server-lost"

    scenario.take_in()
    assert not kept_sessions(api.ledger_of(scenario.project))


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
    A table is made in the catalog, committed to, read and dropped by the server.

    PySpark asks its first session what types are; another project's may be gone by then.
    """
    first, second = Starter(tmp_path / "first"), Starter(tmp_path / "second")
    on(server, second.root)
    (tmp_path / "rest").mkdir()
    with opened("rest", request, tmp_path / "rest") as shelf:
        on(server, first.root, catalog=shelf.declared)
        assert "a table was made, written, read and dropped" in first("doctor")
        project = api.open_project(first.root)
        end(RemoteSession.of(project.target.engine, session(project)), server.secret_url)

    second("doctor")


def test_the_page_on_servers_and_every_command(server: ConnectServer, tmp_path: Path) -> None:
    """
    With the page's target: versions of keys and a function in Python; a change forward-only,
    quarantine by hand, audits, renamed columns, unit tests: each table is what its definition says.
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
