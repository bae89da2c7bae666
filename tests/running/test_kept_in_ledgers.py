"""Definitions that ledgers keep, and what `forget`, `teardown` and `infold ledger` leave there."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from tests.crash.scenario import living
from tests.declare.shop import SHOP, project, spoilt, write
from tests.ledger.fresh import FreshLedger
from tests.ledger.steps import do
from tests.running.commands import infold, said
from tests.running.standing_tables import (
    DECLARED,
    NAMES,
    day,
    drop,
    folders,
    leased,
    put,
    stand_up,
    tables,
)

from infold import api
from infold.core.definition import digest_of
from infold.core.interval import Ranges
from infold.core.plan import Action, PlanOptions
from infold.core.project import Project
from infold.core.record import Outcome
from infold.core.report import RunFailed
from infold.core.target import Target
from infold.core.trace import Trace
from infold.declare.definitions import definitions_of
from infold.ledger.lease import Holder
from infold.ledger.store import SqlLedger
from infold.running.keep_definitions import keep_definitions
from infold.running.recovery import recover
from infold.running.table_names import LOSE

PROD = "  prod: {warehouse: tables, ledger: 'sqlite:///prod.db', protected: true, apply: auto}\n"


@pytest.fixture
def prod(tmp_path: Path) -> Project:
    """The same on a protected target."""
    return stand_up(tmp_path / "shop", PROD, "prod")


def planned(project: Project, model: str) -> list[tuple[str, Action]]:
    """The steps of a plan for one model."""
    return [(step.model, step.action) for step in api.plan(project, select=[model]).steps]


def changed(project: Project) -> Project:
    """The project with another definition of its daily table."""
    path = project.root / "models" / "daily.sql"
    path.write_text(path.read_text().replace("count(*)", "count(*) + 1"), encoding="utf-8")
    return api.open_project(project.root, project.target.name)


class TestForget:
    """A forgotten model is rebuilt by the next run while others go on."""

    def test_its_table_and_its_trace_go(self, shop: Project) -> None:
        """No other's go; the next run rebuilds it and nothing else."""
        (shop.root / "landing" / "clicks" / "x").mkdir()
        done = api.forget(shop, ["daily"])

        assert (done.models, done.missing) == (("daily",), ())
        assert tables(shop) == folders(shop) == {"clicks", "sessions"}
        assert set(api.ledger_of(shop).traces()) == {"clicks", "sessions"}
        (run, _) = api.history(shop)
        assert (run.command, run.state) == ("forget", "done")
        assert [(step.model, step.action, step.state) for step in run.steps] == [
            ("daily", "forget", "done")
        ]
        assert planned(shop, "daily") == [("daily", Action.BUILD)]
        states = {entry.model: str(entry.state) for entry in api.status(shop)}
        assert states["daily"] == "new model"

    def test_names(self, shop: Project) -> None:
        """Those that have nothing to forget are reported, and the others are forgotten, also models
        that left the project; some are selected as by --select: by a glob, a tag, a plus.
        """
        assert set(api.forgettable(shop, ["sessions+"])[0]) == {"sessions", "daily"}
        (shop.root / "models" / "daily.sql").unlink()
        assert said(shop, "forget", "daily", "dialy", "--yes") == (
            "Deleted model daily from the manifest, and what was stored.\n"
            "The next run builds what is still in the project again.\n"
            "dialy does not exist in the manifest.\n"
        )
        assert "daily" not in tables(shop)
        assert said(shop, "forget", "daily", "x") == "daily, x do not exist in the manifest.\n"
        found = json.loads(said(shop, "forget", "sessions", "x", "--yes", "--json"))
        assert found == {"models": ["sessions"], "missing": ["x"], "entries": 0, "requests": 0}


def test_nothing_is_left_after_a_teardown(shop: Project) -> None:
    """But tables of others; a second one does no harm, and the next run is a first run."""
    put(shop, "foreign", "s", 9)

    assert said(shop, "teardown", "--yes") == (
        "Dropped 3 tables and the ledger of dev: clicks, sessions, daily.\n"
        "The next run is a first run.\n"
    )
    assert (tables(shop), folders(shop)) == (set(), {"foreign"})
    assert api.lake_of(shop).metadata("foreign") is not None
    assert list((shop.root / ".infold").glob("ledger.db*")) == []
    assert {str(entry.state) for entry in api.status(shop)} == {"first run"}
    said(shop, "teardown", "--yes")


@pytest.mark.parametrize("words", [("forget", "daily"), ("teardown",)])
class TestRefusals:
    """Nothing is dropped that is protected, in use, or unconfirmed."""

    def test_unconfirmed_or_in_use(self, shop: Project, words: tuple[str, ...]) -> None:
        """Without a terminal to ask on, `--yes` is required. While another run is going on the
        command is refused, with that run's name.
        """
        assert "--yes confirms it" in said(shop, *words, code=3)
        other = SqlLedger(shop.root / ".infold/ledger.db", holder=Holder("else", "x", 1, "y"))
        other.acquire("the-other-run")

        text = said(shop, *words, "--yes", code=3)

        other.close()
        assert "locked: run the-other-run is working on this target" in text
        assert tables(shop) == set(NAMES)

    def test_a_protected_target_refuses(self, prod: Project, words: tuple[str, ...]) -> None:
        """A protected target refuses unless the command is allowed to, and the refusal says how."""
        allows = "--allow-refresh allows it, for this once"
        assert allows in said(prod, *words, "--yes", code=3)
        assert tables(prod) == set(NAMES)
        said(prod, *words, "--yes", "--allow-refresh")
        assert "daily" not in tables(prod)


class TestProtection:
    """On a protected target no run rebuilds an existing table."""

    def refused(self, project: Project, *names: str, **asked: Any) -> str:
        """Why a run of some models is refused, and that nothing began."""
        with pytest.raises(RunFailed) as caught:
            api.run(
                project, asked=PlanOptions(selected=frozenset(names), **asked), allow_removals=True
            )
        assert caught.value.slug == "protected"
        assert caught.value.exit_code == 3
        assert not caught.value.result.steps
        assert api.history(project)[0].state == "refused"
        facts = [fact for error in caught.value.errors for fact in error.facts]
        return "; ".join(f"{name}: {why}" for name, why in facts)

    def test_a_changed_definition(self, prod: Project, tmp_path: Path) -> None:
        """It is refused as a rebuild, and the plan says what a run needs; on an unprotected target
        it is planned without a flag.
        """
        assert self.refused(changed(prod), "daily") == "daily: its definition changed"
        assert api.plan(changed(prod), select=["daily"]).notes == (
            "daily: its definition changed; prod is protected, so a run needs --allow-refresh",
        )
        todo = api.plan(changed(stand_up(tmp_path / "free")), select=["daily"])
        assert [step.model for step in todo.steps] == ["daily"]
        assert not [note for note in todo.notes if "protected" in note]

    def test_restating_all_cells(self, prod: Project) -> None:
        """A range of a protected table may be restated; all of it is a rebuild."""
        every = self.refused(prod, "daily", restated={"daily": Ranges.ever()})
        stretch = api.make_plan(
            prod, api.observe(prod), PlanOptions(restated={"daily": Ranges((day(0),))})
        )

        assert every == "daily: all of it is to be built again"
        assert not [note for note in stretch.notes if "protected" in note]

    def test_a_model_that_left_the_project_keeps_its_state(self, prod: Project) -> None:
        """One whose file was deleted by mistake costs nothing once it is back."""
        path = prod.root / "models" / "daily.sql"
        text = path.read_text()
        path.unlink()
        without = api.open_project(prod.root, "prod")
        done = api.run(without, select=["sessions"])
        path.write_text(text, encoding="utf-8")

        assert done.notes == (
            "daily is no longer in the project; what is known of it stays: protected",
        )
        assert "daily" in api.ledger_of(prod).traces()


# -- dying on the way ------------------------------------------------------------------------------


def made_good(project: Project, what: str, where: str) -> None:
    """After a death no trace vouches for a table that is gone; asked again, all is gone."""
    assert set(api.ledger_of(project).traces()) <= tables(project), where
    if what == "forget":
        api.forget(project, ["sessions"])
        assert set(api.ledger_of(project).traces()) == tables(project) == {"clicks", "daily"}
        assert folders(project) == {"clicks", "daily"}, where
    else:
        api.teardown(project)
        assert tables(project) == folders(project) == set(), where
        assert list((project.root / ".infold").glob("ledger.db*")) == []


@pytest.mark.deep
@pytest.mark.parametrize("what", ["forget", "teardown"])
def test_a_death_at_any_write_point_is_repaired_by_asking_again(tmp_path: Path, what: str) -> None:
    """After a death at any write point, the same command again finishes the work.

    The death is simulated in the test's own process, as in ``tests/crash``. Teardown does the
    same to each model, so it is tested at every point of the catalog and some of the ledger.
    """

    def act(project: Project) -> None:
        if what == "forget":
            api.forget(project, ["sessions"])
        else:
            api.teardown(project)

    whole = stand_up(tmp_path / "whole")
    with living() as life:
        act(whole)
    points = [name for _, name in life.passed]
    assert {"drop sessions: before", "drop sessions: after"} <= set(points)
    assert ("ledger remove: before" in points) == (what == "teardown")
    for at, name in enumerate(points, 1):
        if what == "teardown" and name.startswith("ledger") and "remove" not in name and at % 7:
            continue
        project = stand_up(tmp_path / f"shop-{at}")
        with living(at=at) as life:
            act(project)
        assert life.dead
        made_good(project, what, name)


def test_a_run_that_died_while_forgetting_leaves_its_files(shop: Project) -> None:
    """Files of a table that somebody else dropped are left alone."""
    drop(shop, "daily")
    with leased(shop) as book:
        book.begin_run("r2", "run", 0, {})
        book.begin_step("r2", "r2-gone1", 0, "daily", LOSE, {})
        book.forget("daily", step="r2-gone1")

    with leased(shop, "r3") as book:
        messages = recover(book, api.lake_of(shop)).notes
        assert not book.unfinished()

    assert messages == ("daily: forgetting it, which a dead run had begun, was finished",)
    assert "daily" in folders(shop)


# -- `infold ledger`


TO = "sqlite:///elsewhere/new.db"


def written(project: Project, url: str) -> Project:
    """The same project, with another ledger named in infold.yml."""
    file = project.root / "infold.yml"
    text = file.read_text(encoding="utf-8").partition("targets:")[0]
    text += f"targets:\n  {project.target.name}: {{ledger: '{url}'}}\n"
    file.write_text(text, encoding="utf-8")
    return api.open_project(project.root, project.target.name)


def seen(project: Project) -> object:
    """What is known of the tables, and what a run would do."""
    return api.status(project), api.make_plan(project, api.observe(project, as_of=1)).steps


class TestCopy:
    """The target goes on with the copy, and with nothing else."""

    def test_the_tables_are_known_to_the_copy(self, shop: Project) -> None:
        """With what was copied, and how to name it; a relative place is the project's."""
        before = seen(shop)

        output = said(shop, "ledger", "copy", TO)

        rows = output.partition(" rows in")[0].rpartition(" ")[2]
        assert output == (
            f"Copied the ledger of dev, {rows} rows in 33 tables, and compared what was written.\n"
            "\n"
            f"  from:  {Target('dev').ledger}\n"
            f"  to:    {TO}\n"
            "\n"
            "Now name it in infold.yml, wherever the target is used:\n"
            "\n"
            "  dev:\n"
            f"    ledger: {TO}\n"
            "\n"
            "Until then every run of dev is refused: the ledger that was copied is closed.\n"
            "Keep it, as a backup, until the first run with the copy is done.\n"
        )
        assert (shop.root / "elsewhere" / "new.db").exists()
        after = written(shop, TO)
        assert seen(after) == before
        assert {run.id for run in api.history(after)} == {"r1"}

    def test_nobody_goes_on_with_the_original(self, shop: Project, tmp_path: Path) -> None:
        """It says where the copy is, and drops no table; exported, it can be a ledger again."""
        before = seen(shop)
        (shop.root / "models" / "wrong.sql").write_text("SELEC", encoding="utf-8")
        said(shop, "ledger", "copy", TO, "--json")  # a mistake in a model does not matter
        (shop.root / "models" / "wrong.sql").unlink()

        for words in ("status", "plan", "run", "teardown --yes", f"ledger copy {TO}"):
            output = said(shop, *words.split(), code=3)
            assert output.startswith("ledger-moved")
            assert f"copied to:  {TO}" in output
        assert tables(shop) == folders(shop) == set(NAMES)
        put_back(shop, tmp_path / "saved")
        assert seen(shop) == before

    @pytest.mark.parametrize(
        ("words", "slug", "why"),
        [
            (["postgresql://me:secret@host/db"], "ledger-url", "a password is written out"),
            (["postgresql://me:${env:X@host/db"], "ledger-url", "no reference to a secret"),
            (["mysql://host/db"], "ledger-url", "it is none of sqlite:///FILE"),
            (["prod"], "ledger-url", "it is none of sqlite:///FILE"),
            (["sqlite:///${env:HOME}/x.db"], "ledger-url", "it is none of"),
            (["postgresql://${env:NOT_THERE}@host/db"], "secret-missing", "${env:NOT_THERE}"),
            ([TO, "--schema", "mine"], "Usage", "a ledger on a server has a schema"),
            (["postgresql://host/db", "--schema", "a-b"], "Usage", "letters, digits"),
            (["postgresql://host/db", "--schema", "pg_a"], "Usage", "not pg_ at the beginning"),
            ([Target("dev").ledger], "ledger-not-empty", "nothing is written over it"),
        ],
    )
    def test_what_is_refused(self, shop: Project, words: list[str], slug: str, why: str) -> None:
        """Before anything is written; no password is shown."""
        code, output = infold(shop, "ledger", "copy", *words)

        assert code in (2, 3)
        assert output.startswith(slug)
        assert why in output
        assert "secret@" not in output
        assert api.status(shop)

    def test_where_there_is_no_ledger(self, shop: Project) -> None:
        """The key is changed after the copy, and not before."""
        fresh = written(shop, "sqlite:///fresh.db")

        for words in (["copy", TO], ["export", str(shop.root / "saved")]):
            assert said(fresh, "ledger", *words, code=2).startswith("ledger-missing:")
        assert not (shop.root / "fresh.db").exists()
        assert not (shop.root / "saved").exists()


def put_back(shop: Project, file: Path) -> str:
    """The ledger is exported, lost, and made from the file; what the import prints as JSON."""
    output = said(shop, "ledger", "export", str(file))
    assert output.count("\n") == 1
    assert output.startswith("Exported the ledger of dev, ")
    api.ledger_of(shop).close()
    (shop.root / ".infold" / "ledger.db").unlink()
    return said(shop, "ledger", "import", str(file), "--json")


class TestFile:
    """A target's ledger to a file, and from one."""

    def test_a_lost_ledger_is_put_back(self, shop: Project, tmp_path: Path) -> None:
        """The tables are those that it tells of; a second import writes nothing over. A mistake in
        a model does not matter, and a run at work is named.
        """
        (shop.root / "models" / "wrong.sql").write_text("SELEC", encoding="utf-8")
        said(shop, "check", code=2)
        with leased(shop, "r9"):
            assert "Run r9 had its lease" in said(shop, "ledger", "export", str(tmp_path / "x"))
        (shop.root / "models" / "wrong.sql").unlink()
        before = api.status(shop)
        file = tmp_path / "saved.jsonl.gz"

        found = json.loads(put_back(shop, file))

        assert (found["from"], found["rows"]["runs"]) == (str(file), 1)
        again = said(shop, "ledger", "import", str(file), code=3)
        assert again.startswith("ledger-not-empty:")
        assert api.status(shop) == before

    def test_an_older_one_is_found_out(self, shop: Project, tmp_path: Path) -> None:
        """A ledger that lacks commits of the tables is refused, wherever it came from."""
        file = tmp_path / "saved"
        said(shop, "ledger", "export", str(file))
        text = file.read_text(encoding="utf-8")
        lines = [line for line in text.splitlines(keepends=True) if '"r1-3"' not in line]
        file.write_text("".join(lines), encoding="utf-8")
        elsewhere = written(shop, TO)

        damaged = said(elsewhere, "ledger", "import", str(file), code=2)
        assert damaged.startswith("ledger-file-damaged:")
        assert said(elsewhere, "plan", code=3).startswith("ledger-behind")


# -- which definitions a run keeps, applies and lets tables adopt


PAID = "---\nmaterialization: view\n---\nSELECT * FROM clicks WHERE amount > 0\n"
WITH_VIEW = {
    **SHOP,
    "models/paid.sql": PAID,
    "models/sessions.sql": SHOP["models/sessions.sql"].replace("FROM clicks", "FROM paid"),
}
COMMENT = {
    **spoilt("models/daily.sql", "FROM sessions", "FROM sessions /* all */"),
    "infold.yml": DECLARED,
}
CHANGED = spoilt("models/daily.sql", "count(*) AS sessions", "count(events) AS sessions")


@pytest.fixture
def ledger() -> FreshLedger:
    """A ledger, held by a run."""
    found = FreshLedger()
    found.acquire("r1")
    found.begin_run("r1", "run", 0, {})
    return found


def keep(ledger: FreshLedger, of: Project, *, rebuilds_allowed: bool = False) -> dict[str, str]:
    """A run of a project begins; the digests of its definitions."""
    found = keep_definitions(of, ledger, definitions_of(of), rebuilds_allowed=rebuilds_allowed)
    return dict(found)


def build(ledger: FreshLedger, of: Project, digests: dict[str, str]) -> None:
    """Every table is built by the project's definitions."""
    for node in of:
        if node.name in NAMES:
            trace = Trace(node.name, node.fingerprint, definition=digests.get(node.name, ""))
            number = len(ledger.versions(node.name)) + 1
            do(ledger, Outcome(node.name, number, trace, whole=True, snapshot=number))


def applied(ledger: FreshLedger) -> dict[str, str]:
    """The digests that are applied."""
    return {name: entry.digest for name, entry in ledger.applied().items()}


def in_production(of: Project) -> Project:
    """The project in a protected target."""
    return replace(of, target=replace(of.target, protected=True))


def test_a_run_keeps_and_applies_every_definition(ledger: FreshLedger) -> None:
    """All models have an applied definition, views and unbuilt ones too, and each can be read."""
    shop = project(WITH_VIEW)

    digests = keep(ledger, shop)

    assert applied(ledger) == digests
    assert {node.name for node in shop} == digests.keys()
    kept = ledger.definitions(digests.values())
    assert kept == {digest_of(one): one for one in definitions_of(shop).values()}


def test_a_table_of_an_earlier_infold_adopts_its_definition(ledger: FreshLedger) -> None:
    """A trace without a definition is given the declared one if the fingerprints are equal."""
    build(ledger, project(), {})

    digests = keep(ledger, project(CHANGED))

    found = {name: trace.definition for name, trace in ledger.traces().items()}
    assert found == {"clicks": digests["clicks"], "sessions": digests["sessions"], "daily": ""}


def test_a_trace_keeps_the_definition_that_built_it(ledger: FreshLedger) -> None:
    """The trace of a table names the definition that built its rows, not a later one."""
    before = keep(ledger, project())
    build(ledger, project(), before)

    for files in (COMMENT, CHANGED):
        after = keep(ledger, project(files))
        assert after["daily"] != before["daily"]
        assert ledger.traces()["daily"].definition == before["daily"]


@pytest.mark.parametrize("allowed", [False, True], ids=["refused", "allowed"])
def test_a_protected_target_applies_what_it_may_build(
    ledger: FreshLedger, *, allowed: bool
) -> None:
    """What builds nothing is applied unasked, a rebuild once that is allowed."""
    build(ledger, project(), keep(ledger, in_production(project())))
    before = keep(ledger, in_production(project(COMMENT)))
    assert applied(ledger) == before

    after = keep(ledger, in_production(project(CHANGED)), rebuilds_allowed=allowed)

    assert applied(ledger) == {**after, "daily": (after if allowed else before)["daily"]}


def test_what_waits_where_tables_are_protected(ledger: FreshLedger) -> None:
    """In a protected target a changed view is not applied before the tables that read it, and the
    definition of a removed model stays; elsewhere it is dropped.
    """
    before = keep(ledger, in_production(project(WITH_VIEW)))
    build(ledger, project(WITH_VIEW), before)
    changed = {**WITH_VIEW, "models/paid.sql": PAID.replace("> 0", "> 1")}
    after = keep(ledger, in_production(project(changed)))
    assert applied(ledger) == {**before, "daily": after["daily"]}
    assert after["paid"] != before["paid"]

    before = keep(ledger, in_production(project(WITH_VIEW)))
    without = {name: text for name, text in WITH_VIEW.items() if "daily" not in name}
    keep(ledger, in_production(project(without)))
    assert applied(ledger) == before
    keep(ledger, project(without))
    assert applied(ledger).keys() == {"clicks", "paid", "sessions"}


def applied_as_explained(of: Project) -> list[bool | None]:
    """What `infold explain --json` says of each model: whether the files have what is applied."""
    shapes = [json.loads(said(of, "explain", name, "--json"))["applied"] for name in NAMES]
    return [None if shape is None else shape["same"] for shape in shapes]


def test_explain_says_whether_the_files_have_what_is_applied(shop: Project) -> None:
    """Nothing before the first run that keeps definitions; a comment differs until the next run."""
    assert applied_as_explained(shop) == [None, None, None]

    said(shop, "run", "--select", "daily")
    assert applied_as_explained(shop) == [True, True, True]
    traces = api.ledger_of(shop).traces()
    assert all(trace.definition for trace in traces.values())

    write(shop.root, COMMENT)
    assert applied_as_explained(shop) == [True, True, False]
    assert "differs from the files" in said(shop, "explain", "daily")

    said(shop, "run", "--select", "daily")
    assert applied_as_explained(shop) == [True, True, True]
    assert api.ledger_of(shop).traces() == traces
