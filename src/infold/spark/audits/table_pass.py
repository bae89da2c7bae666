"""
Audits of more than one row: of what is written together with what stays, or with other tables.

Each is a query of its own. ``written`` are the rows that a step adds, ``table`` is the table as it
will be after the commit, without columns of infold's own. Of stored rows `infold audit` judges the
same with both alike.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import reduce
from itertools import pairwise

from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from infold.analysis.sql.token_calls import has_alias
from infold.core.audits import MOST_ROWS, Audit, AuditKind, AuditResult, Within
from infold.core.interval import show_duration, show_instant
from infold.core.project import Node
from infold.core.quoting import quoted
from infold.messages import audit_findings
from infold.spark.audits.findings import counted, json_rows, result, row_texts
from infold.spark.audits.predicates import refused, where
from infold.spark.content import cell_start, column, micros

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
