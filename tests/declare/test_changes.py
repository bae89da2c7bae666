"""Changes of a project's files are seen, whatever an editor does; others are not."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from tests.declare.shop import write

from infold.declare.folder import each_change


def add(root: Path) -> None:
    """A new model, in a folder of its own."""
    (root / "models" / "more").mkdir()
    (root / "models" / "more" / "new.sql").write_text("SELECT 1 AS one")


def replace(root: Path) -> None:
    """What editors do: another file of the same size takes the name, with the time of the first."""
    path = root / "infold.yml"
    before = path.stat()
    other = root / "infold.yml.new"
    other.write_text(path.read_text().replace("shop", "shup"))
    other.rename(path)
    assert path.stat().st_size == before.st_size


def change_module(root: Path) -> None:
    """A module that a function imports from the folder of the project."""
    (root / "helpers.py").write_text("FACTOR = 3\n")


CHANGES: list[Callable[[Path], object]] = [
    add,
    replace,
    change_module,
    lambda root: (root / "models" / "daily.sql").unlink(),
    lambda root: (root / "infold.yml").unlink(),
]


def project(folder: Path) -> Path:
    """A project with a function that imports a module."""
    root = write(folder)
    (root / "functions").mkdir()
    (root / "helpers.py").write_text("FACTOR = 22\n")
    (root / "functions" / "twice.py").write_text(
        "from helpers import FACTOR\n"
        "from infold import function\n"
        '@function(parameters=["INT"], returns="INT", deterministic=True)\n'
        "def twice(n):\n    return n * FACTOR\n"
    )
    return root


class Quiet(Exception):  # noqa: N818 (it is what has been found)
    """Nothing changed for two looks."""


@pytest.mark.parametrize("change", CHANGES)
def test_a_change_is_seen(tmp_path: Path, change: Callable[[Path], object]) -> None:
    """The next look sees it; while nothing changes, there are looks and pauses."""
    root = project(tmp_path)
    pauses: list[float] = []

    def sleep(seconds: float) -> None:
        pauses.append(seconds)
        if len(pauses) == 2:
            change(root)
        if len(pauses) == 5:
            raise Quiet

    found = each_change(root, sleep)
    next(found)
    next(found)

    assert len(pauses) == 2
    with pytest.raises(Quiet):
        next(found)


def test_what_changes_meanwhile_is_seen_without_a_pause(tmp_path: Path) -> None:
    """A file that is saved while the project is checked is checked too."""
    root = project(tmp_path)
    found = each_change(root, lambda _: pytest.fail("a pause"))
    next(found)
    add(root)

    next(found)


def test_other_files_are_no_change(tmp_path: Path) -> None:
    """What runs write, and what lands, is no reason to check again."""
    root = project(tmp_path)

    def sleep(_: float) -> None:
        if (root / "landing").exists():
            raise Quiet
        (root / "landing").mkdir()
        (root / "landing" / "a.json").write_text("{}")
        (root / ".infold").mkdir()
        (root / ".infold" / "ledger.db").write_bytes(b"")

    found = each_change(root, sleep)
    next(found)

    with pytest.raises(Quiet):
        next(found)
