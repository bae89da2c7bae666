"""Projects on a real server of Spark Connect: right there too, whoever of the two sides dies."""

from __future__ import annotations

import json
import re
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result
from pyspark.sql.types import LongType
from tests.arrivals.shapes import SHAPES
from tests.crash.scenario import SHAPE, TABLES, Life, Scenario, kill
from tests.docs.pages import DOCS
from tests.docs.test_how_to import code
from tests.servers.connect_server import ConnectServer, as_it_should_be, running
from tests.servers.moved import Moved, MovedScenario, retarget

from infold import api
from infold.api.spark_sessions import session
from infold.cli import cli
from infold.core.interval import Granularity
from infold.core.plan import Step
from infold.core.record import Receipt
from infold.core.report import RunFailed
from infold.ledger.remote_sessions import keep_sessions, kept_sessions
from infold.messages.errors import InfoldError
from infold.spark.connect import session as connect
from infold.spark.connect.clients import RemoteSession, end
from infold.spark.storages import storage_of
from infold.spark.tables.port import Layout, Stamp

pytestmark = [pytest.mark.servers, pytest.mark.spark]

PAGE = DOCS / "clusters.md"
USERS = 10
DEATHS = 3
"""At how many write points a client dies."""


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ConnectServer]:
    """A server; a process has one Spark, so that of other tests ends first."""
    api.close()
    with running(tmp_path_factory.mktemp("connect")) as found:
        yield found
        api.close()


def on(server: ConnectServer, folder: Path, **more: Any) -> None:
    """Have the project's targets compute on the server."""
    retarget(folder, {**server.target(), **more})


@pytest.mark.parametrize("shape", ["fold", "rows"])
def test_tables_equal_the_reference(server: ConnectServer, tmp_path: Path, shape: str) -> None:
    """Events, sessions, cells, rows by key, functions in Python: late, twice, replaced, deleted."""
    move = partial(on, server)
    play = Moved(SHAPES[shape], tmp_path / shape, shape, tmp_path / "warehouse", USERS, move=move)
    play.play_all("arrive", "arrive", "burst", "again", "replace", "delete")


@pytest.fixture(scope="module")
def scenario(server: ConnectServer, tmp_path_factory: pytest.TempPathFactory) -> MovedScenario:
    """A project that was run once and is right."""
    folder = tmp_path_factory.mktemp("lost")
    where = folder / "lost", "lost", folder / "warehouse"
    found = MovedScenario(SHAPE, *where, 6, move=partial(on, server))
    found.deliver(1)
    found.deliver(2)
    found.settle()
    return found


def failures_of(scenario: Scenario, life: Life | None = None) -> set[str]:
    """A run; what its steps failed by."""
    try:
        scenario.go(life)
    except RunFailed as failed:
        return {one.error.slug for one in failed.result.failures}
    return set()


def test_a_client_dies_and_what_it_asked_for_goes_no_further(
    server: ConnectServer, scenario: MovedScenario
) -> None:
    """The session of the dead run is in the ledger; the next run ends it, and is right."""
    scenario.deliver(5)
    ended = kill(scenario, "table sessions: after commit")
    assert ended.returncode == -signal.SIGKILL, ended.stderr
    assert {one["server"] for one in kept_sessions(api.ledger(scenario.project))} == {server.url}
    scenario.settle()
    scenario.check(set(TABLES), None)
    assert not kept_sessions(api.ledger(scenario.project))


def test_what_a_dead_client_left_is_interrupted_and_waited_for(
    server: ConnectServer, scenario: MovedScenario
) -> None:
    """A write that goes on is ended before anything is looked at, and its session takes no more."""
    spark = session(scenario.project)
    engine = scenario.project.target.engine
    left = RemoteSession.of(engine, spark)
    slow = spark.range(2).selectExpr("reflect('java.lang.Thread', 'sleep', 30000L) AS slept", "id")
    failed: list[BaseException] = []

    def write() -> None:
        try:
            slow.writeTo("infold.`lost`.late").using("iceberg").create()
        except Exception as error:  # noqa: BLE001 (the test says which)
            failed.append(error)

    writing = threading.Thread(target=write)
    writing.start()
    time.sleep(3)
    began = time.monotonic()
    end(left, server.url)
    assert time.monotonic() - began < 20, "it was not interrupted"
    writing.join(60)
    assert failed, "the write was to be interrupted"
    with pytest.raises(Exception, match=r"SESSION_CLOSED|SESSION_NOT_FOUND"):
        spark.range(1).count()
    assert not session(scenario.project).catalog.tableExists("infold.`lost`.late")


def test_a_server_dies_in_the_middle_and_is_started_again(
    server: ConnectServer, scenario: MovedScenario
) -> None:
    """The run says what was lost; the next one, at a server that knows nothing, is right."""
    scenario.deliver(7)
    meanwhile = threading.Timer(4.0, server.restart)
    meanwhile.start()
    slugs = failures_of(scenario)
    meanwhile.join()
    assert slugs <= {"server-lost"}
    scenario.settle()


@dataclass
class Restarting(Life):
    """A run that goes on, while its server is another one after the first step."""

    server: ConnectServer | None = None

    def done(self, step: Step, receipt: Receipt) -> None:
        """A step has ended."""
        super().done(step, receipt)
        if self.server is not None:
            self.server.restart()
            self.server = None


def test_a_server_is_started_again_between_two_steps(
    server: ConnectServer, scenario: MovedScenario
) -> None:
    """What goes on says what was lost; the next run has the rest to do, and is right."""
    scenario.deliver(8)
    assert failures_of(scenario, Restarting(server=server)) == {"server-lost"}
    scenario.settle()


def test_clients_die_at_write_points(server: ConnectServer, tmp_path: Path) -> None:
    """By exception at some points of a run."""
    where = tmp_path / "dies", "dies", tmp_path / "warehouse"
    scenario = MovedScenario(SHAPE, *where, 6, move=partial(on, server))
    points = len(scenario.first_points())
    for seed in range(DEATHS):
        scenario.die(3 + seed, 1 + seed * points // DEATHS)


def test_a_server_that_is_gone_is_not_waited_for_at_the_end() -> None:
    """Neither by infold nor by PySpark, which cleans up once more when the process ends."""
    gone: Any = connect._new_session("sc://127.0.0.1:1")
    began = time.monotonic()
    connect._stop(gone)
    gone.client._cleanup_ml_cache()
    assert time.monotonic() - began < 10


def test_a_lost_session_of_another_project_is_not_asked(
    server: ConnectServer, tmp_path: Path
) -> None:
    """PySpark asks its first session what types are; that of a project may be gone by then."""
    first, second = (starter(tmp_path / name) for name in ("first", "second"))
    on(server, first)
    on(server, second)
    project = api.open_project(first)
    end(RemoteSession.of(project.target.engine, session(project)), server.url)

    found = infold(second, "doctor")

    assert found.exit_code == 0, found.output


def infold(root: Path, *words: str) -> Result:
    """A command of the project, in this process."""
    return CliRunner().invoke(cli, ["-C", str(root), *words])


def starter(root: Path) -> Path:
    """The starter's project."""
    assert CliRunner().invoke(cli, ["init", str(root)]).exit_code == 0
    return root


def test_the_page_on_servers(server: ConnectServer, tmp_path: Path) -> None:
    """What the page says works, with the address of this server; the doctor shows it."""
    root = starter(tmp_path / "shop")
    (targets,) = [text for text in code(PAGE, "yaml") if "remote:" in text]
    targets = re.sub(r"remote: .*", f"remote: {server.url}", targets)
    targets = targets.replace("/srv/shop", str(tmp_path))
    file = root / "infold.yml"
    file.write_text(file.read_text().partition("targets:")[0] + targets)
    name = re.findall(r"^  (\w+):$", targets, re.MULTILINE)[0]
    for words in (["doctor"], ["run"], ["verify"]):
        found = infold(root, "--target", name, *words)
        assert found.exit_code == 0, found.output
        if words == ["doctor"]:
            assert f"on the server {server.url} (local[2])" in found.output
    shutil.copy(root / "later" / "2024-03-10.json", root / "landing" / "clicks")
    assert infold(root, "--target", name, "run").exit_code == 0
    assert infold(root, "--target", name, "verify").exit_code == 0


def test_changes_environments_and_audits(server: ConnectServer, tmp_path: Path) -> None:
    """A table has other columns, in an environment first; an audit keeps bad rows out."""
    root = starter(tmp_path / "shop")
    on(server, root)
    assert infold(root, "run").exit_code == 0
    daily, sessions = root / "models" / "daily.sql", root / "models" / "sessions.sql"
    renamed = daily.read_text().replace("AS revenue", "AS income")
    daily.write_text(renamed.replace("---\n", "---\nrenamed_from: {income: revenue}\n", 1))
    sessions.write_text(sessions.read_text().replace("---\n", _AUDITS, 1))
    for words in (
        ("run", "--env", "next"),
        ("verify", "--env", "next"),
        ("run",),
        ("audit",),
        ("verify",),
    ):
        found = infold(root, *words)
        assert found.exit_code == 0, f"{words}: {found.output}"
    assert "income" in infold(root, "show", "daily").output

    late = root / "landing" / "clicks" / "late.json"
    late.write_text(_BAD)
    failed = infold(root, "run")
    assert (failed.exit_code, "at least one" in failed.output) == (1, True), failed.output
    late.unlink()
    assert infold(root, "run").exit_code == 0
    assert infold(root, "verify").exit_code == 0


_AUDITS = """---
audits:
  - expression: events < 5
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


def test_every_command(server: ConnectServer, tmp_path: Path) -> None:
    """
    Versions of keys and a function in Python; a change forward-only, quarantine by hand, a promote
    and back, a lost ledger, unit tests: each table is what its definition says.
    """
    root = starter(tmp_path / "shop")
    on(server, root)
    (root / "models" / "pages.sql").write_text(_VERSIONS)
    (root / "models" / "counted.py").write_text(_COUNTED)
    outside = root / "models" / "outside.py"
    outside.write_text(_COUNTED.replace("counted", "outside").replace(*_OUTSIDE))
    daily = root / "models" / "daily.sql"

    def does(words: str) -> str:
        found = infold(root, *words.split())
        assert found.exit_code == 0, f"{words}: {found.output}"
        return found.output

    refused = infold(root, "run")
    assert (refused.exit_code, "reads-unseen: outside" in refused.output) == (2, True)
    outside.unlink()
    daily.write_text(daily.read_text().replace("count(*) AS", "count(*) + 100 AS"))
    does("quarantine add sessions --user ann --reason bot")
    shutil.copy(root / "later" / "2024-03-10.json", root / "landing" / "clicks")
    does("run --forward-only daily")
    assert "bot" in does("show quarantined_sessions")
    does("verify")
    sessions = [int(one["sessions"]) for one in _rows(does("show daily --json"))]
    assert (min(sessions) < 100, max(sessions) > 100) == (True, True)
    does("quarantine auto sessions --user ann")
    daily.write_text(
        daily.read_text().replace("sum(revenue)", "max(revenue) AS most,\n  sum(revenue)")
    )
    does("run --env more")
    does("promote more --yes")
    assert "most" in does("show daily")
    does("verify --sample 2")
    does("rollback --yes")
    assert "most" not in does("show daily")
    (root / ".infold" / "ledger.db").unlink()
    does("repair --yes")
    does("run")
    does("verify")
    api.close()
    program = [
        sys.executable,
        "-m",
        "infold",
        "-C",
        str(root),
        "test",
        "A click far*",
        "--no-shuffle",
    ]
    found = subprocess.run(program, capture_output=True, text=True, check=False)
    assert found.returncode == 0, found.stdout + found.stderr


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


def test_tables_are_kept_in_shape(server: ConnectServer, scenario: MovedScenario) -> None:
    """Rows are put into few files, snapshots go, columns get names and types, each in a commit."""
    del server
    project, lake = scenario.project, api.lake(scenario.project)
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
    """Nobody there, a wrong token, other settings, no jar: named, and nothing is made."""
    del server  # the process is one for servers
    root = starter(tmp_path / "shop")
    plain = (root / "infold.yml").read_text()
    given = {key: value for key, value in as_it_should_be().items() if key != "spark.jars"}
    monkeypatch.setenv("SPARK_TOKEN", "wrong")
    with running(tmp_path, settings=given, token="a-secret") as bare:
        address = f"sc://localhost:{bare.port}/;token=${{env:SPARK_TOKEN}}"
        engine = {"remote": address, "shared_disk": True}
        said = []
        for token, more in (
            ("wrong", {}),
            ("a-secret", {"spark": {"spark.executor.memory": "30g"}}),
            ("a-secret", {}),
        ):
            monkeypatch.setenv("SPARK_TOKEN", token)
            (root / "infold.yml").write_text(plain)
            on(bare, root, engine=engine, **more)
            found = infold(root, "run")
            assert found.exit_code == 1, found.output
            said.append(found.output)
    for slug, output in zip(("server-refuses", "server-settings", "no-iceberg"), said, strict=True):
        assert f"{slug}: " in output
        assert "a-secret" not in output
    assert "spark.executor.memory is not set, not 30g" in said[1]
    found = infold(root, "run")
    assert (found.exit_code, "server-unreachable: " in found.output) == (1, True), found.output
    assert not list((root / "warehouse").glob("shop/*"))


def test_a_session_that_cannot_be_ended_keeps_others_out(
    server: ConnectServer, scenario: MovedScenario
) -> None:
    """The ledger names a server that is not there: no run begins, whatever it computes on."""
    book = api.ledger(scenario.project)
    book.acquire("test")
    keep_sessions(book, [RemoteSession("sc://127.0.0.1:1", "", str(_NOBODY)).as_json()])
    book.release()
    with pytest.raises(InfoldError, match="session-left"):
        scenario.go()
    book.acquire("test")
    keep_sessions(book, [RemoteSession(server.url, "", str(_NOBODY)).as_json()])
    book.release()
    scenario.settle()


_NOBODY = "6ba7b810-9dad-41d1-80b4-00c04fd430c8"
