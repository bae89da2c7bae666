"""What a dead run left is finished, done again or forgotten, by what its tables say."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from types import SimpleNamespace
from typing import Any, cast

import pytest
from tests.ledger.drawn import DAYS
from tests.ledger.test_contract import change, do, next_run, outcome

from infold.core.interval import Ranges
from infold.core.ports import Lake, Ledger
from infold.core.record import Outcome
from infold.core.trace import UNKNOWN, Cause, Pending, Trace
from infold.running.recover import FORGET, LOSE, recover

ONE, TWO, THREE = DAYS[2:5]


class Tables:
    """A lake in which some steps made snapshots, and which rows these brought."""

    def __init__(self, steps: Mapping[str, int], times: Sequence[int] = ()) -> None:
        self.steps, self.at, self.dropped = steps, times, list[str]()

    def head(self, _: str) -> Any:
        """The steps that are in the table's history."""
        return SimpleNamespace(steps=self.steps)

    def times(self, table: str, column: str, snapshot: int) -> Sequence[int]:
        """The times of the rows of a snapshot."""
        assert (table, column, snapshot) == ("events", "ts", 9)
        return self.at

    def drop(self, table: str) -> None:
        """Which tables were dropped, in order."""
        self.dropped.append(table)


def recovered(ledger: Ledger, tables: Tables) -> list[str]:
    """What the next run says that it did."""
    next_run(ledger, "r2")
    return list(recover(ledger, cast("Lake", tables)))


def begun(ledger: Ledger, what: Outcome | None = None, action: str = "fold") -> None:
    """A step of a run that dies, before its commit or after it."""
    ledger.begin_step("r1", "s", 1, "events", action, {})
    if what is not None:
        ledger.prepare_step("s", what)


def state(ledger: Ledger) -> str:
    """How the step ended."""
    return ledger.runs(run="r1")[0].steps[-1].state


def test_what_was_committed_is_finished(ledger: Ledger) -> None:
    """As it was written down, at the snapshot that the table has."""
    begun(ledger, replace(outcome(1, change(ONE, 3)), snapshot=None))

    assert recovered(ledger, Tables({"s": 9})) == [
        "events: a step that a dead run had committed was finished"
    ]
    assert (state(ledger), ledger.heads()["events"].snapshot) == ("done", 9)
    assert [(cell.cell, cell.rows) for cell in ledger.cells("events")] == [(ONE, 3)]


def test_what_was_not_committed_never_happened(ledger: Ledger) -> None:
    """Though what would hold was written down."""
    begun(ledger, outcome(1, change(ONE, 3)))

    assert recovered(ledger, Tables({"another": 9})) == [
        "events: a step that a dead run had begun is done again"
    ]
    assert (state(ledger), ledger.heads(), ledger.traces()) == ("forgotten", {}, {})


def test_what_had_nothing_to_commit_is_finished(ledger: Ledger) -> None:
    """No snapshot was ever to be there."""
    begun(ledger, Outcome("events", 0, Trace("events", "f"), committed=False))

    assert recovered(ledger, Tables({})) == [
        "events: a step that a dead run had ended was finished"
    ]
    assert (state(ledger), ledger.traces()["events"].fingerprint) == ("done", "f")


def test_rows_that_nobody_counted_are_counted_and_built_again(ledger: Ledger) -> None:
    """In the cell of each; cells without any are nothing."""
    cells = tuple(change(cell, 0) for cell in (ONE, TWO, THREE))
    begun(ledger, replace(outcome(1, *cells), untold="ts"))
    times = [ONE.start, ONE.end - 1, THREE.start]

    recovered(ledger, Tables({"s": 9}, times))

    found = ledger.cells("events")
    assert [(cell.cell, cell.rows, cell.last) for cell in found] == [
        (ONE, 2, ONE.end - 1),
        (THREE, 1, THREE.start),
    ]
    assert ledger.traces()["events"].pending == (Pending(Cause.MISSING, Ranges.of((ONE, THREE))),)
    assert len({cell.content for cell in found}) == 2


def test_a_commit_of_no_rows_that_nobody_counted_is_no_version(ledger: Ledger) -> None:
    """Its trace holds all the same."""
    begun(ledger, replace(outcome(1, change(ONE, 0)), untold="ts"))

    recovered(ledger, Tables({"s": 9}))

    assert (ledger.heads(), ledger.traces()["events"].pending) == ({}, ())


def test_a_table_that_nobody_knows_is_not_trusted(ledger: Ledger) -> None:
    """It was replaced by a step that said nothing: readers still see its cells, to compare."""
    do(ledger, outcome(1, change(ONE, 3)))
    ledger.begin_step("r1", "s", 2, "events", "build", {})

    recovered(ledger, Tables({"s": 9}))

    assert ledger.traces()["events"].fingerprint == UNKNOWN
    assert [cell.rows for cell in ledger.cells("events")] == [3]


def test_a_step_that_did_not_replace_its_table_leaves_its_trace(ledger: Ledger) -> None:
    """Nothing happened to it."""
    do(ledger, outcome(1, change(ONE, 3)))
    ledger.begin_step("r1", "s", 2, "events", "build", {})

    recovered(ledger, Tables({}))

    assert ledger.traces()["events"].fingerprint == "f"


@pytest.mark.parametrize("action", [FORGET, LOSE])
def test_forgetting_begins_in_the_ledger(ledger: Ledger, action: str) -> None:
    """As long as that knows the table it stays, and is read as before."""
    do(ledger, outcome(1, change(ONE, 3)))
    tables = Tables({})
    ledger.begin_step("r1", "s", 2, "events", action, {})

    recovered(ledger, tables)

    assert (state(ledger), tables.dropped) == ("forgotten", [])


@pytest.mark.parametrize("action", [FORGET, LOSE])
def test_what_the_ledger_forgot_is_dropped(ledger: Ledger, action: str) -> None:
    """Unless there is nothing left to drop."""
    tables = Tables({})
    begun(ledger, action=action)

    recovered(ledger, tables)

    assert (state(ledger), tables.dropped) == ("done", ["events"] if action == FORGET else [])
