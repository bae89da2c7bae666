"""What no test looks at: models without a test, and branches that no row goes through."""

from __future__ import annotations

from collections.abc import Sequence

from infold.core.project import Project
from infold.core.typed_text import Unusable
from infold.core.unit_tests import Row, UnitTest, Untested
from infold.messages.errors import Spot
from infold.spark.rows_that import conditions_met
from infold.testing.branches import Branch, branches
from infold.testing.needed import needed_models
from infold.testing.play import Player

_ALONE = "Spark cannot evaluate it alone"


def untested(
    project: Project, players: Sequence[Player], tests: Sequence[UnitTest]
) -> tuple[Untested, ...]:
    """
    All of it, in the order of the models.

    A model has a test if one expects rows of it. Its branches are gone through by the rows that any
    test has in what it reads, also of a test that expects rows of other models.
    """
    expected = {name for test in tests for name in test.models}
    found: list[Untested] = []
    for node in project:
        if node.landed:
            continue
        place = node.model.place
        if node.name not in expected:
            found.append(Untested(node.name, Spot(place.file, place.line)))
        every = branches(node)
        for table in dict.fromkeys(branch.table for branch in every):
            found += _of_table(players, [b for b in every if b.table == table], table)
    return tuple(found)


def _of_table(players: Sequence[Player], some: Sequence[Branch], table: str) -> list[Untested]:
    """The branches of a model that no row of a table goes through."""
    if not table:
        return [Untested(b.model, b.at, b.label, b.unknown) for b in some]
    rows = _rows_read(players, some[0].model, table)
    if not rows:
        return [Untested(b.model, b.at, b.label) for b in some]
    columns = players[0].tables.columns(table)
    conditions = [branch.condition for branch in some]
    met = conditions_met(players[0].scratch.spark, columns, rows, conditions)
    return [
        Untested(b.model, b.at, b.label, _ALONE if goes is None else "")
        for b, goes in zip(some, met, strict=True)
        if not goes
    ]


def _rows_read(players: Sequence[Player], model: str, table: str) -> list[Row]:
    """The rows of a table that a model has read in any test that makes the model."""
    found: list[Row] = []
    for player, played in ((one, each) for one in players for each in one.played):
        test = played.test
        made = (*test.models, *test.judged)
        needed = needed_models(player.scratch.base, made, test.given)
        if model not in needed or model in test.given:
            continue
        given = [
            row
            for arrival in test.arrivals
            for each in arrival.deliveries
            if each.of == table
            for row in each.rows
            if not any(isinstance(value, Unusable) for value in row.values())
        ]
        found += given or player.rows_at_end(played, table)
    return found
