"""Which changes are forward-only, and the earlier definitions that tables keep."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import pytest
from tests.declare.shop import SHOP, project, spoilt
from tests.inspecting.test_as_built import built
from tests.ledger.fresh import FreshLedger
from tests.ledger.steps import do

from infold.core.definition import Category, How, Redefinition
from infold.core.definition_text import digest_of
from infold.core.interval import MIN, Interval, Ranges, parse_instant_text
from infold.core.project import Project
from infold.core.record import ForwardOnly, Outcome
from infold.core.trace import CellChange, EarlierCells
from infold.declare.from_definitions import definitions_of
from infold.inspecting.as_built import Stretches
from infold.inspecting.changed_definitions import ChangedDefinitions
from infold.messages.errors import InfoldError
from infold.running.keep_definitions import keep_definitions

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
    """
    A change that builds all of a table with cells of earlier definitions gives these other rows,
    whatever is proven of the newest definition: no column is kept, and it is breaking.
    """
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
    """Tags, and the same query in other words, leave the cells of earlier definitions."""
    _, ledger = stretched(SHOP, MORE)
    text = MORE["models/daily.sql"].replace("incremental: {}", "incremental: {}\ntags: [a]")
    found = ChangedDefinitions(project({**MORE, "models/daily.sql": text}), ledger).all()
    assert [(one.category, one.rewrites_until) for one in found] == [(Category.METADATA, None)]
