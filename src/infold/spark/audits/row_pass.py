"""
Audits of one row, judged while the rows are written.

The rows pass a condition on their way into the table that raises an error at the first row that
fails an audit of severity error. Then the write is aborted before its commit, and the rows are
computed once more to count and to show the bad ones. Where all rows pass there is no pass of its
own, and nothing is kept. Failures of severity warn are counted while the rows are written.

The condition calls a function that Spark takes for nondeterministic. So Spark evaluates it where it
stands, on the rows that are written, and never below a join or an aggregate, on rows that go
nowhere.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from infold.core.audits import Audit, AuditResult, Severity
from infold.spark.audits.findings import counted, result, row_texts
from infold.spark.audits.predicates import Types, bad_row, types_of
from infold.spark.content import JSON, column, user_columns
from infold.spark.observed import Seen, observed

MARK = "infold: a row does not pass an audit"
"""What the error says that a bad row raises."""


@dataclass(frozen=True)
class Counted:
    """Rows that count their failures of severity warn as they are written."""

    rows: DataFrame
    audits: tuple[Audit, ...]
    seen: Seen | None

    def results(self, model: str) -> list[AuditResult]:
        """What was found; waits until the rows have been written."""
        if self.seen is None:
            return []
        # Spark forgets what it observed in a plan that turned out to be empty.
        found = self.seen.get
        return [_result(model, audit, found, at) for at, audit in enumerate(self.audits)]


def guarded(rows: DataFrame, audits: Sequence[Audit]) -> DataFrame:
    """The rows; one that fails an audit of severity error ends the query that computes them."""
    types = types_of(rows)
    tests = [bad_row(one, types) for one in audits if one.severity is Severity.ERROR]
    if not tests:
        return rows
    bad = " OR ".join(f"({test})" for test in tests)
    stays = "monotonically_increasing_id() >= 0"
    return rows.where(f"CASE WHEN {bad} THEN raise_error('{MARK}') ELSE {stays} END")


def counting(rows: DataFrame, audits: Sequence[Audit]) -> Counted:
    """The rows, which count their failures of severity warn in the query that writes them."""
    warned = tuple(one for one in audits if one.severity is Severity.WARN)
    if not warned:
        return Counted(rows, (), None)
    watched, seen = observed(rows, *_counts(rows, warned))
    return Counted(watched, warned, seen)


def judged(
    model: str, rows: DataFrame, audits: Sequence[Audit], *, stored: bool = False
) -> list[AuditResult]:
    """What audits of one row find in some rows, in one pass; bad rows are looked up."""
    if not audits:
        return []
    # One row.
    found = rows.agg(*_counts(rows, audits)).collect()[0].asDict()
    return [
        _result(model, audit, found, at, rows=rows, stored=stored)
        for at, audit in enumerate(audits)
    ]


def _counts(rows: DataFrame, audits: Sequence[Audit]) -> list[Column]:
    """Of all rows how many there are; of the bad ones also the least and the greatest, as JSON."""
    types = types_of(rows)
    found: list[Column] = [F.count(F.lit(1)).alias("rows")]
    names = user_columns(rows).columns
    text = F.to_json(F.struct(*map(column, names)), JSON)
    for at, audit in enumerate(audits):
        bad = F.expr(bad_row(audit, types))
        found += [
            F.count_if(bad).alias(f"bad_{at}"),
            F.min(F.when(bad, text)).alias(f"least_{at}"),
            F.max(F.when(bad, text)).alias(f"most_{at}"),
        ]
    return found


def _result(
    model: str,
    audit: Audit,
    found: Mapping[str, Any],
    at: int,
    *,
    rows: DataFrame | None = None,
    stored: bool = False,
) -> AuditResult:
    bad, every = (int(found.get(name) or 0) for name in (f"bad_{at}", "rows"))
    if not bad:
        return result(model, audit, stored=stored)
    shown = tuple(dict.fromkeys(str(found[f"{name}_{at}"]) for name in ("least", "most")))
    if rows is not None:
        types: Types = types_of(rows)
        shown = row_texts(user_columns(rows.where(bad_row(audit, types))))
    what = f"{bad:,} of {counted(every)}"
    return result(model, audit, bad, what, shown, stored=stored)
