"""What a plan says of files that were extracted of a database: each reading writes new ones."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.lake.databases.folder import DAYS, Database, declare
from tests.planning.taken_in import take_in

from infold import api
from infold.core.plan import FileDiff
from infold.planning.removals import excessive_removals


class Bought:
    """A project over a table of ten rows on each of three days, all of them taken in."""

    def __init__(self, root: Path, keys: str) -> None:
        declare(root, keys)
        self.database = Database(root, key="at" if keys else None, reread=30 if keys else None)
        self.project = api.open_project(root)
        self.database.run("CREATE TABLE t (id INTEGER, at DATETIME, v TEXT)")
        for id_ in range(30):
            day = id_ // 10 + 1
            self.database.run("INSERT INTO t VALUES (?, ?, 'a')", values=(id_, f"2024-03-0{day}"))
        self.database.extract()
        take_in(self.project, "taken", "raw.t")

    def changes(self, statement: str) -> tuple[FileDiff, str]:
        """What a plan says after a statement and a reading, and what a run is refused for."""
        self.database.run(statement)
        self.database.extract()
        plan = api.plan(self.project)
        files = next(step.files for step in plan.steps if step.model == "taken")
        assert files is not None
        return files, dict(excessive_removals(self.project, plan)).get("raw.t", "")


def test_a_day_with_other_rows_is_a_replaced_file(tmp_path: Path) -> None:
    """So a day that goes while the others change is one file of three that is lost."""
    bought = Bought(tmp_path, DAYS)
    files, refused = bought.changes("UPDATE t SET v = 'b', at = max(at, '2024-03-02')")

    assert (len(files.new), files.replaced, files.unchanged) == (2, 2, 0)
    assert [Path(file.path).name[:10] for file in files.lost] == ["2024-03-01"]
    assert not refused


@pytest.mark.parametrize(
    ("statement", "refused"),
    [
        ("DELETE FROM t WHERE id > 4", ""),
        ("DELETE FROM t", "1 of 1 files replaced by ones with fewer rows: 10 of 10 rows gone"),
    ],
)
def test_a_whole_table_is_one_file_that_is_replaced(
    tmp_path: Path, statement: str, refused: str
) -> None:
    """One without rows is refused by its footer, as the file of ten rows that it replaces."""
    files, says = Bought(tmp_path, "").changes(statement)

    assert (len(files.new), files.replaced, files.lost) == (1, 1, ())
    assert says == refused
