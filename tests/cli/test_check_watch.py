"""`infold check --watch`: checks again, goes on after mistakes, and ends by a signal."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.cli.conftest import Infold
from tests.declare.shop import DAILY, write

from infold.declare import changes


class EndedError(Exception):
    """What ends a watch in tests."""


def test_it_prints_what_each_check_finds(
    tmp_path: Path, infold: Infold, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A right project, a mistake, no project at all, and the right one again."""
    root = write(tmp_path)
    daily, project = root / "models" / "daily.sql", root / "infold.yml"
    text = project.read_text()

    def each_change(_: Path) -> Iterator[None]:
        yield
        daily.write_text(DAILY.replace("sum(revenue)", "sum(revenu)"))
        yield
        daily.write_text(DAILY)
        project.unlink()
        yield
        project.write_text(text)
        yield
        raise KeyboardInterrupt

    monkeypatch.setattr(changes, "each_change", each_change)
    done = infold("-C", str(root), "check", "--watch")

    lines = [line.partition("  ")[2] for line in done.stdout.splitlines()]
    assert [line.partition(" in ")[0] for line in lines] == [
        "3 models, 2 sources, no findings",
        "3 models, 2 sources, no findings",
    ]
    findings = [line for line in done.stderr.splitlines() if line.startswith(("un", "no-"))]
    assert [line.partition(":")[0] for line in findings] == ["unknown-column", "no-project"]
    assert done.exit_code == 130


def test_without_a_project_it_does_not_begin(tmp_path: Path, infold: Infold) -> None:
    """Where there is none, or no such target, it ends as any command."""
    assert infold("-C", str(tmp_path), "check", "--watch").exit_code == 2
    root = str(write(tmp_path))
    assert infold("-C", root, "--target", "no_such", "check", "--watch").exit_code == 2


@pytest.mark.deep
def test_it_sees_files_and_ends_by_ctrl_c(tmp_path: Path) -> None:
    """The program itself: a file is changed, it says so; Ctrl-C ends it with the code of that."""
    root = write(tmp_path)
    words = [sys.executable, "-m", "infold", "-C", str(root), "check", "--watch"]
    with subprocess.Popen(
        words,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONUNBUFFERED": "1", "INFOLD_ENGINE": "off"},
    ) as program:
        assert program.stdout is not None
        assert program.stderr is not None
        assert "3 models" in program.stdout.readline()
        time.sleep(0.1)
        (root / "models" / "daily.sql").write_text(DAILY.replace("FROM sessions", "FROM session"))
        assert "1 finding" in program.stderr.readline()
        program.send_signal(signal.SIGINT)
        rest = program.stderr.read()
        code = program.wait(timeout=30)

    assert code == 130
    assert "unknown-table" in rest
    assert "Stopped." in rest
