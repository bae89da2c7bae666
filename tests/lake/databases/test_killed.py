"""A reading that is killed with SIGKILL at any of its write points, and what plans see then."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from tests.lake.databases.folder import DAYS, Database, as_extracted, declare

from infold import api
from infold.core.interval import micros_of

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


def planned(folder: Path) -> tuple[int, Mapping[int, int]]:
    """What `infold plan` says: how many files are new, and how many rows each day has."""
    made = api.plan(api.open_project(folder))
    files = next(step.files for step in made.steps if step.model == "taken")
    assert files is not None
    assert files.estimate is not None
    return len(files.new), {state.cell.start: state.rows for state in files.estimate}


def by_day(rows: Iterable[tuple[Any, ...]]) -> tuple[int, Mapping[int, int]]:
    """The same of some rows: a file and a cell for each day."""
    days: dict[int, int] = {}
    for _, at, _ in rows:
        start = micros_of(datetime.fromisoformat(f"{at}"[:10]).replace(tzinfo=UTC))
        days[start] = days.get(start, 0) + 1
    return len(days), days


def test_a_plan_sees_one_whole_reading_and_the_next_one_goes_on(tmp_path: Path) -> None:
    """
    Days change, come and go. Before the list is replaced nothing of it counts, after it all does,
    for a plan that comes before any other reading as well.
    """
    declare(tmp_path, DAYS)
    database = Database(tmp_path, key="at", reread=30)
    database.run(
        "CREATE TABLE t (id INTEGER, at DATETIME, v TEXT)",
        "INSERT INTO t VALUES (1, '2024-03-01', 'a'), (2, '2024-03-02', 'a')",
    )
    database.extract()
    seen = set()
    for die_at in range(1, 20):
        before = database.rows()
        database.run(
            f"UPDATE t SET v = 'v{die_at}'",
            f"INSERT INTO t VALUES ({die_at + 2}, '2024-03-{die_at % 9 + 3:02}', 'new')",
            f"INSERT INTO t SELECT id + 100 * {die_at}, at, 'more' FROM t WHERE v <> 'new'",
            "DELETE FROM t WHERE at = (SELECT min(at) FROM t)",
        )
        after = as_extracted(database.run("SELECT id, at, v FROM t"))
        ended = read(tmp_path, die_at)
        found = database.rows()

        assert found in (before, after)
        assert planned(tmp_path) == by_day(found)
        seen.add(found == after)
        database.extract()

        assert database.rows() == after
        if ended == 0:
            break
        assert ended == -signal.SIGKILL

    assert die_at > 4, "the list, and each of two days"
    assert seen == {True, False}
