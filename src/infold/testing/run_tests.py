"""Runs the tests of a project, or some of them, unless it is known that they pass."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from fnmatch import fnmatchcase
from pathlib import PurePosixPath

from infold.core.project import Project
from infold.core.unit_tests import SHUFFLES, TestReport, TestResult, UnitTest
from infold.declare.unit_tests import PATTERN, read_tests
from infold.messages import unit_test_errors
from infold.messages.errors import InfoldErrors, by_place
from infold.testing.passed import PassedTests
from infold.testing.typed import Names


def read_project_tests(project: Project, terms: Sequence[str] = ()) -> tuple[UnitTest, ...]:
    """
    The tests that terms name, or all of a project.

    Raises InfoldErrors with all that is wrong with the files, as far as it is known without Spark.
    """
    tests, wrong = read_tests(project.root)
    names = Names(project, list(wrong))
    tests = tuple(names.test(test) for test in tests)
    if names.errors:
        raise InfoldErrors(by_place(names.errors))
    if not tests:
        raise unit_test_errors.no_tests(pattern=str(project.root / PATTERN))
    return _selected(tests, terms)


def _selected(tests: Sequence[UnitTest], terms: Sequence[str]) -> tuple[UnitTest, ...]:
    """Those that any term names: by name, file, or a model whose rows are expected."""
    selected: set[str] = set()
    for term in terms:
        hits = {test.name for test in tests if any(_means(term, w) for w in _words(test))}
        if not hits:
            raise unit_test_errors.unknown_test(term=term, known=[test.name for test in tests])
        selected |= hits
    return tuple(test for test in tests if not terms or test.name in selected)


def _words(test: UnitTest) -> tuple[str, ...]:
    file = PurePosixPath(test.file)
    return test.name, test.file, file.name, file.stem, *test.models


def _means(term: str, word: str) -> bool:
    return fnmatchcase(word.lower(), term.lower())


def run_tests(
    project: Project,
    tests: Sequence[UnitTest],
    *,
    seed: int = 0,
    shuffles: int = SHUFFLES,
    coverage: bool = False,
    cached: bool = False,
    done: Callable[[TestResult], None] = lambda _: None,
) -> TestReport:
    """
    Run tests, each by itself, in one Spark; ``done`` is called after each.

    With ``cached``, those that passed before and that nothing has changed for are not run again,
    unless their ``coverage`` is asked for: that is found from their rows.

    Raises InfoldErrors for values that are not of their columns' types, before anything is run.
    """
    started = time.monotonic()
    passed = PassedTests(project, seed, shuffles)
    results = dict(passed.of(tests)) if cached and not coverage else {}
    for result in results.values():
        done(result)
    rest = [test for test in tests if test.name not in results]
    runs, left = 0, None
    if rest or coverage:
        from infold.testing.in_spark import run_in_spark

        ran, runs, left = run_in_spark(project, rest, seed, shuffles, coverage=coverage, done=done)
        passed.add(rest, ran)
        results |= ran
    return TestReport(
        tuple(results[test.name] for test in tests),
        seed,
        time.monotonic() - started,
        runs,
        left,
        sum(not node.landed for node in project),
    )
