"""Audits of one row as predicates of Spark SQL: true for a bad row, false for any other."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql import types as T

from infold.core.audits import (
    MOST_ROWS,
    Audit,
    AuditKind,
    AuditResult,
    AuditsFailed,
    AuditState,
    Severity,
    failed,
)
from infold.core.interval import Interval
from infold.core.queries import quoted, text_literal
from infold.messages import audit_findings
from infold.messages.errors import InfoldError
from infold.spark.content import JSON, column, user_columns
from infold.spark.observed import Aggregates, observed

Types = Mapping[str, T.DataType]
"""The types of columns by their names in lower case."""


def types_of(rows: DataFrame) -> Types:
    """The types of a frame's columns."""
    return {field.name.lower(): field.dataType for field in rows.schema.fields}


def bad_row(audit: Audit, types: Types) -> str:
    """
    A predicate over one row, never NULL; ``audit`` is one of those that are ``of_one_row``.

    Raises InfoldError where a column is of a type that cannot be asked like this.
    """
    bad = _BAD_ROW_SQL[audit.kind](audit, types)
    return f"coalesce({bad}, false){where(audit)}"


def where(audit: Audit) -> str:
    """What limits an audit to some rows, to be put behind another condition."""
    return f" AND coalesce((\n{audit.where}\n), false)" if audit.where else ""


def _not_null(audit: Audit, types: Types) -> str:
    del types
    return "(" + " OR ".join(f"{quoted(name)} IS NULL" for name in audit.columns) + ")"


def _accepted_values(audit: Audit, types: Types) -> str:
    [name] = audit.columns
    values = ", ".join(_as_column(audit, value, name, types) for value in audit.values)
    return f"NOT {quoted(name)} IN ({values})"


def _accepted_range(audit: Audit, types: Types) -> str:
    [name] = audit.columns
    type_ = types[name.lower()]
    if not isinstance(type_, (T.NumericType, T.DateType, T.StringType, *_TIMES)):
        raise _wrong_type(audit, name, type_, "numbers, times or texts")
    below, above = ("<", ">") if audit.inclusive else ("<=", ">=")
    parts = [
        f"{quoted(name)} {than} {_as_column(audit, bound, name, types)}"
        for than, bound in ((below, audit.minimum), (above, audit.maximum))
        if bound
    ]
    return "(" + " OR ".join(parts) + ")"


def _matches(audit: Audit, types: Types) -> str:
    [name] = audit.columns
    type_ = types[name.lower()]
    if not isinstance(type_, T.StringType):
        raise _wrong_type(audit, name, type_, "texts")
    return f"NOT {quoted(name)} RLIKE {text_literal(audit.pattern)}"


def _expression(audit: Audit, types: Types) -> str:
    del types
    return f"NOT (\n{audit.sql}\n)"


_BAD_ROW_SQL: Mapping[AuditKind, Callable[[Audit, Types], str]] = {
    AuditKind.NOT_NULL: _not_null,
    AuditKind.ACCEPTED_VALUES: _accepted_values,
    AuditKind.ACCEPTED_RANGE: _accepted_range,
    AuditKind.MATCHES: _matches,
    AuditKind.EXPRESSION: _expression,
}
_TIMES = (T.TimestampType, T.TimestampNTZType)


def _as_column(audit: Audit, literal: str, name: str, types: Types) -> str:
    """
    A literal to compare a column with.

    Texts become values of the column's type; numbers and truth are compared as they are, with
    columns of such types alone: a text that is cast to a number could fail in any row.
    """
    type_ = types[name.lower()]
    if literal.startswith("'"):
        return f"CAST({literal} AS {type_.simpleString()})"
    flag = literal in ("true", "false")
    if flag != isinstance(type_, T.BooleanType) or not (flag or isinstance(type_, T.NumericType)):
        raise _wrong_type(audit, name, type_, f"values such as {literal}")
    return literal


def _wrong_type(audit: Audit, name: str, type_: T.DataType, expected_types: str) -> InfoldError:
    return audit_findings.wrong_column_type(
        audit.at,
        kind=audit.kind.value,
        column=name,
        type_=type_.simpleString(),
        wanted=expected_types,
    )


def refuse_wrong(model: str, audits: Sequence[Audit], rows: DataFrame) -> None:
    """
    Raise what is wrong with the first audit that cannot be judged on rows of these columns.

    Nothing is read. Literals and patterns are evaluated, as a row would only do that later.
    """
    types = types_of(rows)
    for audit in audits:
        for name in audit.columns:
            if name.lower() not in types:
                raise audit_findings.refused_audit(
                    audit.at, name=audit.name, model=model, why=f"there is no column {name}"
                )
    try:
        # All at once, as each call of Spark costs milliseconds.
        _analyse_predicates(audits, rows, types)
    except (PySparkException, Py4JError):
        for audit in audits:
            try:
                _analyse_predicates([audit], rows, types)
            except (PySparkException, Py4JError) as error:
                raise refused(model, audit, error) from error
        raise


def _analyse_predicates(audits: Sequence[Audit], rows: DataFrame, types: Types) -> None:
    """Let Spark analyse the predicates of audits, and evaluate what they have besides rows."""
    tests = [
        bad_row(audit, types) if audit.of_one_row else f"true{where(audit)}"
        for audit in audits
        if audit.of_one_row or audit.where
    ]
    if tests:
        rows.select(*map(F.expr, tests)).schema  # noqa: B018 (is analysed)
    values = [value for audit in audits for value in _literals_of(audit, types)]
    if values:
        named = ", ".join(f"{sql} AS v{at}" for at, sql in enumerate(values))
        # One row.
        rows.sparkSession.sql(f"SELECT {named}").collect()


def refused(model: str, audit: Audit, error: Exception) -> InfoldError:
    """What Spark says of an audit, as a mistake in it."""
    lines = (line.strip() for line in str(error).splitlines())
    first = next(filter(None, lines), type(error).__name__)
    why = first.split(" SQLSTATE: ")[0][:500]
    return audit_findings.refused_audit(audit.at, name=audit.name, model=model, why=why)


def _literals_of(audit: Audit, types: Types) -> list[str]:
    """What an audit has besides the row, as SQL."""
    literals = [
        f"CAST({literal} AS {types[name.lower()].simpleString()})"
        for name in audit.columns[:1]
        for literal in (*audit.values, audit.minimum, audit.maximum)
        if literal.startswith("'")
    ]
    if audit.pattern:
        literals.append(f"'' RLIKE {text_literal(audit.pattern)}")
    return literals


# The rows pass a condition on their way into the table that raises an error at the first row that
# fails an audit of severity error. Then the write is aborted before its commit, and the rows are
# computed once more to count and to show the bad ones. Where all rows pass there is no pass of its
# own, and nothing is kept. Failures of severity warn are counted while the rows are written.
#
# The condition calls a function that Spark takes for nondeterministic. So Spark evaluates it where
# it stands, on the rows that are written, and never below a join or an aggregate, on rows that go
# nowhere.

MARK = "infold: a row does not pass an audit"
"""What the error says that a bad row raises."""


@dataclass(frozen=True)
class Counted:
    """Rows that count their failures of severity warn as they are written."""

    rows: DataFrame
    audits: tuple[Audit, ...]
    seen: Aggregates | None

    def results(self, model: str) -> list[AuditResult]:
        """What was found; waits until the rows have been written."""
        if self.seen is None:
            return []
        # Spark forgets what it observed in a plan that turned out to be empty.
        counts = self.seen.get
        return [_audit_result(model, audit, counts, at) for at, audit in enumerate(self.audits)]


def guarded(rows: DataFrame, audits: Sequence[Audit]) -> DataFrame:
    """The rows; one that fails an audit of severity error ends the query that computes them."""
    types = types_of(rows)
    tests = [bad_row(audit, types) for audit in audits if audit.severity is Severity.ERROR]
    if not tests:
        return rows
    bad = " OR ".join(f"({test})" for test in tests)
    stays = "monotonically_increasing_id() >= 0"
    return rows.where(f"CASE WHEN {bad} THEN raise_error('{MARK}') ELSE {stays} END")


def counting(rows: DataFrame, audits: Sequence[Audit]) -> Counted:
    """The rows, which count their failures of severity warn in the query that writes them."""
    warned = tuple(audit for audit in audits if audit.severity is Severity.WARN)
    if not warned:
        return Counted(rows, (), None)
    watched, observed_counts = observed(rows, *_counts(rows, warned))
    return Counted(watched, warned, observed_counts)


def judged(
    model: str, rows: DataFrame, audits: Sequence[Audit], *, stored: bool = False
) -> list[AuditResult]:
    """What audits of one row find in some rows, in one pass; bad rows are looked up."""
    if not audits:
        return []
    # One row.
    counts = rows.agg(*_counts(rows, audits)).collect()[0].asDict()
    return [
        _audit_result(model, audit, counts, at, rows=rows, stored=stored)
        for at, audit in enumerate(audits)
    ]


def _counts(rows: DataFrame, audits: Sequence[Audit]) -> list[Column]:
    """Of all rows how many there are; of the bad ones also the least and the greatest, as JSON."""
    types = types_of(rows)
    columns: list[Column] = [F.count(F.lit(1)).alias("rows")]
    names = user_columns(rows).columns
    text = F.to_json(F.struct(*map(column, names)), JSON)
    for at, audit in enumerate(audits):
        bad = F.expr(bad_row(audit, types))
        columns += [
            F.count_if(bad).alias(f"bad_{at}"),
            F.min(F.when(bad, text)).alias(f"least_{at}"),
            F.max(F.when(bad, text)).alias(f"most_{at}"),
        ]
    return columns


def _audit_result(
    model: str,
    audit: Audit,
    counts: Mapping[str, Any],
    at: int,
    *,
    rows: DataFrame | None = None,
    stored: bool = False,
) -> AuditResult:
    bad, all_rows = (int(counts.get(name) or 0) for name in (f"bad_{at}", "rows"))
    if not bad:
        return result(model, audit, stored=stored)
    shown = tuple(dict.fromkeys(str(counts[f"{name}_{at}"]) for name in ("least", "most")))
    if rows is not None:
        types: Types = types_of(rows)
        shown = row_texts(user_columns(rows.where(bad_row(audit, types))))
    what = f"{bad:,} of {counted(all_rows)}"
    return result(model, audit, bad, what, shown, stored=stored)


LONGEST = 2_000
"""A kept row has at most so many characters; a longer one is cut."""


def row_texts(rows: DataFrame, limit: int = MOST_ROWS) -> tuple[str, ...]:
    """The first of some rows as JSON, in the order of these texts among those that are taken."""
    names = rows.columns
    text = F.to_json(
        F.struct(*(F.col("`" + name.replace("`", "``") + "`") for name in names)), JSON
    )
    # At most ``limit`` rows, each of ``LONGEST`` characters.
    texts = rows.limit(limit).select(F.substring(text, 1, LONGEST).alias("row")).collect()
    return tuple(sorted(row["row"] for row in texts))


def json_rows(rows: Iterable[dict[str, object]]) -> tuple[str, ...]:
    """Rows that were made here as JSON."""
    return tuple(json.dumps(row, default=str)[:LONGEST] for row in rows)


def result(
    model: str,
    audit: Audit,
    bad: int = 0,
    what: str = "",
    rows: tuple[str, ...] = (),
    *,
    waiting: bool = False,
    cells: Interval | None = None,
    stored: bool = False,
) -> AuditResult:
    """What was found by one audit; it failed if anything is ``bad``."""
    state = AuditState.FAILED if bad else AuditState.PASSED
    audit_result = AuditResult(
        model=model,
        audit=audit.name,
        severity=audit.severity,
        state=AuditState.WAITING if waiting else state,
        bad=bad,
        what=what,
        rows=rows,
        file=audit.file,
        line=audit.line,
        stored=stored,
    )
    if cells is None:
        return audit_result
    from dataclasses import replace

    return replace(audit_result, cells=cells)


def counted(bad: int, what: str = "row") -> str:
    """How many, in words."""
    return f"{bad:,} {what}" + ("" if bad == 1 else "s")


def refuse_failed(model: str, results: Sequence[AuditResult]) -> None:
    """Raise AuditsFailed if an audit of severity error failed."""
    wrong = [failure for failure in failed(results) if failure.fails]
    if not wrong:
        return
    shown = [(failure.audit, failure.what, failure.place) for failure in wrong]
    sample = [row for failure in wrong for row in failure.rows[:2]][:5]
    error = audit_findings.audit_failed(model=model, found=shown, sample=sample)
    raise AuditsFailed.of(error, results)
