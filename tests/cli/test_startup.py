"""Which modules are imported when: Spark only to compute, rich only to draw on a terminal."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from infold.cli.init import write_project

pytestmark = pytest.mark.deep

PROBE = """
import json, sys
from infold.cli import cli

slow = {"pyspark", "py4j", "rich", "pyiceberg", "pandas", "infold.running.telling"}
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
