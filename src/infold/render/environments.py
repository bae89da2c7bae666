"""Environments as text and JSON."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from infold.core.environment import Environment, EnvironmentSize
from infold.core.interval import DAY, HOUR, MAX, MIN, MINUTE, show_instant
from infold.core.report import EnvironmentDiff, RowDiff, SwapPreview, TableDiff, TablePreview
from infold.core.swap import SwapKind
from infold.core.target import Target
from infold.render import formatting
from infold.render.definitions import change_rows, changes_json
from infold.render.table import cell


def environments_screen(target: str, environments: Sequence[EnvironmentSize], now: int) -> str:
    """All environments of a target, a line each."""
    if not environments:
        return f"{target} has no environment; `infold run --env NAME` makes one."
    rows: list[tuple[str, ...]] = [
        ("environment", "owner", "age", "last run", "expires", "own tables", "rows", "MB")
    ]
    rows += [_row(size, now) for size in environments]
    return "\n".join(formatting.columns(rows, right=(6, 7), indent=0))


def _row(size: EnvironmentSize, now: int) -> tuple[str, ...]:
    of = size.environment
    ran = "never" if of.last_run_at is None else f"{_length(now - of.last_run_at)} ago"
    if of.built_at is None:
        ran += ", not finished"
    expires = "never" if of.expires_at is None else f"in {_length(of.expires_at - now, up=True)}"
    if of.is_over(now):
        expires = "now"
    megabytes = f"{size.bytes / 1_000_000:,.1f}"
    own = formatting.names(of.own) if of.own else "none"
    age = _length(now - of.created_at)
    return (of.name, of.owner, age, ran, expires, own, f"{sum(size.rows.values()):,}", megabytes)


def _length(micros: int, *, up: bool = False) -> str:
    """A length of time in its largest unit, rounded down, or ``up``."""
    for unit, name in ((DAY, "day"), (HOUR, "hour"), (MINUTE, "minute")):
        if micros >= unit:
            return formatting.count(-(-micros // unit) if up else micros // unit, name)
    return "under a minute"


def environments_json(environments: Sequence[EnvironmentSize]) -> dict[str, Any]:
    """What ``infold env list --json`` prints."""
    return {
        "environments": [
            {
                "name": environment.environment.name,
                "owner": environment.environment.owner,
                "created_at": formatting.iso(environment.environment.created_at),
                "expires_at": formatting.iso(environment.environment.expires_at),
                "last_run_at": formatting.iso(environment.environment.last_run_at),
                "built_at": formatting.iso(environment.environment.built_at),
                "tables": [
                    {"model": model, "table": key, "rows": environment.rows[model]}
                    for model, key in environment.environment.own.items()
                ],
                "bytes": environment.bytes,
            }
            for environment in environments
        ]
    }


def tables_text(environment: Environment) -> str:
    """The tables that an environment has of its own, in words."""
    if not environment.own:
        return "which has no table of its own"
    many = formatting.count(len(environment.own), "table")
    return f"with {many} of its own: {formatting.names(environment.own)}"


def dropped_text(environment: Environment) -> str:
    """The line that ``infold env drop`` ends with."""
    return f"Dropped the environment {environment.name}, {tables_text(environment)}."


def swap_screen(target: str, preview: SwapPreview) -> str:
    """Which names will point where, and what follows from it."""
    if preview.swap.kind is SwapKind.PROMOTE:
        head = f"Promote {preview.swap.environment} in {target}"
    else:
        head = f"Take back the promote of {preview.swap.environment} in {target}"
    if not preview.changes:
        return f"{head}: nothing differs."
    how = "all at one instant" if preview.at_once else "one after the other"
    lines = [f"{head}: {formatting.count(len(preview.tables), 'table')}, {how}", ""]
    if preview.tables:
        rows = [["model", "rows now", "rows then", "cells that differ"]]
        rows += [[table.model, *_rows(table), _cells_text(table)] for table in preview.tables]
        lines += [*formatting.columns(rows, right=(1, 2)), ""]
    return "\n".join([*lines, *_notes(preview)]).rstrip()


def swapped_text(target: Target, done: SwapPreview) -> str:
    """What was done."""
    if not done.changes:
        return f"{target.name} has all of {done.swap.environment} already."
    tables = formatting.count(len(done.tables), "table")
    if done.swap.kind is SwapKind.PROMOTE:
        said = (
            f"Promoted {tables} of {done.swap.environment}: readers of {target.name} see them now."
        )
        are_kept = any(table.kept is not None for table in done.swap.tables)
        return said + (
            f"\n`{target.command} rollback` goes back, as long as those before are kept." * are_kept
        )
    return (
        f"Took back {tables}: readers of {target.name} see those that "
        f"{done.swap.environment} had replaced.\n`{target.command} run` brings them up to date."
    )


def swap_json(preview: SwapPreview, *, done: bool) -> dict[str, Any]:
    """The facts of the screen, under stable names."""
    return {
        "kind": preview.swap.kind.value,
        "environment": preview.swap.environment,
        "done": done,
        "at_once": preview.at_once,
        "tables": [
            {
                "model": table.model,
                "rows_before": table.rows_before,
                "rows_after": table.rows_after,
                "cells": table.cells,
                "cells_differing": table.cells_differing,
            }
            for table in preview.tables
        ],
        "definitions": list(preview.definitions),
        "not_in_environment": list(preview.removed),
        "readers": list(preview.readers),
        "rewritten": [
            {"model": model, "until": formatting.iso(until)} for model, until in preview.rewritten
        ],
    }


def _rows(table: TablePreview) -> Iterator[str]:
    for rows in (table.rows_before, table.rows_after):
        yield "-" if rows is None else f"{rows:,}"


def _cells_text(table: TablePreview) -> str:
    if table.rows_before is None:
        return "new"
    if table.rows_after is None:
        return "goes"
    return f"{table.cells_differing:,} of {table.cells:,}"


def _notes(preview: SwapPreview) -> Sequence[str]:
    notes = []
    if preview.tables and not preview.at_once:
        notes.append(
            "Tables get their names one at a time. For a moment readers find no table under a "
            "name, and some tables by the new definitions and others by the old ones. If this "
            "command dies in between, the next one does the rest."
        )
    if preview.definitions:
        notes.append(f"Other definitions, the same rows: {formatting.names(preview.definitions)}.")
    if preview.removed:
        names, name = formatting.names(preview.removed), preview.swap.environment
        notes.append(f"{name} does not have {names}: nothing is dropped, they stay applied.")
    if preview.readers:
        notes.append(
            f"The next run brings up to date what reads them: {formatting.names(preview.readers)}."
        )
    notes += [
        f"{model}: cells before {show_instant(until)} have rows of earlier definitions now, and "
        "of the newest then."
        for model, until in preview.rewritten
    ]
    if preview.swap.kind is SwapKind.ROLLBACK:
        notes.append("What runs did since then is not in the earlier tables: the next run does it.")
    if preview.takes_files:
        notes.append(
            "The next run takes the definitions in its files, as the target has `apply: auto`: "
            "they have to be those that are swapped here."
        )
    return notes


def diff_screen(diff: EnvironmentDiff) -> str:
    """Definitions, then each table of the environment's own with some of its rows."""
    if diff.equal:
        return f"{diff.environment} and production have the same rows."
    parts = []
    if diff.definitions:
        rows = [row for change in diff.definitions for row in change_rows(change)]
        parts.append("\n".join(["Definitions", *formatting.columns(rows)]))
    parts += ["\n".join(_table_lines(table)) for table in diff.tables]
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


def diff_json(diff: EnvironmentDiff) -> dict[str, Any]:
    """What ``infold diff --json`` prints."""
    return {
        "environment": diff.environment,
        "equal": diff.equal,
        "definitions": changes_json(diff.definitions),
        "tables": [_table_json(table) for table in diff.tables],
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
        "cells": [[_end_json(part.start), _end_json(part.end)] for part in table.cells],
        "added": table.added,
        "removed": table.removed,
        "changed": table.changed,
        "sample": [
            {"key": row.key, "production": row.before, "environment": row.after}
            for row in table.sample
        ],
    }


def _end_json(at: int) -> str | None:
    return None if at in (MIN, MAX) else formatting.iso(at)
