"""Ledgers that are older than their tables, or gone, beside real tables of Iceberg."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from tests.crash.scenario import Scenario, new_scenario
from tests.reference.compare import difference

from infold import api
from infold.api.repairing import repair_ledger
from infold.core.repair import Repair, RepairReport

pytestmark = pytest.mark.spark


def repaired(scenario: Scenario) -> RepairReport:
    """What was done, after which nothing is left to do."""
    found = repair_ledger(scenario.project)
    assert not repair_ledger(scenario.project).changes
    assert api.ledger(scenario.project).contradictions() == {}
    return found


def test_an_older_ledger_and_a_lost_one(tmp_path: Path) -> None:
    """
    Tables are set back to what an older ledger knows, and folded on from there; without any they
    are built again. Both times all rows are right, and readers see whole tables all the while.
    """
    scenario = new_scenario(tmp_path, "repaired")
    scenario.settle()
    file = scenario.folder / ".infold" / "ledger.db"
    older, before = file.read_bytes(), scenario.read()
    for seed in (100, 101):
        scenario.deliver(seed)
        scenario.settle()
    after = scenario.read()
    file.write_bytes(older)

    found = repaired(scenario)

    back = {one.table for one in found.of(Repair.SET_BACK)}
    assert "clicks" in back
    for name, rows in scenario.read().items():
        assert not difference((before if name in back else after)[name], rows)
    scenario.changed()
    result = scenario.go()
    folded = back & {"clicks", "sessions"}
    assert not {step.model for step, _ in result.steps if step.replaces_all} & folded
    scenario.settle()
    assert api.verify(scenario.project).equal

    file.unlink()
    built = repaired(scenario)

    assert {one.repair for one in built.tables} == {Repair.BUILD}
    scenario.changed()
    scenario.settle()
    assert api.verify(scenario.project).equal


def test_a_warehouse_that_is_deleted_while_spark_runs(tmp_path: Path) -> None:
    """A process that goes on does not ask a catalog's file that is gone, once or again."""
    scenario = new_scenario(tmp_path, "again")
    for whole in (False, True):
        scenario.settle()
        shutil.rmtree(scenario.project.warehouse)
        if whole:
            (scenario.folder / ".infold" / "ledger.db").unlink()
        else:
            built = repaired(scenario)
            assert {one.repair for one in built.tables} == {Repair.BUILD}
    scenario.settle()
    assert api.verify(scenario.project).equal
