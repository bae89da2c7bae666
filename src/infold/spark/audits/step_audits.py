"""Audits of what a step is about to write, before its commit, and of stored rows."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace

from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame

from infold.core.audits import Audit, AuditResult, AuditState, Severity, hull
from infold.core.plan import Step
from infold.core.project import Node
from infold.core.record import Outcome
from infold.core.trace import Version
from infold.spark.audits.findings import refuse_failed, result
from infold.spark.audits.predicates import MARK, counting, guarded, judged, refuse_wrong
from infold.spark.audits.table_pass import Judged, judge
from infold.spark.content import column, user_columns
from infold.spark.step_context import Work


@dataclass
class StepAudits:
    """The audits of the model of one step, as it is about to be committed, and their results."""

    work: Work
    node: Node
    step: Step
    results: list[AuditResult] = field(default_factory=list)
    seconds: float = 0.0

    @property
    def audits(self) -> tuple[Audit, ...]:
        """All audits of the model."""
        return self.node.model.audits

    @contextmanager
    def watch(
        self, rows: DataFrame, kept: Callable[[], DataFrame | None], *, observed: bool
    ) -> Iterator[DataFrame]:
        """
        The rows to write in the block; what they fail is raised, and nothing is committed then.

        ``kept`` gives the stored rows that stay, None for none. Unless ``observed``, the query that
        writes the rows cannot be watched, and failures that are no errors are counted before.
        """
        refuse_wrong(self.node.name, self.audits, rows)
        of_row = [audit for audit in self.audits if audit.of_one_row]
        others = [audit for audit in self.audits if not audit.of_one_row]
        warned = [audit for audit in of_row if audit.severity is Severity.WARN]
        results: list[AuditResult] = []
        if others:
            # Read for each audit, and to be written. At once and whole: whoever observes these rows
            # sees the first query over them, and that of an audit may end before the last row.
            rows = rows.localCheckpoint()
            with self._timed():
                results = self._of_more_rows(others, rows, kept())
                if any(outcome.fails for outcome in results):
                    results += judged(self.node.name, rows, of_row)
            self._refuse(results)
        if warned and not observed:
            with self._timed():
                results += judged(self.node.name, rows, warned)
        counted = counting(rows, of_row if observed else ())
        try:
            yield guarded(counted.rows, of_row)
        except (PySparkException, Py4JError) as error:
            if MARK not in str(error):
                raise
            with self._timed():
                results += judged(self.node.name, rows, of_row)
            self._refuse(results)
            raise
        results += counted.results(self.node.name)
        named = {outcome.audit for outcome in results}
        results += [result(self.node.name, audit) for audit in of_row if audit.name not in named]
        self.results = self._with_cells(results)

    def _refuse(self, results: Sequence[AuditResult]) -> None:
        refuse_failed(self.node.name, self._with_cells(results))

    def _with_cells(self, results: Sequence[AuditResult]) -> list[AuditResult]:
        cells = hull(self.step.cells)
        return [replace(outcome, cells=cells) for outcome in results]

    def _of_more_rows(
        self, audits: Sequence[Audit], rows: DataFrame, kept: DataFrame | None
    ) -> list[AuditResult]:
        """What the audits find that look at more than one row."""
        written = user_columns(rows)
        staying = None if kept is None else user_columns(kept).select(*map(column, written.columns))
        assert self.step.trace is not None, "a planned step has its trace"
        on = Judged(self.node, written, staying, self._other, self.work.named_view, self._clock())
        return [
            result(self.node.name, audit, waiting=True)
            if audit.waits and self.step.trace.pending
            else judge(audit, on)
            for audit in audits
        ]

    def recorded(self, outcome: Outcome) -> Outcome:
        """The outcome of the step, with what they found."""
        receipt = replace(
            outcome.receipt,
            audits=len(self.results),
            audits_failed=sum(audited.state is AuditState.FAILED for audited in self.results),
            audit_seconds=self.seconds,
        )
        return replace(outcome, audits=tuple(self.results), receipt=receipt)

    def _clock(self) -> int:
        """The instant (µs) that the run has as its present: audits of one run agree in it."""
        [run] = self.work.ledger.runs(1, run=self.work.run)
        return run.as_of

    def _other(self, name: str) -> DataFrame | None:
        """Another model's rows: at the version that the step reads, or else the newest."""
        return newest_rows(self.work, name, self.work.ledger.newest_versions(), self.step)

    @contextmanager
    def _timed(self) -> Iterator[None]:
        started = time.monotonic()
        try:
            yield
        finally:
            self.seconds += time.monotonic() - started


def newest_rows(
    work: Work, name: str, newest: Mapping[str, Version], step: Step | None = None
) -> DataFrame | None:
    """
    The rows of a model at the version that a step reads, or else the ``newest``; None if not built.

    A view is evaluated over such rows. Tables that are judged together are of one moment: runs may
    go on beside.
    """
    if name not in work.project:
        return None
    node = work.project[name]
    if node.model.kind.is_stored:
        head = newest.get(name)
        if head is None or not work.tables.exists(name):
            return None
        read = step.inputs.get(name) if step is not None else None
        return user_columns(work.frame(name, read[1] if read else head.number))
    frames = {
        entry.name: newest_rows(work, entry.name, newest, step) for entry in node.stored_inputs
    }
    built = {key: rows for key, rows in frames.items() if rows is not None}
    return work.sql(node, built) if len(built) == len(frames) else None


def audit_stored(work: Work, node: Node, as_of: int) -> tuple[AuditResult, ...] | None:
    """
    What the audits of a model find in its newest version; None where it is not built.

    Raises InfoldError where an audit cannot be judged.
    """
    newest = work.ledger.newest_versions()
    rows = newest_rows(work, node.name, newest)
    if rows is None:
        return None
    refuse_wrong(node.name, node.model.audits, rows)
    results = {
        each.audit: each
        for each in judged(
            node.name, rows, [own for own in node.model.audits if own.of_one_row], stored=True
        )
    }

    def other(name: str) -> DataFrame | None:
        return newest_rows(work, name, newest)

    on = Judged(node, rows, None, other, work.named_view, as_of, stored=True)
    for audit in node.model.audits:
        if not audit.of_one_row:
            results[audit.name] = judge(audit, on)
    return tuple(results[audit.name] for audit in node.model.audits)
