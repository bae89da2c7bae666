"""Folders of Iceberg tables, and what their metadata says."""

from __future__ import annotations

import gzip
import json
import shutil
import sqlite3
import subprocess
import sys
import threading
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from tests.declare.shop import write
from tests.lake.conftest import Put, snapshot

from infold.core.ports import History
from infold.core.swap import Renaming
from infold.declare import load
from infold.lake.iceberg.sql_catalog import sqlite_catalog
from infold.lake.iceberg.tables import IcebergLake
from infold.lake.stores import places
from infold.messages import errors


def point(catalog_db: Path, name: str, at: str) -> None:
    """A table's metadata lies there."""
    with closing(sqlite3.connect(catalog_db)) as connection, connection:
        connection.execute(
            "UPDATE iceberg_tables SET metadata_location = ? WHERE table_name = ?", (at, name)
        )


@pytest.fixture
def lie(catalog_db: Path, put: Put) -> Put:
    """Puts a table whose metadata lies in a folder of the warehouse."""

    def lie(name: str, folder: str = "") -> str:
        path = catalog_db.parent / "shop" / (folder or name) / "metadata" / "1.metadata.json"
        path.parent.mkdir(parents=True, exist_ok=True)
        shutil.move(put(name, [snapshot(1, None, step="s")], 1), path)
        point(catalog_db, name, str(path))
        return str(path)

    return lie


def beside(catalog_db: Path) -> IcebergLake:
    """The same warehouse, as another catalog has it."""
    return IcebergLake(sqlite_catalog(catalog_db.parent / "x.db"), "shop", catalog_db.parent)


class TestFolders:
    """A table that was renamed still lies in the folder where it was made."""

    def test_the_folder_of_another_table_is_never_deleted(
        self, lake: IcebergLake, lie: Put
    ) -> None:
        """A table is dropped with the folder it lies in, whatever its name is by then, but not if
        another one lies in that folder.
        """
        at = lie("daily")
        inside = lie("inside", "daily/deeper")
        assert lake.drop("daily")
        assert Path(inside).exists()
        assert lake.drop("inside")
        old, new = lie("daily"), lie("daily__b")
        assert lake.rename([Renaming("daily", "daily__a", old), Renaming("daily__b", "daily", new)])

        assert lake.drop("daily__a")

        assert [Path(one).exists() for one in (at, old, new)] == [False, False, True]

    def test_a_leftover_folder_is_deleted_only_if_no_table_lies_there(
        self, lake: IcebergLake, lie: Put, catalog_db: Path
    ) -> None:
        """What a name without a table left is deleted, unless a renamed table lies there. A new
        table has the usual folder, or one of its own then.
        """
        at, shop = lie("daily__kept", "daily"), catalog_db.parent / "shop"
        leftover = shop / "week" / "data.parquet"
        leftover.parent.mkdir(parents=True)
        leftover.touch()

        assert not lake.drop("daily")
        assert not lake.drop("week")

        assert Path(at).exists()
        assert not leftover.exists()
        folder = lake.folder_for_new("daily")
        assert lake.folder_for_new("week") == str(shop / "week")
        assert folder is not None
        assert Path(folder).parent == shop
        assert not Path(folder).exists()


class TestSharedWarehouses:
    """A warehouse may be that of several catalogs, none of which knows the others' tables."""

    @pytest.mark.parametrize("warehouse", ["s3://lake/wh", "/lake/wh"])
    def test_each_table_has_a_folder_of_its_own(self, catalog_db: Path, warehouse: str) -> None:
        """Two catalogs that know no table of each other do not put one into the same folder."""
        lakes = [
            IcebergLake(sqlite_catalog(file), "shop", warehouse)
            for file in (catalog_db, catalog_db.parent / "other.db")
        ]

        folders = [lake.folder_for_new("daily") or "" for lake in lakes]

        assert all(one.startswith(f"{warehouse}/shop/daily__") for one in folders)
        assert folders[0] != folders[1]

    def test_the_folder_of_another_catalogs_table_stays(
        self, lake: IcebergLake, catalog_db: Path, lie: Put
    ) -> None:
        """
        A catalog that has no such table deletes nothing, wherever another one has it, and has no
        orphan in it. One in the warehouse has folders without a suffix, which no other's have.
        """
        other, usual = beside(catalog_db), str(catalog_db.parent / "shop" / "daily")
        assert lake.folder_for_new("daily") == usual != other.folder_for_new("daily")
        at = lie("daily")

        assert not other.drop("daily")

        assert lake.location("daily") == at
        assert Path(at).exists()
        assert (list(lake.made_tables()), list(other.made_tables())) == (["daily"], [])

    def test_a_table_of_another_catalog_in_a_usual_folder_stays(
        self, lake: IcebergLake, catalog_db: Path, lie: Put
    ) -> None:
        """Earlier versions made it there: nothing is put beside it, and it is not deleted."""
        at = Path(lie("daily"))
        catalog_db.rename(catalog_db.parent / "x.db")
        other = sqlite_catalog(catalog_db.parent / "x.db")

        assert lake.location("daily") is None
        folder = lake.folder_for_new("daily")
        assert not lake.drop("daily")

        assert folder is not None
        assert folder.startswith(f"{at.parent.parent}__")
        assert other.find([("shop", "daily")]) == {("shop", "daily"): str(at)}
        assert at.exists()

    def test_a_folder_around_the_tables_of_others_stays(
        self, lake: IcebergLake, catalog_db: Path, put: Put
    ) -> None:
        """A table that lies right in the namespace is dropped, and the others' folders stay."""
        theirs = catalog_db.parent / "shop" / "weekly__1a2b3c4d" / "metadata" / "1.metadata.json"
        theirs.parent.mkdir(parents=True)
        theirs.touch()
        put("daily", [], None)
        point(catalog_db, "daily", f"{catalog_db.parent}/shop/metadata/1.metadata.json")

        assert lake.drop("daily")

        assert theirs.exists()

    def test_only_a_folder_that_the_catalog_named_is_deleted(
        self, catalog_db: Path, put: Put, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """What lies where a table would is another catalog's, and stays."""
        lake = IcebergLake(sqlite_catalog(catalog_db), "shop", "s3://lake/wh")
        put("daily", [], None)
        point(catalog_db, "daily", "s3://lake/wh/shop/daily__b/metadata/1.metadata.json")
        deleted: list[str] = []
        monkeypatch.setattr(places, "is_folder", lambda _: True)
        monkeypatch.setattr(places, "delete_folder", deleted.append)

        assert lake.drop("daily")
        assert not lake.drop("daily")

        assert deleted == ["s3://lake/wh/shop/daily__b"]


def names(lake: IcebergLake) -> dict[str, str]:
    """The tables of the namespace, and where they are."""
    return dict(lake.catalog.locations(lake.namespace))


class TestRenamed:
    """All renamings are one transaction: all happen, or none."""

    def test_two_pairs_change_names(self, lake: IcebergLake, put: Put) -> None:
        """
        Tables get the names that others had, and those are kept under other names. Two may get each
        other's name. Whoever finds two tables by one look sees both before a swap or after it: it
        polls during 50 swaps.
        """
        at = {name: put(name, [], None) for name in ("daily", "daily__b", "week", "week__b")}
        seen: set[tuple[str | None, str | None]] = set()
        stop = threading.Event()

        def poll() -> None:
            while not stop.is_set():
                found = lake.moved_tables({"daily": "", "week": ""})
                seen.add((found["daily"], found["week"]))

        def rename(*pairs: tuple[str, str]) -> None:
            assert lake.rename([Renaming(name, to, at[name]) for name, to in pairs])
            moved = {to: at.pop(name) for name, to in pairs}
            at.update(moved)
            assert names(lake) == at

        reader = threading.Thread(target=poll)
        reader.start()
        places = {(at["daily"], at["week"]), (at["daily__b"], at["week__b"])}
        for _ in range(50):
            both = [(name, f"{name}__b") for name in ("daily", "week")]
            rename(*(pair for one, other in both for pair in ((one, other), (other, one))))
        stop.set()
        reader.join()

        assert seen
        assert seen <= places
        kept = [(name, f"{name}__a") for name in ("daily", "week")]
        rename(*kept, ("daily__b", "daily"), ("week__b", "week"))

    def test_tables_of_other_namespaces_stay(
        self, lake: IcebergLake, put: Put, tmp_path: Path
    ) -> None:
        """One of the same name in another namespace is not renamed; without a catalog none is."""
        put("daily", [], None, namespace="other")

        assert not lake.rename([Renaming("daily", "daily__a", put("daily", [], None) + "x")])
        assert lake.rename([Renaming("daily", "daily__a", names(lake)["daily"])])

        assert "daily" in lake.catalog.names("other")
        none = IcebergLake(sqlite_catalog(tmp_path / "none.db"), "shop")
        assert not none.rename([Renaming("daily", "daily__a", "x")])
        assert not (tmp_path / "none.db").exists()


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
            ([snapshot(2, 1, step="b"), snapshot(1, None, step="a"), snapshot(3, 2, run="r")],
             {"a": 1, "b": 2}, None),
            ([OURS, snapshot(2, 1, "delete"), snapshot(3, 2), snapshot(4, 3, "replace")], {"a": 1},
             3),
            ([OURS, snapshot(2, 1, "delete"), snapshot(3, 2, step="b")], {"a": 1, "b": 3}, 2),
            ([OURS, snapshot(2, 1, "replace")], {"a": 1}, None),
            ([OURS, snapshot(2, 1, "append"), snapshot(3, 1, step="b")], {"a": 1, "b": 3}, None),
            ([snapshot(7, 6, step="a")], {"a": 7}, None),
        ],
        ids=[
            *("never written", "newest last", "the newest after ours", "below ours"),
            *("a rewrite", "another branch", "expired ancestors"),
        ],
    )  # fmt: skip
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
        """Engines write all of them; the file may be compressed, if a property asks for that. A
        missing one is named in an error that says what may have happened.
        """
        place = put("events", [OURS], 1, prefix=prefix)
        file = Path(place.removeprefix(prefix))
        for _ in range(2):
            head = lake.metadata("events")
            assert head is not None
            assert (head.location, head.snapshot) == (place, 1)
            file.write_bytes(gzip.compress(file.read_bytes()))
        file.unlink()
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
slow = {"yaml", "sqlglot", "pyspark", "pyiceberg", "pyarrow"}
sys.exit(", ".join(slow & set(sys.modules)) or 0)
"""


@pytest.mark.deep
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
