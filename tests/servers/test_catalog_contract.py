"""
The contract of catalogs, without Spark, and of views in them for readers.

What is in SQLite needs no server; what is on PostgreSQL, by REST and in Hive does.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from tests.servers.catalogs import Shelf, in_sqlite

from infold.core.formats import Format
from infold.core.model import Source
from infold.core.storages import Catalog, CatalogType
from infold.core.swap import Renaming
from infold.lake.iceberg.hive_catalog import HiveCatalog
from infold.lake.iceberg.reader_views import views_in
from infold.lake.iceberg.rest_catalog import RestCatalog
from infold.lake.iceberg.sql_catalog import SqlCatalog, sqlite_catalog
from infold.lake.iceberg.tables import IcebergLake
from infold.lake.iceberg.view_metadata import CatalogViews
from infold.lake.reading.iceberg_table import table_files
from infold.lake.views import FoundViews
from infold.messages.errors import InfoldError


class TestTables:
    """What infold finds, drops and renames, pyiceberg finds dropped and renamed, and so back."""

    def test_a_source_has_a_catalog_of_its_own(self, shelf: Shelf, tmp_path: Path) -> None:
        """Whatever the target's is: its table is found, as it is after each commit."""
        said = {"uri": f"sqlite:///{tmp_path / 'catalog.db'}", **shelf.declared}
        type_ = CatalogType(said.pop("type"))
        said.pop("namespace", None)
        catalog = Catalog(type_, **said)
        table = f"{shelf.namespace}.daily"
        source = Source("raw.x", Format.ICEBERG, (), table=table, catalog=catalog)
        own = sqlite_catalog(tmp_path / "none.db")
        with pytest.raises(InfoldError, match="no-such-table"):
            table_files(tmp_path, source, own)
        shelf.make("daily")
        assert len(table_files(tmp_path, source, own)) == 1
        shelf.commit("daily")
        assert len(table_files(tmp_path, source, own)) == 2

    def test_a_table_is_found_where_it_is(self, shelf: Shelf) -> None:
        """Its newest metadata, after each commit; one that is not there is not found."""
        lake = shelf.lake()
        first = shelf.make("daily")
        assert lake.moved_tables({"daily": "", "none": ""}) == {"daily": first, "none": None}
        second = shelf.commit("daily")

        assert lake.moved_tables({"daily": first}) == {"daily": second}
        assert lake.moved_tables({"daily": second}) == {}
        assert lake.rows("daily").num_rows == 2
        assert (lake.is_free("Daily"), lake.is_free("weekly")) == (False, True)
        assert shelf.catalog.locations("no_such_namespace") == {}
        assert shelf.catalog.find([("no_such_namespace", "daily")]) == {}

    def test_a_dropped_table_is_gone_with_its_files(self, shelf: Shelf) -> None:
        """For infold and for others; to drop it again does no harm."""
        lake = shelf.lake()
        shelf.make("daily")
        shelf.make("weekly")

        assert lake.drop("daily")
        assert not lake.drop("daily")

        assert shelf.names() == {"weekly"}
        assert not (shelf.warehouse / shelf.namespace / "daily").exists()
        assert lake.rows("weekly").num_rows == 1

    def test_tables_take_the_names_of_others(self, shelf: Shelf) -> None:
        """As a promote does: production's go aside, those of an environment come in."""
        lake = shelf.lake()
        at = {name: shelf.make(name) for name in ("daily", "weekly", "daily__b", "weekly__b")}
        renamings = [
            Renaming(name, to, at[name])
            for name, to in (
                ("daily", "daily__a"),
                ("daily__b", "daily"),
                ("weekly", "weekly__a"),
                ("weekly__b", "weekly"),
            )
        ]
        assert not lake.was_renamed(renamings)

        assert lake.rename(renamings)

        assert lake.was_renamed(renamings)
        assert {name: shelf.at(name) for name in shelf.names()} == {
            one.to: one.location for one in renamings
        }

    def test_one_that_moved_stops_all(self, shelf: Shelf) -> None:
        """If one table moved or is gone, or another one has its new name, nothing is renamed."""
        before = {name: shelf.make(name) for name in ("daily", "weekly", "taken")}
        first = Renaming("daily", "daily__a", before["daily"])
        for wrong in (
            Renaming("weekly", "weekly__a", "moved"),
            Renaming("gone", "gone__a", "gone"),
            Renaming("weekly", "taken", before["weekly"]),
        ):
            assert not shelf.lake().rename([first, wrong])
            assert {name: shelf.at(name) for name in shelf.names()} == before

    def test_a_table_is_set_back(self, shelf: Shelf) -> None:
        """It has the rows of then, for others too, who write on; not over a later commit."""
        lake = shelf.lake()
        old = shelf.make("daily")
        first = lake.metadata("daily")
        assert first is not None
        assert first.snapshot is not None
        newest = shelf.commit("daily")
        assert lake.can_set_back("daily", first.snapshot)
        assert not shelf.catalog.set_back((shelf.namespace, "daily"), old, first.snapshot)
        assert shelf.at("daily") == newest

        lake.set_back("daily", first.snapshot)

        assert (shelf.rows("daily"), lake.rows("daily").num_rows) == (1, 1)
        shelf.commit("daily")
        assert shelf.rows("daily") == 2

    def test_of_many_that_swap_the_same_tables_one_wins(self, database: Shelf) -> None:
        """Of swaps at the same time that expect the same state, exactly one happens."""
        at = {name: database.make(name) for name in ("daily", "daily__b")}
        swap = [
            Renaming("daily", "daily__b", at["daily"]),
            Renaming("daily__b", "daily", at["daily__b"]),
        ]

        with ThreadPoolExecutor(4) as pool:
            wins = list(pool.map(lambda _: database.lake().rename(swap), range(4)))

        assert sorted(wins) == [False, False, False, True]
        assert database.at("daily") == at["daily__b"]


class TestPublished:
    """In a database all tables are shown at one instant."""

    def test_readers_see_all_commits_at_once(self, database: Shelf) -> None:
        """Commits to tables that are held back are for infold alone, until they are published."""
        lake = database.lake(together=True)
        for name in ("daily", "weekly"):
            database.make(name)
        lake.hold_back(["daily", "weekly"])
        for name in ("daily", "weekly"):
            database.commit(lake.stored_name(name))
        assert [database.rows(name) for name in ("daily", "weekly")] == [1, 1]
        assert lake.rows("daily").num_rows == 2

        assert lake.publish(hold_back=True) == ("daily", "weekly")

        assert [database.rows(name) for name in ("daily", "weekly")] == [2, 2]
        assert lake.publish(hold_back=True) == ()
        database.commit("daily")
        with pytest.raises(InfoldError, match="published-elsewhere"):
            lake.publish(hold_back=True)

    @pytest.mark.deep
    def test_no_reader_sees_a_mixture(self, database: Shelf) -> None:
        """A reader that looks up both tables at once sees both of the same publication."""
        lake = database.lake(together=True)
        for name in ("daily", "weekly"):
            database.make(name)
        lake.hold_back(["daily", "weekly"])
        seen: set[tuple[int, int]] = set()
        over = threading.Event()

        def read() -> None:
            readers = database.lake(published=True)
            while not over.is_set():
                found = readers.moved_tables({"daily": "", "weekly": ""})
                steps = [Path(at or "").name.split("-")[0] for at in found.values()]
                seen.add((int(steps[0]), int(steps[1])))

        reader = threading.Thread(target=read)
        reader.start()
        try:
            for _ in range(4):
                for name in ("daily", "weekly"):
                    database.commit(lake.stored_name(name))
                lake.publish(hold_back=True)
        finally:
            over.set()
            reader.join()

        assert len(seen) > 1
        assert all(one == other for one, other in seen), seen


def space(shelf: Shelf) -> str:
    """The namespace of the views."""
    return f"{shelf.namespace}_views"


def queries(shelf: Shelf) -> Mapping[str, str]:
    """What the views are by name, and what each says to Spark: by the catalog, not by infold."""
    catalog = shelf.catalog
    if isinstance(catalog, SqlCatalog):
        with catalog.database.read() as statements:
            assert statements is not None
            rows = statements.rows(
                "SELECT table_name, metadata_location, iceberg_type FROM iceberg_tables"
                " WHERE catalog_name = 'infold' AND table_namespace = ?",
                (space(shelf),),
            )
        assert {kind for _, _, kind in rows} <= {"VIEW"}
        return {name: _for_spark(_read(at)) for name, at, _ in rows}
    if isinstance(catalog, RestCatalog):
        path = f"namespaces/{space(shelf)}/views"
        listed = (catalog.client.get(path) or {}).get("identifiers", [])
        found = {one["name"]: catalog.client.get(f"{path}/{one['name']}") for one in listed}
        return {name: _for_spark((one or {})["metadata"]) for name, one in found.items()}
    assert isinstance(catalog, HiveCatalog)
    names = catalog.names(space(shelf))
    tables = catalog.client.look(lambda hms: hms.get_table_objects_by_name(space(shelf), names))
    kinds = {(one.tableType, one.parameters["table_type"]) for one in tables}
    assert kinds <= {("VIRTUAL_VIEW", "ICEBERG-VIEW")}
    return {
        str(one.tableName): _for_spark(_read(one.parameters["metadata_location"])) for one in tables
    }


def _read(location: str) -> Any:
    return json.loads(Path(location).read_text(encoding="utf-8"))


def _for_spark(metadata: Mapping[str, Any]) -> str:
    """The query of the version that is in force; the columns it names are those it states."""
    current = metadata["current-version-id"]
    [version] = [one for one in metadata["versions"] if one["version-id"] == current]
    [text] = [one["sql"] for one in version["representations"] if one["dialect"] == "spark"]
    schema = version["schema-id"]
    [fields] = [one["fields"] for one in metadata["schemas"] if one["schema-id"] == schema]
    stated = ", ".join(f"`{one['name']}`" for one in fields)
    assert str(text).startswith(f"SELECT {stated} FROM ")
    return str(text)


def put(shelf: Shelf, name: str, folder: Path) -> None:
    """Somebody else makes something of a name among the views."""
    catalog = shelf.catalog
    if isinstance(catalog, SqlCatalog):
        with catalog.database.write(space(shelf)) as statements:
            assert statements is not None
            statements.change(
                "INSERT INTO iceberg_tables (catalog_name, table_namespace, table_name,"
                " metadata_location, iceberg_type) VALUES ('infold', ?, ?, ?, 'VIEW')",
                (space(shelf), name, str(folder / "theirs.json")),
            )
    else:
        if (space(shelf),) not in shelf.theirs.list_namespaces():
            shelf.theirs.create_namespace(space(shelf), {"location": str(folder / "theirs")})
        rows = pa.table({"theirs": [1]})
        shelf.theirs.create_table((space(shelf), name), rows.schema, location=str(folder / name))


def others(shelf: Shelf) -> set[str]:
    """What is there that infold did not make."""
    return {*views_in(shelf.catalog).found(space(shelf)).others}


def files(shelf: Shelf) -> list[str]:
    """Folders of views."""
    return sorted(path.name for path in (shelf.warehouse / space(shelf)).glob("*"))


def test_they_follow_their_tables(shelf: Shelf) -> None:
    """They come with a table, and go with it; pyiceberg lists the tables as before."""
    lake = shelf.lake()
    for name in ("daily", "weekly"):
        shelf.make(name)

    assert lake.refresh_views(["daily", "weekly", "none"]) == []
    assert queries(shelf) == {
        name: f"SELECT `n` FROM `{shelf.namespace}`.`{name}`" for name in ("daily", "weekly")
    }
    made = files(shelf)
    shelf.commit("daily")
    assert lake.refresh_views(["daily", "weekly"]) == []
    assert files(shelf) == made
    lake.drop("daily")
    assert lake.refresh_views(["daily", "weekly"]) == []
    assert set(queries(shelf)) == {"weekly"}
    assert shelf.names() == {"weekly"}
    assert lake.refresh_views([]) == []
    assert (queries(shelf), files(shelf)) == ({}, [])


def test_columns_come_and_go(shelf: Shelf) -> None:
    """The view says what the table has, also what it said before; a new one is looked at only."""
    lake = shelf.lake()
    shelf.make("daily")
    lake.refresh_views(["daily"])
    for columns in ("`n`, `m`", "`n`", "`n`, `m`"):
        if "m" in columns:
            shelf.add_column("daily", "m")
        else:
            shelf.drop_column("daily", "m")
        before = queries(shelf)
        assert lake.refresh_views(["daily"], only_new=True) == []
        assert queries(shelf) == before

        assert lake.refresh_views(["daily"]) == []

        assert queries(shelf) == {"daily": f"SELECT {columns} FROM `{shelf.namespace}`.`daily`"}


def test_what_others_made_stays(shelf: Shelf, tmp_path: Path) -> None:
    """
    Theirs are no business of infold's; a name that they have is told, also by a mere look. A file
    in a view's folder stays unless the folder is named for views of one catalog.
    """
    for name in ("daily", "weekly"):
        shelf.make(name)
    put(shelf, "daily", tmp_path)
    put(shelf, "mine", tmp_path)
    lake = shelf.lake()

    assert lake.refresh_views(["daily", "weekly"]) == ["daily"]
    assert lake.refresh_views(["daily", "weekly"], only_new=True) == ["daily"]
    assert others(shelf) == {"daily", "mine"}
    (theirs := shelf.warehouse / space(shelf) / files(shelf)[0] / "rows.parquet").touch()
    assert lake.refresh_views([]) == []
    assert others(shelf) == {"daily", "mine"}
    assert theirs.exists() == (shelf.declared["type"] == "sqlite")


def test_somebody_is_faster(shelf: Shelf, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Who makes something of the name after infold looked keeps it, and no view is made."""
    for name in ("daily", "weekly"):
        shelf.make(name)
    kind = type(views_in(shelf.catalog))
    look = kind.found

    def found(self: CatalogViews, namespace: str) -> FoundViews:
        before = look(self, namespace)
        put(shelf, "weekly", tmp_path)
        return before

    monkeypatch.setattr(kind, "found", found)
    # A database makes all of them in one transaction, or none.
    left = ["daily", "weekly"] if shelf.catalog.at_once else ["weekly"]
    assert shelf.lake().refresh_views(["daily", "weekly"]) == left
    monkeypatch.undo()

    assert others(shelf) == {"weekly"}
    assert shelf.lake().refresh_views(["daily", "weekly"]) == ["weekly"]
    assert {*views_in(shelf.catalog).found(space(shelf)).own} == {"daily"}


def test_two_catalogs_of_one_warehouse(
    shelf: Shelf, tmp_path: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """Neither deletes a file of the other's views, though tables have the same names."""
    other = in_sqlite(tmp_path, tmp_path_factory.mktemp("other") / "catalog.db")
    other.namespace = shelf.namespace
    other.theirs.create_namespace_if_not_exists(shelf.namespace)
    shelf.make("daily")
    schema = shelf.theirs.load_table((shelf.namespace, "daily")).schema()
    at = str(tmp_path / "other" / "daily")
    other.theirs.create_table((other.namespace, "daily"), schema, location=at)
    theirs = other.lake(alone=False)
    for lake in (shelf.lake(), theirs):
        lake.refresh_views(["daily"])
    wanted = queries(shelf)
    theirs.refresh_views([])

    assert (queries(other), queries(shelf)) == ({}, wanted)


def test_two_projects_share_no_namespace(shelf: Shelf, tmp_path: Path) -> None:
    """Whoever comes second is refused: with tables among views, or with views among tables."""
    shelf.make("daily")
    lake = shelf.lake()
    other = IcebergLake(shelf.catalog, space(shelf), tmp_path / "other")
    lake.check_views(["daily"])
    other.check_views(None)
    lake.refresh_views(["daily"])
    lake.check_views(["daily"])

    with pytest.raises(InfoldError, match="catalog-shared-namespace"):
        other.check_views(None)

    lake.refresh_views([])
    shelf.theirs.create_namespace_if_not_exists(space(shelf))
    rows = pa.table({"n": [1]})
    made = shelf.theirs.create_table(
        (space(shelf), "orders"), rows.schema, location=str(tmp_path / "other" / "orders")
    )
    lake.check_views(["daily"])  # somebody's, and no project's
    made.append(rows, snapshot_properties={"infold.step": "20240309-1"})
    with pytest.raises(InfoldError, match="catalog-shared-namespace"):
        lake.check_views(["daily"])
