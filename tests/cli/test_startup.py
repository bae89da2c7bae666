"""What is imported when: Spark only to compute, rich only to draw on a terminal."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from infold.cli.init import write

PROBE = """
import sys
from infold.cli import cli
try:
    cli.main(sys.argv[1:])
except SystemExit as left:
    slow = {"pyspark", "py4j", "rich", "pyiceberg", "pandas"}
    print("IMPORTED", *sorted(slow & set(sys.modules)), file=sys.stderr)
    sys.exit(left.code)
"""


def imported(*words: str) -> tuple[int, str]:
    """The exit code of a command in a fresh process, and what of the slow modules it imported."""
    done = subprocess.run(
        [sys.executable, "-c", PROBE, *words], capture_output=True, text=True, check=False
    )
    return done.returncode, done.stderr.partition("IMPORTED")[2].strip()


@pytest.fixture(scope="module")
def shop(tmp_path_factory: pytest.TempPathFactory) -> str:
    """The starter project."""
    directory: Path = tmp_path_factory.mktemp("shop")
    write(directory)
    return str(directory)


@pytest.mark.parametrize(
    "words",
    [
        ["--help"],
        ["plan"],
        ["status"],
        ["history"],
        ["check"],
        ["explain", "sessions"],
        ["run", "--select", "daily"],  # its input was never built: nothing to do
    ],
    ids=" ".join,
)
def test_commands_that_compute_nothing_import_nothing_slow(shop: str, words: list[str]) -> None:
    """They answer within the time of a start of Python."""
    assert imported("-C", shop, *words) == (0, "")
