"""Observation: files that are new, replaced, deleted or due, and versions that were not read
yet.
"""

from __future__ import annotations

import gc
import weakref
from dataclasses import replace
from pathlib import Path
from typing import cast

import pytest
from tests.arrivals.dry import Memory
from tests.ledger.fresh import FreshLedger
from tests.planning.strips import (
    DAILY,
    EVENTS,
    FIRST,
    SESSIONS,
    day,
    project,
    with_incremental,
)

from infold.core.files import FilesOutcome, IngestedFile, ListedFile
from infold.core.interval import DAY
from infold.core.model import Source
from infold.core.plan import Action, FileDiff
from infold.core.ports import Lake
from infold.core.record import Outcome, Receipt
from infold.core.trace import CellChange, Trace
from infold.running.observe import Observer

WAITS_FOR = FIRST + DAY
TAKEN = IngestedFile(1, "a.csv", 10, "one", FIRST, next_due=WAITS_FOR, rows=3, waiting=1)
SEEN = ListedFile("a.csv", 10, 0, "one")
GREW = CellChange(day(0), 3, 0, 0, 3, 0, 77)


def ledger_of(*outcomes: Outcome) -> FreshLedger:
    """A ledger in which a run has recorded these."""
    ledger = FreshLedger()
    ledger.acquire("run")
    ledger.begin_run("run", "run", FIRST, {})
    ledger.register_files("raw.clicks", [SEEN])
    for number, outcome in enumerate(outcomes, 1):
        ledger.begin_step("run", f"run-{number}", number, outcome.model, "build", {})
        ledger.finish_step(f"run-{number}", outcome)
    return ledger


def taken() -> Outcome:
    """The first ingest: one file, with one row that waits for its day."""
    files = FilesOutcome("raw.clicks", ingested=(TAKEN,))
    return Outcome("events", 1, Trace("events", EVENTS.fingerprint), (GREW,), files=files)


def observer(
    ledger: FreshLedger,
    *present: ListedFile,
    settling: tuple[str, ...] = (),
    as_of: int = FIRST,
) -> Observer:
    """One that finds these files, and those that are being written."""

    def listing(source: Source) -> tuple[tuple[ListedFile, ...], tuple[str, ...]]:
        del source
        return present, settling

    shop = replace(project(EVENTS, SESSIONS), root=Path("/nowhere"))
    return Observer(shop, ledger, cast(Lake, Memory()), listing, as_of)


def file_diff(*present: ListedFile, settling: tuple[str, ...] = (), as_of: int = FIRST) -> FileDiff:
    """What is new of the files of events, after the first ingest."""
    seen = observer(ledger_of(taken()), *present, settling=settling, as_of=as_of).observe()
    files = seen.models["events"].files
    assert files is not None
    return files


def test_a_known_file_that_is_being_written_again_stays_as_it_was() -> None:
    """
    A known file that is being rewritten keeps its rows until the new version has settled; then it
    is added and its old rows are removed in one step, so that no reader sees both or none.
    """
    young, same = file_diff(settling=("a.csv",)), file_diff(SEEN)
    settled = file_diff(replace(SEEN, fingerprint="two"))

    assert (bool(young), young.settling) == (False, 1)
    assert (bool(same), same.unchanged) == (False, 1)
    assert [file.fingerprint for file in settled.new] == ["two"]
    assert (settled.removed, settled.replaced) == ((TAKEN,), 1)


def test_a_waiting_row_is_due_at_its_instant() -> None:
    """A waiting row becomes due at its exact instant and not before."""
    assert not file_diff(SEEN, as_of=WAITS_FOR - 1).come_due
    assert file_diff(SEEN, as_of=WAITS_FOR).come_due == (TAKEN,)


def test_a_reader_sees_what_changed_since_the_version_it_read() -> None:
    """A reader sees changes since the version it read: all for a new one, none for one up to
    date.
    """
    read = Trace("sessions", SESSIONS.fingerprint, {"events": 0})
    behind = ledger_of(taken(), Outcome("sessions", 1, read))
    level = ledger_of(taken(), Outcome("sessions", 1, replace(read, inputs={"events": 1})))

    [seen] = observer(behind, SEEN).observe().models["sessions"].inputs
    [none] = observer(level, SEEN).observe().models["sessions"].inputs

    assert (seen.read_version, seen.newest_version, seen.changes) == (0, 1, (GREW,))
    assert (none.read_version, none.newest_version, none.changes) == (1, 1, ())


@pytest.mark.parametrize(
    ("state", "action", "expected"),
    [
        ("done", Action.RECOMPUTE, (FIRST, False)),
        ("done", Action.EVOLVE, (FIRST, False)),
        ("failed", Action.RECOMPUTE, (FIRST, True)),
        ("running", Action.RECOMPUTE, (FIRST, True)),
        ("died", Action.RECOMPUTE, (FIRST, True)),
        ("failed", Action.EVOLVE, (None, False)),
        ("running", Action.EVOLVE, (None, False)),
    ],
)
def test_the_run_behind_a_table_with_a_cron(
    state: str, action: Action, expected: tuple[int | None, bool]
) -> None:
    """
    Its clock, and whether it is done. A run that is not, and has only made the stored rows over,
    has yet to read the inputs: the model counts as not built.
    """
    ledger = ledger_of(Outcome("sessions", 1, Trace("sessions", "f")))
    ledger.begin_step("run", "run-9", 9, "daily", action.value, {})
    ledger.finish_step("run-9", Outcome("daily", 1, Trace("daily", "f")))
    if state == "died":
        ledger.acquire("another")
    elif state != "running":
        ledger.finish_run("run", state, Receipt())
    looking = observer(ledger)
    looking.project = project(SESSIONS, with_incremental(DAILY, cron="0 5 * * *"))

    seen = looking.observe_all().models["daily"]

    assert (seen.as_of, seen.unfinished) == expected


def test_a_listing_that_differs_later_in_a_run_is_not_remembered() -> None:
    """What is recorded as compared is what the last look found to be the same."""
    ledger = ledger_of(taken())
    looks = observer(ledger, SEEN)
    looks.observe()
    assert looks.compared

    files = FilesOutcome("raw.clicks", removed=(1,))
    outcome = Outcome("events", 2, Trace("events", EVENTS.fingerprint), (), files=files)
    ledger.begin_step("run", "run-9", 9, "events", "ingest", {})
    ledger.finish_step("run-9", outcome)
    looks.observe()

    assert looks.compared == {}


def test_a_ledger_is_let_go_of_with_its_observer() -> None:
    """
    Without the garbage collector: a ledger's file has all that was written once it is closed, and
    that is when nothing refers to it. A backup that is put back beside its open log is not read.
    """
    gc.collect()
    gc.disable()
    try:
        looking = observer(ledger_of(taken()), SEEN)
        looking.observe()
        gone = weakref.ref(looking.ledger)
        del looking
        assert gone() is None
    finally:
        gc.enable()
