"""An environment's tables become production's, and go again: what is swapped, and refused; what
is repaired of tables that were replaced; and environments that are explained.
"""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest
from tests.crash.scenario import living
from tests.running.commands import said
from tests.running.production import applied, as_json, with_applied
from tests.running.promoted import (
    MORE,
    OWN,
    QUERY,
    at,
    put_environment,
    put_promoted,
    with_environment,
)
from tests.running.standing_tables import commit, day, drop, in_ledger, leased, put

from infold import api
from infold.api import environments
from infold.api.repairing import look_at_ledger, repair_ledger
from infold.core.audits import AuditResult, AuditState, Severity
from infold.core.environment import model_of_key
from infold.core.interval import MAX, MIN, Interval, Ranges, show_instant
from infold.core.project import Project
from infold.core.record import Outcome
from infold.core.trace import Cause, CellChange, EarlierCells, Pending, Retention
from infold.ledger.database import close_all
from infold.render.environments import swap_screen

BOTH = {"sessions": {"clicks": 1}, "daily": {OWN["sessions"]: 1}}


shop = with_applied


def refused(shop: Project, *words: str) -> str:
    """A command is refused with exit code 3; what it prints. It changes nothing."""
    before = (applied(shop), at(shop, ("daily", "sessions")), api.ledger_of(shop).swaps())
    printed = said(shop, *words, code=3)
    assert (applied(shop), at(shop, ("daily", "sessions")), api.ledger_of(shop).swaps()) == before
    return printed


class TestPromote:
    """``infold promote``."""

    def test_names_point_to_the_environments_tables(self, shop: Project) -> None:
        """Production's next run has nothing to do on it; as JSON it has the facts of the screen."""
        declared = with_environment(shop, QUERY)
        own = at(shop, [OWN["daily"]])[OWN["daily"]]

        done = as_json(shop, "promote", "dev", "--yes")

        table = {"rows_before": 6, "rows_after": 9, "cells": 3, "cells_differing": 2}
        assert done == {
            "kind": "promote",
            "environment": "dev",
            "done": True,
            "at_once": True,
            "tables": [{"model": "daily", **table}],
            "definitions": [],
            "not_in_environment": [],
            "readers": [],
            "rewritten": [],
        }
        assert at(shop, ["daily"]) == {"daily": own}
        assert "Nothing to do" in said(shop, "run")
        assert api.ledger_of(shop).traces()["daily"].fingerprint == declared["daily"].fingerprint
        assert api.open_project(shop.root, "prod")["daily"] == declared["daily"]

    def test_what_is_shown(self, shop: Project) -> None:
        """Rows and cells before it asks; and what readers see where tables are renamed singly."""
        put_environment(shop)

        printed = refused(shop, "promote", "dev")
        found = environments.find_promotion(shop, "dev")
        screen = swap_screen("prod", replace(found, at_once=False))

        assert "Promote dev in prod: 1 table, all at one instant" in printed
        assert "daily         6          9  2 of 3" in printed
        assert "promote-not-confirmed" in printed
        assert "For a moment" not in printed
        assert "Promote dev in prod: 1 table, one after the other" in screen
        assert "For a moment readers find no table under a name" in screen

    def test_a_reader_that_is_shared_by_proof_is_not_built(self, shop: Project) -> None:
        """Of columns that stay, where cells have as many rows; of others it is stale."""
        with_environment(shop, MORE, own={"sessions": {"clicks": 1}})

        done = as_json(shop, "promote", "dev", "--yes")
        plan = api.make_plan(project := api.open_project(shop.root, "prod"), api.observe(project))

        assert done["readers"] == ["daily"]  # the third day is new
        assert [(step.model, step.cells) for step in plan.steps] == [("daily", Ranges((day(2),)))]

    def test_definitions_without_other_rows_are_applied_too(self, shop: Project) -> None:
        """With the promote, without any table; where nothing differs nothing is done."""
        with_environment(shop, own={})
        assert "nothing differs" in said(shop, "promote", "dev")
        assert api.ledger_of(shop).swaps() == ()
        with_environment(shop, QUERY, ("models/sessions.sql", "-- one row", "-- a row"))

        assert "Promoted 1 table of dev" in said(shop, "promote", "dev", "--yes")
        assert applied(shop) == {
            name: entry.digest for name, entry in api.ledger_of(shop).applied("dev").items()
        }

    def test_cells_of_earlier_definitions(self, shop: Project) -> None:
        """Readers of them are stale, and the screen says that they get other rows."""
        trace = api.ledger_of(shop).traces()["sessions"]
        old = EarlierCells(Ranges((Interval(MIN, day(1).start),)), "another")
        with_environment(shop, MORE, own={"sessions": {"clicks": 1}})
        commit(shop, Outcome("sessions", 1, replace(trace, earlier=(old,)), (), committed=False))

        printed = said(shop, "promote", "dev", "--yes")

        until = show_instant(day(1).start)
        assert f"sessions: cells before {until} have rows of earlier definitions now" in printed
        project = api.open_project(shop.root, "prod")
        [step] = api.make_plan(project, api.observe(project)).steps
        assert (step.model, day(1).start in step.cells) == ("daily", True)

    def test_frozen_cells_of_production(self, shop: Project) -> None:
        """Nobody can build them again, so no other table takes their place."""
        trace = api.ledger_of(shop).traces()["daily"]
        with_environment(shop, MORE, own=BOTH)
        frozen = replace(trace, retention=Retention(frozen_until=MAX))
        commit(shop, Outcome("daily", 1, frozen, (), committed=False))

        printed = refused(shop, "promote", "dev", "--yes")
        assert "frozen-cells: daily may have cells that nobody can build again" in printed

    def test_a_model_that_the_environment_lacks_stays(self, shop: Project) -> None:
        """A model that was removed in the environment is not dropped, and that is said."""
        with_environment(shop, MORE, own={"sessions": {"clicks": 1}})
        (shop.root / "models" / "daily.sql").unlink()
        with leased(shop, "again") as book:
            known = {name: entry.digest for name, entry in book.applied("dev").items()}
            del known["daily"]
            book.keep_definitions({}, known, {}, environment="dev")

        printed = said(shop, "promote", "dev", "--yes")

        assert "dev does not have daily: nothing is dropped" in printed
        assert "daily" in applied(shop)


def happens(shop: Project, what: str) -> None:
    """Something happens to an environment, or to production beside it."""
    traces = api.ledger_of(shop).traces()
    own, daily, sessions = (traces[name] for name in (OWN["daily"], "daily", "sessions"))
    pending = (Pending(Cause.MISSING, Ranges((day(1),))),)
    match what:
        case "forgotten":
            with leased(shop) as book:
                book.forget(own.model)
        case "pending":
            left = replace(own, pending=pending)
            commit(shop, Outcome(own.model, 1, left, committed=False))
        case "half a run":
            with leased(shop) as book:
                book.put_environment(replace(book.environments()["dev"], built_at=None))
        case "dropped":
            drop(shop, own.model)
        case "written by others":
            put(shop, own.model, "r1-1", 999)
        case "other rows":
            commit(shop, Outcome("sessions", 2, sessions, (_other(1),), snapshot=300))
        case "another definition":
            other = replace(daily, definition="other")
            commit(shop, Outcome("daily", 1, other, committed=False))
        case "applied":
            with leased(shop) as book:
                now = applied(shop)
                book.keep_definitions({}, {**now, "sessions": now["daily"]}, {})


class TestRefused:
    """An environment that is not what production would be is not promoted."""

    @pytest.mark.parametrize(
        ("what", "words"),
        [
            ("forgotten", ["daily:  it is not built"]),
            ("pending", ["cells of it are still to be built"]),
            ("half a run", ["it did not build all of it"]),
            ("dropped", ["its table is not there"]),
            ("written by others", ["daily"]),
            ("other rows",
             ["production-moved", "sessions has other rows since", "infold run --env dev"]),
            ("another definition", ["built by another definition since"]),
            ("applied", []),
        ],
    )  # fmt: skip
    def test_what_happened_since(self, shop: Project, what: str, words: list[str]) -> None:
        """Own tables are whole, all of them built, and production is what the last run has seen."""
        put_environment(shop)
        happens(shop, what)

        printed = refused(shop, "promote", "dev", "--yes")

        assert [word for word in words if word not in printed] == []

    def test_a_column_that_readers_would_lose(self, shop: Project) -> None:
        """It is refused like any other change of production; for once it can be allowed."""
        with_environment(shop, ("models/daily.sql", "sum(revenue) AS revenue", "1 AS one"))
        promote = ("promote", "dev", "--yes")

        printed = refused(shop, *promote)
        assert "daily:   column revenue is dropped (models/daily.sql:" in printed
        assert "unknown-model" in said(shop, *promote, "--allow-destructive", "dayly", code=2)
        said(shop, *promote, "--allow-destructive", "daily")

    def test_a_model_with_forward_only_changes(self, shop: Project) -> None:
        """An environment builds all of a table, and such changes leave earlier cells alone."""
        own = {"daily": {"sessions": 1}, "sessions": {"clicks": 1}}
        for model, query, old, key in (
            ("daily", QUERY, "incremental: {}", "incremental: {forward_only: true}"),
            ("sessions", MORE, "materialization:", "forward_only: true\nmaterialization:"),
        ):
            only = (f"models/{model}.sql", old, key)
            with_environment(shop, query, only, own={model: own[model]})

            printed = refused(shop, "promote", "dev", "--yes")
            assert f"not-forward-only: {model}" in printed
            assert "an environment builds all of its table by the new definition" in printed

    def test_rows_that_fail_an_audit(self, shop: Project) -> None:
        """An own table is not promoted while its rows fail an audit that is declared."""
        audited = ("models/daily.sql", "incremental:", "audits: [not_null: day]\nincremental:")
        with_environment(shop, QUERY, audited)
        found = AuditResult(OWN["daily"], "not_null(day)", Severity.ERROR, AuditState.FAILED, 1)
        book = api.ledger_of(shop)
        book.record_audits(OWN["daily"], [replace(found, audit="gone", stored=True)])
        book.record_audits(OWN["daily"], [replace(found, stored=True)])
        book.close()

        printed = refused(shop, "promote", "dev", "--yes")

        assert "daily:  its rows fail the audit not_null(day)" in printed

    def test_own_tables_behind_each_other(self, shop: Project) -> None:
        """An own table that has not read the newest rows of another is behind it."""
        with_environment(shop, QUERY, MORE, own=BOTH)
        trace = api.ledger_of(shop).traces()[OWN["sessions"]]
        commit(shop, Outcome(trace.model, 2, trace, (_other(1),), snapshot=300))
        put(shop, trace.model, "r2-1", 300)

        assert "it is behind sessions" in refused(shop, "promote", "dev", "--yes")

    def test_a_version_with_the_same_rows_is_no_reason(self, shop: Project) -> None:
        """A newer version without other rows in the end leaves the environment right."""
        put_environment(shop)
        trace = api.ledger_of(shop).traces()["sessions"]
        commit(shop, Outcome("sessions", 2, trace, (), snapshot=300))
        put(shop, "sessions", "r2-1", 300, ("r1-2", 102))

        assert as_json(shop, "promote", "dev", "--yes")["done"]

    def test_what_is_swapped_is_what_was_shown(self, shop: Project) -> None:
        """Between question and answer somebody changed the environment: nothing is swapped."""
        put_environment(shop)
        shown = environments.find_promotion(shop, "dev")
        trace = api.ledger_of(shop).traces()[OWN["daily"]]
        commit(shop, Outcome(trace.model, 2, trace, (_other(1),), snapshot=300))
        put(shop, trace.model, "r2-1", 300, ("env2-0", 200))

        with pytest.raises(api.InfoldError, match="not what was shown"):
            environments.promote(shop, shown)
        assert api.ledger_of(shop).swaps() == ()


def _other(number: int) -> CellChange:
    """A day with another content than before."""
    return CellChange(day(number), 1, 1, 3, 3, 7 + number, 77)


class TestRollback:
    """``infold rollback``."""

    def test_all_is_as_it_was(self, shop: Project) -> None:
        """Names, definitions and times, after a question; so are tables that read one another."""

        def built_at() -> list[int | None]:
            return [one.last_built_at for one in api.status(shop)]

        before = (at(shop, ["daily", "sessions"]), applied(shop), built_at())
        with_environment(shop, QUERY, MORE, own=BOTH)
        as_json(shop, "promote", "dev", "--yes")
        assert "Nothing to do" in said(shop, "run")

        printed = refused(shop, "rollback")
        assert "Take back the promote of dev in prod: 2 tables, all at one instant" in printed
        assert "daily            9          6  2 of 3" in printed
        assert "Took back 2 tables" in said(shop, "rollback", "--yes")

        assert (at(shop, ["daily", "sessions"]), applied(shop), built_at()) == before
        assert "Nothing to do" in said(shop, "run")

    def test_what_cannot_be_taken_back(self, shop: Project) -> None:
        """Nothing was promoted, or it was taken back already; a definition that was applied since
        would be lost; or somebody dropped the kept table.
        """
        assert "nothing-to-roll-back" in refused(shop, "rollback", "--yes")
        put_promoted(shop)
        said(shop, "rollback", "--yes")
        assert "nothing-to-roll-back" in refused(shop, "rollback", "--yes")
        put_promoted(shop)
        old = api.ledger_of(shop).swaps()[0].definitions["daily"][0]
        with leased(shop, "apply") as book:
            book.keep_definitions({}, {**applied(shop), "daily": old}, {})
        assert "rollback-outdated" in refused(shop, "rollback", "--yes")
        drop(shop, put_promoted(shop))
        assert "is not there any more" in refused(shop, "rollback", "--yes")


def keep_no_longer(shop: Project) -> None:
    """Replaced tables are kept for a second, which is over."""
    yml = shop.root / "infold.yml"
    over = "protected: true, keep_old: 1 second"
    yml.write_text(yml.read_text().replace("protected: true", over))
    in_ledger(shop, "UPDATE swaps SET made_at = made_at - ?", 1_100_000)


def test_kept_tables(shop: Project) -> None:
    """
    Replaced tables are kept for some time, and nothing but a rollback sees them. A run of
    production drops them once `keep_old` is over, and says so; before it nothing is wrong with one.
    """
    kept = put_promoted(shop)
    assert "daily__" not in said(shop, "status")
    assert api.ledger_of(shop).traces().keys() == {"clicks", "sessions", "daily"}
    assert "were dropped" not in said(shop, "run")
    assert not look_at_ledger(shop).changes
    assert not look_at_ledger(shop).orphans
    folder = Path(str(at(shop, [kept])[kept]).removeprefix("file:")).parent.parent
    assert folder.name == "daily"
    keep_no_longer(shop)

    printed = said(shop, "run")

    assert "the tables that the promote of dev replaced were dropped: daily" in printed
    assert at(shop, [kept]) == {kept: None}
    assert not folder.exists()
    assert "Nothing to do" in said(shop, "run")
    assert "nothing-to-roll-back" in refused(shop, "rollback", "--yes")
    put_promoted(shop)
    said(shop, "teardown", "--yes", "--allow-refresh")
    assert list((shop.warehouse / "shop").iterdir()) == []


def lose_rows(shop: Project) -> None:
    """Rows about the clicks are gone, which every table follows from."""
    assert in_ledger(shop, "DELETE FROM cells WHERE table_name = 'clicks' RETURNING 1")


class TestRepaired:
    """``infold repair`` where replaced tables are kept: whether they can still go back."""

    def test_nothing_goes_back_to_versions_that_were_erased(self, shop: Project) -> None:
        """An erased table begins again at version 1; the kept ones name versions before that."""
        name = put_promoted(shop)
        lose_rows(shop)

        text = said(shop, "repair", "--yes")

        assert "nothing can be rolled back to them" in text
        assert f"which infold made: {name}" in text
        assert api.ledger_of(shop).swaps() == ()
        assert "nothing-to-roll-back" in said(shop, "rollback", "--yes", code=3)

    def test_a_repair_that_dies_keeps_no_replaced_table(self, shop: Project) -> None:
        """Wherever it dies, what was erased and what is kept do not both stay."""
        put_promoted(shop)
        lose_rows(shop)
        for number in range(1, 60):
            with living(number) as life:
                repair_ledger(shop)
            close_all()
            if not life.dead:
                break

        assert number > 2
        assert api.ledger_of(shop).swaps() == ()
        assert not look_at_ledger(shop).changes

    @pytest.mark.parametrize("loss", ["gone", "unknown"])
    def test_a_kept_table_that_is_not_as_the_ledger_says(self, shop: Project, loss: str) -> None:
        """That alone is to be repaired; what is left of it is named, as nothing points to it."""
        name = put_promoted(shop)
        if loss == "gone":
            drop(shop, name)
        else:
            put(shop, name, "other-1", 900)

        found = look_at_ledger(shop)
        assert found.changes
        assert found.orphans == (() if loss == "gone" else (name,))
        text = said(shop, "repair", "--yes", "--drop-orphans", "--json")

        assert len(json.loads(text)["swaps_forgotten"]) == 1
        assert api.lake_of(shop).metadata(name) is None
        assert "there is nothing to repair" in said(shop, "repair")


class TestExplained:
    """``infold explain`` and ``infold history`` in an environment."""

    @pytest.fixture
    def shop(self, shop: Project) -> Project:
        """The shop in production, and an environment with a daily table of its own."""
        put_environment(shop)
        return shop

    def test_a_model_with_a_table_of_its_own(self, shop: Project) -> None:
        """By its own table and cells, under the model's name, and by the declared query."""
        printed = said(shop, "explain", "daily", "--env", "dev")

        assert printed.startswith("daily\n")
        assert OWN["daily"] not in printed
        assert "version 1, 9 rows in 3 cells" in printed
        assert "count(events) AS sessions" in printed
        assert "Not stale" in printed, printed
        assert "version 1, 6 rows in 2 cells" in said(shop, "explain", "daily")
        cell = as_json(shop, "explain", "daily", "2024-03-03", "--env", "dev")
        assert (cell["model"], cell["rows"]) == ("daily", 9)
        said(shop, "explain", "daily", "yesterday", "--env", "dev", code=2)

    def test_a_shared_model(self, shop: Project) -> None:
        """A model without a table of the environment's own is production's, and that is said.
        Unknown names are refused as elsewhere, and sessions are not explained there.
        """
        printed = said(shop, "explain", "sessions", "--env", "dev")

        assert "production's: dev has none of its own" in printed
        assert "differs from the files" not in printed
        assert "Not stale" in printed, printed
        for words, why in (
            ("explain dayly --env dev", "unknown-model"),
            ("explain daily --env nobody", "unknown-environment"),
            ("history --env ../x", "bad-environment-name"),
            ("history dayly --env dev", "unknown-model"),
            ("explain session 1 --env dev", "not for sessions"),
        ):
            assert why in said(shop, *words.split(), code=2)

    def test_its_runs(self, shop: Project) -> None:
        """The history has the environment's runs alone, by the names of its models."""
        runs = as_json(shop, "history", "--env", "dev")["runs"]

        assert isinstance(runs, list)
        assert [run["command"] for run in runs] == ["run --env dev"]
        assert [step["model"] for step in runs[0]["steps"]] == ["daily"]
        assert as_json(shop, "history", "daily", "--env", "dev")["runs"] == runs
        assert as_json(shop, "history", "sessions", "--env", "dev")["runs"] == []
        assert "No runs of sessions" in said(shop, "history", "sessions", "--env", "dev")
        assert len(api.history(shop)) > 1


def test_models_of_keys() -> None:
    """The model of a table that an environment no longer has is in its key."""
    for model, key in (("daily", "daily__0123abcd"), ("raw.clicks", "raw.clicks__" + "a" * 64)):
        assert model_of_key(key) == model
    for other in ("daily", "daily__more", "daily__0123abc"):
        assert model_of_key(other) == other
