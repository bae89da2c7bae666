"""A real cluster, for infold and for spark-submit: right there too, whatever is lost."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from threading import Timer
from typing import Any

import pytest
from tests.crash.scenario import Life, Scenario
from tests.docs.pages import DOCS, code
from tests.servers.moved import MovedScenario, Starter, retarget
from tests.servers.standalone import SHAPE, Cluster, running

from infold import api
from infold.core.plan import Step
from infold.core.report import RunFailed
from infold.core.storages import Storage
from infold.messages.errors import InfoldError
from infold.spark.jvm.gateway import has_started
from infold.spark.jvm.jars import jar_paths
from infold.spark.jvm.java import find_java, spark_home

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


def on(cluster: Cluster, folder: Path, **more: Any) -> None:
    """Have the project's targets compute on the cluster."""
    given = cluster.target()
    retarget(folder, {**given, **more, "spark": given["spark"] | more.get("spark", {})})


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
    shape = replace(SHAPE, storage=Storage.DELTA)
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


def submit(*words: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """An application's life; its output is that of infold, its errors are Spark's log."""
    return subprocess.run(
        [str(spark_home() / "bin" / "spark-submit"), *words],
        capture_output=True,
        text=True,
        check=False,
        env={
            **os.environ,
            "JAVA_HOME": str(find_java().home),
            "SPARK_LOCAL_IP": "127.0.0.1",
            "PYSPARK_PYTHON": sys.executable,
            "TZ": "Asia/Tokyo",
            **environment,
        },
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


def test_as_the_page_says_and_killed_in_the_middle(
    cluster: Cluster, shop: Starter, tmp_path: Path
) -> None:
    """The cluster computes; a killed application leaves what the next run finds out."""
    api.close()  # its executors would have all cores
    options, words = words_of_the_page(cluster, shop)
    crash = {"INFOLD_CRASH_AT": "table sessions: after commit"}
    killed = submit(*options, str(APPLICATION), *words, **crash)
    assert killed.returncode in (-signal.SIGKILL, 128 + signal.SIGKILL), killed.stdout
    assert "Executor added" in killed.stderr, "the cluster's executors compute"

    commands = tmp_path / "commands.py"
    commands.write_text(COMMANDS)
    project = f"-C {shop.root} --target submitted"
    lines = [f"{project} {command}" for command in ("doctor", "run")]
    lines += [f"-C {shop.root} --target here run", f"-C {shop.root}/nowhere run"]
    said = submit(*options, str(commands), *lines).stdout
    codes = [int(line.split()[-1]) for line in said.splitlines() if " ended with " in line]
    assert codes == [0, 0, 2, 2], said
    assert re.search(rf"on {cluster.url}, [12] executors? with 1g", said), said
    assert re.search(r"^ +\d\. daily ", said, re.MULTILINE), "sessions are there, their reader not"
    assert "submitted: spark-submit gave this process a Spark, and target here computes" in said
    assert "no-project: " in said
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
