"""What is observed: files that are new, replaced, gone or due; versions that were not read yet."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import cast

from tests.arrivals.dry import Memory
from tests.planning.test_planner import EVENTS, FIRST, SESSIONS, day, project

from infold.core.files import FileKnown, FileSeen, FilesOutcome
from infold.core.interval import DAY
from infold.core.model import Source
from infold.core.plan import FileDiff
from infold.core.ports import Lake
from infold.core.record import Outcome
from infold.core.trace import CellChange, Trace
from infold.ledger.memory import MemoryLedger
from infold.running.observe import Observer

WAITS_FOR = FIRST + DAY
TAKEN = FileKnown(1, "a.csv", 10, "one", FIRST, next_due=WAITS_FOR, rows=3, waiting=1)
SEEN = FileSeen("a.csv", 10, 0, "one")
GREW = CellChange(day(0), 3, 0, 0, 3, 0, 77)


def ledger_of(*outcomes: Outcome) -> MemoryLedger:
    """A ledger in which a run has recorded these."""
    ledger = MemoryLedger()
    ledger.acquire("run")
    ledger.begin_run("run", "run", FIRST, {})
    for number, outcome in enumerate(outcomes, 1):
        ledger.begin_step("run", f"run-{number}", number, outcome.model, "build", {})
        ledger.finish_step(f"run-{number}", outcome)
    return ledger


def taken() -> Outcome:
    """The first ingest: one file, one row of which waits for its day."""
    files = FilesOutcome("raw.clicks", taken=(TAKEN,))
    return Outcome("events", 1, Trace("events", EVENTS.fingerprint), (GREW,), files=files)


def observer(
    ledger: MemoryLedger,
    *present: FileSeen,
    settling: tuple[str, ...] = (),
    as_of: int = FIRST,
) -> Observer:
    """One that finds these files, and those that are being written."""

    def listing(source: Source) -> tuple[tuple[FileSeen, ...], tuple[str, ...]]:
        del source
        return present, settling

    shop = replace(project(EVENTS, SESSIONS), root=Path("/nowhere"))
    return Observer(shop, ledger, cast(Lake, Memory()), listing, as_of)


def news(*present: FileSeen, settling: tuple[str, ...] = (), as_of: int = FIRST) -> FileDiff:
    """What is new of the files of events, after the first ingest."""
    seen = observer(ledger_of(taken()), *present, settling=settling, as_of=as_of).observe()
    files = seen.models["events"].files
    assert files is not None
    return files


def test_a_file_that_is_as_it_was_is_no_news() -> None:
    """It is counted as the same."""
    found = news(SEEN)

    assert not found
    assert found.same == 1


def test_a_replaced_file_comes_and_its_old_rows_go() -> None:
    """Both in one step, so that no reader sees the file twice or not at all."""
    found = news(replace(SEEN, fingerprint="two"))

    assert [file.fingerprint for file in found.new] == ["two"]
    assert found.gone == (TAKEN,)
    assert found.replaced == 1


def test_a_deleted_file_takes_its_rows_along() -> None:
    """Nothing comes in its place."""
    found = news()

    assert (found.new, found.gone) == ((), (TAKEN,))


def test_a_known_file_that_is_being_written_again_stays_as_it_was() -> None:
    """Its rows do not leave before its new version has settled."""
    found = news(settling=("a.csv",))

    assert not found
    assert found.settling == 1


def test_a_waiting_row_comes_due_at_its_very_instant() -> None:
    """And not before."""
    assert not news(SEEN, as_of=WAITS_FOR - 1).due
    assert news(SEEN, as_of=WAITS_FOR).due == (TAKEN,)


def test_a_reader_is_told_what_changed_since_the_version_that_it_read() -> None:
    """From the beginning for one that has read nothing, nothing for one that is up to date."""
    read = Trace("sessions", SESSIONS.fingerprint, {"events": 0})
    behind = ledger_of(taken(), Outcome("sessions", 1, read))
    level = ledger_of(taken(), Outcome("sessions", 1, replace(read, inputs={"events": 1})))

    [seen] = observer(behind, SEEN).observe().models["sessions"].inputs
    [none] = observer(level, SEEN).observe().models["sessions"].inputs

    assert (seen.since, seen.head, seen.changes) == (0, 1, (GREW,))
    assert (none.since, none.head, none.changes) == (1, 1, ())
