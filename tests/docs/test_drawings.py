"""The pictures of the docs are what their texts say, and every one is shown."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

DOCS = Path(__file__).parents[2] / "docs"
DRAWINGS = sorted((DOCS / "drawings").glob("*.txt"))


def test_the_pictures_are_current() -> None:
    """Each picture is what `python docs/draw.py` writes from its text."""
    done = subprocess.run(
        [sys.executable, str(DOCS / "draw.py"), "--check"],
        capture_output=True,
        text=True,
        check=False,
    )

    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("drawing", DRAWINGS, ids=lambda path: path.stem)
def test_every_picture_is_on_a_page_and_described_there(drawing: Path) -> None:
    """Each picture is on a page, with a sentence for readers who do not see it."""
    picture = re.escape(f"drawings/{drawing.stem}.svg")
    texts = [
        alt
        for page in DOCS.rglob("*.md")
        for alt in re.findall(rf"!\[([^\]]*)\]\([./]*{picture}\)", page.read_text(encoding="utf-8"))
    ]

    assert texts
    assert min(map(len, texts)) > 40


def test_every_picture_of_a_page_has_a_text() -> None:
    """Each has a text that `docs/draw.py` draws, or one that `docs/pictures.py` recorded."""
    shown = {
        (page.parent / path).resolve()
        for page in DOCS.rglob("*.md")
        for path in re.findall(r"!\[[^\]]*\]\(([^)]+)\)", page.read_text(encoding="utf-8"))
    }

    recorded = (DOCS / "pictures").glob("*.ansi")
    assert shown == {path.with_suffix(".svg") for path in (*DRAWINGS, *recorded)}


def test_every_concept_has_a_picture() -> None:
    """Each page of docs/concepts shows a picture."""
    for page in (DOCS / "concepts").glob("*.md"):
        assert "](../drawings/" in page.read_text(encoding="utf-8"), page.name
