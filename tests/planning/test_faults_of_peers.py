"""
What goes wrong elsewhere when definitions or plans change, with the right outcome here.

From the issues of SQLMesh, by number: 2985, 4837, 5201, 5286 and 5400, 5906, 3015, 5236 and 5612,
1464 and 3859, 2609. Faults of shared environments and of destructive changes are tested with these.
"""

from __future__ import annotations

from dataclasses import replace

import pytest
from tests.declare.shop import SHOP, spoilt
from tests.declare.shop import project as compiled
from tests.inspecting.test_changed_definitions import built as kept
from tests.planning.strips import (
    ALL,
    DAILY,
    DAYS,
    FIRST,
    USERS,
    built,
    day,
    node,
    planned,
    project,
    states,
    strip,
)

from infold.analysis.definitions import compare
from infold.analysis.definitions.meanings import Meaning
from infold.core.definition import Redefinition
from infold.core.interval import DAY, HOUR, Granularity, Interval, Ranges
from infold.core.model import Incremental, Materialization, Model, Timeseries
from infold.core.plan import Action, InputDiff, ModelObservation, PlanOptions
from infold.core.project import Input, Node
from infold.inspecting.changed_definitions import ChangedDefinitions
from infold.messages.errors import InfoldError
from infold.planning.selection import parse_window


def hourly(name: str, reads: str) -> Node:
    """A table of hours since 1970 with a cron of five minutes, as it was never built."""
    series = Timeseries("at", "hour", Granularity.HOUR)
    model = Model(
        name, Materialization.TABLE, "", series, incremental=Incremental(cron="*/5 * * * *")
    )
    return replace(node(model, Input(reads, "at")), start=0)


def test_half_a_million_hours_are_one_range(monkeypatch: pytest.MonkeyPatch) -> None:
    """A start in 1970 and hourly cells cost a plan nothing: cells without rows are never listed."""
    calls: list[int] = []
    following = Granularity.next

    def counted(self: Granularity, at: int) -> int:
        calls.append(at)
        return following(self, at)

    monkeypatch.setattr(Granularity, "next", counted)
    tables = [hourly(f"t{at}", "sessions") for at in range(80)]
    rows = states("# " * DAYS)
    seen = {
        table.name: ModelObservation(inputs=(InputDiff("sessions", 0, 1, cells=rows),))
        for table in tables
    }

    made = planned(*tables, now=FIRST + 30 * DAY, **seen)

    assert len(made.steps) == len(tables)
    assert {(len(step.cells), step.cells.span) for step in made.steps} == {
        (1, Interval(0, FIRST + 30 * DAY))
    }
    assert all(step.trace and len(step.trace.pending_ranges) == 1 for step in made.steps)
    assert len(calls) <= len(tables) * 2 * 24 * DAYS


def test_only_what_changed_is_compared(monkeypatch: pytest.MonkeyPatch) -> None:
    """One changed model of a project is one comparison, however many others there are."""
    copies = {f"models/d{at}.sql": SHOP["models/daily.sql"] for at in range(20)}
    ledger = kept(compiled({**SHOP, **copies}))
    compared: list[str] = []
    redefinition = compare.redefinition

    def noted(before: Meaning | None, now: Meaning) -> Redefinition | None:
        compared.append(now.node.name)
        return redefinition(before, now)

    monkeypatch.setattr(compare, "redefinition", noted)
    now = compiled({**spoilt("models/daily.sql", "FROM sessions", "FROM sessions /**/"), **copies})

    assert [one.model for one in ChangedDefinitions(now, ledger).all()] == ["daily"]
    assert compared == ["daily"]


def test_restating_leaves_no_trace_behind() -> None:
    """However often a day is restated: what holds after it is what held before."""
    seen = replace(built(DAILY), cells=states("# # #"))
    made = planned(DAILY, asked=PlanOptions(restated={"daily": Ranges((day(1),))}), daily=seen)

    assert strip(made, "daily") == "- B - - - - -"
    assert made.steps[0].trace == seen.trace


def test_a_short_window_does_not_empty_a_whole_table() -> None:
    """A table without cells is built whole, or left alone; half a cell is refused."""
    hour = PlanOptions(window=Interval(FIRST, FIRST + HOUR))
    seen = replace(built(USERS), inputs=(InputDiff("raw.users", 1, 2, ()),))
    assert not planned(USERS, asked=hour, users=seen)
    new = ModelObservation(inputs=(InputDiff("raw.users", 0, 1),))
    [step] = planned(USERS, asked=hour, users=new).steps
    assert (step.action, step.cells) == (Action.BUILD, ALL)

    with pytest.raises(InfoldError) as refused:
        parse_window(project(DAILY), ["daily"], "2019-10-21 01:00", "2019-10-21 02:00")
    assert refused.value.slug == "window-unaligned"
