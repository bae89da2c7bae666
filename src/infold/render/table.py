"""Rows of a table as an aligned table."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any

from infold.core.arrow_values import FarTime
from infold.render import formatting

_WIDEST = 40
"""A longer value is cut; the exports are not."""


def table_screen(
    name: str,
    columns: Sequence[str],
    rows: Sequence[Sequence[Any]],
    *,
    more: int | None = 0,
    note: str = "",
) -> str:
    """
    The rows under their names, and how many are not shown.

    ``more`` None means that there are more, uncounted. NULL is written out, so that it differs
    from an empty text.
    """
    if not rows:
        return f"{name} has no rows" + (f" {note}" if note else "") + "."
    right = [
        i
        for i in range(len(columns))
        if all(
            isinstance(row[i], (int, float)) or _decimal(row[i]) or row[i] is None for row in rows
        )
        and not any(isinstance(row[i], bool) for row in rows)
    ]
    text = [list(columns), *([cell(value) for value in row] for row in rows)]
    widths = [max(len(row[i]) for row in text) for i in range(len(columns))]
    text.insert(1, ["-" * width for width in widths])
    lines = formatting.columns(text, right=right, indent=0)
    shown = formatting.count(len(rows), "row")
    if more is None:
        shown += " shown, there are more (--limit 0 for all)"
    elif more:
        shown += f" shown, {more:,} more (--limit 0 for all)"
    return "\n".join([*lines, "", f"{shown}{' ' + note if note else ''}."])


def cell(value: Any, widest: int | None = _WIDEST) -> str:
    """One value on one line, at most ``widest`` signs of it."""
    if value is None:
        return "NULL"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float):
        return repr(value)
    if isinstance(value, datetime | FarTime):
        return value.isoformat(sep=" ").removesuffix("+00:00")
    text = str(value)
    if not text.isprintable():
        text = "".join(c if c.isprintable() else repr(c)[1:-1] for c in text)
    return text if widest is None else formatting.clip(text, widest)


def _decimal(value: Any) -> bool:
    return type(value).__name__ == "Decimal"
