"""Tables that are dropped, damaged, of a copied folder, or cannot be looked at: all is named."""

from __future__ import annotations

import shutil
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pytest
from tests.ledger.fresh import FreshLedger
from tests.planning import strips
from tests.planning.strips import EVENTS, FIRST
from tests.running.commands import said
from tests.running.production import production
from tests.running.standing_tables import also_built, drop, leased, stand_up

from infold import api
from infold.core.interval import Ranges
from infold.core.plan import Action, PlanOptions, Step
from infold.core.ports import FORBIDDEN
from infold.core.project import Project
from infold.core.record import Outcome
from infold.core.report import RunFailed, RunResult
from infold.core.trace import Trace
from infold.lake.iceberg import tables as missing_files
from infold.lake.iceberg.open_catalog import CatalogInWarehouse
from infold.lake.iceberg.sql_catalog import SqlCatalog, SqliteDatabase
from infold.lake.iceberg.table_catalog import Key
from infold.lake.stores import places
from infold.messages import catalog_errors, mismatches
from infold.messages.errors import InfoldError
from infold.running.damaged_tables import give_up_damaged
from infold.running.run_progress import RunProgress
from infold.running.table_names import locations_and_files


@pytest.fixture
def shop(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Project:
    """Three tables as a run left them; a list gives the files that a snapshot needs."""
    made = stand_up(tmp_path / "shop")
    with leased(made) as book:
        book.remember_locations(locations_and_files(api.lake_of(made), book.newest_versions()))

    def needed(location: str) -> tuple[str, ...]:
        rows = Path(location.removeprefix("file:")).parents[1] / "data" / "rows.parquet"
        return () if rows.exists() else (str(rows),)

    monkeypatch.setattr(missing_files, "missing_data_files", needed)
    return made


def rows_of(shop: Project, name: str) -> Path:
    """The one data file of a table."""
    return shop.warehouse / shop.name / name / "data" / "rows.parquet"


def test_a_run_does_not_say_that_nothing_is_to_do(shop: Project) -> None:
    """Run, plan and status name the damaged table, the file and the cure; exit code 3."""
    rows_of(shop, "daily").unlink()

    with pytest.raises(RunFailed) as failed:
        api.run(shop, select=["daily"])
    assert failed.value.exit_code == 3
    assert api.history(shop)[0].state == "refused"
    with pytest.raises(InfoldError) as caught:
        api.observe(shop)
    [stood] = [entry.refused for entry in api.status(shop) if entry.refused is not None]
    for error in (caught.value, stood, api.plan(shop).refused["daily"]):
        assert error.slug == "damaged-table"
        assert error.facts == (("file", str(rows_of(shop, "daily"))), ("gone", "1 of its files"))
        assert "infold forget daily\n  infold run" in error.todo

    said(shop, "forget", "daily", "--yes")
    api.observe(shop)


def test_other_files_beside_them_are_no_damage(
    shop: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    """
    Extra files beside a table's own, such as those of a dead run, are no damage and are checked
    once: while file names are the same no manifest is read, because that costs more than a run
    with nothing to do may. A damaged table stays reported; only whole ones are remembered.
    """
    (rows_of(shop, "sessions").parent / "left.parquet").write_bytes(b"rows")

    def never(location: str) -> tuple[str, ...]:
        raise AssertionError(location)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(missing_files, "missing_data_files", never)
        with pytest.raises(AssertionError):
            api.observe(shop)
    rows_of(shop, "daily").unlink()
    assert not api.run(shop, select=["sessions"]).steps
    with pytest.raises(RunFailed):
        api.run(shop, select=["daily"])
    rows_of(shop, "daily").write_bytes(b"rows")
    api.observe(shop)
    monkeypatch.setattr(missing_files, "missing_data_files", never)
    api.observe(shop)


def test_a_changed_definition_gives_it_up(shop: Project) -> None:
    """It is built anew, as the plan says; a protected one stays refused."""
    rows_of(shop, "daily").unlink()
    text = (shop.root / "models" / "daily.sql").read_text()
    (shop.root / "models" / "daily.sql").write_text(text.replace("count(*)", "count(*) + 1"))
    changed = api.open_project(shop.root)

    todo = api.make_plan(changed, api.observe(changed), select=["daily"])

    assert [(step.model, step.action) for step in todo.steps] == [("daily", Action.BUILD)]
    assert todo.notes == (
        "daily: its table is damaged; as its definition changed, all of it is rebuilt",
    )
    kept = replace(changed, target=replace(changed.target, protected=True))
    assert api.plan(kept).refused["daily"].slug == "damaged-table"


def test_a_metadata_file_that_is_gone_is_damage(
    shop: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Only its table is refused; the others are planned, and to forget it is the cure."""
    monkeypatch.undo()  # of this one the real list does not need manifests
    [metadata] = (shop.warehouse / shop.name / "daily" / "metadata").iterdir()
    metadata.unlink()

    plan = api.plan(shop, select=["daily"])

    assert {name: error.slug for name, error in plan.refused.items()} == {"daily": "damaged-table"}
    assert not api.plan(shop, select=["sessions"]).refused
    assert not api.run(shop, select=["sessions"]).steps  # and does not take it for sound
    assert api.plan(shop).refused.keys() == {"daily"}
    said(shop, "forget", "daily", "--yes")
    assert not api.plan(shop).refused


USERS = """---
materialization: cumulative_aggregate
---
SELECT user_id, count(*) AS n FROM clicks GROUP BY user_id
"""


@pytest.mark.parametrize("text", ["", "{", "[]", "\x1f\x8b"])
def test_a_metadata_file_that_cannot_be_read(shop: Project, text: str) -> None:
    """Of a table with states it is read in each plan: its model alone is refused, by name."""
    (shop.root / "models" / "users.sql").write_text(USERS)
    more = api.open_project(shop.root)
    also_built(more, "users", "clicks")
    with leased(more, "r3") as book:
        book.remember_locations(locations_and_files(api.lake_of(more), ["users"]))
    assert not api.plan(more).refused
    [metadata] = (shop.warehouse / shop.name / "users" / "metadata").iterdir()
    metadata.write_text(text, encoding="latin-1")

    assert {name: error.slug for name, error in api.plan(more).refused.items()} == {
        "users": "metadata-missing"
    }
    assert [one.model for one in api.status(more) if one.refused is not None] == ["users"]


def test_a_dropped_table_is_rebuilt_and_reported(shop: Project) -> None:
    """A dropped table is reported as rebuilt, and not shown as covered."""
    drop(shop, "daily")

    todo = api.make_plan(shop, api.observe(shop), select=["daily"])
    (daily,) = (entry for entry in api.status(shop) if entry.model == "daily")

    assert [(step.model, step.action) for step in todo.steps] == [("daily", Action.BUILD)]
    assert todo.notes == ("daily: its table was dropped, not by infold; all of it is rebuilt",)
    assert (str(daily.state), daily.rows, daily.covered) == ("new model", 0, Ranges())
    assert "daily" not in api.coverage(shop)
    manifest = api.manifest(shop, "incremental_manifest").to_pylist()
    assert [row["model"] for row in manifest] == ["clicks", "sessions"]


# -- tables that cannot be looked at

OF_TABLES = ["sessions", "daily"]
"""The models that read no files, as there are none."""


def begin_steps(shop: Project, *models: str, run: str = "r2") -> None:
    """A run that died in a step of each of these models."""
    with leased(shop, run) as book:
        book.begin_run(run, "run", 0, {})
        for number, name in enumerate(models, 1):
            book.begin_step(run, f"{run}-{number}", number, name, "build", {})


def open_steps(shop: Project) -> list[str]:
    """The models with a step that is open."""
    book = api.ledger_of(shop)
    found = [record.model for record in book.unfinished()]
    book.close()
    return found


def failed_run(shop: Project) -> RunResult:
    """What a run did that could not do all."""
    with pytest.raises(RunFailed) as caught:
        api.run(shop, select=OF_TABLES)
    return caught.value.result


@contextmanager
def forbidden(name: str) -> Iterator[None]:
    """A catalog that does not let anybody look at one table, as a server may."""
    find = SqlCatalog.find

    def refuse(catalog: SqlCatalog, tables: Collection[Key]) -> Mapping[Key, str]:
        if any(table == name for _, table in tables):
            raise catalog_errors.not_permitted(key="catalog", at="here", why="403 not you")
        return find(catalog, tables)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(SqlCatalog, "find", refuse)
        yield


def test_a_dead_step_of_a_table_that_cannot_be_read(shop: Project) -> None:
    """Its model is refused and the other steps are recovered; it stays open until the metadata is
    there again. And it can be forgotten: then the next run is done with the step, too.
    """
    begin_steps(shop, "sessions", "clicks")
    file = shop.warehouse / "shop" / "sessions" / "metadata" / "1.metadata.json"
    kept = file.read_bytes()
    file.unlink()

    done = failed_run(shop)

    assert [(one.model, one.error.slug) for one in done.failures] == [
        ("sessions", "metadata-missing")
    ]
    assert "clicks: a step that a dead run had begun is done again" in done.notes
    assert open_steps(shop) == ["sessions"]
    file.write_bytes(kept)
    notes = api.run(shop, select=OF_TABLES).notes
    assert "sessions: a step that a dead run had begun is done again" in notes
    assert open_steps(shop) == []

    begin_steps(shop, "daily", run="r4")
    (shop.warehouse / "shop" / "daily" / "metadata" / "1.metadata.json").unlink()
    assert api.forget(shop, ["daily"]).models == ("daily",)
    assert api.lake_of(shop).location("daily") is None
    assert [step.model for step in api.plan(shop, select=["daily"]).steps] == ["daily"]


def test_a_table_that_nobody_may_look_at(shop: Project) -> None:
    """Plan, status and run refuse its model; with a step of a dead run, too. Where all are
    forbidden it is the whole catalog that nobody lets in.
    """
    begin_steps(shop, "sessions")
    with forbidden("sessions"):
        refused = {**api.plan(shop).refused}
        done = failed_run(shop)
        [stood] = [one for one in api.status(shop) if one.refused is not None]
    told = [(name, error.slug) for name, error in refused.items()]
    assert told == [("sessions", "catalog-not-permitted")]
    assert [(one.model, one.error.slug) for one in done.failures] == told
    assert stood.model == "sessions"
    assert open_steps(shop) == ["sessions"]

    lake = api.lake_of(shop)
    with forbidden("daily"):
        assert lake.moved_tables({"daily": "", "none": ""}) == {"daily": FORBIDDEN, "none": None}
        with pytest.raises(InfoldError, match="catalog-not-permitted"):
            lake.moved_tables({"daily": ""})


# -- a project folder that was copied, moved or opened by another name


def files(shop: Project) -> set[Path]:
    """All files of a project's warehouse."""
    return {path for path in shop.warehouse.rglob("*") if path.is_file()}


COMMANDS = (
    "plan",
    "status",
    "run",
    "show daily",
    "repair --yes",
    "forget daily --yes --allow-refresh",
    "teardown --yes --allow-refresh",
)


def test_a_copy_leaves_the_files_of_the_original_alone(tmp_path: Path) -> None:
    """Its tables name files of the original: no command reads or changes those."""
    shop = production(tmp_path / "shop")
    shutil.copytree(shop.root, tmp_path / "copy")
    copy = api.open_project(tmp_path / "copy", shop.target.name)
    before = files(shop), files(copy)

    for command in COMMANDS:
        printed = said(copy, *command.split(), code=3)
        assert printed.startswith("copied-warehouse"), printed
        assert str(shop.warehouse) in printed
        assert (files(shop), files(copy)) == before
    said(shop, "plan")


def test_a_copy_without_its_warehouse_has_its_tables_built(tmp_path: Path) -> None:
    """What the ledger alone knows is kept, as the error says."""
    shop = production(tmp_path / "shop")
    shutil.copytree(
        shop.root, tmp_path / "copy", ignore=shutil.ignore_patterns(shop.warehouse.name)
    )
    copy = api.open_project(tmp_path / "copy", shop.target.name)

    said(copy, "repair", "--yes")

    printed = said(copy, "plan")
    assert printed.count("first run") >= 3, printed


def test_what_is_no_copy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """
    Links to the project, or to the folder that it is in, lead to the same files. As with a mount,
    where names tell nothing, the folder itself is compared. And sources may lie in another
    warehouse: tables of other namespaces, which others made and named in this catalog.
    """
    shop = production(tmp_path / "real" / "shop")
    (tmp_path / "link").symlink_to(tmp_path / "real")
    said(api.open_project(tmp_path / "link" / "shop", shop.target.name), "plan")

    (tmp_path / "mounted").symlink_to(shop.warehouse)
    copy = Path(shutil.copytree(shop.warehouse, tmp_path / "copy"))
    monkeypatch.setattr(places, "is_inside", lambda *_: False)
    for file, at, namespace in (
        (shop.catalog_db, tmp_path / "mounted", shop.namespace),
        (copy / shop.catalog_db.name, copy, "another"),
    ):
        found = CatalogInWarehouse(SqliteDatabase(file), warehouse=str(at), namespace=namespace)
        assert found.find([(shop.namespace, "daily")])


def test_only_a_table_that_is_damaged_is_given_up() -> None:
    """Where a changed definition was to follow from its rows; what fails otherwise keeps them."""
    shop, ledger = strips.project(EVENTS), FreshLedger()
    ledger.acquire("run")
    ledger.begin_run("run", "run", FIRST, {})
    ledger.begin_step("run", "run-1", 1, "events", "build", {})
    ledger.finish_step("run-1", Outcome("events", 1, Trace("events", "old"), whole=True))
    step = Step("events", Action.DERIVE, Ranges(), (), trace=Trace("events", EVENTS.fingerprint))
    progress = RunProgress("run", shop, PlanOptions())

    def given_up(error: InfoldError) -> bool:
        return give_up_damaged(shop, ledger, progress, step, error)

    assert not given_up(InfoldError("out-of-memory", "no room", (), ""))
    assert "events" in ledger.traces()
    assert given_up(mismatches.damaged_table("events", "a.parquet"))
    assert "events" not in ledger.traces()
    assert len(progress.notes) == 1
