"""Where a file of a project is."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from infold.lake.reading.source_file import location

ROOT = Path("/data/shop")


@given(st.text(alphabet="a ./é:_", min_size=1))
def test_it_is_pathlibs(path: str) -> None:
    """However a path is written, the quick way gives what pathlib does."""
    assert location(ROOT, path) == str(ROOT / path)


@pytest.mark.parametrize(
    ("root", "path", "found"),
    [
        ("/data/shop", "landing/a.json", "/data/shop/landing/a.json"),
        ("/data/shop", "../landing/a.json", "/data/shop/../landing/a.json"),
        ("/data/shop", "/elsewhere/a.json", "/elsewhere/a.json"),
        ("/", "a.json", "/a.json"),
    ],
)
def test_where_it_is(root: str, path: str, found: str) -> None:
    """Below the folder of the project, above it, elsewhere; below the root."""
    assert location(Path(root), path) == found
