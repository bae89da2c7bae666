"""What ``infold promote`` and ``infold rollback`` show before they ask, and after it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from infold.core.interval import show_instant
from infold.core.report import Exchange, ExchangedTable
from infold.core.swap import SwapKind
from infold.render import formatting


def exchange_screen(target: str, found: Exchange) -> str:
    """Which names will point where, and what follows from it."""
    if found.swap.kind is SwapKind.PROMOTE:
        head = f"Promote {found.swap.environment} in {target}"
    else:
        head = f"Take back the promote of {found.swap.environment} in {target}"
    if not found.changes:
        return f"{head}: nothing differs."
    how = "all at one instant" if found.at_once else "one after the other"
    lines = [f"{head}: {formatting.count(len(found.tables), 'table')}, {how}", ""]
    if found.tables:
        rows = [["model", "rows now", "rows then", "cells that differ"]]
        rows += [[one.model, *_rows(one), _cells_text(one)] for one in found.tables]
        lines += [*formatting.columns(rows, right=(1, 2)), ""]
    return "\n".join([*lines, *_notes(found)]).rstrip()


def exchanged_text(target: str, done: Exchange) -> str:
    """What was done."""
    if not done.changes:
        return f"{target} has all of {done.swap.environment} already."
    tables = formatting.count(len(done.tables), "table")
    if done.swap.kind is SwapKind.PROMOTE:
        said = f"Promoted {tables} of {done.swap.environment}: readers of {target} see them now."
        kept = any(one.kept is not None for one in done.swap.tables)
        return said + ("\n`infold rollback` goes back, as long as those before are kept." * kept)
    return (
        f"Took back {tables}: readers of {target} see those that "
        f"{done.swap.environment} had replaced.\n`infold run` brings them up to date."
    )


def exchange_json(found: Exchange, *, done: bool) -> dict[str, Any]:
    """The facts of the screen, under stable names."""
    return {
        "kind": found.swap.kind.value,
        "environment": found.swap.environment,
        "done": done,
        "at_once": found.at_once,
        "tables": [
            {
                "model": one.model,
                "rows_before": one.rows_before,
                "rows_after": one.rows_after,
                "cells": one.cells,
                "cells_differing": one.cells_differing,
            }
            for one in found.tables
        ],
        "definitions": list(found.definitions),
        "not_in_environment": list(found.removed),
        "readers": list(found.readers),
        "rewritten": [
            {"model": model, "until": formatting.iso(until)} for model, until in found.rewritten
        ],
    }


def _rows(one: ExchangedTable) -> Iterator[str]:
    for rows in (one.rows_before, one.rows_after):
        yield "-" if rows is None else f"{rows:,}"


def _cells_text(one: ExchangedTable) -> str:
    if one.rows_before is None:
        return "new"
    if one.rows_after is None:
        return "goes"
    return f"{one.cells_differing:,} of {one.cells:,}"


def _notes(found: Exchange) -> Sequence[str]:
    notes = []
    if found.tables and not found.at_once:
        notes.append(
            "Tables get their names one at a time. For a moment readers find no table under a "
            "name, and some tables by the new definitions and others by the old ones. If this "
            "command dies in between, the next one does the rest."
        )
    if found.definitions:
        notes.append(f"Other definitions, the same rows: {formatting.names(found.definitions)}.")
    if found.removed:
        names, name = formatting.names(found.removed), found.swap.environment
        notes.append(f"{name} does not have {names}: nothing is dropped, they stay applied.")
    if found.readers:
        notes.append(
            f"The next run brings up to date what reads them: {formatting.names(found.readers)}."
        )
    notes += [
        f"{model}: cells before {show_instant(until)} have rows of earlier definitions now, and "
        "of the newest then."
        for model, until in found.rewritten
    ]
    if found.swap.kind is SwapKind.ROLLBACK:
        notes.append("What runs did since then is not in the earlier tables: the next run does it.")
    if found.takes_files:
        notes.append(
            "The next run takes the definitions in its files, as the target has `apply: auto`: "
            "they have to be those that are exchanged here."
        )
    return notes
