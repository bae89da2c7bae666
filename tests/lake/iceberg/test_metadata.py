"""What catalog and metadata files tell: whether a table
moved, infold's steps, other people's writes.
"""

from __future__ import annotations

import gzip
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from tests.declare.shop import write
from tests.lake.conftest import Put, snapshot

from infold.core.ports import History
from infold.declare import load
from infold.lake.iceberg.sql_catalog import sqlite_catalog
from infold.lake.iceberg.tables import IcebergLake
from infold.messages import errors

OURS = snapshot(1, None, step="a")


class TestMoved:
    """One row of the catalog tells whether a table is where it was last seen."""

    def test_a_table_where_it_was_has_not_moved(self, lake: IcebergLake, put: Put) -> None:
        """
        One elsewhere comes with its new location, one that was dropped or never existed with none.
        A dotted name brings its own namespace, as a source may be outside the project's.
        """
        here, there = put("events", [], None), put("daily", [], None)
        raw = put("clicks", [], None, namespace="raw")
        known = {
            "events": here,
            "daily": "before",
            "gone": "before",
            "clicks": "",
            "raw.clicks": "",
        }

        found = {"daily": there, "gone": None, "clicks": None, "raw.clicks": raw}
        assert lake.moved_tables(known) == found

    def test_without_a_catalog_there_are_no_tables(self, tmp_path: Path) -> None:
        """
        Nor in an empty file, which the engine makes first; and reading makes none. One that is no
        catalog is named.
        """
        file = tmp_path / "warehouse" / "catalog.db"
        lake = IcebergLake(sqlite_catalog(file), "shop")
        for _ in range(2):
            assert lake.moved_tables({"events": ""}) == {"events": None}
            assert (lake.metadata("events"), lake.history("events")) == (None, History())
            assert file.exists() or list(tmp_path.iterdir()) == []
            file.parent.mkdir(exist_ok=True)
            file.touch()
        file.write_text("no database" * 99)
        with pytest.raises(errors.InfoldError, match="catalog-unreadable"):
            IcebergLake(sqlite_catalog(file), "shop").metadata("events")


class TestHead:
    """Steps and foreign writes are read from the main branch of the metadata file."""

    @pytest.mark.parametrize(
        ("snapshots", "steps", "foreign"),
        [
            ([], {}, None),
            (
                [snapshot(2, 1, step="b"), snapshot(1, None, step="a"), snapshot(3, 2, run="r")],
                {"a": 1, "b": 2},
                None,
            ),
            (
                [OURS, snapshot(2, 1, "delete"), snapshot(3, 2), snapshot(4, 3, "replace")],
                {"a": 1},
                3,
            ),
            ([OURS, snapshot(2, 1, "delete"), snapshot(3, 2, step="b")], {"a": 1, "b": 3}, 2),
            ([OURS, snapshot(2, 1, "replace")], {"a": 1}, None),
            ([OURS, snapshot(2, 1, "append"), snapshot(3, 1, step="b")], {"a": 1, "b": 3}, None),
            ([snapshot(7, 6, step="a")], {"a": 7}, None),
        ],
        ids=[
            *("never written", "newest last", "the newest after ours", "below ours"),
            *("a rewrite", "another branch", "expired ancestors"),
        ],
    )
    def test_steps_and_foreign_writes(
        self,
        lake: IcebergLake,
        put: Put,
        snapshots: list[dict[str, Any]],
        steps: dict[str, int],
        foreign: int | None,
    ) -> None:
        """Whose snapshots the branch consists of; what only rewrites rows is nobody's write."""
        newest = snapshots[-1]["snapshot-id"] if snapshots else None
        place = put("events", snapshots, newest)

        head = lake.metadata("events")

        assert head is not None
        assert [*head.steps.items()] == [*steps.items()]
        assert (head.location, head.snapshot, head.foreign) == (place, newest, foreign)

    @pytest.mark.parametrize("operation", ["delete", "replace"])
    def test_earlier_files_tell_what_was_expired(
        self, lake: IcebergLake, put: Put, operation: str
    ) -> None:
        """
        Without a snapshot of infold's, earlier metadata files say how its last one became the
        present one, as far as the table names them and they are there. Its rows are in the oldest
        that is kept, if others only rewrote them.
        """
        ours, other, last = (
            snapshot(1, None, step="s"),
            snapshot(2, 1, operation),
            snapshot(3, 2, "replace"),
        )
        files = [put("events", [ours], 1), put("events", [ours, other], 2)]
        place = Path(put("events", [last], 3))
        content = json.loads(place.read_text())
        log = [{"metadata-file": file, "timestamp-ms": 1} for file in files]
        place.write_text(json.dumps({**content, "metadata-log": log}))

        head = lake.metadata("events")
        Path(files[1]).unlink()
        lost = lake.metadata("events")

        assert head is not None
        assert (dict(head.steps), head.snapshot) == ({"s": 1 if operation == "delete" else 3}, 3)
        assert head.foreign == (2 if operation == "delete" else None)
        assert lost is not None
        assert (dict(lost.steps), lost.foreign) == ({}, None)

    @pytest.mark.parametrize("prefix", ["", "file:", "file://"])
    def test_locations_are_paths_or_file_urls(
        self, lake: IcebergLake, put: Put, prefix: str
    ) -> None:
        """Engines write all of them; the file may be compressed, if a property asks for that."""
        place = put("events", [OURS], 1, prefix=prefix)
        for _ in range(2):
            head = lake.metadata("events")
            assert head is not None
            assert (head.location, head.snapshot) == (place, 1)
            file = Path(place.removeprefix(prefix))
            file.write_bytes(gzip.compress(file.read_bytes()))

    def test_a_missing_metadata_file_is_named(self, lake: IcebergLake, put: Put) -> None:
        """A missing metadata file is named in an error that says what may have happened."""
        Path(put("events", [], None)).unlink()

        with pytest.raises(errors.InfoldError, match="metadata-missing"):
            lake.metadata("events")


def test_history_counts_what_has_accumulated(lake: IcebergLake, put: Put) -> None:
    """Snapshots kept, the oldest one's time in microseconds, and commits since a rewrite."""
    ours = [snapshot(number, number - 1, step="b") for number in (3, 4)]
    put("events", [OURS, snapshot(2, 1, "replace"), *ours], 4)

    assert lake.history("events") == History(
        snapshots=4, oldest_at=10_000, since_rewrite=2, steady=0, main=(4, 3, 2, 1)
    )


def counted(id_: int, partitions: int, **files: int) -> dict[str, Any]:
    """A commit of ours to so many partitions, with counts of files as Iceberg writes them."""
    found = snapshot(id_, id_ - 1, "overwrite", step=str(id_))
    found["summary"]["changed-partition-count"] = str(partitions)
    found["summary"] |= {name.replace("_", "-"): str(count) for name, count in files.items()}
    return found


@pytest.mark.parametrize(
    ("newest", "steady"),
    [
        (counted(4, 1, added_data_files=1, deleted_data_files=1), 1),
        (counted(4, 1, added_data_files=1, deleted_data_files=3, removed_delete_files=2), 1),
        (counted(4, 1, added_data_files=2, deleted_data_files=1), 0),
        (counted(4, 1, added_data_files=1), 0),
        (counted(4, 1, added_delete_files=1), 0),
        (counted(4, 1, added_delete_files=1, removed_delete_files=1), 1),
        (counted(4, 2, added_data_files=2, deleted_data_files=2), 0),
        (counted(4, 2, deleted_data_files=2), 1),
        (counted(4, 0), 1),
        (snapshot(4, 3, step="c"), 0),
    ],
)
def test_history_tells_since_when_partitions_got_no_more_files(
    lake: IcebergLake, put: Put, newest: dict[str, Any], steady: int
) -> None:
    """
    Only a commit to one partition tells which partition lost the files it removed. Of others one
    may have gained what another lost, unless there are fewer in any.
    """
    put("events", [snapshot(2, None), counted(3, 1, added_data_files=1), newest], 4)

    assert lake.history("events").steady == steady


LOOK = """
import sys
from pathlib import Path
import infold.api
from infold.declare import load
from infold.lake.iceberg.sql_catalog import sqlite_catalog
from infold.lake.iceberg.tables import IcebergLake
from infold.lake.reading import formats, listing
from infold.ledger import open_ledger
load(Path(sys.argv[1]))
lake = IcebergLake(sqlite_catalog(Path(sys.argv[2])), "shop")
lake.moved_tables({"events": ""}), lake.metadata("events"), lake.history("events")
ledger = open_ledger("sqlite:///.infold/ledger.db", Path(sys.argv[1]))
ledger.acquire("r"), ledger.begin_run("r", "run", 0, {}), ledger.runs(), ledger.close()
slow = {"yaml", "sqlglot", "pyspark", "sqlalchemy", "pyiceberg", "pyarrow"}
sys.exit(", ".join(slow & set(sys.modules)) or 0)
"""


def test_a_look_imports_nothing_slow(tmp_path: Path, put: Put, catalog_db: Path) -> None:
    """
    An unchanged project, ledger and metadata are read without parsers, Arrow, SQLAlchemy or Spark,
    which a command with nothing to do cannot afford.
    """
    shop = write(tmp_path / "shop")
    load(shop)
    put("events", [snapshot(1, None, step="s")], 1)
    command = [sys.executable, "-c", LOOK, str(shop), str(catalog_db)]

    done = subprocess.run(command, capture_output=True, text=True, check=False)

    assert (done.returncode, done.stderr) == (0, "")
