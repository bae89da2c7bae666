"""What an audit finds, as a result: how many, in words, and a few rows as JSON."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from infold.core.audits import MOST_ROWS, Audit, AuditResult, AuditsFailed, AuditState, failed
from infold.core.interval import Interval
from infold.messages import audit_findings
from infold.spark.content import JSON

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
