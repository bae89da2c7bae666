"""
Plays one test: its arrivals one after the other, then again in other orders and cuts.

What is run is remembered by what it follows from, so that tests (and variants) that begin alike
share their first runs.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from infold import api
from infold.analysis.names.subject import time_column
from infold.core.interval import parse_instant_text
from infold.core.model import Kind
from infold.core.project import Node, Project
from infold.core.typed_text import instant_of, stored_value
from infold.core.unit_tests import (
    Delivery,
    Entry,
    Expectation,
    Failure,
    Row,
    TestResult,
    UnitTest,
)
from infold.messages.errors import InfoldError
from infold.testing.compare import compare
from infold.testing.notes import left_out_notes
from infold.testing.project import Tables, project_under_test, stored_models
from infold.testing.scratch import Scratch, State
from infold.testing.set_aside import aside_columns, rows_set_aside
from infold.testing.shuffle import Change_, Variant, variants

if TYPE_CHECKING:
    import pyarrow as pa


@dataclass(frozen=True)
class _Ran:
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
    ran: _Ran


@dataclass
class Player:
    """Plays tests in a scratch. ``shuffles`` is how many random orders each is tried in."""

    scratch: Scratch
    tables: Tables
    seed: int
    shuffles: int = 1
    played: list[Played] = field(default_factory=list)
    _known: dict[Any, _Ran | InfoldError] = field(default_factory=dict)
    _rows: dict[tuple[Any, str], list[Row]] = field(default_factory=dict)

    def play(self, test: UnitTest) -> TestResult:
        """One test. Its first failure in the order of the file ends it."""
        models = sorted({*test.models, *test.judged})
        of = project_under_test(self.scratch.base, models, test.given, self.tables)
        chain: tuple[Any, ...] = (tuple(node.name for node in of), tuple(sorted(test.given)))
        failures: list[Failure] = []
        ran: _Ran | None = None
        for arrival in test.arrivals:
            assert arrival.clock is not None
            after = f"arrival {arrival.number}"
            changes: tuple[Change_, ...] = (*arrival.deliveries, *arrival.entries)
            chain, made = self._run(chain, of, ran, changes, arrival.clock)
            if isinstance(made, InfoldError):
                model = dict(made.facts).get("model", "")
                return TestResult(test, (Failure(model, after, arrival.at, error=made),))
            ran = made
            failures += self._unmet(chain, ran, after, arrival.expected)
            if failures:
                notes = left_out_notes(of, test, arrival)
                return TestResult(test, tuple(replace(one, notes=notes) for one in failures))
        assert ran is not None
        self.played.append(Played(test, chain, ran))
        found = tuple(self._variants(test, of, chain, ran))
        return TestResult(test, tuple(f for _, f in found if f is not None), shuffles=len(found))

    def _run(
        self,
        chain: tuple[Any, ...],
        of: Project,
        before: _Ran | None,
        changes: Sequence[Change_],
        clock: int,
    ) -> tuple[tuple[Any, ...], _Ran | InfoldError]:
        """A run after changes, and what it follows from."""
        chain = (*chain, (tuple(each.key for each in changes), clock))
        if chain not in self._known:
            state = (before.after if before else State()).after(
                [each for each in changes if isinstance(each, Delivery)],
                [each for each in changes if isinstance(each, Entry)],
            )
            try:
                after, project = self.scratch.run(of, state, clock)
                self._known[chain] = _Ran(of, state, after, project, clock)
            except InfoldError as error:
                self._known[chain] = _cause(error)
        return chain, self._known[chain]

    # -- what is expected

    def rows_at_end(self, played: Played, model: str) -> list[Row]:
        """The rows of a model at the end of a test that makes it."""
        if model not in played.ran.of:
            return []
        return self._rows_of(played.chain, played.ran, model)

    def _unmet(
        self, chain: tuple[Any, ...], ran: _Ran, after: str, expected: Sequence[Expectation]
    ) -> list[Failure]:
        found = []
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
                found.append(Failure(what, after, each.at, compared, strip=strip))
        return found

    def _aside_of(self, chain: tuple[Any, ...], ran: _Ran, node: Node) -> list[Row]:
        """The rows that a model sets aside."""
        key = chain, f"set_aside of {node.name}"
        if key not in self._rows:
            self.scratch.go_to(ran.project, ran.after)
            self._rows[key] = rows_set_aside(self.scratch, ran.project, node, self.tables)
        return self._rows[key]

    def _rows_of(self, chain: tuple[Any, ...], ran: _Ran, model: str) -> list[Row]:
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
            if project[model].model.kind is Kind.VIEW:
                from infold.spark.verify.verify import view_rows

                with self.scratch.engine(project).work("") as work:
                    return view_rows(work, project[model])
            return api.lake(project).rows(model, columns=list(self.tables.models[model]))
        except InfoldError as error:
            if error.slug == "not-built":
                return pa.table({})
            raise

    # -- other orders

    def _variants(
        self, test: UnitTest, of: Project, chain: tuple[Any, ...], ran: _Ran
    ) -> list[tuple[Variant, Failure | None]]:
        """Each variant that was played, with the first difference of its tables."""
        if not self.shuffles or test.fixed is not None:
            return []
        found: list[tuple[Variant, Failure | None]] = []
        for variant in variants(test, self.seed, self.shuffles):
            found.append((variant, self._difference(test, of, variant, chain, ran)))
            if found[-1][1] is not None:
                break
        return found

    def _difference(
        self, test: UnitTest, of: Project, variant: Variant, right: tuple[Any, ...], ran: _Ran
    ) -> Failure | None:
        chain, last = right[:2], None
        for run in variant.runs:
            chain, made = self._run(chain, of, last, run, variant.clock)
            if isinstance(made, InfoldError):
                return Failure("", "all runs", test.at, error=made, order=variant.order)
            last = made
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
