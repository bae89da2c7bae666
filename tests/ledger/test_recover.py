"""Steps that a dead run left are finished, repeated or forgotten, depending on their tables."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, cast

import pytest
from tests.ledger.drawn import DAYS
from tests.ledger.steps import change, do, next_run, outcome

from infold.core.interval import Interval, Ranges
from infold.core.ports import Lake, Ledger, TableMetadata
from infold.core.record import Outcome
from infold.core.trace import UNKNOWN, Cause, CellState, Pending, Trace
from infold.running.recovery import recover
from infold.running.table_names import FORGET, LOSE

ONE, TWO, THREE = DAYS[2:5]


class Tables:
    """A lake in which some steps made snapshots, and which rows these brought."""

    def __init__(
        self, steps: Mapping[str, int], times: Sequence[int] = (), others: int | None = None
    ) -> None:
        self.steps, self.at, self.dropped = steps, times, list[str]()
        self.others = others

    def metadata(self, _: str) -> Any:
        """The steps that are in the table's history, or a commit of others."""
        newest = [self.others, *self.steps.values()][-1]
        return TableMetadata("events", "here", newest, self.steps, self.others)

    def column_times(self, table: str, column: str, snapshot: int) -> Sequence[int]:
        """The times of the rows of a snapshot."""
        assert (table, column, snapshot) == ("events", "ts", 9)
        return self.at

    def drop(self, table: str) -> None:
        """Which tables were dropped, in order."""
        self.dropped.append(table)

    def delete_folder(self, location: str) -> None:
        """And which folders."""
        self.dropped.append(f"the folder of {location}")


def recovered(ledger: Ledger, tables: Tables) -> list[str]:
    """What the next run says that it did."""
    next_run(ledger, "r2")
    return [*recover(ledger, cast("Lake", tables)).notes]


def begun(ledger: Ledger, what: Outcome) -> None:
    """A step of a run that dies, before its commit or after it."""
    ledger.begin_step("r1", "s", 1, "events", "fold", {})
    ledger.prepare_step("s", what)


def state(ledger: Ledger) -> str:
    """How the step ended."""
    return ledger.runs(run="r1")[0].steps[-1].state


@pytest.mark.parametrize("steps", [{"s": 9}, {}])
def test_what_a_step_did_among_commits_of_others_is_unknown(
    ledger: Ledger, steps: Mapping[str, int]
) -> None:
    """It stays open: who knows what others had written when it read, or whether it is there."""
    begun(ledger, replace(outcome(1, change(ONE, 3)), snapshot=None))
    next_run(ledger, "r2")

    found = recover(ledger, cast("Lake", Tables(steps, others=7)))

    assert not found.notes
    assert found.open["events"].slug == "foreign-write"
    assert [step.id for step in ledger.unfinished()] == ["s"]


def test_a_committed_step_is_finished(ledger: Ledger) -> None:
    """A step whose commit is in the table is finished as prepared, at that snapshot."""
    begun(ledger, replace(outcome(1, change(ONE, 3)), snapshot=None))

    said = "events: a step that a dead run had committed was finished"
    assert recovered(ledger, Tables({"s": 9})) == [said]
    assert (state(ledger), ledger.newest_versions()["events"].snapshot) == ("done", 9)
    assert [(cell.cell, cell.rows) for cell in ledger.cells("events")] == [(ONE, 3)]


def test_a_step_that_was_not_committed_is_closed(ledger: Ledger) -> None:
    """A prepared step whose commit is not in the table is closed."""
    begun(ledger, outcome(1, change(ONE, 3)))

    said = "events: a step that a dead run had begun is done again"
    assert recovered(ledger, Tables({"another": 9})) == [said]
    assert (state(ledger), ledger.newest_versions(), ledger.traces()) == ("forgotten", {}, {})


@pytest.mark.parametrize("cells", [None, (CellState(Interval(ONE.start, THREE.end), 9, 7),)])
def test_a_step_without_a_commit_is_finished(
    ledger: Ledger, cells: tuple[CellState, ...] | None
) -> None:
    """One that had nothing to commit, or that divides a table into other cells."""
    trace = Trace("events", "f")
    begun(ledger, Outcome("events", 0, trace, committed=False, cells=cells))
    assert list(ledger.cells("events")) == []

    said = "events: a step that a dead run had ended was finished"
    assert recovered(ledger, Tables({})) == [said]
    assert (state(ledger), ledger.traces()) == ("done", {"events": trace})
    assert list(ledger.cells("events")) == [*(cells or ())]


def test_uncounted_rows_are_counted_and_built_again(ledger: Ledger) -> None:
    """By cell, and they are pending."""
    cells = tuple(change(cell, 0) for cell in (ONE, TWO, THREE))
    begun(ledger, replace(outcome(1, *cells), cell_column="ts"))
    times = [ONE.start, ONE.end - 1, THREE.start]

    recovered(ledger, Tables({"s": 9}, times))

    found = ledger.cells("events")
    assert [(cell.cell, cell.rows, cell.last) for cell in found] == [
        (ONE, 2, ONE.end - 1),
        (THREE, 1, THREE.start),
    ]
    assert ledger.traces()["events"].pending == (Pending(Cause.MISSING, Ranges.of((ONE, THREE))),)
    assert len({cell.content for cell in found}) == 2


def test_an_uncounted_commit_without_rows_is_no_version(ledger: Ledger) -> None:
    """A commit of no rows that were not counted makes no version, and its trace is recorded."""
    begun(ledger, replace(outcome(1, change(ONE, 0)), cell_column="ts"))

    recovered(ledger, Tables({"s": 9}))

    assert (ledger.newest_versions(), ledger.traces()["events"].pending) == ({}, ())


def test_an_unknown_table_is_not_trusted(ledger: Ledger) -> None:
    """One replaced by a step without an outcome; readers still see its cells to compare."""
    do(ledger, outcome(1, change(ONE, 3)))
    ledger.begin_step("r1", "s", 2, "events", "build", {})

    recovered(ledger, Tables({"s": 9}))

    assert ledger.traces()["events"].fingerprint == UNKNOWN
    assert [cell.rows for cell in ledger.cells("events")] == [3]


@pytest.mark.parametrize("action", ["build", FORGET, LOSE])
def test_what_did_not_happen_to_a_table_leaves_it(ledger: Ledger, action: str) -> None:
    """Its trace stays; forgetting begins in the ledger, so a table that this knows stays."""
    do(ledger, outcome(1, change(ONE, 3)))
    tables, before = Tables({}), ledger.traces()
    ledger.begin_step("r1", "s", 2, "events", action, {})

    recovered(ledger, tables)

    assert (state(ledger), tables.dropped, ledger.traces()) == ("forgotten", [], before)


@pytest.mark.parametrize(
    ("action", "detail", "dropped"),
    [
        (FORGET, {}, ["events"]),
        (FORGET, {"location": "w/e/m/1.json"}, ["events", "the folder of w/e/m/1.json"]),
        (LOSE, {}, []),
    ],
    ids=["forget", "with its folder", "lose"],
)
def test_a_table_that_the_ledger_forgot_is_dropped(
    ledger: Ledger, action: str, detail: Mapping[str, object], dropped: list[str]
) -> None:
    """If it still exists, with the folder that the step tells: the catalog may have none."""
    tables = Tables({})
    ledger.begin_step("r1", "s", 1, "events", action, detail)

    recovered(ledger, tables)

    assert (state(ledger), tables.dropped) == ("done", dropped)
