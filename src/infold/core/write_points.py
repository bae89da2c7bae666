"""
Numbered write points, at which a test may kill the process.

Every write to the ledger or to a table passes :func:`point` just before and just after it becomes
visible. With ``INFOLD_CRASH_AT=n`` in the environment the process kills itself (SIGKILL, nothing
is cleaned up) at the n-th point it reaches, or, when a name is given instead of a number, at the
first point of that name; with ``INFOLD_CRASH_LOG=path`` each point appends its name there, so a
test can count them first. Without either a point costs nothing.
"""

from __future__ import annotations

import os
import signal
from functools import cache
from pathlib import Path

_passed = 0


@cache
def _requested_death() -> tuple[str, str | None]:
    """Where to die, and where to write the names; of the process that comes to a first point."""
    return os.environ.get("INFOLD_CRASH_AT", "0"), os.environ.get("INFOLD_CRASH_LOG")


def point(name: str) -> None:
    """Pass a write point: ``name`` says which write, and whether it is before or after it."""
    at, log_file = _requested_death()
    if at in ("", "0") and not log_file:
        return
    global _passed  # noqa: PLW0603 - one count for the process is what numbers the points
    _passed += 1
    if log_file:
        with Path(log_file).open("a", encoding="utf-8") as log:
            log.write(f"{name}\n")
    if at in (str(_passed), name):
        os.kill(os.getpid(), signal.SIGKILL)
