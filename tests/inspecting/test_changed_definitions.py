"""What changed in a project since its definitions were applied."""

from __future__ import annotations

from dataclasses import replace

import pytest
from tests.declare.shop import SHOP, project, spoilt
from tests.inspecting.test_as_built import WITH_VIEW, built
from tests.ledger.memory import MemoryLedger
from tests.ledger.steps import do

from infold.core.definition import Category, How
from infold.core.model import Kind
from infold.core.project import Project
from infold.core.record import Outcome
from infold.core.trace import UNKNOWN, Trace
from infold.declare.definitions import definitions_of
from infold.inspecting.changed_definitions import ChangedDefinitions
from infold.running.keep_definitions import keep_definitions

SAME = spoilt("models/daily.sql", "FROM sessions", "FROM sessions WHERE TRUE")
GAP = spoilt("models/sessions.sql", "gap: 30 minutes", "gap: 20 minutes")


def found(now: Project, ledger: MemoryLedger) -> dict[str, tuple[Category, How]]:
    """All changes, each with its category and how it is carried out."""
    changes = ChangedDefinitions(now, ledger).all()
    return {change.model: (change.category, change.how) for change in changes}


def of_tables(now: Project, ledger: MemoryLedger) -> dict[str, How]:
    """The changes of models with a table that another definition built."""
    changes = ChangedDefinitions(now, ledger)(ledger.traces())
    return {name: change.how for name, change in changes.items()}


def test_nothing_changed() -> None:
    """The same files are no change; nor is a target in which nothing was applied yet."""
    shop = project()

    assert found(shop, built(shop)) == {}
    assert found(shop, MemoryLedger()) == {}
    assert of_tables(shop, built(shop)) == {}


@pytest.mark.parametrize(
    ("files", "model", "change"),
    [
        (GAP, "sessions", (Category.BREAKING, How.REFOLD)),
        (SAME, "daily", (Category.NONE, How.RESTAMP)),
        (
            spoilt("models/daily.sql", "FROM sessions", "FROM sessions /* all */"),
            "daily",
            (Category.NONE, How.NOTHING),
        ),
        (
            spoilt(
                "models/daily.sql",
                "count(*) AS sessions",
                "count(*) AS sessions, max(events) AS longest",
            ),
            "daily",
            (Category.ADDITIVE, How.REBUILD),
        ),
    ],
    ids=["gap", "in other words", "comment", "column"],
)
def test_a_changed_model(files: dict[str, str], model: str, change: tuple[Category, How]) -> None:
    """A changed model has its category; others, its readers included, have no change."""
    assert found(project(files), built(project())) == {model: change}


def test_a_new_and_a_removed_model() -> None:
    """A model that was never applied is new, and one without a file is removed."""
    ledger = built(project())
    files = {name: text for name, text in SHOP.items() if name != "models/daily.sql"}
    weekly = SHOP["models/daily.sql"]

    assert found(project({**files, "models/weekly.sql": weekly}), ledger) == {
        "weekly": (Category.NEW, How.REBUILD),
        "daily": (Category.REMOVED, How.NOTHING),
    }


def test_readers_of_a_changed_view() -> None:
    """A view's change is its readers' too: they have tables of other rows."""
    ledger = built(project(WITH_VIEW))
    paid = WITH_VIEW["models/paid.sql"]
    same = project({**WITH_VIEW, "models/paid.sql": paid.replace("> 0", "> 0 AND TRUE")})
    other = project({**WITH_VIEW, "models/paid.sql": paid.replace("> 0", "> 9")})

    assert found(same, ledger)["paid"] == (Category.NONE, How.NOTHING)
    assert of_tables(same, ledger) == {"sessions": How.RESTAMP}
    assert found(other, ledger)["paid"] == (Category.BREAKING, How.NOTHING)
    assert of_tables(other, ledger) == {"sessions": How.REBUILD}


def test_a_definition_that_was_not_kept() -> None:
    """Whether rows differ is unknown if the definition that built them was not kept."""
    ledger = built(project())
    do(ledger, Outcome("daily", 2, Trace("daily", "an earlier one"), whole=True, snapshot=2))

    assert found(project(), ledger) == {"daily": (Category.UNKNOWN, How.REBUILD)}
    assert of_tables(project(), ledger) == {"daily": How.REBUILD}


def test_a_table_that_is_half_known_has_the_applied_definition() -> None:
    """What a dead run left of a table says nothing about its definition."""
    ledger = built(project())
    do(ledger, Outcome("daily", 2, Trace("daily", UNKNOWN), whole=True, snapshot=2))

    assert found(project(), ledger) == {}


def test_a_table_that_waits_for_its_definition() -> None:
    """Where a run applied a definition and did not build its table, that is still to come."""
    ledger = built(project())
    keep_definitions(project(GAP), ledger, definitions_of(project(GAP)))

    assert found(project(GAP), ledger) == {"sessions": (Category.BREAKING, How.REFOLD)}
    assert found(project(), ledger) == {}  # the table is as the files say


def test_the_same_rows_are_recorded_and_not_built() -> None:
    """A run gives the table of a proven-equal definition that definition, in the ledger alone."""
    ledger, now = built(project()), project(SAME)
    before = ledger.traces()

    digests = keep_definitions(
        now, ledger, definitions_of(now), changes=ChangedDefinitions(now, ledger)(before)
    )

    changed = {name for name, trace in ledger.traces().items() if trace != before[name]}
    assert changed == {"daily"}
    now_known = ledger.traces()["daily"]
    assert now_known.fingerprint == now["daily"].fingerprint
    assert now_known.definition == digests["daily"]
    assert of_tables(now, ledger) == {}


def test_a_protected_target_takes_over_the_same_rows() -> None:
    """In a protected target too a definition with the same rows is applied."""
    ledger, files = built(project()), project(SAME)
    now = replace(files, target=replace(files.target, protected=True))

    digests = keep_definitions(
        now, ledger, definitions_of(now), changes=ChangedDefinitions(now, ledger)(ledger.traces())
    )

    assert ledger.applied()["daily"].digest == digests["daily"]


def test_views_have_no_rows_to_build() -> None:
    """A new view is carried out by doing nothing."""
    ledger = built(project())

    assert project(WITH_VIEW)["paid"].model.kind is Kind.VIEW
    assert found(project(WITH_VIEW), ledger)["paid"] == (Category.NEW, How.NOTHING)


def test_states_of_an_earlier_infold(monkeypatch: pytest.MonkeyPatch) -> None:
    """Sessions with other states than are stored now are built, also by the same query."""
    monkeypatch.setattr("infold.declare.definitions.STATE_VERSION", 1)
    ledger = built(project())
    monkeypatch.undo()
    words = spoilt("models/sessions.sql", "FROM clicks", "FROM clicks WHERE TRUE")

    assert of_tables(project(words), built(project())) == {"sessions": How.RESTAMP}
    assert found(project(words), ledger)["sessions"] == (Category.NONE, How.REBUILD)
    assert found(project(GAP), ledger)["sessions"] == (Category.BREAKING, How.REBUILD)
