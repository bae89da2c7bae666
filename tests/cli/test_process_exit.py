"""How the process begins and ends: what it imports, its output is flushed, its code is right."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from infold.cli.init import write_project
from infold.cli.main import cli
from infold.ledger.store import SqlLedger

pytestmark = pytest.mark.deep

FULL = Path("/dev/full")
"""A device that takes nothing."""


def infold(*words: str, **how: object) -> subprocess.CompletedProcess[str]:
    """The command, in a process of its own."""
    given = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, **how}
    return subprocess.run(  # type: ignore[call-overload,no-any-return]
        [sys.executable, "-m", "infold", *words], check=False, text=True, timeout=120, **given
    )


@pytest.fixture(scope="module")
def shop(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The starter's project, with files that nobody has taken in."""
    folder = tmp_path_factory.mktemp("ending") / "shop"
    assert infold("init", str(folder)).returncode == 0
    return folder


def python(code: str, *words: str) -> tuple[int, str, str]:
    """Exit code, output and errors of a program."""
    done = subprocess.run(
        [sys.executable, "-c", code, *words],
        check=False,
        capture_output=True,
        text=True,
        timeout=60,
    )
    return done.returncode, done.stdout, done.stderr


def test_no_thread_is_waited_for() -> None:
    """The process ends without waiting for threads of libraries; its output is complete."""
    code = (
        "import threading, time\n"
        "from infold.cli import process_exit\n"
        "def work():\n"
        "    threading.Thread(target=time.sleep, args=(600,)).start()\n"
        "    print('all of it', end='')\n"
        "    raise SystemExit(4)\n"
        "process_exit.run(work)"
    )

    assert python(code) == (4, "all of it", "")


@pytest.mark.parametrize(
    ("word", "code", "stderr"),
    [("", 0, ""), ("None", 0, ""), ("True", 1, ""), ("'no such thing'", 1, "no such thing\n")],
)
def test_exit_means_what_it_means_to_python(word: str, code: int, stderr: str) -> None:
    """`SystemExit` with a text prints the text and is no success, as in Python."""
    text = (
        f"def end():\n raise SystemExit({word})\n"
        "from infold.cli import process_exit\nprocess_exit.run(end)"
    )
    assert python(text) == (code, "", stderr)


@pytest.mark.parametrize("way", ["a signal", "the time is over"])
def test_leaving_changes_no_exit_code(way: str) -> None:
    """What a process does for others, once its command has ended, is cut short without a word."""
    stop = "os.kill(os.getpid(), signal.SIGINT)" if way == "a signal" else "pass"
    code = (
        "import os, signal, time\n"
        "from infold.cli import process_exit\n"
        "from infold.system import signals\n"
        "signals.install()\n"
        f"process_exit.LEAVE_SECONDS = {600 if way == 'a signal' else 1}\n"
        "def work():\n"
        "    print('all of it', end='')\n"
        "    raise SystemExit(4)\n"
        "def leave(code):\n"
        f"    {stop}\n"
        "    time.sleep(600)\n"
        "process_exit.run(work, leave)"
    )

    assert python(code) == (4, "all of it", "")


@pytest.mark.parametrize("kept", [True, False])
def test_a_ledger_is_one_file_between_commands(tmp_path: Path, kept: bool) -> None:
    """Between commands a ledger is one file: a copy of it is complete."""
    code = (
        "import sys\n"
        "from pathlib import Path\n"
        "from infold.cli import process_exit\n"
        "from infold.ledger.store import SqlLedger\n"
        "def work():\n"
        "    ledger = SqlLedger(Path(sys.argv[1]))\n"
        "    ledger.acquire('one')\n"
        "    ledger.begin_run('one', 'run', 0, {})\n"
        "    ledger.release()\n"
        f"    globals()['kept'] = ledger if {kept} else None\n"
        "process_exit.run(work)"
    )
    file = tmp_path / "ledger.db"

    assert python(code, str(file)) == (0, "", "")
    assert [path.name for path in tmp_path.iterdir()] == ["ledger.db"]
    assert [run.id for run in SqlLedger(file).runs(1)] == ["one"]


def test_concurrent_plans_end_well(shop: Path) -> None:
    """Plans at the same time all end well, though Arrow's threads have read the new files."""
    with ThreadPoolExecutor(4) as pool:
        done = list(pool.map(lambda _: infold("-C", str(shop), "plan"), range(4)))

    assert {each.returncode for each in done} == {0}
    assert {each.stderr for each in done} == {""}
    assert all("Nothing was written" in each.stdout for each in done)


@pytest.mark.skipif(not FULL.exists(), reason="there is no /dev/full here")
@pytest.mark.parametrize("words", [("plan", "--json"), ("--help",)])
def test_an_output_that_cannot_be_written_is_an_error(shop: Path, words: tuple[str, ...]) -> None:
    """An output that cannot be written is an error with its own message, not a crash."""
    with FULL.open("w") as full:
        done = infold("-C", str(shop), *words, stdout=full)

    assert done.returncode == 1
    assert done.stderr.startswith("output-failed: the output cannot be written\n")
    assert "No space left on device" in done.stderr


def test_a_closed_pipe_is_no_failure(shop: Path) -> None:
    """A reader that closes the pipe, as in `infold plan | head -1`, is no failure."""
    reader, writer = os.pipe()
    os.close(reader)
    done = infold("-C", str(shop), "plan", stdout=writer)
    os.close(writer)

    assert (done.returncode, done.stderr) == (0, "")


def test_a_missing_models_folder_is_an_error(shop: Path, tmp_path: Path) -> None:
    """A missing models folder is an error of every command, not a valid empty project."""

    def done(word: str) -> Result:
        return CliRunner().invoke(cli, ["-C", str(tmp_path), word])

    (tmp_path / "infold.yml").write_text((shop / "infold.yml").read_text())
    missing = [done(word) for word in ("check", "plan", "run")]
    (tmp_path / "models").write_text("no folder")

    for one in (*missing, done("check")):
        assert one.exit_code == 2
        assert one.stderr.startswith("no-models: ")


LONG = {
    "ors": " OR ".join(f"user_id = '{number}'" for number in range(1_000)),
    "brackets": f"{'(' * 1_000}true{')' * 1_000}",
    "unions": "true UNION ALL SELECT user_id FROM clicks WHERE " * 999 + "true",
}


def test_generated_queries_are_parsed(shop: Path, tmp_path: Path) -> None:
    """A thousand ORs, unions or parentheses are parsed; many thousands are a finding."""
    shutil.copytree(shop, tmp_path, dirs_exist_ok=True)
    for name, where in {**LONG, "long": f"{'(' * 9_000}true"}.items():
        text = f"---\nmaterialization: table\n---\nSELECT user_id FROM clicks WHERE {where}\n"
        (tmp_path / "models" / f"{name}.sql").write_text(text)

    done = infold("-C", str(tmp_path), "check")

    assert done.returncode == 2
    assert re.findall(r"^  at: +(\S+)", done.stderr, re.MULTILINE) == ["models/long.sql:4"]


PROBE = """
import json, sys
from infold.cli import cli

slow = {"pyspark", "py4j", "rich", "pyiceberg", "pandas", "infold.telling"}
found = []
for words in json.loads(sys.argv[1]):
    code = None
    try:
        cli.main(words)
    except SystemExit as left:
        code = left.code
    found.append([code, sorted(slow & set(sys.modules))])
print(json.dumps(found), file=sys.stderr)
"""

COMMANDS = (
    "--help",
    "plan",
    "status",
    "history",
    "dag",
    "lateness",
    "status --plot",
    "check",
    "explain sessions",
    "run --select daily",  # its input was never built: nothing to do
)


def test_commands_that_compute_nothing_import_nothing_slow(tmp_path: Path) -> None:
    """Commands that compute nothing import no slow module, so that they answer at once; and what
    tells of runs is only there for those who declare it.
    """
    write_project(tmp_path)  # the starter project
    words = [["-C", str(tmp_path), *command.split()] for command in COMMANDS]

    done = subprocess.run(
        [sys.executable, "-c", PROBE, json.dumps(words)], capture_output=True, text=True, check=True
    )

    results = json.loads(done.stderr.splitlines()[-1])
    assert dict(zip(COMMANDS, results, strict=True)) == {name: [0, []] for name in COMMANDS}


COUNT = """
import sys
from infold.cli import cli
try:
    cli.main(sys.argv[1:])
except SystemExit:
    pass
own = [name for name in sys.modules if name.split(".")[0] == "infold"]
print(len(own), len(sys.modules), "sqlglot" in sys.modules, file=sys.stderr)
"""
MOST = {"plan": (120, 420), "status": (105, 265), "run --select daily": (125, 300)}
"""Modules of infold, and all modules: each takes a third of a millisecond, or more."""


def test_how_many_modules_a_command_imports(tmp_path: Path) -> None:
    """A project that is compiled already needs no parser, and what commands need is counted."""
    write_project(tmp_path)
    found = {}
    for command in ("plan", *MOST):
        words = [sys.executable, "-c", COUNT, "-C", str(tmp_path), *command.split()]
        done = subprocess.run(words, capture_output=True, text=True, check=True)
        found[command] = done.stderr.splitlines()[-1].split()

    for command, most in MOST.items():
        own, every, parser = found[command]
        assert int(own) <= most[0], command
        assert int(every) <= most[1], command
        assert parser == "False", command
