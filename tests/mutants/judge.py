"""
Judges mutants within one run of pytest: its tests are collected once.

First all tests run once, to see which of them reach the functions that mutants change. Then each
mutant is put into a fork of the process (``swapped``), where the tests that reach it run, the quick
ones first, until one fails. Tests that need Spark run in this process, as a JVM is not forked with
it: the ones that a mutant names.
"""

from __future__ import annotations

import json
import os
import signal
import tempfile
import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
from _pytest.runner import runtestprotocol
from tests.mutants.listed import Mutant
from tests.mutants.swapped import REACHED, Swap, swapped, swaps, watched

AT_ONCE = os.cpu_count() or 1
SECONDS = 300
"""What goes on for longer hangs, and so it has noticed the mutant."""
HANGS = "does not end"

Verdict = str | None
"""The test that fails, or None."""


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
        reached = self._reached(left, changes, tests) if left else {}
        orders = [[tests[name] for name in reached.get(one.name, ())] for one in left]
        for mutant, verdict in self._with_each(left, changes, orders):
            self._note(mutant, verdict)

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
        def job(mutant: Mutant, items: Sequence[pytest.Item]) -> Callable[[], Verdict]:
            def judge() -> Verdict:
                with swapped(changes[mutant.name]):
                    return _first_failing(items)

            return judge

        jobs = [job(mutant, items) for mutant, items in zip(mutants, orders, strict=True)]
        for number, answer in in_forks(jobs):
            yield mutants[number], answer

    def _reached(
        self,
        mutants: Sequence[Mutant],
        changes: Mapping[str, tuple[Swap, ...]],
        tests: Mapping[str, pytest.Item],
    ) -> Mapping[str, Sequence[str]]:
        """The tests that reach a mutant's functions, by its name, the quick ones first."""
        watching = watched({mutant.name: changes[mutant.name] for mutant in mutants})
        names = [*tests]
        parts = [names[part::AT_ONCE] for part in range(AT_ONCE)]

        def follow(part: Sequence[str]) -> Callable[[], Any]:
            def run() -> Any:
                with swapped(watching):
                    return [*_follow([tests[name] for name in part])]

            return run

        found: dict[str, list[tuple[float, str]]] = defaultdict(list)
        for _, answer in in_forks([follow(part) for part in parts], seconds=3600):
            assert isinstance(answer, list), answer
            for name, seconds, failed, hits in answer:
                self.failing += [name] * failed
                for mutant in () if failed else hits:
                    found[mutant].append((seconds, name))
        return {name: [test for _, test in sorted(tests)] for name, tests in found.items()}


def _follow(items: Sequence[pytest.Item]) -> Iterator[tuple[str, float, bool, list[str]]]:
    """Each test with its seconds, whether it fails, and the mutants whose functions it calls."""
    for number, item in enumerate(items):
        REACHED.clear()
        began = time.monotonic()
        failed = _failures(item, items[number + 1] if number + 1 < len(items) else None)
        yield item.nodeid, time.monotonic() - began, failed, sorted(REACHED)


def _first_failing(items: Sequence[pytest.Item]) -> Verdict:
    for number, item in enumerate(items):
        if _failures(item, items[number + 1] if number + 1 < len(items) else None):
            return item.nodeid
    return None


def _failures(item: pytest.Item, following: pytest.Item | None) -> bool:
    return any(report.failed for report in runtestprotocol(item, nextitem=following, log=False))


def in_forks(
    jobs: Sequence[Callable[[], Any]], seconds: int = SECONDS
) -> Iterator[tuple[int, Any]]:
    """What each job answers in a fork of this process, by its number, as they end."""
    with tempfile.TemporaryDirectory(prefix="infold-judged-") as folder:
        waiting, running = [*enumerate(jobs)], dict[int, int]()
        while waiting or running:
            while waiting and len(running) < AT_ONCE:
                number, job = waiting.pop(0)
                running[_fork(job, Path(folder, str(number)), seconds)] = number
            pid, status = os.wait()
            number = running.pop(pid)
            answer = Path(folder, str(number))
            if os.waitstatus_to_exitcode(status) == 0:
                yield number, json.loads(answer.read_text())
            else:
                yield number, f"{HANGS} ({os.waitstatus_to_exitcode(status)})"


def _fork(job: Callable[[], Any], answer: Path, seconds: int) -> int:
    pid = os.fork()
    if pid:
        return pid
    signal.alarm(seconds)
    silent = os.open(os.devnull, os.O_RDWR)
    for stream in (0, 1, 2):
        os.dup2(silent, stream)
    try:
        answer.write_text(json.dumps(job()))
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
