"""What `infold doctor` prints: a line for each check, and the errors of those that failed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from infold.core.interval import SECOND, show_duration
from infold.core.report import Check, CheckVerdict
from infold.core.target import WarmEngine
from infold.render import formatting
from infold.render.formatting import count
from infold.render.json_shapes import JsonObject

_COLUMN_WIDTHS = len(CheckVerdict.LEFT_OUT), len("warehouse")


def check_line(check: Check) -> str:
    """One check: how it came out, what it is of, what was found, how long it took."""
    verdict, name = _COLUMN_WIDTHS
    spent = (
        "" if check.verdict is CheckVerdict.LEFT_OUT else f" ({formatting.seconds(check.seconds)})"
    )
    return f"{check.verdict:<{verdict}}  {check.name:<{name}}  {check.found}{spent}"


def verdict_line(checks: Sequence[Check]) -> str:
    """The last line of ``infold doctor``: which checks failed, if any did."""
    failed = [check.name for check in checks if check.failed]
    if failed:
        return f"Failed: {', '.join(failed)}."
    return "All that was checked works."


def checks_json(checks: Sequence[Check]) -> JsonObject:
    """What ``infold doctor --json`` prints."""
    return {
        "ok": not any(check.failed for check in checks),
        "checks": [
            {
                "name": check.name,
                "verdict": str(check.verdict),
                "found": check.found,
                "seconds": round(check.seconds, 3),
                "errors": [error.record for error in check.errors],
            }
            for check in checks
        ],
    }


NO_ENGINE = "No engine is running. A command that needs Spark may leave one."


def warm_engine_screen(engine: WarmEngine | None) -> str:
    """What an engine does, for how long it stays, and what it takes."""
    if engine is None:
        return NO_ENGINE
    waited = show_duration(engine.idle_seconds * SECOND)
    state = (
        "carries out a command" if engine.busy else f"is ready; its last command was {waited} ago"
    )
    ends = show_duration(engine.ends_after_seconds * SECOND)
    stop = f"infold --target {engine.target} engine stop"
    return "\n".join(
        (
            f"The engine of the target {engine.target} {state}.",
            "",
            f"  carried out:  {count(engine.commands, 'command')}",
            f"  memory:       {engine.memory_bytes / 1e6:,.0f} MB, in Java",
            f"  processes:    {engine.process}, and Java's {engine.jvm}",
            f"  ends:         when no command came for {ends}, or by `{stop}`",
        )
    )


def warm_engine_json(engine: WarmEngine | None) -> dict[str, Any]:
    """What ``infold engine status --json`` prints; None where no engine runs."""
    return {"engine": None if engine is None else asdict(engine)}
