"""Sessions whose definition changes forward-only: the border ends them, each side has its own."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.crash.scenario import living
from tests.spark.events.clicks_project import AllBut
from tests.spark.sessions.test_redefined_sessions import DAILY, EVENTS, sessions
from tests.spark.time_range.daily_project import DailyProject

from infold import api
from infold.core.interval import parse_instant_text
from infold.core.plan import Action, PlanOptions
from infold.core.report import RunFailed, RunResult
from infold.core.session_rules import ManualEntry

pytestmark = pytest.mark.spark

FIRST = sessions("gap: 30 minutes, session_number: true")
SECOND = sessions(
    "gap: 2 hours, quarantine_after: 3 hours, keep: head, session_number: true",
    select="max(id) AS top, count(*) AS n, sum(amount) AS x",
)
THIRD = sessions(
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
    rows = api.lake(shop.project()).rows("visits").to_pylist()
    return sorted(
        f"{row['who']} {row['session_start']:%d %H:%M}-{row['session_end']:%H:%M}"
        f" {row['n']} #{row['session_number']} {row.get('top')}"
        for row in rows
        if row["who"] != "crowd"
    )


def run(shop: DailyProject) -> list[Action]:
    """What a run did to the sessions."""
    result: RunResult = api.run(shop.project(), allow_removals=True)
    return [step.action for step, _ in result.steps if step.model == "visits"]


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
    run(shop)

    # Late and new, together with the change.
    new = ("05T23:58", "06T00:05", "06T01:30", "01T10:50")
    shop.land(*(f"2024-03-{at}:00Z" for at in new))
    shop.land(*(f"2024-03-06T{at}:00:00Z" for at in ("08", "10", "12")), who="bob")
    shop.models(visits=forward(SECOND))
    assert run(shop) == [Action.FOLD]
    assert visits(shop) == [
        "ann 01 10:00-10:50 3 #1 None",
        "ann 05 23:50-23:58 2 #2 None",
        "ann 06 00:05-01:30 2 #3 10",
        "bob 01 10:00-10:00 1 #1 None",
        "bob 01 11:00-11:00 1 #2 None",
        "bob 06 08:00-10:00 2 #3 13",
    ]
    assert not api.run(shop.project()).steps

    shop.land("2024-03-05T23:59:00Z", "2024-03-06T03:00:00Z")
    (shop.root / "landing" / gone).unlink()
    entry = ManualEntry(0, "bob", False, None, None)
    api.ledger(shop.project()).add_entries("visits", [entry])
    assert run(shop) == [Action.FOLD]
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
    with living(met=AllBut([("visits", "table visits: before commit")])) as life:
        api.run(shop.project(), asked=asked, progress=life, jobs=1)
    assert life.dead
    run(shop)
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
    rows = api.lake(shop.project()).rows("visits", where="session_number = 2").to_pylist()
    [id_] = [row["session_id"] for row in rows if row["who"] == "ann"]
    [told] = api.session_history(shop.project(), id_).histories
    assert "Its definition is in force before 2024-03-05: sessions end there." in told.notes
    assert api.show(shop.project(), "set_aside").num_rows == 2

    # Built again, each side is as it was; what would change the earlier side is refused.
    api.restate(shop.project(), ["visits"])
    assert visits(shop) == third
    shop.models(visits=forward(THIRD.replace("count(*)", "cast(count(*) AS string)")))
    with pytest.raises(RunFailed) as caught:
        api.run(shop.project())
    assert "forward-only-types" in [one.error.slug for one in caught.value.result.failures]
    assert visits(shop) == third

    shop.models(visits=SECOND)  # not forward-only: all is built by the newest one
    run(shop)
    assert visits(shop) == [
        "ann 01 10:00-10:50 3 #1 11",
        "ann 04 23:50-00:10 2 #2 18",
        "ann 05 23:50-01:30 5 #3 15",
        "bob 06 08:00-12:00 3 #1 14",
    ]
    assert not api.ledger(shop.project()).traces()["visits"].earlier
