"""What a shell completes: names from the project, whatever state it is in, and no error."""

from __future__ import annotations

import subprocess
from pathlib import Path

import click
import pytest
from click.shell_completion import ShellComplete
from tests.cli.conftest import Infold
from tests.declare.shop import CLICKS, INFOLD, write

from infold import api
from infold.cli.completion import SHELLS
from infold.cli.main import COMMANDS, cli
from infold.core.environment import Environment
from infold.declare.load import load

NO_NAMES = {
    *("init", "demo", "apply", "rollback", "manifest", "ui", "teardown", "repair"),
    *("ledger", "engine", "check", "schema", "completion", "doctor", "verify"),
}


@pytest.fixture
def shop(tmp_path: Path) -> Path:
    """A project with tags and two targets."""
    root = write(tmp_path / "shop")
    (root / "models" / "clicks.sql").write_text(
        CLICKS.replace("---\n", "---\ntags: [raw, old]\n", 1)
    )
    (root / "infold.yml").write_text(
        INFOLD + "  prod: {warehouse: other, ledger: 'sqlite:///p.db'}\n"
    )
    return root


def completed(root: Path, *words: str) -> list[str]:
    """What is offered for the last of the words."""
    shell = ShellComplete(cli, {}, "infold", "_INFOLD_COMPLETE")
    *before, last = words
    return [one.value for one in shell.get_completions(["-C", str(root), *before], last)]


CASES = [
    (("run", ""), ["clicks", "daily", "sessions", "tag:"]),
    (("run", "--select", "d"), ["daily"]),
    (("run", "-s", "+d"), ["+daily"]),
    (("run", "-x", "daily,+s"), ["daily,+sessions"]),
    (("run", "-s", "tag:"), ["tag:old", "tag:raw"]),
    (("plan", "daily", "s"), ["sessions"]),
    (("run", "--forward-only", "c"), ["clicks"]),
    (("run", "--allow-destructive", "d"), ["daily"]),
    (("explain", ""), ["clicks", "daily", "sessions"]),
    (("quarantine", "add", "se"), ["sessions"]),
    (("show", "s"), ["sessions", "sessions_lifecycle_manifest", "set_aside"]),
    (("show", "daily", "--columns", ""), ["day", "revenue", "sessions"]),
    (("show", "daily", "--columns", "day,re"), ["day,revenue"]),
    (("show", "no_such", "--columns", ""), []),
    (("test", "--mask", "us"), ["user_id"]),
    (("--target", "p"), ["prod"]),
    (("--target", "prod", "show", "d"), ["daily"]),
    (("run", "--env", ""), []),
    (("com",), ["completion"]),
    (("schema", "m"), ["model"]),
    (("lateness", ""), ["clicks"]),
    (("dag", "+s"), ["+sessions"]),
]


@pytest.mark.parametrize(("words", "expected"), CASES, ids=[" ".join(words) for words, _ in CASES])
def test_names_are_completed(shop: Path, words: tuple[str, ...], expected: list[str]) -> None:
    """Names that begin as it is typed, with what is before them in the same word."""
    assert completed(shop, *words) == expected


def test_environments_are_completed(shop: Path) -> None:
    """Those that a ledger in a file knows; a Tab makes none."""
    completed(shop, "run", "--env", "")
    assert not (shop / ".infold" / "ledger.db").exists()
    ledger = api.ledger(load(shop))
    ledger.acquire("test")
    ledger.put_environment(Environment("alice", "alice@host", 1))
    ledger.release()

    assert completed(shop, "run", "--env", "al") == ["alice"]
    assert completed(shop, "promote", "") == ["alice"]


def test_models_are_completed_by_their_files_where_one_is_wrong(shop: Path) -> None:
    """A mistake that is being mended takes no name away; columns need the whole project."""
    (shop / "models" / "daily.sql").write_text("SELECT")

    assert completed(shop, "explain", "") == ["clicks", "daily", "sessions"]
    assert completed(shop, "show", "daily", "--columns", "") == []


@pytest.mark.parametrize("words", [words for words, _ in CASES if words[-1] != "com"])
def test_without_a_project_there_is_no_error(tmp_path: Path, words: tuple[str, ...]) -> None:
    """Nothing is offered, and nothing raised."""
    assert completed(tmp_path, *words) in ([], ["model"], ["tag:"])


@pytest.mark.parametrize("name", sorted(set(COMMANDS) - NO_NAMES))
def test_every_command_with_names_completes_them(name: str) -> None:
    """Arguments and options that are called after a name have a completion."""
    command = cli.get_command(click.Context(cli), name)
    assert command is not None
    commands = list(command.commands.values()) if isinstance(command, click.Group) else [command]
    named = {"MODEL", "TERM", "COLUMN", "TABLE", "[TERM...]", "TERM...", "[MODEL...]", "MODEL..."}
    for each in commands:
        for param in each.params:
            if param.metavar in named or param.name in ("model", "table", "env"):
                if name == "test" and param.name == "terms":
                    continue  # names of tests
                assert param._custom_shell_complete is not None, (each.name, param.name)


@pytest.mark.parametrize("shell", SHELLS)
def test_the_command_prints_what_a_shell_reads(infold: Infold, shell: str) -> None:
    """For each shell; bash takes it."""
    done = infold("completion", shell)

    assert done.exit_code == 0
    assert "_INFOLD_COMPLETE" in done.stdout
    if shell == "bash":
        subprocess.run(["bash", "-n"], input=done.stdout, text=True, check=True)
