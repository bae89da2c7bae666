"""Sessions that follow from stored states, in a project: planned, carried out, killed, verified."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.crash.scenario import living
from tests.spark.sessions.test_redefined_sessions import (
    DAILY,
    EVENTS,
    POINTS,
    AllBut,
    actions,
    sessions,
)
from tests.spark.time_range.daily_project import DailyProject

from infold import api
from infold.planning.refolds import STATES

pytestmark = pytest.mark.spark

GAP = "gap: 30 minutes"
KEYS = f"{GAP}, session_number: true, quarantine_after: 40 minutes, keep: head"
BEFORE = "count(*) AS n, sum(amount) AS x, avg(id) AS m, last(amount) AS l"
AFTER = "sum(amount) / count(*) AS per, sum(id) AS s, last(amount) AS last, count(*) AS n"
NAMED = "WHERE who IS NOT NULL AND upper(who) <> 'BOB'"


@pytest.fixture
def shop(tmp_path: Path) -> DailyProject:
    """Visits of two users and nobody, twice; a late event was merged into one of them."""
    made = DailyProject(tmp_path / "shop")
    for who, minutes in (("ann", (0, 20, 45)), ("bob", (0, 25, 50)), ("", (0, 10))):
        made.land(*(f"2024-03-0{day}T10:{at:02}:00Z" for day in (1, 2) for at in minutes), who=who)
    made.models(clicks=EVENTS.format(""), daily=DAILY, visits=sessions(KEYS, select=BEFORE))
    made.run()
    made.land("2024-03-02T11:10:00Z", "2024-03-02T13:00:00Z")
    made.run()
    return made


def test_runs_and_deaths(shop: DailyProject) -> None:
    """
    No event is read, and late ones are folded in then; whole owners leave table and quarantine.

    Wherever a run dies over it, the table is as before or as after.
    """
    ledger = api.ledger(shop.project())
    held = {one.owner for one in ledger.quarantined("visits")}
    assert (held, ledger.left_out()["visits"]) == ({"ann", "bob"}, 4)
    changed = sessions(KEYS, select=AFTER).replace("clicks\n", f"clicks {NAMED}\n")
    shop.models(visits=changed)
    states = [shop.rows("visits")]
    for point in POINTS:
        with living(met=AllBut(("visits", point))) as life:
            api.run(shop.project(), progress=life, jobs=1)
        assert life.dead
        states.append(shop.rows("visits"))
    assert states[0] == states[1] == states[2] != states[3]
    ledger = api.ledger(shop.project())
    assert "visits" not in {model for model, _ in actions(shop.run())}  # the run before has done it

    assert {one.owner for one in ledger.quarantined("visits")} == {"ann"}
    assert ledger.left_out()["visits"] == 0
    shop.models(
        visits=changed.replace("sum(id) AS s", "sum(id) AS sum, sum(id) - count(*) AS less")
    )
    shop.land("2024-03-01T10:30:00Z", "2024-03-02T13:05:00Z")
    shop.land("2024-03-01T10:30:00Z", who="")
    result = shop.run()
    assert actions(result) == [
        ("visits", "derive"),
        ("clicks", "ingest"),
        ("visits", "fold"),
        ("daily", "recompute"),
    ]
    [(step, receipt), *_] = result.steps
    assert (step.reasons[0].detail, receipt.read) == (STATES, 0)
