"""What `infold audit` found, and what is known of audits elsewhere."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any

from infold.core.audits import AuditReport, AuditResult, AuditState, JudgedAudit, Severity, failed
from infold.render import formatting
from infold.render.formatting import iso

_SHOWN = 5
"""How many bad rows of one audit are shown."""


def audit_screen(report: AuditReport) -> str:
    """A line an audit, the rows that fail, and one sentence."""
    if not report.results and not report.not_built:
        return "No audits: `audits` of a model, or a file in audits/, declares one."
    rows = [("model", "audit", "severity", "")]
    rows += [(one.model, one.audit, one.severity.value, _verdict(one)) for one in report.results]
    rows += [(model, "", "", "never built") for model in report.not_built]
    parts = ["\n".join(formatting.columns(rows))]
    parts += [_bad_rows(one) for one in failed(report.results) if one.rows]
    parts.append(_conclusion(report))
    return "\n\n".join(parts)


def _verdict(result: AuditResult) -> str:
    if result.state is AuditState.FAILED:
        return f"FAILED: {result.what}"
    return result.state.value


def _bad_rows(result: AuditResult) -> str:
    place = f" ({result.place})" if result.place else ""
    lines = [f"{result.model}: {result.audit}{place}"]
    lines += [f"  {formatting.clip(row, formatting.WIDTH - 4)}" for row in result.rows[:_SHOWN]]
    if result.bad > _SHOWN:
        lines.append("  …: `infold show audit_failures` has more")
    return "\n".join(lines)


def _conclusion(report: AuditReport) -> str:
    took = f", in {formatting.seconds(report.seconds)}" if report.seconds else ""
    wrong = failed(report.results)
    errors = sum(one.severity is Severity.ERROR for one in wrong)
    every = formatting.count(len(report.results), "audit")
    if not wrong:
        return f"{every} passed{took}."
    warned = f", {len(wrong) - errors:,} of severity warn" if errors < len(wrong) else ""
    return f"{len(wrong):,} of {every} failed{warned}{took}."


def audit_json(report: AuditReport) -> dict[str, Any]:
    """What ``infold audit --json`` prints."""
    return {
        "passed": report.passed,
        "as_of": iso(report.as_of),
        "seconds": round(report.seconds, 3),
        "not_built": list(report.not_built),
        "audits": [result_json(result) for result in report.results],
    }


def result_json(result: AuditResult) -> dict[str, Any]:
    """One audit with what it found."""
    return {
        "model": result.model,
        "audit": result.audit,
        "severity": result.severity.value,
        "state": result.state.value,
        "bad": result.bad,
        "found": result.what,
        "file": result.file or None,
        "line": result.line if result.file else None,
        "rows": [_row(text) for text in result.rows],
    }


def _row(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError:  # one that was cut
        return text


def audits_status_json(judged: Iterable[JudgedAudit]) -> list[dict[str, Any]]:
    """What audits found last, for `status --json`."""
    return [
        {
            **{key: value for key, value in result_json(one.result).items() if key != "model"},
            "of": "stored" if one.result.stored else "step",
            "judged_at": iso(one.at),
            "run": one.run or None,
        }
        for one in judged
    ]


def failed_lines(judged_audits: Iterable[JudgedAudit]) -> list[str]:
    """What is said of audits that failed when they were judged last."""
    of: Mapping[bool, str] = {True: "stored rows fail", False: "rows to be written failed"}
    lines = []
    for result in failed([judged.result for judged in judged_audits]):
        warned = "rows were written that fail" if not result.stored else "stored rows fail"
        words = of[result.stored] if result.severity is Severity.ERROR else warned
        lines.append(f"{words} {result.audit}: {result.what}; `infold show audit_failures`")
    return lines
