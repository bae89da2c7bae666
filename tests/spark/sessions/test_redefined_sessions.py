"""Sessions of a changed definition in a project: planned, carried out, killed, verified."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from pathlib import Path

import pytest
from tests.crash.scenario import living
from tests.spark.time_range.daily_project import DailyProject, model

from infold import api
from infold.core.report import RunFailed, RunResult
from infold.planning.refolds import REFOLDS

pytestmark = pytest.mark.spark

EVENTS = """---
materialization: events
unique_key: [id]
timeseries: {{event_time_column: ts, granularity: day}}
---
SELECT id, who, ts, amount{0} FROM raw.clicks
"""
DAILY = model("SELECT cast(session_start AS date) AS day, sum(n) AS n FROM visits GROUP BY 1")


def sessions(keys: str, of: str = "clicks", select: str = "count(*) AS n, sum(amount) AS x") -> str:
    """A sessions model of users with these further keys."""
    head = f"---\nmaterialization: sessions\nsessions: {{user: who, {keys}}}\n---\n"
    return f"{head}SELECT {select} FROM {of}\n"


@pytest.fixture
def shop(tmp_path: Path) -> DailyProject:
    """Visits of two users, twice, and what is made of them by day."""
    made = DailyProject(tmp_path / "shop")
    for who, minutes in (("ann", (0, 20, 45)), ("bob", (0, 5, 10, 50))):
        made.land(*(f"2024-03-0{day}T10:{at:02}:00Z" for day in (1, 2) for at in minutes), who=who)
    made.models(clicks=EVENTS.format(""), visits=sessions("gap: 30 minutes"), daily=DAILY)
    made.run()
    return made


def actions(result: RunResult) -> list[tuple[str, str]]:
    """What was done to which model."""
    return [(step.model, str(step.action)) for step, _ in result.steps]


def test_gaps_and_late_events(shop: DailyProject) -> None:
    """The table is changed by what it read before; then late events are folded in, in one run.

    Readers see the changed cells, and a later run has nothing to do.
    """
    shop.models(visits=sessions("gap: 20 minutes"))
    shop.land("2024-03-02T10:30:00Z", "2024-03-02T12:00:00Z")
    result = shop.run()

    assert actions(result) == [
        ("visits", "refold"),
        ("clicks", "ingest"),
        ("visits", "fold"),
        ("daily", "recompute"),
    ]
    [(step, receipt), *_] = result.steps
    assert (step.reasons[0].detail, receipt.read, receipt.sessions_split) == (REFOLDS, 6, 2)
    assert not api.run(shop.project()).steps
    shop.models(visits=sessions("gap: 41 minutes"))
    assert actions(shop.run()) == [("visits", "refold"), ("daily", "recompute")]
    assert len(shop.rows("visits")) == 5


def test_what_is_built_again(shop: DailyProject) -> None:
    """Other events, other columns, a new campaign and what was asked for are built."""
    shop.models(seen="---\nmaterialization: view\n---\nSELECT * FROM clicks WHERE id <> 3\n")
    shop.models(
        of_view=sessions("gap: 30 minutes", "seen"),
        cut=sessions("gap: 30 minutes, session_number: true, quarantine_after: 1 hour"),
    )
    shop.run()
    shop.models(
        of_view=sessions("gap: 20 minutes, max_length: 30 minutes", "seen"),
        cut=sessions("gap: 50 minutes, session_number: true, quarantine_after: 30 minutes"),
    )
    assert {*actions(shop.run())} == {("of_view", "refold"), ("cut", "refold")}
    shop.models(
        clicks=EVENTS.format(" * 2 AS amount"),
        visits=sessions("gap: 20 minutes"),
        of_view=sessions("gap: 30 minutes", "seen", "count(*) AS n"),
        cut=sessions("gap: 50 minutes, cuts: {campaign: [amount]}"),
    )

    done = actions(shop.run())

    assert {one for one in done if one[0] != "daily"} == {
        ("clicks", "derive"),
        *((name, "build") for name in ("visits", "of_view", "cut")),
    }


def test_a_protected_target_refuses(shop: DailyProject) -> None:
    """There it is refused like a rebuild, unless that run was allowed to."""
    config = shop.root / "infold.yml"
    prod = "default_target: prod\ntargets:\n  prod: {protected: true, apply: auto}\n"
    config.write_text(config.read_text(encoding="utf-8") + prod, encoding="utf-8")
    shop.models(visits=sessions("gap: 20 minutes"))

    with pytest.raises(RunFailed) as refused:
        api.run(shop.project())

    assert refused.value.exit_code == 3
    assert actions(api.run(shop.project(), allow_refresh=True))[0] == ("visits", "refold")


class AllBut(Collection[tuple[str, str]]):
    """All write points but some, each with the model that is being built."""

    def __init__(self, *points: tuple[str, str]) -> None:
        self.points = points

    def __contains__(self, point: object) -> bool:
        return point not in self.points

    def __iter__(self) -> Iterator[tuple[str, str]]:
        return iter(self.points)

    def __len__(self) -> int:
        return len(self.points)


POINTS = (
    "ledger prepare_step: before commit",
    "table visits: before commit",
    "table visits: after commit",
)
"""In the order in which a step comes to them."""


def test_a_run_that_dies(shop: DailyProject) -> None:
    """Wherever a run dies, the table is as before or as after, and it is changed only once."""
    states = [shop.rows("visits")]
    shop.models(visits=sessions("gap: 20 minutes"))
    for point in POINTS:
        with living(met=AllBut(("visits", point))) as life:
            api.run(shop.project(), progress=life, jobs=1)
        assert life.dead
        states.append(shop.rows("visits"))
    assert states[0] == states[1] == states[2] != states[3]
    assert ("visits", "refold") not in actions(shop.run())  # the run before has done it
    assert shop.rows("visits") == states[3]
