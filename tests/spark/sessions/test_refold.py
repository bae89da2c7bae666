"""Sessions of a changed definition equal the reference, and only those that may change are made."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from itertools import pairwise
from random import Random
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given, settings
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import Row as PySparkRow
from pyspark.sql import functions as F
from tests.declare.shop import project
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

from infold.analysis.definitions.compare import compare_projects
from infold.core.definition import Derivation
from infold.core.interval import HOUR, MINUTE, SECOND
from infold.core.queries import Fallback, SessionsQuery
from infold.core.sessions import Campaign, DeclaredCut, Keep, MaxLength, Midnight, StartEvents
from infold.spark import key_filter
from infold.spark.content import column, micros
from infold.spark.sessions import fold
from infold.spark.sessions.build import QUICK_BUILD_EVENTS, build
from infold.spark.sessions.components import Components
from infold.spark.sessions.cuts.base import silence_between_slots, slots_with_events
from infold.spark.sessions.derived import DerivedSessions
from infold.spark.sessions.frames import END, SILENCE, START, TIME
from infold.spark.sessions.micro_islands import LONGEST_BUCKET
from infold.spark.stored_types import stored_type
from infold.spark.tables.port import Layout, Stamp
from infold.spark.verify import sessions_from_scratch as from_scratch

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark


LONDON, UTC_DAYS = Midnight("Europe/London"), Midnight("UTC")


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
        ((UTC_DAYS, CUT[0]), replace(CAMPAIGNS, zone=UTC_DAYS.zone)),
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
        rows = build(made.frame(1), made.query, size=QUICK_BUILD_EVENTS, borders=borders)
        made.tables.create("sessions", rows, Layout(), Stamp("r", "s", 1))
        no_silence_is_longer_than_what_is_kept(made)
        assert rows.where(f"_state.{SILENCE} > {GAP}").count() == 0


@pytest.mark.parametrize("bucket", [1, 61, 62, 63, SECOND, 30 * MINUTE, LONGEST_BUCKET])
def test_a_silence_in_a_bucket_is_the_longest_or_a_little_more(
    spark: SparkSession, bucket: int
) -> None:
    """No silence is longer than what is kept; this is longer by two of 62 slots at most."""
    random = Random(bucket)
    slot = -(-bucket // 62)
    cases: list[list[int]] = []
    for _ in range(400):
        start = random.randint(-(10**6), 10**6) * bucket
        edges = (0, bucket - 1, min(random.randint(0, 61) * slot, bucket - 1))
        drawn = range(random.choice([1, 2, 2, 3, 5, 9, 30]))
        drawn_times = (start + random.choice([*edges, random.randrange(bucket)]) for _ in drawn)
        cases.append(sorted(drawn_times))
    rows = [(case, at) for case, times in enumerate(cases) for at in times]
    found = (
        spark.createDataFrame(rows, f"case int, {TIME} bigint")
        .groupBy("case")
        .agg(
            F.min(TIME).alias(START),
            F.max(TIME).alias(END),
            F.expr(slots_with_events(bucket)).alias("used"),
        )
        .select("*", *map(F.expr, silence_between_slots("used", bucket)))
        .select("case", SILENCE)
    )
    for case, kept in found.collect():
        times = cases[case]
        longest = max((after - before for before, after in pairwise(times)), default=0)
        length = times[-1] - times[0]
        assert longest <= kept <= length
        assert length <= bucket // 4 or kept <= longest + 2 * slot, (times, kept)


PROJECT = """
name: shop
sources:
  raw.clicks:
    path: landing/*.json
    format: json
    event_time_column: ts
    columns: {id: int, who: string, ts: timestamp, day: date, amount: "decimal(18,2)",
      page: smallint, real: double, list: array<smallint>}
"""
CLICKS = """---
materialization: events
unique_key: [id]
timeseries: {event_time_column: ts, granularity: day}
---
SELECT id, who, ts, day, amount, page, real, list FROM raw.clicks
"""
TYPES = (
    "id int, who string, ts timestamp, day date, amount decimal(18,2), page smallint, real double,"
    " list array<smallint>"
)
KEYS = (
    "user: who, gap: 30 minutes",
    "user: who, gap: 30 minutes, session_number: true, quarantine_after: 50 minutes",
    "user: who, gap: 1 hour, quarantine_after: 40 minutes, keep: head",
    "user: who, gap: 1 hour, max_length: 40 minutes",
    "identifier: page, user: who",
    "identifier: page, user: who, gap: 30 minutes, session_number: true",
    "user: page, gap: 1 hour, cuts: {campaign: [day], midnight: Europe/London}",
    "user: real, gap: 1 hour",
    "identifier: [day, page], user: who, without_identifier: {gap: 20 minutes}",
    "user: upper(who), gap: 1 hour",
)
AGGREGATES = (
    "count(*)",
    "count(amount)",
    "count(who) FILTER (WHERE amount > 1)",
    "sum(amount)",
    "sum(page)",
    "sum(id) FILTER (WHERE who LIKE 'a%' AND page > 2)",
    "avg(amount)",
    "avg(id) FILTER (WHERE page > 2 AND who LIKE 'a%')",
    "avg(page)",
    "min(amount)",
    "max(real)",
    "min(page)",
    "bool_or(amount > 2)",
    "max(amount > 2)",
    "count_if(amount > 2)",
    "first(who)",
    "first(page)",
    "last(real)",
    "last(amount, true)",
    "first(list) FILTER (WHERE page > 1)",
    "sum(real)",
    "avg(real)",
    "count(DISTINCT page)",
    "collect_list(page)",
)
SUMS = {"avg(amount)": "sum(amount) / nullif(count(amount), 0)", "sum(page)": "avg(page)"}
"""What else follows from the same states."""
MORE = (
    "isnull({0})",
    "concat('-', cast({0} AS string))",
    "coalesce(cast({0} AS string), '?')",
    "timestampdiff(SECOND, session_start, session_end)",
    "{0}",
)
CONDITIONS = (
    "{0} IS NOT NULL",
    "cast({0} AS string) <> '3'",
    "coalesce(length(cast({0} AS string)), 0) < 4",
    "NOT (cast({0} AS string) LIKE 'b%')",
)


def some(rng: Random, of: Iterable[Any], share: float = 0.4) -> list[Any]:
    """A few of some values, in another order."""
    found = [one for one in of if rng.random() < share]
    rng.shuffle(found)
    return found


def text(keys: str, items: list[str], where: list[str]) -> str:
    """A sessions model."""
    condition = f" WHERE {' AND '.join(where)}" if where else ""
    head = f"---\nmaterialization: sessions\nsessions: {{{keys}}}\n---\n"
    return f"{head}SELECT {', '.join(items)} FROM clicks{condition}\n"


def drawn_change(rng: Random, keys: str) -> tuple[str, str]:
    """A model before and after a change."""
    calls = some(rng, AGGREGATES) or ["count(*)"]
    shown = [rng.choice(MORE[:3]) if rng.random() < 0.3 else "{0}" for _ in calls]
    pairs = enumerate(zip(calls, shown, strict=True))
    old = [f"{words.format(call)} AS c{at}" for at, (call, words) in pairs]
    new = some(rng, old, 0.7)
    for number, call in enumerate(some(rng, calls)):
        new.append(f"{rng.choice(MORE).format(SUMS.get(call, call))} AS z{number}")
    rng.shuffle(new)
    where = some(rng, ["page <> 7", "ts > TIMESTAMP '2024-03-01 10:20:00'"])
    owner = keys.split()[1].strip(",")
    added = [one.format(owner) for one in some(rng, CONDITIONS, 0.3)] if owner.isalpha() else []
    return text(keys, old, where), text(keys, new or ["count(*) AS n"], [*where, *added])


def clicks(spark: SparkSession, rng: Random) -> DataFrame:
    """Events with many missing values, over three days."""
    reals = [float("nan"), -0.0, 0.0, 1 / 3, None]
    amounts = [None, *(Decimal(one) for one in ("0.00", "1.55", "2.50", "-3.20", "100.01"))]
    rows = []
    for number in range(150):
        hours = timedelta(days=rng.randrange(3), minutes=10 * 60 + rng.randrange(180))
        time = datetime(2024, 3, 1, tzinfo=UTC) + hours
        who = rng.choice(["ann", "Ann", "bob", "zoë", None])
        day = rng.choice([time.date(), None])
        page = rng.choice([None, *range(9)])
        rows.append(
            (number, who, time, day, rng.choice(amounts), page, rng.choice(reals), [page, 1])
        )
    return spark.createDataFrame(rows, TYPES).localCheckpoint()


def changes(rng: Random) -> Iterator[tuple[str, SessionsQuery, SessionsQuery, Derivation]]:
    """Drawn changes that follow from stored states: what they are, both queries, and how."""
    while True:
        old, new = drawn_change(rng, rng.choice(KEYS))
        both = [
            project({"infold.yml": PROJECT, "models/clicks.sql": CLICKS, "models/visits.sql": sql})
            for sql in (old, new)
        ]
        before, after = (one["visits"].query for one in both)
        found = compare_projects(both[0].nodes, both[0].sources, both[1].nodes, both[1].sources)
        for one in found:
            if one.derivation is not None and before is not None and after is not None:
                yield f"{old}\n{new}", before, after, one.derivation


def as_stored(rows: DataFrame) -> DataFrame:
    """Rows with the types that their table has."""
    fields = ((field.name, stored_type(field.dataType)) for field in rows.schema)
    return rows.select(*(column(name).cast(type_).alias(name) for name, type_ in fields))


def shown(rows: DataFrame) -> list[str]:
    """Rows as text, without what two builds need not have in common."""
    found = []
    for row in as_stored(rows).toArrow().to_pylist():
        row.pop("_version")
        row["_state"].pop("_silence", None)  # as long as any; not always the longest
        found.append(repr(row))
    return sorted(found)


def test_derived_sessions_are_those_built_afresh(spark: SparkSession) -> None:
    """Whatever follows from states is what a build gives."""
    rng = Random(3)
    events, derived = clicks(spark, rng), 0
    for what, before, after, found in changes(rng):
        stored = as_stored(build(events, before)).localCheckpoint()
        assert found.sessions is not None
        made = DerivedSessions(stored, events, found, found.sessions, after, 2)
        if made.is_exact():
            assert shown(made.rows()) == shown(build(events, after)), what
            derived += 1
        else:
            assert "real" in what, what  # sums of doubles have no state
        if derived == 8:
            break


def test_a_negative_zero_is_a_zero(spark: SparkSession) -> None:
    """0.0 and -0.0 are equal, so min and max give 0.0, in the table and in its rebuild."""
    items = [f"cast({call}(real) AS string) AS {call}_real" for call in ("min", "max")]
    made = project(
        {
            "infold.yml": PROJECT,
            "models/clicks.sql": CLICKS,
            "models/visits.sql": text(KEYS[0], items, ["real = 0"]),
        }
    )
    query = made["visits"].query
    assert query is not None
    events = clicks(spark, Random(1))

    rows = build(events, query).select("min_real", "max_real").distinct().collect()
    again = from_scratch.sessions(events, query).select("min_real", "max_real").distinct()

    assert [tuple(row) for row in rows] == [("0.0", "0.0")]
    assert again.collect() == rows
