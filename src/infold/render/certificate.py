"""What verify found, model by model, and the sentence it comes to."""

from __future__ import annotations

from infold.interval import EVER, Interval, show
from infold.render import words
from infold.report import Certificate, Verdict

_MOST = 10
"""How many differing cells, and how many rows, are shown of one model."""

_NOTE = 40
"""A longer note stands below the table."""


def certificate_screen(value: Certificate) -> str:
    """The certificate: a line a model, the differences, one sentence."""
    rows = [("model", "rows", "cells", "content", "")]
    rows.extend(
        (
            verdict.model,
            f"{verdict.rows:,}",
            f"{verdict.cells:,}",
            f"{verdict.content & (2**64 - 1):016x}",
            _finding(verdict) + (f" ({verdict.note})" if _short(verdict) else ""),
        )
        for verdict in value.models
    )
    parts = ["\n".join(words.columns(rows, right=(1, 2)))]
    parts.append(
        "\n".join(
            f"{verdict.model}: {verdict.note}"
            for verdict in value.models
            if verdict.note and not _short(verdict)
        )
    )
    parts.extend(_difference(verdict) for verdict in value.models if not verdict.equal)
    parts.append(_sentence(value))
    return "\n\n".join(part for part in parts if part)


def _finding(verdict: Verdict) -> str:
    if verdict.equal:
        return "equal"
    return "DIFFERENT" if _compared(verdict) else "NOT COMPARED"


def _compared(verdict: Verdict) -> bool:
    return bool(verdict.differing or verdict.sample or not verdict.note)


def _short(verdict: Verdict) -> bool:
    return 0 < len(verdict.note) <= _NOTE


def _difference(verdict: Verdict) -> str:
    if not verdict.differing and not verdict.sample:
        return ""
    lines = [f"{verdict.model} differs in {words.count(len(verdict.differing), 'cell')}"]
    rows = [
        (_cell(cell), f"{stored:,} stored", f"{rebuilt:,} rebuilt")
        for cell, stored, rebuilt in verdict.differing[:_MOST]
    ]
    lines.extend(words.columns(rows, right=(1, 2)))
    if len(verdict.differing) > _MOST:
        lines.append(f"  and {len(verdict.differing) - _MOST} more cells")
    for side, row in verdict.sample[:_MOST]:
        text = ", ".join(f"{name}={_value(entry)}" for name, entry in row.items())
        lines.append(f"  only {side}: {words.clip(text, words.WIDTH - 17)}")
    return "\n".join(lines)


def _cell(cell: Interval) -> str:
    return "the table" if cell == EVER else show(cell.start)


def _value(entry: object) -> str:
    return "NULL" if entry is None else str(entry)


def _sentence(value: Certificate) -> str:
    rows = sum(verdict.rows for verdict in value.models)
    took = f", in {words.seconds(value.seconds)}" if value.seconds else ""
    if not value.models:
        return "Nothing to verify: no table was built yet."
    if value.equal:
        return (
            f"Verified: {words.count(len(value.models), 'table')} of {words.count(rows, 'row')} "
            f"equal their definitions evaluated from scratch{took}."
        )
    unequal = [verdict for verdict in value.models if not verdict.equal]
    wrong = [verdict.model for verdict in unequal if _compared(verdict)]
    missed = [verdict.model for verdict in unequal if not _compared(verdict)]
    said = []
    if wrong:
        differ = "differs" if len(wrong) == 1 else "differ"
        said.append(f"{words.names(wrong)} {differ} from a rebuild")
    if missed:
        were = "was" if len(missed) == 1 else "were"
        said.append(f"{words.names(missed)} {were} not compared")
    return f"NOT verified: {', '.join(said)}{took}."
