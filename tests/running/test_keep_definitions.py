"""Which definitions a run keeps, applies and lets tables adopt."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest
from tests.declare.shop import SHOP, project, spoilt, write
from tests.ledger.fresh import FreshLedger
from tests.ledger.steps import do
from tests.running.commands import said
from tests.running.standing_tables import DECLARED, NAMES

from infold import api
from infold.core.definition_text import digest_of
from infold.core.project import Project
from infold.core.record import Outcome
from infold.core.trace import Trace
from infold.declare.from_definitions import definitions_of
from infold.running.keep_definitions import keep_definitions

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
    """In a protected target a change that builds nothing is applied without being asked, and one
    that needs a rebuild once that is allowed.
    """
    build(ledger, project(), keep(ledger, in_production(project())))
    before = keep(ledger, in_production(project(COMMENT)))
    assert applied(ledger) == before

    after = keep(ledger, in_production(project(CHANGED)), rebuilds_allowed=allowed)

    assert applied(ledger) == {**after, "daily": (after if allowed else before)["daily"]}


def test_a_changed_view_waits_for_its_tables(ledger: FreshLedger) -> None:
    """In a protected target a changed view is not applied before the tables that read it."""
    before = keep(ledger, in_production(project(WITH_VIEW)))
    build(ledger, project(WITH_VIEW), before)
    changed = {**WITH_VIEW, "models/paid.sql": PAID.replace("> 0", "> 1")}

    after = keep(ledger, in_production(project(changed)))

    assert applied(ledger) == {**before, "daily": after["daily"]}
    assert after["paid"] != before["paid"]


def test_a_removed_model_stays_applied_where_its_table_is_protected(ledger: FreshLedger) -> None:
    """The definition of a removed model is dropped, but in a protected target where it stays."""
    before = keep(ledger, in_production(project()))
    build(ledger, project(), before)
    without = {name: text for name, text in SHOP.items() if "daily" not in name}

    keep(ledger, in_production(project(without)))
    assert applied(ledger) == before

    keep(ledger, project(without))
    assert applied(ledger).keys() == {"clicks", "sessions"}


def applied_as_explained(of: Project) -> list[bool | None]:
    """What `infold explain --json` says of each model: whether the files have what is applied."""
    shapes = [json.loads(said(of, "explain", name, "--json"))["applied"] for name in NAMES]
    return [None if shape is None else shape["same"] for shape in shapes]


def test_explain_says_whether_the_files_have_what_is_applied(shop: Project) -> None:
    """Before the first run that keeps definitions nothing is said to be applied; then a comment
    makes the files differ until the next run; nothing of it needs Spark.
    """
    assert applied_as_explained(shop) == [None, None, None]

    said(shop, "run", "--select", "daily")
    assert applied_as_explained(shop) == [True, True, True]
    traces = api.ledger(shop).traces()
    assert all(trace.definition for trace in traces.values())

    write(shop.root, COMMENT)
    assert applied_as_explained(shop) == [True, True, False]
    assert "differs from the files" in said(shop, "explain", "daily")

    said(shop, "run", "--select", "daily")
    assert applied_as_explained(shop) == [True, True, True]
    assert api.ledger(shop).traces() == traces
