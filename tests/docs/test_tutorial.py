"""The tutorial works as it is written."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

DOCS = Path(__file__).parents[2] / "docs"


def blocks(page: str, language: str) -> str:
    """All code of a page in one language, as one text."""
    fenced = rf"^```{language}\n(.*?)^```$"
    return "\n".join(re.findall(fenced, (DOCS / page).read_text(), re.MULTILINE | re.DOTALL))


@pytest.mark.spark
def test_the_tutorial_runs_as_it_is(tmp_path: Path) -> None:
    """The tutorial's commands succeed in order, and other readers can read its tables."""
    bin_folder = Path(sys.executable).parent

    done = subprocess.run(
        ["bash", "-eu", "-o", "pipefail", "-c", blocks("tutorial.md", "sh")],
        cwd=tmp_path,
        env=os.environ | {"PATH": f"{bin_folder}{os.pathsep}{os.environ['PATH']}"},
        capture_output=True,
        text=True,
        check=False,
    )

    assert done.returncode == 0, done.stdout + done.stderr
    assert (tmp_path / "shop" / "daily.csv").exists()
    reading = subprocess.run(
        [sys.executable, "-c", blocks("concepts/storage.md", "python") + "\nprint(top)"],
        cwd=tmp_path / "shop",
        capture_output=True,
        text=True,
        check=False,
    )
    assert reading.returncode == 0, reading.stderr
    assert "datetime.date(2024, 3, 8)" in reading.stdout
