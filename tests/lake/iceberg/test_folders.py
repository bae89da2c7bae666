"""Each table has a folder of its own, and no folder of another table is ever deleted."""

from __future__ import annotations

import shutil
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest
from tests.lake.conftest import Put, snapshot

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

    def test_the_catalog_in_the_warehouse_is_in_nobodys_way(
        self, lake: IcebergLake, catalog_db: Path
    ) -> None:
        """Its tables have folders without a suffix, which no other catalog's have."""
        other = IcebergLake(sqlite_catalog(catalog_db.parent / "x.db"), "shop", catalog_db.parent)

        assert lake.folder_for_new("daily") == str(catalog_db.parent / "shop" / "daily")
        assert other.folder_for_new("daily") != lake.folder_for_new("daily")

    def test_the_folder_of_another_catalogs_table_stays(
        self, lake: IcebergLake, catalog_db: Path, lie: Put
    ) -> None:
        """A catalog that has no such table deletes nothing, wherever another one has it."""
        at = lie("daily")
        other = IcebergLake(sqlite_catalog(catalog_db.parent / "x.db"), "shop", catalog_db.parent)

        assert not other.drop("daily")

        assert lake.location("daily") == at
        assert Path(at).exists()

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

    def test_what_another_catalog_has_is_no_orphan(
        self, lake: IcebergLake, catalog_db: Path, put: Put
    ) -> None:
        """`infold repair` drops what its own catalog has, and only that."""
        put("daily", [snapshot(1, None, step="s")], 1)
        other = IcebergLake(sqlite_catalog(catalog_db.parent / "x.db"), "shop", catalog_db.parent)

        assert lake.location("daily")
        assert list(other.made_tables()) == []

    def test_a_folder_around_the_tables_of_others_stays(
        self, lake: IcebergLake, catalog_db: Path, put: Put
    ) -> None:
        """A table that lies right in the namespace is dropped, and the others' folders stay."""
        beside = catalog_db.parent / "shop" / "weekly__1a2b3c4d" / "metadata" / "1.metadata.json"
        beside.parent.mkdir(parents=True)
        beside.touch()
        put("daily", [], None)
        at = str(catalog_db.parent / "shop" / "metadata" / "1.metadata.json")
        with closing(sqlite3.connect(catalog_db)) as connection, connection:
            connection.execute("UPDATE iceberg_tables SET metadata_location = ?", (at,))

        assert lake.drop("daily")

        assert beside.exists()

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
