"""A stop by signals prints one line, has its own exit code, and leaves no process."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from random import Random

import pytest
from click.testing import CliRunner
from tests.cli.warm_engine.engines import await_that
from tests.system.interrupts import Sweep

from infold.cli import cli
from infold.cli.init import write_project
from infold.system import signals

CODES = {signal.SIGINT: 130, signal.SIGTERM: 143, signal.SIGHUP: 129}
CALM = """
import sys, time
from infold.cli import process_exit
def wait():
    print("at work", flush=True)
    time.sleep(60)
process_exit.run(wait)
"""


def begun(*words: str) -> subprocess.Popen[str]:
    """A process, its output to be read."""
    return subprocess.Popen(
        [sys.executable, *words], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )


def handling(hang_up: str = "SIG_DFL") -> subprocess.Popen[str]:
    """A process that handles signals and is at work; whoever runs the tests may use ``nohup``."""
    process = begun(
        "-c",
        f"import signal\nsignal.signal(signal.SIGHUP, signal.{hang_up})\n"
        f"from infold.system import signals\nsignals.install()\n{CALM}",
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "at work\n"
    return process


@pytest.mark.deep
@pytest.mark.parametrize(("number", "code"), CODES.items())
def test_each_signal_has_a_code_and_they_share_a_line(number: int, code: int) -> None:
    """Each signal has the exit code 128 plus its number, and one line is printed."""
    process = handling()

    process.send_signal(number)
    out, err = process.communicate(timeout=20)

    assert (process.returncode, out, err) == (code, "", f"{signals.STOPPED_LINE}\n")


@pytest.mark.deep
def test_a_signal_in_a_finalizer() -> None:
    """Python would report it there, and go on: it ends the command a moment later."""
    process = begun(
        "-c",
        "import signal\nfrom infold.system import signals\nsignals.install()\n"
        "class Finalized:\n    def __del__(self):\n        signal.raise_signal(signal.SIGINT)\n"
        + CALM.replace("    print", "    Finalized()\n    print"),
    )

    out, err = process.communicate(timeout=20)

    assert (process.returncode, out, err) == (130, "at work\n", f"{signals.STOPPED_LINE}\n")


@pytest.mark.deep
def test_nohup_ignores_a_hang_up() -> None:
    """Under nohup a hang-up is ignored, and another signal still ends the process."""
    process = handling("SIG_IGN")

    process.send_signal(signal.SIGHUP)
    time.sleep(0.2)
    assert process.poll() is None
    process.send_signal(signal.SIGTERM)

    assert process.wait(20) == 143


def test_a_signal_waits_until_a_child_is_registered(monkeypatch: pytest.MonkeyPatch) -> None:
    """During the start of a child, which has to be ended as well."""
    state, ended = signals._State(), []
    monkeypatch.setattr(signals, "_state", state)

    def start() -> None:
        with signals.deferred():
            signals._stop(signal.SIGTERM, None)
            signals.end_with_process(lambda: ended.append("child"))

    with pytest.raises(signals.Stopped):
        start()

    assert ended == ["child"]
    assert signals.exit_code() == 143


def test_pyspark_does_not_take_ctrl_c_over() -> None:
    """It stays at every moment; PySpark's own way of setting it is as before afterwards."""
    from pyspark.core import context

    from infold.spark.jvm.gateway import own_signals

    before = signal.getsignal(signal.SIGINT)
    with own_signals():
        module = vars(context)["signal"]
        module.signal(module.SIGINT, lambda *_: None)  # as SparkContext does
        assert signal.getsignal(signal.SIGINT) is before

    assert vars(context)["signal"] is signal


# -- with Spark ------------------------------------------------------------------------------------


def javas(folder: Path) -> list[int]:
    """The processes of Java, or that start one, for a project."""
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                words = (entry / "cmdline").read_bytes()
            except OSError:
                continue
            if str(folder).encode() in words and b"spark" in words:
                found.append(int(entry.name))
    return found


@pytest.fixture
def shop(tmp_path: Path) -> Path:
    """The starter's project."""
    write_project(tmp_path / "shop")
    return tmp_path / "shop"


@pytest.mark.spark
@pytest.mark.skipif(not Path("/proc/self/cmdline").exists(), reason="processes are seen in /proc")
def test_no_process_is_left(shop: Path) -> None:
    """A signal while Java starts leaves none; ``crash/test_killed`` kills runs that are at work."""
    process = begun("-m", "infold", "-C", str(shop), "run")
    await_that(lambda: javas(shop) != [])

    process.send_signal(signal.SIGTERM)
    out, err = process.communicate(timeout=60)

    # Start-up scripts have children that are killed with them; the system ends those by itself.
    await_that(lambda: not javas(shop), seconds=5)
    assert (process.returncode, err) == (143, f"{signals.STOPPED_LINE}\n")
    assert "Traceback" not in out


@pytest.mark.spark
@pytest.mark.skipif(not Path("/proc/self/cmdline").exists(), reason="processes are seen in /proc")
def test_ctrl_c_while_a_run_starts_spark_and_works(tmp_path: Path) -> None:
    """At three drawn moments; `make soak INTERRUPTS=200` has more, also of engines."""
    sweep = Sweep(tmp_path / "shop", Random(4), {"cold": 6.0})
    for part in (0.2, 0.5, 0.8):
        sweep.interrupt("cold", part + sweep.random.random() / 10)

    assert sweep.faults == []


@pytest.mark.spark
def test_a_killed_java_is_named_and_the_next_run_goes_on(shop: Path) -> None:
    """By name, without a stack; the next run, with another Java, builds the other models."""
    process = begun("-m", "infold", "-C", str(shop), "run")
    await_that(lambda: any((shop / "warehouse").rglob("*.json")))

    for java in javas(shop):
        os.kill(java, signal.SIGKILL)
    out, err = process.communicate(timeout=60)

    assert process.returncode == 1
    assert "engine-died: Spark's Java process ended in the middle of its work" in err
    assert "Traceback" not in out + err
    assert (shop / ".infold" / "spill").stat().st_mode & 0o777 == 0o700

    models = shop / "models"
    text = (models / "daily.sql").read_text()
    (models / "daily.sql").write_text(text.replace("count(*)", "count(*) DIV 0", 1))
    (models / "long.sql").write_text(
        "---\nmaterialization: table\n---\nSELECT user_id FROM clicks WHERE "
        + " OR ".join(f"user_id = '{number}'" for number in range(1_000))
    )
    done = CliRunner().invoke(cli, ["-C", str(shop), "run", "--json"])

    found = json.loads(done.stdout)
    assert (done.exit_code, done.stderr) == (1, "")
    assert {"long", "sessions"} <= {step["model"] for step in found["steps"]}
    assert [entry["model"] for entry in found["failed"]] == ["daily"]
    assert found["error"]["slug"] == "step-failed"
    assert "DIVIDE_BY_ZERO" in found["error"]["facts"]["why"]
