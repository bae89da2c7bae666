"""Where a file of a project is."""

from __future__ import annotations

from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from infold.lake.reading.source_file import location


@given(st.sampled_from(["/data/shop", "/"]), st.text(alphabet="a ./é:_", min_size=1))
def test_it_is_pathlibs(root: str, path: str) -> None:
    """Below the folder of the project, above it or elsewhere, the quick way gives what pathlib
    does.
    """
    assert location(Path(root), path) == str(Path(root) / path)
