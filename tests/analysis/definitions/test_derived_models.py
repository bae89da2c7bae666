"""Which changed models are carried out by deriving rows, and what else is known of the change."""

from __future__ import annotations

import pytest
from tests.declare.shop import SHOP, project

from infold.analysis.definitions.compare import compare_projects
from infold.core.definition import Category, How, Redefinition

HEAD = """\
---
materialization: table
timeseries: {event_time_column: session_start, partition_column: day, granularity: day}
incremental: {}
---
"""
ROWS = "SELECT cast(session_start AS date) AS day, user_id, revenue FROM sessions"


def redefined(before: str, after: str, yaml: str = SHOP["infold.yml"]) -> Redefinition:
    """The change of the daily table, and of the project's file."""
    old = project({**SHOP, "models/daily.sql": before})
    new = project({**SHOP, "models/daily.sql": after, "infold.yml": yaml})
    found = compare_projects(old.nodes, old.sources, new.nodes, new.sources)
    return next(one for one in found if one.model == "daily")


def queries(before: str, after: str) -> Redefinition:
    """The change of the daily table's query."""
    return redefined(HEAD + before, HEAD + after)


def test_a_dropped_column() -> None:
    """The other columns are kept; the dropped one is the loss."""
    found = queries(ROWS, ROWS.replace(", revenue", ""))

    assert (found.category, found.how, found.losses) == (
        Category.BREAKING,
        How.DERIVE,
        ("revenue",),
    )
    assert found.derivation is not None
    assert found.derivation.columns == (("day", "`day`"), ("user_id", "`user_id`"))
    assert not found.derivation.changes_nothing


def test_an_added_column() -> None:
    """A column that follows is additive."""
    found = queries(ROWS, ROWS.replace("revenue", "revenue, revenue * 2 AS twice"))

    assert (found.category, found.how) == (Category.ADDITIVE, How.DERIVE)


def test_another_order() -> None:
    """The same columns in another order are none, and written by deriving them."""
    found = queries(ROWS, ROWS.replace("user_id, revenue", "revenue, user_id"))

    assert (found.category, found.how) == (Category.NONE, How.DERIVE)


def test_the_order_of_columns_in_a_union() -> None:
    """So are those of a UNION ALL."""
    union = "SELECT {0} FROM ({1} UNION ALL {1}) AS q"
    found = queries(union.format("day, user_id, revenue", ROWS), union.format("day, revenue", ROWS))

    assert found.how is How.DERIVE


def test_a_moved_start() -> None:
    """No row is proven to stay; all values are known nevertheless."""
    found = redefined(
        HEAD + ROWS, HEAD.replace("incremental: {}", "incremental: {start: 2024-01-05}") + ROWS
    )

    assert (found.category, found.how) == (Category.BREAKING, How.DERIVE)
    assert found.columns_kept == frozenset()
    assert found.derivation is not None
    assert found.derivation.changes_nothing


SHIFTED = "date_add(cast(session_start AS date), 1) AS day"


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (HEAD + ROWS, HEAD + ROWS.replace("cast(session_start AS date) AS day", SHIFTED)),
        (
            HEAD + ROWS.replace("revenue", "revenue, cast(session_start AS date) AS other"),
            HEAD + ROWS.replace("cast(session_start AS date) AS day", SHIFTED),
        ),
        (
            HEAD.replace("incremental: {}", "tags: [whole]") + ROWS,
            HEAD.replace("incremental: {}", "tags: [whole]") + ROWS.replace(", revenue", ""),
        ),
        (
            HEAD.replace("{}", "{safety_overrides: {allow_limit: true}}") + ROWS + " LIMIT 3",
            HEAD.replace("{}", "{safety_overrides: {allow_limit: true}}")
            + ROWS.replace(", revenue", "")
            + " LIMIT 3",
        ),
        (
            HEAD.replace("{}", "{safety_overrides: {allow_nondeterministic: true}}")
            + ROWS.replace("revenue", "max(revenue) AS m, any_value(entry_url) AS u")
            + " GROUP BY ALL",
            HEAD.replace("{}", "{safety_overrides: {allow_nondeterministic: true}}")
            + ROWS.replace("revenue", "max(revenue) AS m, any_value(entry_url) AS u")
            + " GROUP BY ALL HAVING max(revenue) > 1",
        ),
        (HEAD + ROWS, HEAD + ROWS.replace("FROM sessions", "FROM sessions WHERE events > 1")),
        (
            HEAD + ROWS.replace(", revenue", " "),
            HEAD + ROWS.replace(", revenue", " ") + " WHERE collate(user_id, 'UTF8_LCASE') = 'a'",
        ),
    ],
    ids=["moved", "other cells", "whole", "limit", "vouched", "unknown", "letters"],
)  # fmt: skip
def test_built_again(before: str, after: str) -> None:
    """Rows in other cells, tables without cells, and what nobody proves are built."""
    found = redefined(before, after)

    assert found.how is How.REBUILD
    assert found.derivation is None


EVENTS = SHOP["models/clicks.sql"]
SOURCE = SHOP["infold.yml"]
OPTIONAL = SOURCE.replace("url: string", "url: {type: string, optional: true}")
WIDER = SOURCE.replace("decimal(18,2)", "decimal(20,2)")
PLAIN = EVENTS.replace(", url", "")
LATER = "event_ts + INTERVAL 1 DAY AS event_ts"


def events(before: str, after: str, old: str = SOURCE, new: str = SOURCE) -> Redefinition:
    """The change of the events, and of the project's file."""
    one = project({"infold.yml": old, "models/clicks.sql": before})
    two = project({"infold.yml": new, "models/clicks.sql": after})
    found = compare_projects(one.nodes, one.sources, two.nodes, two.sources)
    return next(change for change in found if change.model == "clicks")


@pytest.mark.parametrize(
    ("before", "after", "files", "other"),
    [
        (EVENTS, PLAIN, (), False),
        (EVENTS, EVENTS.replace("url, amount", "amount, upper(url) AS u"), (), False),
        (EVENTS, EVENTS + " AND amount > 1", (), False),
        (PLAIN, EVENTS, ("url",), False),
        (PLAIN, PLAIN.replace("amount", "concat(url, user_id) AS u"), ("u",), False),
    ],
    ids=["dropped", "computed", "narrowed", "added", "expression"],
)
def test_events(before: str, after: str, files: tuple[str, ...], other: bool) -> None:
    """Events follow from stored rows too, and from what the files have in other columns."""
    found = events(before, after)

    assert (found.category, found.how) == (Category.BREAKING, How.DERIVE)
    assert found.derivation is not None
    assert (found.derivation.from_files, found.derivation.other_source_columns) == (files, other)


def test_optional_columns_of_events() -> None:
    """A column that is read for the first time, or no longer, decides which rows can be used."""
    for before, after, files in ((PLAIN, EVENTS, ("url",)), (EVENTS, PLAIN, ())):
        found = events(before, after, OPTIONAL, OPTIONAL).derivation
        assert found is not None
        assert (found.from_files, found.other_source_columns) == (files, True)


@pytest.mark.parametrize(
    ("before", "after", "old", "new"),
    [
        (EVENTS, EVENTS.replace(" WHERE user_id IS NOT NULL", ""), SOURCE, SOURCE),
        (EVENTS, EVENTS.replace("event_id,", "upper(event_id) AS event_id,"), SOURCE, SOURCE),
        (EVENTS, EVENTS.replace("event_ts, url", f"{LATER}, url"), SOURCE, SOURCE),
        (EVENTS, EVENTS.replace("[event_id]", "[user_id]"), SOURCE, SOURCE),
        (EVENTS, EVENTS + " AND seen_at > event_ts", SOURCE, SOURCE),
        (EVENTS, PLAIN, SOURCE, WIDER),
        (EVENTS, EVENTS, SOURCE, SOURCE.replace("2024-01-01", "2024-01-02")),
        (EVENTS, EVENTS, SOURCE, SOURCE.replace("url: string", "url: string\n      more: int")),
    ],
    ids=["widened", "key", "time", "other key", "not stored", "type", "start", "unread"],
)  # fmt: skip
def test_events_that_are_ingested_again(before: str, after: str, old: str, new: str) -> None:
    """What other rows may be stored by is read from all files."""
    assert events(before, after, old, new).how is How.REBUILD
