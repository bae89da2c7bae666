"""The owner of a session, and what happens to long ones, as a model declares it."""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import StrEnum
from hashlib import md5

from infold.core.session_cuts import DeclaredCut


class Keep(StrEnum):
    """Which rows of a session in quarantine stay in the table."""

    NOTHING = "nothing"
    HEAD = "head"
    """The session's events up to the limit."""


class Choose(StrEnum):
    """Which of a session's users is the session's user, in the order of events."""

    FIRST = "first"
    LAST = "last"


STATE_VERSION = 3
"""What stored sessions keep besides their columns; with another number they are built again."""

IDENTIFIER = "session_identifier"
"""The column with the owner of sessions by identifier."""


USER_IDENTIFIER = "user_identifier"
"""The column of a user that is no plain column."""


NUMBERS = ("session_number", "is_first_session")
"""The columns of sessions that are numbered for each user, from 1."""


@dataclass(frozen=True, slots=True)
class Sessions:
    """
    The owner of a session, and where it ends. Lengths of time are microseconds.

    Without ``identifier`` sessions belong to a ``user`` and end with a silence longer than ``gap``.
    With identifiers (SQL over an event; the first that is not NULL counts) they belong to that, end
    at a silence only where ``gap`` says so, and their user is the first or last that their events
    name. ``fallback_gap`` makes sessions by user and gap of events without an identifier. ``user``,
    ``identifier`` and cuts are SQL over one event, mostly a column.
    """

    user: str | None
    gap: int | None
    identifier: tuple[str, ...] = ()
    choose: Choose = Choose.FIRST
    fallback_gap: int | None = None
    cuts: tuple[DeclaredCut, ...] = ()
    quarantine_after: int | None = None
    keep: Keep = Keep.NOTHING
    numbered: bool = False
    """Whether sessions are numbered for each user, in order of their starts."""

    @property
    def user_column(self) -> str | None:
        """The column of the table that shows a session's user."""
        if self.user is None:
            return None
        plain = _without_quotes(self.user)
        return plain.rpartition(".")[2] if _PLAIN.match(plain) else USER_IDENTIFIER

    @property
    def user_is_column(self) -> bool:
        """Whether the user is a column by its name alone, not a field and not an expression."""
        return self.user is not None and _without_quotes(self.user) == self.user_column

    @property
    def fixed_columns(self) -> tuple[str, ...]:
        """The columns that the table has besides those of the SELECT, in order."""
        who = (IDENTIFIER,) if self.identifier else ()
        user = (self.user_column,) if self.user_column else ()
        numbers = NUMBERS if self.numbered else ()
        return ("session_id", *who, *user, "session_start", "session_end", *numbers)

    @property
    def visible_columns(self) -> tuple[str, ...]:
        """Those of them that the SELECT's outputs may use."""
        return tuple(name for name in self.fixed_columns[1:] if name not in NUMBERS)


def _without_quotes(sql: str) -> str:
    return sql.strip().strip("`")


_PLAIN = re.compile(r"\w+(\.\w+)*\Z")


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
