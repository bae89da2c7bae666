"""Views for readers in catalogs of every type, without Spark: what a catalog has is what counts."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from tests.servers.catalogs import Shelf, opened
from tests.servers.rest_catalog import RestServer

from infold.lake.iceberg.hive_catalog import HiveCatalog
from infold.lake.iceberg.reader_views import views_in
from infold.lake.iceberg.rest_catalog import RestCatalog, rest_catalog
from infold.lake.iceberg.sql_catalog import SqlCatalog
from infold.lake.iceberg.tables import IcebergLake
from infold.lake.iceberg.view_metadata import CatalogViews
from infold.lake.views import FoundViews
from infold.messages.errors import InfoldError

pytestmark = pytest.mark.servers


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
    """Theirs are no business of infold's; a name that they have is told, also by a mere look."""
    for name in ("daily", "weekly"):
        shelf.make(name)
    put(shelf, "daily", tmp_path)
    put(shelf, "mine", tmp_path)
    lake = shelf.lake()

    assert lake.refresh_views(["daily", "weekly"]) == ["daily"]
    assert lake.refresh_views(["daily", "weekly"], only_new=True) == ["daily"]
    assert others(shelf) == {"daily", "mine"}
    assert lake.refresh_views([]) == []
    assert others(shelf) == {"daily", "mine"}


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
    shelf: Shelf, request: pytest.FixtureRequest, tmp_path: Path
) -> None:
    """Neither deletes a file of the other's views, though tables have the same names."""
    other_kind = "sqlite" if shelf.declared["type"] != "sqlite" else "jdbc"
    with opened(other_kind, request, tmp_path) as other:
        other.namespace = shelf.namespace
        other.theirs.create_namespace_if_not_exists(shelf.namespace)
        shelf.make("daily")
        at = tmp_path / "other" / "daily"
        table = shelf.theirs.load_table((shelf.namespace, "daily"))
        made = other.theirs.create_table(
            (other.namespace, "daily"), table.schema(), location=str(at)
        )
        assert made is not None
        for one in (shelf, other):
            one.lake().refresh_views(["daily"])
        wanted = queries(shelf)
        other.lake().refresh_views([])

        assert queries(other) == {}
        assert queries(shelf) == wanted


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


class TestRest:
    """What only a server of the REST protocol does."""

    def test_a_view_that_an_engine_replaced_is_theirs(self, rest: Shelf) -> None:
        """Its properties are still infold's, its query is not: it stays, and is told."""
        rest.make("daily")
        lake, client = rest.lake(), rest.catalog
        assert isinstance(client, RestCatalog)
        lake.refresh_views(["daily"])
        path = f"namespaces/{space(rest)}/views/daily"
        there = (client.client.get(path) or {})["metadata"]
        version = {**there["versions"][0], "version-id": 9}
        version["representations"] = [
            {**one, "sql": "SELECT 1 AS n"} for one in version["representations"]
        ]
        change = [
            {"action": "add-view-version", "view-version": version},
            {"action": "set-current-view-version", "view-version-id": -1},
        ]
        client.client.change("POST", path, {"requirements": [], "updates": change})

        assert lake.refresh_views(["daily"]) == ["daily"]
        assert lake.refresh_views([]) == []
        assert others(rest) == {"daily"}

    def test_a_server_without_views_is_named(
        self, rest: Shelf, rest_server: RestServer, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """By what it says of itself; where none are wanted it is not asked for any."""
        rest.make("daily")
        new = rest_catalog(rest.catalog.client._declared, rest.warehouse / "other", "key")  # type: ignore[attr-defined]
        monkeypatch.setitem(
            new.client.__dict__, "_answered", {"endpoints": ["GET /v1/{prefix}/namespaces"]}
        )
        lake = rest.lake()
        lake.catalog = new

        with pytest.raises(InfoldError, match="catalog-without-views") as caught:
            lake.check_views(["daily"])
        rest_server.seen.clear()

        assert "GET /v1/{prefix}/namespaces/{namespace}/views" in str(caught.value)
        assert lake.refresh_views([]) == []
        assert not rest_server.seen
        rest.lake().check_views(["daily"])

    def test_one_who_may_not_look(self, rest: Shelf, rest_server: RestServer) -> None:
        """Who wants no views needs no right there; who does is told which one is missing."""
        rest.make("daily")
        for status in (403, 501):
            with rest_server.rule("GET", "/views", status=status):
                assert rest.lake().refresh_views([]) == ()
        for method in ("GET", "POST"):
            with (
                rest_server.rule(method, "/views", status=403),
                pytest.raises(InfoldError, match="catalog-not-permitted"),
            ):
                rest.lake().refresh_views(["daily"])
        assert rest.lake().refresh_views(["daily"]) == []

    def test_a_death_in_the_middle(self, rest: Shelf, rest_server: RestServer) -> None:
        """Some views are there then, and the next look makes the others."""
        for name in ("daily", "weekly"):
            rest.make(name)
        with (
            rest_server.rule("POST", "/views$", lost=True, times=1),
            pytest.raises(InfoldError, match="catalog-answer-lost"),
        ):
            rest.lake().refresh_views(["daily", "weekly"])
        assert set(queries(rest)) == {"daily"}

        assert rest.lake().refresh_views(["daily", "weekly"], only_new=True) == []
        assert set(queries(rest)) == {"daily", "weekly"}
