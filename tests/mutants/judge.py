"""
Judges mutants within one run of pytest: its tests are collected once.

Each mutant is put into a fork of the process (``swapped``), where tests run until one fails: that
which noticed it last time, then those of the changed room, then all others. Tests that need Spark
run in this process, as a JVM is not forked with it: the ones that a mutant names.
"""

from __future__ import annotations

import json
import os
import signal
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from _pytest.runner import runtestprotocol
from tests.mutants.listed import Mutant
from tests.mutants.swapped import Swap, swapped, swaps

AT_ONCE = os.cpu_count() or 1
SECONDS = 120
"""A test that goes on for longer hangs, and so it has noticed the mutant."""

Verdict = str | None
"""The test that fails, or None."""
Begun = Callable[[str], object]
"""Notes the test that has begun: where it does not end, the process ends, and names it."""


class Judge:
    """A plugin of pytest that runs the collected tests with each mutant, and not without one."""

    def __init__(self, mutants: Sequence[Mutant], first: Mapping[str, str]) -> None:
        self.mutants = mutants
        self.first = first
        """By name of a mutant the test that noticed it last time, tried before others."""
        self.unswappable: list[Mutant] = []
        self.failing: list[str] = []
        """Tests that fail without any mutant."""
        self.capture: Any = None
        self.verdicts: dict[str, Verdict] = {}

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        """Takes the place of the plain run of all tests."""
        self.capture = session.config.pluginmanager.getplugin("capturemanager")
        changes = swaps(self.mutants)
        self.unswappable = [one for one in self.mutants if not changes[one.name]]
        meant = [one for one in self.mutants if changes[one.name]]
        tests = {item.nodeid: item for item in session.items}
        if any(mutant.spark for mutant in meant):
            self._judge_here(meant, changes, tests)
        else:
            self._judge_in_forks(meant, changes, tests)
        return True

    def _judge_here(
        self,
        meant: Sequence[Mutant],
        changes: Mapping[str, tuple[Swap, ...]],
        tests: Mapping[str, pytest.Item],
    ) -> None:
        self.failing = [test for test in tests if _first_failing([tests[test]])]
        for mutant in meant:
            named = [test for test in tests if test.startswith(mutant.spark)]
            with swapped(changes[mutant.name]):
                self._note(mutant, _first_failing([tests[test] for test in named]))

    def _judge_in_forks(
        self,
        meant: Sequence[Mutant],
        changes: Mapping[str, tuple[Swap, ...]],
        tests: Mapping[str, pytest.Item],
    ) -> None:
        left = [*meant]
        known = [one for one in left if self.first.get(one.name) in tests]
        chosen = [[tests[self.first[one.name]]] for one in known]
        for mutant, verdict in self._with_each(known, changes, chosen):
            if verdict is not None:
                self._note(mutant, verdict)
                left.remove(mutant)
        rooms = [f"tests/{mutant.file.partition('/')[0]}/" for mutant in left]
        orders = [
            sorted(tests.values(), key=lambda item: not item.nodeid.startswith(room))
            for room in rooms
        ]
        for mutant, verdict in [*self._with_each(left, changes, orders)]:
            self._note(mutant, verdict)
            if (
                verdict is not None and verdict in tests
            ):  # a test that nobody knew to notice it: does it pass without?
                alone = partial(_first_failing, [tests[verdict]])
                self.failing += [one for _, one in in_forks([alone]) if one]

    def _note(self, mutant: Mutant, verdict: Verdict) -> None:
        self.verdicts[mutant.name] = verdict
        with self.capture.global_and_fixture_disabled():
            print(f"{mutant.name:20} {verdict or 'LIVES'}", flush=True)

    def _with_each(
        self,
        mutants: Sequence[Mutant],
        changes: Mapping[str, tuple[Swap, ...]],
        orders: Sequence[Sequence[pytest.Item]],
    ) -> Iterator[tuple[Mutant, Verdict]]:
        def judge(mutant: Mutant, items: Sequence[pytest.Item], begun: Begun) -> Verdict:
            with swapped(changes[mutant.name]):
                return _first_failing(items, begun)

        jobs = [partial(judge, *one) for one in zip(mutants, orders, strict=True)]
        for number, answer in in_forks(jobs):
            yield mutants[number], answer


def _first_failing(items: Sequence[pytest.Item], begun: Begun | None = None) -> Verdict:
    """The first test that fails; a process that is told of each ends in one that hangs."""
    for number, item in enumerate(items):
        if begun is not None:
            begun(item.nodeid)
            signal.alarm(SECONDS)
        if _failures(item, items[number + 1] if number + 1 < len(items) else None):
            return item.nodeid
    return None


def _failures(item: pytest.Item, following: pytest.Item | None) -> bool:
    return any(report.failed for report in runtestprotocol(item, nextitem=following, log=False))


def in_forks(jobs: Sequence[Callable[[Begun], Verdict]]) -> Iterator[tuple[int, Verdict]]:
    """What each job answers in a fork of this process, by its number, as they end."""
    with tempfile.TemporaryDirectory(prefix="infold-judged-") as folder:
        waiting, running = [*enumerate(jobs)], dict[int, int]()
        while waiting or running:
            while waiting and len(running) < AT_ONCE:
                number, job = waiting.pop(0)
                running[_fork(job, Path(folder, str(number)))] = number
            pid, _ = os.wait()
            number = running.pop(pid)
            yield number, json.loads(Path(folder, str(number)).read_text(encoding="utf-8"))


def _fork(job: Callable[[Begun], Verdict], answer: Path) -> int:
    pid = os.fork()
    if pid:
        return pid
    silent = os.open(os.devnull, os.O_RDWR)
    for stream in (0, 1, 2):
        os.dup2(silent, stream)

    def note(verdict: Verdict) -> None:
        answer.write_text(json.dumps(verdict), encoding="utf-8")

    try:
        note(job(note))
    except BaseException:  # noqa: BLE001 (nothing of this process goes on)
        os._exit(1)
    os._exit(0)


def judge_mutants(
    mutants: Iterable[Mutant], first: Mapping[str, str], words: Sequence[str]
) -> Judge:
    """
    The verdicts on some mutants by the tests that some words of pytest's select.

    ``first``: by the name of a mutant the test to try before others.
    """
    os.environ["INFOLD_HYPOTHESIS"] = "thorough"
    judge = Judge([*mutants], first)
    quietly = ("-q", "-p", "no:cacheprovider", "-o", "faulthandler_timeout=0")
    pytest.main([*quietly, *words], plugins=[judge])
    return judge
