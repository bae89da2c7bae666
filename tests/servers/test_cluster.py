"""Projects on a real cluster: what is right on one machine is right there, whatever is lost."""

from __future__ import annotations

import re
import signal
import threading
from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result
from tests.arrivals.shapes import SHAPES
from tests.crash.scenario import SHAPE, TABLES, Scenario, kill
from tests.docs.pages import DOCS
from tests.docs.test_how_to import code
from tests.servers.moved import Moved, MovedScenario, retarget
from tests.servers.standalone import Cluster, running

from infold import api
from infold.cli import cli
from infold.core.report import RunFailed
from infold.core.storages import Storage
from infold.spark.jvm.gateway import has_started

pytestmark = [pytest.mark.servers, pytest.mark.spark]

PAGE = DOCS / "clusters.md"
USERS = 40


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """A cluster; a process has one Spark, so that of other tests ends first."""
    api.close()
    with running(tmp_path_factory.mktemp("cluster")) as found:
        yield found
    api.close()


def on(cluster: Cluster, folder: Path, **more: Any) -> None:
    """Have the project's target compute on the cluster."""
    given = cluster.target()
    retarget(folder, {**given, **more, "spark": given["spark"] | more.get("spark", {})})


def test_tables_of_delta_equal_the_reference(cluster: Cluster, tmp_path: Path) -> None:
    """Executors have Delta's jars as they have Iceberg's, and the folders of its tables."""
    shape = replace(SHAPES["fold"], storage=Storage.DELTA)
    where = tmp_path / "delta", "delta", tmp_path / "warehouse"
    play = Moved(shape, *where, USERS, move=partial(on, cluster))
    play.play_all("arrive", "burst", "again", "replace", "delete")
    assert len(cluster.executors()) == 2
    api.close()  # a JVM with Delta's extension is not that of the next test


@pytest.mark.parametrize("shape", ["fold", "rows"])
def test_tables_equal_the_reference(cluster: Cluster, tmp_path: Path, shape: str) -> None:
    """Events, sessions, cells, rows by key, functions in Python: late, twice, replaced, deleted."""
    move = partial(on, cluster)
    play = Moved(SHAPES[shape], tmp_path / shape, shape, tmp_path / "warehouse", USERS, move=move)
    play.play_all("arrive", "arrive", "burst", "again", "replace", "delete")
    assert len(cluster.executors()) == 2


@pytest.fixture(scope="module")
def scenario(cluster: Cluster, tmp_path_factory: pytest.TempPathFactory) -> MovedScenario:
    """A project that was run once and is right."""
    folder = tmp_path_factory.mktemp("lost")
    where = folder / "lost", "lost", folder / "warehouse"
    found = MovedScenario(SHAPE, *where, 12, move=partial(on, cluster))
    found.deliver(1)
    found.deliver(2)
    found.settle()
    return found


def failures_of(scenario: Scenario) -> set[str]:
    """A run; what its steps failed by."""
    try:
        scenario.go()
    except RunFailed as failed:
        return {one.error.slug for one in failed.result.failures}
    return set()


def test_executors_and_workers_are_lost_in_the_middle(
    cluster: Cluster, scenario: MovedScenario
) -> None:
    """Their tasks are done again elsewhere, or the step by the next run; nothing is there twice."""
    for seed, loss in ((3, cluster.kill_executor), (4, cluster.lose_worker)):
        scenario.deliver(seed)
        meanwhile = threading.Timer(1.0, loss)
        meanwhile.start()
        slugs = failures_of(scenario)
        meanwhile.join()
        assert slugs <= {"cluster-lost"}
        scenario.settle()
    cluster.add_worker("another")


def test_a_driver_dies_while_its_executors_go_on(cluster: Cluster, scenario: MovedScenario) -> None:
    """The next run, of another driver, finds out what was committed."""
    scenario.deliver(5)
    api.close()  # its executors would have all cores
    ended = kill(scenario, "table sessions: after commit")
    assert ended.returncode == -signal.SIGKILL, ended.stderr
    scenario.settle()
    scenario.check(set(TABLES), None)


def infold(root: Path, *words: str) -> Result:
    """A command of the project, in this process."""
    return CliRunner().invoke(cli, ["-C", str(root), *words])


def test_what_a_cluster_cannot_do_is_said(cluster: Cluster, tmp_path: Path) -> None:
    """No executor so large, nobody at the address: the target's key is named, nothing is made."""
    root = tmp_path / "shop"
    assert CliRunner().invoke(cli, ["init", str(root)]).exit_code == 0
    plain = (root / "infold.yml").read_text()
    api.close()
    on(
        cluster,
        root,
        engine={**cluster.target()["engine"], "executor_wait": "1 second"},
        spark={"spark.executor.memory": "30g"},
    )
    found = infold(root, "run")
    assert found.exit_code == 1, found.output
    assert "no-executor" in found.output
    assert "`engine` of target dev" in found.output
    api.close()
    assert not has_started(), "half a session would be taken for a whole one"
    (root / "infold.yml").write_text(plain)
    on(cluster, root, engine={"master": "spark://127.0.0.1:1", "shared_disk": True})
    found = infold(root, "run")
    assert found.exit_code == 1, found.output
    assert "master-unreachable" in found.output
    assert not (root / "warehouse" / "shop").exists()


def test_the_page_on_clusters(cluster: Cluster, tmp_path: Path) -> None:
    """What the page says works, with the addresses of this cluster; the doctor shows it."""
    root = tmp_path / "shop"
    assert CliRunner().invoke(cli, ["init", str(root)]).exit_code == 0
    (targets, *_), (commands, *_) = code(PAGE, "yaml"), code(PAGE, "sh")
    targets = targets.replace("spark://spark.example.com:7077", cluster.url)
    targets = targets.replace("/srv/shop", str(tmp_path)).replace("4g", "450m")
    file = root / "infold.yml"
    file.write_text(file.read_text().partition("targets:")[0] + targets)
    api.close()
    for line in commands.splitlines():
        found = infold(root, *line.split()[1:])
        assert found.exit_code == 0, found.output
        if "doctor" in line:
            assert re.search(rf"on {cluster.url}, [12] executors? with 2g", found.output)
    assert infold(root, "--target", "cluster", "verify").exit_code == 0
    with file.open("a") as opened:
        opened.write("  here: {warehouse: here, ledger: 'sqlite:///.infold/here.db'}\n")
    refused = infold(root, "--target", "here", "run")
    assert (refused.exit_code, "other-engine" in refused.output) == (2, True), refused.output
