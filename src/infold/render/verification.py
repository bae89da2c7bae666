"""What verify found, model by model, and the sentence it comes to."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import takewhile

from infold.core.interval import EVER, Interval, show_instant
from infold.core.project import ALL_COLUMNS
from infold.core.report import Verdict, VerificationReport
from infold.render import formatting
from infold.render.json_shapes import Pair, pair_rows
from infold.render.table import cell

_MOST = 10
"""How many differing cells, and how many rows, are shown of one model."""

_LONGEST_VALUE = 24
"""A longer value is cut; that it differs is seen all the same."""

_LONGEST_NOTE = 40
"""A longer note is below the table."""


def verification_screen(value: VerificationReport) -> str:
    """The verification report: a line a model, the differences, one sentence."""
    rows = [("model", "rows", "cells", "checksum", "")]
    rows.extend(
        (
            verdict.model,
            f"{verdict.rows:,}",
            f"{verdict.cells:,}",
            f"{verdict.content & (2**64 - 1):016x}",
            _verdict_text(verdict) + (f" ({verdict.note})" if _has_short_note(verdict) else ""),
        )
        for verdict in value.models
    )
    parts = ["\n".join(formatting.columns(rows, right=(1, 2)))]
    parts.append(
        "\n".join(
            f"{verdict.model}: {verdict.note}"
            for verdict in value.models
            if verdict.note and not _has_short_note(verdict)
        )
    )
    parts.extend(_difference_text(verdict) for verdict in value.models if not verdict.equal)
    parts.append(_conclusion(value))
    return "\n\n".join(part for part in parts if part)


def _verdict_text(verdict: Verdict) -> str:
    if not verdict.built:
        return "never built"
    if verdict.equal:
        return "not compared" if verdict.left_out == ALL_COLUMNS else "equal"
    if verdict.beyond_bounds:
        return "DIFFERS beyond its declared bounds"
    return "DIFFERENT" if _was_compared(verdict) else "NOT COMPARED"


def _was_compared(verdict: Verdict) -> bool:
    return bool(verdict.differing or verdict.sample or not verdict.note)


def _has_short_note(verdict: Verdict) -> bool:
    return 0 < len(verdict.note) <= _LONGEST_NOTE


def _difference_text(verdict: Verdict) -> str:
    if not verdict.differing and not verdict.sample:
        return ""
    lines = [f"{verdict.model} differs in {formatting.count(len(verdict.differing), 'cell')}"]
    rows = [
        (_cell_text(cell), f"{stored:,} stored", f"{rebuilt:,} rebuilt")
        for cell, stored, rebuilt in verdict.differing[:_MOST]
    ]
    lines.extend(formatting.columns(rows, right=(1, 2)))
    if len(verdict.differing) > _MOST:
        lines.append(f"  and {len(verdict.differing) - _MOST} more cells")
    lines.extend(_sample_lines(verdict))
    return "\n".join(lines)


def _sample_lines(verdict: Verdict) -> Iterator[str]:
    """The rows of the sample: where both sides have one, the values that differ."""
    pairs = pair_rows(verdict.sample[: 2 * _MOST], verdict.key)[:_MOST]
    values = [
        (_row_name(pair), name, *_value_texts(stored, rebuilt))
        for pair in pairs
        for name, (stored, rebuilt) in pair.differing.items()
    ]
    if values:
        yield from formatting.columns([("row", "column", "stored", "rebuilt"), *values])
    for pair in pairs:
        row = pair.stored if pair.rebuilt is None else pair.rebuilt
        if row is not None and not pair.differing:
            side = "stored" if pair.rebuilt is None else "rebuilt"
            first = {**pair.key, **row}
            yield f"  only {side}: {formatting.clip(_row_text(first), formatting.WIDTH - 17)}"


def _row_name(pair: Pair) -> str:
    """What tells the row of a pair: its key, or what both sides have in common."""
    if pair.key:
        return formatting.clip(_row_text(pair.key), 2 * _LONGEST_VALUE)
    common = {name: v for name, v in (pair.stored or {}).items() if name not in pair.differing}
    return formatting.clip(_row_text(common), _LONGEST_VALUE)


def _row_text(row: Mapping[str, object]) -> str:
    return ", ".join(f"{name}={cell(value)}" for name, value in row.items())


def _value_texts(stored: object, rebuilt: object) -> tuple[str, str]:
    """Two values, long ones from shortly before where they differ."""
    a, b = cell(stored, None), cell(rebuilt, None)
    if a == b:  # what is written alike and is not: a text and a number, an empty text
        a, b = repr(stored), repr(rebuilt)
    if max(len(a), len(b)) > _LONGEST_VALUE:
        at = max(0, _common_prefix(a, b) - _LONGEST_VALUE // 2)
        a, b = (f"…{text[at:]}" if at else text for text in (a, b))
    return formatting.clip(a, _LONGEST_VALUE) or "''", formatting.clip(b, _LONGEST_VALUE) or "''"


def _common_prefix(a: str, b: str) -> int:
    """How many signs two texts begin with alike."""
    return sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(a, b, strict=False)))


def _left_out(verdict: Verdict) -> Iterator[str]:
    """What of a table was not compared because any result will do."""
    if verdict.left_out == ALL_COLUMNS:
        yield verdict.model
    else:
        yield from (f"{verdict.model}.{name}" for name in verdict.left_out)


def _cell_text(cell: Interval) -> str:
    return "the table" if cell == EVER else show_instant(cell.start)


def _conclusion(value: VerificationReport) -> str:
    took = f", in {formatting.seconds(value.seconds)}" if value.seconds else ""
    built = [verdict for verdict in value.models if verdict.built]
    if not built:
        return "Nothing to verify: no table was built yet."
    if value.equal:
        left_out = [name for verdict in built for name in _left_out(verdict)]
        but = f" Not compared: {formatting.names(left_out)}." if left_out else ""
        compared = [verdict for verdict in built if verdict.left_out != ALL_COLUMNS]
        if not compared:
            return f"Nothing was verified{took}.{but}"
        rows = sum(verdict.rows for verdict in compared)
        return (
            f"Verified: {formatting.count(len(compared), 'table')} of "
            f"{formatting.count(rows, 'row')} equal a full rebuild{took}.{but}"
        )
    unequal = [verdict for verdict in value.models if not verdict.equal]
    wrong = [verdict.model for verdict in unequal if _was_compared(verdict)]
    missed = [verdict.model for verdict in unequal if not _was_compared(verdict)]
    parts = []
    if wrong:
        differ = "differs" if len(wrong) == 1 else "differ"
        parts.append(f"{formatting.names(wrong)} {differ} from a rebuild")
    if missed:
        were = "was" if len(missed) == 1 else "were"
        parts.append(f"{formatting.names(missed)} {were} not compared")
    return f"NOT verified: {', '.join(parts)}{took}."
