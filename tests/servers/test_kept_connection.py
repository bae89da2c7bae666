"""A forked process leaves the connections of its parent alone, on a real PostgreSQL server."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from tests.ledger.conftest import Place
from tests.servers.catalogs import opened
from tests.servers.postgresql import Postgresql

from infold.lake.iceberg.jdbc_catalog import PostgresqlCatalog
from infold.lake.iceberg.sql_catalog import SqlCatalog
from infold.ledger.postgresql import PostgresqlDatabase
from infold.system.postgresql_server import KeptConnection

pytestmark = pytest.mark.servers

Opened = tuple[KeptConnection, Callable[[], object]]
"""What keeps a connection, and a question that is asked over it."""


@contextmanager
def of_a_ledger(request: pytest.FixtureRequest, _folder: Path) -> Iterator[Opened]:
    """That of a ledger."""
    server: Postgresql = request.getfixturevalue("postgresql")
    place = Place(server.url(), server.schema())
    ledger = place.open()
    assert isinstance(ledger._database, PostgresqlDatabase)
    yield ledger._database._connection, ledger.locations
    place.close()


@contextmanager
def of_a_catalog(request: pytest.FixtureRequest, folder: Path) -> Iterator[Opened]:
    """That of a catalog."""
    with opened("jdbc", request, folder) as shelf:
        assert isinstance(shelf.catalog, SqlCatalog)
        database = shelf.catalog.database
        assert isinstance(database, PostgresqlCatalog)
        yield database._connection, lambda: shelf.catalog.locations("shop")


@pytest.mark.parametrize("of", [of_a_ledger, of_a_catalog])
def test_a_child_process_leaves_its_parents_connection(
    of: Callable[..., Iterator[Opened]], request: pytest.FixtureRequest, tmp_path: Path
) -> None:
    """It asks over its own, and closing that at its end does not close its parent's."""
    with of(request, tmp_path) as (kept, ask):  # type: ignore[attr-defined]
        expected, before = ask(), kept.current
        read, write = os.pipe()
        child = os.fork()
        if not child:
            try:
                kept.close()  # as at the end of a process
                same = ask() == expected and kept.current is not None
                os.write(write, b"own" if same and kept.current is not before else b"not its own")
                kept.close()
            finally:
                os._exit(0)
        os.waitpid(child, 0)
        os.close(write)

        with os.fdopen(read) as told:
            assert told.read() == "own"
        assert kept.current is before
        assert before is not None
        assert before.execute("SELECT 1").fetchone() == (1,)
        kept.close()
