"""The tutorial can be typed as it is, and shows what then appears; so does the README."""

from __future__ import annotations

import re
import shlex
import subprocess
from pathlib import Path

import pytest
from click.testing import CliRunner

from infold.cli import cli

DOCS = Path(__file__).parents[2] / "docs"
README = DOCS.parent / "README.md"
STEP = re.compile(
    r"^```sh\n(.*?)^```$(?:\n\n(?:\S[^\n]*\n\n)?```text\n(.*?)^```$)?", re.MULTILINE | re.DOTALL
)
COMMAND = re.compile(r"^(infold .*)$", re.MULTILINE)


def lines_of(screen: str) -> list[str]:
    """The lines of a screen, without what differs from run to run: times, names of runs, widths."""
    for pattern, instead in (
        (r"\d+(\.\d+)? s\b", "N s"),
        (r"\d{8}T\d{6}-\w+", "RUN"),
        (r"as of \d{4}-\d\d-\d\d \d\d:\d\d:\d\d", "as of NOW"),
        (r"\b20\d\d-\d\d-\d\d \d\d:\d\d(:\d\d)? \(.* ago\)", "THEN"),
        (r"-{3,}", "---"),
        (r" +", " "),
    ):
        screen = re.sub(pattern, instead, screen)
    return [line.strip() for line in screen.splitlines() if line.strip()]


def printed(script: str) -> str:
    """What a block prints; infold runs in this process, so that Java starts once for all lines."""
    found = ""
    for part in COMMAND.split(script):
        if COMMAND.match(part):
            words = shlex.split(part, comments=True)[1:]
            done = CliRunner().invoke(cli, words, catch_exceptions=False)
            assert done.exit_code == 0, f"{part}\n{done.output}"
            found += done.output
        else:
            subprocess.run(["bash", "-eu", "-o", "pipefail", "-c", part], check=True)
    return found


@pytest.mark.spark
def test_the_tutorial_runs_as_it_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The tutorial's commands succeed and print what it shows; so does what the README shows."""
    monkeypatch.chdir(tmp_path)
    everything, wrong = "", []
    for script, screen in STEP.findall((DOCS / "tutorial.md").read_text(encoding="utf-8")):
        text = printed(script)
        if Path("shop").exists():
            monkeypatch.chdir("shop")  # as the first block does
        everything += text
        wrong += [(line, text) for line in lines_of(screen) if line not in lines_of(text)]

    assert wrong == []
    assert Path("daily.csv").exists()
    readme = README.read_text(encoding="utf-8")
    shown = "".join(re.findall(r"^```text\n(.*?)^```$", readme, re.MULTILINE | re.DOTALL))
    expected = [line for line in lines_of(shown) if not line.startswith("$ ")]
    assert [line for line in expected if line not in lines_of(everything)] == []
