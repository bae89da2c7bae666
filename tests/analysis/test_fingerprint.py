# ruff: noqa: E501 (one case is one row of a table)
"""
A model's fingerprint changes with its definition and with nothing else.

Every key of a declaration either changes the fingerprint or changes no row. A key that is in none of
the lists below fails here: whoever adds one says which it is, and how the fingerprint includes it.
That it does is tested with the categories of changes (definitions/test_categories.py).
"""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from sqlglot.tokenizer_core import Token, TokenType
from tests.analysis.fingerprints import ALL, BEFORE, changed, fingerprints
from tests.declare.shop import SESSIONS

from infold.analysis.sql.parse import parse
from infold.declare import models, project, sources
from infold.declare import models as sessions
from infold.declare import models as versions

SPACE = st.sampled_from([" ", "\n", "\t", "  \n ", " /* ; -- */ ", " -- select\n", "\r\n"])
WORDS = frozenset({TokenType.STRING, TokenType.NUMBER, TokenType.IDENTIFIER})


@pytest.mark.deep
@given(data=st.data())
def test_layout_comments_and_case_do_not_count(data: st.DataObject) -> None:
    """Spacing, comments and case of words do not change the fingerprint of any query."""
    file = data.draw(st.sampled_from(["clicks", "sessions", "daily", "paid", "totals"]))
    text = ALL[f"models/{file}.sql"]
    front, _, sql = text.partition("---\n")[2].partition("---\n")
    parsed = parse("m.sql", sql)
    spaces = data.draw(
        st.lists(SPACE, min_size=len(parsed.text.tokens), max_size=len(parsed.text.tokens))
    )
    cases = data.draw(st.lists(st.booleans(), min_size=len(spaces), max_size=len(spaces)))
    words = [
        cased(parsed.text.sql, token, upper=upper)
        for token, upper in zip(parsed.text.tokens, cases, strict=True)
    ]
    sql = "".join(space + word for space, word in zip(spaces, words, strict=True))

    assert fingerprints({**ALL, f"models/{file}.sql": f"---\n{front}---\n{sql}"}) == BEFORE


def cased(sql: str, token: Token, *, upper: bool) -> str:
    """A token's own text, in other letters where that says the same."""
    written = sql[token.start : token.end + 1]
    return written.upper() if upper and token.token_type not in WORDS else written


@pytest.mark.parametrize(
    ("file", "old", "new"),
    [
        ("models/daily.sql", "incremental: {}", "incremental: {enabled: true}\ntags: [x]\ndescription: days"),
        ("models/daily.sql", "GROUP BY 1", "GROUP BY 1;"),
        ("models/clicks.sql", "unique_key: [event_id]", "unique_key: EVENT_ID"),
        ("models/clicks.sql", "unique_key", "deduplicate: same_time\nunique_key"),
        ("models/clicks.sql", "FROM raw.clicks", "FROM `raw`.`clicks`"),
        ("infold.yml", "format: json", "settle: 5 minutes"),
        ("infold.yml", "format: json", "on_drift: evolve"),
        ("infold.yml", "path: landing/clicks/*.json", "path: elsewhere/**/*.json"),
    ],
)  # fmt: skip
def test_keys_that_do_not_define_content(file: str, old: str, new: str) -> None:
    """Tags, descriptions, waiting, locations of files and
    written-out defaults do not change the fingerprint.
    """
    assert changed(file, old, new) == set()


@pytest.mark.parametrize(
    ("file", "old", "new", "stale"),
    [
        ("models/clicks.sql", "IS NOT NULL", "<> ''", {"clicks"}),
        ("models/clicks.sql", "granularity: day", "granularity: hour", {"clicks"}),
        ("models/clicks.sql", "url, amount", "url, amount, seen_at", {"clicks", "paid", "totals"}),
        ("models/sessions.sql", "sum(amount)", "max(amount)", {"sessions"}),
        ("models/daily.sql", "incremental: {}\n", "", {"daily"}),
        ("models/paid.sql", "> 0", "> 1", {"paid", "totals"}),
        ("models/totals.sql", "FROM paid", "FROM clicks", {"totals"}),
        ("infold.yml", "start: 2024-01-01", "start: 2020-01-01", {"clicks", "daily"}),
        ("infold.yml", "amount: decimal(18,2)", "amount: decimal(18,3)", {"clicks"}),
        ("infold.yml", "user_id: string", "User_id: string", {"clicks"}),
        ("infold.yml", "amount: decimal(18,2)", "amount: DECIMAL(18,2)", {"clicks"}),
    ],
)  # fmt: skip
def test_keys_that_define_content(file: str, old: str, new: str, stale: set[str]) -> None:
    """The query, its views and the types of its columns; the keys are in DEFINES."""
    assert changed(file, old, new) == stale


STRUCT = "SELECT user_id, struct(user_id AS userId) AS who, amount FROM clicks"
ROLLED = """---
materialization: table
timeseries: {event_time_column: day, partition_column: day}
incremental: {INCREMENTAL}
---
SELECT cast(event_ts AS date) AS day, event_id,
  lag(url) OVER (PARTITION BY user_id ORDER BY event_ts, event_id) AS before FROM clicks"""


def prints(**models: str) -> dict[str, str]:
    """The fingerprints of models beside the others."""
    return fingerprints({**ALL, **{f"models/{name}.sql": text for name, text in models.items()}})


TABLE = "---\nmaterialization: table\n---\n"
MAP = "(SELECT map('a', 1) AS m FROM clicks)"
MAPS = "(SELECT array(map('a', 1)) AS l FROM clicks)"


@pytest.mark.parametrize(
    ("sql", "old", "new"),
    [
        ("SELECT url FROM clicks WHERE url <> 'a b'", "a b", "A  b"),
        (STRUCT, "userId", "userid"),
        (STRUCT, "userId", "`userid`"),
        ("SELECT to_json(struct(user_id)) AS j FROM clicks", "user_id", "USER_ID"),
        ("SELECT arrays_zip(a) AS z FROM (SELECT array(url) AS a FROM clicks)", "(a)", "(A)"),
        ("SELECT cast(null AS struct<a: int>) AS s FROM clicks", "<a:", "<A:"),
        (f"SELECT m.Key AS k FROM {MAP}", "Key", "key"),
        (f"SELECT x.m.Key AS k FROM {MAP} AS x", "Key", "key"),
        (f"SELECT element_at(l, 1).Key AS k FROM {MAPS}", "Key", "key"),
        (f"SELECT transform(l, one -> one.Key) AS k FROM {MAPS}", "Key", "key"),
    ],
)
def test_what_counts_to_the_letter(sql: str, old: str, new: str) -> None:
    """Texts, names of fields of structs that a query makes, and keys of maps."""
    assert prints(x=TABLE + sql)["x"] != prints(x=TABLE + sql.replace(old, new))["x"]


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT {}.url AS u FROM clicks",
        "SELECT {}.url AS u FROM clicks AS C",
        "WITH c AS (SELECT url FROM clicks) SELECT {}.url AS u FROM c",
        "SELECT {}.url AS u FROM (SELECT url FROM clicks) c",
    ],
)
def test_qualified_columns_do_not_count_to_the_letter(sql: str) -> None:
    """The case of a table's alias and of its columns changes nothing."""
    name = "clicks" if sql.endswith("FROM clicks") and "WITH" not in sql else "c"
    one, two = (prints(a=TABLE + sql.format(n))["a"] for n in (name, name.upper()))
    assert one == two


@pytest.mark.parametrize(
    ("user", "other", "same"),
    [
        ("user_id", "USER_ID", True),
        ("`user_id`", "`User_id`", True),
        ("coalesce(user_id, 'A')", "coalesce(user_id, 'a')", False),
    ],
)
def test_strings_in_the_expression_of_a_user_count(user: str, other: str, same: bool) -> None:
    """A user's expression counts to the letter, a column's name does not."""
    one, two = (
        prints(sessions=SESSIONS.replace("user: user_id", f'user: "{sql}"'))["sessions"]
        for sql in (user, other)
    )
    assert (one == two) is same


def test_names_of_a_view_count_where_its_reader_makes_structs() -> None:
    """Names of a view's columns change the fingerprint of a reader that makes ``struct(v.*)``
    only.
    """
    view = "---\nmaterialization: view\n---\nSELECT user_id AS Who FROM clicks"
    table = TABLE + "SELECT {} FROM v"
    models = {"a": table.format("struct(v.*) AS s"), "b": table.format("who")}
    before, after = prints(v=view, **models), prints(v=view.replace("Who", "who"), **models)

    assert {name for name in before if before[name] != after[name]} == {"a"}


def test_bounds_and_overrides_that_matter_count() -> None:
    """Bounds and overrides change the fingerprint only where they change what a cell is made
    from.
    """
    variants = [
        "bounds: {clicks: {before: 1 day}}",
        "bounds: {clicks: {before: 2 days}}",
        "bounds: {clicks: {before: 1 day, after: 1 hour}}",
        "safety_overrides: {allow_window_functions: true}",
        "safety_overrides: {allow_window_functions: true}, bounds: {clicks: {before: 1 day}}",
    ]
    found = {prints(x=ROLLED.replace("INCREMENTAL", one))["x"] for one in variants}
    needless = "safety_overrides: {allow_window_functions: true, allow_limit: true}"
    proven = (
        "incremental: {bounds: {sessions: {before: 1 day}}, safety_overrides: {allow_limit: true}}"
    )

    assert len(found) == len(variants)
    assert prints(x=ROLLED.replace("INCREMENTAL", needless))["x"] in found
    assert changed("models/daily.sql", "incremental: {}", proven) == set()


DEFINES: dict[str, tuple[str, str, str]] = {
    # A model's keys.
    "model.unique_key": ("clicks", "[event_id]", "[event_id, url]"),
    "model.prefer": ("clicks", "unique_key", "prefer: [url]\nunique_key"),
    "model.deduplicate": ("clicks", "unique_key", "deduplicate: everywhere\nunique_key"),
    "model.start": ("clicks", "unique_key", "start: 2024-03-01\nunique_key"),
    "timeseries.event_time_column": ("daily", "column: session_start", "column: day"),
    "timeseries.granularity": ("daily", "granularity: day", "granularity: month"),
    "timeseries.week_start": ("daily", "granularity: day", "granularity: week, week_start: sunday"),
    "incremental.enabled": ("daily", "incremental: {}", "incremental: {enabled: false}"),
    "incremental.start": ("daily", "incremental: {}", "incremental: {start: 2024-03-01}"),
    "incremental.exact_start": ("daily", "incremental: {}",
        "incremental: {start: 2024-03-01 12:00, exact_start: true}"),
    "sessions.user": ("sessions", "user: user_id", "user: url"),
    "sessions.gap": ("sessions", "30 minutes", "31 minutes"),
    "sessions.identifier": ("sessions", "user: user_id", "user: user_id, identifier: url"),
    "sessions.max_length": ("sessions", "30 minutes", "30 minutes, max_length: 1 day"),
    "sessions.quarantine_after": ("sessions", "30 minutes", "30 minutes, quarantine_after: 1 day"),
    "sessions.session_number": ("sessions", "30 minutes", "30 minutes, session_number: true"),
    "cuts.midnight": ("sessions", "30 minutes", "30 minutes, cuts: {midnight: UTC}"),
    "cuts.start_events": ("sessions", "30 minutes", "30 minutes, cuts: {start_events: url}"),
    "scd_type_2.updated_at": ("plans", "updated_at: event_ts", "updated_at: seen_at"),
    "scd_type_2.columns": ("plans", "updated_at: event_ts", "updated_at: event_ts, columns: url"),
    "scd_type_2.invalidate_hard_deletes": ("plans", "updated_at: event_ts",
        "updated_at: event_ts, invalidate_hard_deletes: true"),
    "campaign.columns": ("sessions", "30 minutes", "30 minutes, cuts: {campaign: url}"),
    # A source's.
    "source.format": ("infold.yml", "format: json", "format: csv"),
    "source.event_time_column": ("infold.yml", "column: event_ts", "column: sent_at"),
    "source.received_column": ("infold.yml", "    received_column: seen_at\n", ""),
    "source.file_time_column": ("infold.yml", "format: json", "file_time_column: at"),
    "source.partition_columns": ("infold.yml", "format: json", "partition_columns: {at: date}"),
    "source.future_tolerance": ("infold.yml", "format: json", "future_tolerance: 2 hours"),
    "source.timestamp_format": ("infold.yml", "format: json", "timestamp_format: epoch_millis"),
    "source.on_drift": ("infold.yml", "format: json", "on_drift: set_aside"),
    "source.delimiter": ("infold.yml", "format: json", "format: csv\n    delimiter: ;"),
    "source.header": ("infold.yml", "format: json", "format: csv\n    header: false"),
    "source.quote": ("infold.yml", "format: json", "format: csv\n    quote: none"),
    "source.multiline": ("infold.yml", "format: json", "multiline: true"),
    "source.columns": ("infold.yml", "url: string", "url: int"),
    "project.start": ("infold.yml", "start: 2024-01-01", "start: 2024-01-02"),
}  # fmt: skip
"""Key -> a change of it: the file, what stands there, and what stands there then."""

ELSEWHERE = {
    "model.materialization",
    "timeseries.partition_column",
    "model.timeseries",
    "model.incremental",
    "model.sessions",
    "model.scd_type_2",
    "sessions.cuts",
    "cuts.campaign",
    "cuts.rule",  # tests/declare/test_functions.py: it calls a function
    "incremental.bounds",  # test_fingerprint.py, as far as they matter
    "incremental.safety_overrides",
    "sessions.choose_user",  # these mean something beside another key only
    "sessions.without_identifier",
    "sessions.keep",
    "campaign.nulls",
    "campaign.direct",
    "project.sources",
    "project.erasure_requests",
    "project.erasures",  # whose rows are left out is an entry, and no definition
    "project.seeds",  # a seed's rows and types are in its query: tests/declare/test_seeds.py
    "project.models",
    "project.defaults",
}
"""Sections, whose keys are here one by one; and what other tests show."""

CHANGES_NO_ROW = {
    "model.tags",
    "model.audits",  # they judge rows
    "model.description",
    "model.on_destructive_change",
    "model.renamed_from",  # how a table gets another definition, not what it has by it
    "incremental.unique_key",  # verify says how many stand twice
    "incremental.batch_size",
    "incremental.batch_concurrency",
    "incremental.cron",  # when, and which cells wait until then
    "incremental.cron_tz",
    "incremental.allow_partials",
    "incremental.strategy",
    "incremental.backfill_limit",
    "incremental.on_definition_change",  # which cells wait, and what is there meanwhile
    "incremental.on_destructive_change",
    "incremental.forward_only",  # of changes to come
    "incremental.late",
    "source.removal_limit",
    *("model.retain", "source.retain"),  # what was applied is in the trace
    "source.may_be_empty",
    "source.path",  # files that are not named any more have gone, as others have
    "source.table",  # its snapshots are of another table, whose rows are all new
    "source.catalog",
    *("source.url", "source.key", "source.corrections"),  # what runs extract into files from now on
    "source.settle",
    "source.full_listing",
    "source.listing_window",
    "source.on_new_columns",  # what becomes of files to come: those taken in are not read again
    "source.on_unreadable",
    "project.name",
    "project.backfill_limit",
    "project.targets",
    "project.default_target",
    "project.dev_target",
    "project.state_messages",
}


def every_key() -> set[str]:
    """All keys that a declaration may have, each with its mapping."""
    of = {
        "model": models.KEYS,
        "timeseries": models.TIMESERIES,
        "incremental": models.INCREMENTAL,
        "sessions": sessions.SESSION_KEYS,
        "cuts": sessions.CUTS,
        "campaign": sessions.CAMPAIGN,
        "scd_type_2": versions.VERSION_KEYS,
        "source": sources.KEYS,
        "project": project.KEYS,
    }
    return {f"{where}.{key}" for where, keys in of.items() for key in keys}


def test_every_key_is_known_to_define_or_not() -> None:
    """Every key is in exactly one of the two lists, and the lists have no other key."""
    lists = (set(DEFINES), ELSEWHERE, CHANGES_NO_ROW)

    assert set().union(*lists) == every_key()
    assert sum(map(len, lists)) == len(every_key())
