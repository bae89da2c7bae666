"""What people say of sessions by hand: into quarantine with them, or out of it."""

from __future__ import annotations

from dataclasses import dataclass
from hashlib import md5


@dataclass(frozen=True, slots=True)
class ManualEntry:
    """
    What a person said of sessions: ``in_quarantine`` puts them into quarantine or, if false,
    releases them. None takes back what was said before: they are in quarantine if they are too
    long.

    It is about the sessions of ``owner`` (as text) with an instant in ``[start, end]``, or about
    all of them where these are None. Of the entries about a session the one with the greatest
    ``number`` counts, and goes before every limit.
    """

    number: int
    owner: str
    in_quarantine: bool | None
    start: int | None = None
    end: int | None = None
    reason: str = ""
    made_at: int = 0

    @property
    def effect(self) -> str:
        """In one word, what it does."""
        return (
            "automatic"
            if self.in_quarantine is None
            else "held"
            if self.in_quarantine
            else "released"
        )

    def applies_to(self, of: str, start: int, end: int) -> bool:
        """Whether it is about a session."""
        if self.owner != of:
            return False
        return self.start is None or self.end is None or (start <= self.end and end >= self.start)


def session_id(of: str, start: int) -> str:
    """The id of a session of ``of`` that starts at an instant: see ``spark.kinds.stored``."""
    return md5(f"{of}|{start}".encode(), usedforsecurity=False).hexdigest()
