"""What `infold doctor` prints: a line for each check, and the errors of those that failed."""

from __future__ import annotations

from collections.abc import Sequence

from infold.core.checkup import Check, Verdict
from infold.render import formatting
from infold.render.json_shapes import JsonObject

_WIDTHS = len(Verdict.LEFT_OUT), len("warehouse")


def check_line(check: Check) -> str:
    """One check: how it came out, what it is of, what was found, how long it took."""
    verdict, name = _WIDTHS
    spent = "" if check.verdict is Verdict.LEFT_OUT else f" ({formatting.seconds(check.seconds)})"
    return f"{check.verdict:<{verdict}}  {check.name:<{name}}  {check.found}{spent}"


def verdict_line(checks: Sequence[Check]) -> str:
    """All of it in a line."""
    failed = [check.name for check in checks if check.failed]
    if failed:
        return f"Failed: {', '.join(failed)}."
    return "All that was checked works."


def checks_json(checks: Sequence[Check]) -> JsonObject:
    """The same for programs."""
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
