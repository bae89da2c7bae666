"""Sessions of a changed definition equal the reference, and only those that may change are made."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from random import Random
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given, settings
from pyspark.sql import Row as PySparkRow
from pyspark.sql import functions as F
from tests.reference.drawn import at, drawn, spread, table
from tests.reference.tables import Ends
from tests.spark.sessions.folding import GAP, Call, FoldedSessions
from tests.spark.sessions.random_folds import (
    COUNT,
    MERGING,
    READ_AGAIN,
    SEEDS,
    UNSHRUNK,
    named_events,
    play,
    programs,
    rows_of,
)
from tests.spark.sessions.test_cuts import WAYS, Way, shop, speak

from infold.core.interval import HOUR, MINUTE
from infold.core.queries import Fallback
from infold.core.session_cuts import Campaign, DeclaredCut, MaxLength, Midnight, StartEvents
from infold.core.session_rules import Keep
from infold.spark import key_filter
from infold.spark.content import micros
from infold.spark.sessions import fold
from infold.spark.sessions.build import LARGE, build
from infold.spark.sessions.components import Components
from infold.spark.sessions.frames import SILENCE
from infold.spark.tables.port import Layout, Stamp

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark

LONDON, UTC = Midnight("Europe/London"), Midnight("UTC")


@dataclass(frozen=True)
class Redefined:
    """A first definition, and those that come after it, each as a query and a reference say it."""

    first: Way
    later: Sequence[tuple[Mapping[str, Any], Ends]]


def gaps(*lengths: int, first: Way | None = None) -> Redefined:
    """Other gaps, everything else as in the ``first`` definition."""
    way = first or Way({}, Ends())
    return Redefined(way, [({"gap": length}, way.ends) for length in lengths])


def cuts(
    *ways: tuple[tuple[DeclaredCut, ...], Ends], calls: Mapping[str, Call] = MERGING
) -> Redefined:
    """Other cuts."""
    (first, ends), *later = ways
    return Redefined(Way({"cuts": first}, ends, calls), [({"cuts": c}, e) for c, e in later])


EVERYTHING = WAYS["everything"]
CUT = (Campaign(("url", "n"), direct=("/",)), StartEvents("ok"))
CAMPAIGNS = Ends(campaign=EVERYTHING.ends.campaign)
BOTH = replace(CAMPAIGNS, begins=EVERYTHING.ends.begins)
HELD = WAYS["quarantine, head, read again"]
OR_USER = WAYS["identifier or user"]


def _gap_of(user: int, identifier: int | None) -> Any:
    return lambda of: identifier if of[0] else user


CASES = {
    "gaps, numbered, read again": gaps(
        60 * MINUTE, 15 * MINUTE, first=Way({"numbered": True}, Ends(), READ_AGAIN)
    ),
    "gaps within campaigns and start events": gaps(
        15 * MINUTE, 45 * MINUTE, first=Way({"cuts": CUT}, BOTH)
    ),
    "midnights and lengths": cuts(
        ((LONDON,), Ends(zone=LONDON.zone)),
        ((MaxLength(45 * MINUTE),), Ends(most=45 * MINUTE)),
        ((LONDON, MaxLength(HOUR)), Ends(zone=LONDON.zone, most=HOUR)),
    ),
    "start events gone, lengths and midnights": cuts(
        ((LONDON, *CUT, MaxLength(45 * MINUTE)), EVERYTHING.ends),
        ((*CUT, MaxLength(30 * MINUTE)), replace(BOTH, most=30 * MINUTE)),
        ((CUT[0], MaxLength(HOUR)), replace(CAMPAIGNS, most=HOUR)),
        ((UTC, CUT[0]), replace(CAMPAIGNS, zone=UTC.zone)),
    ),
    "quarantine": Redefined(
        HELD,
        [
            ({"gap": 15 * MINUTE}, HELD.ends),
            (
                {"quarantine_after": 30 * MINUTE, "keep": Keep.NOTHING},
                replace(HELD.ends, limit=30 * MINUTE, head=False),
            ),
            ({"gap": GAP, "quarantine_after": 2 * HOUR}, Ends(limit=2 * HOUR)),
        ],
    ),
    "identifier or user": Redefined(
        OR_USER,
        [
            (
                {"gap": 45 * MINUTE},
                replace(OR_USER.ends, gap=_gap_of(GAP, 45 * MINUTE)),
            ),
            (
                {"fallback": Fallback("user_id", 15 * MINUTE), "cuts": (MaxLength(2 * HOUR),)},
                replace(OR_USER.ends, gap=_gap_of(15 * MINUTE, 45 * MINUTE), most=2 * HOUR),
            ),
            (
                {"gap": None, "fallback": Fallback("user_id", HOUR), "cuts": ()},
                replace(OR_USER.ends, gap=_gap_of(HOUR, None)),
            ),
        ],
    ),
}


@settings(max_examples=1, phases=UNSHRUNK)
@given(seed=SEEDS)
@pytest.mark.parametrize("name", CASES)
def test_changed_definitions_equal_the_reference(spark: SparkSession, name: str, seed: int) -> None:
    """After each change the sessions are those of the new definition; so they are after late
    events, corrections and deletions that come then, and manual entries. No silence of a session
    is longer than what is kept of it.

    In every other program all is done as for a large table: rows to remove are found by a filter,
    and events are read again by days.
    """
    case = CASES[name]
    made = shop(spark, case.first)

    def change(shop: FoldedSessions) -> None:
        for options, ends in case.later:
            shop.redefine(ends, **options)
        if shop.query.may_quarantine:
            speak(shop, Random(seed))

    with pytest.MonkeyPatch.context() as patch:
        if seed % 2:
            patch.setattr(key_filter, "pays", lambda *_: True)
            patch.setattr(fold, "LITERAL_RANGES", 1)
        play(made, programs(seed, runs=2), {1: change})
    no_silence_is_longer_than_what_is_kept(made)


def no_silence_is_longer_than_what_is_kept(made: FoldedSessions) -> None:
    """A stored session keeps a silence that is at least as long as any between its events."""
    ends = made.ends
    whose = ends.whose or (lambda row: row["user_id"])
    times: dict[str, set[int]] = {}
    for row in made.events:
        if whose(row) is not None:
            times.setdefault(ends.text(whose(row)), set()).add(row["event_ts"])
    stored = made.tables.read("sessions").select(
        "*",
        micros(F.col("session_start")).alias("start"),
        micros(F.col("session_end")).alias("end"),
        F.col(f"_state.{SILENCE}").alias("kept"),
    )
    for row in map(PySparkRow.asDict, stored.collect()):
        own = made.whose(row)
        here = sorted(when for when in times[own] if row["start"] <= when <= row["end"])
        longest = max((after - before for before, after in pairwise(here)), default=0)
        assert row["kept"] >= longest, (own, here, row["kept"], row["_version"])


def test_only_sessions_that_may_end_elsewhere_are_made_again(
    spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    """
    With a smaller gap those of longer silences are read again; an exact gap does not end one.

    With a larger gap neighbours up to it are merged by their states, and no event is read. The
    table is looked at once: what would join changes and sessions is not asked. If no session ends
    elsewhere, nothing is committed.
    """
    made = FoldedSessions(spark, MERGING)
    made.arrive(
        [
            *named_events("a", "ann", [at("10:00"), at("10:20"), at("10:40")]),
            *named_events("b", "bob", [at("10:00"), at("10:21"), at("10:25")]),
            *named_events("c", "cid", spread("10:00", "18:00", 100)),
            *named_events("d", "dot", [at("10:00"), at("10:40"), at("11:21")]),
        ]
    )
    made.run().arrive(named_events("late", "ann", [at("10:10")]))
    with monkeypatch.context() as patch:
        patch.setattr(Components, "_touched_sessions", None)
        made.redefine(gap=20 * MINUTE)
    assert (made.receipt.read, made.receipt.sessions_split) == (3, 1)
    assert (made.receipt.written, made.receipt.removed) == (2, 1)
    made.run()
    assert of(made, "bob") == table("""
        | start | end   | events |
        |-------|-------|-------:|
        | 10:00 | 10:00 |      1 |
        | 10:21 | 10:25 |      2 |
    """)

    commits = len(made.tables.commits)
    made.redefine(cuts=(LONDON,), ends=Ends(zone=LONDON.zone))
    assert (len(made.tables.commits), made.receipt.read) == (commits, 0)

    made.redefine(gap=40 * MINUTE)
    assert (made.receipt.read, made.receipt.sessions_merged) == (4, 2)  # those of bob and of dot
    assert of(made, "dot") == table("""
        | start | end   | events |
        |-------|-------|-------:|
        | 10:00 | 10:40 |      2 |
        | 11:21 | 11:21 |      1 |
    """)


def of(made: FoldedSessions, user: str) -> list[list[str]]:
    """The sessions of one user, as they are drawn."""
    return drawn([row for row in made.rows() if row["user_id"] == user], "events")


@settings(max_examples=1, phases=UNSHRUNK)
@given(seed=SEEDS)
def test_large_builds_keep_silences(spark: SparkSession, seed: int) -> None:
    """The fast path of large builds keeps silences that are long enough, and not much longer."""
    made = FoldedSessions(spark, COUNT)
    made.arrive(rows_of(programs(seed)))
    times = sorted({row["event_ts"] for row in made.events})
    for borders in ((), sorted(Random(seed).sample(times, 3))):
        rows = build(made.frame(1), made.query, size=LARGE, borders=borders)
        made.tables.create("sessions", rows, Layout(), Stamp("r", "s", 1))
        no_silence_is_longer_than_what_is_kept(made)
        assert rows.where(f"_state.{SILENCE} > {GAP}").count() == 0
