"""Lines of ``--log`` in the words of a person, for a scheduler's log."""

from __future__ import annotations

from typing import Any

from infold.orchestration.outcome import parsed

_SHOWN = {
    "arrived": "rows arrived",
    "read": "read",
    "written": "written",
    "removed": "removed",
    "set_aside": "set aside",
    "cells_built": "cells built",
    "cells_cut_off": "cut off early",
}


def log_line(line: str) -> str:
    """What a line says, or nothing if it says nothing to a person, or is none of that log."""
    event = parsed(line)
    kind = event.get("event")
    if kind == "step_began":
        of = f"/{event['of']}" if event.get("of") else ""
        reasons = "; ".join(event.get("reasons") or ())
        return f"[{event.get('step')}{of}] {_what(event)}: {reasons}"
    if kind == "step_done":
        return f"{_what(event)}: {_counts(event.get('receipt') or {})}"
    if kind == "step_failed":
        error = event.get("error") or {}
        return f"{_what(event)} failed: {error.get('slug')}: {error.get('what')}"
    if kind == "note":
        return str(event.get("text", ""))
    return ""


def _what(event: dict[str, Any]) -> str:
    return f"{event.get('action')} {event.get('model')}"


def _counts(receipt: dict[str, Any]) -> str:
    counts = [f"{receipt[name]:,} {words}" for name, words in _SHOWN.items() if receipt.get(name)]
    return ", ".join([*counts, f"{receipt.get('seconds', 0)} s"])
