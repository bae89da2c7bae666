"""An input whose columns got other types, though none of its rows is another one."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace
from types import SimpleNamespace
from typing import Any, Never, cast

from tests.declare.shop import project

from infold.core.interval import MIN, Interval, Ranges
from infold.core.trace import UNKNOWN, EarlierCells, Trace, Version
from infold.messages import run_errors
from infold.running.observe import RetypedInputs, without_retyped_inputs

SHOP = project()
BUILT = Trace("daily", SHOP["daily"].fingerprint, {"sessions": 1}, definition="new")
VERSIONS = [
    Version("sessions", number, 100 + number, "step", "run", 0, rows=6, whole=number < 3)
    for number in (1, 2, 3)
]


def looked_at(
    trace: Trace,
    columns: Callable[[str, int], Mapping[str, str]],
    newest: int = 2,
    since: tuple[int, Sequence[str]] = (2, ()),
) -> RetypedInputs:
    """
    What becomes of a trace whose input has these columns at the snapshots 101 to 103.

    The second version replaced its table, the third changed it. ``since`` is the version that its
    reader may begin with, and what changed after that.
    """
    changes = SimpleNamespace(
        ledger=SimpleNamespace(versions=lambda name, since: VERSIONS[:newest]),
        since=lambda node, name, read, upto: since,
        columns=lambda model, name: frozenset({"revenue"}),
    )
    lake = SimpleNamespace(columns=columns)
    heads = {"sessions": VERSIONS[newest - 1]}
    traces = {"daily": trace}
    return without_retyped_inputs(SHOP, cast("Any", changes), cast("Any", lake), traces, heads)


def found(trace: Trace, now: str) -> Mapping[str, Trace]:
    """The traces that do not hold where the type of what it counts is ``now``; it was an int."""
    types = {101: {"revenue": "int"}, 102: {"revenue": now}}
    return looked_at(trace, lambda table, at: types[at]).traces


def test_the_table_is_built_again() -> None:
    """Its own columns may be of other types then, which nothing in cells shows."""
    assert found(BUILT, "int") == {}
    assert found(BUILT, "bigint") == {"daily": replace(BUILT, fingerprint=UNKNOWN, definition="")}


def test_what_changed_later_hides_no_type() -> None:
    """
    A reader that may begin with a version after the one that it has read is built again if the
    types are others in between; for the versions after that, the step looks at them.
    """
    types = {101: {"revenue": "int"}, 102: {"revenue": "bigint"}, 103: {"revenue": "bigint"}}

    def found(since: int) -> Collection[str]:
        changed = (since, ("a cell",))
        return looked_at(BUILT, lambda _, at: types[at], newest=3, since=changed).traces.keys()

    assert found(since=2) == {"daily"}
    assert found(since=1) == set()


def test_cells_of_earlier_definitions_stay() -> None:
    """A table that keeps such cells is not built by its newest definition alone: a step that gives
    a column another type is refused once there is something to build.
    """
    earlier = EarlierCells(Ranges((Interval(MIN, 0),)), "old")

    assert found(replace(BUILT, earlier=(earlier,)), "bigint") == {}


def test_an_input_that_cannot_be_read() -> None:
    """Only that table is in trouble: the trace stays as it is."""
    error = run_errors.metadata_missing(path="sessions/metadata/3.json", why="it is gone")

    def columns(_table: str, _at: int) -> Never:
        raise error

    assert looked_at(BUILT, columns) == RetypedInputs({}, {"sessions": error})
