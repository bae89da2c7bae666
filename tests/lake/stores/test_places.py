"""Folders of tables on a disk, while a run beside changes them."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from infold.lake.iceberg.missing_files import names_digest
from infold.lake.stores import places


def test_a_file_that_vanishes_while_a_folder_is_looked_at(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It has no size; and names alone are known without looking at the files."""
    for name in ("metadata/1.metadata.json", "data/a", "data/b"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(name)
    location, vanishing = str(tmp_path / "metadata" / "1.metadata.json"), tmp_path / "data" / "b"
    digest, scandir = names_digest(location), os.scandir

    def listed_then_deleted(folder: str) -> list[os.DirEntry[str]]:
        found = list(scandir(folder))
        if Path(folder) == vanishing.parent:
            vanishing.unlink()
        return found

    monkeypatch.setattr(os, "scandir", listed_then_deleted)
    assert names_digest(location) == digest
    vanishing.touch()
    assert dict(places.sizes(str(vanishing.parent))) == {"a": 6}
