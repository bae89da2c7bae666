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
from infold.core.report import RunResult

pytestmark = pytest.mark.spark


def repaired(scenario: Scenario) -> RepairReport:
    """What was done, after which nothing is left to do."""
    found = repair_ledger(scenario.project)
    assert not repair_ledger(scenario.project).changes
    assert api.ledger_of(scenario.project).contradictions() == {}
    return found


def go(scenario: Scenario) -> RunResult:
    """A run, after which all rows are those of the reference."""
    found = scenario.go()
    scenario.check(set(scenario.shape.tables), None)
    return found


def test_an_older_ledger_and_a_lost_one(tmp_path: Path) -> None:
    """
    Tables are set back to what an older ledger knows, and folded on from there; without any they
    are built again, and so where the warehouse is gone while the process goes on, with the ledger
    or alone. Each time all rows are right.
    """
    scenario = new_scenario(tmp_path, "repaired")
    go(scenario)
    file = scenario.folder / ".infold" / "ledger.db"
    older, before = file.read_bytes(), scenario.read()
    scenario.deliver(100)
    go(scenario)
    after = scenario.read()
    file.write_bytes(older)

    found = repaired(scenario)

    back = {one.table for one in found.of(Repair.SET_BACK)}
    assert "clicks" in back
    for name, rows in scenario.read().items():
        assert not difference((before if name in back else after)[name], rows)
    scenario.changed()
    result = go(scenario)
    folded = back & {"clicks", "sessions"}
    assert not {step.model for step, _ in result.steps if step.replaces_all} & folded

    for ledger_is_lost, tables_are_lost in ((True, False), (False, True)):
        if ledger_is_lost:
            file.unlink()
        if tables_are_lost:
            shutil.rmtree(scenario.project.warehouse)
        built = repaired(scenario)
        assert {one.repair for one in built.tables} == {Repair.BUILD}
        scenario.changed()
        go(scenario)
    file.unlink()
    shutil.rmtree(scenario.project.warehouse)
    go(scenario)
