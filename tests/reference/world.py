"""
The outside world as the reference sees it: files of records, and what of them can be used.

Written from the contract alone. Instants are microseconds, rows are plain dictionaries of typed
values, NULL is None. Nothing is remembered between two looks at a world: whatever a table should
hold follows from the files that are there and from ``as_of``.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

Row = dict[str, Any]


class Aside(StrEnum):
    """Why a row is set aside for good; the words of the contract, not of any message."""

    UNPARSABLE = "unparsable"
    NO_TIME = "NULL or invalid event time"
    NO_KEY = "NULL key"
    FUTURE = "dated later than received"


@dataclass(frozen=True)
class Broken:
    """A record of a file that cannot be used: its text, and why."""

    text: str
    why: Aside = Aside.UNPARSABLE


Record = Row | Broken


@dataclass(frozen=True)
class Rules:
    """
    What a source declares about its rows.

    Without ``time`` it is a lookup: every row that parses is used. With ``received``, a row dated
    more than ``tolerance`` after it was received is set aside for good; without, a row dated after
    ``as_of`` waits until its time has come.
    """

    time: str | None = None
    received: str | None = None
    tolerance: int = 3_600_000_000


@dataclass(frozen=True)
class Erased:
    """Someone who asked to be erased: all of their rows, or those dated ``before`` an instant."""

    user: str
    before: int | None = None

    def has(self, row: Row) -> bool:
        """Whether a row is to be as if it had never come."""
        if row.get("user_id") != self.user:
            return False
        time = row["event_ts"]
        return self.before is None or (time is not None and time < self.before)


@dataclass
class World:
    """Files that lie there now (path to records), the instant that is now, and who is erased."""

    files: dict[str, tuple[Record, ...]] = field(default_factory=dict)
    as_of: int = 0
    erased: list[Erased] = field(default_factory=list)

    def copy(self) -> World:
        """The world as it is now, unmoved by what happens later."""
        return World(dict(self.files), self.as_of, list(self.erased))

    def under(self, folder: str) -> list[Record]:
        """All records of the files in a folder."""
        return [
            record
            for path, records in self.files.items()
            if path.startswith(folder + "/")
            for record in records
        ]


@dataclass
class Usable:
    """What is left of some records: rows to use, rows set aside by reason, rows that wait."""

    rows: list[Row] = field(default_factory=list)
    aside: Counter[Aside] = field(default_factory=Counter)
    waiting: list[Row] = field(default_factory=list)


def without_erased(records: Sequence[Record], erased: Sequence[Erased]) -> list[Record]:
    """The records that nobody asked to have erased; of what cannot be read nobody knows whose."""
    return [
        record
        for record in records
        if isinstance(record, Broken) or not any(one.has(record) for one in erased)
    ]


def dated_since(records: Sequence[Record], since: int) -> list[Record]:
    """The records that are not dated before an instant."""
    return [
        record
        for record in records
        if isinstance(record, Broken) or (record.get("event_ts") or since) >= since
    ]


def usable(records: Sequence[Record], rules: Rules, as_of: int) -> Usable:
    """Sort records by what a source's rules say of each, one at a time."""
    found = Usable()
    for record in records:
        if isinstance(record, Broken):
            found.aside[record.why] += 1
            continue
        if rules.time is None:
            found.rows.append(record)
            continue
        time = record[rules.time]
        if time is None:
            found.aside[Aside.NO_TIME] += 1
        elif rules.received is not None:
            received = record[rules.received]
            if received is not None and time > received + rules.tolerance:
                found.aside[Aside.FUTURE] += 1
            else:
                found.rows.append(record)
        elif time > as_of:
            found.waiting.append(record)
        else:
            found.rows.append(record)
    return found


def frozen(row: Mapping[str, Any]) -> tuple[tuple[str, Any], ...]:
    """A row as a value that can be counted and put in sets; lists become tuples."""
    return tuple(
        (name, tuple(value) if isinstance(value, list) else value)
        for name, value in sorted(row.items())
    )
