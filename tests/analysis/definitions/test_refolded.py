"""Which changes of sessions are carried out by making some of them again."""

from __future__ import annotations

import pytest
from tests.analysis.fingerprints import redefinitions
from tests.declare.shop import SHOP

from infold.core.definition import Category, How, Redefinition

GAP = "user: user_id, gap: 30 minutes"
SELECT = "SELECT count(*) AS events, sum(amount) AS revenue FROM clicks"


def sessions(keys: str, select: str = SELECT) -> dict[str, str]:
    """The shop with other sessions."""
    head = f"---\nmaterialization: sessions\nsessions: {{{keys}}}\n---\n"
    files = {name: text for name, text in SHOP.items() if name != "models/daily.sql"}
    view = "---\nmaterialization: view\n---\nSELECT * FROM clicks WHERE url IS NOT NULL\n"
    return {**files, "models/seen.sql": view, "models/sessions.sql": f"{head}{select}\n"}


def redefined(before: dict[str, str], after: dict[str, str]) -> Redefinition:
    """The change of the sessions."""
    return redefinitions(before, after)["sessions"]


CUT = f"{GAP}, cuts: {{campaign: [url], start_events: \"url = '/'\"}}"


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (GAP, "user: user_id, gap: 20 minutes"),
        (GAP, f"{GAP}, cuts: {{midnight: Europe/London}}"),
        (f"{GAP}, cuts: {{midnight: Europe/London}}", GAP),
        (f"{GAP}, cuts: {{midnight: Europe/London}}", f"{GAP}, cuts: {{midnight: Asia/Tokyo}}"),
        (GAP, "user: user_id, gap: 40 minutes, max_length: 2 hours"),
        (f"{GAP}, max_length: 2 hours", GAP),
        (CUT, f"{GAP}, cuts: {{campaign: [url]}}"),
        (GAP, f"{GAP}, quarantine_after: 2 hours"),
        (
            f"{GAP}, quarantine_after: 2 hours",
            f"{GAP}, quarantine_after: 3 hours, keep: head",
        ),
    ],
)
def test_other_ends(before: str, after: str) -> None:
    """Where a session ends by its times, or counts by its length, the stored ones tell; layout,
    comments and views of the query do not matter.
    """
    for of in ("clicks", "seen"):
        text = SELECT.replace("clicks", of)
        words = text.replace(" FROM", " /* money */\nFROM").replace("sum(", "SUM(")
        found = redefined(sessions(before, text), sessions(after, words))

        assert (found.category, found.how) == (Category.BREAKING, How.REFOLD)


SHORT = "user: user_id, gap: 20 minutes"


@pytest.mark.parametrize(
    ("before", "after", "select"),
    [
        (f"{GAP}, cuts: {{campaign: [url]}}", CUT, SELECT),
        (GAP, f"{GAP}, cuts: {{campaign: [url]}}", SELECT),
        (f"{GAP}, cuts: {{campaign: [url]}}", GAP, SELECT),
        (f"{GAP}, quarantine_after: 2 hours", GAP, SELECT),
        (GAP, "user: url, gap: 30 minutes", SELECT),
        (GAP, f"{SHORT}, session_number: true", SELECT),
        ("identifier: url", "identifier: url, gap: 30 minutes", SELECT),
        (GAP, SHORT, f"{SELECT} WHERE url IS NOT NULL"),
        (GAP, SHORT, SELECT.replace("clicks", "seen")),
        (GAP, SHORT, SELECT.replace("count(*)", "count(url)")),
        (GAP, SHORT, SELECT.replace("sum(amount) AS revenue", "max(amount) AS most")),
    ],
)
def test_what_is_built_again(before: str, after: str, select: str) -> None:
    """Other events, users, columns or campaigns, and no quarantine any more, are built again."""
    assert redefined(sessions(before), sessions(after, select)).how is How.REBUILD
