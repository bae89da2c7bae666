"""Folds of sessions of several definitions equal the reference, each in its stretch of time."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import pairwise
from random import Random
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given, settings
from tests.reference import aggregates as agg
from tests.reference.drawn import at
from tests.reference.tables import Ends, all_sessions, numbered, quarantined, sessions
from tests.reference.world import Row
from tests.spark.sessions.folding import GAP, Call, FoldedSessions, query_of
from tests.spark.sessions.random_folds import (
    COUNT,
    MERGING,
    READ_AGAIN,
    SEEDS,
    UNSHRUNK,
    play,
    programs,
)
from tests.spark.sessions.test_cuts import WAYS, Way, speak

from infold.core.interval import HOUR, MAX, MIN, Granularity, Interval, Ranges
from infold.core.plan import Action, Step
from infold.core.project import Project, Stretch
from infold.core.queries import Aggregate, SessionsQuery
from infold.core.record import Outcome, Receipt
from infold.core.session_rules import Keep
from infold.core.trace import EarlierCells, Trace
from infold.spark.sessions import in_force

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark


@dataclass(frozen=True)
class Held:
    """A definition, and the instant from which it is in force."""

    since: int
    query: SessionsQuery
    calls: Mapping[str, Call]
    ends: Ends
    test: Any


class SessionsInForce(FoldedSessions):
    """Events that come and go, and sessions of definitions that change forward-only."""

    def __init__(self, spark: SparkSession, way: Way, **options: Any) -> None:
        super().__init__(
            spark,
            way.calls,
            ends=way.ends,
            granularity=Granularity.HOUR,
            **{"gap": GAP, **way.query, **options},
        )
        self._choose_user(way)
        self.before: list[Held] = []
        self.held = [self._now(MIN)]

    def forward(self, since: int, way: Way, test: Any = lambda row: True, **more: Any) -> None:
        """Another definition, in force from an instant on."""
        entries = self.ends.entries if self.ends else ()
        self.calls, self.test, self.ends = way.calls, test, replace(way.ends, entries=entries)
        self.query = query_of(way.calls, **{"gap": GAP, **way.query, **more})
        self._choose_user(way)
        self.held = [*(one for one in self.held if one.since < since), self._now(since)]

    def _choose_user(self, way: Way) -> None:
        """Sessions by identifier have a user: the first that their events name."""
        if self.query.chosen_user is not None:
            user = Aggregate("_user", "first", "user_id", None, True, "first(user_id, true)")
            self.query = replace(self.query, aggregates=(*self.query.aggregates, user))
            self.calls = {"user_id": Call("", agg.first_known("user_id")), **way.calls}

    def _now(self, since: int) -> Held:
        return Held(since, self.query, self.calls, self.ends or Ends(), self.test)

    @property
    def stretches(self) -> list[tuple[Interval, Held]]:
        """The definitions in force, each with its stretch; entries are about all of them."""
        ends = [*(one.since for one in self.held[1:]), MAX]
        entries = self.ends.entries if self.ends else ()
        return [
            (Interval(one.since, end), replace(one, ends=replace(one.ends, entries=entries)))
            for one, end in zip(self.held, ends, strict=True)
        ]

    def _events(self, times: Interval) -> list[Row]:
        return [row for row in self.events if row["event_ts"] in times]

    def expected(self) -> list[Row]:
        """The sessions of all stretches, by brute force."""
        found = [
            dict.fromkeys(self.calls) | row
            for times, one in self.stretches
            for row in sessions(
                self._events(times),
                user=one.query.user,
                time="event_ts",
                key=one.query.key,
                gap=one.query.gap,
                aggregates={name: call.reference for name, call in one.calls.items()},
                where=one.test,
                ends=one.ends,
            )
        ]
        if not self.query.numbered:
            return found
        return numbered(found, self.query.owner_column, lambda row: self._id(self.whose(row), row))

    def expected_held(self) -> set[tuple[Any, ...]]:
        """The sessions in quarantine, by brute force."""
        return {
            row
            for times, one in self.stretches
            for row in quarantined(
                self._events(times),
                time="event_ts",
                key=one.query.key,
                gap=one.query.gap,
                where=one.test,
                ends=one.ends,
                user="user_id" if one.query.chosen_user else None,
            )
        }

    def nobody(self) -> int:
        """How many events are in no session."""
        return sum(
            (one.ends.whose or (lambda row: row["user_id"]))(row) is None
            for times, one in self.stretches
            for row in self._events(times)
            if one.test(row)
        )

    def spans(self) -> list[tuple[str, int, int]]:
        """What all sessions are of, their first and last instants; in order."""
        return sorted(
            (one.ends.text(of), part[0]["event_ts"], part[-1]["event_ts"])
            for times, one in self.stretches
            for of, part in all_sessions(
                self._events(times),
                time="event_ts",
                key=one.query.key,
                gap=one.query.gap,
                where=one.test,
                ends=one.ends,
            )
        )

    def _project(self, one: Held) -> Project:
        now, self.query = self.query, one.query
        project = self._work().project
        self.query = now
        return project

    def _trace(self, upto: int, held: Sequence[Held], entries: int) -> Trace:
        digests = {id(one.query): str(number) for number, one in enumerate(self._queries)}
        newest = digests[id(held[-1].query)]
        cells: dict[str, Ranges] = {}
        for one, after in pairwise(held):
            digest = digests[id(one.query)]
            cells[digest] = cells.get(digest, Ranges()) | Ranges(
                (Interval(one.since, after.since),)
            )
        cells.pop(newest, None)
        earlier = tuple(EarlierCells(part, digest) for digest, part in cells.items())
        return Trace(
            "sessions",
            newest,
            {"clicks": upto},
            applied_entry=entries,
            definition=newest,
            earlier=earlier,
        )

    @property
    def _queries(self) -> list[Held]:
        known = {id(one.query): one for one in (*self.before, *self.held)}
        return list(known.values())

    def _carry_out(
        self, action: Action, upto: int, stored_by: SessionsQuery | None = None
    ) -> FoldedSessions:
        entries = len(self.ledger.manual_entries)
        trace = self._trace(upto, self.held, entries)
        step = Step(
            model="sessions",
            action=action,
            cells=Ranges.ever(),
            reasons=(),
            inputs={"clicks": (self.built, upto)},
            version=len(self.tables.snapshots) + 1,
            trace=trace,
            previous_trace=self._trace(self.built, self.before or self.held, self.applied),
        )
        by_digest = {str(number): one for number, one in enumerate(self._queries)}
        earlier = tuple(
            Stretch(one.cells, "sessions", self._project(by_digest[one.definition]))
            for one in trace.earlier
        )
        announced: list[Outcome] = []
        before = dict(self.ledger.states["sessions"])

        def announce(early: Outcome) -> Outcome:
            announced.append(early)
            return early

        work = replace(self._work(), earlier=earlier)
        outcome = in_force.carry_out(work, step, announce)
        if earlier:
            plain = replace(outcome, snapshot=None, receipt=Receipt())
            assert [plain] == [replace(one, receipt=Receipt()) for one in announced]
        assert outcome.left_out == self.nobody()
        self.ledger.nobodys = outcome.left_out
        if outcome.whole:
            self.ledger.held = {}
        self._record(outcome, before)
        self.built, self.receipt, self.changes = upto, outcome.receipt, outcome.changes
        self.applied, self.before = entries, list(self.held)
        self.check()
        return self


FIRST, SECOND, LAST = (at(f"2019-10-2{time}:00:00") for time in ("2T23", "3T00", "3T01"))
SOME = {
    name: MERGING[name] for name in ("events", "ns", "mean_amount", "entry", "last_url", "paid")
}
LATER = {"total": MERGING["bigs"], **SOME}
"""Other aggregates at other places: states of other types have the names of earlier ones."""
CASES: Mapping[str, tuple[Way, Way, Way]] = {
    "merged, then cut": (
        Way({}, Ends(), SOME),
        Way({"gap": HOUR}, Ends(), LATER),
        replace(WAYS["everything"], calls=LATER),
    ),
    "cut, then quarantine, numbered": (
        Way({**WAYS["campaign"].query, "numbered": True}, WAYS["campaign"].ends, COUNT),
        Way(
            {"numbered": True, "gap": HOUR, "quarantine_after": HOUR, "keep": Keep.HEAD},
            Ends(limit=HOUR, head=True),
            {**READ_AGAIN, "last_n": MERGING["ns"]},
        ),
        Way(
            {"numbered": True},
            Ends(),
            {"total": MERGING["bigs"], **READ_AGAIN, "last_n": MERGING["ns"]},
        ),
    ),
    "identifiers": (
        replace(WAYS["quarantine by identifier, start events"], calls=SOME),
        replace(WAYS["quarantine by identifier"], calls=SOME),
        replace(WAYS["quarantine by identifier, start events"], calls=LATER),
    ),
}


def known(row: Row) -> bool:
    """The WHERE of the last definitions."""
    return row["n"] is None or row["n"] != 0


@settings(max_examples=1, phases=UNSHRUNK)
@given(seed=SEEDS)
@pytest.mark.parametrize("name", CASES)
def test_each_stretch_equals_its_definition(spark: SparkSession, name: str, seed: int) -> None:
    """Definitions change three times, the last time from a border before the one before. Whatever
    comes and goes on all sides, each stretch has the sessions of its definition.
    """
    first, second, third = CASES[name]
    made = SessionsInForce(spark, first)
    random = Random(seed)

    def change(since: int, way: Way, shop: FoldedSessions, **more: Any) -> None:
        made.forward(since, way, **more)
        speak(shop, random)

    later: dict[int, Callable[[FoldedSessions], None]] = {
        1: partial(change, SECOND, second),
        2: partial(change, LAST, third, test=known, where="n IS NULL OR n <> 0"),
        4: partial(change, FIRST, third),
    }
    play(made, programs(seed, users=25, runs=5), later)
