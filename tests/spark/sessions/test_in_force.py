"""Folds of sessions of several definitions equal the reference, each in its stretch of time."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from itertools import pairwise
from random import Random
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given, settings
from tests.reference.drawn import at
from tests.reference.tables import Ends
from tests.reference.world import Row
from tests.spark.sessions.folding import GAP, Call, FoldedSessions, Held
from tests.spark.sessions.random_folds import (
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
from infold.core.ports import Prepared
from infold.core.project import Project, Stretch
from infold.core.queries import SessionsQuery
from infold.core.record import Outcome, Receipt
from infold.core.trace import EarlierCells, Trace
from infold.spark.sessions import in_force

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark


class SessionsInForce(FoldedSessions):
    """Events that come and go, and sessions of definitions that change forward-only."""

    def __init__(self, spark: SparkSession, way: Way) -> None:
        options = {"gap": GAP, **way.query}
        super().__init__(spark, way.calls, ends=way.ends, granularity=Granularity.HOUR, **options)
        self.before: list[Held] = []
        self.held = [self._now(MIN)]

    def forward(self, since: int, way: Way, test: Any = lambda row: True, **more: Any) -> None:
        """Another definition, in force from an instant on."""
        ends = replace(way.ends, entries=self.ends.entries)
        self.define(way.calls, ends, test, **{"gap": GAP, **way.query, **more})
        self.held = [*(one for one in self.held if one.since < since), self._now(since)]

    def _now(self, since: int) -> Held:
        return Held(since, self.query, self.calls, self.ends, self.test)

    @property
    def stretches(self) -> list[tuple[list[Row], Held]]:
        """The definitions in force, each with its events; entries are about all of them."""
        ends = [*(one.since for one in self.held[1:]), MAX]
        return [
            (
                [row for row in self.events if one.since <= row["event_ts"] < end],
                replace(one, ends=replace(one.ends, entries=self.ends.entries)),
            )
            for one, end in zip(self.held, ends, strict=True)
        ]

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
            part = Ranges((Interval(one.since, after.since),))
            cells[digest] = cells.get(digest, Ranges()) | part
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

    def _traces(self, upto: int) -> tuple[Trace, Trace]:
        return (
            self._trace(upto, self.held, len(self.ledger.manual_entries)),
            self._trace(self.built, self.before or self.held, self.applied),
        )

    def _outcome(self, step: Step, announce: Prepared) -> Outcome:
        assert step.trace is not None
        by_digest = {str(number): one for number, one in enumerate(self._queries)}
        earlier = tuple(
            Stretch(one.cells, "sessions", self._project(by_digest[one.definition]))
            for one in step.trace.earlier
        )
        outcome = in_force.carry_out(replace(self._work(), earlier=earlier), step, announce)
        if outcome.whole:
            self.ledger.held = {}
        return outcome

    def _compare(self, step: Step, outcome: Outcome, announced: Sequence[Outcome]) -> None:
        if step.trace is not None and step.trace.earlier:
            plain = replace(outcome, snapshot=None, receipt=Receipt())
            assert [plain] == [replace(one, receipt=Receipt()) for one in announced]

    def _carry_out(
        self, action: Action, upto: int, stored_by: SessionsQuery | None = None
    ) -> FoldedSessions:
        super()._carry_out(action, upto, stored_by)
        self.before = list(self.held)
        return self


FIRST, SECOND, LAST = (at(f"2019-10-2{time}:00:00") for time in ("2T23", "3T00", "3T01"))
SOME = {
    name: MERGING[name] for name in ("events", "ns", "mean_amount", "entry", "last_url", "paid")
}
LATER = {"total": MERGING["bigs"], **SOME}
"""Other aggregates at other places: states of other types have the names of earlier ones."""


def _numbered(name: str, calls: Mapping[str, Call]) -> Way:
    return replace(WAYS[name], query={**WAYS[name].query, "numbered": True}, calls=calls)


CASES: Mapping[str, tuple[Way, Sequence[tuple[int, Way]]]] = {
    "merged, then cut": (
        Way({}, Ends(), SOME),
        (
            (SECOND, Way({"gap": HOUR}, Ends(), LATER)),
            (LAST, replace(WAYS["everything"], calls=LATER)),
            (FIRST, replace(WAYS["everything"], calls=LATER)),
        ),
    ),
    "identifiers, numbered, read again": (
        _numbered("quarantine by identifier, start events", SOME),
        (
            (SECOND, _numbered("quarantine by identifier", SOME)),
            (
                FIRST,
                _numbered(
                    "quarantine by identifier, start events", {"xs": READ_AGAIN["xs"], **LATER}
                ),
            ),
        ),
    ),
}
"""The first definition, and those that come after it, each in force from an instant on."""


def known(row: Row) -> bool:
    """The WHERE of the definition that comes second."""
    return row["n"] is None or row["n"] != 0


@settings(max_examples=1, phases=UNSHRUNK)
@given(seed=SEEDS)
@pytest.mark.parametrize("name", CASES)
def test_each_stretch_equals_its_definition(spark: SparkSession, name: str, seed: int) -> None:
    """Definitions change, the last time from a border before the one before. Whatever comes and
    goes on all sides, each stretch has the sessions of its definition.
    """
    first, changes = CASES[name]
    made = SessionsInForce(spark, first)
    random = Random(seed)
    more = {"test": known, "where": "n IS NULL OR n <> 0"}

    def change(shop: FoldedSessions, since: int, way: Way, more: Mapping[str, Any]) -> None:
        made.forward(since, way, **more)
        speak(shop, random)

    later = {
        run: partial(change, since=since, way=way, more=more if run == 2 else {})
        for run, (since, way) in enumerate(changes, 1)
    }
    play(made, programs(seed, users=25, runs=1 + len(changes)), later)
