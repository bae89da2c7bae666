"""What `infold repair` does not touch: what others wrote, own, or have built again since."""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest
from tests.running.commands import infold
from tests.running.standing_tables import stand_up
from tests.running.test_ledger_consistency import ledger_file

from infold import api
from infold.core.project import Project


@pytest.fixture
def shop(tmp_path: Path) -> Project:
    """Three tables that stand, and a ledger that knows them."""
    return stand_up(tmp_path / "shop")


def repaired(shop: Project, *words: str) -> dict[str, str]:
    """What the command does about each table; it has nothing left to do afterwards."""
    code, text = infold(shop, "repair", "--yes", "--json", *words)
    assert code == 0, text
    assert "there is nothing to repair" in infold(shop, "repair")[1]
    return {one["table"]: one["repair"] for one in json.loads(text)["tables"]}


def test_what_somebody_else_wrote_to_a_table_that_the_ledger_is_wrong_about(shop: Project) -> None:
    """The ledger loses what is wrong in it; the table is left alone, and refused."""
    (metadata,) = (shop.warehouse / shop.name / "sessions" / "metadata").glob("*.json")
    found = json.loads(metadata.read_text(encoding="utf-8"))
    theirs = {"snapshot-id": 9, "parent-snapshot-id": 102, "summary": {"operation": "append"}}
    found = {"snapshots": [*found["snapshots"], theirs], "current-snapshot-id": 9}
    metadata.write_text(json.dumps(found), encoding="utf-8")
    with closing(sqlite3.connect(ledger_file(shop))) as book, book:
        book.execute("DELETE FROM cells WHERE table_name = 'sessions'")

    assert repaired(shop) == {"clicks": "keep", "sessions": "leave", "daily": "build"}

    assert api.ledger(shop).contradictions() == {}
    refused = api.observe_all(shop).refused
    assert {name: error.slug for name, error in refused.items()} == {"sessions": "foreign-write"}
