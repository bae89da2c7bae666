"""`hide_technical: views`: when runs and other commands make the views of a target anew."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from tests.running.commands import said
from tests.running.production import TARGET, with_applied
from tests.running.promoted import MORE, OWN, with_environment
from tests.running.standing_tables import NAMES, in_catalog, in_ledger, put

from infold import api
from infold.api.doctor import examine
from infold.core.project import Project
from infold.running.publish import refresh_views

shop = with_applied


@pytest.fixture
def hiding(shop: Project) -> Project:
    """The same with the key, before a run."""
    return with_key(shop)


@pytest.fixture
def made(hiding: Project) -> Project:
    """The same after a run with nothing to do: the key takes effect whatever that builds."""
    assert "Nothing to do" in said(hiding, "run")
    assert views(hiding) == {*NAMES}
    return hiding


def with_key(shop: Project) -> Project:
    """The project with the key in infold.yml."""
    file, new = shop.root / "infold.yml", TARGET.replace("{", "{hide_technical: views, ", 1)
    file.write_text(file.read_text(encoding="utf-8").replace(TARGET, new), encoding="utf-8")
    return api.open_project(shop.root, "prod")


def views(shop: Project) -> set[str]:
    """The views in the catalog."""
    columns = "table_name, table_namespace, iceberg_type"
    found = in_catalog(shop, f"SELECT {columns} FROM iceberg_tables")
    return {name for name, *where in found if where == [f"{shop.namespace}_views", "VIEW"]}


def with_other_columns(shop: Project, table: str) -> None:
    """A table whose metadata has a column."""
    at = Path((api.lake_of(shop).location(table) or "").removeprefix("file:"))
    schema = '{"schema-id": 0, "fields": [{"id": 1, "name": "dearest", "type": "long"}]}'
    text = at.read_text(encoding="utf-8")
    at.write_text(text.replace("{", f'{{"current-schema-id": 0, "schemas": [{schema}], ', 1))


def test_where_there_are_none(shop: Project) -> None:
    """By default; and of an environment, whose tables come and go: its runs leave those of
    production alone.
    """
    said(shop, "run")
    assert views(shop) == set()
    made = with_key(shop)
    said(made, "run")
    before = _files(made)
    put(made, "daily__00000001", "s", 5)

    assert refresh_views(replace(made, environment="dev"), api.lake_of(made)) == ()
    assert (views(made), _files(made)) == ({*NAMES}, before)


def test_a_forgotten_model_has_none(made: Project) -> None:
    """It would name no table. A teardown takes all along; without the key the next command that
    changes a table does.
    """
    said(made, "forget", "daily", "--yes", "--allow-refresh")
    assert views(made) == {"clicks", "sessions"}

    file = made.root / "infold.yml"
    text = file.read_text(encoding="utf-8")
    file.write_text(text.replace("hide_technical: views, ", ""))
    said(made, "forget", "sessions", "--yes", "--allow-refresh")
    assert views(made) == set()
    file.write_text(text)
    said(made, "run", "clicks")
    assert views(made) == {"clicks"}
    said(made, "teardown", "--yes", "--allow-refresh")
    assert (views(made), _files(made)) == (set(), set())


def test_a_promote_makes_them_anew(shop: Project) -> None:
    """The table under the name is another one, maybe with other columns."""
    with_environment(shop, MORE, own={"sessions": {"clicks": 1}})
    hiding = with_key(shop)
    refresh_views(hiding, api.lake_of(hiding))
    made = _files(hiding)
    with_other_columns(hiding, OWN["sessions"])

    said(hiding, "promote", "dev", "--yes")

    assert {path.parent.parent.name for path in _files(hiding) - made} == {"sessions"}


def test_a_repair_makes_them_anew(made: Project) -> None:
    """Those of tables that are gone go, those that are missing come."""
    gone = "DELETE FROM iceberg_tables WHERE table_name = ? AND iceberg_type = ?"
    in_catalog(made, gone, "daily", "TABLE")
    in_catalog(made, gone, "sessions", "VIEW")

    said(made, "repair", "--yes")

    assert views(made) == {"clicks", "sessions"}


def test_after_a_death_all_are_looked_at(made: Project) -> None:
    """A run that died may have changed a table, and no view after it: the next one does that."""
    before = _files(made)
    with_other_columns(made, "daily")
    said(made, "run")
    assert _files(made) == before  # nothing told that run to look

    in_ledger(made, "UPDATE runs SET state = 'died'")
    said(made, "run")

    assert {path.parent.parent.name for path in _files(made) - before} == {"daily"}


@pytest.mark.parametrize(
    "command", ["run", "forget sessions --yes --allow-refresh", "repair --yes"]
)
def test_among_the_tables_of_another_project_are_none(hiding: Project, command: str) -> None:
    """A command that would make them is refused, and changes nothing; doctor says so before."""
    in_catalog(
        hiding,
        "INSERT INTO iceberg_tables SELECT catalog_name, ?, 'orders', metadata_location, NULL,"
        " 'TABLE' FROM iceberg_tables WHERE table_name = 'clicks'",
        f"{hiding.namespace}_views",
    )
    found = next(one for one in examine(hiding.root, "prod") if one.name == "tables")
    assert [error.slug for error in found.errors] == ["catalog-shared-namespace"]
    in_catalog(hiding, "DELETE FROM iceberg_tables WHERE table_name = 'daily'")  # to be repaired

    assert "catalog-shared-namespace" in said(hiding, *command.split(), code=2)
    assert views(hiding) == set()
    assert {*api.lake_of(hiding).made_tables()} == {*NAMES} - {"daily"}


def test_a_name_that_is_taken_is_told(hiding: Project) -> None:
    """What somebody else made stays; the run says that there is no view."""
    in_catalog(
        hiding,
        "INSERT INTO iceberg_tables VALUES ('infold', ?, 'daily', 'elsewhere', NULL, 'VIEW')",
        f"{hiding.namespace}_views",
    )

    assert "no view of daily was made" in said(hiding, "run")


def _files(shop: Project) -> set[Path]:
    return {*(shop.warehouse / f"{shop.namespace}_views").rglob("*.json")}
