"""The events and the history of sessions, and the rows that they leave out."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any, cast

import pyarrow as pa
import pytest
from tests.cli import sample
from tests.ledger.fresh import FreshLedger
from tests.planning.strips import EVENTS, SESSIONS

from infold.core.model import Materialization
from infold.core.own_columns import FILE
from infold.core.ports import Lake, Ledger, TimeSpan
from infold.core.project import Input, Node, Project, Reference
from infold.core.queries import Fallback
from infold.core.record import Outcome
from infold.core.sessions import IDENTIFIER, Sessions
from infold.core.target import Target
from infold.core.trace import Trace, Version
from infold.inspecting.left_out import BY, rows_left_out
from infold.inspecting.session_events import BY_SPARK, UserEvents, events_of
from infold.inspecting.session_history import (
    Event,
    InputVersions,
    Session,
    Verb,
    VersionChange,
    changes_in_span,
    changes_since,
    differing_columns,
    event_batches,
    session_changes,
    verb_of,
)


@dataclass
class StoredRows:
    """A lake, a ledger and Spark in one: what there is, and what they are asked for."""

    table: pa.Table
    counts: dict[str, int] = field(default_factory=dict)
    tests: Mapping[str, str] = field(default_factory=dict)
    limits: list[int | None] = field(default_factory=list)
    by_spark: list[str] = field(default_factory=list)

    def left_out(self) -> dict[str, int]:
        """How many each model leaves out."""
        return self.counts

    def traces(self) -> dict[str, Any]:
        """All were built."""
        return {name: Trace(name, "f") for name in ("sessions", "others")}

    def files(self, model: str) -> Sequence[Any]:
        """None is known."""
        return ()

    def metadata(self, table: str) -> object:
        """Every table is there."""
        return table

    def rows_matching(
        self, table: str, tests: Mapping[str, str], *, limit: int | None, **_: object
    ) -> pa.Table:
        """The rows, unless a test is more than a filter."""
        self.tests = tests
        self.limits.append(limit)
        if any("upper" in test for test in tests.values()):
            raise ValueError
        return self._by(tests, limit)

    def evaluate(self, table: str, nodes: Sequence[Node], limit: int | None) -> pa.Table:
        """What Spark would give."""
        names = [node.name for node in nodes]
        self.by_spark += names
        return self._by(names, limit)

    def _by(self, names: Iterable[str], limit: int | None) -> pa.Table:
        """All models that are asked for leave the row out, in any order."""
        by = pa.array([sorted(names)])
        return self.table.append_column(BY, by).slice(0, limit)

    def rows(self, *nodes: Node, limit: int | None = None) -> list[dict[str, Any]] | None:
        """The rows left out of a project's sessions."""
        project = Project("shop", Path(), None, {}, (EVENTS, *nodes), Target("dev"))
        lake, ledger = cast("Lake", self), cast("Ledger", self)
        found = rows_left_out(project, ledger, lake, limit, self.evaluate)
        return None if found is None else found.to_pylist()


def of(name: str, sessions: Sessions, where: str | None = None, who: str | None = None) -> Node:
    """A sessions model."""
    assert SESSIONS.query is not None
    user = IDENTIFIER if sessions.identifier else "user"
    query = replace(SESSIONS.query, user=user, where=where, owner_sql=who)
    model = replace(SESSIONS.model, name=name, sessions=sessions)
    return replace(SESSIONS, model=model, query=query)


ONE = pa.table({"id": ["1"]})


USER = Sessions("user", 1)
ORDER = Sessions("user", None, identifier=("a", "`b`"))


@pytest.mark.parametrize(
    ("node", "test"),
    [
        (of("sessions", USER), "user IS NULL"),
        (of("sessions", USER, where="k = 1 -- one"), "user IS NULL AND (k = 1 -- one\n)"),
        (of("sessions", ORDER), "a IS NULL AND `b` IS NULL"),
        (of("sessions", replace(ORDER, fallback_gap=1)),
         "a IS NULL AND `b` IS NULL AND user IS NULL"),
        (of("sessions", replace(USER, user="lower(u)"), who="lower(u)"), None),
        (of("sessions", USER, where="upper(k) = 'X'"), None),
        (of("sessions", replace(ORDER, identifier=("a.b",))), None),
        (replace(of("sessions", USER), inputs=(Input("events", "ts"), Input("other"))), None),
    ],
)  # fmt: skip
def test_columns_are_read_and_expressions_are_for_spark(node: Node, test: str | None) -> None:
    """A model's columns become a filter of the same meaning, expressions are Spark's."""
    shop = StoredRows(ONE)
    assert shop.rows(node) is not None
    if test is not None:
        assert (shop.tests, shop.by_spark) == ({"sessions": test}, [])
    else:
        assert "sessions" in shop.by_spark
        shop.by_spark.clear()
        shop.rows(node, of("others", USER))
        assert shop.by_spark == ["sessions", "others"], "so that a row is listed once"


def test_a_row_is_one_with_all_its_models_and_reasons() -> None:
    """Once, with all its models and reasons, and its values as JSON."""
    stored = pa.table({"id": ["1"], "ts": [date(2024, 3, 1)], "n": [Decimal("1.50")], FILE: [7]})
    shop = StoredRows(stored)
    found = shop.rows(of("sessions", USER), of("others", ORDER))
    assert found == [
        {
            "model": "sessions, others",
            "source": "raw.clicks",
            "file": None,
            "file_id": 7,
            "reason": "null user, null identifier",
            "raw": '{"id": "1", "ts": "2024-03-01", "n": "1.50"}',
            "event_time": datetime(2024, 3, 1, tzinfo=UTC),
        }
    ]
    [row] = StoredRows(ONE).rows(of("sessions", USER, who="lower(u)")) or []
    assert (row["file_id"], row["event_time"], row["reason"]) == (None, None, "null user")


def test_nothing_is_read_where_no_row_is_left_out() -> None:
    """Where the ledger counts none nothing is read; a model without a count is searched."""
    shop = StoredRows(ONE, counts={"sessions": 0})
    assert shop.rows(of("sessions", USER)) is None
    assert shop.limits == []
    shop.counts = {"sessions": 0, "others": 1}
    assert shop.rows(of("sessions", USER), of("others", USER), limit=3) is not None
    assert (list(shop.tests), shop.limits) == (["others"], [3])
    assert shop.rows(of("never", USER)) is None


def test_no_more_rows_are_read_than_asked_for() -> None:
    """From a second table only as many rows are read as the first leaves below the limit."""
    shop = StoredRows(ONE)
    other = of("others", USER)
    query = other.query and replace(other.query, input="events2")
    other = replace(other, inputs=(Input("events2", "ts"),), query=query)
    two = replace(EVENTS, model=replace(EVENTS.model, name="events2"))
    project = Project(
        "shop", Path(), None, {}, (EVENTS, two, of("sessions", USER), other), Target("dev")
    )
    for limit, limits in ((1, [1]), (2, [2, 1])):
        shop.limits = []
        rows_left_out(project, cast("Ledger", shop), cast("Lake", shop), limit, shop.evaluate)
        assert shop.limits == limits


# -- the input rows that are a session's events, and when only Spark can find them


ROWS = pa.table(
    {
        "event_ts": pa.array(
            [datetime(1970, 1, 1, 0, 0, second, tzinfo=UTC) for second in (2, 1)],
            pa.timestamp("us", "UTC"),
        ),
        "_version": [4, 3],
        "_source_file": [8, 7],
    }
)


class FakePast:
    """Two rows of whatever is asked for; only predicates without a bracket are understood."""

    def __init__(self, rows: pa.Table | None = ROWS) -> None:
        self.rows = rows
        self.asked: list[dict[str, Any]] = []

    def kept_snapshots(self, table: str) -> frozenset[int]:
        """One snapshot is."""
        del table
        return frozenset({70})

    def rows_equal_to(
        self, table: str, any_of: Sequence[Mapping[str, Any]], **asked: Any
    ) -> pa.Table | None:
        """The rows, and what was asked is kept."""
        if "(" in (asked["where"] or ""):
            raise ValueError(asked)
        del asked["columns"]
        self.asked.append({"table": table, "any_of": any_of, **asked})
        return self.rows


def ledger(snapshot: int = 70) -> FreshLedger:
    """Sessions were made from version 1 of the clicks."""
    found = FreshLedger()
    found.acquire("r")
    found.begin_run("r", "run", 0, {})
    for seq, (model, reads) in enumerate((("clicks", {}), ("sessions", {"clicks": 1}))):
        found.begin_step("r", model, seq, model, "build", {})
        trace = Trace(model, "f", dict(reads))
        found.finish_step(model, Outcome(model, 1, trace, whole=True, snapshot=snapshot))
    return found


def node(sessions: Sessions | None = None, **query: Any) -> Node:
    """The sample's sessions model, with other settings."""
    own = sample.SESSIONS
    assert own.query is not None
    model = own.model if sessions is None else replace(own.model, sessions=sessions)
    return replace(own, model=model, query=replace(own.query, **query))


def found(past: FakePast, of: Node, match: Mapping[str, Any], snapshot: int = 70) -> UserEvents:
    """The events from 1 to 9 of whoever it is."""
    people = replace(
        sample.CLICKS.model,
        name="people",
        materialization=Materialization.VIEW,
        sql="SELECT lower(user_id) AS user_id, event_ts FROM clicks",
    )
    view = replace(sample.CLICKS, model=people, references=(Reference("clicks", 48, 54),))
    project = sample.project(sample.CLICKS, view)
    return events_of(project, ledger(snapshot), past, of, match, 1, 9)


def test_events_of_a_user() -> None:
    """By time, with the run that brought them, at the version the sessions were built from."""
    past = FakePast()

    theirs = found(past, node(), {"user_id": "ann"})

    assert theirs == UserEvents(
        (Event(1_000_000, 3, 7, "clicks"), Event(2_000_000, 4, 8, "clicks"))
    )
    near = TimeSpan("event_ts", "event_ts", 1, 9)
    asked = {"table": "clicks", "any_of": [{"user_id": "ann"}], "near": near}
    assert past.asked == [{**asked, "where": None, "snapshot": 70}]


@pytest.mark.parametrize(
    ("identifier", "who", "any_of"),
    [
        ("x", None, [{"cookie": "x"}, {"cookie": None, "device": "x"}]),
        (None, "ann", [{"cookie": None, "device": None, "who": "ann"}]),
    ],
)
def test_events_of_an_identifier(
    identifier: str | None, who: str | None, any_of: list[dict[str, Any]]
) -> None:
    """Those with it as the first that is not NULL, or with none, by user."""
    sessions = Sessions("who", None, ("cookie", "`device`"), fallback_gap=1)
    match = {"session_identifier": identifier, "user_id": who}
    past = FakePast()

    found(past, node(sessions, user="session_identifier", fallback=Fallback("who", 1)), match)

    assert past.asked[0]["any_of"] == any_of


@pytest.mark.parametrize(
    ("of", "why"),
    [
        (node(input="people"), "they are seen through the view people"),
        (node(owner_sql="lower(u)"), "the owner of an event follows from lower(u)"),
        (node(Sessions(None, None, ("lower(c)",)), owner_sql="lower(c)"),
         "the owner of an event follows from lower(c)"),
    ],
)  # fmt: skip
def test_events_that_only_spark_could_find(of: Node, why: str) -> None:
    """Where only Spark could find the events, nothing is read and the reason is given."""
    past = FakePast()
    why = f"{why}, {BY_SPARK}"

    assert found(past, of, {"user_id": "ann"}) == UserEvents(why_missing=why, spark_can_tell=True)
    assert past.asked == []


@pytest.mark.parametrize(
    ("where", "applied"),
    [
        ("url != 'x'", True),
        ("length(url) > 3", False),
        ('url != "x"', True),
        ("url != 'it''s'", True),
        ("url != 'a\\\\b'", True),
    ],
)
def test_where(where: str, applied: bool) -> None:
    """WHERE is applied if it compares columns with values, as Spark would."""
    past = FakePast()

    theirs = found(past, node(where=where), {"user_id": "ann"})

    assert past.asked[-1]["where"] == (where if applied else None)
    assert theirs.unapplied_where == ("" if applied else f"`WHERE {where}`")


def test_inputs_that_are_not_what_they_were() -> None:
    """An expired one is read as it is now, recomputed rows are undated, or there are none."""
    past = FakePast()
    found(past, node(), {"user_id": "ann"}, snapshot=60)
    assert past.asked[0]["snapshot"] is None

    theirs = found(FakePast(ROWS.select(["event_ts"])), node(), {"user_id": "ann"})
    assert theirs.undated == ("clicks",)
    assert theirs.events == (Event(1_000_000, input="clicks"), Event(2_000_000, input="clicks"))

    why = found(FakePast(None), node(), {"user_id": "ann"}).why_missing
    assert why == "clicks has no column with their owner"


@pytest.mark.parametrize(("kind", "same_type"), [(pa.string(), True), (pa.int64(), False)])
def test_a_user_of_several_types(kind: pa.DataType, same_type: bool) -> None:
    """A user computed from several types is left to Spark, which casts them to one."""

    class TwoTables(FakePast):
        """Clicks name users by text, taps by another type perhaps."""

        def rows_equal_to(
            self, table: str, any_of: Sequence[Mapping[str, Any]], **_: Any
        ) -> pa.Table:
            self.asked.append({"table": table, "any_of": any_of})
            (user,) = any_of[0]
            values = pa.array([None, None], pa.string() if table == "clicks" else kind)
            return ROWS.append_column(user, values)

    sql = "SELECT user_id AS u, event_ts FROM clicks UNION ALL SELECT who, event_ts FROM taps"
    both = replace(sample.CLICKS.model, name="both", materialization=Materialization.VIEW, sql=sql)
    taps = replace(sample.CLICKS, model=replace(sample.CLICKS.model, name="taps"))
    references = (Reference("clicks", 38, 44), Reference("taps", 81, 85))
    view = replace(sample.CLICKS, model=both, references=references)
    project = sample.project(sample.CLICKS, taps, view)
    past = TwoTables()

    of = node(input="both", user="u")
    theirs = events_of(project, ledger(), past, of, {"u": "ann"}, 1, 9)

    assert [asked["any_of"] for asked in past.asked] == [[{"user_id": "ann"}], [{"who": "ann"}]]
    assert {event.input for event in theirs.events} == ({"clicks", "taps"} if same_type else set())
    assert theirs.spark_can_tell is not same_type


# -- the history of a session, from tables drawn before and after each version


def session(text: str) -> Session:
    """``10-20 3 v1``: from 10 to 20, 3 events, written by version 1; ``n=2`` is a value."""
    span, *words = text.split()
    start, _, end = span.partition("-")
    values = dict(word.split("=") for word in words if "=" in word)
    events = next((int(word) for word in words if word.isdigit()), None)
    version = next((int(word[1:]) for word in words if word[0] == "v" and word[1:].isdigit()), 1)
    return Session(f"at {start}", int(start), int(end or start), version, events, values)


def table(text: str) -> tuple[Session, ...]:
    """Sessions, a comma between them; a dash for none."""
    return tuple(session(part) for part in text.split(",")) if text != "-" else ()


def version(number: int, *, whole: bool = False) -> Version:
    """A version of the table."""
    return Version("visits", number, number, f"s{number}", f"r{number}", number, 0, whole)


class Table:
    """A table of one user's sessions as each of its versions held it; ``?`` is not kept."""

    def __init__(self, *drawn: str, whole: Sequence[int] = (1,)) -> None:
        self.drawn = drawn
        self.versions = [version(at, whole=at in whole) for at in range(1, len(drawn) + 1)]
        self.reads = 0

    def at(self, version: Version, start: int, end: int) -> tuple[Session, ...] | None:
        """What overlaps a span."""
        self.reads += 1
        drawn = self.drawn[version.number - 1]
        if drawn == "?":
            return None
        return tuple(one for one in table(drawn) if one.start <= end and one.end >= start)

    def lost(self, version: Version, start: int, end: int) -> bool:
        """Whether a session of about that time is not in the table any more."""
        del start, end
        if version.number == 1 or "?" in self.drawn[version.number - 2 : version.number]:
            return version.whole
        before, after = (
            {one.key for one in table(self.drawn[at])}
            for at in (version.number - 2, version.number - 1)
        )
        return version.whole or bool(before - after)

    def change_lines(self, start: int, end: int) -> list[str]:
        """What happened, a line for each change."""
        found, blind = changes_in_span(self.versions, self.at, self.lost, start, end)
        lines = []
        for change in found:
            was, now = (
                " ".join(f"{one.start}-{one.end}" for one in part or ())
                for part in (change.before, change.after)
            )
            lines.append(
                " ".join(f"{change.version.number} {verb_of(change)} {was} > {now}".split())
            )
        return [*lines, *(["what was before is not known"] if blind else [])]


class TestWords:
    """One word for what a run did to a session."""

    @pytest.mark.parametrize(
        ("before", "after", "word"),
        [
            ("-", "10-20", Verb.CREATED),
            ("10-20", "10-30", Verb.EXTENDED),
            ("10-20", "5-20", Verb.EXTENDED),
            ("10-20 3", "10-20 4", Verb.EXTENDED),
            ("10-20, 30-40", "10-40", Verb.MERGED),
            ("10-40", "10-20, 30-40", Verb.SPLIT),
            ("10-40, 50-60", "10-20, 30-60", Verb.REGROUPED),
            ("10-30", "10-20", Verb.SHORTENED),
            ("10-20 4", "10-20 3", Verb.SHORTENED),
            ("10-30", "20-40", Verb.MOVED),
            ("10-20 sum=1", "10-20 sum=2", Verb.RECOMPUTED),
            ("10-20 session_number=1", "10-20 session_number=2", Verb.RENUMBERED),
            ("10-20 session_number=1 sum=1", "10-20 session_number=2 sum=2", Verb.RECOMPUTED),
            ("10-20", "-", Verb.REMOVED),
        ],
    )
    def test_a_word_for_each_change(self, before: str, after: str, word: Verb) -> None:
        """It follows from the numbers of sessions, their spans and their values."""
        assert verb_of(VersionChange(version(2), table(before), table(after))) is word

    def test_changes_without_a_state_to_compare(self) -> None:
        """A rebuild that leaves it is one; without the state before only the writer is known."""
        same = VersionChange(version(2, whole=True), table("10-20 3"), table("10-20 3 v2"))

        assert verb_of(same) is Verb.REBUILT
        assert verb_of(VersionChange(version(2), None, table("10-20"))) is Verb.WRITTEN
        assert differing_columns(session("1-2 a=1 b=1"), session("1-2 a=1 b=2 c=3")) == ("b", "c")


@pytest.mark.parametrize(
    ("drawn", "span", "changes"),
    [
        # versions that changed nothing are skipped
        ("10-20 v1 | 10-20 v1 | 10-30 v3 | 10-30 v3, 90-95 v4", (10, 30),
         "1 created > 10-20; 3 extended 10-20 > 10-30"),
        ("10-20 v1 | 10-20 v1, 60-70 v2 | 10-20 v1, 55-70 v3 | 10-70 v4", (10, 70),
         ("1 created > 10-20; 2 created > 60-70; 3 extended 60-70 > 55-70; "
          "4 merged 10-20 55-70 > 10-70")),
        # the other half is shown, though it is outside the span asked for
        ("10-70 v1 | 10-20 v2, 60-70 v2 | 10-20 v2, 60-80 v3", (10, 20),
         "1 created > 10-70; 2 split 10-70 > 10-20 60-70"),
        # two that share no instant
        ("10-20 v1, 40-50 v1 | 10-50 v2", (10, 50),
         "1 created > 10-20; 1 created > 40-50; 2 merged 10-20 40-50 > 10-50"),
        # found by the cells that lost rows in a version
        ("10-20 v1 | - | - | 10-20 v4", (10, 20),
         "1 created > 10-20; 2 removed 10-20 >; 4 created > 10-20"),
        # the row says who wrote it, and nothing more is claimed
        ("? | ? | 10-20 v2 | 10-30 v4", (10, 30),
         "2 written > 10-20; 4 extended 10-20 > 10-30; what was before is not known"),
        ("10-20 v1 | 10-20 v1", (50, 60), ""),  # one that was too long from the beginning
        # the history before a rebuild is compared as anywhere else
        ("10-20 v1 | 10-20 v2 rebuilt | 10-30 v3", (10, 30),
         "1 created > 10-20; 2 rebuilt 10-20 > 10-20; 3 extended 10-20 > 10-30"),
    ],
    ids=["grown", "merged", "split", "two", "again", "expired", "never stored", "rebuilt"],
)  # fmt: skip
def test_sessions_are_followed_to_their_beginnings(
    drawn: str, span: tuple[int, int], changes: str
) -> None:
    """Each change of any session that one of a span came from is found, once and in order."""
    versions = drawn.split(" | ")
    whole = [at for at, text in enumerate(versions, 1) if at == 1 or "rebuilt" in text]
    found = Table(*versions, whole=whole)
    assert "; ".join(found.change_lines(*span)) == changes
    assert "90-95" not in drawn or found.reads < 8


FOUND = (
    VersionChange(version(1), (), table("10-20 v1")),
    VersionChange(version(2), table("10-20 v1"), ()),
    VersionChange(version(3), (), table("10-20 v3")),
)
READ: Mapping[int, InputVersions] = {1: {"clicks": 1}, 2: {"clicks": 4}, 3: {"clicks": 6}}
BEFORE: Mapping[int, InputVersions] = {2: {"clicks": 3}, 3: {"clicks": 5}}


@pytest.mark.parametrize(
    ("events", "verbs"),
    [
        ([Event(12, 1, input="clicks")], ["created", "quarantined", "returned"]),
        ([Event(12, 6, input="clicks")], ["created", "removed", "created"]),
        ([], ["created", "removed", "created"]),
    ],
    ids=["still there", "came later", "no quarantine"],
)
def test_events_that_no_session_covers(events: Sequence[Event], verbs: list[str]) -> None:
    """Events that were read and still exist mean a quarantine; if they are gone, a removal."""
    changes = session_changes(FOUND, READ, BEFORE, events)

    assert [change.verb for change in changes] == verbs
    assert verbs[1] == "quarantined" or changes_since(changes, 10, 20) == changes[2:]


EVENTS_OF_FILES = (
    Event(10, 1, 1), Event(12, 1, 2), Event(14, 1, 3), Event(16, 1, 3), Event(11, 3, 4),
)  # fmt: skip


def test_arrivals_by_version() -> None:
    """
    With some of the files, most events first; later ones are late. Lateness is unknown for the
    oldest events of an unknown first version, and for rows of a rebuilt input.
    """
    versions, paths = [version(at) for at in (1, 2, 3)], {1: "a", 2: "b", 3: "c", 4: "d"}
    first, second = event_batches(EVENTS_OF_FILES, versions, paths, read_at_creation=1, known=True)
    assert (first.events, first.first, first.last, first.late) == (4, 10, 16, False)
    assert (first.files, first.more_files) == (("c", "a"), 1)
    assert (second.version, second.late, second.files) == (version(3), True, ("d",))

    first, second = event_batches(EVENTS_OF_FILES, versions, paths, read_at_creation=1, known=False)
    assert (first.late, second.late) == (None, True)
    rebuilt = [version(1), version(2, whole=True)]
    (group,) = event_batches([Event(10, 2)], rebuilt, {}, read_at_creation=1, known=True)
    assert (group.rebuilt, group.late) == (True, None)
    (group,) = event_batches([Event(10), Event(11)], [], {}, read_at_creation=1, known=True)
    assert (group.version, group.events, group.late) == (None, 2, None), "it was recomputed"
