"""The input rows that are a session's events, and when only Spark can find them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import pyarrow as pa
import pytest
from tests.cli import sample
from tests.ledger.fresh import FreshLedger

from infold.core.model import Materialization
from infold.core.ports import TimeSpan
from infold.core.project import Node, Reference
from infold.core.queries import Fallback
from infold.core.record import Outcome
from infold.core.session_rules import Sessions
from infold.core.trace import Trace
from infold.inspecting.session_events import BY_SPARK, UserEvents, events_of
from infold.inspecting.session_history import Event

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
        (
            node(Sessions(None, None, ("lower(c)",)), owner_sql="lower(c)"),
            "the owner of an event follows from lower(c)",
        ),
    ],
)
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
    """One whose snapshot has expired is read as it is now; rows of a recomputed table do not say
    when they arrived; one without the column, of another definition, gives no events.
    """
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
