"""The project as a table was built by it, and that of a run while a table is built apart."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace
from typing import Any, cast

from tests.declare.shop import SHOP, project, spoilt
from tests.ledger.fresh import FreshLedger
from tests.ledger.steps import do

from infold.core.interval import parse_instant_text
from infold.core.ports import Lake
from infold.core.project import Project
from infold.core.record import Outcome
from infold.core.trace import UNKNOWN, Trace
from infold.declare.from_definitions import definitions_of
from infold.inspecting.as_built import earlier_definition_note, project_as_built
from infold.inspecting.tables_apart import tables_apart
from infold.running.keep_definitions import keep_definitions

PAID = "---\nmaterialization: view\n---\nSELECT * FROM clicks WHERE amount > 0\n"
SESSIONS = SHOP["models/sessions.sql"].replace("FROM clicks", "FROM paid")
WITH_VIEW = {**SHOP, "models/paid.sql": PAID, "models/sessions.sql": SESSIONS}


class Noon:
    """A clock that shows a noon."""

    def now(self) -> int:
        """The 10th of March."""
        return parse_instant_text("2024-03-10T12:00:00")


def built(of: Project) -> FreshLedger:
    """A ledger in which every table was built by a project's definitions."""
    ledger = FreshLedger(clock=Noon())
    ledger.acquire("r1")
    ledger.begin_run("r1", "run", 0, {})
    digests = keep_definitions(of, ledger, definitions_of(of))
    for name in ("clicks", "sessions", "daily"):
        trace = Trace(name, of[name].fingerprint, definition=digests[name])
        do(ledger, Outcome(name, 1, trace, whole=True, snapshot=1))
    return ledger


def test_a_changed_query_is_as_it_was() -> None:
    """A table of an earlier query is declared by that query, and the note has its date."""
    old = project()
    ledger = built(old)
    now = project(spoilt("models/sessions.sql", "gap: 30 minutes", "gap: 20 minutes"))
    trace = ledger.traces()["sessions"]

    assert project_as_built(old, ledger, trace) is old
    assert project_as_built(now, ledger, trace)["sessions"] == old["sessions"]
    assert now["sessions"] != old["sessions"]
    note = "by the definition of 2024-03-10; the files have another since"
    assert earlier_definition_note(ledger, trace) == note


def test_a_changed_view_is_as_it_was() -> None:
    """A table over a view that changed is declared over the view as it was."""
    old = project(WITH_VIEW)
    now = project({**WITH_VIEW, "models/paid.sql": PAID.replace("> 0", "> 9")})
    ledger = built(old)

    found = project_as_built(now, ledger, ledger.traces()["sessions"])

    assert found["sessions"] == old["sessions"]
    assert found["paid"] == old["paid"] != now["paid"]


def test_a_changed_source_is_as_it_was() -> None:
    """A table that was ingested by another declaration of its source is declared over that."""
    old = project()
    ledger = built(old)
    now = project(spoilt("infold.yml", "amount: decimal(18,2)", "amount: decimal(18,3)"))

    found = project_as_built(now, ledger, ledger.traces()["clicks"])
    assert found["clicks"] == old["clicks"]
    assert found.sources["raw.clicks"] == old.sources["raw.clicks"]


def test_a_definition_that_was_not_kept_stays_unknown() -> None:
    """A table of an earlier infold, or one with unknown rows, has the project of the files."""
    ledger = built(project())
    now = project(spoilt("models/sessions.sql", "gap: 30 minutes", "gap: 20 minutes"))
    trace = ledger.traces()["sessions"]

    unknown = replace(trace, fingerprint=UNKNOWN)
    for lost in (replace(trace, definition=""), replace(trace, definition="another"), unknown):
        assert project_as_built(now, ledger, lost) is now


VIEW = "---\nmaterialization: view\n---\nSELECT * FROM sessions WHERE events > {}\n"
OVER_VIEW = {"models/daily.sql": SHOP["models/daily.sql"].replace("FROM sessions", "FROM long")}


def test_both_definitions_have_their_own_view() -> None:
    """Readers have what the earlier view gives; the changed one is for what is built apart."""
    before = {**SHOP, **OVER_VIEW, "models/long.sql": VIEW.format(1)}
    wanted = project({**before, "models/long.sql": VIEW.format(2)})
    lake = cast("Lake", SimpleNamespace(is_free=lambda table: True))

    found: Any = tables_apart(
        wanted, built(project(before)), lake, lambda nodes: [node.name for node in nodes]
    ).project

    [key] = [key for key, model in found.apart.items() if model == "daily"]
    [view] = found[key].reads
    assert "events > 2" in found[view].model.sql
    assert found["daily"].reads == ("long",)
    assert "events > 1" in found["long"].model.sql
    assert found["daily"].fingerprint == project(before)["daily"].fingerprint
    assert found[key].fingerprint == wanted["daily"].fingerprint
