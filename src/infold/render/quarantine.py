"""Sessions in quarantine, and the entries that people made by hand."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from infold.core.interval import show_instant
from infold.core.sessions import ManualEntry
from infold.render import formatting
from infold.render.table import table_screen

ManualEntries = Mapping[str, Sequence[tuple[ManualEntry, bool]]]
"""By model, manual entries and whether a run has applied them."""


def entries_screen(model: str, entries: Sequence[ManualEntry]) -> str:
    """What ``infold quarantine add``, ``release`` or ``auto`` wrote down."""
    head, then = _DONE_BY_ACTION[entries[0].action]
    lines = [f"{head}, in {model}:"]
    lines += [
        f"  {entry_text(entry)}{f': {entry.reason}' if entry.reason else ''}" for entry in entries
    ]
    lines.append(f"`infold run` {then.format(model)}.")
    return "\n".join(lines)


_DONE_BY_ACTION = {
    "add": ("Into quarantine", "takes them out of {}"),
    "release": ("Released", "brings them back to {}"),
    "auto": ("Taken back", "goes by quarantine_after again, in {}"),
}


def quarantine_screen(quarantined: Sequence[Mapping[str, Any]], manual: ManualEntries) -> str:
    """The sessions in quarantine, then the manual entries, newest last."""
    columns = list(quarantined[0]) if quarantined else []
    rows = [list(row.values()) for row in quarantined]
    parts = [
        table_screen("quarantined_sessions", columns, rows)
        if quarantined
        else "No session is in quarantine."
    ]
    lines = [
        [
            f"{entry.number:,}",
            model,
            entry.action,
            entry_text(entry),
            formatting.clock(entry.made_at),
            "" if applied else "with the next run",
            entry.reason,
        ]
        for model, entries in manual.items()
        for entry, applied in entries
    ]
    if lines:
        parts += ["", "By hand", *formatting.columns(lines, right=[0], indent=2)]
    return "\n".join(parts)


def entry_text(entry: ManualEntry) -> str:
    """Which sessions an entry is about."""
    if entry.start is None or entry.end is None:
        return f"all sessions of {entry.owner}"
    return f"the session of {entry.owner}, {show_instant(entry.start)} to {show_instant(entry.end)}"


def quarantine_json(
    quarantined: Sequence[Mapping[str, Any]],
    manual: ManualEntries,
) -> dict[str, Any]:
    """Sessions in quarantine, and the manual entries with whether a run has applied them."""
    return {
        "quarantined_sessions": [
            {
                name: value.isoformat().replace("+00:00", "Z")
                if isinstance(value, datetime)
                else value
                for name, value in row.items()
            }
            for row in quarantined
        ],
        "entries": [
            {
                "model": model,
                "number": entry.number or None,
                "action": entry.action,
                "of": entry.owner,
                "start": formatting.iso(entry.start),
                "end": formatting.iso(entry.end),
                "reason": entry.reason,
                "made_at": formatting.iso(entry.made_at or None),
                "applied": applied,
            }
            for model, entries in manual.items()
            for entry, applied in entries
        ],
    }
