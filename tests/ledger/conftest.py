"""The two ledgers, in a file and in memory, that the contract is tested on."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.ledger.memory import MemoryLedger

from infold.core.ports import Ledger
from infold.ledger.store import SqlLedger


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


@pytest.fixture
def sql(tmp_path: Path) -> Iterator[SqlLedger]:
    """An empty ledger in a file, nobody holding it."""
    ledger = SqlLedger(tmp_path / ".infold" / "ledger.db", clock=Ticks())
    yield ledger
    ledger.close()


@pytest.fixture(params=["sql", "memory"])
def ledger(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Ledger]:
    """A ledger of either kind, its lease held by run ``r1``, which is running."""
    if request.param == "memory":
        found: Ledger = MemoryLedger(clock=Ticks())
    else:
        found = SqlLedger(tmp_path / "ledger.db", clock=Ticks())
    found.acquire("r1")
    found.begin_run("r1", "run", 5, {})
    yield found
    found.release()
