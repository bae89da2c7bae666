"""Tables that somebody dropped from the catalog behind infold's back."""

from __future__ import annotations

from tests.running.standing_tables import drop, folders, leased

from infold import api
from infold.core.interval import Ranges
from infold.core.plan import Action
from infold.core.project import Project
from infold.running.recover import LOSE, recover


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
