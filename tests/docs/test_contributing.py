"""The contributor's page names rooms and files that exist."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "contributing.md").read_text(encoding="utf-8")
NAMED = sorted(set(re.findall(r"`((?:[\w.]+/)+(?:[\w.]+)?)`", PAGE)))


def test_the_page_names_files_at_all() -> None:
    """Else the next test says nothing."""
    assert len(NAMED) > 30


@pytest.mark.parametrize("path", NAMED)
def test_what_the_page_names_is_there(path: str) -> None:
    """From the root of the checkout, or from the package."""
    assert (ROOT / path).exists() or (ROOT / "src" / "infold" / path).exists()


def test_every_room_is_in_the_drawing() -> None:
    """A folder of the package that is code, and no other."""
    package = ROOT / "src" / "infold"
    rooms = {path.parent.name for path in package.glob("*/__init__.py")} - {"demo", "starter"}

    drawn = set(re.findall(r"\b(\w+)\[\1: ", PAGE))
    assert drawn == rooms | {"api"}
