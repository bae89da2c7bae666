"""A table that moved on since it was listed is not read: its files say so."""

from __future__ import annotations

import pytest

from infold.core.files import ListedFile
from infold.core.formats import Format
from infold.core.model import Source
from infold.lake.reading.source_file import SourceFile
from infold.messages.errors import InfoldError
from infold.spark.reading.drift import PresentFile, refuse_moved

SOURCE = Source("raw.orders", Format.DELTA, (), path="orders")


@pytest.mark.parametrize(
    ("taken", "moved"),
    [("9:1", False), ("9:1|policy", False), ("9:1:2:marks", True), ("9:2|policy", True)],
)
def test_a_file_is_the_one_that_was_listed(taken: str, moved: bool) -> None:
    """By its fingerprint, without what the source decides about files as a whole."""
    file = PresentFile(1, "a.parquet", SourceFile("a.parquet", 9), fingerprint=taken)
    listed = [ListedFile("a.parquet", 9, 0, "9:1")]
    if not moved:
        refuse_moved(SOURCE, [file], listed)
    else:
        with pytest.raises(InfoldError, match="source-changed"):
            refuse_moved(SOURCE, [file], listed)
    with pytest.raises(InfoldError, match="source-changed"):
        refuse_moved(SOURCE, [file], [])
