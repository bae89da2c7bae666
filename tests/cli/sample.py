"""A project with plans, receipts and states made by hand, for the tests of screens."""

from __future__ import annotations

from dataclasses import replace
from decimal import Decimal
from pathlib import Path
from typing import Any

from infold.core.erasure import ErasureRequest
from infold.core.files import IngestedFile, ListedFile
from infold.core.formats import Format
from infold.core.interval import DAY, MAX, MINUTE, Interval, Ranges, parse_instant_text
from infold.core.model import (
    Column,
    Incremental,
    Kind,
    Materialization,
    Model,
    Place,
    Source,
    Timeseries,
)
from infold.core.plan import (
    Action,
    FileDiff,
    InputDiff,
    ModelObservation,
    Observations,
    Plan,
    Reason,
    Skipped,
    Step,
)
from infold.core.project import Input, Node, Project, Reference
from infold.core.queries import SessionsQuery
from infold.core.record import Arrival, Outcome, QuarantinedSession, Receipt, RunRecord, StepRecord
from infold.core.report import (
    AppliedDefinition,
    ExplainedInput,
    Explanation,
    Failure,
    ModelState,
    ModelStatus,
    RunResult,
    State,
    Verdict,
    VerificationReport,
)
from infold.core.sessions import Sessions
from infold.core.target import Target
from infold.core.trace import Cause, CellState, Pending, Trace, Version
from infold.inspecting.session_events import BY_SPARK
from infold.inspecting.session_history import (
    EventBatch,
    Session,
    SessionChange,
    SessionHistories,
    SessionHistory,
    Verb,
    VersionChange,
)
from infold.messages import run_errors

AS_OF = parse_instant_text("2024-03-11T06:30")


def days(text: str) -> Ranges:
    """Days of March 2024: ``4-8 10`` are the 4th to the 8th and the 10th."""
    parts = []
    for word in text.split():
        first, _, last = word.partition("-")
        start = parse_instant_text(f"2024-03-{int(first):02}")
        end = parse_instant_text(f"2024-03-{int(last or first):02}") + DAY
        parts.append(Interval(start, end))
    return Ranges.of(parts)


def day(number: int) -> Interval:
    """One day of March 2024."""
    return days(str(number)).parts[0]


def _node(model: Model, *inputs: Input, query: SessionsQuery | None = None) -> Node:
    source = inputs[0].name if model.materialization is Materialization.EVENTS else None
    references = tuple(Reference(entry.name, 0, 0) for entry in inputs)
    return Node(model, inputs, references, f"{model.name}-0123456789abcdef", (), source, query)


CLICKS = _node(
    Model(
        "clicks", Materialization.EVENTS, "SELECT event_id, user_id, event_ts FROM raw.clicks",
        Timeseries("event_ts", "event_ts"), unique_key=("event_id",), tags=("core",),
        place=Place("models/clicks.sql"),
    ),
    Input("raw.clicks"),
)  # fmt: skip
SESSIONS = _node(
    Model(
        "sessions", Materialization.SESSIONS, "SELECT count(*) AS events\nFROM clicks\n",
        sessions=Sessions("user_id", 30 * MINUTE), tags=("core",),
        place=Place("models/sessions.sql"),
    ),
    Input("clicks", "event_ts"),
    query=SessionsQuery("clicks", "event_ts", "user_id", 30 * MINUTE, ("id",), None, (), ()),
)  # fmt: skip
DAILY = _node(
    Model(
        "daily", Materialization.TABLE, "SELECT 1", Timeseries("session_start", "day"),
        incremental=Incremental(), tags=("finance",), place=Place("models/daily.sql"),
    ),
    Input("sessions", "session_start"), Input("countries"),
)  # fmt: skip
COUNTRIES = _node(
    Model("countries", Materialization.TABLE, "SELECT 1", place=Place("models/countries.sql")),
    Input("raw.countries"),
)
LATEST = _node(
    Model("latest", Materialization.VIEW, "SELECT 1", place=Place("models/latest.sql")),
    Input("sessions"),
)

COVERED = {"clicks": days("4-9"), "sessions": days("4-9"), "daily": days("4-9")}


def project(*nodes: Node) -> Project:
    """The sample project: ingest, sessions, a daily table, a lookup, a view."""
    clicks = Source(
        "raw.clicks", Format.JSON, (Column("event_id", "string"),), path="landing/*.json"
    )
    return Project(
        name="shop", root=Path("shop"), start=parse_instant_text("2024-01-01"),
        sources={clicks.name: clicks}, nodes=nodes or (COUNTRIES, CLICKS, SESSIONS, DAILY, LATEST),
        target=Target("dev"),
    )  # fmt: skip


def trace(model: str, *pending: Pending) -> Trace:
    """A trace by the model's present definition."""
    return Trace(model, f"{model}-0123456789abcdef", {}, pending)


def seen_file(name: str) -> ListedFile:
    """A file as listed."""
    return ListedFile(f"landing/{name}", 1_000, AS_OF, "f")


def known_file(name: str, rows: int = 100) -> IngestedFile:
    """A file as taken in."""
    return IngestedFile(1, f"landing/{name}", 1_000, "e", AS_OF, rows=rows)


NEWS = FileDiff(
    "raw.clicks", new=(seen_file("a.json"), seen_file("b.json"), seen_file("c.json")),
    removed=(known_file("c.json"), known_file("d.json")), settling=1, unchanged=98,
    estimate=(CellState(day(6), 1_204, 0), CellState(day(10), 9_113, 0)), as_of=AS_OF,
)  # fmt: skip


def observed(files: FileDiff = NEWS) -> Observations:
    """Built up to the 9th; files for the 6th (late) and the 10th arrived."""
    return Observations(
        AS_OF,
        {
            "countries": ModelObservation(trace("countries"), 1),
            "clicks": ModelObservation(trace("clicks"), 7, files),
            "sessions": ModelObservation(trace("sessions"), 7, inputs=(InputDiff("clicks", 7, 7),)),
            "daily": ModelObservation(
                trace("daily"),
                7,
                inputs=(InputDiff("sessions", 7, 7), InputDiff("countries", 1, 1)),
            ),
        },
    )


INGEST = Step(
    "clicks", Action.INGEST, days("6 10"),
    (
        Reason(Cause.LATE, "2 new files, 1 replaced", days("6"), 1_204),
        Reason(Cause.ARRIVED, "2 new files, 1 replaced", days("10"), 9_113),
        Reason(Cause.REMOVED, "2 files replaced or deleted", Ranges(), 200),
    ),
    files=NEWS, version=8, previous_trace=trace("clicks"),
)  # fmt: skip
FOLD = Step(
    "sessions", Action.FOLD, days("5-7 9-11"),
    (Reason(Cause.LATE, "because clicks is built", days("5-7 9-11"), 10_517),),
    inputs={"clicks": (7, 7)}, version=8, previous_trace=trace("sessions"), expected=True,
)  # fmt: skip
RECOMPUTE = Step(
    "daily", Action.RECOMPUTE, days("6 9-10"),
    (Reason(Cause.LATE, "because sessions is built", days("6 9-10"), 8_000),),
    inputs={"sessions": (7, 7), "countries": (1, 1)}, version=8, previous_trace=trace("daily"),
    expected=True,
)  # fmt: skip


def plan() -> Plan:
    """What a run would do about :func:`observed`."""
    left = (Skipped("countries", "up to date"),)
    return Plan((INGEST, FOLD, RECOMPUTE), left, AS_OF)


def nothing() -> Plan:
    """Nothing to do, but for what an earlier window left out."""
    left = (
        *(Skipped(name, "up to date") for name in ("countries", "clicks", "sessions")),
        Skipped("daily", "outside the window", days("4-5")),
    )
    return Plan((), left, AS_OF)


RECEIPTS = (
    Receipt(
        arrived=10_317, read=10_317, scanned=10_317, written=10_254, removed=200, set_aside=12,
        waiting=3, deduplicated=51, conflicting=2, cells_built=2, files_new=3, files_removed=2,
        commits=1, seconds=1.912, set_aside_by=(("null key", 8), ("unparsable", 4)),
    ),
    Receipt(
        read=1_480, scanned=61_000, written=1_211, removed=223, cells_built=3, cells_cut_off=1,
        sessions_new=988, sessions_extended=211, sessions_merged=12, sessions_split=1, commits=1,
        seconds=2.204,
    ),
    Receipt(read=2_900, scanned=2_900, written=3, removed=2, cells_built=3, commits=1, seconds=0.9),
)  # fmt: skip


STANDINGS = {
    "countries": ModelState("countries", State.STANDARD_RUN),
    "clicks": ModelState(
        "clicks", State.STANDARD_RUN, lower=day(6).start, upper=day(10).end, work=True,
        reads=("raw.clicks",),
    ),
    "sessions": ModelState("sessions", State.NEW_MODEL, work=True, reads=("clicks",)),
    "daily": ModelState(
        "daily", State.OUT_OF_SYNC, why="an earlier run left a part of it unbuilt",
        lower=day(4).start, upper=day(5).end, work=True, empty=True,
        reads=("sessions", "countries"),
    ),
}  # fmt: skip


def result() -> RunResult:
    """What a run of :func:`plan` did."""
    steps = tuple(zip((INGEST, FOLD, RECOMPUTE), RECEIPTS, strict=True))
    return RunResult(
        run="20240311T063000-a1b2c3", state="done", plans=(plan(), Plan((), (), AS_OF)),
        steps=steps, receipt=sum(RECEIPTS, Receipt()),
        notes=("sessions: a step that a dead run had begun is done again",), seconds=11.37,
        model_states=(
            replace(STANDINGS["countries"], work=False), STANDINGS["clicks"],
            replace(STANDINGS["sessions"], lower=day(5).start, upper=day(11).end),
            STANDINGS["daily"],
        ),
    )  # fmt: skip


def failed() -> RunResult:
    """A run that was refused one model, failed in two, and did what does not need them."""
    daily = run_errors.step_failed(
        model="daily", what="[DIVIDE_BY_ZERO] Division by zero", condition="DIVIDE_BY_ZERO"
    )
    committed = ("committed", "1 of 47 batches of this run, which stay")
    return replace(
        result(),
        state="failed",
        failures=(
            Failure("daily", daily.with_facts(committed), 47),
            Failure("users", run_errors.protected("dev", "rebuild", (("users", "restated"),))),
        ),
        not_tried=(("weekly", ("daily", "users")),),
        up_to_date=("countries", "clicks", "sessions"),
    )


def refused() -> RunResult:
    """A run in which there was nothing to do but what is refused."""
    why = (("daily", "its definition changed"),)
    return RunResult(
        "r",
        "refused",
        failures=(Failure("daily", run_errors.protected("prod", "rebuild", why)),),
        not_tried=(("users", ("daily",)),),
    )


def _compared(id_: str, user: str, events: int, revenue: str | None, url: str) -> dict[str, Any]:
    """A session as a comparison shows it."""
    exact = None if revenue is None else Decimal(revenue)
    return {"session_id": id_, "user_id": user, "events": events, "revenue": exact, "url": url}


def verification(*, equal: bool = True) -> VerificationReport:
    """All equal, or the sessions of one day not."""
    sessions = Verdict("sessions", Kind.SESSIONS, 988, 7, -2, equal=True)
    if not equal:
        sessions = replace(
            sessions,
            equal=False,
            differing=((day(6), 140, 141),),
            sample=(
                ("stored", _compared("6f1e", "ann", 1, None, "/a-long-way/to/a-page?of=one")),
                ("rebuilt", _compared("6f1e", "ann", 2, "1.50", "/a-long-way/to/a-page?of=two")),
                ("rebuilt", _compared("9a01", "bob", 1, None, "/")),
            ),
            key=("session_id",),
        )
    return VerificationReport(
        (
            Verdict("countries", Kind.TABLE, 249, 1, 2**62, equal=True),
            Verdict("clicks", Kind.EVENTS, 70_117, 7, 81_985_529_216_486_895, equal=True),
            sessions,
            Verdict(
                "daily", Kind.INCREMENTAL_TABLE, 7, 7, 5, equal=True, note="a sample of its cells"
            ),
        ),
        AS_OF,
        14.2,
    )


def status() -> tuple[ModelStatus, ...]:
    """A model in each of the states."""

    def of(name: str, kind: Kind, state: State, **more: Any) -> ModelStatus:
        built = parse_instant_text("2024-03-10T06:31:12") if "version" in more else None
        return ModelStatus(
            name, kind, state, last_built_at=built, model_state=STANDINGS.get(name), **more
        )

    countries = {"rows": 249, "covered": Ranges.ever(), "version": 1}
    clicks = {
        "rows": 70_117, "covered": days("4-6 8-9"), "stale": days("6 10"), "version": 7,
        "last_event": parse_instant_text("2024-03-09T23:59:58"), "set_aside": 12, "waiting": 3,
        "erasures": (ErasureRequest(1, "2024-117", "person", ("1f",), made_at=AS_OF - DAY),),
    }  # fmt: skip
    daily = {
        "rows": 4, "covered": days("6-9"), "stale": Ranges((Interval(day(4).start, MAX),)),
        "pending": (Pending(Cause.MISSING, days("4-5")),), "version": 3,
    }  # fmt: skip
    return (
        of("countries", Kind.TABLE, State.STANDARD_RUN, **countries),
        of("clicks", Kind.EVENTS, State.STANDARD_RUN, **clicks),
        of("sessions", Kind.SESSIONS, State.NEW_MODEL, stale=Ranges.ever()),
        of("daily", Kind.INCREMENTAL_TABLE, State.OUT_OF_SYNC, **daily),
        of("latest", Kind.VIEW, State.VIEW),
    )


def history() -> tuple[RunRecord, ...]:
    """A run that failed, one with nothing to do, one that was done."""
    start = parse_instant_text("2024-03-11T06:30")
    done = tuple(
        StepRecord(
            f"20240311T063000-a1b2c3-{i}",
            "20240311T063000-a1b2c3",
            i,
            step.model,
            step.action.value,
            "done",
            {},
            Outcome(step.model, 8, trace(step.model), receipt=receipt),
            start,
            start + round(receipt.seconds * 1e6),
        )
        for i, (step, receipt) in enumerate(zip((INGEST, FOLD), RECEIPTS, strict=False), 1)
    )
    failed = StepRecord(
        "20240311T080000-0d0d0d-1", "20240311T080000-0d0d0d", 1, "daily", "recompute", "failed", {},
        None, start + DAY, start + DAY + 400_000,
        "[DIVIDE_BY_ZERO] Division by zero.\nUse try_divide.",
    )  # fmt: skip
    return (
        RunRecord(
            failed.run, "run", "failed", start, start + DAY, start + DAY + 500_000,
            error="daily failed", steps=(failed,),
        ),
        RunRecord("20240311T070000-ffffff", "run", "done", start, start, start + 310_000),
        RunRecord(
            "20240311T063000-a1b2c3", "run", "done", start, start, start + 11_370_000,
            receipt=sum(RECEIPTS, Receipt()), steps=done,
        ),
    )  # fmt: skip


def explanation(cell: Interval | None = None) -> Explanation:
    """The sessions model, or one of its days."""
    record = history()[-1].steps[1]
    return Explanation(
        model="sessions", kind=Kind.SESSIONS, place="models/sessions.sql:1", sql=SESSIONS.model.sql,
        granularity="day", fingerprint="sessions-0123456789abcdef",
        inputs=(ExplainedInput("clicks", "a user's events, chained by silences", 7, 8),),
        trace=Trace("sessions", "sessions-0123456789abcdef", {"clicks": 7}),
        layout="Iceberg v3, partitioned by months of session_start", version=7, rows=988, cells=6,
        step=FOLD, cell=cell, state=CellState(cell, 140, -2) if cell else None,
        arrivals=(Arrival("clicks", 8, Interval(AS_OF, AS_OF + 1), day(6), 1_204),) if cell else (),
        built_by=((record.started_at, record),),
        applied=AppliedDefinition("applied-0123456789abcdef", AS_OF - 5 * DAY, same=True),
    )  # fmt: skip


def _version(table: str, number: int, minute: int, *, whole: bool = False) -> Version:
    """A version, committed at some minute past six on the 11th."""
    at = AS_OF - 30 * MINUTE + minute * MINUTE
    return Version(
        table, number, number, f"s{number}", f"20240311T06{minute:02}00-a1b2c3", at, 0, whole
    )


def _session(start: str, end: str, version: int, events: int, **values: object) -> Session:
    """A session of ann's on the 8th."""
    first, last = (parse_instant_text(f"2024-03-08T{time}") for time in (start, end))
    own = f"{start.replace(':', '')}c0ffee0123456789abcdef0123456789"[:32]
    return Session(
        own, first, last, version, events, {"user_id": "ann", "events": events, **values}
    )


def histories(*, quarantined: bool = False) -> SessionHistories:
    """A session that was extended, merged, split and recomputed; or one in quarantine."""
    clicks = [_version("clicks", number, 2 * number) for number in range(1, 6)]
    made = [_version("sessions", number, 2 * number + 1) for number in range(1, 7)]
    early, late = _session("10:00:05", "10:20:00", 1, 3), _session("11:15:00", "11:20:00.5", 2, 2)
    longer = _session("09:58:30", "10:20:00", 3, 4)
    both = _session("09:58:30", "11:20:00.5", 4, 7)
    parts = replace(longer, version=5), replace(late, version=5)
    now = replace(
        parts[0],
        version=6,
        values={**longer.values, "revenue": Decimal("12.50"), "exit_url": "/pay"},
    )
    before = replace(
        parts[0], values={**longer.values, "revenue": Decimal("10.00"), "exit_url": None}
    )
    session_changes = (
        SessionChange(Verb.CREATED, VersionChange(made[0], (), (early,))),
        SessionChange(Verb.CREATED, VersionChange(made[1], (), (late,))),
        SessionChange(Verb.EXTENDED, VersionChange(made[2], (early,), (longer,))),
        SessionChange(Verb.MERGED, VersionChange(made[3], (longer, late), (both,))),
        SessionChange(Verb.SPLIT, VersionChange(made[4], (both,), parts)),
        SessionChange(Verb.RECOMPUTED, VersionChange(made[5], (before,), (now,))),
    )
    files = ("landing/2024-03-08.json", "landing/again.json")
    groups = (
        EventBatch(clicks[0], 3, early.start, early.end, files, 7, late=False, input="clicks"),
        EventBatch(
            clicks[2], 1, longer.start, longer.start, ("landing/late.json",), late=True,
            input="clicks",
        ),
    )  # fmt: skip
    history = SessionHistory(
        "sessions", now.id, ("user_id", "ann"), now, inputs=("clicks",), event_batches=groups,
        session_changes=session_changes,
    )  # fmt: skip
    if quarantined:
        history = replace(
            history, session=None,
            quarantined=QuarantinedSession(
                "ann", early.start, parse_instant_text("2024-03-12T10:00"), 1_204, "ann",
            ),
            why_quarantined="longer than 3 days", event_batches=(),
            why_no_events=f"they are seen through the view people, {BY_SPARK}",
            session_changes=(
                SessionChange(Verb.WRITTEN, VersionChange(made[3], None, (early,))),
                SessionChange(Verb.QUARANTINED, VersionChange(made[5], (early,), ())),
            ),
            oldest_kept=made[3], notes=("clicks has moved on to version 9.",),
        )  # fmt: skip
    return SessionHistories(now.id, (history,), more_sessions=12 if quarantined else 0)
