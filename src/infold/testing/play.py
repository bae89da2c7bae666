"""
Plays one test: its arrivals one after the other, then again in other orders and cuts.

What is run is remembered by what it follows from, so that tests (and variants) that begin alike
share their first runs.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from operator import itemgetter
from random import Random
from typing import TYPE_CHECKING, Any

from infold import api
from infold.analysis.names.subject import time_column
from infold.core.interval import parse_instant_text, show_instant
from infold.core.project import Node, Project
from infold.core.typed_text import Unusable, instant_of, stored_value
from infold.core.unit_tests import (
    Arrival,
    Change,
    ComparedRow,
    Comparison,
    Delivery,
    Entry,
    Expectation,
    Failure,
    Row,
    Side,
    TestResult,
    UnitTest,
)
from infold.messages.errors import InfoldError
from infold.testing.project import Tables, project_under_test, stored_models
from infold.testing.scratch import Scratch, State
from infold.testing.typed import aside_columns, rows_set_aside

if TYPE_CHECKING:
    import pyarrow as pa


@dataclass(frozen=True)
class _RunState:
    """A state after a run of a project at an instant, and what the run was of."""

    of: Project
    before: State
    after: State
    project: Project
    clock: int


@dataclass(frozen=True)
class Played:
    """A test whose arrivals were all run, and what the last came to."""

    test: UnitTest
    chain: tuple[Any, ...]
    ran: _RunState


@dataclass
class Player:
    """Plays tests in a scratch. ``shuffles`` is how many random orders each is tried in."""

    scratch: Scratch
    tables: Tables
    seed: int
    shuffles: int = 1
    played: list[Played] = field(default_factory=list)
    _runs_by_chain: dict[Any, _RunState | InfoldError] = field(default_factory=dict)
    _rows: dict[tuple[Any, str], list[Row]] = field(default_factory=dict)

    def play(self, test: UnitTest) -> TestResult:
        """One test. Its first failure in the order of the file ends it."""
        models = sorted({*test.models, *test.judged})
        project = project_under_test(self.scratch.base, models, test.given, self.tables)
        chain: tuple[Any, ...] = (tuple(node.name for node in project), tuple(sorted(test.given)))
        failures: list[Failure] = []
        ran: _RunState | None = None
        for arrival in test.arrivals:
            assert arrival.clock is not None
            after = f"arrival {arrival.number}"
            changes: tuple[Change_, ...] = (*arrival.deliveries, *arrival.entries)
            chain, outcome = self._run(chain, project, ran, changes, arrival.clock)
            if isinstance(outcome, InfoldError):
                model = dict(outcome.facts).get("model", "")
                return TestResult(test, (Failure(model, after, arrival.at, error=outcome),))
            ran = outcome
            failures += self._unmet(chain, ran, after, arrival.expected)
            if failures:
                notes = left_out_notes(project, test, arrival)
                return TestResult(test, tuple(replace(one, notes=notes) for one in failures))
        assert ran is not None
        self.played.append(Played(test, chain, ran))
        tried = tuple(self._variants(test, project, chain, ran))
        return TestResult(test, tuple(f for _, f in tried if f is not None), shuffles=len(tried))

    def _run(
        self,
        chain: tuple[Any, ...],
        tested: Project,
        before: _RunState | None,
        changes: Sequence[Change_],
        clock: int,
    ) -> tuple[tuple[Any, ...], _RunState | InfoldError]:
        """A run after changes, and what it follows from."""
        chain = (*chain, (tuple(each.key for each in changes), clock))
        if chain not in self._runs_by_chain:
            state = (before.after if before else State()).after(
                [each for each in changes if isinstance(each, Delivery)],
                [each for each in changes if isinstance(each, Entry)],
            )
            try:
                after, project = self.scratch.run(tested, state, clock)
                self._runs_by_chain[chain] = _RunState(tested, state, after, project, clock)
            except InfoldError as error:
                self._runs_by_chain[chain] = _cause(error)
        return chain, self._runs_by_chain[chain]

    # -- what is expected

    def rows_at_end(self, played: Played, model: str) -> list[Row]:
        """The rows of a model at the end of a test that makes it."""
        if model not in played.ran.of:
            return []
        return self._rows_of(played.chain, played.ran, model)

    def _unmet(
        self, chain: tuple[Any, ...], ran: _RunState, after: str, expected: Sequence[Expectation]
    ) -> list[Failure]:
        failures = []
        for each in expected:
            node = ran.of[each.model]
            if each.aside:
                rows: Sequence[Row] = self._aside_of(chain, ran, node)
                known = aside_columns(node, self.tables)
            else:
                rows = _within(node, self._rows_of(chain, ran, each.model), each)
                known = self.tables.models[each.model]
            spelled = {name.lower(): name for name in known}
            columns = [spelled[name.lower()] for name in each.columns]
            columns = columns or [name for name in known if name != "raw"]
            compared = compare(columns, each.rows, rows)
            if not compared.equal:
                strip = self.scratch.strip(ran.of, ran.before, ran.clock)
                what = f"set_aside of {each.model}" if each.aside else each.model
                failures.append(Failure(what, after, each.at, compared, strip=strip))
        return failures

    def _aside_of(self, chain: tuple[Any, ...], ran: _RunState, node: Node) -> list[Row]:
        """The rows that a model sets aside."""
        key = chain, f"set_aside of {node.name}"
        if key not in self._rows:
            self.scratch.go_to(ran.project, ran.after)
            self._rows[key] = rows_set_aside(self.scratch, ran.project, node, self.tables)
        return self._rows[key]

    def _rows_of(self, chain: tuple[Any, ...], ran: _RunState, model: str) -> list[Row]:
        key = chain, model
        if key not in self._rows:
            self.scratch.go_to(ran.project, ran.after)
            types = self.tables.models[model]
            self._rows[key] = [
                {name: stored_value(value, types[name]) for name, value in row.items()}
                for row in self._stored(ran.project, model).to_pylist()
            ]
        return self._rows[key]

    def _stored(self, project: Project, model: str) -> pa.Table:
        """The rows of a table or a view; none where nothing has been built yet."""
        import pyarrow as pa

        try:
            if project[model].model.kind.is_view:
                from infold.spark.verify.verify import view_rows

                with self.scratch.engine(project).work("") as work:
                    return view_rows(work, project[model])
            return api.lake_of(project).rows(model, columns=list(self.tables.models[model]))
        except InfoldError as error:
            if error.slug == "not-built":
                return pa.table({})
            raise

    # -- other orders

    def _variants(
        self, test: UnitTest, project: Project, chain: tuple[Any, ...], ran: _RunState
    ) -> list[tuple[Variant, Failure | None]]:
        """Each variant that was played, with the first difference of its tables."""
        if not self.shuffles or test.fixed is not None:
            return []
        played: list[tuple[Variant, Failure | None]] = []
        for variant in variants(test, self.seed, self.shuffles):
            played.append((variant, self._difference(test, project, variant, chain, ran)))
            if played[-1][1] is not None:
                break
        return played

    def _difference(
        self, test: UnitTest, of: Project, variant: Variant, right: tuple[Any, ...], ran: _RunState
    ) -> Failure | None:
        chain, last = right[:2], None
        for run in variant.runs:
            chain, outcome = self._run(chain, of, last, run, variant.clock)
            if isinstance(outcome, InfoldError):
                return Failure("", "all runs", test.at, error=outcome, order=variant.order)
            last = outcome
        assert last is not None
        pairs = [
            (
                node.name,
                list(self.tables.models[node.name]),
                self._rows_of(right, ran, node.name),
                self._rows_of(chain, last, node.name),
            )
            for node in stored_models(of)
        ]
        for name in test.aside:  # by their rows: files are cut
            wanted, rows = (self._aside_of(*one, of[name]) for one in ((right, ran), (chain, last)))
            pairs.append((f"set_aside of {name}", ["raw", "reason", "event_time"], wanted, rows))
        for name, columns, wanted, rows in pairs:
            compared = compare(columns, wanted, rows)
            if not compared.equal:
                strip = self.scratch.strip(of, last.before, variant.clock)
                order = variant.order
                return Failure(name, "all runs", test.at, compared, order=order, strip=strip)
        return None


def _within(node: Node, rows: Sequence[Row], expected: Expectation) -> Sequence[Row]:
    """The rows that are compared: all, or those in the cell that is named."""
    granularity, column = node.model.granularity, time_column(node)
    if expected.within is None or granularity is None or column is None:
        return rows
    cell = granularity.cell(parse_instant_text(expected.within.text))
    return [
        row
        for row in rows
        if row[column] is not None and cell.start <= instant_of(row[column]) < cell.end
    ]


def _cause(error: InfoldError) -> InfoldError:
    """What made a run fail."""
    result = getattr(error, "result", None)
    failures = getattr(result, "failures", ())
    return failures[0].error if failures else error


def compare(columns: Sequence[str], expected: Sequence[Row], actual: Sequence[Row]) -> Comparison:
    """
    The rows in the order in which they are expected, each with the actual one that is most like it.

    Rows without one on the other side are missing, or too many. Doubles may differ in their last
    digits.
    """
    left_ = [tuple(row[name] for name in columns) for row in expected]
    right = sorted((tuple(row[name] for name in columns) for row in actual), key=_order)
    same = _equal_pairs(left_, right)
    free = [at for at in range(len(right)) if at not in same.values()]
    alike = _alike_pairs(left_, right, [at for at in range(len(left_)) if at not in same], free)
    rows: list[ComparedRow] = []
    for at, row in enumerate(left_):
        if at in same:
            rows.append(ComparedRow(Side.SAME, row))
        elif at in alike:
            other = right[alike[at]]
            differ = frozenset(
                i for i, pair in enumerate(zip(row, other, strict=True)) if not equal(*pair)
            )
            rows.append(ComparedRow(Side.EXPECTED, row, differ))
            rows.append(ComparedRow(Side.ACTUAL, other, differ))
        else:
            rows.append(ComparedRow(Side.MISSING, row))
    left = (at for at in free if at not in alike.values())
    rows += [ComparedRow(Side.SURPLUS, right[at]) for at in left]
    return Comparison(tuple(columns), tuple(rows))


def _equal_pairs(expected: Sequence[Any], actual: Sequence[Any]) -> dict[int, int]:
    pairs: dict[int, int] = {}
    paired: set[int] = set()
    by_key: dict[str, list[int]] = {}
    for at, row in enumerate(actual):
        by_key.setdefault(_key(row), []).append(at)
    for at, row in enumerate(expected):
        candidates = [*by_key.get(_key(row), ()), *range(len(actual))]
        other = next((i for i in candidates if i not in paired and equal(row, actual[i])), None)
        if other is not None:
            pairs[at] = other
            paired.add(other)
    return pairs


def _alike_pairs(
    expected: Sequence[Any], actual: Sequence[Any], rows: Sequence[int], free: Sequence[int]
) -> dict[int, int]:
    """The pairs that are most alike, best first; a third of the values is the same in each."""
    likeness = []
    for at in rows:
        for other in free:
            pairs = zip(expected[at], actual[other], strict=True)
            same = sum(equal(a, b) for a, b in pairs)
            if same * 3 >= max(1, len(expected[at])):
                likeness.append((-same, at, other))
    pairs_: dict[int, int] = {}
    for _, at, other in sorted(likeness):
        if at not in pairs_ and other not in pairs_.values():
            pairs_[at] = other
    return pairs_


def equal(a: Any, b: Any) -> bool:
    """Whether two values are one, up to the last digits of doubles."""
    if isinstance(a, float) and isinstance(b, float):
        return a == b or (math.isnan(a) and math.isnan(b)) or math.isclose(a, b, rel_tol=1e-9)
    if isinstance(a, list | tuple) and isinstance(b, list | tuple):
        return len(a) == len(b) and all(map(equal, a, b))
    if isinstance(a, Mapping) and isinstance(b, Mapping):
        return a.keys() == b.keys() and all(equal(a[key], b[key]) for key in a)
    return bool(a == b)


def _key(row: tuple[Any, ...]) -> str:
    return repr([float(f"{v:.8g}") if isinstance(v, float) else str(v) for v in row])


def _order(row: tuple[Any, ...]) -> tuple[tuple[bool, str, Any], ...]:
    """NULL first, then by value; values of one column are of one type."""
    return tuple(
        (
            value is not None,
            "" if isinstance(value, int | float | str) else str(value),
            value if isinstance(value, int | float | str) else 0,
        )
        for value in row
    )


def left_out_notes(project: Project, test: UnitTest, upto: Arrival) -> tuple[str, ...]:
    """A line for each source with rows from before its reader's start, or from after the clock."""
    files: dict[tuple[str, str], Delivery] = {}
    for arrival in test.arrivals[: upto.number]:
        for each in arrival.deliveries:
            files[each.of, each.file] = each
            if each.change is Change.DELETE:
                del files[each.of, each.file]
    notes: list[str] = []
    for node in project:
        source = project.sources.get(node.source or "")
        if source is None or source.event_time_column is None:
            continue
        deliveries = [each for each in files.values() if each.of == source.name]
        times = list(_times(deliveries, source.event_time_column))
        early = sum(at < node.start for at in times) if node.start is not None else 0
        late = sum(at > upto.clock for at in times) if upto.clock is not None else 0
        if early and node.start is not None:
            start = show_instant(node.start)
            notes.append(f"{node.name} leaves out {_rows(early)} from before its start, {start}")
        if late and upto.clock is not None:
            clock = show_instant(upto.clock)
            notes.append(f"{_rows(late)} of {source.name} wait, as the clock is at {clock}")
    return tuple(notes)


def _rows(number: int) -> str:
    return f"{number} given {'row' if number == 1 else 'rows'}"


def _times(deliveries: list[Delivery], column: str) -> Iterator[int]:
    for each in deliveries:
        for row in each.rows:
            if row.get(column) is not None and not isinstance(row[column], Unusable):
                yield instant_of(row[column])


# At the end the same rows are there, in files that were changed in the same order each: that is all
# that a definition knows of. So files may come in any order, in any number of runs; a file that
# only came may come in two parts; and what was replaced or deleted may never be seen. Entries of a
# quarantine may come before the events they are about; those of one model keep their order, as the
# latest counts. The clock is that of the last arrival from the first run on: what is admitted must
# not depend on when it came.
#
# What is drawn for a file or an entry is drawn from its content. So tests that begin alike are
# ordered and cut alike until something of their own comes, and share their runs until then.

Change_ = Delivery | Entry
"""What comes before a run."""
_TRIES = 10
_CUT = 0.8
"""From which number on, between 0 and 1, a cut is made; and there is always one."""


@dataclass(frozen=True, slots=True)
class Variant:
    """Runs in this order, each after these changes; ``name`` says what kind of variant it is."""

    name: str
    runs: tuple[tuple[Change_, ...], ...]
    clock: int

    @property
    def order(self) -> tuple[str, ...]:
        """A line for each run."""
        return (
            self.name,
            *(
                f"run {number}: {'; '.join(map(_described, run))}"
                for number, run in enumerate(self.runs, 1)
            ),
        )


def _described(each: Change_) -> str:
    if isinstance(each, Entry):
        return f"quarantine {each.action} {each.of} of {each.owner}"
    verb = "" if each.change is Change.ADD else f"{each.change.value} "
    rows = "" if each.change is Change.DELETE else f" ({len(each.rows)} rows)"
    return f"{verb}{each.of} in {each.file}{rows}".replace("(1 rows)", "(1 row)")


def variants(test: UnitTest, seed: int, number: int) -> Iterator[Variant]:
    """All arrivals at once, if there are several, and a ``number`` of random orders and cuts."""
    runs: list[tuple[Change_, ...]] = [
        (*arrival.deliveries, *arrival.entries) for arrival in test.arrivals
    ]
    every = [each for run in runs for each in run]
    clock = test.arrivals[-1].clock
    assert clock is not None
    if len(runs) > 1 and every:
        yield Variant("all at once", (tuple(every),), clock)
    tried = {_shape(runs), _shape([every])}
    for at in range(number):
        for attempt in range(_TRIES):
            drawn = _Draws(f"{seed} {at} {attempt}")
            order = drawn.cut(drawn.shuffled(drawn.split(every)))
            if _shape(order) not in tried:
                tried.add(_shape(order))
                yield Variant("in another order", tuple(map(tuple, order)), clock)
                break


def _shape(runs: Sequence[Sequence[Change_]]) -> object:
    return tuple(frozenset(each.key for each in run) for run in runs)


@dataclass(frozen=True, slots=True)
class _Draws:
    """What is drawn for changes: for each by its content, whatever test it is in."""

    seed: str

    def _random(self, purpose: str, each: Change_) -> Random:
        return Random(f"{self.seed} {purpose} {each.key}")  # noqa: S311 (to be drawn again)

    def split(self, every: Sequence[Change_]) -> Iterator[Change_]:
        """Some of the files that only come, in two parts each."""
        for each in every:
            random = self._random("split", each)
            changes = [one for one in every if (one.of, one.file) == (each.of, each.file)]
            if (
                isinstance(each, Entry)
                or len(changes) > 1
                or len(each.rows) < 2
                or random.random() < 0.5
            ):
                yield each
                continue
            first = set(random.sample(range(len(each.rows)), random.randint(1, len(each.rows) - 1)))
            for part, inside in (("a", True), ("b", False)):
                rows = [row for at, row in enumerate(each.rows) if (at in first) is inside]
                yield replace(each, file=f"{each.file}_{part}", rows=tuple(rows))

    def shuffled(self, every: Iterable[Change_]) -> list[Change_]:
        """All changes, each at a place of its own, those of one file in their order."""
        of_files: dict[tuple[str, str], list[Change_]] = {}
        for each in every:
            of_files.setdefault((each.of, each.file), []).append(each)
        placed: list[tuple[float, Change_]] = []
        for changes in of_files.values():
            places = sorted(self._random("place", each).random() for each in changes)
            placed += zip(places, changes, strict=True)
        return [each for _, each in sorted(placed, key=itemgetter(0))]

    def cut(self, every: Sequence[Change_]) -> list[list[Change_]]:
        """In two runs at least, in order: one run alone would build all of it, and fold nothing."""
        drawn = [self._random("cut", each).random() for each in every[:-1]]
        least = min(_CUT, max(drawn, default=_CUT))
        runs: list[list[Change_]] = [[]]
        for at, each in enumerate(every):
            if at and drawn[at - 1] >= least:
                runs.append([])
            runs[-1].append(each)
        return runs
