"""
Several players side by side: the tests of one file with one player, as they begin alike.

Each has a scratch of its own, with tables, ledgers and a session; they share one Spark.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from queue import Empty, Queue

from infold.core.unit_tests import TestResult, UnitTest
from infold.system import signals
from infold.testing.play import Player
from infold.testing.scratch import Scratch

MOST = 4
"""Players at once: the rest of a run is in Spark, which has a thread for each core itself."""


@dataclass
class Workers:
    """Plays tests by ``players``; ``done`` is called after each test, by one thread at a time."""

    players: Sequence[Player]
    done: Callable[[TestResult], None]
    _lock: threading.Lock = field(default_factory=threading.Lock)
    _stopped: threading.Event = field(default_factory=threading.Event)

    def play(self, tests: Sequence[UnitTest]) -> Mapping[str, TestResult]:
        """The results by the names of the tests."""
        files: dict[str, list[UnitTest]] = {}
        for test in tests:
            files.setdefault(test.file, []).append(test)
        waiting: Queue[list[UnitTest]] = Queue()
        for some in files.values():
            waiting.put(some)
        if len(self.players) == 1:
            return dict(self._play_all(self.players[0], waiting))
        with ThreadPoolExecutor(len(self.players)) as pool:
            begun = [
                pool.submit(lambda one: dict(self._play_all(one, waiting)), player)
                for player in self.players
            ]
            return self._together(begun)

    def _together(self, begun: Sequence[Future[dict[str, TestResult]]]) -> dict[str, TestResult]:
        found: dict[str, TestResult] = {}
        try:
            for one in begun:
                found |= one.result()
        except BaseException as error:
            self._stopped.set()
            if isinstance(error, KeyboardInterrupt | signals.Stopped):
                signals.end_children()  # what still runs ends with Spark
            raise
        return found

    def _play_all(
        self, player: Player, waiting: Queue[list[UnitTest]]
    ) -> Iterator[tuple[str, TestResult]]:
        while not self._stopped.is_set():
            try:
                some = waiting.get_nowait()
            except Empty:
                return
            for test in some:
                if not self._stopped.is_set():
                    yield test.name, self._play(player, test)

    def _play(self, player: Player, test: UnitTest) -> TestResult:
        begun = time.monotonic()
        result = replace(player.play(test), seconds=time.monotonic() - begun)
        with self._lock:
            self.done(result)
        return result


def workers(
    first: Player, tests: Sequence[UnitTest], done: Callable[[TestResult], None]
) -> Workers:
    """As many as the machine has cores for, and no more than there are files."""
    number = min(os.cpu_count() or 1, MOST, len({test.file for test in tests}))
    players = [first]
    for at in range(1, number):
        scratch = Scratch(
            first.scratch.root.parent / f"{at}", first.scratch.base, first.scratch.types
        )
        scratch.spark  # noqa: B018 (sessions are made one after the other)
        players.append(Player(scratch, first.tables, first.seed, first.shuffles))
    return Workers(players, done)
