"""Catalogs and stores that several files of tests look into."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.servers.catalogs import Shelf, opened
from tests.servers.store_server import StoreServer

from infold.lake.stores import places


def _on_server(*kinds: str) -> list[Any]:
    return [pytest.param(kind, marks=pytest.mark.servers) for kind in kinds]


@pytest.fixture(autouse=True)
def _ways_are_forgotten() -> Iterator[None]:
    """How a test reached its stores is nothing to the next one."""
    yield
    places.forget_ways()


@pytest.fixture
def short_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is asked once more after a while is asked at once."""
    sleep = time.sleep
    monkeypatch.setattr(time, "sleep", lambda seconds: sleep(min(seconds, 0.01)))


@pytest.fixture(params=["sqlite", *_on_server("jdbc", "rest", "hive")])
def shelf(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Shelf]:
    """A catalog of each type."""
    with opened(request.param, request, tmp_path) as found:
        yield found


@pytest.fixture(params=["sqlite", *_on_server("jdbc")])
def database(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Shelf]:
    """A catalog that changes several tables at once."""
    with opened(request.param, request, tmp_path) as found:
        yield found


@pytest.fixture
def jdbc(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Shelf]:
    """A catalog in PostgreSQL."""
    with opened("jdbc", request, tmp_path) as found:
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
