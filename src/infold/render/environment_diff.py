"""An environment against production, as text and JSON."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from infold.core.interval import MAX, MIN
from infold.core.report import EnvironmentDiff, RowDiff, TableDiff
from infold.render import formatting
from infold.render.definitions import change_rows, changes_json
from infold.render.table import cell


def diff_screen(found: EnvironmentDiff) -> str:
    """Definitions, then each table of the environment's own with some of its rows."""
    if found.equal:
        return f"{found.environment} and production have the same rows."
    parts = []
    if found.definitions:
        rows = [row for change in found.definitions for row in change_rows(change)]
        parts.append("\n".join(["Definitions", *formatting.columns(rows)]))
    parts += ["\n".join(_table_lines(table)) for table in found.tables]
    return "\n\n".join(parts)


def _table_lines(table: TableDiff) -> Iterator[str]:
    before, after = table.rows
    if not table.compared:
        yield f"{table.model}: production has none; {formatting.count(after, 'row')}"
        return
    if table.equal:
        yield f"{table.model}: the same {formatting.count(after, 'row')}"
        return
    counts = f"{table.added:,} added, {table.removed:,} removed, {table.changed:,} changed"
    rows = formatting.count(before, "row")
    yield f"{table.model}: {rows} in production, {after:,} here: {counts}"
    for name, old, new in table.columns:
        yield f"  column {name}: {old or 'none'} → {new or 'none'}"
    yield from (f"  {_row_text(row)}" for row in table.sample)


def _row_text(row: RowDiff) -> str:
    """One row in one line: what it is, its key, and the values that differ, or all."""
    if row.before is None or row.after is None:
        sign = "+" if row.before is None else "-"
        values = row.after or row.before or {}
        return f"{sign} " + ", ".join(f"{name} {cell(value)}" for name, value in values.items())
    key = ", ".join(f"{name} {cell(value)}" for name, value in row.key.items())
    other = (
        f"{name} {cell(value)} → {cell(row.after.get(name))}"
        for name, value in row.before.items()
        if value != row.after.get(name)
    )
    return f"~ {key}: " + ", ".join(other)


def diff_json(found: EnvironmentDiff) -> dict[str, Any]:
    """The same for programs."""
    return {
        "environment": found.environment,
        "equal": found.equal,
        "definitions": changes_json(found.definitions),
        "tables": [_table_json(table) for table in found.tables],
    }


def _table_json(table: TableDiff) -> dict[str, Any]:
    return {
        "model": table.model,
        "compared": table.compared,
        "equal": table.equal,
        "rows": {"production": table.rows[0], "environment": table.rows[1]},
        "columns": [
            {"name": name, "production": old or None, "environment": new or None}
            for name, old, new in table.columns
        ],
        "cells": [[_end(part.start), _end(part.end)] for part in table.cells],
        "added": table.added,
        "removed": table.removed,
        "changed": table.changed,
        "sample": [
            {"key": row.key, "production": row.before, "environment": row.after}
            for row in table.sample
        ],
    }


def _end(at: int) -> str | None:
    return None if at in (MIN, MAX) else formatting.iso(at)
