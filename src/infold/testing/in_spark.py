"""Tests run, each by itself, in one Spark."""

from __future__ import annotations

import os
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from pathlib import Path
from queue import Empty, Queue

from sqlglot import exp

from infold.analysis.sql.parse import Parsed, parse
from infold.core.project import Node, Project
from infold.core.type_changes import Type
from infold.core.typed_text import Unusable
from infold.core.unit_tests import Failure, Row, TestResult, UnitTest, Untested
from infold.messages import unit_test_errors
from infold.messages.errors import InfoldError, InfoldErrors, Spot, by_place
from infold.spark.reading import source_rows
from infold.spark.rows_that import conditions_met
from infold.spark.stored_types import as_stored
from infold.system import signals
from infold.testing.play import Player
from infold.testing.project import Tables, needed_models, project_under_test, view_times
from infold.testing.scratch import Scratch
from infold.testing.typed import Values


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
        right = [values.test(test) for test in tests if not _errors_of_needed(project, test, wrong)]
        if not values.errors:
            values.errors += [e for test in right for e in _not_as_tables(project, test, tables)]
        if values.errors:
            raise InfoldErrors(by_place(values.errors))
        refused = [_failed(test, _errors_of_needed(project, test, wrong)) for test in tests]
        results = {result.test.name: result for result in refused if result.failures}
        for result in results.values():
            done(result)
        at_work = workers(Player(scratch, tables, seed, shuffles), right, done)
        results |= at_work.play(right)
        left = untested(project, at_work.players, tests) if coverage else None
        return results, sum(player.scratch.runs for player in at_work.players), left


def _not_as_tables(project: Project, test: UnitTest, tables: Tables) -> Iterator[InfoldError]:
    """Why rows of views cannot be given: readers that read no table, rows without a time."""
    deliveries = [each for arrival in test.arrivals for each in arrival.deliveries]
    of_views = [each for each in deliveries if each.of not in project.sources]
    of_views = [each for each in of_views if project[each.of].model.kind.is_view]
    if not of_views:
        return
    first = of_views[0]
    try:
        tested = project_under_test(project, [*test.models, *test.judged], test.given, tables)
    except InfoldErrors as errors:
        why = f"{errors.slug}: {errors.what}"
        yield unit_test_errors.view_given(first.at, name=first.of, why=why)
        return
    times = dict(view_times(tested, project))
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


def _errors_of_needed(
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


_NOT_EVALUATED = "Spark cannot evaluate it alone"


def untested(
    project: Project, players: Sequence[Player], tests: Sequence[UnitTest]
) -> tuple[Untested, ...]:
    """
    All of it, in the order of the models.

    A model has a test if one expects rows of it. Its branches are gone through by the rows that any
    test has in what it reads, also of a test that expects rows of other models.
    """
    expected = {name for test in tests for name in test.models}
    gaps: list[Untested] = []
    for node in project:
        if node.landed:
            continue
        place = node.model.place
        if node.name not in expected:
            gaps.append(Untested(node.name, Spot(place.file, place.line)))
        every = branches(node)
        for table in dict.fromkeys(branch.table for branch in every):
            gaps += _table_gaps(players, [b for b in every if b.table == table], table)
    return tuple(gaps)


def _table_gaps(players: Sequence[Player], some: Sequence[Branch], table: str) -> list[Untested]:
    """The branches of a model that no row of a table goes through."""
    if not table:
        return [Untested(b.model, b.at, b.label, b.unknown) for b in some]
    rows = _rows_read(players, some[0].model, table)
    if not rows:
        return [Untested(b.model, b.at, b.label) for b in some]
    columns = players[0].tables.columns(table)
    conditions = [branch.condition for branch in some]
    met = conditions_met(players[0].scratch.spark, columns, rows, conditions)
    return [
        Untested(b.model, b.at, b.label, _NOT_EVALUATED if goes is None else "")
        for b, goes in zip(some, met, strict=True)
        if not goes
    ]


def _rows_read(players: Sequence[Player], model: str, table: str) -> list[Row]:
    """The rows of a table that a model has read in any test that makes the model."""
    rows_read: list[Row] = []
    for player, played in ((worker, each) for worker in players for each in worker.played):
        test = played.test
        made_models = (*test.models, *test.judged)
        needed = needed_models(player.scratch.base, made_models, test.given)
        if model not in needed or model in test.given:
            continue
        given_rows = [
            row
            for arrival in test.arrivals
            for each in arrival.deliveries
            if each.of == table
            for row in each.rows
            if not any(isinstance(value, Unusable) for value in row.values())
        ]
        rows_read += given_rows or player.rows_at_end(played, table)
    return rows_read


# A branch is looked into where its SELECT reads one table and the condition is about one row of it:
# then the rows of tests tell whether any of them goes this way. All others are only listed.

_JOINED = "its query reads several tables, or none"
_NOT_OF_A_ROW = "it is not about one row alone"


@dataclass(frozen=True, slots=True)
class Branch:
    """
    A way that a row can go through a query.

    ``condition`` is SQL over a row of ``table``, true for those that go this way. Where that cannot
    be said, ``unknown`` says why.
    """

    model: str
    at: Spot
    label: str
    table: str = ""
    condition: str = ""
    unknown: str = ""


def branches(node: Node) -> tuple[Branch, ...]:
    """The branches of a model, in the order of its text; of one in Python none are known."""
    if node.model.python is not None:
        return ()
    parsed = parse(node.model.place.file, node.model.sql)
    reading = _Reading(node, parsed)
    branches_found = [*reading.of_cases(), *reading.of_filters()]
    return tuple(sorted(branches_found, key=lambda branch: (branch.at.line, branch.at.column)))


@dataclass(frozen=True, slots=True)
class _Reading:
    node: Node
    parsed: Parsed

    def of_cases(self) -> Iterator[Branch]:
        """Each WHEN, and ELSE, whether it is written or not."""
        for case in self.parsed.tree.find_all(exp.Case):
            earlier: list[exp.Expr] = []
            for when in case.args["ifs"]:
                condition = when.this
                if case.this is not None:
                    condition = exp.EQ(this=case.this.copy(), expression=condition.copy())
                label = f"WHEN {when.this.sql(dialect='spark')}"
                yield self._branch(case, when.this, label, condition, earlier)
                earlier.append(condition)
            label = "ELSE" if case.args.get("default") is not None else "no ELSE: NULL"
            yield self._branch(case, case, label, None, earlier)

    def of_filters(self) -> Iterator[Branch]:
        """What each part of WHERE (and of FILTER) leaves out."""
        for where in self.parsed.tree.find_all(exp.Where):
            parts = where.this.flatten() if isinstance(where.this, exp.And) else [where.this]
            for part in parts:
                label = f"left out by WHERE {part.sql(dialect='spark')}"
                yield self._branch(where, part, label, None, [part])

    def _branch(
        self,
        inside: exp.Expr,
        at: exp.Expr,
        label: str,
        condition: exp.Expr | None,
        not_before: Sequence[exp.Expr],
    ) -> Branch:
        """A row goes this way for which ``condition`` is true, and nothing before it is."""
        spot = self.parsed.text.spot_of(at)
        spot = replace(spot, line=spot.line + self.node.model.sql_line - 1)
        branch = Branch(self.node.name, spot, label)
        table = self._table(inside)
        if table is None:
            return replace(branch, unknown=_JOINED)
        conditions = [*not_before, *([condition] if condition is not None else [])]
        if any(one.find(exp.AggFunc, exp.Window, exp.Query) for one in conditions):
            return replace(branch, unknown=_NOT_OF_A_ROW)
        parts = [f"NOT coalesce({_plain(one)}, false)" for one in not_before]
        parts += [_plain(condition)] if condition is not None else []
        return replace(branch, table=table, condition=" AND ".join(f"({part})" for part in parts))

    def _table(self, inside: exp.Expr) -> str | None:
        """The one table that the SELECT around something reads."""
        select = inside.find_ancestor(exp.Select)
        if select is None or select.args.get("joins") or select.args.get("laterals"):
            return None
        clause = select.args.get("from_")
        table = clause.this if clause is not None else None
        if not isinstance(table, exp.Table) or table.args.get("joins"):
            return None
        name = ".".join(part.name for part in table.parts).lower()
        return next((one for one in self.node.reads if one.lower() == name), None)


def _plain(condition: exp.Expr) -> str:
    """A condition with its columns named without their table."""
    copied = condition.copy()
    for column in copied.find_all(exp.Column):
        column.set("table", None)
        column.set("db", None)
    return copied.sql(dialect="spark")


# Each has a scratch of its own, with tables, ledgers and a session; they share one Spark.

MOST = 4
"""Players at once, so that one Spark is not asked for more sessions than it serves well."""

_OF_A_CORE = 2
"""Players for each core: by itself a run waits a quarter of its time, for jobs and answers."""


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
                pool.submit(lambda worker: dict(self._play_all(worker, waiting)), player)
                for player in self.players
            ]
            return self._together(begun)

    def _together(self, begun: Sequence[Future[dict[str, TestResult]]]) -> dict[str, TestResult]:
        results: dict[str, TestResult] = {}
        try:
            for future in begun:
                results |= future.result()
        except BaseException as error:
            self._stopped.set()
            if isinstance(error, KeyboardInterrupt | signals.Stopped):
                signals.end_children()  # what still runs ends with Spark
            raise
        return results

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
    """As many as keep the machine's cores at work, and no more than there are files."""
    number = min((os.cpu_count() or 1) * _OF_A_CORE, MOST, len({test.file for test in tests}))
    players = [first]
    for at in range(1, number):
        scratch = Scratch(
            first.scratch.root.parent / f"{at}", first.scratch.base, first.scratch.types
        )
        scratch.spark  # noqa: B018 (sessions are made one after the other)
        players.append(Player(scratch, first.tables, first.seed, first.shuffles))
    return Workers(players, done)
