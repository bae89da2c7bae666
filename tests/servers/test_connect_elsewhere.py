"""A server of Spark Connect whose executors, and whose target's catalog, are elsewhere too."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import pytest
from click.testing import CliRunner
from tests.arrivals.shapes import SHAPES
from tests.servers import standalone
from tests.servers.catalogs import Shelf, opened
from tests.servers.connect_server import ConnectServer, as_it_should_be, running
from tests.servers.moved import Moved, retarget

from infold import api
from infold.cli import cli
from infold.spark.tables.iceberg.catalogs import POSTGRESQL

pytestmark = [pytest.mark.servers, pytest.mark.spark]

USERS = 10
ARRIVALS = ("arrive", "burst", "again", "replace", "delete")
ONE_CORE_EACH = {"spark.executor.memory": "450m", "spark.executor.cores": "1"}


@dataclass
class Elsewhere:
    """The servers: what computes, on which cluster, and catalogs by their type."""

    server: ConnectServer
    cluster: standalone.Cluster
    shelves: dict[str, Shelf]

    def move(self, kind: str, namespace: str, folder: Path) -> None:
        """Have the project's targets compute on the server, with tables in a catalog."""
        declared = {**self.shelves[kind].declared, "namespace": f"{namespace}_{os.getpid()}"}
        retarget(folder, {**self.server.target(), "catalog": declared})


@pytest.fixture(scope="module")
def elsewhere(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Elsewhere]:
    """All of them; a process has one Spark, so that of other tests ends first."""
    api.close()
    with ExitStack() as stack:
        cluster = stack.enter_context(standalone.running(tmp_path_factory.mktemp("cluster")))
        settings = {**as_it_should_be(POSTGRESQL), **ONE_CORE_EACH, **REDACTED}
        server = stack.enter_context(
            running(tmp_path_factory.mktemp("connect"), settings=settings, master=cluster.url)
        )
        shelves = {
            kind: stack.enter_context(opened(kind, request, tmp_path_factory.mktemp(kind)))
            for kind in ("jdbc", "rest")
        }
        yield Elsewhere(server, cluster, shelves)
        api.close()


REDACTED = {"spark.redaction.regex": "(?i)secret|password|token|access[.]?key|credential"}


@pytest.mark.parametrize("kind", ["jdbc", "rest"])
def test_tables_equal_the_reference(elsewhere: Elsewhere, tmp_path: Path, kind: str) -> None:
    """Events, sessions, cells, rows by key: late, twice, replaced, deleted."""
    where = tmp_path / kind, kind, tmp_path / "warehouse"
    move = partial(elsewhere.move, kind, "arrivals")
    Moved(SHAPES["fold"], *where, USERS, move=move).play_all(*ARRIVALS)
    assert len(elsewhere.cluster.executors()) == 2


@pytest.mark.parametrize("kind", ["rest", "jdbc"])
def test_a_promote_and_back(elsewhere: Elsewhere, tmp_path: Path, kind: str) -> None:
    """A changed table is built in an environment, takes the name of production's, and goes back."""
    root = tmp_path / "shop"

    def infold(words: str) -> str:
        done = CliRunner().invoke(cli, ["-C", str(root), *words.split()])
        assert done.exit_code == 0, done.output
        return done.stdout

    assert CliRunner().invoke(cli, ["init", str(root)]).exit_code == 0
    elsewhere.move(kind, "promoted", root)
    infold("run")
    model = root / "models" / "daily.sql"
    text = model.read_text(encoding="utf-8")
    model.write_text(text.replace("sum(revenue)", "max(revenue) AS most,\n  sum(revenue)"))
    infold("run --env more")
    assert json.loads(infold("promote more --yes --json"))["at_once"] == (kind == "jdbc")
    assert "most" in infold("show daily")
    infold("verify")
    infold("rollback --yes")
    assert "most" not in infold("show daily")
