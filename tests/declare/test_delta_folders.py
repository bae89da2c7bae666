"""Two targets whose tables would be in one folder, each in another storage."""

from __future__ import annotations

from pathlib import Path

import pytest

from infold.core.storages import Storage
from infold.core.target import Target
from infold.declare.delta import same_folders
from infold.messages.errors import Spot


@pytest.mark.parametrize("written", ["w", "./w", "linked"])
def test_one_folder_by_two_names_is_told(tmp_path: Path, written: str) -> None:
    """By a path that is written otherwise, and by a link."""
    (tmp_path / "w").mkdir()
    (tmp_path / "linked").symlink_to(tmp_path / "w")
    targets = {
        "dev": Target("dev", warehouse="w"),
        "new": Target("new", warehouse=written, storage=Storage.DELTA),
    }
    spots = {name: Spot.of_line("infold.yml", 1, "") for name in targets}

    [error] = same_folders(tmp_path, targets, spots)

    assert error.slug == "not-with-delta"
