"""Sessions in quarantine, and what people said of sessions by hand."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from infold.core.interval import show_instant
from infold.core.manual_entry import ManualEntry
from infold.render import formatting
from infold.render.table import table_screen

Said = Mapping[str, Sequence[tuple[ManualEntry, bool]]]
"""By model, manual entries and whether a run has applied them."""


def entries_screen(model: str, said: Sequence[ManualEntry]) -> str:
    """What ``infold quarantine add``, ``release`` or ``auto`` wrote down."""
    head, then = _SAYS[said[0].effect]
    lines = [f"{head}, in {model}:"]
    lines += [f"  {meant(entry)}{f': {entry.reason}' if entry.reason else ''}" for entry in said]
    lines.append(f"`infold run` {then.format(model)}.")
    return "\n".join(lines)


_SAYS = {
    "held": ("Into quarantine", "takes them out of {}"),
    "released": ("Released", "brings them back to {}"),
    "automatic": ("Taken back", "goes by quarantine_after again, in {}"),
}


def quarantine_screen(held: Sequence[Mapping[str, Any]], said: Said) -> str:
    """The sessions in quarantine, then the manual entries, newest last."""
    columns = list(held[0]) if held else []
    rows = [list(row.values()) for row in held]
    parts = [
        table_screen("quarantined_sessions", columns, rows)
        if held
        else "No session is in quarantine."
    ]
    lines = [
        [
            f"{entry.number:,}",
            model,
            entry.effect,
            meant(entry),
            formatting.clock(entry.made_at),
            "" if applied else "with the next run",
            entry.reason,
        ]
        for model, entries in said.items()
        for entry, applied in entries
    ]
    if lines:
        parts += ["", "By hand", *formatting.columns(lines, right=[0], indent=2)]
    return "\n".join(parts)


def meant(entry: ManualEntry) -> str:
    """Which sessions an entry is about."""
    if entry.start is None or entry.end is None:
        return f"all sessions of {entry.owner}"
    return f"the session of {entry.owner}, {show_instant(entry.start)} to {show_instant(entry.end)}"
