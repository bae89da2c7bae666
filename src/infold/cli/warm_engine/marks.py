"""What a keeper and the process of a command tell each other, in memory that they share."""

from __future__ import annotations

TOUCHED = 0
"""The JVM is not as it was before the command."""
DONE = 1
"""The command has ended, and only tidies up: its client may go, and the next one may wait."""
