"""Catalogs that several files of tests look into."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.servers.catalogs import Shelf, opened


@pytest.fixture(params=["sqlite", "jdbc", "rest", "hive"])
def shelf(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Shelf]:
    """A catalog of each type."""
    with opened(request.param, request, tmp_path) as found:
        yield found


@pytest.fixture
def rest(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Shelf]:
    """A catalog by REST."""
    with opened("rest", request, tmp_path) as found:
        yield found
