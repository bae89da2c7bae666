"""
Every materialization by brute force: what a table holds, from the inputs and the definition alone.

Nothing here is incremental, clever or shared with the program. Rows that a model sets aside by its
key are counted in :class:`Deduplicated`; sessions carry no ``session_id``, whose value is the
program's own business (that it is a function of user and start is tested apart).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, timedelta
from itertools import groupby
from typing import Any
from zoneinfo import ZoneInfo

from tests.reference.aggregates import Aggregate
from tests.reference.world import Row, frozen

from infold.core.interval import datetime_of

Identity = tuple[Any, ...]


@dataclass
class Deduplicated:
    """
    The rows of an events table, as far as content decides them.

    ``groups`` maps an event's identity (key and event time, or the key alone) to its best copies,
    which differ in content and not in preference or time; which of them is kept is a function of
    content that the program may choose. ``without_key`` rows are set aside, ``copies`` were dropped
    as copies of another.
    """

    groups: dict[Identity, list[Row]] = field(default_factory=dict)
    without_key: int = 0
    copies: int = 0

    def rows(self, chosen: Iterable[Row] = ()) -> list[Row]:
        """One row for each event; the ``chosen`` one, if it is one of several best copies."""
        wanted = {frozen(row) for row in chosen}
        found = []
        for copies in self.groups.values():
            picked = [row for row in copies if frozen(row) in wanted]
            found.append(picked[0] if picked else copies[0])
        return found


def events(
    rows: Iterable[Row],
    *,
    key: Sequence[str],
    time: str,
    prefer: Sequence[str] = (),
    everywhere: bool = False,
    query: Callable[[Row], Row | None] = dict,
) -> Deduplicated:
    """
    One row for each key and event time: the model's query over every row, then the best copies.

    ``everywhere`` makes it one row for each key: of the most preferred copies the earliest.
    ``query`` gives a row's output, or None where its WHERE says no. ``prefer`` lists columns, the
    smallest value first, or ``column desc`` for the largest. Preferred columns hold no NULLs.
    """
    found = Deduplicated()
    copies: dict[Identity, list[Row]] = defaultdict(list)
    for row in rows:
        output = query(row)
        if output is None:
            continue
        if any(output[column] is None for column in key):
            found.without_key += 1
            continue
        whose = tuple(output[column] for column in key)
        copies[whose if everywhere else (*whose, output[time])].append(output)
    for identity, group in copies.items():
        best = group
        for entry in (*prefer, time):
            column, _, direction = entry.partition(" ")
            pick = max if direction == "desc" else min
            value = pick(row[column] for row in best)
            best = [row for row in best if row[column] == value]
        distinct = {frozen(row): row for row in best}
        found.groups[identity] = [distinct[content] for content in sorted(distinct, key=repr)]
        found.copies += len(group) - 1
    return found


def sessions(
    rows: Iterable[Row],
    *,
    user: str,
    time: str,
    key: Sequence[str],
    gap: int | None,
    aggregates: Mapping[str, Aggregate],
    where: Callable[[Row], bool | None] = lambda row: True,
    ends: Ends | None = None,
) -> list[Row]:
    """
    One row for each stretch of a user's events in which no pause is longer than ``gap``.

    Events are in order of event time, then key. Events without a user are in no session. ``ends``
    says what else sessions are of, and where else they end.
    """
    ends = ends or Ends()
    found = []
    for who, part in all_sessions(
        rows, time=time, key=key, gap=gap, where=where, ends=ends, user=user
    ):
        named = {user: ends.shown(who) if ends.shown else who}
        start, end = part[0][time], part[-1][time]
        if ends.in_quarantine(who, start, end):
            if not ends.head or ends.limit is None or ends.latest_entry(who, start, end):
                continue
            part = [row for row in part if row[time] - start <= ends.limit]
        found.append(
            {**named, "session_start": part[0][time], "session_end": part[-1][time]}
            | {name: aggregate.value(part) for name, aggregate in aggregates.items()}
        )
    return found


def numbered(rows: Sequence[Row], user: str, ids: Callable[[Row], str]) -> list[Row]:
    """Sessions with their number among those of their user, by start and then id."""
    turns: dict[Any, int] = defaultdict(int)
    found = []
    for row in sorted(rows, key=lambda row: (row["session_start"], ids(row))):
        turns[row[user]] += 1
        number = None if row[user] is None else turns[row[user]]
        first = None if number is None else number == 1
        found.append(row | {"session_number": number, "is_first_session": first})
    return found


def quarantined(
    rows: Iterable[Row],
    *,
    time: str,
    key: Sequence[str],
    gap: int | None,
    where: Callable[[Row], bool | None],
    ends: Ends,
    user: str | None = None,
) -> set[tuple[Any, ...]]:
    """Sessions in quarantine: what they are of, start, end, events, and the first ``user``."""
    return {
        (ends.text(of), part[0][time], part[-1][time], len(part), _first(part, user))
        for of, part in all_sessions(rows, time=time, key=key, gap=gap, where=where, ends=ends)
        if ends.in_quarantine(of, part[0][time], part[-1][time])
    }


def _first(part: Sequence[Row], user: str | None) -> Any:
    return next((row[user] for row in part if row[user] is not None), None) if user else None


def all_sessions(
    rows: Iterable[Row],
    *,
    time: str,
    key: Sequence[str],
    gap: int | None,
    where: Callable[[Row], bool | None],
    ends: Ends,
    user: str = "user_id",
) -> list[tuple[Hashable, list[Row]]]:
    """All sessions, those in quarantine too: what they are of, and their events in order."""
    by_of: dict[Hashable, list[Row]] = defaultdict(list)
    for row in rows:
        of = ends.whose(row) if ends.whose else row[user]
        if where(row) and of is not None:
            by_of[of].append(row)
    found = []
    for of, own in by_of.items():
        own.sort(key=lambda row: (row[time], *(row[column] for column in key)))
        found += [
            (of, part) for part in cut_sessions(own, time, ends.gap(of) if ends.gap else gap, ends)
        ]
    return found


@dataclass(frozen=True)
class Entry:
    """
    A manual entry on the sessions of ``of``: on all, or on those with an instant in a span.

    ``held`` puts them into quarantine or releases them; None takes earlier entries back.
    """

    of: str
    held: bool | None
    start: int | None = None
    end: int | None = None


@dataclass(frozen=True)
class Ends:
    """
    What sessions are of, and where they end besides silences, as plain functions of events.

    ``whose`` is what an event's session is of (None: of none), ``shown`` what the table shows of
    that, ``gap`` the silence that ends it. Sessions end at the midnights of ``zone``, where the
    campaign changes from the last that an event named, before an instant of an event that
    ``begins`` one, where ``rule`` says so of a session so far and the events of the next instant,
    and when they would be longer than ``most``. One longer than ``limit`` is left out, or with
    ``head`` all but its beginning. The latest of ``entries`` on a session overrides
    the limit; ``text`` is how people name what a session is of.
    """

    whose: Callable[[Row], Hashable | None] | None = None
    shown: Callable[[Hashable], Any] | None = None
    gap: Callable[[Hashable], int | None] | None = None
    zone: str | None = None
    campaign: Callable[[Row], Hashable | None] | None = None
    begins: Callable[[Row], bool | None] | None = None
    rule: Callable[[Sequence[Row], Sequence[Row]], bool] | None = None
    most: int | None = None
    limit: int | None = None
    head: bool = False
    entries: tuple[Entry, ...] = ()
    text: Callable[[Any], str] = str

    def latest_entry(self, of: Hashable, start: int, end: int) -> bool | None:
        """What the latest entry on a session says, or None."""
        found = None
        for one in self.entries:
            here = one.start is None or (start <= int(one.end or 0) and end >= one.start)
            if one.of == self.text(of) and here:
                found = one.held
        return found

    def in_quarantine(self, of: Hashable, start: int, end: int) -> bool:
        """Whether a session is in quarantine."""
        entry = self.latest_entry(of, start, end)
        return entry if entry is not None else self.limit is not None and end - start > self.limit


def cut_sessions(own: Sequence[Row], time: str, gap: int | None, ends: Ends) -> list[list[Row]]:
    """The sessions of ordered events, found by going from instant to instant."""
    found: list[list[Row]] = []
    force: Hashable | None = None
    for _, group in groupby(own, key=lambda row: row[time]):
        rows = list(group)
        named = [
            each for each in map(ends.campaign or (lambda row: None), rows) if each is not None
        ]
        at, before = rows[0][time], found[-1][-1][time] if found else None
        anew = before is None or (gap is not None and at - before > gap)
        if ends.zone is not None and before is not None:
            anew = anew or local_day(at, ends.zone) != local_day(before, ends.zone)
        if anew:
            force = None
        changed = bool(named) and named[-1] != force
        begins = ends.begins is not None and any(map(ends.begins, rows))
        too_long = ends.most is not None and found and at - found[-1][0][time] > ends.most
        ruled = ends.rule is not None and bool(found) and ends.rule(found[-1], rows)
        if anew or changed or begins or too_long or ruled:
            found.append([])
        found[-1] += rows
        force = named[-1] if named else force
    return found


def local_day(at: int, zone: str) -> date:
    """The last day of a time zone that had begun by an instant."""
    where = ZoneInfo(zone)
    day = datetime_of(at).astimezone(where).date() + timedelta(days=1)
    while datetime(day.year, day.month, day.day, tzinfo=where).astimezone(UTC) > datetime_of(at):
        day -= timedelta(days=1)
    return day


def grouped(
    rows: Iterable[Row],
    by: Mapping[str, Callable[[Row], Any]],
    aggregates: Mapping[str, Aggregate],
    *,
    cell: str | None = None,
) -> list[Row]:
    """
    ``SELECT by…, aggregates… FROM rows GROUP BY by…``.

    ``cell`` is the partition column of a time-range table: rows in no cell (NULL) are left out.
    """
    groups: dict[tuple[Hashable, ...], list[Row]] = defaultdict(list)
    for row in rows:
        groups[tuple(value(row) for value in by.values())].append(row)
    found = []
    for values, own in groups.items():
        row = dict(zip(by, values, strict=True))
        if cell is not None and row[cell] is None:
            continue
        found.append(row | {name: each.value(own) for name, each in aggregates.items()})
    if not by and not groups:
        found.append({name: each.value([]) for name, each in aggregates.items()})
    return found


def left_joined(
    rows: Iterable[Row], lookup: Iterable[Row], on: str, columns: Sequence[str]
) -> list[Row]:
    """``rows LEFT JOIN lookup USING (on)`` with columns of the lookup; NULL matches nothing."""
    by_value: dict[Any, list[Row]] = defaultdict(list)
    for row in lookup:
        by_value[row[on]].append(row)
    found = []
    for row in rows:
        matches = by_value.get(row[on], []) if row[on] is not None else []
        if not matches:
            found.append(row | dict.fromkeys(columns))
        found.extend(row | {column: match[column] for column in columns} for match in matches)
    return found


def versions(
    rows: Iterable[Row],
    *,
    key: Sequence[str],
    time: str,
    compared: Sequence[str] | None = None,
    snapshots: bool = False,
    without_rows: Iterable[Any] = (),
) -> list[Row]:
    """
    One row for each version of a key: the stretch ``[valid_from, valid_to)`` in which it held.

    Of rows of a key at one time the one with the greatest values counts, by the columns in their
    order, NULL before all others. With ``compared`` a row like the one before it in these columns
    is no version. With ``snapshots`` a key without a row at an instant at which others have one is
    not there from then on, until it has one; at the instants ``without_rows`` there is no key. Rows
    without a time are none.
    """
    by_key: dict[Identity, dict[Any, list[Row]]] = defaultdict(lambda: defaultdict(list))
    for row in rows:
        if row[time] is not None:
            by_key[tuple(row[column] for column in key)][row[time]].append(row)
    instants = sorted({*without_rows, *(at for claims in by_key.values() for at in claims)})
    found: list[Row] = []
    for claims in by_key.values():
        own: list[Row] = []
        for at in instants if snapshots else sorted(claims):
            going_on = own[-1] if own and own[-1]["valid_to"] is None else None
            seen = [max(claims[at], key=_null_first)] if at in claims else []
            if going_on is not None and _is_like(seen, going_on, compared):
                continue
            if going_on is not None:
                going_on["valid_to"] = at
            own += [row | {"valid_from": at, "valid_to": None} for row in seen]
        found += own
    return found


def _is_like(seen: Sequence[Row], before: Row, compared: Sequence[str] | None) -> bool:
    """Whether there is a row, which says what the one before it says."""
    if compared is None or not seen:
        return False
    return all(seen[0][column] == before[column] for column in compared)


def _null_first(row: Row) -> list[tuple[bool, Any]]:
    return [(value is not None, value) for value in row.values()]
