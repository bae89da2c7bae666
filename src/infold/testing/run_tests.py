"""Runs the tests of a project, or some of them, unless it is known that they pass."""

from __future__ import annotations

import ast
import contextlib
import json
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field, fields, is_dataclass
from fnmatch import fnmatchcase
from functools import cached_property
from hashlib import sha256
from importlib.util import find_spec
from pathlib import Path, PurePosixPath
from sysconfig import get_path
from typing import Any

from infold.core.functions import PROJECT_PACKAGE, FunctionCode, PythonModule
from infold.core.project import Project
from infold.core.unit_tests import SHUFFLES, TestReport, TestResult, UnitTest
from infold.declare.cache import program_version
from infold.declare.unit_tests import PATTERN, read_tests
from infold.messages import unit_test_errors
from infold.messages.errors import InfoldErrors, Spot, by_place
from infold.system.kept_files import keep, kept
from infold.testing.project import needed_models
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


# A test is a function of values: its own arrivals and rows as they are written, the models that it
# needs and the project's sources, how its orders are drawn, this program, and the packages it
# computes with. The key of a test is the digest of these. What has no digest has no key, and runs
# each time: a source that is a table elsewhere, whose columns may have changed, and Python that
# imports a module which is neither the project's nor of an installed package.

FILE = PurePosixPath(".infold/passed_tests.json")
_MOST_KEPT = 10_000
"""How many are kept, those that passed last."""


@dataclass
class PassedTests:
    """The tests of a project that passed before, with these ways of drawing orders."""

    project: Project
    seed: int
    shuffles: int
    _orders: dict[str, int] = field(default_factory=dict)
    """Key -> in how many other orders it passed."""

    def __post_init__(self) -> None:
        content = kept(self._path)
        self._orders = json.loads(content) if content is not None else {}

    @cached_property
    def _program(self) -> Sequence[str]:
        return _program()

    @property
    def _path(self) -> Path:
        return self.project.root / FILE

    def of(self, tests: Iterable[UnitTest]) -> Mapping[str, TestResult]:
        """The results of those that passed before, by name."""
        keys = {test.name: (test, self._key(test)) for test in tests}
        return {
            name: TestResult(test, (), shuffles=self._orders[key], cached=True)
            for name, (test, key) in keys.items()
            if key in self._orders
        }

    def add(self, tests: Iterable[UnitTest], results: Mapping[str, TestResult]) -> None:
        """Keep those that passed."""
        for test in tests:
            result, key = results[test.name], self._key(test)
            if result.passed and key is not None:
                self._orders.pop(key, None)  # the last one is the latest
                self._orders[key] = result.shuffles
        latest = dict(list(self._orders.items())[-_MOST_KEPT:])
        keep(self._path, json.dumps(latest).encode())

    def _key(self, test: UnitTest) -> str | None:
        """The digest of all that a test follows from; None where something has none."""
        project = self.project
        # Also what is before a model whose rows are given: it says the types of these rows.
        needed = needed_models(project, [*test.models, *test.judged, *test.given], ())
        nodes = [node for node in project if node.name in needed]
        if any(source.is_table for source in project.sources.values()) or not all(
            map(_is_installed, set(_imported(nodes)))
        ):
            return None
        target = project.target
        parts = (
            test,
            nodes,
            project.sources,
            (project.name, project.start, target.storage, target.spark),
            (self.seed, self.shuffles),
            self._program,
        )
        try:
            return sha256(json.dumps(_plain(parts)).encode()).hexdigest()
        except TypeError:
            return None


def _plain(value: Any) -> Any:
    """A value as JSON has it, alike for equal ones. Raises TypeError for what is not a value."""
    if isinstance(value, Spot):  # where a test or a model is written decides nothing
        return None
    if is_dataclass(value) and not isinstance(value, type):
        named = ((one.name, _plain(getattr(value, one.name))) for one in fields(value))
        return [type(value).__name__, dict(named)]
    if isinstance(value, Mapping):
        return sorted([_plain(name), _plain(of)] for name, of in value.items())
    if isinstance(value, AbstractSet):
        return sorted((_plain(one) for one in value), key=json.dumps)
    if isinstance(value, list | tuple):
        return [_plain(one) for one in value]
    if value is None or isinstance(value, str | int | float):
        return [type(value).__name__, value]
    raise TypeError(type(value))


def _program() -> list[str]:
    """This program, and the installed packages with their versions, as the folders' names say."""
    installed: set[str] = set()
    for folder in sys.path:
        with contextlib.suppress(OSError):
            installed.update(path.name for path in Path(folder).glob("*.dist-info"))
    return [program_version(), sys.version, *sorted(installed)]


def _imported(value: Any) -> Iterator[str]:
    """The names of the packages that the code of some models imports."""
    if isinstance(value, PythonModule):
        yield from _imports(value.source)
    elif isinstance(value, FunctionCode):
        for _, text in value.files:
            yield from _imports(text)
    elif is_dataclass(value) and not isinstance(value, type):
        for part in fields(value):
            yield from _imported(getattr(value, part.name))
    elif isinstance(value, list | tuple):
        for part in value:
            yield from _imported(part)


def _imports(source: str) -> Iterator[str]:
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            yield from (alias.name.partition(".")[0] for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and not node.level:
            yield (node.module or "").partition(".")[0]


def _is_installed(module: str) -> bool:
    if module in sys.stdlib_module_names or module in (PROJECT_PACKAGE, "infold"):
        return True
    try:
        spec = find_spec(module)
    except (ImportError, ValueError):
        return False
    places = {get_path("purelib"), get_path("platlib")}
    return spec is not None and any((spec.origin or "").startswith(one) for one in places)
