"""Sessions on a server that a dead run left: ended before anything else, or nothing begins."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from click.testing import CliRunner

from infold import api
from infold.api.sole_writer import announce, sole_writer
from infold.cli import cli
from infold.core.engines import Engine
from infold.core.project import Project
from infold.ledger import SqlLedger
from infold.ledger.remote_sessions import kept_sessions
from infold.messages.errors import InfoldError
from infold.spark.connect import clients
from infold.spark.connect.clients import RemoteSession

SERVER = "sc://there:15002"


class Session:
    """What a run knows of its session."""

    session_id = "one"

    class client:  # noqa: N801 (as PySpark has it)
        """Of the session."""

        _user_id = "ann"


@pytest.fixture
def project(tmp_path: Path) -> Project:
    """A project whose target computes on a server."""
    assert CliRunner().invoke(cli, ["init", str(tmp_path / "shop")]).exit_code == 0
    found = api.open_project(tmp_path / "shop")
    engine = Engine(remote=f"{SERVER}/;token=${{env:SPARK_TOKEN}}", shared_disk=True)
    return replace(found, target=replace(found.target, engine=engine))


@pytest.fixture
def ledger(project: Project) -> SqlLedger:
    """Its ledger, with the lease."""
    found = api.ledger(project)
    found.acquire("run")
    return found


@pytest.fixture
def ended(monkeypatch: pytest.MonkeyPatch) -> list[tuple[RemoteSession, str]]:
    """The sessions that were ended, and how the server was spoken to."""
    found: list[tuple[RemoteSession, str]] = []
    monkeypatch.setattr(clients, "end", lambda one, url: found.append((one, url)))
    monkeypatch.setenv("SPARK_TOKEN", "a b")
    return found


OWN = RemoteSession(SERVER, "ann", "one")


Ended = list[tuple[RemoteSession, str]]


def test_a_run_that_ends_leaves_nothing(project: Project, ledger: SqlLedger, ended: Ended) -> None:
    """Its session is known while it works, once, and not any more when nothing can go on. One that
    fails ends what it asked for: a client that waits no longer has not stopped the server.
    """
    with sole_writer(project, ledger):
        for _ in range(2):
            announce(project, ledger, Session)
        assert kept_sessions(ledger) == (OWN.as_json(),)
    assert kept_sessions(ledger) == ()
    assert ended == []

    def work() -> None:
        with sole_writer(project, ledger):
            announce(project, ledger, Session)
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        work()

    assert ended == [(OWN, f"{SERVER}/;token=a%20b")]
    assert kept_sessions(ledger) == ()


@pytest.mark.parametrize("moved", [False, True])
def test_the_next_run_ends_what_a_dead_one_left(
    project: Project, ledger: SqlLedger, ended: Ended, moved: bool
) -> None:
    """Also one that computes elsewhere by now: that server gets no token of another one."""
    announce(project, ledger, Session)
    if moved:
        project = replace(project, target=replace(project.target, engine=Engine()))
    with sole_writer(project, ledger):
        assert ended == [(OWN, SERVER if moved else f"{SERVER}/;token=a%20b")]
        assert kept_sessions(ledger) == ()


def test_no_run_begins_beside_a_server_that_does_not_answer(
    project: Project, ledger: SqlLedger, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What it commits late would be there twice; the entry stays, without the token."""
    monkeypatch.setenv("SPARK_TOKEN", "secret")

    def refused(one: RemoteSession, url: str) -> None:
        raise ConnectionRefusedError(111, "Connection refused")

    monkeypatch.setattr(clients, "end", refused)
    announce(project, ledger, Session)
    with pytest.raises(InfoldError, match="session-left") as caught, sole_writer(project, ledger):
        pytest.fail("it began")

    assert SERVER in str(caught.value)
    assert "secret" not in str(caught.value)
    assert kept_sessions(ledger) == (OWN.as_json(),)
