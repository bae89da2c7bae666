"""
Sessions as a model declares them: whose they are, and where they end. One class for each cut.

A cut ends a session although its user is still active.

There are two sorts of cuts. Whether a *pairwise* cut (midnight) parts two neighbouring events
follows from their times alone, so it bounds islands, and new events are merged into stored sessions
as without it. Any other cut (campaign, start events, rule, greatest length) depends on the events
before: it divides an island from its first event on. Events of one instant are never parted.

A class here answers what the parts of the program without Spark ask of its cut. What Spark does for
it is a class of ``spark/sessions/cuts``, which ``CUTS`` there lists.
"""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from hashlib import md5
from typing import ClassVar, Protocol, Self

from infold.core.functions import FunctionCode
from infold.core.interval import show_duration


class SqlType(StrEnum):
    """What SQL over one event has to give."""

    BOOLEAN = "boolean"
    STRING = "string"
    """Anything that casts to a string."""


@dataclass(frozen=True, slots=True)
class EventSql:
    """
    SQL over one event that is written below ``sessions`` in a model's file.

    ``keys`` are the places where it may be written, the most specific first
    (``cuts.campaign.columns.0``, ``cuts.campaign.0``).
    """

    keys: tuple[str, ...]
    sql: str
    type: SqlType = SqlType.STRING


class CutFunctions(Protocol):
    """What SQL over an event may call of a project."""

    def written_out(self, sql: EventSql) -> str:
        """The SQL with the functions that it calls written out."""

    def rule_called(self, call: EventSql) -> tuple[str, FunctionCode] | None:
        """What a rule is given, and its function; None where there is none."""


@dataclass(frozen=True, slots=True)
class DeclaredCut(ABC):
    """One cut of a sessions model, with the values that its author gave it."""

    key: ClassVar[str]
    """Its key below ``sessions``."""
    pairwise: ClassVar[bool] = False
    """Whether the times of two neighbouring events are enough to say if it parts them."""
    sees_length: ClassVar[bool] = False
    """Whether it may end a session for its length, so that another limit would say it twice."""
    told_when_new: ClassVar[bool] = False
    """Whether stored sessions, which it has not ended, tell which of them it would end."""
    told_when_gone: ClassVar[bool] = False
    """Whether stored sessions tell which of them it may have ended."""
    sql_fields: ClassVar[frozenset[str]] = frozenset()
    """Its values that are SQL: spaces and comments do not count."""
    duration_fields: ClassVar[frozenset[str]] = frozenset()
    """Its values that are microseconds."""
    place_in_list: ClassVar[int | None] = None
    """Its place in a list of three, as fingerprints that ledgers already have list it."""

    def expanded(self, functions: CutFunctions) -> Self:
        """The same, with what its SQL calls of the project's functions written out."""
        del functions
        return self

    @property
    def event_sql(self) -> Sequence[EventSql]:
        """The SQL over one event that it reads."""
        return ()

    @property
    def longest(self) -> int | None:
        """The length, in microseconds, that no session exceeds because of it."""
        return None

    @property
    @abstractmethod
    def definition(self) -> object:
        """Its values as JSON, for the model's fingerprint."""

    @property
    @abstractmethod
    def in_words(self) -> str:
        """Where it ends a session, to follow "cut at"."""


@dataclass(frozen=True, slots=True)
class Midnight(DeclaredCut):
    """A session ends with the day of a time ``zone``."""

    key = "cuts.midnight"
    pairwise = True
    told_when_new = told_when_gone = True
    place_in_list = 0

    zone: str

    @property
    def definition(self) -> str:
        """The time zone: another one puts other midnights between the same events."""
        return self.zone

    @property
    def in_words(self) -> str:
        """Where it ends a session."""
        return f"midnight in {self.zone}"


class Nulls(StrEnum):
    """What an event without a campaign does."""

    IGNORE = "ignore"
    """It goes on with the campaign in force."""
    CHANGE = "change"
    """To have none is a campaign of its own: coming from one to none is a change."""


@dataclass(frozen=True, slots=True)
class Campaign(DeclaredCut):
    """
    A session ends where the campaign changes: ``columns`` of an event (or SQL), taken together.

    A value listed in ``direct`` counts as NULL. An event without any value has no campaign.
    """

    key = "cuts.campaign"
    sql_fields = frozenset({"columns"})
    place_in_list = 1

    columns: tuple[str, ...]
    nulls: Nulls = Nulls.IGNORE
    direct: tuple[str, ...] = ()

    def expanded(self, functions: CutFunctions) -> Self:
        """Its columns written out."""
        return replace(self, columns=tuple(map(functions.written_out, self.event_sql)))

    @property
    def event_sql(self) -> Sequence[EventSql]:
        """Its columns, in a mapping or as a list in short."""
        return [
            EventSql((f"{self.key}.columns.{at}", f"{self.key}.{at}"), sql)
            for at, sql in enumerate(self.columns)
        ]

    @property
    def definition(self) -> tuple[object, ...]:
        """All of its values, as each of them says between which events a session ends."""
        return self.columns, self.nulls, self.direct

    @property
    def in_words(self) -> str:
        """Where it ends a session."""
        return "a change of campaign"


@dataclass(frozen=True, slots=True)
class StartEvents(DeclaredCut):
    """An event for which ``sql`` is true begins a session."""

    key = "cuts.start_events"
    told_when_gone = True  # a new one can be any event
    sql_fields = frozenset({"sql"})
    place_in_list = 2

    sql: str

    def expanded(self, functions: CutFunctions) -> Self:
        """Its condition written out."""
        return replace(self, sql=functions.written_out(*self.event_sql))

    @property
    def event_sql(self) -> Sequence[EventSql]:
        """The condition, as a column of TRUE, FALSE or NULL beside each event."""
        return [EventSql((self.key,), self.sql, SqlType.BOOLEAN)]

    @property
    def definition(self) -> str:
        """The condition as written, with the project's functions in their place."""
        return self.sql

    @property
    def in_words(self) -> str:
        """Where it ends a session."""
        return "an event that begins a session"


@dataclass(frozen=True, slots=True)
class Rule(DeclaredCut):
    """
    A session ends where a function of the project says so, which is given the session's events.

    ``sql`` is a struct of what the function is given of each event; as it is written in the file,
    it is the call. ``code`` is the function, once it was found.
    """

    key = "cuts.rule"
    sees_length = True
    sql_fields = frozenset({"sql"})

    sql: str
    code: FunctionCode | None = None

    def expanded(self, functions: CutFunctions) -> Self:
        """With its function, where that is found."""
        expression = functions.rule_called(*self.event_sql)
        return self if expression is None else replace(self, sql=expression[0], code=expression[1])

    @property
    def event_sql(self) -> Sequence[EventSql]:
        """What it is given of an event."""
        return [EventSql((self.key,), self.sql)]

    @property
    def definition(self) -> tuple[str, str]:
        """What it is given, and the digest of the function's code."""
        return self.sql, self.code.registered if self.code else ""

    @property
    def in_words(self) -> str:
        """Where it ends a session."""
        return f"the rule {self.code.function if self.code else self.sql}"


@dataclass(frozen=True, slots=True)
class MaxLength(DeclaredCut):
    """A session is at most ``length`` microseconds long; the next event begins another one."""

    key = "max_length"
    told_when_new = told_when_gone = True
    duration_fields = frozenset({"length"})

    length: int

    @property
    def longest(self) -> int:
        """The greatest length of a session, in microseconds."""
        return self.length

    @property
    def definition(self) -> int:
        """The greatest length, in microseconds."""
        return self.length

    @property
    def in_words(self) -> str:
        """Where it ends a session."""
        return f"a length of {show_duration(self.length)}"


DECLARED_CUTS: tuple[type[DeclaredCut], ...] = (Midnight, Campaign, StartEvents, Rule, MaxLength)
"""Every sort of cut."""


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
