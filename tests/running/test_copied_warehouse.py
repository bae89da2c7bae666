"""A project folder that was copied, moved or opened by another name."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from tests.running.commands import infold
from tests.running.production import production

from infold import api
from infold.core.project import Project


def files(shop: Project) -> set[Path]:
    """All files of a project's warehouse."""
    return {path for path in shop.warehouse.rglob("*") if path.is_file()}


@pytest.mark.parametrize(
    "command",
    [
        ("plan",),
        ("status",),
        ("run",),
        ("show", "daily"),
        ("repair", "--yes"),
        ("forget", "daily", "--yes", "--allow-refresh"),
        ("teardown", "--yes", "--allow-refresh"),
    ],
)
def test_a_copy_leaves_the_files_of_the_original_alone(
    tmp_path: Path, command: tuple[str, ...]
) -> None:
    """Its tables name files of the original: no command reads or changes those."""
    shop = production(tmp_path / "shop")
    shutil.copytree(shop.root, tmp_path / "copy")
    copy = api.open_project(tmp_path / "copy", shop.target.name)
    before = files(shop), files(copy)

    code, printed = infold(copy, *command)

    assert code == 3, printed
    assert printed.startswith("copied-warehouse"), printed
    assert str(shop.warehouse) in printed
    assert (files(shop), files(copy)) == before
    assert infold(shop, "plan")[0] == 0


def test_a_copy_without_its_warehouse_has_its_tables_built(tmp_path: Path) -> None:
    """What the ledger alone knows is kept, as the error says."""
    shop = production(tmp_path / "shop")
    shutil.copytree(
        shop.root, tmp_path / "copy", ignore=shutil.ignore_patterns(shop.warehouse.name)
    )
    copy = api.open_project(tmp_path / "copy", shop.target.name)

    code, printed = infold(copy, "repair", "--yes")

    assert code == 0, printed
    code, printed = infold(copy, "plan")
    assert code == 0, printed
    assert printed.count("first run") >= 3, printed


def test_another_name_of_the_folder_is_no_copy(tmp_path: Path) -> None:
    """Links to the project, or to the folder that it is in, lead to the same files."""
    shop = production(tmp_path / "real" / "shop")
    (tmp_path / "link").symlink_to(tmp_path / "real")

    linked = api.open_project(tmp_path / "link" / "shop", shop.target.name)

    assert infold(linked, "plan")[0] == 0
