"""Sessions of a changed definition in a project: planned, carried out, killed, counted."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from tests.spark.reading.landing import LandingProject
from tests.spark.time_range.daily_project import DailyProject, model

from infold import api
from infold.core.interval import parse_instant_text
from infold.core.plan import PlanOptions
from infold.core.record import Receipt
from infold.core.sessions import ManualEntry
from infold.planning.derivations import REFOLDS, STATES

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark


EVENTS = """---
materialization: events
unique_key: [id]
timeseries: {event_time_column: ts, granularity: day}
---
SELECT id, who, ts, amount FROM raw.clicks
"""
DAILY = model("SELECT cast(session_start AS date) AS day, sum(n) AS n FROM visits GROUP BY 1")


def visits_of(
    keys: str, of: str = "clicks", select: str = "count(*) AS n, sum(amount) AS x"
) -> str:
    """A sessions model of users with these further keys."""
    head = f"---\nmaterialization: sessions\nsessions: {{user: who, {keys}}}\n---\n"
    return f"{head}SELECT {select} FROM {of}\n"


KEYS = "gap: 30 minutes, session_number: true, quarantine_after: 40 minutes, keep: head"
BEFORE = "count(*) AS n, sum(amount) AS x, avg(id) AS m, last(amount) AS l"
AFTER = "sum(amount) / count(*) AS per, sum(id) AS s, last(amount) AS last, count(*) AS n"
NAMED = "WHERE who IS NOT NULL AND upper(who) <> 'BOB'"


def test_sessions_of_other_definitions(tmp_path: Path) -> None:
    """
    Tables are changed by what they read before, or follow from stored states: no event is read, and
    whole owners leave table and quarantine. Then late events are folded in, in one run.

    Where a run died after its commit, the next one does not change the table again.
    """
    shop = DailyProject(tmp_path / "shop")
    for who, minutes in (("ann", (0, 20, 45)), ("bob", (0, 25, 50)), ("", (0, 10))):
        shop.land(*(f"2024-03-0{day}T10:{at:02}:00Z" for day in (1, 2) for at in minutes), who=who)
    shop.models(
        clicks=EVENTS,
        daily=DAILY,
        visits=visits_of("gap: 30 minutes"),
        seen="---\nmaterialization: view\n---\nSELECT * FROM clicks WHERE id <> 3\n",
        of_view=visits_of("gap: 30 minutes", "seen"),
        cut=visits_of("gap: 30 minutes, session_number: true, quarantine_after: 1 hour"),
        stated=visits_of(KEYS, select=BEFORE),
    )
    shop.go()
    shop.land("2024-03-02T11:10:00Z", "2024-03-02T13:00:00Z")
    shop.go()
    ledger = api.ledger_of(shop.project())
    held = {one.owner for one in ledger.quarantined("stated")}
    assert (held, ledger.left_out()["stated"]) == ({"ann", "bob"}, 4)

    stated = visits_of(KEYS, select=AFTER).replace("clicks\n", f"clicks {NAMED}\n")
    shop.models(stated=stated)
    before = shop.rows("stated")
    shop.die_at("stated", "table stated: after commit")
    assert shop.rows("stated") != before
    assert not shop.actions()
    ledger = api.ledger_of(shop.project())
    assert {one.owner for one in ledger.quarantined("stated")} == {"ann"}
    assert ledger.left_out()["stated"] == 0

    shop.models(
        visits=visits_of("gap: 20 minutes"),
        of_view=visits_of("gap: 20 minutes, max_length: 30 minutes", "seen"),
        cut=visits_of("gap: 50 minutes, session_number: true, quarantine_after: 30 minutes"),
        stated=stated.replace("sum(id) AS s", "sum(id) AS sum, sum(id) - count(*) AS less"),
    )
    shop.land("2024-03-02T10:30:00Z", "2024-03-02T12:00:00Z")
    shop.land("2024-03-01T10:30:00Z", who="")
    result = shop.go()
    done = [(step.model, str(step.action)) for step, _ in result.steps]
    tables = ("visits", "of_view", "cut", "stated")
    assert {*done[:4]} == {*((name, "refold") for name in tables[:3]), ("stated", "derive")}
    assert {*done[4:]} == {
        ("clicks", "ingest"),
        *((name, "fold") for name in tables),
        ("daily", "recompute"),
    }
    receipts = {step.model: (step.reasons[0].detail, each) for step, each in result.steps[:4]}
    why, receipt = receipts["visits"]
    assert (why, receipt.read, receipt.sessions_split) == (REFOLDS, 13, 7)
    why, receipt = receipts["stated"]
    assert (why, receipt.read) == (STATES, 0)
    assert not shop.go().steps
    assert api.verify(shop.project(), select=["stated"]).equal


FIRST = visits_of("gap: 30 minutes, session_number: true")
SECOND = visits_of(
    "gap: 2 hours, quarantine_after: 3 hours, keep: head, session_number: true",
    select="max(id) AS top, count(*) AS n, sum(amount) AS x",
)
THIRD = visits_of(
    "gap: 45 minutes, max_length: 2 hours, session_number: true",
    "clicks WHERE id <> 15",
    "count(*) AS n, max(id) AS top, sum(amount) AS x, count(DISTINCT day) AS days",
)
BORDER = parse_instant_text("2024-03-05")


def forward(text: str) -> str:
    """The same definition, which holds for what is not built yet."""
    return text.replace("}\n---\n", "}\nforward_only: true\n---\n")


def visits(shop: DailyProject) -> list[str]:
    """The sessions: whose, from when to when, events, number and greatest id; but for the crowd."""
    rows = api.lake_of(shop.project()).rows("visits").to_pylist()
    return sorted(
        f"{row['who']} {row['session_start']:%d %H:%M}-{row['session_end']:%H:%M}"
        f" {row['n']} #{row['session_number']} {row.get('top')}"
        for row in rows
        if row["who"] != "crowd"
    )


def test_each_side_of_a_border_has_its_definition(tmp_path: Path) -> None:
    """Definitions change twice, from the first day that is not built and from a built one. Late and
    removed events on all sides are in the sessions of the definition in force there, no session
    reaches over a border, and numbers go on over it.
    """
    shop = DailyProject(tmp_path / "shop")
    shop.models(clicks=EVENTS.replace("amount", "amount, day"), daily=DAILY, visits=forward(FIRST))
    shop.land("2024-03-01T10:00:00Z", "2024-03-01T10:20:00Z", "2024-03-05T23:50:00Z")
    gone = shop.land("2024-03-01T10:00:00Z", "2024-03-01T11:00:00Z", who="bob")
    shop.land("2024-03-01T12:00:00Z", "2024-03-05T12:00:00Z", who="")
    shop.ids = 100
    shop.land(*(f"2024-03-01T{hour:02}:30:00Z" for hour in range(24)), who="crowd")
    shop.ids = 7
    shop.go()

    # Late and new, together with the change.
    new = ("05T23:58", "06T00:05", "06T01:30", "01T10:50")
    shop.land(*(f"2024-03-{at}:00Z" for at in new))
    shop.land(*(f"2024-03-06T{at}:00:00Z" for at in ("08", "10", "12")), who="bob")
    shop.models(visits=forward(SECOND))
    shop.land("2024-03-05T23:59:00Z", "2024-03-06T03:00:00Z")
    shop.drop(gone)
    entry = ManualEntry(0, "bob", False, None, None)
    api.ledger_of(shop.project()).add_entries("visits", [entry])
    assert shop.actions()["visits"] == ["fold"]
    assert visits(shop) == [
        "ann 01 10:00-10:50 3 #1 None",
        "ann 05 23:50-23:59 3 #2 None",
        "ann 06 00:05-03:00 3 #3 16",
        "bob 06 08:00-12:00 3 #1 14",
    ]

    # The third from a day that is built. A run dies over it; the next one goes on, as was asked.
    shop.models(visits=forward(THIRD))
    shop.land("2024-03-05T00:10:00Z", "2024-03-04T23:50:00Z")
    asked = PlanOptions(forward_only={"visits": BORDER})
    shop.die_at("visits", "table visits: before commit", asked)
    shop.go()
    third = [
        "ann 01 10:00-10:50 3 #1 None",
        "ann 04 23:50-23:50 1 #2 None",
        "ann 05 00:10-00:10 1 #3 17",
        "ann 05 23:50-00:05 3 #4 9",
        "ann 06 01:30-01:30 1 #5 10",
        "ann 06 03:00-03:00 1 #6 16",
        "bob 06 08:00-08:00 1 #1 12",
        "bob 06 10:00-10:00 1 #2 13",
        "bob 06 12:00-12:00 1 #3 14",
    ]
    assert visits(shop) == third
    rows = api.lake_of(shop.project()).rows("visits", where="session_number = 2").to_pylist()
    [id_] = [row["session_id"] for row in rows if row["who"] == "ann"]
    [told] = api.session_history(shop.project(), id_).histories
    assert "Its definition is in force before 2024-03-05: sessions end there." in told.notes
    assert api.show(shop.project(), "set_aside").num_rows == 2

    # Built again, each side is as it was; what would change the earlier side is refused.
    api.restate(shop.project(), ["visits"])
    assert visits(shop) == third
    shop.models(visits=forward(THIRD.replace("count(*)", "cast(count(*) AS string)")))
    assert shop.failures()["visits"].slug == "forward-only-types"
    assert visits(shop) == third


WITH_USERS = """---
materialization: events
unique_key: [id]
timeseries: {event_time_column: at}
---
SELECT id, at, u FROM raw.c"""

SESSIONS = """---
materialization: sessions
sessions: {user: u, gap: 30 minutes, quarantine_after: 1 hour}
---
SELECT count(*) AS NAME FROM c"""

TABLE = """---
materialization: table
---
SELECT id, at AS session_end FROM c"""

LONG = ("10:00", "10:25", "10:50", "11:15")
"""Of a session that is longer than its model's limit."""


class Visits(LandingProject):
    """Events of users, and sessions made of them."""

    def __init__(self, root: Path, warehouse: Path) -> None:
        super().__init__(root, warehouse, "landing/*.json")
        self.declare("", "{id: string, at: timestamp, u: string}")
        self.model("c", WITH_USERS)

    def visit(self, user: str, *times: str) -> None:
        """A file of events of one user on a day."""
        ids = [(f"{user}{time}", f"2024-03-01T{time}") for time in times]
        rows = [json.dumps({"id": id_, "at": at, "u": user}) for id_, at in ids]
        self.put(f"{ids[0][0].replace(':', '')}.json", "\n".join(rows) + "\n")

    def built(self, text: str) -> Receipt:
        """The receipt of the sessions, after a run with this definition of theirs."""
        self.model("s", text)
        return self.receipts()["s"]


def became(receipt: Receipt) -> tuple[int, int, int]:
    """How many sessions are new, extended and removed, as a receipt says."""
    return receipt.sessions_new, receipt.sessions_extended, receipt.sessions_removed


def test_sessions_that_were_there_before_are_not_new(
    tmp_path: Path, warehouse: Path, spark: SparkSession
) -> None:
    """Sessions that existed before a rebuild are not new; new minus removed is the rows gained.

    A rebuild of an incompatible or damaged table counts all its sessions as new and removed.
    """
    land = Visits(tmp_path, warehouse)
    for user, times in {"x": ("10:00",), "y": ("11:00",), "z": ("12:00",), "q": LONG}.items():
        land.visit(user, *times)
    found = land.built(SESSIONS.replace("NAME", "a"))
    assert (found.written, found.removed) == (3, 0)
    assert (became(found), found.sessions_quarantined) == ((3, 0, 0), 1)

    # x ends later; y begins earlier and so is another session; q was in quarantine, r was not
    for user, times in {"x": ("10:20",), "y": ("10:45",), "w": ("09:00",), "r": LONG}.items():
        land.visit(user, *times)
    again = SESSIONS.replace("count(*) AS NAME", "count(id) AS b")
    found = land.built(again)
    assert (found.written, found.removed) == (4, 3)
    assert (became(found), found.sessions_quarantined) == ((2, 1, 1), 1)

    # a query that leaves most of them out
    found = land.built(
        SESSIONS.replace("count(*) AS NAME FROM c", "max(id) AS b FROM c WHERE u = 'x'")
    )
    assert (found.written, found.removed) == (1, 4)
    assert (became(found), found.sessions_quarantined) == ((0, 0, 3), 0)

    land.built(TABLE)
    found = land.built(again)
    assert (found.written, found.removed, became(found)) == (4, 14, (4, 0, 14))
    for file in (warehouse / land.name / "s" / "data").rglob("*.parquet"):
        file.write_bytes(b"PAR1" + b"x" * (file.stat().st_size - 8) + b"PAR1")
    found = land.built(SESSIONS.replace("count(*) AS NAME", "max(id) AS b"))
    assert (found.written, found.removed, became(found)) == (4, 4, (4, 0, 4))
    assert land.proven()
