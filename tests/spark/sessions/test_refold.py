"""Sessions of a changed definition equal the reference, and only those that may change are made."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from functools import reduce
from itertools import pairwise
from random import Random
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given, settings
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from tests.declare.shop import project
from tests.reference.drawn import at, drawn, spread, table
from tests.reference.tables import Ends
from tests.spark.sessions.folding import GAP, FoldedSessions
from tests.spark.sessions.random_folds import (
    MERGING,
    READ_AGAIN,
    SEEDS,
    UNSHRUNK,
    named_events,
    play,
    programs,
)
from tests.spark.sessions.test_cuts import OR_USER, WAYS, Way, shop, speak

from infold.analysis.definitions.compare import compare_projects
from infold.core.definition import Derivation
from infold.core.interval import HOUR, MINUTE, SECOND
from infold.core.queries import Fallback, SessionsQuery
from infold.core.sessions import Campaign, Keep, MaxLength, Midnight, StartEvents
from infold.spark import key_filter
from infold.spark.content import column
from infold.spark.sessions import fold
from infold.spark.sessions.build import build
from infold.spark.sessions.components import Components
from infold.spark.sessions.cuts.base import silence_between_slots, slots_with_events
from infold.spark.sessions.derived import DerivedSessions
from infold.spark.sessions.frames import END, SILENCE, START, TIME
from infold.spark.sessions.micro_islands import LONGEST_BUCKET
from infold.spark.stored_types import stored_type
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


CUT = (Campaign(("url", "n"), direct=("/",)), StartEvents("ok"))
CAMPAIGNS = Ends(campaign=WAYS["everything"].ends.campaign)
BOTH = replace(CAMPAIGNS, begins=WAYS["everything"].ends.begins)
HELD = WAYS["quarantine, head, read again"]


def _gap_of(user: int, identifier: int | None) -> Any:
    return lambda of: identifier if of[0] else user


CASES = {
    "gaps, midnights and lengths, numbered, read again": Redefined(
        Way(
            {"numbered": True, "cuts": (LONDON,), "gap": HOUR},
            Ends(zone=LONDON.zone),
            READ_AGAIN,
        ),
        [
            ({"gap": 15 * MINUTE}, Ends(zone=LONDON.zone)),
            ({"cuts": (MaxLength(45 * MINUTE),)}, Ends(most=45 * MINUTE)),
            (
                {"cuts": (LONDON, MaxLength(HOUR)), "gap": GAP},
                Ends(zone=LONDON.zone, most=HOUR),
            ),
        ],
    ),
    "campaigns and start events, with gaps, midnights and lengths": Redefined(
        Way({"cuts": CUT}, BOTH, MERGING),
        [
            ({"gap": 15 * MINUTE}, BOTH),
            (
                {"gap": 45 * MINUTE, "cuts": (LONDON, *CUT, MaxLength(45 * MINUTE))},
                replace(BOTH, zone=LONDON.zone, most=45 * MINUTE),
            ),
            ({"cuts": (*CUT, MaxLength(30 * MINUTE))}, replace(BOTH, most=30 * MINUTE)),
            ({"cuts": (CUT[0], MaxLength(HOUR))}, replace(CAMPAIGNS, most=HOUR)),
            ({"cuts": (UTC_DAYS, CUT[0])}, replace(CAMPAIGNS, zone=UTC_DAYS.zone)),
        ],
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
        WAYS["identifier or user"],
        [
            (
                {"gap": 45 * MINUTE},
                replace(OR_USER, gap=_gap_of(GAP, 45 * MINUTE)),
            ),
            (
                {"fallback": Fallback("user_id", 15 * MINUTE), "cuts": (MaxLength(2 * HOUR),)},
                replace(OR_USER, gap=_gap_of(15 * MINUTE, 45 * MINUTE), most=2 * HOUR),
            ),
            (
                {"gap": None, "fallback": Fallback("user_id", HOUR), "cuts": ()},
                replace(OR_USER, gap=_gap_of(HOUR, None)),
            ),
        ],
    ),
}


@settings(max_examples=1, phases=UNSHRUNK)
@given(seed=SEEDS)
@pytest.mark.parametrize("name", CASES)
def test_changed_definitions_equal_the_reference(spark: SparkSession, name: str, seed: int) -> None:
    """After each change the sessions are those of the new definition; so they are after late
    events, corrections and deletions that come then, and manual entries.

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


BUCKETS = (1, 61, 62, 63, SECOND, 30 * MINUTE, LONGEST_BUCKET)


def test_a_silence_in_a_bucket_is_the_longest_or_a_little_more(spark: SparkSession) -> None:
    """No silence is longer than what is kept; this is longer by two of 62 slots at most."""
    random, cases = Random(1), list[tuple[int, list[int]]]()
    for bucket in BUCKETS:
        slot = -(-bucket // 62)
        for _ in range(400):
            start = random.randint(-(10**6), 10**6) * bucket
            edges = (0, bucket - 1, min(random.randint(0, 61) * slot, bucket - 1))
            drawn = range(random.choice([1, 2, 2, 3, 5, 9, 30]))
            drawn_times = (start + random.choice([*edges, random.randrange(bucket)]) for _ in drawn)
            cases.append((bucket, sorted(drawn_times)))
    rows = [(case, bucket, at) for case, (bucket, times) in enumerate(cases) for at in times]
    events = spark.createDataFrame(
        rows, f"case int, bucket bigint, {TIME} bigint"
    ).localCheckpoint()
    silences = [
        events.where(F.col("bucket") == bucket)
        .groupBy("case")
        .agg(
            F.min(TIME).alias(START),
            F.max(TIME).alias(END),
            F.expr(slots_with_events(bucket)).alias("used"),
        )
        .select("*", *map(F.expr, silence_between_slots("used", bucket)))
        .select("case", SILENCE)
        for bucket in BUCKETS
    ]
    found = reduce(DataFrame.union, silences).collect()
    assert len(found) == len(cases)
    for case, kept in found:
        bucket, times = cases[case]
        longest = max((after - before for before, after in pairwise(times)), default=0)
        length = times[-1] - times[0]
        assert longest <= kept <= length
        assert length <= bucket // 4 or kept <= longest + 2 * -(-bucket // 62), (times, kept)


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
        if derived == 6:
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
