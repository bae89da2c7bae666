"""`forget` and `teardown`: what is dropped, what stays, what is refused, and deaths on the way."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from tests.crash.scenario import living
from tests.running.commands import said
from tests.running.standing_tables import (
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
from infold.core.interval import Ranges
from infold.core.plan import Action, PlanOptions
from infold.core.project import Project
from infold.core.report import RunFailed
from infold.ledger.lease import Holder
from infold.ledger.store import SqlLedger
from infold.messages.errors import InfoldError
from infold.running.exchange import LOSE, recover

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
        """Forgetting drops the model's table and trace and no other's, and the history says who did
        it. The next run rebuilds it as a new one, and has nothing else to do.
        """
        (shop.root / "landing" / "clicks" / "x").mkdir()
        done = api.forget(shop, ["daily"])

        assert (done.models, done.missing) == (("daily",), ())
        assert tables(shop) == folders(shop) == {"clicks", "sessions"}
        assert set(api.ledger(shop).traces()) == {"clicks", "sessions"}
        (run, _) = api.history(shop)
        assert (run.command, run.state) == ("forget", "done")
        assert [(step.model, step.action, step.state) for step in run.steps] == [
            ("daily", "forget", "done")
        ]
        assert planned(shop, "daily") == [("daily", Action.BUILD)]
        states = {entry.model: str(entry.state) for entry in api.status(shop)}
        assert states["daily"] == "new model"

    def test_unknown_names_are_reported(self, shop: Project) -> None:
        """Names that have nothing to forget are reported, and the others are forgotten."""
        assert said(shop, "forget", "daily", "dialy", "--yes") == (
            "Deleted model daily from the manifest, and what was stored.\n"
            "The next run builds what is still in the project again.\n"
            "dialy does not exist in the manifest.\n"
        )
        assert said(shop, "forget", "daily", "x") == "daily, x do not exist in the manifest.\n"
        found = json.loads(said(shop, "forget", "sessions", "x", "--yes", "--json"))
        assert found == {"models": ["sessions"], "missing": ["x"], "entries": 0}

    def test_a_model_that_left_the_project_can_be_forgotten(self, shop: Project) -> None:
        """A model that is no longer in the project can be forgotten by name, with its table. Others
        are selected as by --select: by a glob, a tag, a plus.
        """
        assert set(api.forgettable(shop, ["sessions+"])[0]) == {"sessions", "daily"}
        (shop.root / "models" / "daily.sql").unlink()
        project = api.open_project(shop.root)

        assert api.forget(project, ["daily"]).models == ("daily",)
        assert "daily" not in tables(project)


class TestTeardown:
    """`teardown` drops all tables of a target and its ledger."""

    def test_nothing_is_left(self, shop: Project) -> None:
        """Teardown leaves nothing but tables that infold did not make; a second one does no harm,
        and the next run is a first run.
        """
        put(shop, "foreign", "s", 9)

        assert said(shop, "teardown", "--yes") == (
            "Dropped 3 tables and the ledger of dev: clicks, sessions, daily.\n"
            "The next run is a first run.\n"
        )
        assert (tables(shop), folders(shop)) == (set(), {"foreign"})
        assert api.lake(shop).metadata("foreign") is not None
        assert list((shop.root / ".infold").glob("ledger.db*")) == []
        assert {str(entry.state) for entry in api.status(shop)} == {"first run"}
        said(shop, "teardown", "--yes")


@pytest.mark.parametrize("words", [("forget", "daily"), ("teardown",)])
class TestRefusals:
    """Nothing is dropped that is protected, in use, or unconfirmed."""

    def test_without_a_terminal_yes_is_required(
        self, shop: Project, words: tuple[str, ...]
    ) -> None:
        """Without a terminal to ask on, `--yes` is required."""
        assert "--yes confirms it" in said(shop, *words, code=3)
        assert tables(shop) == set(NAMES)

    def test_a_protected_target_refuses(self, prod: Project, words: tuple[str, ...]) -> None:
        """A protected target refuses unless the command is allowed to, and the refusal says how."""
        allows = "--allow-refresh allows it, for this once"
        assert allows in said(prod, *words, "--yes", code=3)
        assert tables(prod) == set(NAMES)
        said(prod, *words, "--yes", "--allow-refresh")
        assert "daily" not in tables(prod)

    def test_while_another_run_goes_on(self, shop: Project, words: tuple[str, ...]) -> None:
        """While another run is going on the command is refused, with that run's name."""
        other = SqlLedger(shop.root / ".infold/ledger.db", holder=Holder("else", "x", 1, "y"))
        other.acquire("the-other-run")

        text = said(shop, *words, "--yes", code=3)

        other.close()
        assert "locked: run the-other-run is working on this target" in text
        assert tables(shop) == set(NAMES)


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

    def test_a_changed_definition(self, prod: Project) -> None:
        """On a protected target a changed definition is refused
        as a rebuild, and the plan says what a run needs.
        """
        project = changed(prod)

        assert self.refused(project, "daily") == "daily: its definition changed"
        assert api.plan(project, select=["daily"]).notes == (
            "daily: its definition changed; prod is protected, so a run needs --allow-refresh",
        )

    def test_restating_all_cells(self, prod: Project) -> None:
        """A range of a protected table may be restated; all of it is a rebuild."""
        every = self.refused(prod, "daily", restated={"daily": Ranges.ever()})
        stretch = api.make_plan(
            prod, api.observe(prod), PlanOptions(restated={"daily": Ranges((day(0),))})
        )

        assert every == "daily: all of it is to be built again"
        assert not [note for note in stretch.notes if "protected" in note]

    def test_a_lost_ledger(self, prod: Project) -> None:
        """On a protected target, tables without a ledger are not replaced."""
        (prod.root / "prod.db").unlink()

        with pytest.raises(InfoldError, match="ledger-behind"):
            api.run(prod)
        with pytest.raises(InfoldError, match="protected"):
            api.forget(prod, ["clicks"])

    def test_a_model_that_left_the_project_keeps_its_state(self, prod: Project) -> None:
        """A model whose file was deleted by mistake keeps
        its state and costs nothing once it is back.
        """
        path = prod.root / "models" / "daily.sql"
        text = path.read_text()
        path.unlink()
        without = api.open_project(prod.root, "prod")
        done = api.run(without, select=["sessions"])
        path.write_text(text, encoding="utf-8")

        assert done.notes == (
            "daily is no longer in the project; what is known of it stays: protected",
        )
        assert "daily" in api.ledger(prod).traces()

    def test_an_unprotected_target_rebuilds(self, shop: Project) -> None:
        """On an unprotected target the same rebuild is planned without a flag."""
        todo = api.plan(changed(shop), select=["daily"])

        assert [step.model for step in todo.steps] == ["daily"]
        assert not [note for note in todo.notes if "protected" in note]


# -- dying on the way ------------------------------------------------------------------------------


def made_good(project: Project, what: str, where: str) -> None:
    """After a death no trace vouches for a table that is gone; asked again, all is gone."""
    assert set(api.ledger(project).traces()) <= tables(project), where
    if what == "forget":
        api.forget(project, ["sessions"])
        assert set(api.ledger(project).traces()) == tables(project) == {"clicks", "daily"}
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
    """After a death while forgetting, files of a table that somebody else dropped are left
    alone.
    """
    drop(shop, "daily")
    with leased(shop) as book:
        book.begin_run("r2", "run", 0, {})
        book.begin_step("r2", "r2-gone1", 0, "daily", LOSE, {})
        book.forget("daily", step="r2-gone1")

    with leased(shop, "r3") as book:
        messages = recover(book, api.lake(shop)).notes
        assert not book.unfinished()

    assert messages == ("daily: forgetting it, which a dead run had begun, was finished",)
    assert "daily" in folders(shop)
