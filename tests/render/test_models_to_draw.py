"""Which models have a line in the strip of a plan."""

from __future__ import annotations

from dataclasses import replace

import pytest
from tests.planning.strips import DAILY, day, project

from infold.core.interval import Ranges
from infold.core.plan import Action, Plan, Skipped, Step
from infold.core.project import Node
from infold.render.plan import models_to_draw

STEP = Step("m1", Action.BUILD, Ranges.ever(), ())
LEFT = (Skipped("m0", "up to date"), Skipped("m2", "outside the window", Ranges((day(1),))))


def named(number: int) -> Node:
    """A table of that number."""
    return replace(DAILY, model=replace(DAILY.model, name=f"m{number}"))


@pytest.mark.parametrize(("tables", "drawn"), [(3, 3), (40, 40), (41, 2)])
def test_of_many_tables_those_with_something_to_say_are_drawn(tables: int, drawn: int) -> None:
    """Few tables are all drawn; of many only those that are built or stale."""
    found = models_to_draw(project(*map(named, range(tables))), Plan((STEP,), LEFT))

    assert len(found) == drawn
    assert {"m1", "m2"} <= found
