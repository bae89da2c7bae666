"""Manual decisions about sessions: into quarantine, or out of it."""

from __future__ import annotations

from dataclasses import dataclass
from hashlib import md5


@dataclass(frozen=True, slots=True)
class ManualEntry:
    """
    A person's decision about sessions: into quarantine, out of it, or (None) back to automatic.

    It applies to the sessions of ``owner`` (as text) that overlap ``[start, end]``, or to all of
    them where these are None. Of several entries about a session the one with the greatest
    ``number`` counts, and it overrides every limit.
    """

    number: int
    owner: str
    in_quarantine: bool | None
    start: int | None = None
    end: int | None = None
    reason: str = ""
    made_at: int = 0

    @property
    def action(self) -> str:
        """The command of `infold quarantine` that makes such an entry."""
        if self.in_quarantine is None:
            return "auto"
        return "add" if self.in_quarantine else "release"

    def applies_to(self, of: str, start: int, end: int) -> bool:
        """Whether it is about a session."""
        if self.owner != of:
            return False
        return self.start is None or self.end is None or (start <= self.end and end >= self.start)


def session_id(of: str, start: int) -> str:
    """
    The id of the session of an owner that starts at an instant: see
    ``spark.sessions.stored``.
    """
    return md5(f"{of}|{start}".encode(), usedforsecurity=False).hexdigest()
