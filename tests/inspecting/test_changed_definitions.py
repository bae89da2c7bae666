"""What changed in a project since its definitions were applied."""

from __future__ import annotations

from dataclasses import replace

import pytest
from tests.declare.shop import SHOP, project, spoilt
from tests.inspecting.test_as_built import WITH_VIEW, built
from tests.ledger.fresh import FreshLedger
from tests.ledger.steps import do

from infold.core.definition import Category, How
from infold.core.model import Kind
from infold.core.project import Project
from infold.core.record import Outcome
from infold.core.trace import UNKNOWN, Trace
from infold.declare.from_definitions import definitions_of
from infold.inspecting.changed_definitions import ChangedDefinitions
from infold.running.keep_definitions import keep_definitions

SAME = spoilt("models/daily.sql", "FROM sessions", "FROM sessions WHERE TRUE")
GAP = spoilt("models/sessions.sql", "gap: 30 minutes", "gap: 20 minutes")


def found(now: Project, ledger: FreshLedger) -> dict[str, tuple[Category, How]]:
    """All changes, each with its category and how it is carried out."""
    changes = ChangedDefinitions(now, ledger).all()
    return {change.model: (change.category, change.how) for change in changes}


def of_tables(now: Project, ledger: FreshLedger) -> dict[str, How]:
    """The changes of models with a table that another definition built."""
    changes = ChangedDefinitions(now, ledger)(ledger.traces())
    return {name: change.how for name, change in changes.items()}


def test_nothing_changed() -> None:
    """The same files are no change; nor is a target in which nothing was applied yet."""
    shop = project()

    assert found(shop, built(shop)) == {}
    assert found(shop, FreshLedger()) == {}
    assert of_tables(shop, built(shop)) == {}


COMMENT = spoilt("models/daily.sql", "FROM sessions", "FROM sessions /* all */")
COLUMN = spoilt("models/daily.sql", "count(*) AS", "max(events) AS longest, count(*) AS")


@pytest.mark.parametrize(
    ("files", "model", "change"),
    [
        (GAP, "sessions", (Category.BREAKING, How.REFOLD)),
        (SAME, "daily", (Category.NONE, How.RESTAMP)),
        (COMMENT, "daily", (Category.NONE, How.NOTHING)),
        (COLUMN, "daily", (Category.ADDITIVE, How.REBUILD)),
    ],
    ids=["gap", "in other words", "comment", "column"],
)
def test_a_changed_model(files: dict[str, str], model: str, change: tuple[Category, How]) -> None:
    """A changed model has its category; others, its readers included, have no change."""
    assert found(project(files), built(project())) == {model: change}


def test_a_new_and_a_removed_model() -> None:
    """Never applied is new, also a view; without a file it is removed."""
    ledger = built(project())
    files = {name: text for name, text in SHOP.items() if name != "models/daily.sql"}
    weekly = SHOP["models/daily.sql"]

    assert project(WITH_VIEW)["paid"].model.kind is Kind.VIEW
    assert found(project(WITH_VIEW), ledger)["paid"] == (Category.NEW, How.NOTHING)
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
    do(ledger, Outcome("daily", 3, Trace("daily", UNKNOWN), whole=True, snapshot=3))
    assert found(project(), ledger) == {}, "what a dead run left says nothing of its definition"


def test_a_table_that_waits_for_its_definition() -> None:
    """Where a run applied a definition and did not build its table, that is still to come."""
    ledger = built(project())
    keep_definitions(project(GAP), ledger, definitions_of(project(GAP)))

    assert found(project(GAP), ledger) == {"sessions": (Category.BREAKING, How.REFOLD)}
    assert found(project(), ledger) == {}  # the table is as the files say


@pytest.mark.parametrize("protected", [False, True])
def test_the_same_rows_are_recorded_and_not_built(protected: bool) -> None:
    """Proven-equal definitions are put into the ledger alone; in a protected target too."""
    ledger, now = built(project()), project(SAME)
    now = replace(now, target=replace(now.target, protected=protected))
    before = ledger.traces()

    digests = keep_definitions(
        now, ledger, definitions_of(now), changes=ChangedDefinitions(now, ledger)(before)
    )

    changed = {name for name, trace in ledger.traces().items() if trace != before[name]}
    assert changed == {"daily"}
    now_known = ledger.traces()["daily"]
    assert now_known.fingerprint == now["daily"].fingerprint
    assert now_known.definition == ledger.applied()["daily"].digest == digests["daily"]
    assert of_tables(now, ledger) == {}


def test_states_of_an_earlier_infold(monkeypatch: pytest.MonkeyPatch) -> None:
    """Sessions with other states than are stored now are built, also by the same query."""
    monkeypatch.setattr("infold.declare.from_definitions.STATE_VERSION", 1)
    ledger = built(project())
    monkeypatch.undo()
    words = spoilt("models/sessions.sql", "FROM clicks", "FROM clicks WHERE TRUE")

    assert of_tables(project(words), built(project())) == {"sessions": How.RESTAMP}
    assert found(project(words), ledger)["sessions"] == (Category.NONE, How.REBUILD)
    assert found(project(GAP), ledger)["sessions"] == (Category.BREAKING, How.REBUILD)


INCOME = {
    **SHOP,
    "models/sessions.sql": SHOP["models/sessions.sql"]
    .replace("AS revenue", "AS income")
    .replace("---\n", "---\nrenamed_from: {income: revenue}\n", 1),
    "models/daily.sql": SHOP["models/daily.sql"].replace("sum(revenue)", "sum(income)"),
}


@pytest.mark.parametrize(
    ("sessions", "daily", "how"),
    [
        ("", "", How.RESTAMP),
        ("", "sum(income) AS revenue, max(income) AS most", How.REBUILD),
        ("", "sum(events) AS revenue", How.REBUILD),
        ("", "sum(named_struct('a', income).a) AS revenue", How.REBUILD),
        (", sum(-amount) AS income", "", How.REBUILD),
    ],
    ids=["renamed", "one more", "another", "in a struct", "not only renamed"],
)
def test_readers_of_a_renamed_column(sessions: str, daily: str, how: How) -> None:
    """Who names the column as it is called now has the same rows; all else counts."""
    files = dict(INCOME)
    files["models/daily.sql"] = files["models/daily.sql"].replace(
        "sum(income) AS revenue", daily or "sum(income) AS revenue"
    )
    if sessions:
        text = files["models/sessions.sql"]
        files["models/sessions.sql"] = text.replace(", sum(amount) AS income", sessions)

    changes = of_tables(project(files), built(project()))

    assert changes["daily"] is how
    assert changes["sessions"] is (How.REBUILD if sessions else How.EVOLVE)


def test_a_renamed_column_through_a_view() -> None:
    """Readers see through views that name the column as it is called now."""
    view = "---\nmaterialization: view\n---\nSELECT session_start, {0} FROM sessions\n"
    daily = SHOP["models/daily.sql"].replace("FROM sessions", "FROM paid")
    before = project({**SHOP, "models/paid.sql": view.format("revenue"), "models/daily.sql": daily})
    after = {**INCOME, "models/paid.sql": view.format("income AS revenue")}

    changes = of_tables(project({**after, "models/daily.sql": daily}), built(before))

    assert changes == {"sessions": How.EVOLVE, "daily": How.RESTAMP}


@pytest.mark.parametrize(
    "query",
    [
        "SELECT price FROM sessions NATURAL JOIN prices",
        "SELECT to_json(struct(*)) AS j FROM sessions",
        "SELECT to_json(struct(sessions.*)) AS j FROM sessions",
        "SELECT j FROM (SELECT struct(s.*, 1) AS j FROM sessions AS s) AS q",
    ],
)
def test_rows_that_follow_from_names(query: str) -> None:
    """A NATURAL join, and a star in a struct, give other rows once a column has another name: the
    reader is built again, though its text is the same and no content of the table changed.
    """
    whole = "---\nmaterialization: table\n---\n"
    files = {
        **{name: text for name, text in SHOP.items() if name != "models/daily.sql"},
        "models/prices.sql": f"{whole}SELECT 1 AS revenue, 2 AS price\n",
        "models/daily.sql": whole + query,
    }
    now = {**files, "models/sessions.sql": INCOME["models/sessions.sql"]}

    changes = of_tables(project(now), built(project(files)))

    assert changes == {"sessions": How.EVOLVE, "daily": How.REBUILD}


@pytest.mark.parametrize("query", ["SELECT count(*) AS n", "SELECT max(hash(*)) AS h"])
def test_values_alone_do_not_follow_from_names(query: str) -> None:
    """Other stars in a query have the same rows under other names."""
    whole = "---\nmaterialization: table\n---\n"
    files = {**SHOP, "models/daily.sql": f"{whole}{query} FROM sessions"}
    now = {**files, "models/sessions.sql": INCOME["models/sessions.sql"]}

    assert of_tables(project(now), built(project(files))) == {"sessions": How.EVOLVE}
