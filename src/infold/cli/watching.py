"""
Running whenever something has come: look, run if there is something to do, and look again.

A look is a plan: it reads the ledger, the listing of the files, and what is new. After a run it is
repeated at once, soon while files keep coming, and ever more rarely while none do.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import NoReturn

SOONEST, LATEST = 0.25, 5.0
"""The shortest and the longest pause between two looks, in seconds."""
PART = 20
"""A pause is this part of the time since something came."""


def watch(
    look: Callable[[], bool],
    run: Callable[[], bool],
    *,
    now: Callable[[], float] = time.monotonic,
    sleep: Callable[[float], object] = time.sleep,
) -> NoReturn:
    """
    Run whenever ``look`` finds something to do, until one of both raises.

    ``run`` says whether it did something; if not, there is a pause before it is tried again.
    """
    worked_at = now()
    while True:
        if look() and run():
            worked_at = now()
        else:
            sleep(pause(now() - worked_at))


def pause(idle: float) -> float:
    """How long to wait before the next look, if nothing came for so many seconds."""
    return min(LATEST, max(SOONEST, idle / PART))
