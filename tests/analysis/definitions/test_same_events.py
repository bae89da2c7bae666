"""What two definitions of an events model have in common."""

from __future__ import annotations

from collections.abc import Mapping

import pytest
from tests.declare.shop import SHOP, project

from infold.analysis.definitions.meanings import Meanings
from infold.analysis.definitions.same_events import same_events
from infold.core.definition import SameEvents

YML = """
name: shop
start: 2024-01-01
sources:
  raw.clicks:
    path: landing/clicks/*.json
    event_time_column: event_ts
    columns:
      event_id: string
      user_id: string
      event_ts: timestamp
      url: string
      amount: "decimal(18,2)"
      coupon: {type: string, optional: true}
  raw.pages: {path: pages.json, columns: {url: string, section: string, at: timestamp}}
  raw.users: {path: users.json, columns: {url: string, section: string, at: timestamp}}
"""
CLICKS = """---
materialization: events
unique_key: [event_id]
timeseries: {event_time_column: event_ts, granularity: day}
---
SELECT event_id, user_id, event_ts, url, amount FROM raw.clicks WHERE user_id IS NOT NULL
"""
LOOKED_UP = "c.url, p.section FROM raw.clicks c LEFT JOIN raw.pages p ON c.url = p.url"
FILES = {"infold.yml": YML, "models/clicks.sql": CLICKS}


def compared(old: Mapping[str, str], new: Mapping[str, str]) -> SameEvents:
    """What the events of two projects have in common."""
    one, two = (project({**FILES, **files}) for files in (old, new))
    found = same_events(
        Meanings.of(one, one.sources)["clicks"], Meanings.of(two, two.sources)["clicks"]
    )
    assert found is not None
    return found


def spoilt(*pairs: tuple[str, str], file: str = "models/clicks.sql") -> Mapping[str, str]:
    """One file, with some words replaced."""
    text = FILES[file]
    for old, new in pairs:
        assert old in text
        text = text.replace(old, new)
    return {file: text}


@pytest.mark.parametrize(
    ("changed", "rows"),
    [
        ([("url, amount", "amount * 2 AS url2, url")], True),
        ([("url, amount", "url, amount, coupon")], True),
        ([("event_id,", "event_id AS EVENT_ID,")], True),
        ([("WHERE user_id IS NOT NULL", "")], False),
        ([("user_id IS NOT NULL", "user_id IS NOT NULL AND url <> '/'")], False),
        ([("unique_key", "prefer: [amount desc]\nunique_key")], True),
        ([("url, amount FROM raw.clicks", LOOKED_UP)], False),
    ],
    ids=str,
)
def test_the_same_events(changed: list[tuple[str, str]], rows: bool) -> None:
    """Other columns and conditions leave the key and the time of each row of a file alone; a join
    with a lookup may repeat rows, whose key and time are those of the source.
    """
    assert compared({}, spoilt(*changed)) == SameEvents(rows=rows)


@pytest.mark.parametrize(
    ("changed", "why"),
    [
        ([("event_id,", "upper(event_id) AS event_id,")], "other values"),
        ([("event_ts, url", "event_ts + INTERVAL 1 HOUR AS event_ts, url")], "other values"),
        ([("[event_id]", "[user_id]")], "unique_key"),
        ([("unique_key", "deduplicate: everywhere\nunique_key")], "both sides"),
    ],
    ids=str,
)
def test_other_events(changed: list[tuple[str, str]], why: str) -> None:
    """Another key, event time or identity may make a row another event."""
    found = compared({}, spoilt(*changed))
    assert why in found.other
    assert not found.rows


def test_a_key_of_another_lookup() -> None:
    """Columns of equal names and places in two lookups are not the same values."""
    text = CLICKS.replace("[event_id]", "[section]").replace(
        "url, amount FROM raw.clicks",
        "c.url, p.section FROM raw.clicks c JOIN raw.pages p ON c.url = p.url",
    )
    other = text.replace("raw.pages", "raw.users")
    found = compared({"models/clicks.sql": text}, {"models/clicks.sql": other})
    assert "other values" in found.other


@pytest.mark.parametrize(
    ("changed", "why"),
    [
        ([("event_ts\n", "event_ts\n    timestamp_format: epoch_millis\n")], "timestamp_format"),
        ([("decimal(18,2)", "decimal(20,2)")], "column amount of its source"),
        ([("      url: string\n", "      url: string\n      more: string\n")], ""),
    ],
    ids=str,
)
def test_the_source(changed: list[tuple[str, str]], why: str) -> None:
    """A source that is read in another way may give other times; more columns are all right."""
    assert why in compared({}, spoilt(*changed, file="infold.yml")).other or not why
    assert bool(compared({}, spoilt(*changed, file="infold.yml")).other) is bool(why)


def test_a_column_that_is_no_longer_read() -> None:
    """The newest definition reads all that the earlier ones read."""
    old = spoilt(("url, amount", "url, amount, coupon"))
    assert "column coupon of its source no longer" in compared(old, {}).other


def test_other_kinds_have_no_events() -> None:
    """Only two events models are compared so."""
    shop = project()
    of = Meanings.of(shop, shop.sources)
    assert "models/daily.sql" in SHOP
    assert same_events(of["daily"], of["daily"]) is None
