"""
Cuts: where sessions end although their user is still active. One class for each cut, as declared.

There are two sorts. Whether a *pairwise* cut (midnight) parts two neighbouring events follows from
their times alone, so it bounds islands, and new events are merged into stored sessions as without
it. Any other cut (campaign, start events, rule, greatest length) depends on the events before: it
divides an island from its first event on. Events of one instant are never parted.

A class here answers what the parts of the program without Spark ask of its cut. What Spark does for
it is a class of ``spark/sessions/cuts``, which ``CUTS`` there lists.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
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
