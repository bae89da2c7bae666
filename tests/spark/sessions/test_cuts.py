"""Sessions by identifier, cut during activity, and of several definitions equal the reference."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import pairwise
from random import Random
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given, settings
from tests.reference.compare import difference, stored
from tests.reference.drawn import at, drawn, spread, table
from tests.reference.tables import Ends, Entry
from tests.reference.world import Row
from tests.spark.sessions.folding import GAP, USER, Call, FoldedSessions, Held
from tests.spark.sessions.random_folds import (
    COUNT,
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
from infold.core.interval import HOUR, MAX, MIN, MINUTE, Granularity, Interval, Ranges
from infold.core.plan import Action, Step
from infold.core.ports import Announce
from infold.core.project import Project, Stretch
from infold.core.queries import Fallback, SessionsQuery
from infold.core.record import Outcome, Receipt
from infold.core.sessions import Campaign, Keep, MaxLength, Midnight, Nulls, Rule, StartEvents
from infold.core.trace import EarlierCells, Trace
from infold.spark.sessions import in_force
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


def _either(row: Row) -> tuple[str | None, str | None] | None:
    """Its identifier, else its user; an event may have neither."""
    if row["url"]:
        return row["url"], None
    return None if row["user_id"] is None else (None, row["user_id"])


BY_PAGE = {"user": "session_identifier", "owner_sql": "url", "gap": None}
WAYS = {
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
    "rule, campaign, quarantine, head": Way(
        {
            "cuts": (Campaign(("url",)), RULE),
            "quarantine_after": 20 * MINUTE,
            "keep": Keep.HEAD,
        },
        Ends(campaign=_page, rule=_pages, limit=20 * MINUTE, head=True),
    ),
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
            **BY_PAGE,
            "quarantine_after": HOUR,
            "keep": Keep.HEAD,
            "cuts": (StartEvents("ok"),),
            "chosen_user": USER,
        },
        Ends(whose=lambda row: row["url"], begins=_begins, limit=HOUR, head=True),
    ),
    "quarantine by identifier": Way(
        {
            **BY_PAGE,
            "quarantine_after": 90 * MINUTE,
            "chosen_user": USER,
        },
        Ends(whose=lambda row: row["url"], limit=90 * MINUTE),
    ),
    "numbered, cut, quarantine": Way(
        {
            "numbered": True,
            "quarantine_after": HOUR,
            "cuts": (Midnight("Europe/London"),),
        },
        Ends(limit=HOUR, zone="Europe/London"),
        READ_AGAIN,
    ),
    "identifier and gap": Way(
        {"user": "session_identifier", "owner_sql": "coalesce(url, cast(n AS string))"},
        Ends(whose=lambda row: row["url"] or (None if row["n"] is None else str(row["n"]))),
    ),
    "identifier, midnight and longest": Way(
        {**BY_PAGE, "cuts": (Midnight("Europe/London"), MaxLength(2 * HOUR))},
        Ends(whose=lambda row: row["url"], zone="Europe/London", most=2 * HOUR),
    ),
    "identifier or user": Way(
        {
            **BY_PAGE,
            "fallback": Fallback("user_id", GAP),
            "chosen_user": USER,
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
    return FoldedSessions(spark, way.calls, ends=way.ends, **way.query)


def events_of(who: str, prefix: str, times: list[int], **content: Any) -> list[Row]:
    """Events of one user with the same content."""
    return [{**row, **content} for row in named_events(prefix, who, times)]


def held_of(made: FoldedSessions, who: str) -> list[tuple[int, int, int]]:
    """The sessions of a user in quarantine: first and last instants, and events."""
    return sorted(
        (one.start, one.end, one.events) for one in made.ledger.held.values() if one.owner == who
    )


def starts_of(made: FoldedSessions, who: str) -> list[int]:
    """Where the stored sessions of a user begin."""
    return sorted(row["session_start"] for row in made.rows() if row["user_id"] == who)


def test_the_rest_of_a_long_session_is_found_from_its_far_end(spark: SparkSession) -> None:
    """Events added and removed far behind the head of a
    long session neither repeat nor lose its rest.
    """
    made = shop(spark, WAYS["quarantine, head"])
    rows = named_events("s", "ann", spread("10:00", "16:00", 25))
    made.arrive(rows).run()
    assert drawn(made.rows(), "events") == table("""
        | start | end   | events |
        |-------|-------|-------:|
        | 10:00 | 11:00 |      5 |
    """)
    made.arrive(named_events("t", "ann", [at("16:10"), at("16:50")]), gone=rows[-1:]).run()
    assert held_of(made, "ann") == [(at("10:00"), at("16:10"), 25)]
    made.arrive(gone=[row for row in made.events if row["event_ts"] > at("11:00")]).run()
    assert made.ledger.held == {}
    assert len(made.rows()) == 1


def test_a_session_in_quarantine_that_a_rule_could_end(spark: SparkSession) -> None:
    """A late event may make a rule end it anywhere: nobody knows before the rule is asked again."""
    made = shop(spark, WAYS["rule, campaign, quarantine, head"])
    rows = named_events("s", "ann", [at("10:00"), at("10:10"), at("10:19"), at("10:25")])
    made.arrive({**row, "url": "/", "ok": False} for row in rows[:1])
    made.arrive({**row, "url": None, "ok": False} for row in rows[1:]).run()
    assert held_of(made, "ann") == [(at("10:00"), at("10:25"), 4)]

    late = named_events("t", "ann", [at("10:05")])
    made.arrive({**row, "url": None, "ok": True} for row in late).run()

    made.check()
    assert made.ledger.held == {}


def test_sessions_in_quarantine_that_a_campaign_or_a_marked_event_could_end(
    spark: SparkSession,
) -> None:
    """
    New events of the same campaign or of none, at its end or inside, are read without old ones.

    * ann gets such events only.
    * bob's is ended by another campaign, and by an event that begins a session.
    * cid: the campaign in force when the session began is no change of campaign.
    * dot: a manual entry does not lose the campaign of the session before, in another cell.
    """
    made = shop(spark, WAYS["quarantine, campaign and start events"])
    long = spread("10:00", "16:00", 25)
    made.arrive(
        [
            *(row for who in ("ann", "bob") for row in events_of(who, "s", long, url="/a")),
            *events_of("cid", "first", [at("10:00")], url="/a"),
            *events_of("cid", "begins", [at("10:10")], ok=True),
            *events_of("cid", "s", spread("10:20", "12:00", 20)),
            *events_of("dot", "before", [at("23:40")], url="/a"),
            *events_of("dot", "begins", [at("24 00:05")], ok=True),
            *events_of("dot", "same", [at("24 00:15")], url="/a"),
        ]
    ).run()
    later = events_of("ann", "later", [at("16:10"), at("16:20")], url="/a")
    made.arrive([*later, *events_of("ann", "inside", [at("12:05")])]).run()
    assert (made.receipt.read, made.receipt.written) == (3, 0)
    assert held_of(made, "ann") == [(at("10:00"), at("16:20"), 28)]

    *_, (of, start, end) = made.spans()
    made.say(Entry(of, True, start, end)).arrive(
        [
            *events_of("bob", "b", [at("16:10")], url="/b"),
            *events_of("cid", "same", [at("12:10")], url="/a"),
        ]
    ).run()
    assert starts_of(made, "bob") == [at("16:10")]
    assert held_of(made, "cid") == [(at("10:10"), at("12:10"), 22)]
    assert [part[:2] for part in held_of(made, "dot")] == [(at("24 00:05"), at("24 00:15"))]

    # cid is read from its start again, which its own row in the ledger alone can tell about
    begins = events_of("bob", "begins", [at("15:30")], ok=True)
    made.arrive(begins, gone=events_of("cid", "s", [at("10:20")])).run()
    assert starts_of(made, "bob") == [at("15:30"), at("16:10")]
    assert held_of(made, "cid") == [(at("10:10"), at("12:10"), 21)]


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
    if not query.may_quarantine:
        return
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
@pytest.mark.parametrize(
    "name",
    [
        "quarantine, head, campaign, nulls change",
        "quarantine, campaign and start events",
        "rule, campaign, quarantine, head",
        "everything",
        "quarantine by identifier, start events",
        "numbered, cut, quarantine",
        "identifier and gap",
        "identifier or user",
    ],
)
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
    "name", ["identifier, midnight and longest", "identifier or user", "quarantine, head"]
)
def test_a_large_build_equals_the_reference(spark: SparkSession, name: str, seed: int) -> None:
    """The fast path of large builds knows identifiers, midnights and the maximum length."""
    made = shop(spark, WAYS[name])
    made.arrive(rows_of(programs(seed)))
    speak(made, Random(seed))
    query = replace(made.query, entries=tuple(made.ledger.manual_entries))
    large_builds_equal_the_reference(made, query, seed)


def test_a_day_begins_once_though_clocks_are_set_back_over_midnight(spark: SparkSession) -> None:
    """
    Clock times of the previous day that occur again after midnight belong to the new day.

    A minute after midnight, at 02:31 UTC, clocks of Newfoundland showed 23:01 once more.

    | UTC      | clock    | day         |
    |----------|----------|-------------|
    | 02:20    | 23:50    | the old one |
    | 02:30:30 | 00:00:30 | the new one |
    | 02:50    | 23:20    | the same    |
    | 03:15    | 23:45    | the same    |
    | 03:40    | 00:10    | the same    |
    """
    zone = "America/St_Johns"
    clocks = ("02:20", "02:30:30", "02:50", "03:15", "03:40")
    events = named_events("s", "ann", [at(f"2010-11-07T{clock}") for clock in clocks])
    made, large = (
        FoldedSessions(spark, COUNT, ends=Ends(zone=zone), cuts=(Midnight(zone),)) for _ in "sl"
    )
    made.arrive([*events[:3], events[4]]).run().arrive([events[3]]).run()
    assert drawn(made.rows(), "events") == table("""
        | start            | end              | events |
        |------------------|------------------|-------:|
        | 2010-11-07 02:20 | 2010-11-07 02:20 |      1 |
        | 2010-11-07 02:30 | 2010-11-07 03:40 |      4 |
    """)
    check_rebuild(made)
    large_builds_equal_the_reference(large.arrive(events), large.query, 1)


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

    def _outcome(self, step: Step, announce: Announce) -> Outcome:
        assert step.trace is not None
        by_digest = {str(number): one for number, one in enumerate(self._queries)}
        earlier = tuple(
            Stretch(one.cells, "sessions", self._project(by_digest[one.definition]))
            for one in step.trace.earlier
        )
        outcome = in_force.carry_out(
            replace(self._work(), earlier=earlier, announce=announce), step
        )
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
