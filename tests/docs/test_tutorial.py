"""The tutorial can be typed as it is, and shows what then appears; so does the README."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

DOCS = Path(__file__).parents[2] / "docs"
README = DOCS.parent / "README.md"
STEP = re.compile(
    r"^```sh\n(.*?)^```$(?:\n\n(?:\S[^\n]*\n\n)?```text\n(.*?)^```$)?", re.MULTILINE | re.DOTALL
)
END = "@ end of a block"


def blocks(page: str, language: str) -> str:
    """All code of a page in one language, as one text."""
    fenced = rf"^```{language}\n(.*?)^```$"
    text = (DOCS / page).read_text(encoding="utf-8")
    return "\n".join(re.findall(fenced, text, re.MULTILINE | re.DOTALL))


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


@pytest.mark.spark
def test_the_tutorial_runs_as_it_is(tmp_path: Path) -> None:
    """The tutorial's commands succeed and print what it shows, with an engine as at a terminal."""
    bin_folder = Path(sys.executable).parent
    path = f"{bin_folder}{os.pathsep}{os.environ['PATH']}"
    steps = STEP.findall((DOCS / "tutorial.md").read_text(encoding="utf-8"))

    done = subprocess.run(
        ["bash", "-eu", "-o", "pipefail", "-c", f"\necho '{END}'\n".join(sh for sh, _ in steps)],
        cwd=tmp_path,
        env=os.environ | {"PATH": path, "INFOLD_ENGINE": "on"},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    ended = subprocess.run(
        [str(bin_folder / "infold"), "-C", str(tmp_path / "shop"), "engine", "stop"],
        stdout=subprocess.PIPE,
        text=True,
        check=False,
    )

    assert done.returncode == 0, done.stdout
    # It ends by itself where memory is short.
    assert ended.stdout in ("The engine has ended.\n", "No engine was running.\n")
    assert (tmp_path / "shop" / "daily.csv").exists()
    printed = done.stdout.split(END)
    wrong = [
        (line, text)
        for (_, screen), text in zip(steps, printed, strict=True)
        for line in lines_of(screen)
        if line not in lines_of(text)
    ]
    assert wrong == []
    readme = README.read_text(encoding="utf-8")
    shown = "".join(re.findall(r"^```text\n(.*?)^```$", readme, re.MULTILINE | re.DOTALL))
    expected = [line for line in lines_of(shown) if not line.startswith("$ ")]
    assert [line for line in expected if line not in lines_of(done.stdout)] == []
