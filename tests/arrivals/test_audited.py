"""
Runs in which audits fail for what files bring: no row that fails is ever in a table, and once the
audits let the rows pass every table equals the reference. And runs with audits that read other
tables, which are built before, however many models are built at once.

Without Spark, as ``test_dry``: rows are judged where the dry engine commits them. The runner, the
planner and the ledger are the program's own, and a run may die at any write point.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from random import Random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.arrivals.dry import DryEngine, DryPlay, Memory, _hash, play_through
from tests.arrivals.programs import Program, programs
from tests.arrivals.shape import Rows
from tests.arrivals.shapes import SHAPES
from tests.crash.scenario import living

from infold.analysis.audits import in_order_for_audits
from infold.core.audits import Audit, AuditKind, AuditResult, AuditsFailed, AuditState, Severity
from infold.core.interval import Interval
from infold.core.model import Kind, table_name
from infold.core.plan import Step
from infold.core.project import Project
from infold.core.report import RunFailed, RunResult
from infold.messages import audit_findings
from infold.planning.audit_notes import tables_of_audits

EXAMPLES = settings().max_examples // 5
ONE_IN = 60
"""One row in so many fails its audit."""


def fails(table: str, row: Any) -> bool:
    """Whether a row fails the audit of its table: by its content alone."""
    return (_hash(row) + len(table)) % ONE_IN == 0


@contextmanager
def audited(models: Sequence[str]) -> Iterator[None]:
    """The rows of some models are judged before they are committed."""
    real, tables = Memory.commit, {table_name(model): model for model in models}

    def commit(
        self: Memory, table: str, step: str, rows: Rows, columns: Sequence[str], *, whole: bool
    ) -> int:
        bad = [row for row in rows if fails(table, row)] if table in tables else []
        if bad:
            model = tables[table]
            found = AuditResult(model, "few", Severity.ERROR, AuditState.FAILED, len(bad))
            error = audit_findings.audit_failed(model=model, found=[("few", "", "")], sample=[])
            raise AuditsFailed.of(error, [found])
        return real(self, table, step, rows, columns, whole=whole)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Memory, "commit", commit)
        yield


@pytest.mark.deep
@settings(max_examples=EXAMPLES)
@given(
    program=programs(users=5, rounds=(2, 4)),
    seed=st.integers(0, 2**20),
    jobs=st.sampled_from([None, 3]),
    shape=st.sampled_from(sorted(SHAPES)),
)
def test_no_row_that_fails_is_in_a_table(
    shape: str, program: Program, seed: int, jobs: int | None
) -> None:
    """
    Runs fail by random audits, some die at a write point besides; no committed table has a row that
    fails. Without the audits a run builds the rest, and all tables equal the reference.
    """
    random = Random(seed)

    class Audited(DryPlay):
        """Runs with audits, perhaps dies, and then runs without."""

        def _run(self, window: Interval | None, terms: Sequence[str]) -> RunResult:
            chosen = [name for name in self.shape.tables if random.random() < 0.4]
            seen = {name: len(kept.snapshots) for name, kept in self.memory.tables.items()}
            dies = random.choice((0, 0, random.randint(1, 40)))
            failed: dict[str, str] = {}
            with audited(chosen), living(dies) as life:
                try:
                    super()._run(window, terms)
                except RunFailed as end:
                    failed = {one.model: one.error.slug for one in end.result.failures}
            assert set(failed.values()) <= {"audit-failed"}
            for name in chosen:
                kept = self.memory.tables.get(table_name(name))
                new = list(kept.snapshots.items()) if kept else []
                for _, rows in new[seen.get(table_name(name), 0) :]:
                    assert not any(fails(table_name(name), row) for row in rows)
            if not life.dead:
                book = self.ledger
                known = {one.result.model for one in book.audits() if one.result.fails}
                book.close()
                assert failed.keys() <= known
            self._complete = False
            return super()._run(window, terms)

    play_through(Audited, SHAPES[shape], program, jobs=jobs)


@dataclass
class Judged(DryPlay):
    """Models with an audit that reads another table each, and the steps of the last run."""

    seed: int = 0
    began: list[tuple[Step, set[str]]] = field(default_factory=list)
    """Each step in the order in which they began, with the models whose steps had ended by then."""

    @property
    def project(self) -> Project:
        """The project with audits: of each model at most one, which reads a table drawn for it."""
        found, nodes = super().project, []
        for node in found:
            above = {*self.shape.tables} - found.downstream([node.name]) - {node.name}
            other = Random(f"{self.seed} {node.name}").choice([None, *sorted(above)])
            reads = Audit("known", AuditKind.RELATIONSHIP, to=other) if other else None
            judged = node.model.kind is not Kind.VIEW and not node.landed
            audits = (reads,) if reads and judged else ()
            nodes.append(replace(node, model=replace(node.model, audits=audits)))
        return replace(found, nodes=in_order_for_audits(nodes))

    def _run(self, window: Interval | None, terms: Sequence[str]) -> RunResult:
        real, self.began, ended = DryEngine.carry_out, [], set[str]()

        def carry_out(engine: DryEngine, step: Step, *more: Any) -> Any:
            self.began.append((step, {*ended}))
            found = real(engine, step, *more)
            ended.add(step.model)
            return found

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(DryEngine, "carry_out", carry_out)
            result = super()._run(window, terms)
        self._check_order()
        return result

    def _check_order(self) -> None:
        """No table was built, beside or after a model of ordinary steps that is judged on it."""
        project = self.project
        order = [node.name for node in project]
        for at, (step, ended) in enumerate(self.began):
            for other in tables_of_audits(project, project[step.model]):
                first = order.index(other) < order.index(step.model)
                begun = [one.model for one, _ in self.began[:at]]
                later = [one.model for one, _ in self.began[at:]]
                if first and not step.action.of_own_rows:
                    assert other not in later, f"{step.model} was built before {other}"
                    assert other not in begun or other in ended, f"{step.model} beside {other}"


@pytest.mark.deep
@pytest.mark.parametrize("shape", SHAPES)
@settings(max_examples=EXAMPLES)
@given(
    program=programs(users=4, rounds=(2, 4)),
    seed=st.integers(0, 2**20),
    at_once=st.integers(2, 4),
)
def test_what_audits_read_is_built_before(
    shape: str, program: Program, seed: int, at_once: int
) -> None:
    """No model that an audit judges is built before, or beside, a table that the audit reads."""
    play_through(Judged, SHAPES[shape], program, seed=seed, models_at_once=at_once)
