"""A process that is killed at any write of the ledger leaves all of it or nothing."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.ledger import filled
from tests.ledger.conftest import Place, killed
from tests.ledger.drawn import DAYS
from tests.ledger.steps import change, do, outcome

from infold.core.record import Receipt
from infold.ledger import SqlLedger
from infold.ledger.exported_file import export_ledger, import_ledger

WRITES = [
    *("create", "acquire", "begin_run", "begin_step", "prepare_step"),
    *("finish_step", "finish_run", "release"),
]


def one_step(place: Place) -> SqlLedger:
    """A run of one step."""
    ledger = place.open()
    ledger.acquire("r1")
    ledger.begin_run("r1", "run", 0, {})
    do(ledger, outcome(1, change(DAYS[2], 1)))
    ledger.finish_run("r1", "done", Receipt())
    ledger.release()
    return ledger


def test_every_write_is_a_point_before_and_after(place: Place, points: list[str]) -> None:
    """Every write has a point before and after it, in the order in which the writes happen."""
    one_step(place)

    names = [f"ledger {write}: {when} commit" for write in WRITES for when in ("before", "after")]
    assert points == names


@pytest.mark.parametrize("write", WRITES[3:7])
@pytest.mark.parametrize("when", ["before", "after"])
def test_a_step(place: Place, write: str, when: str) -> None:
    """A write is there or not, and the next run can take over."""
    assert killed(f"ledger {write}: {when} commit", lambda: one_step(place))

    done = WRITES.index(write) + (when == "after")
    ledger = place.open()
    ledger.acquire("r2")
    (r1,) = ledger.runs()
    states = {3: [], 4: ["intent"], 5: ["prepared"], 6: ["done"], 7: ["done"]}
    assert [step.state for step in r1.steps] == states[done]
    assert r1.state == ("done" if done == 7 else "died")
    assert ("events" in ledger.newest_versions()) == ("events" in ledger.traces()) == (done >= 6)
    assert len(ledger.cells("events")) == (done >= 6)


@pytest.mark.parametrize("when", ["before", "after"])
def test_a_ledger_that_is_removed(place: Place, when: str) -> None:
    """It is whole, or there is none."""

    def remove() -> None:
        ledger = one_step(place)
        ledger.acquire("r2")
        ledger.destroy()

    assert killed(f"ledger remove: {when}", remove)

    ledger = place.open()
    assert [run.id for run in ledger.runs()] == (["r1"] if when == "before" else [])
    ledger.acquire("r3")


@pytest.mark.parametrize("when", ["before", "after"])
def test_a_ledger_that_is_imported(
    original: SqlLedger, there: Place, tmp_path: Path, when: str
) -> None:
    """One that was half imported can be imported again."""
    file, whose = tmp_path / "file", {"project": "shop", "warehouse": "warehouse"}
    export_ledger(original, file, at="here", **whose)

    def imported() -> None:
        import_ledger(there.open(), file, place="there", run="r", **whose)

    assert killed(f"ledger import: {when} commit", imported)
    if when == "before":
        imported()
    assert filled.rows_of(there.open()) == filled.rows_of(original)
    there.open().acquire("r2")
