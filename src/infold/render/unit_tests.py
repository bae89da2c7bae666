"""How tests ended: a line each, what failed as tables, and the whole for programs and for CI."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from infold.core.typed_text import value_text
from infold.core.unit_tests import (
    ComparedRow,
    Comparison,
    Failure,
    Side,
    TestReport,
    TestResult,
    Untested,
)
from infold.render import formatting

_MOST_ROWS = 40
"""Rows of a comparison on the screen; of more, those that differ."""
_WIDEST = 60


def result_line(result: TestResult) -> str:
    """A test that ended, as one line."""
    word = "ok  " if result.passed else "FAIL"
    if result.cached:
        return f"{word}  {result.test.name}  (cached)"
    others = f", {formatting.count(result.shuffles, 'other order')}" if result.shuffles else ""
    return f"{word}  {result.test.name}  ({formatting.seconds(result.seconds)}{others})"


def report_screen(report: TestReport) -> str:
    """What failed, and how many tests passed."""
    parts = [failure_text(each, one) for each in report.results for one in each.failures]
    if report.branches is not None:
        parts.append(coverage_text(report.branches, report.models))
    failed = sum(not result.passed for result in report.results)
    passed = len(report.results) - failed
    cached = sum(result.cached for result in report.results)
    before = f" ({cached} of them before, unchanged)" if cached else ""
    counts = [f"{passed} passed{before}"] * bool(passed or not failed) + [
        f"{failed} failed"
    ] * bool(failed)
    runs = formatting.count(report.runs, "run")
    shuffled = any(result.shuffles for result in report.results)
    seed = f", other orders by --seed {report.seed}" if shuffled else ""
    end = f"{', '.join(counts)} in {formatting.seconds(report.seconds)} ({runs}{seed})."
    return "\n\n\n".join([*parts, end])


def failure_text(result: TestResult, failure: Failure) -> str:
    """One failure: where, what differs, and what the run was about to do."""
    head = f"{result.test.name}\n  {_headline(failure)}\n  at {failure.at}"
    parts = [head]
    if failure.order:
        parts.append("\n".join(f"  {line}" for line in failure.order))
    if failure.compared is not None:
        parts.append("\n".join(comparison_lines(failure.compared)))
    if failure.error is not None:
        parts.append("\n".join(f"  {line}".rstrip() for line in str(failure.error).splitlines()))
    if failure.strip:
        parts.append("  This run was about to do this:")
        parts.append("\n".join(failure.strip))
    if failure.notes:
        parts.append("\n".join(f"  note: {note}" for note in failure.notes))
    return "\n\n".join(parts)


def _headline(failure: Failure) -> str:
    what = failure.model or "the run"
    if failure.error is not None:
        return f"{what} failed in {failure.after}"
    if failure.order:
        return f"{what} comes out otherwise where the arrivals come in another order"
    return f"{what} is not as expected after {failure.after}: {_counts(failure.compared)}"


def _counts(compared: Comparison | None) -> str:
    rows = [] if compared is None else [row.side for row in compared.rows]
    words = {
        Side.EXPECTED: ("row differs", "rows differ"),
        Side.MISSING: ("row is missing", "rows are missing"),
        Side.SURPLUS: ("row too many", "rows too many"),
    }
    counts = [(rows.count(side), *forms) for side, forms in words.items() if side in rows]
    return ", ".join(f"{number} {one if number == 1 else more}" for number, one, more in counts)


def comparison_lines(compared: Comparison) -> list[str]:
    """Expected and actual rows as an aligned table; differing values are between stars."""
    rows: Sequence[ComparedRow] = compared.rows
    not_shown = 0
    if len(rows) > _MOST_ROWS:
        differing = [row for row in rows if row.side is not Side.SAME]
        rows, not_shown = differing[:_MOST_ROWS], len(compared.rows) - len(differing[:_MOST_ROWS])
    table = [["", *compared.columns]]
    table += [[row.side.value, *_texts(row)] for row in rows]
    widths = [max(len(line[i]) for line in table) for i in range(len(table[0]))]
    table.insert(1, ["-" * width for width in widths])
    lines = formatting.columns(table)
    return [*lines, f"  … and {not_shown} more rows"] if not_shown else lines


def _texts(row: ComparedRow) -> list[str]:
    texts = [formatting.clip(value_text(value), _WIDEST) for value in row.values]
    return [f"*{text}*" if at in row.differing else text for at, text in enumerate(texts)]


def coverage_text(branches: Sequence[Untested], models: int) -> str:
    """What no test looks at."""
    without = [branch for branch in branches if branch.branch is None]
    tested = models - len(without)
    lines = [f"{tested} of {formatting.count(models, 'model')} have a test."]
    if without:
        lines += [
            "",
            "Without a test",
            *formatting.columns([(o.model, str(o.at)) for o in without]),
        ]
    taken = [branch for branch in branches if branch.branch is not None and not branch.unknown]
    if taken:
        rows = [(one.model, str(one.at), one.branch or "") for one in taken]
        lines += ["", "No row of a test goes this way", *formatting.columns(rows)]
    unknown = [branch for branch in branches if branch.unknown]
    if unknown:
        rows = [(one.model, str(one.at), f"{one.branch}: {one.unknown}") for one in unknown]
        lines += ["", "Not looked into", *formatting.columns(rows)]
    return "\n".join(lines)


# -- for programs


def report_json(report: TestReport) -> dict[str, Any]:
    """The whole as plain values."""
    shape: dict[str, Any] = {
        "passed": report.passed,
        "seed": report.seed,
        "runs": report.runs,
        "seconds": round(report.seconds, 3),
        "tests": [_result_json(result) for result in report.results],
    }
    if report.branches is not None:
        shape["untested"] = [
            {
                "model": branch.model,
                "at": str(branch.at),
                "branch": branch.branch,
                "unknown": branch.unknown or None,
            }
            for branch in report.branches
        ]
    return shape


def _result_json(result: TestResult) -> dict[str, Any]:
    return {
        "name": result.test.name,
        "file": result.test.file,
        "line": result.test.at.line,
        "passed": result.passed,
        "seconds": round(result.seconds, 3),
        "cached": result.cached,
        "orders": result.shuffles,
        "failures": [_failure_json(failure) for failure in result.failures],
    }


def _failure_json(failure: Failure) -> dict[str, Any]:
    compared = failure.compared
    return {
        "model": failure.model or None,
        "after": failure.after,
        "at": str(failure.at),
        "order": list(failure.order),
        "error": None if failure.error is None else failure.error.record,
        "columns": [] if compared is None else list(compared.columns),
        "rows": [] if compared is None else list(_rows_json(compared)),
        "plan": list(failure.strip),
        "notes": list(failure.notes),
    }


def _rows_json(compared: Comparison) -> Iterable[Mapping[str, Any]]:
    for row in compared.rows:
        if row.side is not Side.SAME:
            yield {
                "side": row.side.value,
                "values": [None if v is None else value_text(v) for v in row.values],
                "differing": [compared.columns[at] for at in sorted(row.differing)],
            }


def junit_xml(report: TestReport) -> str:
    """The whole as JUnit's XML, which continuous integration shows."""
    from xml.etree import ElementTree as ET

    failed = sum(not result.passed for result in report.results)
    suite = ET.Element(
        "testsuite",
        name="infold",
        tests=str(len(report.results)),
        failures=str(failed),
        time=f"{report.seconds:.3f}",
    )
    for result in report.results:
        case = ET.SubElement(
            suite,
            "testcase",
            name=result.test.name,
            classname=result.test.file,
            file=result.test.file,
            line=str(result.test.at.line),
            time=f"{result.seconds:.3f}",
        )
        for failure in result.failures:
            inner = ET.SubElement(case, "failure", message=_headline(failure))
            inner.text = _clean(failure_text(result, failure))
    ET.indent(suite)
    xml: str = ET.tostring(suite, encoding="unicode")
    return f'<?xml version="1.0" encoding="UTF-8"?>\n{xml}\n'


def _clean(text: str) -> str:
    """Without signs that XML cannot have."""
    return "".join(c if c.isprintable() or c == "\n" else "?" for c in text)
