"""Warehouses of Delta tables."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.lake.delta.made import Made, Named
from tests.lake.made_up_hive import MadeUpHive, connected


@pytest.fixture
def made(tmp_path: Path) -> Made:
    """An empty one, in a folder whose name needs care in URLs."""
    return Made(tmp_path / "a b#é%")


@pytest.fixture
def hive(monkeypatch: pytest.MonkeyPatch) -> MadeUpHive:
    """A metastore without tables."""
    return connected(monkeypatch)


@pytest.fixture
def named(tmp_path: Path) -> Named:
    """An empty warehouse, in a folder whose name needs care in URLs, with names in a metastore."""
    return Named(tmp_path / "a b#é%")
