# ruff: noqa: E501 (one case is one row of a table)
"""A model's fingerprint changes with its definition and with nothing else."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from sqlglot.tokenizer_core import Token, TokenType
from tests.analysis.fingerprints import ALL, BEFORE, changed, fingerprints
from tests.declare.shop import SESSIONS

from infold.analysis.sql.parse import parse

SPACE = st.sampled_from([" ", "\n", "\t", "  \n ", " /* ; -- */ ", " -- select\n", "\r\n"])
WORDS = frozenset({TokenType.STRING, TokenType.NUMBER, TokenType.IDENTIFIER})


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
    """The query, its views and the types of its columns; test_fingerprint_keys.py has the keys."""
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
