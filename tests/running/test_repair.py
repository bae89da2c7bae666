"""
Ledgers and tables that do not belong together: what every command refuses, and `infold repair`.

Ledgers are lost, older, newer or damaged beside tables that stand, of two warehouses, or of another
project.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from tests.crash.scenario import living
from tests.declare.shop import SHOP, write
from tests.running.commands import said
from tests.running.standing_tables import (
    DECLARED,
    NAMES,
    commit,
    day,
    folders,
    in_catalog,
    in_ledger,
    leased,
    put,
    stand_up,
    tables,
    taken_over,
)

from infold import api
from infold.api.doctor import examine
from infold.api.repairing import look_at_ledger, repair_ledger
from infold.core.interval import show_instant
from infold.core.project import Project
from infold.core.record import Outcome, Receipt
from infold.core.sessions import ManualEntry
from infold.core.trace import CellChange, Trace
from infold.ledger.database import close_all
from infold.messages.errors import InfoldError
from infold.running.ledger_consistency import foreign_tables
from infold.running.table_names import FORGET, remember_locations

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


def repaired(shop: Project, *words: str) -> dict[str, tuple[str, str]]:
    """What the command does about each table, and why. It has nothing left to do afterwards, and
    no table is refused but those that it leaves alone.
    """
    found = json.loads(said(shop, "repair", "--yes", "--json", *words))["tables"]
    assert "there is nothing to repair" in said(shop, "repair")
    left = {one["table"] for one in found if one["repair"] == "leave"}
    assert api.observe_all(shop).refused.keys() == left
    return {one["table"]: (one["repair"], one["why"]) for one in found}


def lose_ledger(shop: Project) -> None:
    """The file is gone, and so is its log."""
    close_all()
    for path in ledger_file(shop).parent.glob("ledger.db*"):
        if "damaged" not in path.name:
            path.unlink()


def written_by_others(shop: Project, name: str, parent: int) -> None:
    """Another engine commits on top of a snapshot."""
    metadata = shop.warehouse / shop.name / name / "metadata" / "1.metadata.json"
    found = json.loads(metadata.read_text(encoding="utf-8"))
    theirs = {"snapshot-id": 9, "parent-snapshot-id": parent, "summary": {"operation": "append"}}
    found = {"snapshots": [*found["snapshots"], theirs], "current-snapshot-id": 9}
    metadata.write_text(json.dumps(found), encoding="utf-8")


def test_nothing_to_repair(shop: Project, tmp_path: Path) -> None:
    """A ledger that fits its tables stays as it is; so does a backup of both of one moment."""
    before = ledger_file(shop).read_bytes()

    assert said(shop, "repair") == (
        "ledger  sqlite:///.infold/ledger.db\n"
        "\n"
        "  clicks    stays  version 1\n"
        "  sessions  stays  version 1\n"
        "  daily     stays  version 1\n"
        "\n"
        "The ledger fits the tables: there is nothing to repair.\n"
    )
    assert ledger_file(shop).read_bytes() == before
    shutil.copytree(shop.root, tmp_path / "backup")
    second_run(shop)
    shutil.rmtree(shop.root)
    shutil.copytree(tmp_path / "backup", shop.root)
    assert "there is nothing to repair" in said(shop, "repair")


def test_a_lost_ledger(shop: Project) -> None:
    """All tables are built again, and stay until then; without --yes nothing is done."""
    lose_ledger(shop)
    assert set(refused(shop, "ledger-behind")) == {"ledger", *NAMES}
    lose_ledger(shop)  # in which the refused run is

    assert said(shop, "repair", "--dry-run") == (
        "ledger  sqlite:///.infold/ledger.db\n"
        "\n"
        "  clicks    built again  1 commit unknown to it, the newest by step r1-1\n"
        "  sessions  built again  1 commit unknown to it, the newest by step r1-2\n"
        "  daily     built again  1 commit unknown to it, the newest by step r1-3\n"
        "\n"
        "Manual entries (`infold quarantine`), environments, applied definitions, earlier "
        "definitions of forward-only changes, findings of audits, and the history of runs were "
        "in the ledger alone.\n"
    )
    said(shop, "repair", "--json", code=3)
    assert not ledger_file(shop).exists()

    found = repaired(shop)

    assert {what for what, _ in found.values()} == {"build"}
    assert tables(shop) == set(NAMES)
    states = api.observe(shop).models
    assert {states[name].trace for name in NAMES} == {None}


def test_an_older_ledger(shop: Project) -> None:
    """It is refused with the step that it lacks; a table that went on is set back, others stay."""
    [known] = api.history(shop)
    older = ledger_file(shop).read_bytes()
    second_run(shop)
    newer = ledger_file(shop).read_bytes()
    ledger_file(shop).write_bytes(older)
    assert refused(shop, "ledger-behind") == {
        "ledger": "sqlite:///.infold/ledger.db",
        "clicks": "1 commit unknown to it, the newest by step r2-1",
    }
    assert "infold repair\n  infold run\n" in said(shop, "plan", code=3)
    assert not api.ledger_of(shop).unfinished()
    ledger_file(shop).write_bytes(newer)  # the right one, put back
    assert api.observe(shop).models["clicks"].version == 2
    ledger_file(shop).write_bytes(older)
    lake = api.lake_of(shop)
    newest = lake.metadata("clicks")
    assert newest is not None
    assert newest.snapshot == 201
    with leased(shop, "r9") as book:
        book.begin_run("r9", "run", 0, {})
        book.finish_run("r9", "refused", Receipt(), "ledger-behind")
    text = said(shop, "repair", "--dry-run")
    assert f"recorded after {show_instant(known.started_at)} is not in this one" in text

    found = repaired(shop)

    assert found["clicks"] == (
        "set back",
        "1 commit unknown to it, the newest by step r2-1; version 1 is still there",
    )
    assert (found["sessions"][0], found["daily"][0]) == ("keep", "keep")
    assert "clicks  set back  done" in said(shop, "history", "--limit", "1")
    now = lake.metadata("clicks")
    assert now is not None
    assert (now.snapshot, [*now.steps]) == (101, ["r1-1"])
    assert api.observe(shop).models["clicks"].version == 1


def test_an_older_ledger_whose_version_is_gone(shop: Project) -> None:
    """Where the snapshot expired, or all rows were replaced, the table is built again."""
    older = ledger_file(shop).read_bytes()
    second_run(shop)
    ledger_file(shop).write_bytes(older)
    put(shop, "clicks", "r2-1", 201)

    assert repaired(shop)["clicks"][0] == "build"

    seen = api.observe(shop).models
    assert seen["clicks"].trace is None
    assert seen["sessions"].trace is not None
    # Its reader sees the rows go, and will see those that come back.
    assert [one.dropped_since for one in seen["sessions"].inputs] == [True]


COMMITS = {
    "an older table": (None, [CLICKS], {"clicks": "it lacks version 2"},
        ("build", "it lacks version 2")),
    "a late commit": ("r2", [CLICKS, ("r2-1", 201)], {"snapshot": "201", "by": "step r2-1"},
        ("set back", "a run that had been taken over wrote to it; version 1 is still there")),
    "a late commit of all rows": ("r2", [("r2-1", 201)], {"snapshot": "201", "by": "step r2-1"},
        ("build", "it lacks version 1")),
    "a late commit below the newest version": ("r0", [CLICKS, ("r0-1", 151), ("r2-1", 201)],
        {"snapshot": "151", "by": "step r0-1"},
        ("build", "a run that had been taken over wrote to it")),
    "two ledgers took turns": (None, [CLICKS, ("other-1", 151), ("r2-1", 201)],
        {"clicks": "1 commit unknown to it, the newest by step other-1"},
        ("build", "1 commit unknown to it, the newest by step other-1")),
}  # fmt: skip
"""Which run was taken over, the commits of clicks, what is refused, and what is done."""


@pytest.mark.parametrize(("over", "commits", "facts", "repair"), COMMITS.values(), ids=COMMITS)
def test_other_commits_than_the_ledger_knows(
    shop: Project,
    over: str | None,
    commits: list[tuple[str, int]],
    facts: dict[str, str],
    repair: tuple[str, str],
) -> None:
    """
    Each is refused, with the version or the commit. A table that was put back from a backup is
    built again. What a run committed after another had taken over is taken back, if nothing came
    after it; nor is a version above a commit that the ledger does not know what the ledger says.
    """
    if over:
        taken_over(shop, over)
    if over != "r2":
        second_run(shop)
    put(shop, "clicks", *commits[-1], *commits[:-1])

    with pytest.raises(InfoldError) as caught:
        api.observe(shop)
    assert dict(caught.value.facts).items() >= facts.items()
    assert repaired(shop)["clicks"] == repair


def test_what_somebody_else_wrote_stays_refused(shop: Project) -> None:
    """A commit of another engine on top is not taken away, also where the ledger is gone."""
    lose_ledger(shop)
    put(shop, "clicks", *CLICKS)
    written_by_others(shop, "clicks", CLICKS[1])

    printed = said(shop, "repair", "--yes")
    assert "clicks    left alone   somebody else wrote to it" in printed
    assert "  infold forget clicks\n" in printed
    refused = api.observe_all(shop).refused
    assert {name: error.slug for name, error in refused.items()} == {"clicks": "foreign-write"}


@pytest.mark.parametrize("damage", ["no database", "a page", "a table"])
def test_a_damaged_ledger(shop: Project, damage: str) -> None:
    """The file is put aside and kept; a new ledger is begun."""
    file = ledger_file(shop)
    if damage == "a table":
        in_ledger(shop, "DROP TABLE cells")
    else:
        content = bytearray(file.read_bytes())
        at = 0 if damage == "no database" else 4096 * 3
        content[at : at + 4096] = b"\xab" * 4096
        file.write_bytes(content)
    damaged = file.read_bytes()

    assert "It is damaged: " in said(shop, "repair", "--dry-run")
    assert file.read_bytes() == damaged

    found = repaired(shop)

    assert {what for what, _ in found.values()} == {"build"}
    (aside,) = file.parent.glob("ledger.db.damaged-*")
    assert aside.read_bytes() == damaged


def test_what_is_not_repaired(shop: Project) -> None:
    """The table of a model is no orphan. A file that is no ledger, and no damaged one, is not
    touched.
    """
    assert said(shop, "repair", "--drop", "daily", "--yes", code=3).startswith("not-an-orphan")
    assert tables(shop) == {*NAMES}
    lose_ledger(shop)
    in_ledger(shop, "CREATE TABLE songs (name TEXT)")

    assert said(shop, "repair", "--yes", code=2).startswith("not-a-ledger")


def test_rows_of_the_ledger_are_gone(shop: Project) -> None:
    """A table whose rows in the ledger contradict each other is built again, and what reads it."""
    in_ledger(shop, "DELETE FROM cells WHERE table_name = 'sessions'")
    book = api.ledger_of(shop)
    book.add_entries("sessions", [ManualEntry(0, "ann", in_quarantine=True)])
    book.close()

    assert repaired(shop) == {
        "clicks": ("keep", "version 1"),
        "sessions": ("build", "its cells have 0 rows, and its newest version 6"),
        "daily": ("build", "it reads sessions, and the ledger lost rows about that"),
    }
    assert len(api.ledger_of(shop).entries("sessions")) == 1


@pytest.mark.parametrize("forgotten", [False, True])
def test_all_versions_of_a_table_are_gone(shop: Project, *, forgotten: bool) -> None:
    """What is known of it and its readers is erased; also of a forgotten table."""
    if forgotten:
        said(shop, "forget", "sessions", "--yes")
    in_ledger(shop, "DELETE FROM versions WHERE table_name = 'sessions'")
    in_ledger(shop, "DELETE FROM traces WHERE model = 'sessions'")

    assert {name: what for name, (what, _) in repaired(shop).items()} == {
        "clicks": "keep",
        "sessions": "build",
        "daily": "build",
    }
    assert api.ledger_of(shop).contradictions() == {}
    assert in_ledger(shop, "SELECT 1 FROM changes WHERE table_name = 'sessions'") == []


def test_orphans_are_named_and_dropped_on_request(shop: Project) -> None:
    """A table that infold made and nothing points to any more is dropped if it is asked for."""
    orphan = "clicks__0123abcd"
    put(shop, orphan, "r0-1", 7)

    assert f"Nothing points to this table, which infold made: {orphan}\n" in said(shop, "repair")
    assert api.lake_of(shop).metadata(orphan) is not None
    assert f"Dropped {orphan}." in said(shop, "repair", "--drop-orphans", "--yes")

    assert api.lake_of(shop).metadata(orphan) is None
    assert tables(shop) == set(NAMES)


def test_rows_set_aside(shop: Project) -> None:
    """
    The table of rows that could not be used goes back with the tables that it belongs to. Where the
    ledger knows nothing of it, nothing would ever remove them: files have other numbers in another.
    """
    put(shop, "infold__set_aside", "r1-1", 50)
    older = ledger_file(shop).read_bytes()
    second_run(shop)
    put(shop, "infold__set_aside", "r2-1", 60, ("r1-1", 50))
    ledger_file(shop).write_bytes(older)

    assert repaired(shop)["infold__set_aside"][0] == "set back"

    head = api.lake_of(shop).metadata("infold__set_aside")
    assert head is not None
    assert head.snapshot == 50
    lose_ledger(shop)
    assert what(shop)["infold__set_aside"] == "build"
    assert api.lake_of(shop).metadata("infold__set_aside") is None
    said(shop, "show", "set_aside")


@pytest.fixture
def damaged(shop: Project) -> Project:
    """The same with an entry for a session, and a ledger that is damaged."""
    book = api.ledger_of(shop)
    book.add_entries("sessions", [ManualEntry(0, "ann", in_quarantine=True, reason="a bot")])
    book.close()
    in_ledger(shop, "DROP TABLE cells")
    return shop


def entries(shop: Project) -> list[tuple[str, str]]:
    """Those that the ledger has."""
    book = api.ledger_of(shop)
    found = [(one.owner, one.reason) for one in book.entries("sessions")]
    book.close()
    return found


KEPT = [("ann", "a bot")]


class TestEntries:
    """What people entered, out of the damaged ledger that is put aside."""

    def test_they_are_taken_out_of_the_file_that_is_put_aside(self, damaged: Project) -> None:
        """It is said beforehand, also where nobody is asked and nothing is done. A ledger that is
        lost later has lost them; the old file says what was once.
        """
        text = said(damaged, "repair", "--dry-run")
        assert "1 manual entry for sessions in it can be read, and will be taken over." in text
        text = said(damaged, "repair", "--json", code=3)
        assert "take over 1 manual entry for sessions from the damaged ledger" in text

        assert repair_ledger(damaged).entries == 1
        assert entries(damaged) == KEPT
        lose_ledger(damaged)
        assert look_at_ledger(damaged).entries is None
        assert repair_ledger(damaged).entries is None
        assert entries(damaged) == []

    def test_never_after_a_teardown(self, damaged: Project) -> None:
        """Who tore a target down, also after a repair that died, wants none of it back."""
        with living(2) as life:  # the file is put aside
            repair_ledger(damaged)
        assert life.dead
        close_all()
        assert look_at_ledger(damaged).entries == 1
        said(damaged, "teardown", "--yes")

        assert look_at_ledger(damaged).entries is None

    def test_a_repair_that_died_goes_on_with_its_file(self, damaged: Project) -> None:
        """Wherever it dies, they come over once, and it is said what will be done."""
        for number in range(1, 60):
            with living(number) as life:
                repair_ledger(damaged)
            close_all()
            if not life.dead:
                break
            found = look_at_ledger(damaged)
            assert found.entries == 1 or entries(damaged) == KEPT, life.passed

        assert number > 3
        assert entries(damaged) == KEPT
        assert not look_at_ledger(damaged).changes
        assert len([*ledger_file(damaged).parent.glob("ledger.db.*")]) == 1


# -- what is left alone ------------------------------------------------------------------------


def what(shop: Project, *words: str) -> dict[str, str]:
    """What the command does about each table; it has nothing left to do afterwards."""
    return {name: found for name, (found, _) in repaired(shop, *words).items()}


def test_what_somebody_else_wrote_to_a_table_that_the_ledger_is_wrong_about(shop: Project) -> None:
    """The ledger loses what is wrong in it; the table is left alone, and refused."""
    written_by_others(shop, "sessions", 102)
    in_ledger(shop, "DELETE FROM cells WHERE table_name = 'sessions'")

    assert what(shop) == {"clicks": "keep", "sessions": "leave", "daily": "build"}

    assert api.ledger_of(shop).contradictions() == {}
    refused = api.observe_all(shop).refused
    assert {name: error.slug for name, error in refused.items()} == {"sessions": "foreign-write"}


def move_tables(shop: Project, before: Path, after: Path, like: str, namespace: str) -> None:
    """Tables lie in another folder, and in a namespace."""
    shutil.move(before, after)
    moved = "UPDATE iceberg_tables SET metadata_location = replace(metadata_location, ?, ?), "
    moved += "table_namespace = ? WHERE table_name LIKE ?"
    in_catalog(shop, moved, str(before), str(after), namespace, like)


def test_tables_of_another_warehouse_are_no_orphans(shop: Project, tmp_path: Path) -> None:
    """Another project with its tables in the same namespace has them in its own folder."""
    put(shop, "visits", "r0-1", 7)
    move_tables(shop, shop.warehouse / shop.name / "visits", tmp_path / "v", "visits", shop.name)

    assert look_at_ledger(shop).orphans == ()
    assert repaired(shop, "--drop-orphans").keys() == {*NAMES}

    assert api.lake_of(shop).metadata("visits") is not None


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


@pytest.mark.deep
@pytest.mark.parametrize("loss", ["older", "gone", "rows", "damaged"])
def test_a_repair_that_dies_anywhere(shop: Project, loss: str) -> None:
    """After a death at each write point in turn, the same command does what is left to do."""
    older = ledger_file(shop).read_bytes()
    second_run(shop)
    if loss == "older":
        ledger_file(shop).write_bytes(older)
        put(shop, "daily", "r2-2", 301)
    elif loss == "rows":
        in_ledger(shop, "DELETE FROM cells WHERE table_name = 'sessions'")
    else:
        lose_ledger(shop)
        if loss == "damaged":
            ledger_file(shop).write_bytes(b"nothing")
    met: list[tuple[str, str]] = []
    for _ in range(60):
        with living(met=met) as life:
            repair_ledger(shop)
        if not life.dead:
            break
        met.append(life.passed[-1])
        close_all()

    assert len(met) > 8
    assert not look_at_ledger(shop).changes
    trace = {name: state.trace is not None for name, state in api.observe(shop).models.items()}
    assert trace == {
        "older": {"clicks": True, "sessions": True, "daily": False},
        "rows": {"clicks": True, "sessions": False, "daily": False},
    }.get(loss, dict.fromkeys(NAMES, False))


# -- what is refused


@pytest.mark.parametrize("lost", ["file", "tables", "rows"])
@pytest.mark.parametrize("by", ["forget", "repair"])
def test_a_lost_catalog(shop: Project, lost: str, by: str) -> None:
    """It is refused by name, and nothing is built beside former files until they are forgotten."""
    if lost == "file":
        shop.catalog_db.unlink()
    else:
        in_catalog(shop, f"{'DROP TABLE' if lost == 'tables' else 'DELETE FROM'} iceberg_tables")

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
        remember_locations(shop, book, api.lake_of(shop), ())

    with pytest.raises(InfoldError, match="foreign-write") as caught:
        api.observe(shop)
    assert dict(caught.value.facts)["snapshot"] == "151"


@pytest.mark.parametrize("operation", [None, "replace"])
def test_a_history_without_any_commit_of_infolds(shop: Project, operation: str | None) -> None:
    """It is refused; it can be forgotten, and is built again."""
    put(shop, "clicks", "r1-1", 101)
    place = made_by_others(shop, "clicks", operation)

    book = api.ledger_of(shop)
    moved = {"clicks": f"file:{place}"}
    refused = foreign_tables(shop, book, api.lake_of(shop), book.newest_versions(), moved)
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
    """It is replaced after the ledger was read."""
    book = api.ledger_of(shop)
    heads = book.newest_versions()
    second_run(shop)
    put(shop, "clicks", "r2-1", 201)

    moved = {"clicks": "elsewhere"}
    assert foreign_tables(shop, book, api.lake_of(shop), heads, moved) == {}


def test_one_ledger_for_two_warehouses(tmp_path: Path) -> None:
    """The first one's tables would look dropped."""
    dev = stand_up(tmp_path / "shop", "  other: {warehouse: elsewhere}\n")
    with leased(dev) as book:
        book.set_owner(dev.name, "warehouse")

    other = api.open_project(dev.root, "other")
    assert refused(other, "other-warehouse") == {"ledger": "sqlite:///.infold/ledger.db"}
    assert api.observe(dev).models["daily"].version == 1


def test_a_ledger_of_another_project(shop: Project) -> None:
    """It is refused by name before anything is written into it, and drops no table and no row."""
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
    assert set(api.ledger_of(wrong).traces()) == set(NAMES)


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
