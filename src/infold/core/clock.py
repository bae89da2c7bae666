"""What tells the time."""

from __future__ import annotations

from typing import Protocol


class Clock(Protocol):
    """Now, in microseconds since the epoch, UTC."""

    def now(self) -> int:
        """The present instant."""
