"""Random events for sessions, with folds and large builds that equal the reference."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from decimal import Decimal
from random import Random
from types import MappingProxyType
from typing import Any

from hypothesis import Phase
from hypothesis import strategies as st
from tests.reference import aggregates as agg
from tests.reference.compare import difference
from tests.reference.drawn import at, events_of
from tests.reference.world import Row
from tests.spark.sessions.folding import GAP, Call, FoldedSessions

from infold.core.interval import MINUTE, SECOND
from infold.core.queries import SessionsQuery
from infold.spark.sessions.build import QUICK_BUILD_EVENTS, build
from infold.spark.sessions.micro_islands import ColumnValues, no_column_values
from infold.spark.tables.port import Layout, Stamp

D = Decimal


COUNT = {"events": Call("count(*)", agg.count(), "count")}


def named(call: str, reference: agg.Aggregate, argument: str, **more: Any) -> Call:
    """A call of one argument, with what analysis would make of it."""
    return Call(reference.sql, reference, call, argument, **more)


MERGING = {
    "events": Call("count(*)", agg.count(), "count"),
    "urls": named("count", agg.count_of("url"), "url"),
    "good": named("count_if", agg.count_if("ok", lambda row: row["ok"]), "ok"),
    "ns": named("sum", agg.total("n"), "n"),
    "bigs": named("sum", agg.total("big"), "big"),
    "revenue": named("sum", agg.total("amount"), "amount"),
    "mean_n": named("avg", agg.mean("n"), "n"),
    "mean_amount": named("avg", agg.mean("amount", scale=2), "amount"),
    "least_url": named("min", agg.least("url"), "url"),
    "most_amount": named("max", agg.greatest("amount"), "amount"),
    "least_x": named("min", agg.least("x"), "x"),
    "latest": named("max", agg.greatest("seen"), "seen"),
    "every_ok": named("bool_and", agg.every("ok", lambda row: row["ok"]), "ok"),
    "any_ok": named("bool_or", agg.some("ok", lambda row: row["ok"]), "ok"),
    "entry": named("first", agg.first("url"), "url"),
    "exit": named("last", agg.last("url"), "url"),
    "first_url": named("first", agg.first_known("url"), "url", ignore_nulls=True),
    "last_url": named("last", agg.last_known("url"), "url", ignore_nulls=True),
    "first_seen": named("first", agg.first("seen"), "seen"),
    "paid": Call(
        "count(*) FILTER (WHERE n = 2)",
        agg.count().where("n = 2", lambda row: row["n"] == 2),
        "count",
        None,
        "n = 2",
    ),
    "paid_at": Call(
        "last(url) FILTER (WHERE n = 2)",
        agg.last("url").where("n = 2", lambda row: row["n"] == 2),
        "last",
        "url",
        "n = 2",
    ),
}

FEW = {name: MERGING[name] for name in ("events", "ns", "mean_amount", "entry", "last_url", "paid")}
"""A kind of each: what sessions end with does not depend on which aggregates they have."""


READ_AGAIN = {
    "events": Call("count(*)", agg.count(), "count"),
    "entry": named("first", agg.first("url"), "url"),
    "xs": named("sum", agg.total("x"), "x"),
    "mean_x": named("avg", agg.mean("x"), "x"),
    "ns": Call("count(DISTINCT n)", agg.count_distinct("n"), "other", "n", distinct=True),
    "urls": Call("collect_list(url)", agg.listed("url"), "other", "url"),
    "half": Call("percentile(n, 0.5)", agg.percentile("n", 0.5), "other", "n"),
}


def named_events(prefix: str, user: str, times: Iterable[int]) -> list[Row]:
    """Events of one user with ids of their own."""
    return [
        {**row, "event_id": f"{user}.{prefix}{number}"}
        for number, row in enumerate(events_of(times, user))
    ]


BASE = at("2019-10-22T22:30:00")
"""Half an hour before midnight in London, and four before that of Newfoundland."""


SEEDS = st.integers(0, 2**32 - 1).filter(bool)
"""
What a test's random cases follow from: Hypothesis draws few large values, and the least first.
"""


def event(random: Random) -> Row:
    """Content and time of one event, on a coarse grid so that ties and exact gaps are common."""
    pick = random.choice
    return {
        "event_ts": BASE + random.randint(0, 18) * 15 * MINUTE + pick([0, 0, 1, -1]),
        "url": pick([None, "/", "/a", "/pay", "é"]),
        "n": pick([None, *range(-3, 4)]),
        "big": pick([None, 2**55, -(2**55), 1, 7]),  # a hundred of them fit
        "amount": pick([None, D(random.randint(-(10**6), 10**6)) / 100]),
        "x": pick([None, 0.1, 0.2, -0.3, 1e9, 5.0, 0.0]),
        "ok": pick([None, True, False]),
        "seen": pick([None, BASE + random.randint(0, 5) * SECOND]),
    }


Program = list[list[tuple[str, Row, int]]]
"""What one user's events do in each of some runs: come (+), go (-), or change (~)."""


def programs(seed: int, *, users: int = 60, runs: int = 3) -> list[Program]:
    """Programs of many users: their number costs next to nothing, a run of Spark's does."""
    random = Random(seed)

    def step() -> tuple[str, Row, int]:
        return random.choice("+++-~"), event(random), random.randint(0, 50)

    return [
        [[step() for _ in range(random.randint(0, 4))] for _ in range(runs)] for _ in range(users)
    ]


UNSHRUNK = (Phase.explicit, Phase.reuse, Phase.generate)
"""A failing example shows one user's difference already; making it smaller takes Spark too long."""


def play(
    shop: FoldedSessions,
    users: list[Program],
    speak: Mapping[int, Callable[[FoldedSessions], None]] = MappingProxyType({}),
) -> None:
    """Run every user's program at once, comparing after each of the runs."""
    number = 0
    whose = [None if who % 20 == 7 else f"u{who}" for who in range(len(users))]
    for run in range(len(users[0])):
        here = {(row["event_id"], row["event_ts"]): row for row in shop.events}
        added: list[Row] = []
        gone: list[Row] = []
        for who, program in enumerate(users):
            user = whose[who]
            for what, content, pick in program[run]:
                own = [row for row in here.values() if row["user_id"] == user]
                if what == "+" or not own:
                    number += 1
                    # Ids in no order, so that ties are not broken by arrival.
                    name = f"e{number * 7919 % 1000:03}.{number}"
                    added.append({"event_id": name, "user_id": user, **content})
                    continue
                old = own[pick % len(own)]
                del here[old["event_id"], old["event_ts"]]
                gone.append(old)
                if what == "~":
                    added.append({**content, **{k: old[k] for k in ("event_id", "user_id")}})
        if run in speak:
            speak[run](shop)
        shop.arrive(added, gone).run()


def rows_of(users: list[Program]) -> list[Row]:
    """All events that come, whatever becomes of them."""
    found: list[Row] = []
    for who, program in enumerate(users):
        for _, content, _ in (step for run in program for step in run):
            name = f"e{len(found) * 7919 % 1000:03}.{len(found)}"
            found.append({"event_id": name, "user_id": f"u{who}", **content})
    return found


def large_builds_equal_the_reference(
    shop: FoldedSessions, query: SessionsQuery, seed: int, values: ColumnValues = no_column_values
) -> None:
    """In one piece, and in slices of time with sessions across their borders."""
    times = sorted({row["event_ts"] for row in shop.events})
    for borders in ((), sorted(Random(seed).sample(times, 3))):
        table = build(shop.frame(1), query, size=QUICK_BUILD_EVENTS, values=values, borders=borders)
        shop.tables.create("sessions", table, Layout(), Stamp("r", "s", 1))
        shop.check_silences(GAP if query.gap == GAP else None)
        found = shop.rows()
        for row in found:
            row.pop("session_id")
        assert difference(shop.expected(), found) == "", borders
