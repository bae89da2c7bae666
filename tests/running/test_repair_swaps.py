"""`infold repair` where tables that a promote replaced are kept: whether they can still go back."""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest
from tests.crash.scenario import living
from tests.running.commands import said
from tests.running.production import as_json, shop_in_production
from tests.running.promoted import QUERY, with_environment
from tests.running.standing_tables import drop, put

from infold import api
from infold.api.repairing import look_at_ledger, repair_ledger
from infold.core.project import Project
from infold.ledger.database import close_all


@pytest.fixture
def shop(tmp_path: Path) -> Project:
    """The shop in production, where an environment was promoted; the former table is kept."""
    found = shop_in_production(tmp_path / "shop")
    with_environment(found, QUERY)
    as_json(found, "promote", "dev", "--yes")
    close_all()
    return found


def kept_table(shop: Project) -> str:
    """The name of the table that was replaced."""
    (swap,) = api.ledger(shop).swaps()
    (key,) = swap.kept.values()
    assert key is not None
    return key


def lose_rows(shop: Project) -> None:
    """Rows about the clicks are gone, which every table follows from."""
    file = shop.root / shop.target.ledger.removeprefix("sqlite:///")
    with closing(sqlite3.connect(file)) as book, book:
        assert book.execute("DELETE FROM cells WHERE table_name = 'clicks'").rowcount


def test_kept_tables_fit(shop: Project) -> None:
    """Nothing is wrong with a table that is kept: it can go back."""
    assert not look_at_ledger(shop).changes
    assert not look_at_ledger(shop).orphans


def test_nothing_goes_back_to_versions_that_were_erased(shop: Project) -> None:
    """An erased table begins again at version 1, and the kept ones name versions before that."""
    name = kept_table(shop)
    lose_rows(shop)

    text = said(shop, "repair", "--yes")

    assert "nothing can be rolled back to them" in text
    assert f"which infold made: {name}" in text
    assert api.ledger(shop).swaps() == ()
    assert "nothing-to-roll-back" in said(shop, "rollback", "--yes", code=3)


def test_a_repair_that_dies_keeps_no_replaced_table(shop: Project) -> None:
    """Wherever it dies, what was erased and what is kept do not both stay."""
    lose_rows(shop)
    for number in range(1, 60):
        with living(number) as life:
            repair_ledger(shop)
        close_all()
        if not life.dead:
            break

    assert number > 2
    assert api.ledger(shop).swaps() == ()
    assert not look_at_ledger(shop).changes


@pytest.mark.parametrize("loss", ["gone", "unknown"])
def test_a_kept_table_that_is_not_as_the_ledger_says(shop: Project, loss: str) -> None:
    """That alone is something to repair; what is left of it is named as nothing points to it."""
    name = kept_table(shop)
    if loss == "gone":
        drop(shop, name)
    else:
        put(shop, name, "other-1", 900)

    found = look_at_ledger(shop)
    assert found.changes
    assert found.orphans == (() if loss == "gone" else (name,))
    text = said(shop, "repair", "--yes", "--drop-orphans", "--json")

    assert len(json.loads(text)["swaps_forgotten"]) == 1
    assert api.lake(shop).metadata(name) is None
    assert "there is nothing to repair" in said(shop, "repair")
