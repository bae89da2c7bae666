"""What people entered, out of the damaged ledger that `infold repair` puts aside."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.crash.scenario import living
from tests.running.commands import said
from tests.running.standing_tables import stand_up
from tests.running.test_ledger_consistency import ledger_file
from tests.running.test_repair import edited, lose_ledger

from infold import api
from infold.api.repairing import look_at_ledger, repair_ledger
from infold.core.manual_entry import ManualEntry
from infold.core.project import Project
from infold.ledger.database import close_all


@pytest.fixture
def shop(tmp_path: Path) -> Project:
    """Tables that stand, with an entry for a session, and a ledger that is damaged."""
    found = stand_up(tmp_path / "shop")
    book = api.ledger(found)
    book.add_entries("sessions", [ManualEntry(0, "ann", in_quarantine=True, reason="a bot")])
    book.close()
    edited(found, "DROP TABLE cells")
    return found


def entries(shop: Project) -> list[tuple[str, str]]:
    """Those that the ledger has."""
    book = api.ledger(shop)
    found = [(one.owner, one.reason) for one in book.entries("sessions")]
    book.close()
    return found


KEPT = [("ann", "a bot")]


def test_they_are_taken_out_of_the_file_that_is_put_aside(shop: Project) -> None:
    """It is said beforehand, also where nobody is asked and nothing is done."""
    text = said(shop, "repair", "--dry-run")
    assert "1 manual entry for sessions in it can be read, and will be taken over." in text
    text = said(shop, "repair", "--json", code=3)
    assert "take over 1 manual entry for sessions from the damaged ledger" in text

    assert repair_ledger(shop).entries == 1
    assert entries(shop) == KEPT


def test_never_out_of_the_file_of_an_earlier_repair(shop: Project) -> None:
    """A ledger that is lost later has lost them; the old file says what was once."""
    repair_ledger(shop)
    lose_ledger(shop)

    assert look_at_ledger(shop).entries is None
    assert repair_ledger(shop).entries is None
    assert entries(shop) == []


def test_never_after_a_teardown(shop: Project) -> None:
    """Who tore a target down, also after a repair that died, wants none of it back."""
    with living(2) as life:  # the file is put aside
        repair_ledger(shop)
    assert life.dead
    close_all()
    assert look_at_ledger(shop).entries == 1
    said(shop, "teardown", "--yes")

    assert look_at_ledger(shop).entries is None


def test_a_repair_that_died_goes_on_with_its_file(shop: Project) -> None:
    """Wherever it dies, they come over once, and it is said what will be done."""
    for number in range(1, 60):
        with living(number) as life:
            repair_ledger(shop)
        close_all()
        if not life.dead:
            break
        found = look_at_ledger(shop)
        assert found.entries == 1 or entries(shop) == KEPT, life.passed

    assert number > 3
    assert entries(shop) == KEPT
    assert not look_at_ledger(shop).changes
    assert len([*ledger_file(shop).parent.glob("ledger.db.*")]) == 1
