"""Audits of what a step is about to write, before its commit, and of stored rows."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import reduce
from itertools import pairwise

from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from infold.analysis.sql.token_calls import has_alias
from infold.core.audits import (
    MOST_ROWS,
    Audit,
    AuditKind,
    AuditResult,
    AuditState,
    Severity,
    Within,
    hull,
)
from infold.core.interval import show_duration, show_instant
from infold.core.plan import Step
from infold.core.project import Node
from infold.core.queries import quoted
from infold.core.record import Outcome
from infold.core.trace import Version
from infold.messages import audit_findings
from infold.spark.audits.row_audits import (
    MARK,
    counted,
    counting,
    guarded,
    json_rows,
    judged,
    refuse_failed,
    refuse_wrong,
    refused,
    result,
    row_texts,
    where,
)
from infold.spark.content import cell_start, column, micros, user_columns
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


# Each is a query of its own. `written` are the rows that a step adds, `table` is the table as it
# will be after the commit, without columns of infold's own. Of stored rows `infold audit` judges
# the same with both alike.

_CELL, _ROWS = "_infold_cell", "_infold_rows"


@dataclass(frozen=True)
class Judged:
    """
    What an audit of more than one row is judged on.

    ``kept`` are the stored rows that stay, None for none. ``other`` gives another table's rows
    (None where it was never built), and ``view`` the name of a temporary view of some rows.
    ``as_of`` is the clock of the run.
    """

    node: Node
    written: DataFrame
    kept: DataFrame | None
    other: Callable[[str], DataFrame | None]
    view: Callable[[str, DataFrame], str]
    as_of: int
    stored: bool = False

    @property
    def table(self) -> DataFrame:
        """Staying and written rows together: the table as it is after the commit."""
        if self.kept is None:
            return self.written
        return self.kept.unionByName(self.written)

    @property
    def cell(self) -> Column:
        """The start of a row's cell (µs); 0 for a table without cells."""
        granularity, series = self.node.model.granularity, self.node.model.timeseries
        name = series.partition_column if series is not None else "session_start"
        return cell_start(column(name), granularity) if granularity else F.lit(0)


def judge(audit: Audit, on: Judged) -> AuditResult:
    """What one audit finds. Raises ``audit_findings.refused_audit`` where Spark refuses it."""
    try:
        return _JUDGES[audit.kind](audit, on)
    except (PySparkException, Py4JError) as error:
        if not isinstance(error, PySparkException):
            raise
        raise refused(on.node.name, audit, error) from error


def _audited_rows(rows: DataFrame, audit: Audit) -> DataFrame:
    """The rows that an audit is about."""
    return rows.where(f"true{where(audit)}") if audit.where else rows


def _unique(audit: Audit, on: Judged) -> AuditResult:
    """
    Keys that a written row shares with another row of the table; rows with a NULL in it have none.

    Rows that stay are looked up by the keys of the written ones.
    """
    by_cell = audit.within is Within.CELL

    def keyed(rows: DataFrame) -> DataFrame:
        known = reduce(Column.__and__, (column(name).isNotNull() for name in audit.columns))
        keys = [column(name) for name in audit.columns]
        return (
            _audited_rows(rows, audit)
            .where(known)
            .select(*keys, *([on.cell.alias(_CELL)] if by_cell else []))
        )

    written_keys = keyed(on.written)
    names = written_keys.columns
    new = written_keys.groupBy(*map(column, names)).agg(F.count(F.lit(1)).alias(_ROWS))
    if on.kept is not None:
        old = keyed(on.kept)
        same = reduce(Column.__and__, (old[quoted(n)] == new[quoted(n)] for n in names))
        stored_keys = old.join(new, same, "left_semi").groupBy(*map(column, names))
        counts = stored_keys.agg(F.count(F.lit(1)).alias(_ROWS))
        new = new.unionByName(counts).groupBy(*map(column, names)).agg(F.sum(_ROWS).alias(_ROWS))
    twice = new.where(F.col(_ROWS) > 1)
    shown = [column(name) for name in audit.columns]
    shown += [F.timestamp_micros(F.col(_CELL)).alias("cell")] if by_cell else []
    repeated = twice.select(*shown, F.col(_ROWS).alias("rows"))
    return _bad_rows(audit, on, repeated, "key", " in more than one row")


def _relationship(audit: Audit, on: Judged) -> AuditResult:
    """Rows with a key that the other table lacks; rows with a NULL in it are none."""
    is_own_table = audit.to.lower() == on.node.name.lower()
    rows = _audited_rows(on.table if is_own_table else on.written, audit)
    known = reduce(Column.__and__, (column(name).isNotNull() for name in audit.columns))
    rows = rows.where(known)
    other = on.table if is_own_table else on.other(audit.to)
    if other is not None:
        pairs = zip(audit.columns, audit.to_columns, strict=True)
        keys = other.select(
            *(column(name).alias(f"_to_{at}") for at, name in enumerate(audit.to_columns))
        )
        same = reduce(
            Column.__and__,
            (rows[quoted(name)] == keys[f"_to_{at}"] for at, (name, _) in enumerate(pairs)),
        )
        rows = rows.join(keys, same, "left_anti")
    missing = f" with {', '.join(audit.columns)} not in {audit.to}"
    return _bad_rows(audit, on, rows, "row", missing)


def _row_count(audit: Audit, on: Judged) -> AuditResult:
    """Cells with rows, or the whole table, with too few rows or too many."""
    rows = _audited_rows(on.table, audit)
    outside = F.lit(False)
    for bound, wrong in (
        (audit.minimum, F.col("rows") < int(audit.minimum or 0)),
        (audit.maximum, F.col("rows") > int(audit.maximum or 0)),
    ):
        outside = outside | wrong if bound else outside
    if audit.within is Within.TABLE:
        wrong_counts = rows.agg(F.count(F.lit(1)).alias("rows")).where(outside)
        return _bad_rows(audit, on, wrong_counts, "table", " with a wrong number of rows")
    cells = rows.where(on.cell.isNotNull()).groupBy(on.cell.alias(_CELL))
    wrong_counts = cells.agg(F.count(F.lit(1)).alias("rows")).where(outside)
    wrong_counts = wrong_counts.select(F.timestamp_micros(F.col(_CELL)).alias("cell"), "rows")
    return _bad_rows(audit, on, wrong_counts, "cell", " with a wrong number of rows")


def _freshness(audit: Audit, on: Judged) -> AuditResult:
    """Whether the newest time is older than it may be, by the clock of the run."""
    [name] = audit.columns
    rows = _audited_rows(on.table, audit)
    # One row.
    newest = rows.agg(F.max(micros(column(name))).alias("at")).collect()[0]["at"]
    if newest is not None and newest >= on.as_of - audit.max_age:
        return result(on.node.name, audit, stored=on.stored)
    what = "no rows" if newest is None else f"the newest is of {show_instant(newest)}"
    what += f", more than {show_duration(audit.max_age)} before {show_instant(on.as_of)}"
    shown = () if newest is None else json_rows([{name: show_instant(newest)}])
    return result(on.node.name, audit, 1, what, shown, stored=on.stored)


def _no_gaps(audit: Audit, on: Judged) -> AuditResult:
    """Cells without rows between the first and the last cell with rows."""
    granularity = on.node.model.granularity
    assert granularity is not None, "checked with the project"
    rows = _audited_rows(on.table, audit).where(on.cell.isNotNull())
    # At most a row for each cell.
    starts = [row[0] for row in rows.select(on.cell.alias(_CELL)).distinct().collect()]
    gaps: list[dict[str, object]] = []
    missing = 0
    for before, after in pairwise(sorted(starts)):
        at = granularity.next(before)
        while at < after:
            missing += 1
            if len(gaps) < MOST_ROWS:
                gaps.append({"cell": show_instant(at)})
            at = granularity.next(at)
    what = f"{counted(missing, 'cell')} without rows"
    return result(on.node.name, audit, missing, what, json_rows(gaps), stored=on.stored)


def _rows_of_query(audit: Audit, on: Judged) -> AuditResult:
    """The rows of a SELECT of bad rows."""
    model, parts, at = on.node.name, list[str](), 0
    for table in sorted(audit.tables, key=lambda entry: entry.start):
        rows = (on.written if audit.by_row else on.table) if table.name == model else None
        if rows is None:
            rows = on.other(table.name)
        if rows is None:
            raise audit_findings.unseen_audit(
                audit.at, name=audit.name, model=model, why=f"{table.name} is not built yet"
            )
        parts += [audit.sql[at : table.start], on.view(table.name, rows)]
        if not has_alias(audit.sql, table.end):
            parts.append(f" AS {quoted(_last_name(audit.sql[table.start : table.end]))}")
        at = table.end
    parts.append(audit.sql[at:])
    bad_rows = on.written.sparkSession.sql("".join(parts))
    return _bad_rows(audit, on, bad_rows, "row", "")


def _last_name(written: str) -> str:
    """The name that a query calls a table by: its last part, without quotes."""
    return written.rpartition(".")[2].strip("`")


_JUDGES: Mapping[AuditKind, Callable[[Audit, Judged], AuditResult]] = {
    AuditKind.UNIQUE: _unique,
    AuditKind.RELATIONSHIP: _relationship,
    AuditKind.ROW_COUNT: _row_count,
    AuditKind.FRESHNESS: _freshness,
    AuditKind.NO_GAPS: _no_gaps,
    AuditKind.QUERY: _rows_of_query,
}


def _bad_rows(audit: Audit, on: Judged, bad_rows: DataFrame, unit: str, which: str) -> AuditResult:
    """The result of a query of bad rows: they are counted only where there are more than a few."""
    rows = row_texts(bad_rows, MOST_ROWS + 1)
    bad = len(rows) if len(rows) <= MOST_ROWS else bad_rows.count()
    what = f"{counted(bad, unit)}{which}"
    return result(on.node.name, audit, bad, what, rows[:MOST_ROWS], stored=on.stored)
