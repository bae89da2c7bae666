"""Catalogs and stores that several files of tests look into."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.servers.catalogs import Shelf, opened
from tests.servers.store_server import StoreServer


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


@pytest.fixture(params=["object_store", "google_store", "azure_store", "hdfs"])
def store(request: pytest.FixtureRequest) -> StoreServer:
    """A store of each kind; a test of some of them names those."""
    found: StoreServer = request.getfixturevalue(request.param)
    return found
