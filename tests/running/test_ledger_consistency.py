"""Ledgers and tables that do not belong together: backups, two ledgers, another project's
ledger.
"""

from __future__ import annotations

import json
import shutil
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest
from tests.declare.shop import SHOP, write
from tests.running.commands import said
from tests.running.standing_tables import (
    DECLARED,
    NAMES,
    commit,
    day,
    folders,
    leased,
    put,
    stand_up,
    taken_over,
)

from infold import api
from infold.api.doctor import examine
from infold.core.project import Project
from infold.core.record import Outcome
from infold.core.trace import CellChange, Trace
from infold.messages.errors import InfoldError
from infold.running.ledger_consistency import foreign_tables
from infold.running.table_locations import remember_locations

CLICKS = ("r1-1", 101)
"""The step and the snapshot of the first version of clicks."""


def ledger_file(shop: Project) -> Path:
    """Where the ledger is."""
    return shop.root / ".infold" / "ledger.db"


def second_run(shop: Project) -> None:
    """A run that commits a second version of clicks."""
    change = CellChange(day(1), 1, 0, 3, 4, 8, 9)
    trace = Trace("clicks", shop["clicks"].fingerprint)
    commit(shop, Outcome("clicks", 2, trace, (change,), snapshot=201))
    put(shop, "clicks", "r2-1", 201, CLICKS)


def refused(shop: Project, slug: str) -> dict[str, str]:
    """The facts of a refusal that every command that looks at the tables gives alike."""
    commands: tuple[Callable[[], object], ...] = (
        lambda: api.observe(shop),
        lambda: api.status(shop),
        lambda: api.run(shop),
        lambda: api.verify(shop),
        lambda: api.explain(shop, "clicks"),
    )
    found = []
    for command in commands:
        with pytest.raises(InfoldError) as caught:
            command()
        found.append(caught.value)
    assert {(error.slug, error.exit_code) for error in found} == {(slug, 3)}
    assert len({str(error) for error in found}) == 1
    return dict(found[0].facts)


def test_an_older_ledger_beside_newer_tables(shop: Project) -> None:
    """A restored backup of the ledger beside newer tables
    is refused, with the step it does not know.
    """
    older = ledger_file(shop).read_bytes()
    second_run(shop)
    newer = ledger_file(shop).read_bytes()
    ledger_file(shop).write_bytes(older)

    assert refused(shop, "ledger-behind") == {
        "ledger": "sqlite:///.infold/ledger.db",
        "clicks": "1 commit unknown to it, the newest by step r2-1",
    }
    assert "infold repair\n  infold run\n" in said(shop, "plan", code=3)
    assert not api.ledger(shop).unfinished()

    ledger_file(shop).write_bytes(newer)  # the right one, put back
    assert api.observe(shop).models["clicks"].version == 2


@pytest.mark.parametrize("lost", ["file", "tables", "rows"])
@pytest.mark.parametrize("by", ["forget", "repair"])
def test_a_lost_catalog(shop: Project, lost: str, by: str) -> None:
    """
    Where not one table is in the catalog it is refused by name, and nothing is built beside the
    files of the former tables, until somebody says that they are gone for good.
    """
    if lost == "file":
        shop.catalog_db.unlink()
    else:
        with closing(sqlite3.connect(shop.catalog_db)) as catalog, catalog:
            what = "DROP TABLE" if lost == "tables" else "DELETE FROM"
            catalog.execute(f"{what} iceberg_tables")

    assert refused(shop, "catalog-lost") == {
        "ledger": "sqlite:///.infold/ledger.db",
        "catalog": str(shop.catalog_db),
        "tables (3)": "clicks, daily, sessions",
    }
    tables = next(check for check in examine(shop.root) if check.name == "tables")
    assert [error.slug for error in tables.errors] == ["catalog-lost"]
    said(shop, by, *(NAMES if by == "forget" else ()), "--yes")
    assert not api.observe(shop).refused
    assert folders(shop) == {*NAMES}  # which may be another catalog's


@pytest.mark.parametrize("by", [("forget", *NAMES), ("teardown",)], ids=lambda by: by[0])
def test_a_lost_ledger(shop: Project, by: tuple[str, ...]) -> None:
    """Without a ledger, existing tables are neither
    replaced nor verified, until they are forgotten.
    """
    ledger_file(shop).unlink()

    assert set(refused(shop, "ledger-behind")) == {"ledger", *NAMES}
    said(shop, *by, "--yes")
    api.observe(shop)


def test_two_ledgers_on_one_warehouse(shop: Project) -> None:
    """Another file's target on the same warehouse is refused, and the first one's tables stay."""
    text = DECLARED.replace("{warehouse", "{ledger: 'sqlite:///other.db', warehouse")
    write(shop.root, {"infold.yml": text})

    facts = refused(api.open_project(shop.root), "ledger-behind")

    assert facts["ledger"] == "sqlite:///other.db"
    assert api.observe(shop).models["daily"].version == 1


def test_a_step_that_a_dead_run_committed_is_known(shop: Project) -> None:
    """A step that a dead run committed is no foreign step, as its intent is in the ledger."""
    with leased(shop) as book:
        book.begin_run("r2", "run", 0, {})
        book.begin_step("r2", "r2-1", 1, "clicks", "ingest", {})

    put(shop, "clicks", "r2-1", 201, CLICKS)
    api.observe(shop)
    put(shop, "clicks", "r2-1", 201)  # it replaced all of the table
    api.observe(shop)


def test_a_late_commit_below_the_newest_version(shop: Project) -> None:
    """The run that took over may commit after it; its end does not make the table known."""
    taken_over(shop, "r0")
    second_run(shop)
    put(shop, "clicks", "r2-1", 201, CLICKS, ("r0-1", 151))

    with leased(shop, "r3") as book:
        remember_locations(shop, book, api.lake(shop), ())

    with pytest.raises(InfoldError, match="foreign-write") as caught:
        api.observe(shop)
    assert dict(caught.value.facts)["snapshot"] == "151"


@pytest.mark.parametrize("operation", [None, "replace"])
def test_a_history_without_any_commit_of_infolds(shop: Project, operation: str | None) -> None:
    """
    A table that others made anew, or whose history does not reach back to what the ledger knows,
    is refused. It can be forgotten, and is built again.
    """
    put(shop, "clicks", "r1-1", 101)
    place = made_by_others(shop, "clicks", operation)

    book = api.ledger(shop)
    moved = {"clicks": f"file:{place}"}
    refused = foreign_tables(shop, book, api.lake(shop), book.newest_versions(), moved)
    book.close()

    assert {name: error.slug for name, error in refused.items()} == {"clicks": "foreign-write"}
    assert api.forget(shop, ["clicks"]).models == ("clicks",)


def made_by_others(shop: Project, name: str, operation: str | None) -> Path:
    """The metadata of a table with one snapshot of somebody else's, or with none."""
    snapshots = [{"snapshot-id": 7, "summary": {"operation": operation}}] if operation else []
    place = shop.warehouse / shop.name / name / "metadata" / "1.metadata.json"
    found = {"snapshots": snapshots, "current-snapshot-id": 7 if operation else -1}
    place.write_text(json.dumps(found), encoding="utf-8")
    return place


def test_a_table_replaced_by_a_running_run_is_no_older_state(shop: Project) -> None:
    """A table that another run replaces after the ledger was read is not taken for an older
    state.
    """
    book = api.ledger(shop)
    heads = book.newest_versions()
    second_run(shop)
    put(shop, "clicks", "r2-1", 201)

    moved = {"clicks": "elsewhere"}
    assert foreign_tables(shop, book, api.lake(shop), heads, moved) == {}


def test_one_ledger_for_two_warehouses(tmp_path: Path) -> None:
    """A ledger used with a second warehouse is refused: the first one's tables would look
    dropped.
    """
    dev = stand_up(tmp_path / "shop", "  other: {warehouse: elsewhere}\n")
    with leased(dev) as book:
        book.set_owner(dev.name, "warehouse")

    other = api.open_project(dev.root, "other")
    assert refused(other, "other-warehouse") == {"ledger": "sqlite:///.infold/ledger.db"}
    assert api.observe(dev).models["daily"].version == 1


def test_a_ledger_of_another_project(shop: Project) -> None:
    """
    A ledger belongs to the project whose first run wrote into it. Another one is refused by name
    before anything is written into it, and drops neither its tables nor its rows.
    """
    with leased(shop) as book:
        book.set_owner(shop.name, "warehouse")
    root = shop.root.parent / "store"
    shutil.copytree(shop.root, root)
    write(root, {"infold.yml": DECLARED.replace("name: shop", "name: store")})
    wrong = api.open_project(root)
    before = ledger_file(wrong).read_bytes()

    assert refused(wrong, "other-project") == {"ledger": "sqlite:///.infold/ledger.db"}
    assert ledger_file(wrong).read_bytes() == before
    for words in (("forget", "daily"), ("teardown",)):
        text = said(wrong, *words, "--yes", code=3)
        assert "this ledger is of the project shop, and this project is store" in text
    assert set(api.ledger(wrong).traces()) == set(NAMES)


@pytest.mark.parametrize("operation", [None, "append"])
def test_a_table_of_somebody_else_has_the_name(shop: Project, operation: str | None) -> None:
    """A table that infold never committed to, empty or not, is neither replaced nor dropped."""
    write(shop.root, {"models/extra.sql": SHOP["models/daily.sql"]})
    shop = api.open_project(shop.root)
    put(shop, "extra", "mine", 7)
    metadata = made_by_others(shop, "extra", operation)
    theirs = metadata.read_text(encoding="utf-8")

    assert "table-name-taken: extra was never built" in said(shop, "plan", code=1)
    assert "extra" in api.observe_all(shop).refused
    assert api.forgettable(shop, ["extra"]) == ((), ("extra",))
    assert "extra" not in api.teardown(shop).models
    assert metadata.read_text(encoding="utf-8") == theirs
