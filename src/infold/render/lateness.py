"""How late the rows of tables came: numbers and pictures, and the same as JSON."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from infold.core.interval import Granularity, Interval, Ranges, show_instant
from infold.core.project import Project
from infold.core.report import Heat, Lateness, Measures
from infold.render import formatting
from infold.render.coverage_strip import Axis, axis, header_lines
from infold.render.formatting import iso
from infold.render.pictures.look import Look, compact, shade, shade_limits, shades_text

LINES = 24
"""How many lines the picture of the two times has at most."""

_MARGIN = 14
_BAR_WIDTH = 30
_ROOM_FOR_ALL_DIGITS = 60


def bins(look: Look) -> tuple[int, int]:
    """How many columns and lines the picture of the two times has room for."""
    return look.width - _MARGIN, LINES


def lateness_screen(project: Project, models: Sequence[Lateness], look: Look) -> str:
    """Each table of events: what lookbacks would have missed, ages, and both times."""
    head = f"infold lateness · {project.name} · {project.target.name}"
    lines = [formatting.clip(head, look.width)]
    if not models:
        nothing = "No model has the materialization `events`, so no rows arrive in a table."
        lines += ["", *look.wrapped(nothing)]
    for model in models:
        lines += ["", *_table_lines(model, look)]
    return look.screen(lines)


def _table_lines(table: Lateness, look: Look) -> list[str]:
    if table.measures is None:
        return look.wrapped(f"{table.model}: {_why_unknown(table)}")
    rows = formatting.count(table.measures.rows, "row")
    since = "" if table.since is None else f", since {show_instant(table.since)}"
    lines = look.wrapped(f"{table.model}: {rows} of {table.source}, by {table.column}{since}")
    lines += ["", *_lookback_lines(table.measures, look)]
    lines += ["", "Age when received", *_age_lines(table.measures, look)]
    return [*lines, "", *_heat_lines(table.measures.heat, look)]


def _why_unknown(table: Lateness) -> str:
    """Why nothing is known."""
    if table.column is not None:
        return "nothing is known yet: no row has both times."
    return (
        f"{table.source or 'its source'} has no `received_column` that the table keeps, so nobody "
        "knows how late its rows came."
    )


def _lookback_lines(measures: Measures, look: Look) -> list[str]:
    """How much a job would miss that processes the last days again each day."""
    title = "A job that processes the last days again each day would have missed"
    rows = [("lookback", "rows", "", "of days")]
    rows += [
        (
            formatting.count(one.days, "day"),
            compact(one.rows) if look.width < _ROOM_FOR_ALL_DIGITS else f"{one.rows:,}",
            _share_text(one.rows, measures.rows),
            f"{one.event_days:,}",
        )
        for one in measures.lookbacks
    ]
    longest = measures.longest_days
    lines = [*look.wrapped(title), *formatting.columns(rows, right=(1, 2, 3))]
    if longest > 0:
        days = formatting.count(longest, "day")
        lines += look.wrapped(f"  The latest row came {days} after it happened.")
    return lines


def _share_text(part: int, whole: int) -> str:
    share = 100 * part / whole if whole else 0.0
    if part and share < 0.05:
        return "<0.1 %"
    return f"{share:.1f} %"


def _age_lines(measures: Measures, look: Look) -> list[str]:
    most = max((rows for _, rows in measures.ages), default=0) or 1
    table = formatting.columns(
        [(age, compact(rows), _share_text(rows, measures.rows)) for age, rows in measures.ages],
        right=(1, 2),
    )
    wide = max(map(len, table))
    room = min(_BAR_WIDTH, look.width - wide - 2)
    return [
        f"{line:<{wide}}  " + look.tinted(look.bar(rows / most, room), "blue")
        for line, (_, rows) in zip(table, measures.ages, strict=True)
    ]


def _heat_lines(heat: Heat, look: Look) -> list[str]:
    """Both times: columns are when rows happened, lines when they were received."""
    by = heat.event_unit.value
    if heat.received_unit is not heat.event_unit:
        by = f"{by} and {heat.received_unit.value}"
    title = f"When rows happened (across) and were received (down), by {by}"
    event, received = heat.event_unit, heat.received_unit
    across = axis(_ranges(event, (one[0] for one in heat.cells)), event, bins(look)[0])
    rows: dict[int, dict[Interval, int]] = {}
    most = 1
    places = {at: place for at in {one[0] for one in heat.cells} for place in _place(across, at)}
    for happened, came, count in heat.cells:
        place = places.get(happened)
        if place is not None:
            line = rows.setdefault(came, {})
            line[place] = line.get(place, 0) + count
            most = max(most, line[place])
    limits = shade_limits(most)
    labels = header_lines(across, look.width - _MARGIN)
    lines = [*look.wrapped(title), *(f"{'':{_MARGIN}}{one}" for one in labels)]
    down = axis(_ranges(received, rows), received, LINES)
    for cell in down.columns:
        if cell is None:
            lines.append("  …")
            continue
        line = _summed([counts for at, counts in rows.items() if at in cell])
        signs = [
            "…" if place is None else shade(look, line.get(place, 0), limits)
            for place in across.columns
        ]
        label = formatting.cell_text(cell, down.granularity)
        lines.append(
            f"  {label:<{_MARGIN - 2}}" + look.tinted(_spread(signs, across).rstrip(), "blue")
        )
    lines += ["", *look.wrapped("  " + shades_text(look, limits))]
    if heat.left_out:
        left_out = formatting.count(heat.left_out, "older row")
        lines += look.wrapped(f"  Left out: {left_out}, before {show_instant(heat.since)}")
    return lines


def _ranges(unit: Granularity, starts: Any) -> Ranges:
    return Ranges.of(unit.cell(at) for at in starts)


def _place(across: Axis, at: int) -> tuple[Interval, ...]:
    """The column of an instant, if it has one."""
    return tuple(column for column in across.columns if column is not None and at in column)


def _summed(lines: Sequence[dict[Interval, int]]) -> dict[Interval, int]:
    sums: dict[Interval, int] = {}
    for line in lines:
        for place, rows in line.items():
            sums[place] = sums.get(place, 0) + rows
    return sums


def _spread(signs: Sequence[str], across: Axis) -> str:
    """The signs over the widths of their columns."""
    wide = max(1, across.step - 1)
    return "".join((sign * wide).ljust(across.step) for sign in signs)


def lateness_json(project: Project, models: Sequence[Lateness]) -> dict[str, Any]:
    """What ``infold lateness --json`` prints."""
    return {
        "project": project.name,
        "target": project.target.name,
        "models": [model_lateness_json(model) for model in models],
    }


def model_lateness_json(lateness: Lateness) -> dict[str, Any]:
    """How late the rows of one model are."""
    measures = lateness.measures
    return {
        "model": lateness.model,
        "source": lateness.source,
        "how": lateness.how.value,
        "column": lateness.column,
        "since": iso(lateness.since),
        "rows": measures.rows if measures else 0,
        "ages": [{"age": age, "rows": rows} for age, rows in measures.ages] if measures else [],
        "lookbacks": [
            {"days": each.days, "rows": each.rows, "event_days": each.event_days}
            for each in (measures.lookbacks if measures else ())
        ],
        "longest_days": measures.longest_days if measures else None,
        "worst": [
            {"day": iso(day), "rows": rows} for day, rows in (measures.worst if measures else ())
        ],
        "picture": None if measures is None else _heat_json(measures.heat),
    }


def _heat_json(heat: Heat) -> dict[str, Any]:
    return {
        "event_unit": heat.event_unit.value,
        "received_unit": heat.received_unit.value,
        "left_out": heat.left_out,
        "since": iso(heat.since),
        "cells": [
            {"event": iso(event), "received": iso(received), "rows": rows}
            for event, received, rows in heat.cells
        ],
    }
