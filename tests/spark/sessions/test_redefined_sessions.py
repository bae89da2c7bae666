"""Sessions of a changed definition in a project: planned, carried out, killed."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.crash.scenario import living
from tests.spark.events.clicks_project import AllBut
from tests.spark.time_range.daily_project import DailyProject, model

from infold import api
from infold.core.report import RunFailed, RunResult
from infold.planning.derivations import REFOLDS, STATES

pytestmark = pytest.mark.spark

EVENTS = """---
materialization: events
unique_key: [id]
timeseries: {event_time_column: ts, granularity: day}
---
SELECT id, who, ts, amount FROM raw.clicks
"""
DAILY = model("SELECT cast(session_start AS date) AS day, sum(n) AS n FROM visits GROUP BY 1")
PROD = "default_target: prod\ntargets:\n  prod: {protected: true, apply: auto}\n"


def sessions(keys: str, of: str = "clicks", select: str = "count(*) AS n, sum(amount) AS x") -> str:
    """A sessions model of users with these further keys."""
    head = f"---\nmaterialization: sessions\nsessions: {{user: who, {keys}}}\n---\n"
    return f"{head}SELECT {select} FROM {of}\n"


def shop_of(root: Path, **models: str) -> DailyProject:
    """Visits of two users and of nobody, twice; a late event was merged into one of them."""
    made = DailyProject(root / "shop")
    for who, minutes in (("ann", (0, 20, 45)), ("bob", (0, 25, 50)), ("", (0, 10))):
        made.land(*(f"2024-03-0{day}T10:{at:02}:00Z" for day in (1, 2) for at in minutes), who=who)
    made.models(clicks=EVENTS, daily=DAILY, **models)
    api.run(made.project())
    made.land("2024-03-02T11:10:00Z", "2024-03-02T13:00:00Z")
    api.run(made.project())
    return made


def actions(result: RunResult) -> list[tuple[str, str]]:
    """What was done to which model."""
    return [(step.model, str(step.action)) for step, _ in result.steps]


def die_after_commit(shop: DailyProject, *, allow_refresh: bool = False) -> None:
    """A run that dies when the visits are changed, and the ledger does not know it yet."""
    with living(met=AllBut([("visits", "table visits: after commit")])) as life:
        api.run(shop.project(), progress=life, jobs=1, allow_refresh=allow_refresh)
    assert life.dead


def test_sessions_that_end_elsewhere(tmp_path: Path) -> None:
    """Tables are changed by what they read before; then late events are folded in, in one run.

    Readers see the changed cells, and a later run has nothing to do. A protected target refuses it
    like a rebuild. Where a run died after its commit, the next one does not change the table again.
    """
    shop = shop_of(
        tmp_path,
        visits=sessions("gap: 30 minutes"),
        seen="---\nmaterialization: view\n---\nSELECT * FROM clicks WHERE id <> 3\n",
        of_view=sessions("gap: 30 minutes", "seen"),
        cut=sessions("gap: 30 minutes, session_number: true, quarantine_after: 1 hour"),
    )
    shop.models(
        visits=sessions("gap: 20 minutes"),
        of_view=sessions("gap: 20 minutes, max_length: 30 minutes", "seen"),
        cut=sessions("gap: 50 minutes, session_number: true, quarantine_after: 30 minutes"),
    )
    shop.land("2024-03-02T10:30:00Z", "2024-03-02T12:00:00Z")
    result = api.run(shop.project())
    done = actions(result)
    assert {*done[:3]} == {(name, "refold") for name in ("visits", "of_view", "cut")}
    assert {*done[3:]} == {
        ("clicks", "ingest"),
        *((name, "fold") for name in ("visits", "of_view", "cut")),
        ("daily", "recompute"),
    }
    [(step, receipt)] = [one for one in result.steps[:3] if one[0].model == "visits"]
    assert (step.reasons[0].detail, receipt.read, receipt.sessions_split) == (REFOLDS, 13, 7)
    assert not api.run(shop.project()).steps

    config = shop.root / "infold.yml"
    config.write_text(config.read_text(encoding="utf-8") + PROD, encoding="utf-8")
    shop.models(visits=sessions("gap: 41 minutes"))
    with pytest.raises(RunFailed) as refused:
        api.run(shop.project())
    assert refused.value.exit_code == 3
    before = shop.rows("visits")
    die_after_commit(shop, allow_refresh=True)
    after = shop.rows("visits")
    assert after != before
    assert actions(api.run(shop.project())) == [("daily", "recompute")]
    assert shop.rows("visits") == after


KEYS = "gap: 30 minutes, session_number: true, quarantine_after: 40 minutes, keep: head"
BEFORE = "count(*) AS n, sum(amount) AS x, avg(id) AS m, last(amount) AS l"
AFTER = "sum(amount) / count(*) AS per, sum(id) AS s, last(amount) AS last, count(*) AS n"
NAMED = "WHERE who IS NOT NULL AND upper(who) <> 'BOB'"


def test_sessions_that_follow_from_stored_states(tmp_path: Path) -> None:
    """
    No event is read, and late ones are folded in then; whole owners leave table and quarantine.

    Where a run died after its commit, the next one does not change the table again.
    """
    shop = shop_of(tmp_path, visits=sessions(KEYS, select=BEFORE))
    ledger = api.ledger(shop.project())
    held = {one.owner for one in ledger.quarantined("visits")}
    assert (held, ledger.left_out()["visits"]) == ({"ann", "bob"}, 4)
    changed = sessions(KEYS, select=AFTER).replace("clicks\n", f"clicks {NAMED}\n")
    shop.models(visits=changed)
    before = shop.rows("visits")
    die_after_commit(shop)
    assert shop.rows("visits") != before
    assert "visits" not in {model for model, _ in actions(api.run(shop.project()))}

    ledger = api.ledger(shop.project())
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
