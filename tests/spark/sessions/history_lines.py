"""Histories of sessions as short lines, and a program that runs a command."""

from __future__ import annotations

from infold.inspecting.event_batches import EventBatch
from infold.inspecting.session_history import SessionChange

PROBE = """
import sys
from infold.cli import cli

try:
    cli(sys.argv[1:])
finally:
    print(sorted({"pyspark", "py4j"} & set(sys.modules)), file=sys.stderr)
"""
"""Runs a command, and prints which modules of Spark it imported."""


def change_lines(session_changes: tuple[SessionChange, ...]) -> list[str]:
    """``v2 extended 10:00-10:10 (2) > 10:00-10:20 (3)``."""
    lines = []
    for session_change in session_changes:
        was, now = (
            " ".join(
                f"{_clock(one.start)}-{_clock(one.end)} ({one.events})" for one in sessions or ()
            )
            for sessions in (session_change.change.before, session_change.change.after)
        )
        lines.append(f"v{session_change.change.version.number} {session_change.verb} {was} > {now}")
    return lines


def arrived(groups: tuple[EventBatch, ...]) -> list[str]:
    """``v2 1 late 10:20-10:20 landing/b.csv``."""
    return [
        f"v{group.version.number if group.version else '?'} {group.events} "
        f"{'late' if group.late else 'in time'} {_clock(group.first)}-{_clock(group.last)} "
        + " ".join(group.files)
        for group in groups
    ]


def _clock(at: int) -> str:
    minutes = at // 60_000_000 % 1440
    return f"{minutes // 60:02}:{minutes % 60:02}"
