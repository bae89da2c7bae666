"""The ledgers that the contract is tested on: in a file, and on a server."""

from __future__ import annotations

import multiprocessing
import os
import signal
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from infold.core import write_points
from infold.core.ports import Ledger
from infold.ledger import SqlLedger, open_ledger

ON_A_SERVER = pytest.param("postgresql", marks=pytest.mark.servers)
DATABASES = ["sqlite", ON_A_SERVER]
FORK = multiprocessing.get_context("fork")


class Ticks:
    """A clock that moves by one each time it is read, so that an order of events shows."""

    def __init__(self) -> None:
        self.at = 1_000

    def now(self) -> int:
        """One later than before."""
        self.at += 1
        return self.at


class Stopped:
    """A stopped clock, so that two histories can be compared."""

    def now(self) -> int:
        """Always the same."""
        return 1_000


@dataclass
class Place:
    """Where a ledger is or will be; any number of ledgers open it, also in other processes."""

    url: str
    schema: str
    opened: list[SqlLedger] = field(default_factory=list)

    def open(self, **how: Any) -> SqlLedger:
        """A ledger there."""
        found = open_ledger(self.url, Path("/"), schema=self.schema)
        made = SqlLedger(found._database, **how)
        self.opened.append(made)
        return made

    def close(self) -> None:
        """Close what was opened; a lease that another took over stays where it is."""
        for ledger in self.opened:
            ledger.close()


def killed(at: str, work: Callable[[], object]) -> bool:
    """Do something in another process, which gets SIGKILL at a write point; whether it did."""
    child = os.fork()
    if not child:

        def point(name: str) -> None:
            if name == at:
                os.kill(os.getpid(), signal.SIGKILL)

        write_points.point = point
        try:
            work()
        finally:
            os._exit(0)
    return os.waitpid(child, 0)[1] == signal.SIGKILL


@pytest.fixture
def points(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The write points that are passed."""
    found: list[str] = []
    monkeypatch.setattr(write_points, "point", found.append)
    return found


@pytest.fixture(scope="session", params=DATABASES)
def new_place(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Callable[[], Place]:
    """Makes places without a ledger."""
    if request.param == "sqlite":
        folder = tmp_path_factory.mktemp("ledgers")
        numbers = iter(range(10**9))
        return lambda: Place(f"sqlite:///{folder / str(next(numbers)) / 'ledger.db'}", "")
    server = request.getfixturevalue("postgresql")
    return lambda: Place(server.url(), server.schema())


@pytest.fixture
def place(new_place: Callable[[], Place]) -> Iterator[Place]:
    """Where no ledger is."""
    found = new_place()
    yield found
    found.close()


@pytest.fixture
def there(new_place: Callable[[], Place]) -> Iterator[Place]:
    """Another place where no ledger is: for a copy, or what is imported."""
    found = new_place()
    yield found
    found.close()


@pytest.fixture
def original(place: Place) -> SqlLedger:
    """A ledger with rows in every table."""
    from tests.ledger import filled

    found = place.open()
    filled.fill(found)
    return found


@pytest.fixture
def sql(place: Place) -> SqlLedger:
    """An empty ledger in a database, nobody holding it."""
    return place.open(clock=Ticks())


@pytest.fixture(params=DATABASES)
def ledger(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Ledger]:
    """A ledger of any kind, its lease held by run ``r1``, which is running."""
    if request.param == "sqlite":
        found = SqlLedger(tmp_path / "ledger.db", clock=Ticks())
    else:
        server = request.getfixturevalue("postgresql")
        found = Place(server.url(), server.schema()).open(clock=Ticks())
    found.acquire("r1")
    found.begin_run("r1", "run", 5, {})
    yield found
    found.release()
    found.close()
