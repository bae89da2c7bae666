"""What `infold repair` does not touch: what others wrote, own, or have built again since."""

from __future__ import annotations

import shutil
import sqlite3
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest
from tests.running.commands import said
from tests.running.standing_tables import NAMES, leased, put, tables
from tests.running.test_repair import edited, lose_ledger, repaired, written_by_others

from infold import api
from infold.api.repairing import look_at_ledger, repair_ledger
from infold.core.project import Project
from infold.ledger.database import close_all
from infold.messages.errors import InfoldError
from infold.running.recover import FORGET


def what(shop: Project, *words: str) -> dict[str, str]:
    """What the command does about each table; it has nothing left to do afterwards."""
    return {name: found for name, (found, _) in repaired(shop, *words).items()}


def test_what_somebody_else_wrote_to_a_table_that_the_ledger_is_wrong_about(shop: Project) -> None:
    """The ledger loses what is wrong in it; the table is left alone, and refused."""
    written_by_others(shop, "sessions", 102)
    edited(shop, "DELETE FROM cells WHERE table_name = 'sessions'")

    assert what(shop) == {"clicks": "keep", "sessions": "leave", "daily": "build"}

    assert api.ledger(shop).contradictions() == {}
    refused = api.observe_all(shop).refused
    assert {name: error.slug for name, error in refused.items()} == {"sessions": "foreign-write"}


def move_tables(shop: Project, before: Path, after: Path, like: str, namespace: str) -> None:
    """Tables lie in another folder, and in a namespace."""
    shutil.move(before, after)
    with closing(sqlite3.connect(shop.catalog_db)) as catalog, catalog:
        catalog.execute(
            "UPDATE iceberg_tables SET metadata_location = replace(metadata_location, ?, ?), "
            "table_namespace = ? WHERE table_name LIKE ?",
            (str(before), str(after), namespace, like),
        )


def test_tables_of_another_warehouse_are_no_orphans(shop: Project, tmp_path: Path) -> None:
    """Another project with its tables in the same namespace has them in its own folder."""
    put(shop, "visits", "r0-1", 7)
    move_tables(shop, shop.warehouse / shop.name / "visits", tmp_path / "v", "visits", shop.name)

    assert look_at_ledger(shop).orphans == ()
    assert repaired(shop, "--drop-orphans").keys() == {*NAMES}

    assert api.lake(shop).metadata("visits") is not None


def test_orphans_in_a_namespace_that_others_may_share(shop: Project) -> None:
    """They are dropped by name: nothing tells whose they are."""
    for name in ("visits", "sessions__0123abcd"):
        put(shop, name, "r0-1", 7)
    move_tables(shop, shop.warehouse / shop.name, shop.warehouse / "team", "%", "team")
    target = replace(shop.target, catalog=replace(shop.target.catalog, namespace="team"))
    team = replace(shop, target=target)

    assert look_at_ledger(team).shared == "team"
    for do in (look_at_ledger, repair_ledger):
        with pytest.raises(InfoldError, match="another project may have") as refused:
            do(team, drop_orphans=True)
        assert refused.value.slug == "orphans-of-others"
    repair_ledger(team, drop=["sessions__0123abcd"])

    assert look_at_ledger(team).orphans == ("visits",)


def test_only_orphans_are_dropped_by_name(shop: Project) -> None:
    """The table of a model is none."""
    text = said(shop, "repair", "--drop", "daily", "--yes", code=3)

    assert text.startswith("not-an-orphan"), text
    assert tables(shop) == {*NAMES}


def test_rows_set_aside_that_the_ledger_knows_nothing_of(shop: Project) -> None:
    """Nothing would ever remove them: files have other numbers in another ledger."""
    put(shop, "infold__set_aside", "r1-1", 50)
    lose_ledger(shop)

    assert what(shop)["infold__set_aside"] == "build"

    assert api.lake(shop).metadata("infold__set_aside") is None
    said(shop, "show", "set_aside")


@pytest.mark.parametrize("command", ["repair", "forget"])
def test_a_table_that_was_built_again_since_it_was_forgotten(shop: Project, command: str) -> None:
    """A backup of the ledger was made in the middle of a `forget`: that is not done again."""
    with leased(shop, "f1") as book:
        book.begin_run("f1", "forget", 0, {})
        book.begin_step("f1", "f1-1", 1, "clicks", FORGET, {})
        book.forget("clicks", step="f1-1")
    put(shop, "clicks", "r9-1", 901)
    close_all()

    if command == "repair":
        assert what(shop)["clicks"] == "build"
    else:
        said(shop, "forget", "daily", "--yes")

    assert "clicks" in tables(shop)
