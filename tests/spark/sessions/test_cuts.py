"""Sessions by identifier, cut during activity, and of several definitions equal the reference."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
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
    FEW,
    MERGING,
    READ_AGAIN,
    SEEDS,
    UNSHRUNK,
    Program,
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
    calls: Mapping[str, Call] = field(default_factory=lambda: FEW)


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


ZONE = "America/St_Johns"
BY_PAGE = {"user": "session_identifier", "owner_sql": "url", "gap": None, "chosen_user": USER}
OR_USER = Ends(
    whose=_either,
    shown=lambda of: of[0],  # type: ignore[index]
    gap=lambda of: None if of[0] else GAP,  # type: ignore[index]
    text=lambda of: f"i{of[0]}" if of[0] else f"u{of[1]}",
)
WAYS = {
    "quarantine, head, campaign and start events": Way(
        {
            "cuts": (Campaign(("url",)), StartEvents("ok")),
            "quarantine_after": 40 * MINUTE,
            "keep": Keep.HEAD,
        },
        Ends(campaign=_page, begins=_begins, limit=40 * MINUTE, head=True),
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
                Midnight(ZONE),
                Campaign(("url", "n"), direct=("/",)),
                StartEvents("ok"),
                MaxLength(90 * MINUTE),
            ),
        },
        Ends(zone=ZONE, campaign=_campaign, begins=_begins, most=90 * MINUTE),
        MERGING,
    ),
    "quarantine, head": Way(
        {"quarantine_after": HOUR, "keep": Keep.HEAD}, Ends(limit=HOUR, head=True)
    ),
    "quarantine, head, read again": Way(
        {"quarantine_after": HOUR, "keep": Keep.HEAD}, Ends(limit=HOUR, head=True), READ_AGAIN
    ),
    "quarantine by identifier and gap": Way(
        {
            **BY_PAGE,
            "owner_sql": "coalesce(url, cast(n AS string))",
            "gap": GAP,
            "quarantine_after": 90 * MINUTE,
        },
        Ends(
            whose=lambda row: row["url"] or (None if row["n"] is None else str(row["n"])),
            limit=90 * MINUTE,
        ),
    ),
    "numbered, cut, quarantine, nulls change": Way(
        {
            "numbered": True,
            "quarantine_after": 20 * MINUTE,
            "cuts": (Midnight("Europe/London"), Campaign(("ok",), Nulls.CHANGE)),
        },
        Ends(limit=20 * MINUTE, zone="Europe/London", campaign=lambda row: (row["ok"],)),
        READ_AGAIN,
    ),
    "identifier or user": Way({**BY_PAGE, "fallback": Fallback("user_id", GAP)}, OR_USER),
    "identifier or user, midnight and longest": Way(
        {
            **BY_PAGE,
            "fallback": Fallback("user_id", GAP),
            "cuts": (Midnight(ZONE), MaxLength(2 * HOUR)),
        },
        replace(OR_USER, zone=ZONE, most=2 * HOUR),
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


def heads_of(made: FoldedSessions, who: str) -> list[tuple[int, int, int]]:
    """The stored sessions of a user: first and last instants, and events."""
    return sorted(
        (row["session_start"], row["session_end"], row["events"])
        for row in made.rows()
        if row["user_id"] == who
    )


EXAMPLES = ("ann", "bob", "cid", "dot", "eve")
"""The users of examples; each example is played with the random events of its way."""
Script = Iterator[None]
"""What comes and goes before each run, and what is seen after it."""


def of_campaigns(made: FoldedSessions) -> Script:
    """
    New events of the same campaign or of none, at the end of a session in quarantine or inside, are
    read without old ones: ann gets such events only.

    * bob's is ended by another campaign, and by an event that begins a session.
    * cid: the campaign in force when the session began is no change of campaign.
    * dot: a manual entry does not lose the campaign of the session before, in another cell.
    * eve: events added and removed far behind the head neither repeat nor lose the rest.
    """
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
            *events_of("eve", "s", long),
        ]
    )
    yield
    assert heads_of(made, "eve") == [(at("10:00"), at("10:30"), 3)]
    later = events_of("ann", "later", [at("16:10"), at("16:20")], url="/a")
    made.arrive([*later, *events_of("ann", "inside", [at("12:05")])])
    yield
    assert (made.receipt.read, made.receipt.written) == (3 + 1, 0), "the events and a head"
    assert held_of(made, "ann") == [(at("10:00"), at("16:20"), 28)]
    [*_, (of, start, end)] = [span for span in made.spans() if span[0] == "dot"]
    made.say(Entry(of, True, start, end)).arrive(
        [
            *events_of("bob", "b", [at("16:10")], url="/b"),
            *events_of("cid", "same", [at("12:10")], url="/a"),
            *events_of("eve", "far", [at("16:10"), at("16:50")]),
        ],
        gone=[row for row in made.events if row["event_id"] == "eve.s24"],
    )
    yield
    assert [start for start, _, _ in heads_of(made, "bob")] == [at("10:00"), at("16:10")]
    assert held_of(made, "cid") == [(at("10:10"), at("12:10"), 22)]
    assert [part[:2] for part in held_of(made, "dot")] == [(at("24 00:05"), at("24 00:15"))]
    assert held_of(made, "eve") == [(at("10:00"), at("16:10"), 25)]
    # cid is read from its start again, which its own row in the ledger alone can tell about
    gone = [row for row in made.events if row["event_id"] == "cid.s0"]
    gone += [r for r in made.events if r["user_id"] == "eve" and r["event_ts"] > at("10:30")]
    made.arrive(events_of("bob", "begins", [at("15:30")], ok=True), gone=gone)
    yield
    starts = [at("10:00"), at("15:30"), at("16:10")]
    assert [start for start, _, _ in heads_of(made, "bob")] == starts
    assert held_of(made, "cid") == [(at("10:10"), at("12:10"), 21)]
    assert (held_of(made, "eve"), len(heads_of(made, "eve"))) == ([], 1)


def of_a_rule(made: FoldedSessions) -> Script:
    """A late event may make a rule end a session in quarantine anywhere: nobody knows before it is
    asked again.
    """
    rows = named_events("s", "ann", [at("10:00"), at("10:10"), at("10:19"), at("10:25")])
    made.arrive({**row, "url": "/", "ok": False} for row in rows[:1])
    made.arrive({**row, "url": None, "ok": False} for row in rows[1:])
    yield
    assert held_of(made, "ann") == [(at("10:00"), at("10:25"), 4)]
    made.arrive(events_of("ann", "t", [at("10:05")], ok=True))
    yield
    assert held_of(made, "ann") == []


CLOCKS = ("02:20", "02:30:30", "02:50", "03:15", "03:40")


def around_midnight() -> list[Row]:
    """Events of the night in which clocks were set back, a minute after midnight."""
    return named_events("s", "ann", [at(f"2010-11-07T{clock}") for clock in CLOCKS])


def of_clocks(made: FoldedSessions) -> Script:
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
    night = around_midnight()
    made.arrive([*night[:3], night[4]])
    yield
    made.arrive([night[3]])
    yield
    assert drawn([row for row in made.rows() if row["user_id"] == "ann"], "events") == table("""
        | start            | end              | events |
        |------------------|------------------|-------:|
        | 2010-11-07 02:20 | 2010-11-07 02:20 |      1 |
        | 2010-11-07 02:30 | 2010-11-07 03:40 |      4 |
    """)


def of_many_entries(made: FoldedSessions) -> Script:
    """Thousands of manual entries, for somebody and for nobody."""
    yield
    made.say(*(Entry(f"nobody{number}", True) for number in range(3_000)), Entry("/pay", False))


def of_nothing(made: FoldedSessions) -> Script:
    """The random events alone."""
    yield from ()


FOLDS: Mapping[str, tuple[int, Callable[[FoldedSessions], Script]]] = {
    "quarantine, head, campaign and start events": (4, of_campaigns),
    "rule, campaign, quarantine, head": (2, of_a_rule),
    "everything": (2, of_clocks),
    "numbered, cut, quarantine, nulls change": (2, of_nothing),
    "quarantine by identifier and gap": (2, of_many_entries),
    "identifier or user": (2, of_nothing),
}
"""The ways whose folds are compared, in so many runs, and the example in them."""


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
    spans = [one for one in made.spans() if one[0] not in EXAMPLES] or [("u1", 0, 0)]
    for of, start, end in random.choices(spans, k=12):
        span = random.choice([(), (start, end), (start, end)])
        made.say(Entry(of, random.choice([True, False, None]), *span))


def quiet_between(seed: int, runs: int) -> list[Program]:
    """Programs of the first and the last of some runs."""
    quiet: Program = [[] for _ in range(runs - 2)]
    return [[first, *quiet, last] for first, last in programs(seed, runs=2)]


@settings(max_examples=1, phases=UNSHRUNK)
@given(seed=SEEDS)
@pytest.mark.parametrize("name", FOLDS)
def test_folds_equal_the_reference(spark: SparkSession, name: str, seed: int) -> None:
    """Folds equal a rebuild for every kind of session and cut; the examples are as they say.

    So they do when manual entries put sessions into quarantine
    and release them, before the build or before the fold.
    """
    made, random = shop(spark, WAYS[name]), Random(seed)
    runs, example = FOLDS[name]
    script = example(made)

    def act(run: int, made: FoldedSessions) -> None:
        next(script, None)
        if run == runs - 1 or (run == 0 and seed % 2):
            speak(made, random)

    play(made, quiet_between(seed, runs), {run: partial(act, run) for run in range(runs)})
    assert next(script, None) is None, "all that it asserts holds"
    check_rebuild(made)


@settings(max_examples=1, phases=UNSHRUNK)
@given(seed=SEEDS)
@pytest.mark.parametrize("name", ["identifier or user, midnight and longest", "quarantine, head"])
def test_a_large_build_equals_the_reference(spark: SparkSession, name: str, seed: int) -> None:
    """The fast path of large builds knows identifiers, midnights and the maximum length."""
    made = shop(spark, WAYS[name])
    made.arrive([*rows_of(programs(seed)), *around_midnight()])
    speak(made, Random(seed))
    query = replace(made.query, entries=tuple(made.ledger.manual_entries))
    large_builds_equal_the_reference(made, query, seed)


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
LATER = {"total": MERGING["bigs"], **FEW}
"""Other aggregates at other places: states of other types have the names of earlier ones."""


def _by_user(calls: Mapping[str, Call], ends: Ends, **query: Any) -> Way:
    """Sessions by an identifier of which many get no events in a run."""
    own = {**BY_PAGE, "owner_sql": "user_id", "numbered": True, **query}
    return Way(own, replace(ends, whose=lambda row: row["user_id"]), calls)


HELD = Ends(begins=_begins, limit=HOUR, head=True)
_HELD = {"quarantine_after": HOUR, "keep": Keep.HEAD, "cuts": (StartEvents("ok"),)}
IN_FORCE: Sequence[tuple[int, Way]] = (
    (MIN, _by_user(FEW, HELD, **_HELD)),
    (SECOND, _by_user(FEW, Ends(limit=90 * MINUTE), quarantine_after=90 * MINUTE)),
    (
        LAST,
        _by_user(
            LATER,
            Ends(limit=2 * HOUR, zone="Europe/London", campaign=lambda row: row["n"], most=HOUR),
            gap=HOUR,
            quarantine_after=2 * HOUR,
            cuts=(Midnight("Europe/London"), Campaign(("n",)), MaxLength(HOUR)),
        ),
    ),
    (FIRST, _by_user({"xs": READ_AGAIN["xs"], **LATER}, HELD, **_HELD)),
)
"""The first definition, and those that come after it, each in force from an instant on."""


def known(row: Row) -> bool:
    """The WHERE of the definition that comes second."""
    return row["n"] is None or row["n"] != 0


@settings(max_examples=1, phases=UNSHRUNK)
@given(seed=SEEDS)
def test_each_stretch_equals_its_definition(spark: SparkSession, seed: int) -> None:
    """Definitions change, the last time from a border before the one before. Whatever comes and
    goes on all sides, each stretch has the sessions of its definition.
    """
    (_, first), *changes = IN_FORCE
    made, random = SessionsInForce(spark, first), Random(seed)
    more: Mapping[str, Any] = {"test": known, "where": "n IS NULL OR n <> 0"}

    def change(run: int, shop: FoldedSessions) -> None:
        made.forward(*changes[run - 1], **(more if run == 2 else {}))
        speak(shop, random)

    steps = {run: partial(change, run) for run in range(1, len(IN_FORCE))}
    play(made, programs(seed, users=40, runs=len(IN_FORCE)), steps)
