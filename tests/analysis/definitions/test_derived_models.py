"""
Which changed models are carried out by deriving rows, and what else is known of the change.

Which changes of the granularity alone are proven to change no row.
"""

from __future__ import annotations

import pytest
from tests.analysis.fingerprints import redefinitions
from tests.declare.shop import SHOP

from infold.core.definition import Category, How, Redefinition

HEAD = """\
---
materialization: table
timeseries: {event_time_column: session_start, partition_column: day, granularity: day}
incremental: {}
---
"""
ROWS = "SELECT cast(session_start AS date) AS day, user_id, revenue FROM sessions"
UNION = f"SELECT {{}} FROM ({ROWS} UNION ALL {ROWS}) AS q"


def redefined(before: str, after: str, yaml: str = SHOP["infold.yml"]) -> Redefinition:
    """The change of the daily table, and of the project's file."""
    old = {**SHOP, "models/daily.sql": before}
    return redefinitions(old, {**SHOP, "models/daily.sql": after, "infold.yml": yaml})["daily"]


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


@pytest.mark.parametrize(
    ("before", "after", "category"),
    [
        (ROWS, ROWS.replace("revenue", "revenue, revenue * 2 AS twice"), Category.ADDITIVE),
        (ROWS, ROWS.replace("user_id, revenue", "revenue, user_id"), Category.NONE),
        (UNION.format("day, user_id, revenue"), UNION.format("day, revenue"), Category.BREAKING),
    ],
    ids=["added", "another order", "of a union"],
)
def test_other_columns(before: str, after: str, category: Category) -> None:
    """A column that follows is additive; others are derived too, whatever is called the change."""
    found = queries(before, after)

    assert (found.category, found.how) == (category, How.DERIVE)


def test_a_moved_start() -> None:
    """No row is proven to stay; all values are known nevertheless."""
    found = redefined(
        HEAD + ROWS, HEAD.replace("incremental: {}", "incremental: {start: 2024-01-05}") + ROWS
    )

    assert (found.category, found.how) == (Category.BREAKING, How.DERIVE)
    assert found.columns_kept == frozenset()
    assert found.derivation is not None
    assert found.derivation.changes_nothing


WHOLE = HEAD.replace("incremental: {}", "tags: [whole]")
LIMITED = HEAD.replace("{}", "{safety_overrides: {allow_limit: true}}")
VOUCHED = HEAD.replace("{}", "{safety_overrides: {allow_nondeterministic: true}}") + ROWS.replace(
    "revenue", "max(revenue) AS m, any_value(entry_url) AS u"
)
SHIFTED = "date_add(cast(session_start AS date), 1) AS day"


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (HEAD + ROWS, HEAD + ROWS.replace("cast(session_start AS date) AS day", SHIFTED)),
        (
            HEAD + ROWS.replace("revenue", "revenue, cast(session_start AS date) AS other"),
            HEAD + ROWS.replace("cast(session_start AS date) AS day", SHIFTED),
        ),
        (WHOLE + ROWS, WHOLE + ROWS.replace(", revenue", "")),
        (LIMITED + ROWS + " LIMIT 3", LIMITED + ROWS.replace(", revenue", "") + " LIMIT 3"),
        (VOUCHED + " GROUP BY ALL", VOUCHED + " GROUP BY ALL HAVING max(revenue) > 1"),
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
    one = {"infold.yml": old, "models/clicks.sql": before}
    return redefinitions(one, {"infold.yml": new, "models/clicks.sql": after})["clicks"]


@pytest.mark.parametrize(
    ("before", "after", "files", "yaml"),
    [
        (EVENTS, PLAIN, (), SOURCE),
        (EVENTS, EVENTS.replace("url, amount", "amount, upper(url) AS u"), (), SOURCE),
        (EVENTS, EVENTS + " AND amount > 1", (), SOURCE),
        (PLAIN, EVENTS, ("url",), SOURCE),
        (PLAIN, PLAIN.replace("amount", "concat(url, user_id) AS u"), ("u",), SOURCE),
        (PLAIN, EVENTS, ("url",), OPTIONAL),
        (EVENTS, PLAIN, (), OPTIONAL),
    ],
    ids=["dropped", "computed", "narrowed", "added", "expression", "optional", "no longer"],
)
def test_events(before: str, after: str, files: tuple[str, ...], yaml: str) -> None:
    """Events follow from stored rows too, and from what the files have in other columns. An
    optional column that is read for the first time, or no longer, decides which rows can be used.
    """
    found = events(before, after, yaml, yaml)

    assert (found.category, found.how) == (Category.BREAKING, How.DERIVE)
    assert found.derivation is not None
    assert found.derivation.from_files == files
    assert found.derivation.other_source_columns is (yaml is OPTIONAL)


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


MONTHLY = HEAD.replace("granularity: day", "granularity: month")
WEEKLY = HEAD.replace("granularity: day", "granularity: week, week_start: sunday")
EVERY = frozenset({"day", "user_id", "revenue"})


@pytest.mark.parametrize(("before", "after"), [(HEAD, MONTHLY), (MONTHLY, HEAD), (WEEKLY, MONTHLY)])
def test_another_granularity(before: str, after: str) -> None:
    """Longer, shorter or other cells of the same rows: no column changes, and none is lost."""
    found = redefined(before + ROWS, after + ROWS.replace(" AS day", "  AS  day"))

    assert (found.category, found.how) == (Category.METADATA, How.REBUCKET)
    assert (found.columns_kept, found.losses) == (EVERY, ())
    assert [one.part for one in found.differences] == ["granularity", "layout"]


@pytest.mark.parametrize(
    "after",
    [
        MONTHLY + ROWS.replace(", revenue", ""),
        MONTHLY + ROWS.replace("user_id, revenue", "revenue, user_id"),
        MONTHLY + ROWS + " WHERE revenue > 0",
        MONTHLY.replace("incremental: {}", "incremental: {start: 2024-01-05}") + ROWS,
    ],
    ids=["column", "order", "where", "start"],
)
def test_anything_else_beside_it(after: str) -> None:
    """Only the granularity may differ."""
    assert redefined(HEAD + ROWS, after).how is How.REBUILD


def test_what_somebody_vouches_for_is_no_proof() -> None:
    """A query that may give other rows by other cells is built again."""
    rows = f"{ROWS} LIMIT 3"
    vouched = "incremental: {safety_overrides: {allow_limit: true}}"
    before, after = (head.replace("incremental: {}", vouched) for head in (HEAD, MONTHLY))
    found = redefined(before + rows, after + rows)

    assert found.how is How.REBUILD


def test_events_and_sessions() -> None:
    """Their rows do not depend on their cells either."""
    series = "timeseries: {event_time_column: session_start, granularity: day}"
    files = {**SHOP, "models/sessions.sql": f"---\n{series}" + SHOP["models/sessions.sql"][3:]}
    longer = {
        name: text.replace("granularity: day", "granularity: month")
        for name, text in files.items()
        if name in ("models/clicks.sql", "models/sessions.sql")
    }
    found = redefinitions(files, {**files, **longer})

    assert {name: one.how for name, one in found.items()} == {
        "clicks": How.REBUCKET,
        "sessions": How.REBUCKET,
    }
