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
from tests.lake.conftest import Put, snapshot

from infold.core.stored_table import History
from infold.lake.iceberg.sqlite_catalog import sqlite_catalog
from infold.lake.iceberg.tables import IcebergLake
from infold.messages import errors


class TestMoved:
    """One row of the catalog tells whether a table is where it was last seen."""

    def test_a_table_where_it_was_has_not_moved(self, lake: IcebergLake, put: Put) -> None:
        """A table at its last location has not moved, and
        one elsewhere comes with its new location.
        """
        here, there = put("events", [], None), put("daily", [], None)

        assert lake.moved_tables({"events": here, "daily": "before"}) == {"daily": there}

    def test_a_dropped_table_has_no_location(self, lake: IcebergLake) -> None:
        """A dropped table has no location; one that never existed has moved to nowhere, too."""
        assert lake.moved_tables({"events": "before", "new": ""}) == {"events": None, "new": None}

    def test_without_a_catalog_there_are_no_tables(self, tmp_path: Path) -> None:
        """Without a catalog file there are no tables, and reading makes no file."""
        lake = IcebergLake(sqlite_catalog(tmp_path / "warehouse" / "catalog.db"), "shop")

        assert lake.moved_tables({"events": ""}) == {"events": None}
        assert lake.metadata("events") is None
        assert lake.history("events") == History()
        assert list(tmp_path.iterdir()) == []

    def test_an_empty_catalog_file_has_no_tables(self, tmp_path: Path) -> None:
        """An empty catalog file has no tables: the engine makes the file before its tables."""
        (tmp_path / "catalog.db").touch()

        assert (
            IcebergLake(sqlite_catalog(tmp_path / "catalog.db"), "shop").metadata("events") is None
        )

    def test_a_file_of_another_kind_is_named(self, tmp_path: Path) -> None:
        """A file that is no catalog is named in an error."""
        (tmp_path / "catalog.db").write_text("no database" * 99)

        with pytest.raises(errors.InfoldError, match="catalog-unreadable"):
            IcebergLake(sqlite_catalog(tmp_path / "catalog.db"), "shop").metadata("events")

    def test_a_dotted_name_has_its_own_namespace(self, lake: IcebergLake, put: Put) -> None:
        """A dotted name brings its own namespace, as a source may be outside the project's."""
        place = put("clicks", [], None, namespace="raw")

        assert lake.moved_tables({"raw.clicks": "", "clicks": ""}) == {
            "raw.clicks": place,
            "clicks": None,
        }


class TestHead:
    """Steps and foreign writes are read from the main branch of the metadata file."""

    def test_steps_are_mapped_to_snapshots_newest_last(self, lake: IcebergLake, put: Put) -> None:
        """Steps are mapped to their snapshots, newest last, so that a committed step is
        recognised.
        """
        place = put(
            "events",
            [snapshot(2, 1, step="r1-2"), snapshot(1, None, step="r1-1"), snapshot(3, 2, run="r")],
            3,
        )

        head = lake.metadata("events")

        assert head is not None
        assert list(head.steps.items()) == [("r1-1", 1), ("r1-2", 2)]
        assert (head.location, head.snapshot, head.foreign) == (place, 3, None)

    def test_a_table_without_snapshots_has_no_writes(self, lake: IcebergLake, put: Put) -> None:
        """A table that was created and never written has neither steps nor foreign writes."""
        put("events", [], None)

        head = lake.metadata("events")
        assert head is not None
        assert (head.snapshot, head.foreign, head.steps) == (None, None, {})

    def test_a_write_after_ours_is_foreign(self, lake: IcebergLake, put: Put) -> None:
        """The newest write of others after infold's last one is named as foreign."""
        put(
            "events",
            [
                snapshot(1, None, step="r1-1"),
                snapshot(2, 1, "delete"),
                snapshot(3, 2, "append"),
                snapshot(4, 3, "replace"),
            ],
            4,
        )

        head = lake.metadata("events")
        assert head is not None
        assert head.foreign == 3

    def test_a_write_below_ours_is_foreign(self, lake: IcebergLake, put: Put) -> None:
        """A write of others between two of infold's is foreign: the second has its rows."""
        put(
            "events",
            [
                snapshot(1, None, step="r1-1"),
                snapshot(2, 1, "delete"),
                snapshot(3, 2, step="r1-2"),
            ],
            3,
        )

        head = lake.metadata("events")
        assert head is not None
        assert (head.foreign, dict(head.steps)) == (2, {"r1-1": 1, "r1-2": 3})

    def test_a_compaction_by_others_is_not_a_foreign_write(
        self, lake: IcebergLake, put: Put
    ) -> None:
        """A compaction is not a foreign write, whoever does it, because it keeps the rows."""
        put("events", [snapshot(1, None, step="r1-1"), snapshot(2, 1, "replace")], 2)

        head = lake.metadata("events")
        assert head is not None
        assert (head.snapshot, head.foreign) == (2, None)

    def test_other_branches_do_not_count(self, lake: IcebergLake, put: Put) -> None:
        """Writes to other branches and staged snapshots do not count."""
        put(
            "events",
            [snapshot(1, None, step="r1-1"), snapshot(2, 1, "append"), snapshot(3, 1, step="r1-2")],
            3,
        )

        head = lake.metadata("events")
        assert head is not None
        assert (head.snapshot, head.foreign) == (3, None)

    def test_expired_ancestors_end_the_history(self, lake: IcebergLake, put: Put) -> None:
        """Where ancestors have expired, the history consists of the snapshots that are left."""
        put("events", [snapshot(7, 6, step="r7-1")], 7)

        head = lake.metadata("events")
        assert head is not None
        assert head.steps == {"r7-1": 7}

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

    @pytest.mark.parametrize("prefix", ["file:", "file://"])
    def test_locations_are_paths_or_file_urls(
        self, lake: IcebergLake, put: Put, prefix: str
    ) -> None:
        """Locations are understood as paths and as file URLs, because engines write both."""
        place = put("events", [snapshot(1, None, step="s")], 1, prefix=prefix)

        head = lake.metadata("events")
        assert head is not None
        assert (head.location, head.snapshot) == (place, 1)

    def test_metadata_may_be_compressed(self, lake: IcebergLake, put: Put) -> None:
        """Compressed metadata files, which a table property asks for, are read."""
        place = Path(put("events", [], None))
        content = {"snapshots": [snapshot(5, None, step="s")], "current-snapshot-id": 5}
        place.write_bytes(gzip.compress(json.dumps(content).encode()))

        head = lake.metadata("events")
        assert head is not None
        assert head.snapshot == 5

    def test_a_missing_metadata_file_is_named(self, lake: IcebergLake, put: Put) -> None:
        """A missing metadata file is named in an error that says what may have happened."""
        Path(put("events", [], None)).unlink()

        with pytest.raises(errors.InfoldError, match="metadata-missing"):
            lake.metadata("events")


def test_history_counts_what_has_accumulated(lake: IcebergLake, put: Put) -> None:
    """History counts snapshots kept, the oldest one's time
    in microseconds, and commits since the last rewrite.
    """
    put(
        "events",
        [
            snapshot(1, None, step="a"),
            snapshot(2, 1, "replace"),
            snapshot(3, 2, step="b"),
            snapshot(4, 3, step="c"),
        ],
        4,
    )

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
    ids=[
        "a file for a file",
        "one for three",
        "two for one",
        "a new one",
        "deletes",
        "deletes again",
        "one may have gained what another lost",
        "fewer in any",
        "nothing",
        "no counts",
    ],
)
def test_history_tells_since_when_partitions_got_no_more_files(
    lake: IcebergLake, put: Put, newest: dict[str, Any], steady: int
) -> None:
    """Only a commit to one partition tells which partition lost the files it removed."""
    put("events", [snapshot(2, None), counted(3, 1, added_data_files=1), newest], 4)

    assert lake.history("events").steady == steady


def test_looking_imports_neither_pyiceberg_nor_pyarrow(put: Put, catalog_db: Path) -> None:
    """Reading metadata imports neither pyiceberg nor pyarrow,
    which a command with nothing to do cannot afford.
    """
    put("events", [snapshot(1, None, step="s")], 1)
    code = (
        "import sys; from pathlib import Path; from infold.lake.iceberg.tables import IcebergLake\n"
        "from infold.lake.iceberg.sqlite_catalog import sqlite_catalog\n"
        "from infold.lake.reading import formats, listing\n"
        "lake = IcebergLake(sqlite_catalog(Path(sys.argv[1])), 'shop')\n"
        "lake.moved_tables({'events': ''})\n"
        "lake.metadata('events'); lake.history('events')\n"
        "sys.exit(bool({'pyiceberg', 'pyarrow', 'sqlalchemy'} & set(sys.modules)))"
    )

    assert subprocess.run([sys.executable, "-c", code, catalog_db], check=False).returncode == 0
