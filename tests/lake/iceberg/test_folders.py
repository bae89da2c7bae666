"""
Each table has a folder of its own, and no folder of another table is ever deleted.

Tables get other names in the catalog, all in one transaction.
"""

from __future__ import annotations

import shutil
import sqlite3
import threading
from contextlib import closing
from pathlib import Path

import pytest
from tests.lake.conftest import Put, snapshot

from infold.core.swap import Renaming
from infold.lake.iceberg.sql_catalog import sqlite_catalog
from infold.lake.iceberg.tables import IcebergLake
from infold.lake.stores import places


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
        """What a name without a table left is deleted, unless a renamed table lies there."""
        at = lie("daily__kept", "daily")
        leftover = catalog_db.parent / "shop" / "week" / "data.parquet"
        leftover.parent.mkdir(parents=True)
        leftover.touch()

        assert not lake.drop("daily")
        assert not lake.drop("week")

        assert Path(at).exists()
        assert not leftover.exists()

    def test_a_new_table_does_not_lie_down_where_another_one_lies(
        self, lake: IcebergLake, lie: Put, catalog_db: Path
    ) -> None:
        """A new table has the usual folder, or one of its own if a renamed table lies there."""
        lie("daily__kept", "daily")

        folder = lake.folder_for_new("daily")

        assert lake.folder_for_new("week") == str(catalog_db.parent / "shop" / "week")
        assert folder is not None
        assert Path(folder).parent == catalog_db.parent / "shop"
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

    @pytest.mark.parametrize(
        "wrong",
        [
            Renaming("week", "week__a", "elsewhere"),
            Renaming("gone", "gone__a", "elsewhere"),
            Renaming("week", "taken", ""),
        ],
        ids=["moved", "gone", "taken"],
    )
    def test_one_that_moved_stops_all(self, lake: IcebergLake, put: Put, wrong: Renaming) -> None:
        """If one table moved or is gone, or another has its new name, nothing is renamed."""
        before = {name: put(name, [], None) for name in ("daily", "week", "taken")}
        one = wrong if wrong.location else Renaming(wrong.table, wrong.to, before[wrong.table])

        assert not lake.rename([Renaming("daily", "daily__a", before["daily"]), one])

        assert names(lake) == before

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

    def test_of_many_that_swap_the_same_names_one_wins_each_time(
        self, lake: IcebergLake, put: Put
    ) -> None:
        """Of renamings at the same time that expect the same state, exactly one happens."""
        at = {name: put(name, [], None) for name in ("a", "b")}
        wins: list[bool] = []

        def swap() -> None:
            wins.append(lake.rename([Renaming("a", "b", at["a"]), Renaming("b", "a", at["b"])]))

        threads = [threading.Thread(target=swap) for _ in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()

        assert sorted(wins) == [False] * 7 + [True]
        assert names(lake) == {"a": at["b"], "b": at["a"]}
