"""Tables that are shown to readers at one instant, and views of them."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pytest
from tests.lake.conftest import Put, snapshot

from infold.core import write_points
from infold.core.formats import Format
from infold.core.model import Source
from infold.core.swap import Renaming
from infold.lake.iceberg import publishing
from infold.lake.iceberg.sql_catalog import sqlite_catalog
from infold.lake.iceberg.tables import IcebergLake
from infold.lake.reading import iceberg_table
from infold.messages.errors import InfoldError


@pytest.fixture
def readers(catalog_db: Path) -> IcebergLake:
    """The same tables as readers see them."""
    return IcebergLake(sqlite_catalog(catalog_db), "shop", catalog_db.parent, published=True)


@pytest.fixture
def together(catalog_db: Path) -> IcebergLake:
    """Tables that are published together."""
    return IcebergLake(sqlite_catalog(catalog_db), "shop", catalog_db.parent, together=True)


def heads(together: IcebergLake, *tables: str) -> list[int | None]:
    """The current snapshots; None of a table that is not there."""
    found = map(together.metadata, tables)
    return [None if head is None else head.snapshot for head in found]


def commit(put: Put, together: IcebergLake, table: str, id_: int) -> None:
    """A commit of infold's to the table as it is stored."""
    put(together.stored_name(table), [snapshot(id_, None, step=f"s{id_}")], id_)


def held(put: Put, together: IcebergLake, table: str = "events") -> str:
    """A table that is held back after a commit; where its metadata was."""
    found = put(table, [snapshot(1, None, step="s1")], 1)
    together.hold_back([table])
    return found


class TestHeldBack:
    """Readers see a table as it was until it is published; infold sees its own commits at once."""

    def test_the_metadata_of_readers_is_their_own(
        self, together: IcebergLake, readers: IcebergLake, put: Put
    ) -> None:
        """
        The engine deletes old metadata files as it commits; readers have a copy beside it, and of
        copies that no row points to only the last one is kept.
        """
        file = Path(held(put, together))
        file.unlink()
        assert heads(readers, "events") == [1]
        for id_ in (2, 3, 4):
            commit(put, together, "events", id_)
            together.publish(hold_back=True)

        assert heads(readers, "events") == [4]
        assert len(list(file.parent.glob("*-published.*"))) == 2
        assert publishing.published_location("file:/w/t/metadata/00007-ab.gz.metadata.json") == (
            "file:/w/t/metadata/00007-ab-published.gz.metadata.json"
        )

    def test_tables_that_are_not_held_back_any_more(
        self, together: IcebergLake, readers: IcebergLake, put: Put, catalog_db: Path
    ) -> None:
        """The last publication shows what infold has, and leaves one row a table; of one that was
        dropped there is none, and none comes back.
        """
        held(put, together)
        commit(put, together, "events", 2)
        held(put, together, "gone")
        plain = IcebergLake(sqlite_catalog(catalog_db), "shop", catalog_db.parent)
        assert together.drop("gone")
        assert heads(together, "gone") == heads(readers, "gone") == [None]

        assert (plain.stored_name("events"), heads(plain, "events")) == ("events__unpublished", [2])
        plain.publish(hold_back=False)

        assert (plain.stored_name("events"), heads(readers, "events")) == ("events", [2])
        with closing(sqlite3.connect(catalog_db)) as connection:
            rows = connection.execute("SELECT table_name FROM iceberg_tables").fetchall()
        assert rows == [("events",)]

    def test_a_table_that_takes_the_place_of_another(
        self, together: IcebergLake, readers: IcebergLake, put: Put
    ) -> None:
        """Readers see the new table under the name, and the old one under its own, at once; where
        something else is unpublished, they see that with the next publication.
        """
        held(put, together, "daily")
        commit(put, together, "daily__new", 2)
        together.publish(hold_back=True)

        def swap(new: str, old: str) -> bool:
            pairs = (("daily", old), (new, "daily"))
            return together.rename(
                [Renaming(one, to, together.location(one) or "") for one, to in pairs]
            )

        assert swap("daily__new", "daily__old")
        assert heads(together, "daily", "daily__old", "daily__new") == [2, 1, None]
        assert heads(readers, "daily", "daily__old", "daily__new") == [2, 1, None]
        commit(put, together, "events", 3)
        assert swap("daily__old", "daily__new")
        assert heads(readers, "daily", "events") == [2, None]
        together.publish(hold_back=True)
        assert heads(readers, "daily", "daily__new", "daily__old", "events") == [1, 2, None, 3]

    def test_without_a_catalog_nothing_is_published(self, tmp_path: Path) -> None:
        """Without a catalog, or without a table in it, nothing happens and no file is made."""
        together = IcebergLake(
            sqlite_catalog(tmp_path / "catalog.db"), "shop", tmp_path, together=True
        )
        together.hold_back(["events"])
        assert (together.publish(hold_back=True), list(tmp_path.iterdir())) == ((), [])
        (tmp_path / "catalog.db").touch()
        together.hold_back(["events"])
        assert together.publish(hold_back=False) == ()


class TestOthersCommit:
    """A commit by somebody else to what readers see is never overwritten."""

    @pytest.fixture(autouse=True)
    def _held(self, together: IcebergLake, put: Put) -> None:
        """A commit that readers do not see yet."""
        held(put, together)
        commit(put, together, "events", 2)

    def test_it_is_refused(self, together: IcebergLake, put: Put, catalog_db: Path) -> None:
        """It is told by the earlier location that an engine records; nothing is published."""
        theirs = put("other", [snapshot(7, None)], 7)
        with closing(sqlite3.connect(catalog_db)) as connection, connection:
            connection.execute(
                "UPDATE iceberg_tables SET previous_metadata_location = metadata_location,"
                " metadata_location = ? WHERE table_name = 'events'",
                (theirs,),
            )
        for attempt in (lambda: together.hold_back([]), lambda: together.publish(hold_back=True)):
            with pytest.raises(InfoldError, match="somebody else committed to events") as caught:
                attempt()
            assert caught.value.slug == "published-elsewhere"

    def test_one_in_the_middle_of_it_is_refused(
        self, together: IcebergLake, put: Put, readers: IcebergLake, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """A row that changes between the look and the write ends the publication; all stays."""
        commit(put, together, "daily", 2)
        monkeypatch.setattr(
            write_points, "point", lambda _: put("events", [snapshot(9, None)], 9) and None
        )

        with pytest.raises(InfoldError, match="published-elsewhere"):
            together.publish(hold_back=True)

        assert heads(readers, "events", "daily") == [9, None]

    def test_one_to_a_table_that_is_not_infolds_is_let_pass(
        self, together: IcebergLake, put: Put, readers: IcebergLake, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """A namespace may have tables of others: their commits stop nothing."""
        ids, copy = iter(range(2, 100)), publishing._copy

        def others_commit(location: str) -> None:
            put("theirs", [snapshot(id_ := next(ids), None)], id_)
            put(f"theirs{id_}", [snapshot(id_, None)], id_)
            if location.endswith(".json"):
                copy(location)

        others_commit("")
        monkeypatch.setattr(publishing, "_copy", others_commit)
        monkeypatch.setattr(write_points, "point", others_commit)

        assert together.publish(hold_back=True) == ("events",)
        assert heads(readers, "events", "theirs") == [2, next(ids) - 1]


Store = Callable[..., None]


@pytest.fixture
def store(catalog_db: Path) -> Store:
    """Puts a table with these columns into the catalog."""

    def store(
        name: str, *columns: str, namespace: str = "shop", type_: str = "TABLE", step: str = ""
    ) -> None:
        fields = [
            {"id": at, "name": column, "required": False, "type": "long", "write-default": 0}
            for at, column in enumerate(columns, 1)
        ]
        schema = {"schema-id": 7, "type": "struct", "fields": fields}
        other = {"schema-id": 0, "type": "struct", "fields": []}
        file = catalog_db.parent / f"{name}-{len(columns)}.metadata.json"
        snapshots = [{"snapshot-id": 1, "summary": {"infold.step": step}}] if step else []
        metadata = {"current-schema-id": 7, "schemas": [other, schema], "snapshots": snapshots}
        file.write_text(json.dumps(metadata))
        with closing(sqlite3.connect(catalog_db)) as connection, connection:
            connection.execute(
                "INSERT OR REPLACE INTO iceberg_tables VALUES ('infold', ?, ?, ?, NULL, ?)",
                (namespace, name, str(file), type_),
            )

    return store


def views(lake: IcebergLake) -> dict[str, dict[str, Any]]:
    """The metadata of each view, by name; each row is one of a view."""
    database = lake.catalog.place
    with closing(sqlite3.connect(database)) as connection:
        rows = connection.execute(
            "SELECT table_name, metadata_location, iceberg_type FROM iceberg_tables"
            " WHERE catalog_name = 'infold' AND table_namespace = 'shop_views'"
        ).fetchall()
    assert {type_ for _, _, type_ in rows} <= {"VIEW"}
    return {name: json.loads(Path(location).read_text()) for name, location, _ in rows}


def query(view: dict[str, Any], dialect: str) -> str:
    """The query of a view for one kind of engine."""
    (version,) = view["versions"]
    (found,) = [one["sql"] for one in version["representations"] if one["dialect"] == dialect]
    return str(found)


def files(lake: IcebergLake) -> Sequence[Path]:
    """All files of views."""
    return sorted(Path(lake.catalog.place).parent.glob("shop_views/*/metadata/*"))


class TestViews:
    """Exactly the views of the tables that are given, as these are now."""

    def test_technical_columns_are_left_out(self, lake: IcebergLake, store: Store) -> None:
        """Of a table with some, and of one without; columns of users may begin in the same way."""
        store("sessions", "user_id", "_version", "events", "_state", "_state_1", "_stated")
        store("daily", "day")
        store("other", "n")

        taken = lake.refresh_views(["sessions", "daily", "never built"])

        found = views(lake)
        assert (taken, sorted(found)) == ([], ["daily", "sessions"])
        assert query(found["daily"], "spark") == "SELECT `day` FROM `shop`.`daily`"
        shown = [(one["id"], one["name"]) for one in found["sessions"]["schemas"][0]["fields"]]
        assert shown == [(1, "user_id"), (3, "events"), (6, "_stated")]

    def test_what_engines_ask_of_a_view(
        self, lake: IcebergLake, store: Store, tmp_path: Path
    ) -> None:
        """What the specification requires; Trino finds the table by catalog and namespace. It is no
        source, and the error says so.
        """
        store("daily", "day")
        lake.refresh_views(["daily"])

        found = views(lake)["daily"]

        version = found["versions"][0]
        assert found["format-version"] == 1
        assert found["location"] == str(Path(lake.catalog.place).parent / "shop_views" / "daily")
        assert found["current-version-id"] == version["version-id"]
        assert version["timestamp-ms"] == found["version-log"][0]["timestamp-ms"] > 0
        assert (version["default-catalog"], version["default-namespace"]) == ("infold", ["shop"])
        assert "write-default" not in found["schemas"][0]["fields"][0]
        source = Source("raw.daily", Format.ICEBERG, (), table="shop_views.daily")
        with pytest.raises(InfoldError, match="metadata-missing") as raised:
            iceberg_table.table_files(tmp_path, source, lake.catalog)
        assert "it is that of a view" in str(raised.value)

    def test_names_of_any_letters(self, lake: IcebergLake, store: Store) -> None:
        """Both queries quote names. The one for Trino is run by another engine that quotes so."""
        names = ['a "b"', "select", "a`b", "ü.x"]
        store("order", *names, "_version")
        lake.refresh_views(["order"])

        text = query(views(lake)["order"], "trino")
        with duckdb.connect() as connection:
            connection.sql("CREATE SCHEMA shop")
            rows = pa.table({name: [at] for at, name in enumerate((*names, "_version"))})
            connection.register("rows", rows)
            connection.sql('CREATE TABLE shop."order" AS SELECT * FROM rows')
            found = connection.sql(text)

            assert (found.columns, found.fetchall()) == (names, [(0, 1, 2, 3)])
        assert query(views(lake)["order"], "spark").startswith('SELECT `a "b"`, `select`, `a``b`,')

    def test_they_follow_their_tables(
        self, lake: IcebergLake, store: Store, tmp_path: Path
    ) -> None:
        """
        Before the first run there is nothing to make. They come with a table and go with it, files
        and all; one that is right is not written again. Of its files the last one is kept, for
        those who are about to read.
        """
        none = IcebergLake(sqlite_catalog(tmp_path / "none.db"), "shop", tmp_path)
        assert none.refresh_views(["daily"]) == []
        assert not (tmp_path / "shop_views").exists()
        for columns in (["day"], ["day", "n"], ["day", "n", "m"], ["day"]):
            store("daily", *columns)
            lake.refresh_views(["daily"])

            shown = ", ".join(f"`{one}`" for one in columns)
            assert query(views(lake)["daily"], "spark").startswith(f"SELECT {shown} FROM")
        assert len(files(lake)) == 2
        before = views(lake), files(lake)
        lake.refresh_views(["daily"])
        assert (views(lake), files(lake)) == before
        store("weekly", "week")
        lake.refresh_views(["weekly"])
        assert sorted(views(lake)) == ["weekly"]
        assert [file.parts[-3] for file in files(lake)] == ["weekly"]
        lake.refresh_views([])
        assert (views(lake), files(lake)) == ({}, [])

    @pytest.mark.parametrize("only_new", [False, True])
    def test_a_table_that_nobody_can_read(
        self, lake: IcebergLake, store: Store, only_new: bool
    ) -> None:
        """Its view stays as it was, and those of others are made."""
        store("daily", "day")
        lake.refresh_views(["daily"])
        (Path(lake.catalog.place).parent / "daily-1.metadata.json").write_text("damaged")
        store("weekly", "week")

        lake.refresh_views(["daily", "weekly"], only_new=only_new)

        assert sorted(views(lake)) == ["daily", "weekly"]
