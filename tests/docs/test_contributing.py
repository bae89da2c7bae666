"""The contributor's page names rooms and files that exist."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "contributing.md").read_text(encoding="utf-8")
NAMED = sorted(set(re.findall(r"`((?:[\w.]+/)+(?:[\w.]+)?)`", PAGE)))


def test_files_that_the_page_names_exist() -> None:
    """Every file that the page names exists in the checkout or in the package."""
    folders = (ROOT, ROOT / "src" / "infold")

    assert len(NAMED) > 30
    assert [path for path in NAMED if not any((each / path).exists() for each in folders)] == []


def test_every_room_is_in_the_table() -> None:
    """Every folder of the package with code is in the table of the page, and no other."""
    package = ROOT / "src" / "infold"
    rooms = {path.parent.name for path in package.glob("*/__init__.py")}

    assert set(re.findall(r"^\| `(\w+)` \|", PAGE, re.MULTILINE)) == rooms


def layers_of_the_contract() -> list[set[str]]:
    """The rooms of each layer that import-linter checks, from high to low."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    (layers,) = [
        contract["layers"]
        for contract in project["tool"]["importlinter"]["contracts"]
        if contract["name"] == "Layers, high to low"
    ]
    return [set(re.findall(r"\w+", layer)) for layer in layers]


def test_the_drawing_has_the_layers_of_the_import_contract() -> None:
    """The drawing, the pages' words for it and `pyproject.toml` have the same rooms in order."""
    drawing = (ROOT / "docs/drawings/rooms.txt").read_text(encoding="utf-8")
    drawn = [
        set(found) for line in drawing.splitlines() if (found := re.findall(r"│  (\w+) ", line))
    ]
    assert drawn == layers_of_the_contract()
    for page in ("contributing.md", "how-it-works.md"):
        text = (ROOT / "docs" / page).read_text(encoding="utf-8")
        (named,) = re.findall(r"!\[[^\]]*high to low: ([^\]]*)\.\]\(drawings/rooms\.svg\)", text)
        assert [set(re.findall(r"\w+", layer)) - {"and"} for layer in named.split(";")] == drawn
