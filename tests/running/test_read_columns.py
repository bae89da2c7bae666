"""What new versions of an input mean to readers of some of its columns."""

from __future__ import annotations

from dataclasses import replace

import pytest
from tests.ledger.fresh import FreshLedger
from tests.planning.strips import DAILY, SESSIONS, day, project
from tests.running.test_observe import ledger_of

from infold.core.definition import Category, How, Redefinition
from infold.core.interval import Ranges
from infold.core.plan import InputDiff, ModelObservation, Observations
from infold.core.project import Node, Stretch
from infold.core.record import Outcome
from infold.core.trace import CellChange, Trace, Unchanged
from infold.running.execute import advance_traces
from infold.running.read_columns import InputChanges

ID = frozenset({"id"})


def change(number: int, before: int, after: int) -> CellChange:
    """A day with three rows before and after, and with other content."""
    return CellChange(day(number), 3, 3, 3, 3, before, after)


def version(number: int, *changes: CellChange, unchanged: Ranges | None = None) -> Outcome:
    """A version of ``sessions`` that left the identifiers of some cells as they were."""
    left = () if unchanged is None else (Unchanged(ID, unchanged),)
    made = Outcome("sessions", number, Trace("sessions", "f"), changes, snapshot=number)
    return replace(made, unchanged=left)


BOTH = Ranges((day(1), day(2)))
VERSIONS = (
    version(1, change(1, 0, 1), change(2, 0, 1)),
    version(2, change(1, 1, 2), change(2, 1, 2), unchanged=BOTH),
    version(3, change(2, 2, 3)),
    version(4, change(1, 2, 4), change(2, 3, 4), unchanged=Ranges((day(1),))),
)


def seen(
    node: Node, read: int, upto: int, columns: frozenset[str] | None = ID
) -> tuple[int, list[CellChange]]:
    """The version to begin with and the changes, for a reader of some columns."""
    found = InputChanges(project(node), ledger_of(*VERSIONS[:upto]))
    found.__dict__["columns"] = lambda *_: columns
    since, changes = found.since(node, "sessions", read, upto)
    return since, list(changes)


def test_a_version_that_changes_nothing_for_a_reader_is_skipped() -> None:
    """The reader may begin with the last version before the first that matters to it; a reader of
    another column, or of all of them, sees every version. A later version counts for those cells
    alone that it changed for the reader.
    """
    assert seen(DAILY, 1, 2) == (2, [])
    assert seen(DAILY, 1, 3) == (2, [change(2, 2, 3)])
    assert seen(DAILY, 2, 2) == (2, [])
    for columns in (frozenset({"id", "x"}), None):
        assert seen(DAILY, 1, 2, columns) == ALL
    assert seen(DAILY, 1, 4) == (2, [replace(change(2, 2, 4), added=6, removed=6)])


ALL = (1, [change(1, 1, 2), change(2, 1, 2)])


@pytest.mark.parametrize(
    ("reads", "expected"),
    [(ID, (2, [])), (frozenset({"id", "x"}), ALL), (None, ALL)],
    ids=["the same", "others", "all"],
)
def test_columns_of_earlier_definitions_count_too(
    reads: frozenset[str] | None,
    expected: tuple[int, list[CellChange]],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A table with several definitions sees what changed for any of them."""
    now = project(DAILY)
    before = replace(now, name="before")
    found = InputChanges(now, ledger_of(*VERSIONS[:2]))
    by = {now.name: ID, before.name: reads}
    monkeypatch.setattr(found, "_columns_read", lambda of: lambda *_: by[of.name])
    stretch = Stretch(Ranges((day(1),)), "daily", before)

    since, changes = found.since(DAILY, "sessions", 1, 2, (stretch,))

    assert (since, list(changes)) == expected
    other = replace(stretch, project=project(replace(DAILY, inputs=())))
    assert found.since(DAILY, "sessions", 1, 2, (other,)) == (2, ())


def test_a_fold_takes_all_changes_after_the_skipped_versions() -> None:
    """A fold compares rows of two versions, so it needs all cells that changed between them."""
    assert seen(SESSIONS, 1, 2) == (2, [])
    both = [change(1, 2, 4), replace(change(2, 2, 4), added=6, removed=6)]
    assert seen(SESSIONS, 1, 4) == (2, both)


def test_traces_advance_over_skipped_versions() -> None:
    """The ledger records the version that a reader may begin with, and nothing where it has it."""
    ledger = ledger_of(Outcome("daily", 1, Trace("daily", "f", {"sessions": 1, "users": 1})))
    trace = ledger.traces()["daily"]
    inputs = (InputDiff("sessions", 2, 3, (change(2, 2, 3),)), InputDiff("users", 1, 1))
    observed = Observations(0, {"daily": ModelObservation(trace, inputs=inputs)})

    advance_traces(ledger, observed)

    assert ledger.traces()["daily"].inputs == {"sessions": 2, "users": 1}


def test_nothing_is_written_where_nothing_was_skipped() -> None:
    """A model without a trace, or with that version in it, costs no write."""
    ledger = FreshLedger()  # without a lease it cannot be written to
    trace = Trace("daily", "f", {"sessions": 2})
    inputs = (InputDiff("sessions", 2, 3),)
    found = {
        "daily": ModelObservation(trace, inputs=inputs),
        "new": ModelObservation(inputs=inputs),
    }

    advance_traces(ledger, Observations(0, found))


@pytest.mark.parametrize(
    ("kept", "read", "expected"),
    [
        ({"id", "x"}, {"id"}, True),
        ({"id"}, {"id", "x"}, False),
        (set(), set(), False),
        ({"id"}, None, False),
    ],
    ids=["some", "more", "nothing proven", "all"],
)
def test_a_changed_definition_keeps_what_a_reader_reads(
    kept: set[str], read: set[str] | None, expected: bool
) -> None:
    """All columns that a reader reads have to be among those that are proven to stay."""
    found = InputChanges(project(DAILY), FreshLedger())
    found.__dict__["columns"] = lambda *_: None if read is None else frozenset(read)
    other = Redefinition(
        "sessions", Category.ADDITIVE, (), How.REBUILD, None, SESSIONS, frozenset(kept)
    )

    assert found.keeps(DAILY, "sessions", other) is expected
