"""A project folder that was copied, moved or opened by another name."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from tests.running.commands import said
from tests.running.production import production

from infold import api
from infold.core.project import Project
from infold.lake.iceberg.copied_warehouse import CatalogInWarehouse
from infold.lake.iceberg.sqlite_catalog import SqliteDatabase
from infold.lake.stores import places


def files(shop: Project) -> set[Path]:
    """All files of a project's warehouse."""
    return {path for path in shop.warehouse.rglob("*") if path.is_file()}


COMMANDS = (
    "plan",
    "status",
    "run",
    "show daily",
    "repair --yes",
    "forget daily --yes --allow-refresh",
    "teardown --yes --allow-refresh",
)


def test_a_copy_leaves_the_files_of_the_original_alone(tmp_path: Path) -> None:
    """Its tables name files of the original: no command reads or changes those."""
    shop = production(tmp_path / "shop")
    shutil.copytree(shop.root, tmp_path / "copy")
    copy = api.open_project(tmp_path / "copy", shop.target.name)
    before = files(shop), files(copy)

    for command in COMMANDS:
        printed = said(copy, *command.split(), code=3)
        assert printed.startswith("copied-warehouse"), printed
        assert str(shop.warehouse) in printed
        assert (files(shop), files(copy)) == before
    said(shop, "plan")


def test_a_copy_without_its_warehouse_has_its_tables_built(tmp_path: Path) -> None:
    """What the ledger alone knows is kept, as the error says."""
    shop = production(tmp_path / "shop")
    shutil.copytree(
        shop.root, tmp_path / "copy", ignore=shutil.ignore_patterns(shop.warehouse.name)
    )
    copy = api.open_project(tmp_path / "copy", shop.target.name)

    said(copy, "repair", "--yes")

    printed = said(copy, "plan")
    assert printed.count("first run") >= 3, printed


def test_another_name_of_the_folder_is_no_copy(tmp_path: Path) -> None:
    """Links to the project, or to the folder that it is in, lead to the same files."""
    shop = production(tmp_path / "real" / "shop")
    (tmp_path / "link").symlink_to(tmp_path / "real")

    linked = api.open_project(tmp_path / "link" / "shop", shop.target.name)

    said(linked, "plan")


def test_one_folder_by_two_paths_is_no_copy(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As with a mount, where names tell nothing: the folder itself is compared."""
    shop = production(tmp_path / "shop")
    (tmp_path / "mounted").symlink_to(shop.warehouse)
    monkeypatch.setattr(places, "is_inside", lambda *_: False)

    same = CatalogInWarehouse(
        SqliteDatabase(shop.catalog_db),
        warehouse=str(tmp_path / "mounted"),
        namespace=shop.namespace,
    )

    assert same.find([(shop.namespace, "daily")])


def test_sources_may_lie_in_another_warehouse(tmp_path: Path) -> None:
    """Tables of other namespaces, which others made and named in this catalog."""
    shop = production(tmp_path / "shop")
    copy = shutil.copytree(shop.warehouse, tmp_path / "copy")
    other = CatalogInWarehouse(
        SqliteDatabase(Path(copy) / shop.catalog_db.name),
        warehouse=str(copy),
        namespace="another",
    )

    assert other.find([(shop.namespace, "daily")])
