"""What people write down by hand: sessions to put into quarantine, or to release from it."""

from __future__ import annotations

from dataclasses import dataclass
from hashlib import md5


@dataclass(frozen=True, slots=True)
class ManualEntry:
    """
    One entry: with ``in_quarantine`` the sessions are excluded, and released if it is false. With
    None the entries before it no longer count: sessions are in quarantine if they are too long.

    It is about the sessions of ``owner`` (as text) that overlap ``[start, end]``, or about all of
    them where these are None. The entry with the greatest ``number`` about a session wins, and
    overrides every limit.
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
    """The id of a session of ``of`` that starts at an instant: see ``spark.sessions.stored``."""
    return md5(f"{of}|{start}".encode(), usedforsecurity=False).hexdigest()
