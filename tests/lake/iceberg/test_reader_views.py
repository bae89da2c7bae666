"""Views for readers: the columns of a table but infold's own, made without an engine."""

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

from infold.core.formats import Format
from infold.core.model import Source
from infold.lake.iceberg.sql_catalog import sqlite_catalog
from infold.lake.iceberg.tables import IcebergLake
from infold.lake.reading import iceberg_table
from infold.messages.errors import InfoldError

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

    def test_what_others_made_stays(self, lake: IcebergLake, store: Store) -> None:
        """Views of theirs are no business of infold's; a name that they have is told. Nor is what
        they put into the folder of a view.
        """
        store("mine", "n", namespace="shop_views", type_="VIEW")
        store("daily", "n", namespace="shop_views", type_="VIEW")
        store("daily", "day")
        store("weekly", "week")

        taken = lake.refresh_views(["daily", "weekly"])
        found = views(lake)
        theirs = files(lake)[0].parent.parent / "data" / "rows.parquet"
        theirs.parent.mkdir()
        theirs.touch()
        lake.refresh_views([])

        assert taken == ["daily"]
        assert sorted(found) == ["daily", "mine", "weekly"]
        assert "versions" not in found["daily"]
        assert sorted(views(lake)) == ["daily", "mine"]
        assert theirs.exists()
        assert not (theirs.parent.parent / "metadata").exists()

    def test_no_project_has_tables_among_the_views_of_another(
        self, lake: IcebergLake, store: Store
    ) -> None:
        """Whichever came first stays; who comes second is refused before anything is written."""
        views_first = IcebergLake(lake.catalog, "shop_views", lake.folders.warehouse)
        for tables in (None, ["daily"]):
            lake.check_views(tables)
            views_first.check_views(tables)
        store("daily", "day")
        lake.refresh_views(["daily"])

        lake.check_views(["daily"])
        with pytest.raises(InfoldError, match="catalog-shared-namespace") as raised:
            views_first.check_views(None)
        assert "the views daily" in str(raised.value)

        lake.refresh_views([])
        store("theirs", "n", namespace="shop_views")
        lake.check_views(["daily"])
        store("orders", "n", namespace="shop_views", step="20240309-1")
        lake.check_views(None)
        with pytest.raises(InfoldError, match="catalog-shared-namespace") as raised:
            lake.check_views(["daily"])
        assert "the tables orders" in str(raised.value)
