"""Tables get other names in the catalog, all in one transaction; and folders stay what they are."""

from __future__ import annotations

import shutil
import sqlite3
import threading
from contextlib import closing
from pathlib import Path

import pytest
from tests.lake.conftest import Put

from infold.core.swap import Renaming
from infold.lake.iceberg.sqlite_catalog import sqlite_catalog
from infold.lake.iceberg.tables import IcebergLake
from infold.lake.stores import places


@pytest.fixture
def lie(catalog_db: Path, put: Put) -> Put:
    """Puts a table whose metadata lies in a folder of the warehouse."""

    def lie(name: str, folder: str = "") -> str:
        path = catalog_db.parent / "shop" / (folder or name) / "metadata" / "1.metadata.json"
        path.parent.mkdir(parents=True, exist_ok=True)
        shutil.move(put(name, [], None), path)
        with closing(sqlite3.connect(catalog_db)) as connection, connection:
            connection.execute(
                "UPDATE iceberg_tables SET metadata_location = ? WHERE table_name = ?",
                (str(path), name),
            )
        return str(path)

    return lie


def names(lake: IcebergLake) -> dict[str, str]:
    """The tables of the namespace, and where they are."""
    return dict(lake.catalog.locations(lake.namespace))


class TestRenamed:
    """All renamings are one transaction: all happen, or none."""

    def test_two_pairs_change_names(self, lake: IcebergLake, put: Put) -> None:
        """Tables get the names that others had, and those are kept under other names."""
        tables = {name: put(name, [], None) for name in ("daily", "daily__b", "week", "week__b")}

        done = lake.rename(
            [
                Renaming("daily", "daily__a", tables["daily"]),
                Renaming("daily__b", "daily", tables["daily__b"]),
                Renaming("week", "week__a", tables["week"]),
                Renaming("week__b", "week", tables["week__b"]),
            ]
        )

        assert done
        assert names(lake) == {
            "daily": tables["daily__b"],
            "daily__a": tables["daily"],
            "week": tables["week__b"],
            "week__a": tables["week"],
        }

    def test_two_tables_change_places(self, lake: IcebergLake, put: Put) -> None:
        """Two tables may get each other's name: no order of the renamings collides."""
        one, other = put("one", [], None), put("other", [], None)

        assert lake.rename([Renaming("one", "other", one), Renaming("other", "one", other)])

        assert names(lake) == {"one": other, "other": one}

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

    def test_without_a_catalog_nothing_can_be_renamed(self, tmp_path: Path) -> None:
        """Without a catalog there is no table to rename, and none is made."""
        lake = IcebergLake(sqlite_catalog(tmp_path / "none.db"), "shop")

        assert not lake.rename([Renaming("daily", "daily__a", "x")])
        assert list(tmp_path.iterdir()) == []

    def test_tables_of_other_namespaces_stay(self, lake: IcebergLake, put: Put) -> None:
        """A table of the same name in another namespace is not renamed."""
        put("daily", [], None, namespace="other")

        assert not lake.rename([Renaming("daily", "daily__a", put("daily", [], None) + "x")])
        assert lake.rename([Renaming("daily", "daily__a", names(lake)["daily"])])

        assert "daily" in lake.catalog.names("other")

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

    def test_a_reader_of_two_names_never_sees_a_mix(self, lake: IcebergLake, put: Put) -> None:
        """
        Whoever finds two tables by one look into the catalog sees both before a swap or after it.

        It polls during 50 swaps of both.
        """
        old = {name: put(f"{name}", [], None) for name in ("daily", "week")}
        new = {name: put(f"{name}__b", [], None) for name in ("daily", "week")}
        seen: set[tuple[str | None, str | None]] = set()
        stop = threading.Event()

        def poll() -> None:
            while not stop.is_set():
                found = lake.moved_tables({"daily": "", "week": ""})
                seen.add((found["daily"], found["week"]))

        reader = threading.Thread(target=poll)
        reader.start()
        for _ in range(50):
            assert lake.rename(
                [
                    renaming
                    for name in old
                    for renaming in (
                        Renaming(name, f"{name}__b", old[name]),
                        Renaming(f"{name}__b", name, new[name]),
                    )
                ]
            )
            old, new = new, old
        stop.set()
        reader.join()

        assert seen <= {tuple(old.values()), tuple(new.values())}
        assert seen


class TestFolders:
    """A table that was renamed still lies in the folder where it was made."""

    def test_the_folder_of_another_table_is_never_deleted(
        self, lake: IcebergLake, lie: Put
    ) -> None:
        """A table is dropped with its folder, but not if another one lies in that folder."""
        lie("daily")
        lie("inside", "daily/deeper")

        assert lake.drop("daily")

        assert Path(names(lake)["inside"]).exists()

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

    def test_a_renamed_table_is_dropped_with_its_own_folder(
        self, lake: IcebergLake, lie: Put
    ) -> None:
        """A table is dropped with the folder it lies in, whatever its name is by then."""
        old, new = lie("daily"), lie("daily__b")
        lake.rename([Renaming("daily", "daily__a", old), Renaming("daily__b", "daily", new)])

        lake.drop("daily__a")

        assert not Path(old).exists()
        assert Path(new).exists()

    def test_a_new_table_does_not_lie_down_where_another_one_lies(
        self, lake: IcebergLake, lie: Put, catalog_db: Path
    ) -> None:
        """A new table has the usual folder, or one of its own if a renamed table lies there."""
        lie("daily__kept", "daily")

        folder = lake.folder_for_new("daily")

        assert lake.folder_for_new("week") is None
        assert folder is not None
        assert Path(folder).parent == catalog_db.parent / "shop"
        assert not Path(folder).exists()


class TestFoldersInStores:
    """A warehouse in a store may be that of several catalogs, none of which knows the others."""

    def test_each_table_has_a_folder_of_its_own(self, catalog_db: Path) -> None:
        """Two catalogs that know no table of each other do not put one into the same folder."""
        lakes = [
            IcebergLake(sqlite_catalog(file), "shop", "s3://lake/wh")
            for file in (catalog_db, catalog_db.parent / "other.db")
        ]

        folders = [lake.folder_for_new("daily") for lake in lakes]

        assert all((folder or "").startswith("s3://lake/wh/shop/daily__") for folder in folders)
        assert folders[0] != folders[1]

    def test_only_a_folder_that_the_catalog_named_is_deleted(
        self, catalog_db: Path, put: Put, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """What lies where a table would is another catalog's, and stays."""
        lake = IcebergLake(sqlite_catalog(catalog_db), "shop", "s3://lake/wh")
        put("daily", [], None)
        own = "s3://lake/wh/shop/daily__b/metadata/1.metadata.json"
        with closing(sqlite3.connect(catalog_db)) as connection, connection:
            connection.execute("UPDATE iceberg_tables SET metadata_location = ?", (own,))
        deleted: list[str] = []
        monkeypatch.setattr(places, "is_folder", lambda _: True)
        monkeypatch.setattr(places, "delete_folder", deleted.append)

        assert lake.drop("daily")
        assert not lake.drop("daily")

        assert deleted == ["s3://lake/wh/shop/daily__b"]
