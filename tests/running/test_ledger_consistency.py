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
from tests.declare.shop import INFOLD, SHOP, write
from tests.running.commands import infold
from tests.running.standing_tables import NAMES, day, folders, put, stand_up, taken_over

from infold import api
from infold.api.doctor import examine
from infold.core.project import Project
from infold.core.record import Outcome, Receipt
from infold.core.trace import CellChange, Trace
from infold.messages.errors import InfoldError
from infold.running.ledger_consistency import foreign_tables
from infold.running.table_locations import remember_locations

CLICKS = ("r1-1", 101)
"""The step and the snapshot of the first version of clicks."""


@pytest.fixture
def shop(tmp_path: Path) -> Project:
    """Three tables that stand, and a ledger that knows them."""
    return stand_up(tmp_path / "shop")


def ledger_file(shop: Project) -> Path:
    """Where the ledger is."""
    return shop.root / ".infold" / "ledger.db"


def second_run(shop: Project) -> None:
    """A run that commits a second version of clicks."""
    book = api.ledger(shop)
    book.acquire("r2")
    book.begin_run("r2", "run", 0, {})
    book.begin_step("r2", "r2-1", 1, "clicks", "ingest", {})
    change = CellChange(day(1), 1, 0, 3, 4, 8, 9)
    trace = Trace("clicks", shop["clicks"].fingerprint)
    book.finish_step("r2-1", Outcome("clicks", 2, trace, (change,), snapshot=201))
    book.finish_run("r2", "done", Receipt())
    book.close()
    put(shop, "clicks", "r2-1", 201, CLICKS)


def refusals(shop: Project) -> list[InfoldError]:
    """What each command that looks at the tables says."""
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
    return found


def refused(shop: Project, slug: str) -> dict[str, str]:
    """The facts of a refusal that every command gives alike."""
    found = refusals(shop)
    assert {(error.slug, error.exit_code) for error in found} == {(slug, 3)}
    assert len({str(error) for error in found}) == 1
    return dict(found[0].facts)


def test_an_older_ledger_beside_newer_tables(shop: Project) -> None:
    """A restored backup of the ledger beside newer tables
    is refused, with the step it does not know.
    """
    shutil.copy(ledger_file(shop), shop.root / "old.db")
    second_run(shop)
    newer = ledger_file(shop).read_bytes()
    shutil.copy(shop.root / "old.db", ledger_file(shop))

    assert refused(shop, "ledger-behind") == {
        "ledger": "sqlite:///.infold/ledger.db",
        "clicks": "1 commit unknown to it, the newest by step r2-1",
    }
    code, text = infold(shop, "plan")
    assert code == 3
    assert "infold repair\n  infold run\n" in text
    assert not api.ledger(shop).unfinished()

    ledger_file(shop).write_bytes(newer)  # the right one, put back
    assert api.observe(shop).models["clicks"].version == 2


def test_an_older_table_beside_a_newer_ledger(shop: Project) -> None:
    """A restored backup of the warehouse beside a newer
    ledger is refused, with the missing version.
    """
    second_run(shop)
    put(shop, "clicks", *CLICKS)

    assert refused(shop, "tables-behind")["clicks"] == "it lacks version 2"


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
    assert infold(shop, by, *(NAMES if by == "forget" else ()), "--yes")[0] == 0
    assert not api.observe(shop).refused
    assert folders(shop) == {*NAMES}  # which may be another catalog's


@pytest.mark.parametrize("by", ["forget", "teardown"])
def test_a_lost_ledger(shop: Project, by: str) -> None:
    """Without a ledger, existing tables are neither
    replaced nor verified, until they are forgotten.
    """
    ledger_file(shop).unlink()

    facts = refused(shop, "ledger-behind")
    assert set(facts) == {"ledger", *NAMES}
    words = ("forget", *NAMES, "--yes") if by == "forget" else ("teardown", "--yes")
    assert infold(shop, *words)[0] == 0
    api.observe(shop)


def test_two_ledgers_on_one_warehouse(tmp_path: Path) -> None:
    """Another file's target on the same warehouse is refused, and the first one's tables stay."""
    dev = stand_up(tmp_path / "shop")
    text = INFOLD.replace("{warehouse", "{ledger: 'sqlite:///other.db', warehouse")
    write(dev.root, {**SHOP, "infold.yml": text})

    facts = refused(api.open_project(dev.root), "ledger-behind")

    assert facts["ledger"] == "sqlite:///other.db"
    assert api.observe(dev).models["daily"].version == 1


def test_a_step_that_a_dead_run_committed_is_known(shop: Project) -> None:
    """A step that a dead run committed is no foreign step, as its intent is in the ledger."""
    book = api.ledger(shop)
    book.acquire("r2")
    book.begin_run("r2", "run", 0, {})
    book.begin_step("r2", "r2-1", 1, "clicks", "ingest", {})
    book.close()

    put(shop, "clicks", "r2-1", 201, CLICKS)
    api.observe(shop)
    put(shop, "clicks", "r2-1", 201)  # it replaced all of the table
    api.observe(shop)


@pytest.mark.parametrize("whole", [False, True])
def test_a_run_that_was_taken_over_commits_late(shop: Project, whole: bool) -> None:
    """What a run commits after the next one has forgotten its step is never taken for its own."""
    taken_over(shop, "r2")

    put(shop, "clicks", "r2-1", 201, *(() if whole else (CLICKS,)))

    by = "step r2-1"
    with pytest.raises(InfoldError, match="foreign-write") as caught:
        api.observe(shop)
    assert dict(caught.value.facts) == {"snapshot": "201", "by": by}
    put(shop, "clicks", *CLICKS)  # rolled back
    api.observe(shop)


def test_a_late_commit_below_the_newest_version(shop: Project) -> None:
    """The run that took over may commit after it; its end does not make the table known."""
    taken_over(shop, "r0")
    second_run(shop)
    put(shop, "clicks", "r2-1", 201, CLICKS, ("r0-1", 151))

    book = api.ledger(shop)
    book.acquire("r3")
    remember_locations(shop, book, api.lake(shop), ())
    book.close()

    with pytest.raises(InfoldError, match="foreign-write") as caught:
        api.observe(shop)
    assert dict(caught.value.facts)["snapshot"] == "151"


@pytest.mark.parametrize(
    "snapshots", [[], [{"snapshot-id": 7, "summary": {"operation": "replace"}}]]
)
def test_a_history_without_any_commit_of_infolds(
    shop: Project, snapshots: list[dict[str, object]]
) -> None:
    """
    A table that others made anew, or whose history does not reach back to what the ledger knows,
    is refused. It can be forgotten, and is built again.
    """
    put(shop, "clicks", "r1-1", 101)
    place = next((shop.warehouse / shop.name / "clicks" / "metadata").glob("1.*"))
    current = snapshots[0]["snapshot-id"] if snapshots else None
    place.write_text(json.dumps({"snapshots": snapshots, "current-snapshot-id": current}))

    moved = {"clicks": f"file:{place}"}
    book = api.ledger(shop)
    refused = foreign_tables(shop, book, api.lake(shop), book.newest_versions(), moved)
    book.close()

    assert {name: error.slug for name, error in refused.items()} == {"clicks": "foreign-write"}
    assert api.forget(shop, ["clicks"]).models == ("clicks",)


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
    book = api.ledger(dev)
    book.acquire("r2")
    book.set_owner(dev.name, "warehouse")
    book.close()

    other = api.open_project(dev.root, "other")
    assert refused(other, "other-warehouse") == {"ledger": "sqlite:///.infold/ledger.db"}
    assert api.observe(dev).models["daily"].version == 1


class TestOtherProject:
    """A ledger belongs to the project whose first run wrote into it."""

    @pytest.fixture
    def wrong(self, shop: Project) -> Project:
        """The same project by another name, with the ledger of the first."""
        book = api.ledger(shop)
        book.acquire("r2")
        book.set_owner(shop.name, "warehouse")
        book.close()
        root = shop.root.parent / "store"
        write(root, {**SHOP, "infold.yml": INFOLD.replace("name: shop", "name: store")})
        (root / "landing" / "clicks").mkdir(parents=True)
        (root / "countries.csv").write_text("code,country\n", encoding="utf-8")
        (root / ".infold").mkdir()
        shutil.copy(ledger_file(shop), root / ".infold" / "ledger.db")
        return api.open_project(root)

    def test_nothing_of_it_is_used(self, wrong: Project) -> None:
        """A ledger of another project is refused by name before anything is written into it."""
        before = ledger_file(wrong).read_bytes()

        assert refused(wrong, "other-project") == {"ledger": "sqlite:///.infold/ledger.db"}
        assert ledger_file(wrong).read_bytes() == before

    @pytest.mark.parametrize("words", [("forget", "daily"), ("teardown",)])
    def test_nothing_of_it_is_dropped(self, wrong: Project, words: tuple[str, ...]) -> None:
        """Neither the tables nor the ledger's rows of another project are dropped."""
        code, text = infold(wrong, *words, "--yes")

        assert code == 3
        assert "this ledger is of the project shop, and this project is store" in text
        assert set(api.ledger(wrong).traces()) == set(NAMES)


@pytest.mark.parametrize(
    "snapshots", [[], [{"snapshot-id": 7, "summary": {"operation": "append"}}]]
)
def test_a_table_of_somebody_else_has_the_name(
    tmp_path: Path, snapshots: list[dict[str, object]]
) -> None:
    """A table that infold never committed to, empty or not, is neither replaced nor dropped."""
    shop = stand_up(tmp_path / "shop")
    write(shop.root, {**SHOP, "infold.yml": INFOLD, "models/extra.sql": SHOP["models/daily.sql"]})
    shop = api.open_project(shop.root)
    put(shop, "extra", "mine", 7)
    metadata = shop.warehouse / shop.name / "extra" / "metadata" / "1.metadata.json"
    theirs = json.dumps({"snapshots": snapshots, "current-snapshot-id": 7 if snapshots else -1})
    metadata.write_text(theirs, encoding="utf-8")

    code, printed = infold(shop, "plan")

    assert (code, "table-name-taken: extra was never built" in printed) == (1, True), printed
    assert "extra" in api.observe_all(shop).refused
    assert api.forgettable(shop, ["extra"]) == ((), ("extra",))
    assert "extra" not in api.teardown(shop).models
    assert metadata.read_text(encoding="utf-8") == theirs
