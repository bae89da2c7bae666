"""Which changes of sessions make some of them again, or follow from stored states, and how."""

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


STATES = (
    "SELECT count(*) AS n, sum(amount) AS x, count(amount) AS c, max(url = '/') AS home, "
    "first(url) FILTER (WHERE amount > 1 AND url IS NOT NULL) AS f, collect_list(url) AS urls, "
    "size(collect_set(url)) AS kinds FROM clicks"
)
IDENTIFIER = "identifier: url, user: user_id"
UPPER = "user: upper(user_id), gap: 1 hour"


@pytest.mark.parametrize(
    "select",
    [
        "SELECT sum(amount) AS x FROM clicks",
        "SELECT sum(amount) AS money, count(*) AS n FROM clicks",
        "SELECT count(1) AS n, avg(c.amount) AS mean FROM clicks AS c",
        "SELECT sum(amount) / count(*) AS per FROM clicks",
        "SELECT isnull(bool_or(url = '/')) AS b, 1 AS one FROM clicks",
        "SELECT first(url) FILTER (WHERE url IS NOT NULL AND (amount > 1)) || 'x' AS f FROM clicks",
        "SELECT array_max(collect_list(url)) AS last, size(collect_set(url)) AS k FROM clicks",
        "SELECT unix_micros(session_end) - unix_micros(session_start) AS length FROM clicks",
        "SELECT user_id || '!' AS who FROM clicks",
        "SELECT count(*) AS n FROM clicks WHERE user_id IS NOT NULL AND upper(user_id) LIKE 'A%'",
        "SELECT count(*) AS n FROM clicks AS c WHERE c.user_id NOT IN ('bot', 'test')",
    ],
)  # fmt: skip
def test_what_follows(select: str) -> None:
    """Values of the same events, in any expression; conditions on the user."""
    found = redefined(sessions(GAP, STATES), sessions(GAP, select))

    assert found.how is How.DERIVE
    assert found.derivation is not None


@pytest.mark.parametrize(
    "select",
    [
        "SELECT max(amount) AS x FROM clicks",
        "SELECT sum(amount * 1) AS x FROM clicks",
        "SELECT sum(amount) FILTER (WHERE amount > 1) AS x FROM clicks",
        "SELECT count(url) AS n FROM clicks",
        "SELECT last(url) FILTER (WHERE amount > 1 AND url IS NOT NULL) AS f FROM clicks",
        "SELECT first(url) AS f FROM clicks",
        "SELECT first(url, true) FILTER (WHERE amount > 1 AND url IS NOT NULL) AS f FROM clicks",
        "SELECT size(collect_set(url)) + 1 AS kinds FROM clicks",
        "SELECT collect_list(event_id) AS urls FROM clicks",
        "SELECT count(*) AS n FROM clicks WHERE amount > 1",
        "SELECT count(*) AS n FROM clicks WHERE user_id = url",
        "SELECT count(*) AS n FROM clicks WHERE user_id = 'a' OR amount > 1",
        "SELECT count(*) AS n FROM clicks WHERE collate(user_id, 'UTF8_LCASE') = 'a'",
        "SELECT count(*) AS n FROM seen",
    ],
)  # fmt: skip
def test_what_no_state_tells(select: str) -> None:
    """Other values, other events, and conditions that differ within a session."""
    assert redefined(sessions(GAP, STATES), sessions(GAP, select)).how is How.REBUILD


@pytest.mark.parametrize(
    ("before", "after", "condition", "how"),
    [
        (GAP, "user: user_id, gap: 20 minutes", "user_id <> 'a'", How.REBUILD),
        (IDENTIFIER, IDENTIFIER, "url <> '/'", How.DERIVE),
        (IDENTIFIER, IDENTIFIER, "user_id <> 'a'", How.REBUILD),
        ("identifier: [url, event_id]", "identifier: [url, event_id]", "url <> '/'", How.REBUILD),
        (UPPER, UPPER, "user_id <> 'a'", How.REBUILD),
        (
            f"{IDENTIFIER}, without_identifier: {{gap: 1 hour}}",
            f"{IDENTIFIER}, without_identifier: {{gap: 1 hour}}",
            "url <> '/'",
            How.REBUILD,
        ),
    ],
)  # fmt: skip
def test_what_a_session_is_of(before: str, after: str, condition: str, how: How) -> None:
    """A condition is about what all events of a session share, and keys stay as they are."""
    select = "SELECT count(*) AS n FROM clicks"
    found = redefined(sessions(before, select), sessions(after, f"{select} WHERE {condition}"))

    assert found.how is how


def test_how_it_follows() -> None:
    """Stored outputs by their names, others as written; conditions about the stored owner."""
    select = "SELECT avg(amount) AS mean, max(url) AS last FROM clicks WHERE amount > 0"
    words = "SELECT max(c.url) AS url, sum(c.amount) AS x FROM clicks c WHERE c.url > ''"
    words += " AND (c.amount > 0)"
    found = redefined(sessions(IDENTIFIER, select), sessions(IDENTIFIER, words))

    assert (found.category, found.losses) == (Category.BREAKING, ("mean", "last"))
    assert found.derivation is not None
    assert found.derivation.columns[-2:] == (("url", "`last`"), ("x", "sum(c.amount)"))
    assert found.derivation.where == ("`session_identifier` > ''",)
    assert found.derivation.sessions is not None
    calls = [(one.name, one.call, one.argument) for one in found.derivation.sessions.aggregates]
    assert calls[:2] == [("_a0", "avg", "amount"), ("_a1", "max", "url")]


VIEW = (
    "---\nmaterialization: view\n---\nSELECT user_id, event_id, event_ts, {0} AS value FROM {1}\n"
)


@pytest.mark.parametrize(("value", "how"), [("amount", How.DERIVE), ("length(url)", How.REBUILD)])
def test_views(value: str, how: How) -> None:
    """The same words over another view mean something else."""
    select = "SELECT sum(value) AS x, count(value) AS n FROM seen"
    before = {**sessions(GAP, select), "models/seen.sql": VIEW.format("amount", "clicks")}
    after = sessions(
        GAP, select.replace("count(value) AS n", "avg(value) AS m").replace("sum", "SUM")
    )

    assert redefined(before, {**after, "models/seen.sql": VIEW.format(value, "clicks")}).how is how


def test_other_events() -> None:
    """Events that another view has, or that an earlier condition left out, are in no session."""
    select, fewer = "SELECT count(*) AS n, sum(value) AS x FROM seen", "SELECT 1 AS one FROM seen"
    view, other = (VIEW.format("amount", of) for of in ("clicks", "clicks WHERE url <> '/'"))
    before = {**sessions(GAP, select), "models/seen.sql": view}
    narrow = {**before, **sessions(GAP, f"{select} WHERE value > 0"), "models/seen.sql": view}

    assert redefined(before, {**sessions(GAP, fewer), "models/seen.sql": view}).how is How.DERIVE
    assert redefined(before, {**sessions(GAP, fewer), "models/seen.sql": other}).how is How.REBUILD
    assert redefined(narrow, {**sessions(GAP, fewer), "models/seen.sql": view}).how is How.REBUILD


def test_a_condition_in_place_of_another() -> None:
    """What the earlier one left out may be kept by the new one."""
    text = "SELECT count(*) AS n FROM clicks WHERE"
    found = redefined(sessions(GAP, f"{text} amount > 1"), sessions(GAP, f"{text} user_id > ''"))

    assert found.how is How.REBUILD


def test_a_moved_start() -> None:
    """Events before an earlier start are nowhere in the stored sessions."""
    before, after = sessions(GAP), sessions(GAP, "SELECT count(*) AS events FROM clicks")
    for files, start in ((before, "2024-01-05"), (after, "2024-01-03")):
        text = files["models/sessions.sql"]
        files["models/sessions.sql"] = text.replace("sessions\n", f"sessions\nstart: {start}\n", 1)

    assert redefined(before, after).how is How.REBUILD
