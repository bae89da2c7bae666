"""What changed in a project since its definitions were applied, and what tables were built by."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from types import MappingProxyType, SimpleNamespace
from typing import Any, cast

import pytest
from tests.declare.shop import SHOP, project, spoilt
from tests.ledger.fresh import FreshLedger
from tests.ledger.steps import do

from infold.core.definition import Category, How, Redefinition, digest_of
from infold.core.interval import MIN, Interval, Ranges, parse_instant_text
from infold.core.model import Kind
from infold.core.ports import Lake
from infold.core.project import Project
from infold.core.record import ForwardOnly, Outcome
from infold.core.trace import UNKNOWN, CellChange, EarlierCells, Trace
from infold.declare.definitions import definitions_of
from infold.inspecting.as_built import Stretches, earlier_definition_note, project_as_built
from infold.inspecting.changed_definitions import ChangedDefinitions
from infold.inspecting.environments import OwnModels, own_models
from infold.inspecting.tables_apart import tables_apart
from infold.messages.errors import InfoldError
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


@pytest.mark.parametrize(
    ("files", "changed", "names"),
    [
        (SHOP, spoilt("models/sessions.sql", "gap: 30 minutes", "gap: 20 minutes"), ["sessions"]),
        (WITH_VIEW, {"models/paid.sql": PAID.replace("> 0", "> 9")}, ["sessions", "paid"]),
        (SHOP, spoilt("infold.yml", "decimal(18,2)", "decimal(18,3)"), ["clicks"]),
    ],
    ids=["query", "view", "source"],
)
def test_a_table_is_declared_as_it_was(
    files: dict[str, str], changed: dict[str, str], names: list[str]
) -> None:
    """By the query, the views and the sources of then, and the note has the date."""
    old, now = project(files), project({**files, **changed})
    ledger = built(old)
    trace = ledger.traces()[names[0]]

    found = project_as_built(now, ledger, trace)

    assert project_as_built(old, ledger, trace) is old
    assert [found[name] for name in names] == [old[name] for name in names]
    assert now[names[-1]] != old[names[-1]]
    assert found.sources["raw.clicks"] == old.sources["raw.clicks"]
    note = "by the definition of 2024-03-10; the files have another since"
    assert earlier_definition_note(ledger, trace) == note


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


# -- what changed in a project since its definitions were applied


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


@pytest.mark.parametrize(
    ("new", "category", "how"),
    [("> 0 AND TRUE", Category.NONE, How.RESTAMP), ("> 9", Category.BREAKING, How.REBUILD)],
)
def test_readers_of_a_changed_view(new: str, category: Category, how: How) -> None:
    """A view's change is its readers' too: they have tables of other rows."""
    ledger = built(project(WITH_VIEW))
    now = project({**WITH_VIEW, "models/paid.sql": PAID.replace("> 0", new)})

    assert found(now, ledger)["paid"] == (category, How.NOTHING)
    assert of_tables(now, ledger) == {"sessions": how}


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
    monkeypatch.setattr("infold.declare.definitions.STATE_VERSION", 1)
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
    ("query", "built_again"),
    [
        ("SELECT price FROM sessions NATURAL JOIN prices", True),
        ("SELECT to_json(struct(*)) AS j FROM sessions", True),
        ("SELECT to_json(struct(sessions.*)) AS j FROM sessions", True),
        ("SELECT j FROM (SELECT struct(s.*, 1) AS j FROM sessions AS s) AS q", True),
        ("SELECT count(*) AS n FROM sessions", False),
        ("SELECT max(hash(*)) AS h FROM sessions", False),
    ],
)
def test_rows_that_follow_from_names(query: str, built_again: bool) -> None:
    """The reader is built again, though its text is the same and no content changed; other stars
    have the same rows under other names.
    """
    whole = "---\nmaterialization: table\n---\n"
    prices = f"{whole}SELECT 1 AS revenue, 2 AS price\n"
    files = {**SHOP, "models/prices.sql": prices, "models/daily.sql": whole + query}
    now = {**files, "models/sessions.sql": INCOME["models/sessions.sql"]}

    changes = of_tables(project(now), built(project(files)))

    again = {"daily": How.REBUILD} if built_again else {}
    assert changes == {"sessions": How.EVOLVE, **again}


# -- which changes are forward-only, and the earlier definitions that tables keep


DAY = Interval(parse_instant_text("2024-03-09"), parse_instant_text("2024-03-10"))
MORE = spoilt("models/daily.sql", "count(*) AS sessions", "count(events) AS sessions")
DECLARED = {
    **MORE,
    "models/daily.sql": MORE["models/daily.sql"].replace(
        "incremental: {}", "incremental: {forward_only: true}"
    ),
}


def with_a_day(of: Project) -> FreshLedger:
    """A ledger of built tables; the daily one has rows of one day."""
    ledger = built(of)
    trace = ledger.traces()["daily"]
    change = CellChange(DAY, 3, 0, 0, 3, 0, 1)
    do(ledger, Outcome("daily", 2, trace, (change,), snapshot=2))
    return ledger


def change(
    now: Project, ledger: FreshLedger, asked: Mapping[str, int | None] | None = None
) -> Redefinition:
    """The change of the daily table; all that plans show says the same."""
    changes = ChangedDefinitions(now, ledger, asked or {})
    found = changes(ledger.traces())["daily"]
    [shown] = [one for one in changes.all() if one.model == "daily"]
    assert replace(shown, refused=found.refused) == found
    return found


class TestWhichChanges:
    """A change is forward-only where the file, an option or the ledger says so."""

    def test_the_file_or_an_option_says_so(self) -> None:
        """In force after the last day with rows, or from the instant that was asked for."""
        ledger = with_a_day(project())
        assert change(project(MORE), ledger).how is How.REBUILD
        found = change(project(DECLARED), ledger)
        assert (found.category, found.how) == (Category.FORWARD_ONLY, How.DERIVE)
        assert found.effective_from == DAY.end
        for files in (MORE, DECLARED):
            found = change(project(files), ledger, {"daily": DAY.start})
            assert found.effective_from == DAY.start

    def test_an_earlier_run_said_so(self) -> None:
        """What a run recorded and died over counts for this definition, and for no other."""
        now, ledger = project(MORE), with_a_day(project())
        changes = ChangedDefinitions(now, ledger)(ledger.traces())
        keep_definitions(
            now, ledger, definitions_of(now), changes=changes, forward_only={"daily": DAY.start}
        )
        digest = digest_of(definitions_of(now)["daily"])
        assert ledger.forward_only() == {"daily": ForwardOnly(digest, DAY.start)}
        assert change(now, ledger).effective_from == DAY.start

        other = spoilt("models/daily.sql", "count(*) AS sessions", "sum(events) AS sessions")
        assert change(project(other), ledger).effective_from is None

    def test_what_did_not_change_is_not_recorded(self) -> None:
        """An option that names a model with the definition that it has says nothing."""
        now, ledger = project(), with_a_day(project())
        keep_definitions(now, ledger, definitions_of(now), forward_only={"daily": None})
        assert ledger.forward_only() == {}

    def test_sessions(self) -> None:
        """They are folded by the definitions in force; numbered ones are refused."""
        gap = spoilt("models/sessions.sql", "gap: 30 minutes", "gap: 20 minutes")
        ledger = with_a_day(project())
        trace = ledger.traces()["sessions"]
        do(ledger, Outcome("sessions", 2, trace, (CellChange(DAY, 3, 0, 0, 3, 0, 1),), snapshot=2))
        declared = spoilt(
            "models/sessions.sql", "gap: 30 minutes}", "gap: 20 minutes}\nforward_only: true"
        )
        for files, asked in ((gap, {"sessions": None}), (declared, {})):
            found = ChangedDefinitions(project(files), ledger, asked)(ledger.traces())["sessions"]
            assert (found.how, found.effective_from) == (How.REFOLD, DAY.end)
            assert found.derivation is None

        counted = spoilt(
            "models/sessions.sql", "gap: 30 minutes", "gap: 20 minutes, session_number: true"
        )
        changes = ChangedDefinitions(project(counted), ledger, {"sessions": None})
        found = changes(ledger.traces())["sessions"]
        assert found.refused is not None
        assert "session_number" in str(found.refused)


def stretched(files: Mapping[str, str], now: Mapping[str, str]) -> tuple[Project, FreshLedger]:
    """The daily table with days before the 9th of March by its earlier definition."""
    ledger = with_a_day(project(files))
    trace, later = ledger.traces()["daily"], project(now)
    digests = keep_definitions(later, ledger, definitions_of(later))
    before = EarlierCells(Ranges((Interval(MIN, DAY.start),)), trace.definition)
    trace = replace(
        trace,
        fingerprint=later["daily"].fingerprint,
        definition=digests["daily"],
        earlier=(before,),
    )
    do(ledger, Outcome("daily", 3, trace, committed=False))
    return later, ledger


class TestStretches:
    """Earlier definitions are compiled, or the table is refused."""

    @pytest.mark.parametrize("declared", [True, False])
    def test_the_earlier_definition(self, declared: bool) -> None:
        """A stretch has the model as it was declared then."""
        later, ledger = stretched(SHOP, MORE)
        [found] = Stretches(later, ledger, declared=declared)(ledger.traces()["daily"])
        assert found.cells == Ranges((Interval(MIN, DAY.start),))
        assert found.node == project()["daily"]
        assert found.node != later["daily"]

    def test_an_input_that_lacks_what_it_reads(self) -> None:
        """It is refused over the declared definitions, and understood over those that built."""
        _, ledger = stretched(SHOP, MORE)
        now = lacking(MORE)
        assert "revenue" not in now["sessions"].columns
        assert Stretches(now, ledger, declared=False)(ledger.traces()["daily"])
        with pytest.raises(InfoldError, match="earlier-definition-unknown"):
            Stretches(now, ledger, declared=True)(ledger.traces()["daily"])
        refused = change(lacking(DECLARED), with_a_day(project())).refused
        assert refused is not None
        assert "its inputs no longer have what its earlier definition reads" in str(refused)


def lacking(files: Mapping[str, str]) -> Project:
    """Sessions without a column that the earlier definition of the daily table reads."""
    now = {
        name: text.replace("sum(revenue) AS revenue", "1 AS revenue").replace(
            "sum(amount) AS revenue", "sum(amount) AS paid"
        )
        for name, text in files.items()
    }
    return project(now)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("AS revenue", "AS revenue, max(revenue) AS most"),
        (", sum(revenue) AS revenue", ""),
        ("AS revenue", "AS income"),
        ("granularity: day", "granularity: week"),
    ],
)
def test_other_changes_end_it(old: str, new: str) -> None:
    """One that builds all gives earlier cells other rows: it is breaking, and keeps no column."""
    _, ledger = stretched(SHOP, MORE)
    files = {**MORE, "models/daily.sql": MORE["models/daily.sql"].replace(old, new)}
    if "income" in new:
        files["models/daily.sql"] = files["models/daily.sql"].replace(
            "incremental: {}", "incremental: {}\nrenamed_from: {income: revenue}"
        )
    found = change(project(files), ledger)
    assert (found.category, found.how) == (Category.BREAKING, How.REBUILD)
    assert (found.columns_kept, found.rewrites_until) == (frozenset(), DAY.start)


def test_a_change_of_no_row_leaves_it() -> None:
    """Tags leave the cells of earlier definitions."""
    _, ledger = stretched(SHOP, MORE)
    text = MORE["models/daily.sql"].replace("incremental: {}", "incremental: {}\ntags: [a]")
    found = ChangedDefinitions(project({**MORE, "models/daily.sql": text}), ledger).all()
    assert [(one.category, one.rewrites_until) for one in found] == [(Category.METADATA, None)]


# -- which models of an environment need tables of their own


FILES = {
    **SHOP,
    "models/big.sql": "---\nmaterialization: view\n---\nSELECT * FROM daily WHERE sessions > 1\n",
    "models/best.sql": "---\nmaterialization: table\n---\nSELECT max(sessions) AS n FROM big\n",
    "models/urls.sql": "---\nmaterialization: table\n---\nSELECT DISTINCT url FROM raw.clicks\n",
}
"""clicks → sessions → daily → big (a view) → best; raw.clicks (landed) → urls."""


def changed_files(*changes: tuple[str, str, str]) -> dict[str, str]:
    """The files with a text replaced in some of them."""
    files = dict(FILES)
    for name, old, new in changes:
        path = name if "." in name else f"models/{name}.sql"
        assert old in files[path]
        files[path] = files[path].replace(old, new)
    return files


GAP_OF_SESSIONS = ("sessions", "30 minutes", "20 minutes")
COLUMN_MORE = ("sessions", "sum(amount)", "max(url) AS last_url, sum(amount)")
OTHER = ("daily", "count(*) AS sessions", "count(*) + 1 AS sessions")


WIDER = ("infold.yml", "amount: decimal(18,2)", "amount: decimal(19,2)")


def decided(
    files: Mapping[str, str],
    equal: Mapping[str, bool] | None = None,
    *,
    assume: bool = False,
    stretched: Mapping[str, Trace] = MappingProxyType({}),
) -> OwnModels:
    """What is decided over production by FILES; ``equal`` are the tables that were compared."""
    known = equal or {}
    return own_models(
        project(dict(files)),
        project(FILES),
        lambda model, _: known.get(model),
        assume=assume,
        stretched=stretched,
    )


def test_nothing_is_proven_of_cells_of_earlier_definitions() -> None:
    """A column that a change keeps has other values there, so readers of it are not shared."""
    files = changed_files(
        ("daily", "count(*) AS sessions", "count(*) AS sessions, max(events) AS most")
    )
    old = EarlierCells(Ranges((Interval(MIN, 86_400_000_000),)), "an earlier one")
    stretched = {"daily": Trace("daily", "f", earlier=(old,))}

    assert decided(files).waiting == ()
    found = decided(files, stretched=stretched)
    assert (list(found.identities), found.waiting) == (["daily"], ("best",))
    assert (found.changes[0].model, str(found.changes[0].category)) == ("daily", "breaking")
    assert decided(FILES, stretched=stretched).identities == {}
    same = decided(FILES)
    assert (same.identities, same.waiting, same.changes) == ({}, (), ()), "all tables are shared"


@pytest.mark.parametrize(
    ("changes", "own", "waiting"),
    [
        ([OTHER], ["daily"], ("best",)),
        ([GAP_OF_SESSIONS], ["sessions"], ("daily", "best")),
        ([GAP_OF_SESSIONS, OTHER], ["sessions", "daily"], ("best",)),
        ([COLUMN_MORE], ["sessions"], ()),
        ([("sessions", "sum(amount)", "2 * sum(amount)")], ["sessions"], ("daily", "best")),
        ([("sessions", "first(url)", "last(url)")], ["sessions"], ()),
        ([("daily", "FROM sessions", "FROM sessions WHERE true")], [], ()),
        ([("daily", "FROM sessions", "/* all */ FROM sessions")], [], ()),
        ([("big", "> 1", "> 2")], ["best"], ()),
        ([("big", "> 1", "> 1 AND true")], [], ()),
        ([("urls", "DISTINCT url", "DISTINCT user_id, url")], ["urls"], ()),
        ([WIDER], ["raw.clicks", "clicks"], ("sessions", "daily", "best", "urls")),
        ([("infold.yml", "landing/clicks/*", "landing/*")], [], ()),
    ],
)
def test_what_is_own_before_anything_is_built(
    changes: list[tuple[str, str, str]], own: list[str], waiting: tuple[str, ...]
) -> None:
    """A changed model is its own; readers of what may have changed wait, others are shared."""
    found = decided(changed_files(*changes))

    assert (list(found.identities), found.waiting) == (own, waiting)


@pytest.mark.parametrize(
    ("equal", "assume", "own", "waiting"),
    [
        ({"sessions": True}, False, ["sessions"], ()),
        ({"sessions": False}, False, ["sessions", "daily"], ("best",)),
        ({"sessions": False, "daily": True}, False, ["sessions", "daily"], ()),
        ({}, True, ["sessions", "daily", "best"], ()),
        ({"daily": True}, True, ["sessions", "daily"], ()),
    ],
)
def test_equal_rows_end_it(
    equal: dict[str, bool], assume: bool, own: list[str], waiting: tuple[str, ...]
) -> None:
    """Readers of equal tables are production's, others own; a plan assumes the worst."""
    found = decided(changed_files(GAP_OF_SESSIONS), equal, assume=assume)

    assert (list(found.identities), found.waiting) == (own, waiting)


def test_columns_kept_pass_through_own_inputs() -> None:
    """A column more leaves others alone, unless the input has other rows."""
    more = ("daily", "sum(revenue)", "max(last_url) AS url, sum(revenue)")

    found = decided(changed_files(COLUMN_MORE, more))
    assert (list(found.identities), found.waiting) == (["sessions", "daily"], ())
    found = decided(changed_files(GAP_OF_SESSIONS, COLUMN_MORE, more), {"sessions": False})
    assert (list(found.identities), found.waiting) == (["sessions", "daily"], ("best",))


def test_tables_are_known_by_all_that_they_follow_from() -> None:
    """The same definition over another own input is another table; and so is each model's."""
    one, two = (
        decided(changed_files(change), {"sessions": False})
        for change in (GAP_OF_SESSIONS, ("sessions", "30 minutes", "10 minutes"))
    )

    assert one.identities["daily"] != two.identities["daily"]
    again = decided(changed_files(GAP_OF_SESSIONS), {"sessions": False})
    assert again.identities == one.identities
    assert len(set(one.identities.values())) == 2


def test_a_model_that_production_has_not_is_own() -> None:
    """New models, and those of removed inputs, are built in the environment."""
    count = "---\nmaterialization: table\n---\nSELECT count(*) AS n FROM clicks\n"
    gone = {name: text for name, text in FILES.items() if name != "models/urls.sql"}

    found = decided({**FILES, "models/n.sql": count})
    assert list(found.identities) == ["n"]
    assert [one.category.value for one in found.changes] == ["new"]
    assert {one.model for one in decided(gone).changes} == {"urls", "raw.clicks"}
