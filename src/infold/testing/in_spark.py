"""Tests run, each by itself, in one Spark."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path

from infold.core.model import Kind
from infold.core.project import Project
from infold.core.type_changes import Type
from infold.core.unit_tests import Failure, TestResult, UnitTest, Untested
from infold.messages import unit_test_errors
from infold.messages.errors import InfoldError, InfoldErrors, by_place
from infold.spark.reading import source_rows
from infold.spark.stored_types import as_stored
from infold.testing.coverage import untested
from infold.testing.given_views import view_times
from infold.testing.needed import needed_models
from infold.testing.play import Player
from infold.testing.project import Tables, project_under_test
from infold.testing.scratch import Scratch
from infold.testing.typed import Values
from infold.testing.workers import workers


def run_in_spark(
    project: Project,
    tests: Sequence[UnitTest],
    seed: int,
    shuffles: int,
    *,
    coverage: bool,
    done: Callable[[TestResult], None],
) -> tuple[Mapping[str, TestResult], int, Sequence[Untested] | None]:
    """
    Run tests: the results by name, how many runs there were, and what is left untested.

    Raises InfoldErrors for values that are not of their columns' types, before anything is run.
    """
    with tempfile.TemporaryDirectory(prefix="infold-test-", ignore_cleanup_errors=True) as folder:
        scratch = Scratch(Path(folder).resolve() / "0", project)
        tables, wrong = _analysed(scratch, tests)
        values = Values(project, tables)
        right = [values.test(test) for test in tests if not _wrong(project, test, wrong)]
        if not values.errors:
            values.errors += [e for test in right for e in _not_as_tables(project, test, tables)]
        if values.errors:
            raise InfoldErrors(by_place(values.errors))
        found = [_failed(test, _wrong(project, test, wrong)) for test in tests]
        results = {result.test.name: result for result in found if result.failures}
        for result in results.values():
            done(result)
        at_work = workers(Player(scratch, tables, seed, shuffles), right, done)
        results |= at_work.play(right)
        left = untested(project, at_work.players, tests) if coverage else None
        return results, sum(player.scratch.runs for player in at_work.players), left


def _not_as_tables(project: Project, test: UnitTest, tables: Tables) -> Iterator[InfoldError]:
    """Why rows of views cannot be given: readers that read no table, rows without a time."""
    given = [each for arrival in test.arrivals for each in arrival.deliveries]
    of_views = [each for each in given if each.of not in project.sources]
    of_views = [each for each in of_views if project[each.of].model.kind is Kind.VIEW]
    if not of_views:
        return
    first = of_views[0]
    try:
        found = project_under_test(project, [*test.models, *test.judged], test.given, tables)
    except InfoldErrors as errors:
        why = f"{errors.slug}: {errors.what}"
        yield unit_test_errors.view_given(first.at, name=first.of, why=why)
        return
    times = dict(view_times(found, project))
    for each in of_views:
        for row, cells in zip(each.rows, each.written.rows, strict=True):
            if each.of in times and row.get(times[each.of]) is None:
                at, column = cells[0].at, times[each.of]
                yield unit_test_errors.no_time(at, name=each.of, column=column)


def _failed(test: UnitTest, errors: Mapping[str, InfoldError]) -> TestResult:
    """A test that is not run, as models that it needs are wrong."""
    failures = (
        Failure(model, "its analysis", test.at, error=error) for model, error in errors.items()
    )
    return TestResult(test, tuple(failures))


def _wrong(
    project: Project, test: UnitTest, errors: Mapping[str, InfoldError]
) -> Mapping[str, InfoldError]:
    """The errors of models that a test needs."""
    needed = needed_models(project, [*test.models, *test.judged, *test.given], ())
    return {name: error for name, error in errors.items() if name in needed}


def _analysed(
    scratch: Scratch, tests: Sequence[UnitTest]
) -> tuple[Tables, Mapping[str, InfoldError]]:
    """The columns of what tests need, and the models that are wrong."""
    project = scratch.analysed
    names = {name for test in tests for name in (*test.models, *test.judged, *test.given)}
    needed = sorted(needed_models(project, names, ()))
    engine = scratch.engine(project)
    wrong = engine.analyse(needed)
    scratch.types = engine.column_types([name for name in needed if name not in wrong])
    of_tables: dict[str, Mapping[str, Type]] = {}
    for name, source in project.sources.items():
        if not source.columns and any(name in test.given for test in tests):
            schema = source_rows.column_types(scratch.spark, project, source)
            of_tables[name] = {f.name: as_stored(f.dataType).jsonValue() for f in schema.fields}
    return Tables.of(project, scratch.types, of_tables), wrong
