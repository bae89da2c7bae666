"""Every end of a command that runs is told of once, also where no run came of it."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from tests.declare.shop import INFOLD, SHOP, write
from tests.running.commands import infold, said
from tests.running.production import TARGET, change, shop_in_production
from tests.running.standing_tables import DECLARED
from tests.running.telling.runs import end, project, raising

from infold import api
from infold.core.hooks import Sinks
from infold.core.project import Project
from infold.system import signals

GOOD = "'echo $INFOLD_COMMAND $INFOLD_STATE >> told'"
BAD = "'echo $INFOLD_COMMAND $INFOLD_STATE ${INFOLD_ERROR%%:*} >> told'"
HOOKS = f"on_success: {{command: {GOOD}}}, on_failure: {{command: {BAD}}}"
WITH_HOOKS = ("infold.yml", "protected: true}", f"protected: true, {HOOKS}}}")
COMMENT = ("models/daily.sql", "FROM sessions", "FROM sessions /* all */")
BROKEN = ("models/daily.sql", "GROUP BY 1", "GROUP BY")


def told(shop: Project) -> list[str]:
    """What the hooks were told since the last time."""
    file = shop.root / "told"
    found = file.read_text().splitlines() if file.exists() else []
    file.unlink(missing_ok=True)
    return found


@pytest.fixture
def shop(tmp_path: Path) -> Project:
    """The shop in production, with hooks."""
    found = shop_in_production(tmp_path / "shop")
    change(found, WITH_HOOKS)
    return found


@pytest.mark.parametrize(
    ("words", "code", "end"),
    [
        ("run", 0, "run done"),
        ("run nowhere", 2, "run failed unknown-model"),
        ("run --start 2024-03-04T01:00", 2, "run failed window-unaligned"),
        ("apply", 3, "apply refused apply-not-confirmed"),
        ("apply daily --yes", 0, "apply done"),
        ("restate nowhere", 2, "restate failed unknown-model"),
        (
            "backbuild nowhere --start 2024-03-04 --end 2024-03-05",
            2,
            "backbuild failed unknown-model",
        ),
        ("restate nowhere --dry-run", 2, None),
        ("run --watch --json", 2, None),
    ],
)
def test_an_end_is_told_once(shop: Project, words: str, code: int, end: str | None) -> None:
    """Whether a run came of it or not; not where a command only shows, or is none."""
    change(shop, WITH_HOOKS, COMMENT)

    assert infold(shop, *words.split())[0] == code

    assert told(shop) == ([] if end is None else [end])


def test_where_nothing_was_to_be_done(shop: Project) -> None:
    """An `apply` without a change is a sign of life as a `run` is; a log has all of it."""
    log, metrics = shop.root / "log", shop.root / "metrics"

    said(shop, "apply", "--log", str(log), "--metrics", str(metrics))

    assert told(shop) == ["apply done"]
    lines = [json.loads(line) for line in log.read_text().splitlines()]
    assert [(one["event"], one["command"]) for one in lines] == [
        ("run_began", "apply"),
        ("run_ended", "apply"),
    ]
    assert "infold_run_success{" in metrics.read_text()


def test_where_nothing_is_applied(tmp_path: Path) -> None:
    """Before the first `apply`, and where the files cannot be read either."""
    root = write(tmp_path / "shop", {**SHOP, "infold.yml": DECLARED + TARGET})
    shop = api.open_project(root, "prod")
    change(shop, WITH_HOOKS)
    for words in ("run", "restate daily"):
        assert infold(shop, *words.split())[0] == 3
        assert told(shop) == [f"{words.split()[0]} refused nothing-applied"]
    change(shop, WITH_HOOKS, BROKEN)
    assert infold(shop, "run")[0] == 2
    assert [line[:11] for line in told(shop)] == ["run failed "]


def test_a_lost_ledger(shop: Project) -> None:
    """A run that is refused as tables are there and the ledger is not."""
    (shop.root / "prod.db").unlink()

    code, printed = infold(shop, "run")

    assert told(shop) == [f"run {'refused' if code == 3 else 'failed'} {printed.split(':')[0]}"]


def test_the_same_error_is_told_once(tmp_path: Path) -> None:
    """One that ended a run has been told when the command ends with it."""
    from infold.api.listening import tell_of_end

    write(tmp_path, {**SHOP, "infold.yml": INFOLD})
    sinks, error = Sinks(log=tmp_path / "log"), KeyError("x")
    with pytest.raises(KeyError):
        end(project(tmp_path, ""), raising(error), sinks)

    for _ in range(2):
        tell_of_end(tmp_path, None, "run", sinks, error)
    tell_of_end(tmp_path, None, "run", sinks, KeyError("x"))

    assert (tmp_path / "log").read_text().count("run_ended") == 2


@pytest.mark.deep
def test_a_stopped_run_is_told(tmp_path: Path) -> None:
    """By the name of the signal; the command says first that it was stopped, and exits as ever."""
    code = """
import sys, time
from pathlib import Path
from infold.cli import process_exit
from infold.system import signals
from tests.running.telling.runs import end, project
signals.install()
def run(_):
    print("at work", flush=True)
    time.sleep(60)
hooks = "on_failure: {command: 'echo told $INFOLD_STATE, $INFOLD_ERROR'}"
process_exit.run(lambda: end(project(Path.cwd(), hooks), run))
"""
    process = subprocess.Popen(
        [sys.executable, "-c", code],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        cwd=tmp_path,
        env={"PYTHONPATH": ":".join(sys.path), "PATH": "/usr/bin:/bin"},
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "at work\n"

    process.send_signal(signal.SIGTERM)
    _, err = process.communicate(timeout=20)

    assert (process.returncode, err) == (
        143,
        f"{signals.STOPPED_LINE}\ntold stopped, stopped by SIGTERM\n",
    )
