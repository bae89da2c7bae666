"""infold as the application of spark-submit: as the page says, killed, and given what is wrong."""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import pytest
from click.testing import CliRunner
from tests.docs.pages import DOCS
from tests.docs.test_how_to import code
from tests.servers.standalone import Cluster, running

from infold import api
from infold.cli import cli
from infold.messages.errors import InfoldError
from infold.spark.jvm.jars import jar_paths, spark_home
from infold.spark.jvm.java import find_java

pytestmark = [pytest.mark.servers, pytest.mark.spark]

PAGE = DOCS / "clusters.md"
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


@dataclass
class Shop:
    """The starter's project, and what submits it."""

    root: Path
    cluster: Cluster

    def submit(self, *words: str, **environment: str) -> subprocess.CompletedProcess[str]:
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

    def as_the_page_says(self, master: str, **environment: str) -> subprocess.CompletedProcess[str]:
        """Its command, with the places of this machine."""
        (line,) = [text for text in code(PAGE, "sh") if "spark-submit" in text]
        places = {
            "spark://spark.example.com:7077": master,
            "/srv/infold/bin/infold-submit.py": str(APPLICATION),
            "/srv/shop": str(self.root),
            "4g": "450m",
        }
        words = replaced(line.replace("\\\n", ""), places).split()[1:]
        words[words.index("--jars") + 1] = ",".join(map(str, jar_paths()))
        return self.submit(*words, **environment)


def replaced(text: str, parts: Mapping[str, str]) -> str:
    """A text of a page, for this machine."""
    for old, new in parts.items():
        assert old in text
        text = text.replace(old, new)
    return text


def starter(root: Path) -> Path:
    """The starter's project with the page's target."""
    assert CliRunner().invoke(cli, ["init", str(root)]).exit_code == 0
    (targets,) = [text for text in code(PAGE, "yaml") if "submitted" in text]
    targets = replaced(targets, {"/srv/shop/submitted": "submitted", "targets:\n": ""})
    with (root / "infold.yml").open("a") as opened:
        opened.write(targets)
    return root


@pytest.fixture(scope="module")
def shop(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Shop]:
    """A project and a cluster; no other Spark has its cores."""
    api.close()
    with running(tmp_path_factory.mktemp("cluster")) as cluster:
        yield Shop(starter(tmp_path_factory.mktemp("submitted") / "shop"), cluster)


def test_as_the_page_says_and_killed_in_the_middle(shop: Shop, tmp_path: Path) -> None:
    """The cluster computes; a killed application leaves what the next run finds out; a proof."""
    first = shop.as_the_page_says(shop.cluster.url)
    assert first.returncode == 0, first.stdout + first.stderr[-3000:]
    assert "3. daily" in first.stdout
    assert "Executor added" in first.stderr, "the cluster's executors compute"

    shutil.copy(shop.root / "later" / "2024-03-10.json", shop.root / "landing" / "clicks")
    killed = shop.as_the_page_says("local[2]", INFOLD_CRASH_AT="table sessions: after commit")
    assert killed.returncode in (-signal.SIGKILL, 128 + signal.SIGKILL), killed.stdout

    commands = tmp_path / "commands.py"
    commands.write_text(COMMANDS)
    project = f"-C {shop.root} --target submitted"
    lines = [f"{project} {command}" for command in ("doctor", "run", "verify", "run")]
    lines += [f"-C {shop.root} run", f"-C {shop.root}/nowhere run"]
    jars = ",".join(map(str, jar_paths()))
    said = shop.submit("--master", "local[2]", "--jars", jars, str(commands), *lines).stdout
    codes = [int(line.split()[-1]) for line in said.splitlines() if " ended with " in line]
    assert codes == [0, 0, 0, 0, 2, 2], said
    assert "on local[2] with 1g" in said
    assert re.search(r"^ +\d\. daily ", said, re.MULTILINE), "sessions are there, their reader not"
    assert "submitted: spark-submit gave this process a Spark, and target dev computes" in said
    assert "no-project: " in said


def test_what_a_submit_lacks_is_said(shop: Shop, tmp_path: Path) -> None:
    """No jar of Iceberg: refused by name, with infold's exit code; no submit at all likewise."""
    root = starter(tmp_path / "shop")
    words = (str(APPLICATION), "-C", str(root), "--target", "submitted", "run")
    bare = shop.submit("--master", "local[1]", *words)
    assert bare.returncode == 2, bare.stdout + bare.stderr[-3000:]
    assert "no-iceberg: " in bare.stdout

    project = api.open_project(root, "submitted")
    with pytest.raises(InfoldError, match="target submitted computes with the Spark"):
        api.session(project)
