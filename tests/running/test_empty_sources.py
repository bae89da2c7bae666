"""A source whose pattern matches no file is named, and no table is built from nothing at first."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.declare.shop import INFOLD, SHOP, write
from tests.running.commands import said
from tests.running.standing_tables import DECLARED, in_ledger

from infold import api
from infold.core.project import Project


def made(root: Path, infold_yml: str = INFOLD, *names: str) -> Project:
    """The shop before its first run, with empty files of these names in its landing folder."""
    write(root, {**SHOP, "infold.yml": infold_yml})
    folder = root / "landing" / "clicks"
    folder.mkdir(parents=True)
    for name in names:
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).touch()
    return api.open_project(root)


@pytest.mark.parametrize(
    ("names", "there"),
    [
        ((), "landing/clicks is empty"),
        (("b.csv",), "landing/clicks has 1 other file: b.csv"),
        (("_x.json", "b.csv", "dt=1/a.json", "z.txt"),
         "landing/clicks has 4 other files: _x.json, b.csv, dt=1/a.json, …"),
    ],
)  # fmt: skip
def test_a_first_build_is_refused(tmp_path: Path, names: tuple[str, ...], there: str) -> None:
    """By plan and run, with what is in the folder: exit code 2, and nothing is written."""
    shop = made(tmp_path, INFOLD, *names)

    for words in ("plan", "run"):
        printed = said(shop, words, code=2)
        assert "no-file-matches: no file matches the path of source raw.clicks" in printed
        assert there in printed
    assert not (tmp_path / "warehouse" / "shop").exists()


def test_it_may_be_said_that_there_is_none_yet(tmp_path: Path) -> None:
    """With `may_be_empty` the tables are built, and nothing is noted."""
    shop = made(tmp_path, DECLARED)

    planned = said(shop, "plan")

    assert "no file matches" not in planned
    assert "clicks" in planned


def test_one_that_never_had_a_file_is_noted_again(shop: Project) -> None:
    """Where its table was built from nothing, in each plan and run: exit code 0."""
    write(shop.root, {"infold.yml": INFOLD})
    in_ledger(shop, "DELETE FROM ingests")

    for words in ("plan", "run"):
        said_so = "raw.clicks: no file matches landing/clicks/*.json; landing/clicks is empty"
        assert said(shop, words).count(said_so) == 1


def test_files_that_settle_are_files(tmp_path: Path) -> None:
    """Files that are too young to be read are on their way: nothing is refused."""
    yml = INFOLD.replace("format: json\n", "format: json\n    settle: 1 day\n")
    shop = made(tmp_path, yml, "a.json")

    assert "no-file-matches" not in said(shop, "plan")
