"""An environment's tables become production's, and go again: what is exchanged, and refused."""

from __future__ import annotations

import shutil
import sqlite3
from collections.abc import Iterable, Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest
from tests.running.commands import die, infold
from tests.running.production import applied, as_json, change, shop_in_production
from tests.running.promoted import MORE, OWN, QUERY, at, with_environment
from tests.running.standing_tables import day, drop, put

from infold import api
from infold.api import promoting
from infold.core.audits import AuditResult, AuditState, Severity
from infold.core.interval import MIN, Interval, Ranges, show_instant
from infold.core.project import Project
from infold.core.record import Outcome
from infold.core.trace import Cause, CellChange, EarlierCells, Pending
from infold.render.exchange import exchange_screen

BOTH = {"sessions": {"clicks": 1}, "daily": {OWN["sessions"]: 1}}


@pytest.fixture
def shop(tmp_path: Path) -> Project:
    """The shop in production."""
    return shop_in_production(tmp_path / "shop")


def changed(shop: Project, outcome: Outcome) -> None:
    """Somebody commits to a table of production or of the environment."""
    book = api.ledger(shop)
    book.acquire("other")
    book.begin_run("other", "run", 0, {})
    book.begin_step("other", "other-1", 1, outcome.model, "build", {})
    book.finish_step("other-1", outcome)
    book.close()


def refused(shop: Project, *words: str) -> str:
    """A command is refused with exit code 3; what it prints. It changes nothing."""
    before = (applied(shop), at(shop, ("daily", "sessions")), api.ledger(shop).swaps())
    code, printed = infold(shop, *words)
    assert code == 3, printed
    assert (applied(shop), at(shop, ("daily", "sessions")), api.ledger(shop).swaps()) == before
    return printed


class TestPromote:
    """``infold promote``."""

    def test_names_point_to_the_environments_tables(self, shop: Project) -> None:
        """The name points to the own table, which production's next run has nothing to do on."""
        declared = with_environment(shop, QUERY)
        own = at(shop, [OWN["daily"]])[OWN["daily"]]

        done = as_json(shop, "promote", "dev", "--yes")

        assert done["done"]
        assert at(shop, ["daily"]) == {"daily": own}
        assert "Nothing to do" in infold(shop, "run")[1]
        assert api.ledger(shop).traces()["daily"].fingerprint == declared["daily"].fingerprint
        assert api.open_project(shop.root, "prod")["daily"] == declared["daily"]

    def test_what_is_shown(self, shop: Project) -> None:
        """It shows rows and differing cells before it asks, and writes nothing unasked."""
        with_environment(shop, QUERY)

        printed = refused(shop, "promote", "dev")

        assert "Promote dev in prod: 1 table, all at one instant" in printed
        assert "daily         6          9  2 of 3" in printed
        assert "promote-not-confirmed" in printed

    def test_a_catalog_that_renames_one_table_at_a_time(self, shop: Project) -> None:
        """It is said before what readers may see meanwhile."""
        with_environment(shop, QUERY)
        found = promoting.find_promotion(shop, "dev")

        screen = exchange_screen("prod", replace(found, at_once=False))

        assert "Promote dev in prod: 1 table, one after the other" in screen
        assert "For a moment readers find no table under a name" in screen
        assert "For a moment" not in exchange_screen("prod", found)

    def test_as_json(self, shop: Project) -> None:
        """The facts of the screen, under stable names."""
        with_environment(shop, QUERY)

        assert as_json(shop, "promote", "dev", "--yes") == {
            "kind": "promote",
            "environment": "dev",
            "done": True,
            "at_once": True,
            "tables": [
                {
                    "model": "daily",
                    "rows_before": 6,
                    "rows_after": 9,
                    "cells": 3,
                    "cells_differing": 2,
                }
            ],
            "definitions": [],
            "not_in_environment": [],
            "readers": [],
            "rewritten": [],
        }

    def test_own_tables_that_read_each_other(self, shop: Project) -> None:
        """Tables that read one another are exchanged together, and are up to date afterwards."""
        with_environment(shop, QUERY, MORE, own=BOTH)

        as_json(shop, "promote", "dev", "--yes")

        assert "Nothing to do" in infold(shop, "run")[1]

    def test_a_reader_that_is_shared_by_proof_is_not_built(self, shop: Project) -> None:
        """A reader of columns that the change keeps has nothing to do, where cells have as many
        rows; of others it is stale.
        """
        with_environment(shop, MORE, own={"sessions": {"clicks": 1}})

        done = as_json(shop, "promote", "dev", "--yes")
        plan = api.make_plan(project := api.open_project(shop.root, "prod"), api.observe(project))

        assert done["readers"] == ["daily"]  # the third day is new
        assert [(step.model, step.cells) for step in plan.steps] == [("daily", Ranges((day(2),)))]

    def test_definitions_without_other_rows_are_applied_too(self, shop: Project) -> None:
        """A change that gives no other rows is applied with the promote, without any table."""
        with_environment(shop, QUERY, ("models/sessions.sql", "-- one row", "-- a row"))
        code, printed = infold(shop, "promote", "dev", "--yes")

        assert code == 0
        assert "Promoted 1 table of dev" in printed
        assert applied(shop) == {
            name: entry.digest for name, entry in api.ledger(shop).applied("dev").items()
        }

    def test_cells_of_earlier_definitions(self, shop: Project) -> None:
        """What is proven of the newest definitions is not proven of these cells: readers of them
        are stale, and the screen says that they get other rows.
        """
        trace = api.ledger(shop).traces()["sessions"]
        old = EarlierCells(Ranges((Interval(MIN, day(1).start),)), "another")
        with_environment(shop, MORE, own={"sessions": {"clicks": 1}})
        changed(shop, Outcome("sessions", 1, replace(trace, earlier=(old,)), (), committed=False))

        code, printed = infold(shop, "promote", "dev", "--yes")

        assert code == 0, printed
        until = show_instant(day(1).start)
        assert f"sessions: cells before {until} have rows of earlier definitions now" in printed
        project = api.open_project(shop.root, "prod")
        [step] = api.make_plan(project, api.observe(project)).steps
        assert (step.model, day(1).start in step.cells) == ("daily", True)

    def test_nothing_differs(self, shop: Project) -> None:
        """An environment without a difference is promoted by doing nothing."""
        with_environment(shop, own={})

        code, printed = infold(shop, "promote", "dev")

        assert (code, "nothing differs" in printed) == (0, True)
        assert api.ledger(shop).swaps() == ()

    def test_a_model_that_the_environment_lacks_stays(self, shop: Project) -> None:
        """A model that was removed in the environment is not dropped, and that is said."""
        change(shop)
        (shop.root / "models" / "daily.sql").unlink()
        (shop.root / "models" / "sessions.sql").write_text(
            (shop.root / "models" / "sessions.sql").read_text().replace(MORE[1], MORE[2])
        )
        declared = with_environment_as_is(shop)

        code, printed = infold(shop, "promote", "dev", "--yes")

        assert code == 0, printed
        assert "dev does not have daily: nothing is dropped" in printed
        assert "daily" not in declared
        assert "daily" in applied(shop)


def with_environment_as_is(shop: Project) -> Project:
    """An environment of the files as they are, with its own sessions."""
    files = {path: path.read_text() for path in (shop.root / "models").iterdir()}
    declared = with_environment(shop, MORE, own={"sessions": {"clicks": 1}})
    for path in (shop.root / "models").iterdir():
        path.unlink()
    for path, text in files.items():
        path.write_text(text)
    book = api.ledger(shop)
    book.acquire("again")
    known = {name: entry.digest for name, entry in book.applied("dev").items() if name != "daily"}
    book.keep_definitions({}, known, {}, environment="dev")
    book.close()
    return api.open_project(shop.root, "prod", declared=True) if files else declared


class TestRefused:
    """An environment that is not what production would be is not promoted."""

    def test_an_unknown_environment(self, shop: Project) -> None:
        """There is no such environment, or no environment can have that name."""
        for name, slug in (("nobody", "unknown-environment"), ("../x", "bad-environment-name")):
            code, printed = infold(shop, "promote", name, "--yes")
            assert (code, slug in printed) == (2, True)

    def test_a_column_that_readers_would_lose(self, shop: Project) -> None:
        """A dropped column is refused like that of any other change of production; for once it can
        be allowed.
        """
        with_environment(shop, ("models/daily.sql", "sum(revenue) AS revenue", "1 AS one"))

        printed = refused(shop, "promote", "dev", "--yes")
        assert "daily:   column revenue is dropped (models/daily.sql:" in printed
        code, printed = infold(shop, "promote", "dev", "--yes", "--allow-destructive", "dayly")
        assert (code, "unknown-model" in printed) == (2, True)
        code, _ = infold(shop, "promote", "dev", "--yes", "--allow-destructive", "daily")
        assert code == 0

    @pytest.mark.parametrize("model", ["daily", "sessions"])
    def test_a_model_with_forward_only_changes(self, shop: Project, model: str) -> None:
        """An environment has built all of a table: no promote does that to a model whose changes
        leave the earlier cells alone, in whichever place its kind says so.
        """
        query, only, inputs = {
            "daily": (QUERY, ("incremental: {}", "incremental: {forward_only: true}"), "sessions"),
            "sessions": (
                MORE,
                ("materialization:", "forward_only: true\nmaterialization:"),
                "clicks",
            ),
        }[model]
        own = {model: {inputs: 1}}
        with_environment(shop, query, (f"models/{model}.sql", *only), own=own)

        printed = refused(shop, "promote", "dev", "--yes")
        assert f"not-forward-only: {model}" in printed
        assert "an environment builds all of its table by the new definition" in printed

    def test_a_table_that_is_not_built(self, shop: Project) -> None:
        """An own table without a trace is not built."""
        with_environment(shop, QUERY)
        book = api.ledger(shop)
        book.acquire("forget")
        book.forget(OWN["daily"])
        book.close()

        assert "daily:  it is not built" in refused(shop, "promote", "dev", "--yes")

    def test_pending_cells(self, shop: Project) -> None:
        """An own table with cells still to be built is not whole."""
        with_environment(shop, QUERY)
        trace = api.ledger(shop).traces()[OWN["daily"]]
        pending = (Pending(Cause.MISSING, Ranges((day(1),))),)
        changed(shop, Outcome(trace.model, 1, replace(trace, pending=pending), committed=False))

        assert "cells of it are still to be built" in refused(shop, "promote", "dev", "--yes")

    def test_rows_that_fail_an_audit(self, shop: Project) -> None:
        """An own table is not promoted while its rows fail an audit that is declared."""
        audited = ("models/daily.sql", "incremental:", "audits: [not_null: day]\nincremental:")
        with_environment(shop, QUERY, audited)
        found = AuditResult(OWN["daily"], "not_null(day)", Severity.ERROR, AuditState.FAILED, 1)
        book = api.ledger(shop)
        book.record_audits(OWN["daily"], [replace(found, audit="gone", stored=True)])
        book.record_audits(OWN["daily"], [replace(found, stored=True)])
        book.close()

        printed = refused(shop, "promote", "dev", "--yes")

        assert "daily:  its rows fail the audit not_null(day)" in printed

    def test_own_tables_behind_each_other(self, shop: Project) -> None:
        """An own table that has not read the newest rows of another is behind it."""
        with_environment(shop, QUERY, MORE, own=BOTH)
        trace = api.ledger(shop).traces()[OWN["sessions"]]
        changed(shop, Outcome(trace.model, 2, trace, (_other(1),), snapshot=300))
        put(shop, trace.model, "other-1", 300)

        assert "it is behind sessions" in refused(shop, "promote", "dev", "--yes")

    def test_a_run_that_did_not_end(self, shop: Project) -> None:
        """The environment's last run has to have built all of it."""
        with_environment(shop, QUERY)
        book = api.ledger(shop)
        book.acquire("half")
        book.put_environment(replace(book.environments()["dev"], built_at=None))
        book.close()

        assert "it did not build all of it" in refused(shop, "promote", "dev", "--yes")

    def test_a_table_that_is_gone(self, shop: Project) -> None:
        """An own table that somebody dropped cannot take a name."""
        with_environment(shop, QUERY)
        drop(shop, OWN["daily"])

        assert "its table is not there" in refused(shop, "promote", "dev", "--yes")

    def test_a_table_that_somebody_else_wrote(self, shop: Project) -> None:
        """An own table with a commit of somebody else is not what the ledger says."""
        with_environment(shop, QUERY)
        put(shop, OWN["daily"], "r1-1", 999)

        assert "daily" in refused(shop, "promote", "dev", "--yes")

    def test_other_rows_in_a_shared_table(self, shop: Project) -> None:
        """Production's sessions have other rows than the environment has read: it catches up."""
        with_environment(shop, QUERY)
        trace = api.ledger(shop).traces()["sessions"]
        changed(shop, Outcome("sessions", 2, trace, (_other(1),), snapshot=300))

        printed = refused(shop, "promote", "dev", "--yes")

        assert "production-moved" in printed
        assert "sessions has other rows since" in printed
        assert "infold run --env dev" in printed

    def test_a_version_with_the_same_rows_is_no_reason(self, shop: Project) -> None:
        """A newer version without other rows in the end leaves the environment right."""
        with_environment(shop, QUERY)
        trace = api.ledger(shop).traces()["sessions"]
        changed(shop, Outcome("sessions", 2, trace, (), snapshot=300))
        put(shop, "sessions", "other-1", 300, ("r1-2", 102))

        assert as_json(shop, "promote", "dev", "--yes")["done"]

    def test_another_definition_of_an_own_model(self, shop: Project) -> None:
        """Production's table was built by another definition since: a promote would undo that."""
        with_environment(shop, QUERY)
        trace = api.ledger(shop).traces()["daily"]
        changed(shop, Outcome("daily", 1, replace(trace, definition="other"), committed=False))

        assert "built by another definition since" in refused(shop, "promote", "dev", "--yes")

    def test_another_definition_was_applied(self, shop: Project) -> None:
        """A definition that was applied after the environment's run would be taken back."""
        with_environment(shop, QUERY)
        book = api.ledger(shop)
        book.acquire("apply")
        now = {name: entry.digest for name, entry in book.applied().items()}
        book.keep_definitions({}, {**now, "sessions": now["daily"]}, {})
        book.close()

        code, printed = infold(shop, "promote", "dev", "--yes")

        assert code == 3, printed

    def test_while_a_run_goes_on(self, shop: Project) -> None:
        """Whoever has the lease is named."""
        with_environment(shop, QUERY)
        book = api.ledger(shop)
        book.acquire("running")

        assert "locked" in refused(shop, "promote", "dev", "--yes")
        book.close()

    def test_what_is_exchanged_is_what_was_shown(self, shop: Project) -> None:
        """Between question and answer somebody changed the environment: nothing is exchanged."""
        from infold.api import promoting

        with_environment(shop, QUERY)
        shown = promoting.find_promotion(shop, "dev")
        trace = api.ledger(shop).traces()[OWN["daily"]]
        changed(shop, Outcome(trace.model, 2, trace, (_other(1),), snapshot=300))
        put(shop, trace.model, "other-1", 300, ("env2-0", 200))

        with pytest.raises(api.InfoldError, match="not what was shown"):
            promoting.promote(shop, shown)
        assert api.ledger(shop).swaps() == ()


def _other(number: int) -> CellChange:
    """A day with another content than before."""
    return CellChange(day(number), 1, 1, 3, 3, 7 + number, 77)


class TestRollback:
    """``infold rollback``."""

    def test_all_is_as_it_was(self, shop: Project) -> None:
        """Names and definitions are as they were, and there is nothing to do."""
        before = (at(shop, ["daily", "sessions"]), applied(shop))
        with_environment(shop, QUERY, MORE, own=BOTH)
        as_json(shop, "promote", "dev", "--yes")

        code, printed = infold(shop, "rollback", "--yes")

        assert code == 0, printed
        assert "Took back 2 tables" in printed
        assert (at(shop, ["daily", "sessions"]), applied(shop)) == before
        assert "Nothing to do" in infold(shop, "run")[1]

    def test_twice(self, shop: Project) -> None:
        """What was taken back cannot be taken back again; it can be promoted after a new run."""
        with_environment(shop, QUERY)
        as_json(shop, "promote", "dev", "--yes")
        as_json(shop, "rollback", "--yes")

        assert "nothing-to-roll-back" in refused(shop, "rollback", "--yes")

    def test_nothing_was_promoted(self, shop: Project) -> None:
        """Without a promote there is nothing to go back to."""
        assert "nothing-to-roll-back" in refused(shop, "rollback", "--yes")

    def test_another_definition_since(self, shop: Project) -> None:
        """A definition that was applied after the promote would be lost."""
        with_environment(shop, QUERY)
        as_json(shop, "promote", "dev", "--yes")
        book = api.ledger(shop)
        book.acquire("apply")
        now = {name: entry.digest for name, entry in book.applied().items()}
        old = book.swaps()[0].definitions["daily"][0]
        book.keep_definitions({}, {**now, "daily": old}, {})
        book.close()

        assert "rollback-outdated" in refused(shop, "rollback", "--yes")

    def test_a_kept_table_that_is_gone(self, shop: Project) -> None:
        """Somebody dropped the kept table: there is no way back to it."""
        with_environment(shop, QUERY)
        as_json(shop, "promote", "dev", "--yes")
        [kept] = api.ledger(shop).swaps()[0].kept.values()
        assert kept is not None
        drop(shop, kept)

        assert "is not there any more" in refused(shop, "rollback", "--yes")

    def test_what_is_shown(self, shop: Project) -> None:
        """It says which tables go back, and asks."""
        with_environment(shop, QUERY)
        as_json(shop, "promote", "dev", "--yes")

        printed = refused(shop, "rollback")

        assert "Take back the promote of dev in prod: 1 table, all at one instant" in printed
        assert "daily         9          6  2 of 3" in printed


def keep_no_longer(shop: Project) -> None:
    """Replaced tables are kept for a second, which is over."""
    yml = shop.root / "infold.yml"
    over = "protected: true, keep_old: 1 second"
    yml.write_text(yml.read_text().replace("protected: true", over))
    with closing(sqlite3.connect(shop.root / "prod.db")) as book, book:
        book.execute("UPDATE swaps SET made_at = made_at - ?", (1_100_000,))


class TestKept:
    """Replaced tables are kept for some time, and nothing but a rollback sees them."""

    def test_they_are_dropped_when_they_are_over(self, shop: Project) -> None:
        """A run of production drops them once `keep_old` is over, and says so."""
        with_environment(shop, QUERY)
        as_json(shop, "promote", "dev", "--yes")
        [kept] = api.ledger(shop).swaps()[0].kept.values()
        assert kept is not None
        assert "were dropped" not in infold(shop, "run")[1]
        folder = Path(str(at(shop, [kept])[kept]).removeprefix("file:")).parent.parent
        assert folder.name == "daily"
        keep_no_longer(shop)

        code, printed = infold(shop, "run")

        assert code == 0, printed
        assert "the tables that the promote of dev replaced were dropped: daily" in printed
        assert at(shop, [kept]) == {kept: None}
        assert not folder.exists()
        assert "Nothing to do" in infold(shop, "run")[1]
        assert "nothing-to-roll-back" in refused(shop, "rollback", "--yes")

    def test_teardown_drops_them(self, shop: Project) -> None:
        """Nothing is left in the catalog or in the warehouse."""
        with_environment(shop, QUERY)
        as_json(shop, "promote", "dev", "--yes")

        code, printed = infold(shop, "teardown", "--yes", "--allow-refresh")

        assert code == 0, printed
        assert list((shop.warehouse / "shop").iterdir()) == []

    def test_nothing_shows_them(self, shop: Project) -> None:
        """The state of models and of their tables has each model once."""
        with_environment(shop, QUERY)
        as_json(shop, "promote", "dev", "--yes")

        assert "daily__" not in infold(shop, "status")[1]
        assert api.ledger(shop).traces().keys() == {"clicks", "sessions", "daily"}


POINTS = [
    f"{name}: {side} commit"
    for name in (
        "ledger begin_step",
        "rename",
        "ledger finish_swap",
        "ledger remember_locations",
        "ledger finish_run",
    )
    for side in ("before", "after")
]


@pytest.mark.deep
class TestKilled:
    """A death at any write point leaves all of the old tables, or all of the new ones."""

    @pytest.mark.parametrize("command", ["promote dev", "rollback"])
    def test_at_every_point(self, shop: Project, tmp_path: Path, command: str) -> None:
        """
        After each death names, ledger and applied definitions are all as before, or all as after.

        The next run finds nothing else to do, and the command can be given again if it did not
        happen.
        """
        with_environment(shop, QUERY, MORE, own=BOTH)
        if command == "rollback":
            as_json(shop, "promote", "dev", "--yes")
        before = states(shop)
        for point in deaths(shop, POINTS, tmp_path):
            assert die(shop, *command.split(), "--yes", at=point).dead, point
            code, printed = infold(shop, "run")

            assert code == 0, (point, printed)
            assert "Nothing to do" in printed, point
            happened = states(shop) != before
            assert happened == (point not in EARLY), point
            assert consistent(shop), point
            if not happened:
                assert infold(shop, *command.split(), "--yes")[0] == 0, point
                assert consistent(shop), point
                assert states(shop) != before

    def test_while_kept_tables_are_dropped(self, shop: Project, tmp_path: Path) -> None:
        """After a death at any point of dropping kept tables the next run drops what is left."""
        with_environment(shop, QUERY)
        as_json(shop, "promote", "dev", "--yes")
        [kept] = api.ledger(shop).swaps()[0].kept.values()
        assert kept is not None
        keep_no_longer(shop)
        points = (
            "ledger begin_step: after commit",
            "ledger forget_swap: before commit",
            "ledger forget_swap: after commit",
            f"drop {kept}: before",
            f"drop {kept}: after",
            "delete daily: after",
        )
        for point in deaths(shop, points, tmp_path):
            assert die(shop, "run", at=point).dead, point
            code, printed = infold(shop, "run")

            assert code == 0, (point, printed)
            assert at(shop, [kept]) == {kept: None}, point
            assert not (shop.warehouse / "shop" / "daily").exists(), point
            assert api.ledger(shop).swaps() == ()
            assert at(shop, ["daily"])["daily"] is not None


def deaths(shop: Project, points: Iterable[str], folder: Path) -> Iterator[str]:
    """Points one after the other, for each of which the project is as it was before the first."""
    shutil.copytree(shop.root, folder / "before")
    for point in points:
        shutil.rmtree(shop.root)
        shutil.copytree(folder / "before", shop.root)
        yield point


EARLY = {
    "ledger begin_step: before commit",
    "ledger begin_step: after commit",
    "rename: before commit",
}


def states(shop: Project) -> object:
    """Names, traces and applied definitions."""
    traces = api.ledger(shop).traces()
    return (
        at(shop, ("daily", "sessions")),
        {name: traces[name].fingerprint for name in ("daily", "sessions")},
        applied(shop),
    )


def consistent(shop: Project) -> bool:
    """Whether ledger and tables fit, and are as the applied definitions say."""
    project = api.open_project(shop.root, "prod")
    api.observer(project).check_ledger()
    traces = api.ledger(shop).traces()
    new = "__" in str(at(shop, ["daily"])["daily"])
    return all(
        traces[name].fingerprint == project[name].fingerprint
        and traces[name].definition == applied(shop)[name]
        and ("__" in str(at(shop, [name])[name])) == new
        for name in ("daily", "sessions")
    )
