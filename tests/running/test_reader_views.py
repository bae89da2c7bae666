"""`hide_technical: views`: when runs and other commands make the views of a target anew."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest
from tests.running.commands import infold
from tests.running.production import TARGET, shop_in_production
from tests.running.promoted import MORE, OWN, with_environment
from tests.running.standing_tables import NAMES, put

from infold import api
from infold.api.doctor import examine
from infold.core.project import Project
from infold.running.publish import refresh_views


@pytest.fixture
def shop(tmp_path: Path) -> Project:
    """The shop in production, with built tables and no views."""
    return shop_in_production(tmp_path / "shop")


@pytest.fixture
def hiding(shop: Project) -> Project:
    """The same with the key, before a run."""
    return with_key(shop)


def with_key(shop: Project) -> Project:
    """The project with the key in infold.yml."""
    file, new = shop.root / "infold.yml", TARGET.replace("{", "{hide_technical: views, ", 1)
    file.write_text(file.read_text(encoding="utf-8").replace(TARGET, new), encoding="utf-8")
    return api.open_project(shop.root, "prod")


def views(shop: Project) -> set[str]:
    """The views in the catalog."""
    with closing(sqlite3.connect(shop.catalog_db)) as catalog:
        found = catalog.execute(
            "SELECT table_name FROM iceberg_tables"
            " WHERE table_namespace = ? AND iceberg_type = 'VIEW'",
            (f"{shop.namespace}_views",),
        )
        return {name for (name,) in found}


def test_a_run_with_nothing_to_do_makes_them(hiding: Project) -> None:
    """The key takes effect with the next run, whatever that builds; tables are not written."""
    code, printed = infold(hiding, "run")

    assert (code, "Nothing to do" in printed) == (0, True), printed
    assert views(hiding) == {*NAMES}


def test_not_without_the_key(shop: Project) -> None:
    """By default there are none."""
    assert infold(shop, "run")[0] == 0
    assert views(shop) == set()


def test_a_forgotten_model_has_none(hiding: Project) -> None:
    """Its view would name a table that is not there."""
    infold(hiding, "run")

    assert infold(hiding, "forget", "daily", "--yes", "--allow-refresh")[0] == 0

    assert views(hiding) == {"clicks", "sessions"}


def test_a_teardown_takes_them_along(hiding: Project) -> None:
    """Nothing of infold's is left in the catalog, and nothing on the disk."""
    infold(hiding, "run")

    code, printed = infold(hiding, "teardown", "--yes", "--allow-refresh")

    assert code == 0, printed
    assert views(hiding) == set()
    assert not any((hiding.warehouse / f"{hiding.namespace}_views").rglob("*.json"))


def test_the_key_is_taken_away(hiding: Project) -> None:
    """So are the views, with the next command that changes a table."""
    infold(hiding, "run")
    file = hiding.root / "infold.yml"
    file.write_text(file.read_text(encoding="utf-8").replace("hide_technical: views, ", ""))

    assert infold(hiding, "forget", "daily", "--yes", "--allow-refresh")[0] == 0

    assert views(hiding) == set()


def test_a_promote_makes_them_anew(shop: Project) -> None:
    """The table under the name is another one, maybe with other columns."""
    with_environment(shop, MORE, own={"sessions": {"clicks": 1}})
    hiding = with_key(shop)
    refresh_views(hiding, api.lake(hiding))
    made = _files(hiding)
    own = Path((api.lake(hiding).location(OWN["sessions"]) or "").removeprefix("file:"))
    schema = '{"schema-id": 0, "fields": [{"id": 1, "name": "dearest", "type": "long"}]}'
    text = own.read_text().replace("{", f'{{"current-schema-id": 0, "schemas": [{schema}], ', 1)
    own.write_text(text)

    code, printed = infold(hiding, "promote", "dev", "--yes")

    assert code == 0, printed
    assert {path.parent.parent.name for path in _files(hiding) - made} == {"sessions"}


def test_a_repair_makes_them_anew(hiding: Project) -> None:
    """Those of tables that are gone go, those that are missing come."""
    infold(hiding, "run")
    with closing(sqlite3.connect(hiding.catalog_db)) as catalog, catalog:
        catalog.execute("DELETE FROM iceberg_tables WHERE table_name = 'daily'")
        catalog.execute(
            "DELETE FROM iceberg_tables WHERE table_name = 'sessions' AND iceberg_type = 'VIEW'"
        )
        catalog.execute(
            "INSERT INTO iceberg_tables SELECT catalog_name, table_namespace, 'daily',"
            " metadata_location, NULL, 'VIEW' FROM iceberg_tables"
            " WHERE table_name = 'clicks' AND iceberg_type = 'VIEW'"
        )

    code, printed = infold(hiding, "repair", "--yes")

    assert code == 0, printed
    assert views(hiding) == {"clicks", "sessions"}


def test_after_a_death_all_are_looked_at(hiding: Project) -> None:
    """A run that died may have changed a table, and no view after it: the next one does that."""
    infold(hiding, "run")
    made = _files(hiding)
    at = Path((api.lake(hiding).location("daily") or "").removeprefix("file:"))
    schema = '{"schema-id": 0, "fields": [{"id": 1, "name": "dearest", "type": "long"}]}'
    text = at.read_text(encoding="utf-8")
    at.write_text(text.replace("{", f'{{"current-schema-id": 0, "schemas": [{schema}], ', 1))
    assert infold(hiding, "run")[0] == 0
    assert _files(hiding) == made  # nothing told that run to look

    with closing(sqlite3.connect(hiding.root / "prod.db")) as book, book:
        book.execute("UPDATE runs SET state = 'died'")
    assert infold(hiding, "run")[0] == 0

    assert {path.parent.parent.name for path in _files(hiding) - made} == {"daily"}


@pytest.mark.parametrize(
    "command",
    ["run", "forget sessions --yes --allow-refresh", "repair --yes"],
    ids=["run", "forget", "repair"],
)
def test_among_the_tables_of_another_project_are_none(hiding: Project, command: str) -> None:
    """A command that would make them there is refused, and changes nothing."""
    with closing(sqlite3.connect(hiding.catalog_db)) as catalog, catalog:
        catalog.execute(
            "INSERT INTO iceberg_tables SELECT catalog_name, ?, 'orders', metadata_location, NULL,"
            " 'TABLE' FROM iceberg_tables WHERE table_name = 'clicks'",
            (f"{hiding.namespace}_views",),
        )
        catalog.execute("DELETE FROM iceberg_tables WHERE table_name = 'daily'")  # to be repaired

    code, printed = infold(hiding, *command.split())

    assert (code, "catalog-shared-namespace" in printed) == (2, True), printed
    assert views(hiding) == set()
    assert {*api.lake(hiding).made_tables()} == {*NAMES} - {"daily"}


def test_doctor_says_so_before(hiding: Project) -> None:
    """Whether views can be made is tried, and found out by no run."""
    with closing(sqlite3.connect(hiding.catalog_db)) as catalog, catalog:
        catalog.execute(
            "UPDATE iceberg_tables SET table_namespace = ? WHERE table_name = 'daily'",
            (f"{hiding.namespace}_views",),
        )

    found = next(one for one in examine(hiding.root, "prod") if one.name == "tables")

    assert [error.slug for error in found.errors] == ["catalog-shared-namespace"]


def test_an_environment_has_none(hiding: Project) -> None:
    """Its tables come and go; and its runs leave those of production alone."""
    infold(hiding, "run")
    before = _files(hiding)
    put(hiding, "daily__00000001", "s", 5)

    assert refresh_views(_in_environment(hiding), api.lake(hiding)) == ()
    assert (views(hiding), _files(hiding)) == ({*NAMES}, before)


def test_a_name_that_is_taken_is_told(hiding: Project) -> None:
    """What somebody else made stays; the run says that there is no view."""
    with closing(sqlite3.connect(hiding.catalog_db)) as catalog, catalog:
        catalog.execute(
            "INSERT INTO iceberg_tables VALUES ('infold', ?, 'daily', 'elsewhere', NULL, 'VIEW')",
            (f"{hiding.namespace}_views",),
        )

    code, printed = infold(hiding, "run")

    assert code == 0
    assert "no view of daily was made" in printed


def _in_environment(shop: Project) -> Project:
    return replace(shop, environment="dev")


def _files(shop: Project) -> set[Path]:
    return {*(shop.warehouse / f"{shop.namespace}_views").rglob("*.json")}
