"""Sessions by identifier, and sessions cut during activity, equal the reference."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from random import Random
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given, settings
from tests.reference import aggregates as agg
from tests.reference.compare import difference, stored
from tests.reference.drawn import at, drawn, spread, table
from tests.reference.tables import Ends, Entry
from tests.reference.world import Row
from tests.spark.sessions.folding import GAP, Call, FoldedSessions
from tests.spark.sessions.random_folds import (
    MERGING,
    READ_AGAIN,
    SEEDS,
    UNSHRUNK,
    large_builds_equal_the_reference,
    named_events,
    play,
    programs,
    rows_of,
)

from infold.core.functions import FunctionCode
from infold.core.interval import HOUR, MINUTE
from infold.core.queries import Aggregate, Fallback, Output
from infold.core.session_cuts import Campaign, MaxLength, Midnight, Nulls, Rule, StartEvents
from infold.core.session_rules import Keep
from infold.spark.verify import sessions_from_scratch

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark


@dataclass(frozen=True)
class Way:
    """One way to make sessions, as a query says it and as the reference does."""

    query: Mapping[str, Any]
    ends: Ends
    calls: Mapping[str, Call] = field(default_factory=lambda: MERGING)


def _begins(row: Row) -> bool:
    return bool(row["ok"])


def _campaign(row: Row) -> tuple[Any, ...] | None:
    url, n = (None if row["url"] == "/" else row["url"]), row["n"]
    return None if url is None and n is None else (url, n)


def _named(row: Row) -> tuple[Any, ...]:
    return (row["url"],)


def _page(row: Row) -> str | None:
    page: str | None = row["url"]
    return page


PAGES = """
from datetime import timedelta

from infold import session_rule


@session_rule(parameters={"url": "STRING", "ok": "BOOLEAN"})
def pages(events):
    seen, first = 0, None
    for event in events:
        first = first or event["time"]
        yield seen >= 3 and event["time"] - first >= timedelta(minutes=2)
        seen += 2 if event["ok"] else event["url"] is not None
"""
RULE = Rule(
    "named_struct('url', url, 'ok', ok)",
    FunctionCode(
        "infold__python__pages__of_cuts",
        "pages",
        ("STRING", "BOOLEAN"),
        "ARRAY<BOOLEAN>",
        (("functions/pages.py", PAGES),),
        "session",
    ),
)


def _pages(session: Sequence[Row], instant: Sequence[Row]) -> bool:
    """
    What the rule says of the events of an instant: each is judged by all before it.

    They only ever see more pages, so the last one decides.
    """
    before = [*session, *instant[:-1]]
    seen = sum(2 if row["ok"] else row["url"] is not None for row in before)
    return seen >= 3 and instant[0]["event_ts"] - session[0]["event_ts"] >= 2 * MINUTE


MIDNIGHT = Way({"cuts": (Midnight("Europe/London"),)}, Ends(zone="Europe/London"))
STARTS = Way({"cuts": (StartEvents("ok"),)}, Ends(begins=_begins))
CAMPAIGNS = Way({"cuts": (Campaign(("url", "n"), direct=("/",)),)}, Ends(campaign=_campaign))
LONGEST = Way({"cuts": (MaxLength(HOUR),)}, Ends(most=HOUR))


def _either(row: Row) -> tuple[str | None, str | None] | None:
    """Its identifier, else its user; an event may have neither."""
    if row["url"]:
        return row["url"], None
    return None if row["user_id"] is None else (None, row["user_id"])


WAYS = {
    "midnight": MIDNIGHT,
    "start events": STARTS,
    "campaign": CAMPAIGNS,
    "quarantine, head, campaign, nulls change": Way(
        {
            "cuts": (Campaign(("url",), Nulls.CHANGE),),
            "quarantine_after": 20 * MINUTE,
            "keep": Keep.HEAD,
        },
        Ends(campaign=_named, limit=20 * MINUTE, head=True),
    ),
    "quarantine, campaign and start events": Way(
        {"cuts": (Campaign(("url",)), StartEvents("ok")), "quarantine_after": 40 * MINUTE},
        Ends(campaign=_page, begins=_begins, limit=40 * MINUTE),
    ),
    "rule": Way({"cuts": (RULE,)}, Ends(rule=_pages)),
    "rule, campaign, quarantine, head": Way(
        {
            "cuts": (Campaign(("url",)), RULE),
            "quarantine_after": 20 * MINUTE,
            "keep": Keep.HEAD,
        },
        Ends(campaign=_page, rule=_pages, limit=20 * MINUTE, head=True),
    ),
    "longest": LONGEST,
    "everything": Way(
        {
            "cuts": (
                Midnight("Europe/London"),
                Campaign(("url", "n"), direct=("/",)),
                StartEvents("ok"),
                MaxLength(45 * MINUTE),
            ),
        },
        Ends(zone="Europe/London", campaign=_campaign, begins=_begins, most=45 * MINUTE),
    ),
    "quarantine": Way({"quarantine_after": HOUR}, Ends(limit=HOUR)),
    "quarantine, head": Way(
        {"quarantine_after": HOUR, "keep": Keep.HEAD}, Ends(limit=HOUR, head=True)
    ),
    "quarantine, head, read again": Way(
        {"quarantine_after": HOUR, "keep": Keep.HEAD}, Ends(limit=HOUR, head=True), READ_AGAIN
    ),
    "quarantine by identifier, start events": Way(
        {
            "user": "session_identifier",
            "owner_sql": "url",
            "gap": None,
            "quarantine_after": HOUR,
            "keep": Keep.HEAD,
            "cuts": (StartEvents("ok"),),
            "chosen_user": Output("user_id", "_user"),
        },
        Ends(whose=lambda row: row["url"], begins=_begins, limit=HOUR, head=True),
    ),
    "quarantine by identifier": Way(
        {
            "user": "session_identifier",
            "owner_sql": "url",
            "gap": None,
            "quarantine_after": 90 * MINUTE,
            "chosen_user": Output("user_id", "_user"),
        },
        Ends(whose=lambda row: row["url"], limit=90 * MINUTE),
    ),
    "numbered": Way({"numbered": True}, Ends()),
    "numbered, cut, quarantine": Way(
        {
            "numbered": True,
            "quarantine_after": HOUR,
            "cuts": (Midnight("Europe/London"),),
        },
        Ends(limit=HOUR, zone="Europe/London"),
        READ_AGAIN,
    ),
    "identifier": Way(
        {"user": "session_identifier", "owner_sql": "url", "gap": None},
        Ends(whose=lambda row: row["url"]),
    ),
    "identifier and gap": Way(
        {"user": "session_identifier", "owner_sql": "coalesce(url, cast(n AS string))"},
        Ends(whose=lambda row: row["url"] or (None if row["n"] is None else str(row["n"]))),
    ),
    "identifier and longest": Way(
        {
            "user": "session_identifier",
            "owner_sql": "url",
            "gap": None,
            "cuts": (MaxLength(2 * HOUR),),
        },
        Ends(whose=lambda row: row["url"], most=2 * HOUR),
    ),
    "identifier or user": Way(
        {
            "user": "session_identifier",
            "owner_sql": "url",
            "gap": None,
            "fallback": Fallback("user_id", GAP),
            "chosen_user": Output("user_id", "_user"),
        },
        Ends(
            whose=_either,
            shown=lambda of: of[0],  # type: ignore[index]
            gap=lambda of: None if of[0] else GAP,  # type: ignore[index]
            text=lambda of: f"i{of[0]}" if of[0] else f"u{of[1]}",
        ),
    ),
}


def shop(spark: SparkSession, way: Way) -> FoldedSessions:
    """A shop whose sessions are made that way."""
    found = FoldedSessions(spark, way.calls, ends=way.ends, **way.query)
    if found.query.chosen_user is not None:
        user = Aggregate("_user", "first", "user_id", None, True, "first(user_id, true)")
        found.query = replace(found.query, aggregates=(*found.query.aggregates, user))
        found.calls = {"user_id": Call("", agg.first_known("user_id")), **way.calls}
    return found


@pytest.mark.parametrize("name", ["quarantine, head", "quarantine, head, read again"])
def test_the_rest_of_a_long_session_is_found_from_its_far_end(
    spark: SparkSession, name: str
) -> None:
    """Events added and removed far behind the head of a
    long session neither repeat nor lose its rest.
    """
    made = shop(spark, WAYS[name])
    rows = named_events("s", "ann", spread("10:00", "16:00", 25))
    made.arrive(rows).run()
    assert drawn(made.rows(), "events") == table("""
        | start | end   | events |
        |-------|-------|-------:|
        | 10:00 | 11:00 |      5 |
    """)
    made.arrive(gone=rows[-1:]).run()
    made.arrive(named_events("t", "ann", [at("16:10"), at("16:50")])).run()
    assert [(one.end, one.events) for one in made.ledger.held.values()] == [(at("16:10"), 25)]
    made.arrive(gone=[row for row in made.events if row["event_ts"] > at("11:00")]).run()
    assert made.ledger.held == {}
    assert len(made.rows()) == 1


CUT_AND_HELD = WAYS["quarantine, campaign and start events"]


def events_of_ann(prefix: str, times: list[int], **content: Any) -> list[Row]:
    """Events of ann with the same content."""
    return [{**row, **content} for row in named_events(prefix, "ann", times)]


class TestCutAndQuarantined:
    """A session in quarantine that a campaign or a marked event could end."""

    def test_only_its_new_events_are_read(self, spark: SparkSession) -> None:
        """New events of the same campaign or of none, at
        its end or inside, are read without the old ones.
        """
        made = shop(spark, CUT_AND_HELD).arrive(
            events_of_ann("s", spread("10:00", "16:00", 25), url="/a")
        )
        made.run().arrive(events_of_ann("later", [at("16:10"), at("16:20")], url="/a"))
        made.run()
        assert (made.receipt.read, made.receipt.written) == (2, 0)
        made.arrive(events_of_ann("inside", [at("12:05")])).run()
        assert (made.receipt.read, made.receipt.written) == (1, 0)
        [held] = made.ledger.held.values()
        assert (held.end, held.events) == (at("16:20"), 28)

    def test_another_campaign_ends_it(self, spark: SparkSession) -> None:
        """An event of another campaign, or one that begins
        a session, ends it, inside and at its end.
        """
        made = shop(spark, CUT_AND_HELD).arrive(
            events_of_ann("s", spread("10:00", "16:00", 25), url="/a")
        )
        made.run().arrive(events_of_ann("b", [at("16:10")], url="/b")).run()
        assert [row["session_start"] for row in made.rows()] == [at("16:10")]
        made.arrive(events_of_ann("begins", [at("15:30")], ok=True)).run()
        assert [row["session_start"] for row in made.rows()] == [at("15:30"), at("16:10")]

    def test_the_campaign_before_it_continues(self, spark: SparkSession) -> None:
        """An event of the campaign in force when the session began is no change of campaign."""
        made = shop(spark, CUT_AND_HELD).arrive(
            [
                *events_of_ann("first", [at("10:00")], url="/a"),
                *events_of_ann("begins", [at("10:10")], ok=True),
                *events_of_ann("s", spread("10:20", "12:00", 20)),
            ]
        )
        made.run().arrive(events_of_ann("same", [at("12:10")], url="/a")).run()
        assert [(one.start, one.end) for one in made.ledger.held.values()] == [
            (at("10:10"), at("12:10"))
        ]
        # read from its start again, which its own row in the ledger alone can tell about
        made.arrive(gone=events_of_ann("s", [at("10:20")])).run()
        assert [(one.start, one.end) for one in made.ledger.held.values()] == [
            (at("10:10"), at("12:10"))
        ]


def test_a_session_with_a_manual_entry_keeps_the_campaign_before_it(
    spark: SparkSession,
) -> None:
    """A manual entry on a session does not lose the
    campaign of the session before it, in another cell.
    """
    made = shop(spark, CUT_AND_HELD).arrive(
        [
            *events_of_ann("before", [at("23:40")], url="/a"),
            *events_of_ann("begins", [at("24 00:05")], ok=True),
            *events_of_ann("same", [at("24 00:15")], url="/a"),
        ]
    )
    _, (of, start, end) = made.run().spans()
    made.say(Entry(of, True, start, end)).run()
    assert [(one.start, one.end) for one in made.ledger.held.values()] == [(start, end)]


def test_any_number_of_manual_entries(spark: SparkSession) -> None:
    """The fold and the reference apply thousands of manual entries."""
    made = shop(spark, WAYS["quarantine"]).arrive(named_events("s", "ann", [at("10:00")]))
    made.arrive(named_events("s", "bob", spread("10:00", "12:00", 9))).run()
    made.say(*(Entry(f"u{number}", True) for number in range(3_000)), Entry("bob", False))
    made.run()
    check_rebuild(made)
    assert len(made.rows()) == 2


def check_rebuild(made: FoldedSessions) -> None:
    """The judge of the fold agrees with the reference."""
    query = replace(made.query, entries=tuple(made.ledger.manual_entries))
    frame = sessions_from_scratch.sessions(made.frame(len(made.versions) - 1), query)
    rows = stored(frame.toArrow().to_pylist())
    for row in rows:
        row.pop("session_id")
    assert difference(made.expected(), rows) == ""
    held = sessions_from_scratch.quarantined(made.frame(len(made.versions) - 1), query).collect()
    assert {tuple(row) for row in held} == {row[:4] for row in made.expected_held()}


def speak(made: FoldedSessions, random: Random) -> None:
    """Say something of sessions there are: of some, or of all of the same."""
    spans = made.spans() or [("u1", 0, 0)]
    for of, start, end in random.choices(spans, k=12):
        span = random.choice([(), (start, end), (start, end)])
        made.say(Entry(of, random.choice([True, False, None]), *span))


@settings(max_examples=1, phases=UNSHRUNK)
@given(seed=SEEDS)
@pytest.mark.parametrize("name", WAYS)
def test_folds_equal_the_reference(spark: SparkSession, name: str, seed: int) -> None:
    """Folds equal a rebuild for every kind of session and cut.

    So they do when manual entries put sessions into quarantine
    and release them, before the build or before the fold.
    """
    made = shop(spark, WAYS[name])
    some = partial(speak, random=Random(seed))
    play(made, programs(seed, runs=2), {1: some, 0: some} if seed % 2 else {1: some})
    check_rebuild(made)


@settings(max_examples=1, phases=UNSHRUNK)
@given(seed=SEEDS)
@pytest.mark.parametrize(
    "name",
    [
        "midnight",
        "longest",
        "identifier",
        "identifier and longest",
        "identifier or user",
        "quarantine",
        "quarantine, head",
    ],
)
def test_a_large_build_equals_the_reference(spark: SparkSession, name: str, seed: int) -> None:
    """The fast path of large builds knows identifiers, midnights and the maximum length."""
    made = shop(spark, WAYS[name])
    made.arrive(rows_of(programs(seed)))
    speak(made, Random(seed))
    query = replace(made.query, entries=tuple(made.ledger.manual_entries))
    large_builds_equal_the_reference(made, query, seed)
