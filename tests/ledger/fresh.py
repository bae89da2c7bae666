"""Ledgers without rows, each in a file of its own, for tests of other rooms."""

from __future__ import annotations

import itertools
from pathlib import Path
from tempfile import TemporaryDirectory

from infold.core.ports import Clock
from infold.ledger import SqlLedger

_FOLDER = TemporaryDirectory(prefix="infold-ledgers-")
_NUMBERS = itertools.count()


class FreshLedger(SqlLedger):
    """A ledger that nobody else knows, so that its holder need not show that it lives."""

    def __init__(self, *, clock: Clock | None = None) -> None:
        super().__init__(Path(_FOLDER.name) / f"{next(_NUMBERS)}.db", clock=clock)

    def acquire(self, run: str, *, wait: float = 0.0) -> None:
        """Take the lease, without a thread that tells of it."""
        super().acquire(run, wait=wait)
        assert self._heartbeat is not None
        self._heartbeat.stop()
