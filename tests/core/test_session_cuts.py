"""Session cuts are declared once, and every phase knows each of them."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from infold.core.session_cuts import (
    Campaign,
    DeclaredCut,
    EventSql,
    MaxLength,
    Midnight,
    Rule,
    SqlType,
    StartEvents,
)
from infold.declare import models as declared

# By name: a dataclass with slots leaves the class behind that it was made from.
DECLARED = {cut.__name__ for cut in DeclaredCut.__subclasses__()}
DOCS = Path(__file__).parents[2] / "docs"
EVERY = (
    Midnight("Europe/Berlin"),
    Campaign(("source", "medium"), direct=("direct",)),
    StartEvents("name = 'login'"),
    Rule("ends(url)"),
    MaxLength(3_600_000_000),
)


def test_spark_has_a_file_for_every_cut() -> None:
    """Spark has an object of the declared sort for every cut, and so have the examples here."""
    from infold.spark.sessions.cuts import CUTS
    from infold.spark.sessions.cuts.base import PairwiseCut

    assert {type(cut).__name__ for cut in EVERY} == {cut.__name__ for cut in CUTS} == DECLARED
    for cut in EVERY:
        assert isinstance(CUTS[type(cut)](cut), PairwiseCut) == cut.pairwise


@pytest.mark.parametrize("cut", EVERY, ids=lambda cut: cut.key)
def test_every_cut_has_a_key_that_can_be_declared(cut: DeclaredCut) -> None:
    """The key of a cut is read by ``declare``, and the reference describes it."""
    above, _, own = cut.key.rpartition(".")
    assert own in (declared.CUTS if above else declared.SESSION_KEYS)
    assert f"`{own}`" in (DOCS / "reference" / "keys.md").read_text()


def test_sql_over_one_event_has_its_place_and_type() -> None:
    """A campaign has columns, also as a short list; a start event is a condition."""
    assert [one for cut in EVERY for one in cut.event_sql] == [
        EventSql(("cuts.campaign.columns.0", "cuts.campaign.0"), "source"),
        EventSql(("cuts.campaign.columns.1", "cuts.campaign.1"), "medium"),
        EventSql(("cuts.start_events",), "name = 'login'", SqlType.BOOLEAN),
        EventSql(("cuts.rule",), "ends(url)"),
    ]


def test_cuts_in_words() -> None:
    """``infold explain`` describes each cut in words."""
    assert [cut.in_words for cut in EVERY] == [
        "midnight in Europe/Berlin",
        "a change of campaign",
        "an event that begins a session",
        "the rule ends(url)",
        "a length of 1 hour",
    ]


def test_the_contributors_page_names_every_phase() -> None:
    """The table of the page lists exactly the methods of a cut within islands."""
    from infold.spark.sessions.cuts.base import InnerCut

    page = (DOCS / "contributing.md").read_text()
    table = page.partition("| phase | method |")[2].partition("\n\n")[0]
    named = {name for row in table.splitlines()[2:] for name in re.findall(r"`(\w+)`", row)}
    assert named == {name for name in vars(InnerCut) if not name.startswith("_")}
