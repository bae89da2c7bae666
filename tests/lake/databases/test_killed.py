"""A reading that is killed with SIGKILL at any of its write points; the next one is right."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from tests.lake.databases.folder import Database

pytestmark = pytest.mark.deep

ROOT = Path(__file__).parents[3]
READ = """
import sys
from pathlib import Path
from tests.lake.databases.folder import Database
Database(Path(sys.argv[1]), key="at", reread=30).extract()
"""


def read(folder: Path, die_at: int) -> int:
    """Read in a process of its own, which dies at a write point; how it ended."""
    return subprocess.run(
        [sys.executable, "-c", READ, str(folder)],
        cwd=ROOT,
        env={**os.environ, "INFOLD_CRASH_AT": str(die_at), "PYTHONPATH": str(ROOT)},
        check=False,
    ).returncode


def test_the_next_reading_finishes_or_repeats_it(tmp_path: Path) -> None:
    """Days change, come and go; before the list is replaced nothing counts, after it all does."""
    database = Database(tmp_path, key="at", reread=30)
    database.run(
        "CREATE TABLE t (id INTEGER, at DATETIME, v TEXT)",
        "INSERT INTO t VALUES (1, '2024-03-01', 'a'), (2, '2024-03-02', 'a')",
    )
    database.extract()
    for die_at in range(1, 20):
        before = database.rows()
        database.run(
            f"UPDATE t SET v = 'v{die_at}'",
            f"INSERT INTO t VALUES ({die_at + 2}, '2024-03-{die_at % 9 + 3:02}', 'new')",
            "DELETE FROM t WHERE id = (SELECT min(id) FROM t)",
        )
        ended = read(tmp_path, die_at)
        listed = len(database.files())
        database.extract()

        assert {row[0] for row in database.rows()} == {
            row[0] for row in database.run("SELECT id FROM t")
        }
        assert database.rows() != before
        assert {row[2] for row in database.rows()} <= {f"v{die_at}", "new"}
        if ended == 0:
            break
        assert ended == -signal.SIGKILL
        assert listed > 0

    assert die_at > 4, "the list, and each of two days"
