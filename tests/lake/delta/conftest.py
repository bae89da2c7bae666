"""A warehouse of Delta tables."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.lake.delta.made import Made


@pytest.fixture
def made(tmp_path: Path) -> Made:
    """An empty one, in a folder whose name needs care in URLs."""
    return Made(tmp_path / "a b#é%")
