"""
Changes by which a table is not built again.

Sessions are made again in part or follow from stored states; a column gets another name or a wider
type. And what a changed definition takes from its table, as far as the two texts show it.
"""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.analysis.fingerprints import ALL, redefinitions
from tests.declare.shop import SHOP, project

from infold.core.definition import Category, How, Redefinition
from infold.core.files import IngestedFile
from infold.core.interval import Ranges
from infold.core.plan import Action, FileDiff, ModelObservation, Observations, PlanOptions
from infold.core.trace import Trace
from infold.core.type_changes import Retyping, shown, type_losses, type_of_text, widenings
from infold.planning.derivations import REHASHES, WIDENS
from infold.planning.planner import plan

GAP = "user: user_id, gap: 30 minutes"
SELECT = "SELECT count(*) AS events, sum(amount) AS revenue FROM clicks"


def sessions(keys: str, select: str = SELECT) -> dict[str, str]:
    """The shop with other sessions."""
    head = f"---\nmaterialization: sessions\nsessions: {{{keys}}}\n---\n"
    files = {name: text for name, text in SHOP.items() if name != "models/daily.sql"}
    view = "---\nmaterialization: view\n---\nSELECT * FROM clicks WHERE url IS NOT NULL\n"
    return {**files, "models/seen.sql": view, "models/sessions.sql": f"{head}{select}\n"}


def change_of_sessions(before: dict[str, str], after: dict[str, str]) -> Redefinition:
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
        (f"{GAP}, quarantine_after: 2 hours", f"{GAP}, quarantine_after: 3 hours, keep: head"),
    ],
)
def test_other_ends(before: str, after: str) -> None:
    """Where a session ends by its times, or counts by its length, the stored ones tell; layout,
    comments and views of the query do not matter.
    """
    for of in ("clicks", "seen"):
        text = SELECT.replace("clicks", of)
        words = text.replace(" FROM", " /* money */\nFROM").replace("sum(", "SUM(")
        found = change_of_sessions(sessions(before, text), sessions(after, words))

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
    assert change_of_sessions(sessions(before), sessions(after, select)).how is How.REBUILD


def test_states_in_other_words() -> None:
    """The values are the same, but the states of what stored sessions have are not named so."""
    found = change_of_sessions(sessions(GAP), sessions(GAP, SELECT.replace("amount", "(amount)")))

    assert (found.category, found.how) == (Category.NONE, How.DERIVE)


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
    found = change_of_sessions(sessions(GAP, STATES), sessions(GAP, select))

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
    assert change_of_sessions(sessions(GAP, STATES), sessions(GAP, select)).how is How.REBUILD


@pytest.mark.parametrize(
    ("before", "after", "condition", "how"),
    [
        (GAP, "user: user_id, gap: 20 minutes", "user_id <> 'a'", How.REBUILD),
        (IDENTIFIER, IDENTIFIER, "url <> '/'", How.DERIVE),
        (IDENTIFIER, IDENTIFIER, "user_id <> 'a'", How.REBUILD),
        ("identifier: [url, event_id]", "identifier: [url, event_id]", "url <> '/'", How.REBUILD),
        (UPPER, UPPER, "user_id <> 'a'", How.REBUILD),
        (f"{IDENTIFIER}, without_identifier: {{gap: 1 hour}}",
         f"{IDENTIFIER}, without_identifier: {{gap: 1 hour}}", "url <> '/'", How.REBUILD),
    ],
)  # fmt: skip
def test_what_a_session_is_of(before: str, after: str, condition: str, how: How) -> None:
    """A condition is about what all events of a session share, and keys stay as they are."""
    select = "SELECT count(*) AS n FROM clicks"
    found = change_of_sessions(
        sessions(before, select), sessions(after, f"{select} WHERE {condition}")
    )

    assert found.how is how


def test_how_it_follows() -> None:
    """Stored outputs by their names, others as written; conditions about the stored owner."""
    select = "SELECT avg(amount) AS mean, max(url) AS last FROM clicks WHERE amount > 0"
    words = "SELECT max(c.url) AS url, sum(c.amount) AS x FROM clicks c WHERE c.url > ''"
    words += " AND (c.amount > 0)"
    found = change_of_sessions(sessions(IDENTIFIER, select), sessions(IDENTIFIER, words))

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
    words = select.replace("count(value) AS n", "avg(value) AS m").replace("sum", "SUM")
    after = {**sessions(GAP, words), "models/seen.sql": VIEW.format(value, "clicks")}

    assert change_of_sessions(before, after).how is how


def test_other_events() -> None:
    """Events that another view has, or that an earlier condition left out, are in no session."""
    select = "SELECT count(*) AS n, sum(value) AS x FROM seen"
    view, other = (VIEW.format("amount", of) for of in ("clicks", "clicks WHERE url <> '/'"))
    before = {**sessions(GAP, select), "models/seen.sql": view}
    narrow = {**sessions(GAP, f"{select} WHERE value > 0"), "models/seen.sql": view}
    fewer = sessions(GAP, "SELECT 1 AS one FROM seen")

    for old, seen, how in (
        (before, view, How.DERIVE), (before, other, How.REBUILD), (narrow, view, How.REBUILD),
    ):  # fmt: skip
        assert change_of_sessions(old, {**fewer, "models/seen.sql": seen}).how is how


def test_a_condition_in_place_of_another() -> None:
    """What the earlier one left out may be kept by the new one. Events before an earlier start are
    nowhere in the stored sessions.
    """
    text = "SELECT count(*) AS n FROM clicks WHERE"
    before, after = (sessions(GAP, f"{text} {of}") for of in ("amount > 1", "user_id > ''"))
    assert change_of_sessions(before, after).how is How.REBUILD
    before, after = sessions(GAP), sessions(GAP, "SELECT count(*) AS events FROM clicks")
    for files, start in ((before, "2024-01-05"), (after, "2024-01-03")):
        text = files["models/sessions.sql"]
        files["models/sessions.sql"] = text.replace("sessions\n", f"sessions\nstart: {start}\n", 1)
    assert change_of_sessions(before, after).how is How.REBUILD


# ruff: noqa: E501 (one case is one row of a table)


SUMS = """---
materialization: cumulative_aggregate
---
SELECT user_id, sum(amount) AS total, count(*) AS n FROM clicks GROUP BY user_id
"""
BEFORE = {**ALL, "models/sums.sql": SUMS}


def change_of(model: str, *changes: tuple[str, str], front: str = "") -> Redefinition:
    """What becomes of a model by changes of its file, with a line more in its front matter."""
    file = f"models/{model}.sql"
    text = BEFORE[file]
    for old, new in changes:
        assert old in text, old
        text = text.replace(old, new)
    text = text.replace("---\n", f"---\n{front}\n", 1) if front else text
    return redefinitions(BEFORE, {**BEFORE, file: text})[model]


@pytest.mark.parametrize(
    ("model", "changes", "front", "pairs"),
    [
        ("daily", [("AS revenue", "AS income")], "renamed_from: {income: revenue}", (("revenue", "income"),)),
        ("daily", [("AS revenue", "AS Income"), ("AS sessions", "AS visits")], "renamed_from: {income: REVENUE, visits: sessions}", (("sessions", "visits"), ("revenue", "Income"))),
        ("totals", [("AS total", "AS sums")], "renamed_from: {sums: total}", (("total", "sums"),)),
        ("sums", [("AS total", "AS sums"), ("GROUP BY user_id", "GROUP BY 1")], "renamed_from: {sums: total, n: m}", (("total", "sums"),)),
        ("sums", [("SELECT user_id", "SELECT user_id AS who")], "renamed_from: {who: user_id}", (("user_id", "who"),)),
    ],
)  # fmt: skip
def test_a_renamed_column(
    model: str, changes: list[tuple[str, str]], front: str, pairs: tuple[tuple[str, str], ...]
) -> None:
    """Tables of all kinds evolve; nothing is lost, and the columns beside it are kept."""
    found = change_of(model, *changes, front=front)

    assert (found.how, found.category) == (How.EVOLVE, Category.METADATA)
    assert found.derivation is not None
    assert found.derivation.renamed == pairs
    assert (found.losses, found.destroys) == ((), ())
    assert found.columns_kept.isdisjoint({name.lower() for pair in pairs for name in pair})


@pytest.mark.parametrize(
    ("model", "changes", "front"),
    [
        ("daily", [("AS revenue", "AS income")], ""),
        ("daily", [("AS revenue", "AS income")], "renamed_from: {income: session}"),
        ("daily", [("sum(revenue) AS revenue", "sum(-revenue) AS income")], "renamed_from: {income: revenue}"),
        ("daily", [("AS revenue", "AS income, 1 AS one")], "renamed_from: {income: revenue}"),
        ("daily", [("AS revenue", "AS income"), ("GROUP BY", "WHERE events > 1 GROUP BY")], "renamed_from: {income: revenue}"),
        ("daily", [("AS day", "AS date"), ("partition_column: day", "partition_column: date")], "renamed_from: {date: day}"),
        ("totals", [("user_id, sum(amount) AS total", "sum(amount) AS sums, user_id")], "renamed_from: {sums: total}"),
        ("clicks", [("SELECT event_id", "SELECT event_id AS id"), ("[event_id]", "[id]")], "renamed_from: {id: event_id}"),
        ("sums", [("sum(amount)", "sum(user_id)"), ("SELECT user_id", "SELECT amount AS who"), ("BY user_id", "BY amount")], "renamed_from: {who: user_id}"),
    ],
)  # fmt: skip
def test_what_is_no_renaming(model: str, changes: list[tuple[str, str]], front: str) -> None:
    """Another value, another order, another key, or a pair that is not there: as without the key."""
    found = change_of(model, *changes, front=front)

    assert found.how is not How.EVOLVE


def test_mistakes_of_names() -> None:
    """
    Values of columns that change places are in other columns then: a change like any other, and no
    renaming. The new name has to be a column of the query, whatever kind of table it is; whoever
    reads the earlier one is refused as for any unknown column. Pairs are shown as they are written.
    """
    swap = [("AS total", "AS x"), ("AS n", "AS total"), ("AS x", "AS n")]
    assert change_of("sums", *swap).how is How.REBUILD
    with pytest.raises(AssertionError, match="cannot be 'total', which is a column still"):
        change_of("sums", *swap, front="renamed_from: {n: total, total: n}")
    for model in ("sums", "sessions"):
        text = BEFORE[f"models/{model}.sql"].replace("---\n", "---\nrenamed_from: {x: y}\n", 1)
        with pytest.raises(AssertionError, match="renamed_from names 'x'"):
            project({**BEFORE, f"models/{model}.sql": text})
    renamed, front = ("AS revenue", "AS income"), "renamed_from: {income: revenue}"
    text = BEFORE["models/sessions.sql"].replace(*renamed)
    text = text.replace("---\n", f"---\n{front}\n", 1)
    with pytest.raises(AssertionError, match="unknown-column"):
        project({**BEFORE, "models/sessions.sql": text})
    found = change_of("daily", renamed, front=front).differences
    assert [one.after for one in found if one.part == "renamed_from"] == ["income: revenue"]


TOTALS = """---
materialization: cumulative_aggregate
---
SELECT user_id, cast(sum(amount) AS int) AS total FROM clicks GROUP BY user_id
"""
URLS = "---\nmaterialization: view\n---\nSELECT event_id, url FROM clicks\n"
FORMER = {**ALL, "models/sums.sql": TOTALS, "models/seen.sql": URLS}

Losses = list[tuple[str, str, str, str, str]]


def lost(file: str, *changes: tuple[str, str]) -> dict[str, Losses]:
    """What tables lose by a change of one file, by model."""
    text = FORMER[file]
    for old, new in changes:
        assert old in text, old
        text = text.replace(old, new)
    return {
        name: [
            (str(loss.part), loss.name, loss.before, loss.after, str(loss.at))
            for loss in one.destroys
        ]
        for name, one in redefinitions(FORMER, {**FORMER, file: text}).items()
    }


@pytest.mark.parametrize(
    ("file", "changes", "model", "expected"),
    [
        ("models/totals.sql", [("AS total", "AS sums")], "totals",
         ("column", "total", "", "", "models/totals.sql:4")),
        ("models/sums.sql", [("user_id", "event_id"), ("SELECT event_id", "SELECT event_id AS user_id")], "sums",
         ("key", "GROUP BY", "user_id", "event_id", "models/sums.sql:4")),
        ("models/clicks.sql", [("unique_key: [event_id]", "unique_key: [url]")], "clicks",
         ("key", "unique_key", "event_id", "url", "models/clicks.sql:1")),
        ("models/sessions.sql", [("user: user_id", "user: event_id")], "sessions",
         ("key", "user", "user_id", "event_id", "models/sessions.sql:1")),
        ("models/daily.sql", [("partition_column: day", "partition_column: session_start"), ("cast(session_start AS date) AS day", "session_start, cast(session_start AS date) AS day"), ("GROUP BY 1", "GROUP BY 1, 2")], "daily",
         ("key", "partition_column", "day", "session_start", "models/daily.sql:1")),
        ("infold.yml", [("amount: decimal(18,2)", "amount: decimal(12,2)")], "clicks",
         ("type", "amount", "decimal(18,2)", "decimal(12,2)", "infold.yml:5")),
        ("models/sums.sql", [("AS int", "AS smallint")], "sums",
         ("type", "total", "int", "smallint", "models/sums.sql:4")),
        ("models/totals.sql", [("materialization: table", "materialization: view")], "totals",
         ("table", "totals", "", "", "models/totals.sql:4")),
    ],
)  # fmt: skip
def test_a_loss_has_its_name_and_place(
    file: str, changes: list[tuple[str, str]], model: str, expected: tuple[str, ...]
) -> None:
    """Columns, keys and types that go are losses of the model's table, and nothing else is."""
    found = lost(file, *changes)[model]
    assert [one for one in found if one[1] != "user_id" or one[0] == "key"] == [expected]


@pytest.mark.parametrize(
    ("file", "old", "new", "model"),
    [
        ("models/totals.sql", "AS total", "AS total, 1 AS one", "totals"),
        ("models/totals.sql", "sum(amount)", "sum(-amount)", "totals"),
        ("models/sessions.sql", "30 minutes", "20 minutes", "sessions"),
        ("infold.yml", "amount: decimal(18,2)", "amount: decimal(20,2)", "clicks"),
        ("models/daily.sql", "incremental: {}", "incremental: {unique_key: [day]}", "daily"),
        ("models/sums.sql", "AS int", "AS bigint", "sums"),
        ("models/seen.sql", ", url", "", "seen"),
    ],
)
def test_other_rows_are_no_loss(file: str, old: str, new: str, model: str) -> None:
    """A table with other values, more columns or wider types has all that its readers name, and a
    view stores nothing that could be lost.
    """
    assert lost(file, (old, new))[model] == []


def test_a_removed_model_loses_its_table() -> None:
    """A view has none."""
    gone = ("models/seen.sql", "models/sums.sql")
    found = redefinitions(FORMER, {name: FORMER[name] for name in FORMER if name not in gone})

    parts = {name: [str(loss.part) for loss in one.destroys] for name, one in found.items()}
    assert parts == {"seen": [], "sums": ["table"]}


# ruff: noqa: E501 (one case is one row of a table)


CONFIG = """
name: shop
sources:
  raw.clicks:
    path: landing/*.{format}
    event_time_column: at
    columns: {{id: int, at: timestamp, other: int, v: {{type: "{type}", optional: true}}}}
"""
MODEL = """---
materialization: events
unique_key: [id]
timeseries: {event_time_column: at, granularity: day}
---
"""
PASSED = "SELECT id, at, v FROM raw.clicks"


def files(type_: str, sql: str, format_: str = "json") -> dict[str, str]:
    """A source and a model of it."""
    return {
        "infold.yml": CONFIG.format(type=type_, format=format_),
        "models/clicks.sql": f"{MODEL}{sql}\n",
    }


def change_of_type(
    before: str, after: str, sql: str = PASSED, format_: str = "json"
) -> Redefinition:
    """What becomes of the model by another declared type."""
    return redefinitions(files(before, sql, format_), files(after, sql, format_))["clicks"]


@pytest.mark.parametrize(
    ("before", "after", "parts"),
    [
        ("int", "bigint", [("v", "int", "bigint", False)]),
        ("smallint", "INT", [("v", "smallint", "int", True)]),
        ("decimal(5,2)", "decimal(18, 2)", [("v", "decimal(5,2)", "decimal(18, 2)", True)]),
        ("decimal(19,2)", "decimal(38,2)", [("v", "decimal(19,2)", "decimal(38,2)", True)]),
        ("decimal(18,2)", "decimal(19,2)", [("v", "decimal(18,2)", "decimal(19,2)", False)]),
        ("struct<a:int,b:string>", "struct<a:bigint,b:string>", [("v.a", "int", "bigint", True)]),
        ("array<struct<a:int>>", "array<struct<a:bigint>>", [("v.element.a", "int", "bigint", True)]),
        ("map<string,decimal(9,2)>", "map<string,decimal(20,2)>", [("v.value", "decimal(9,2)", "decimal(20,2)", True)]),
        ("struct<`a b`: int, c: int>", "struct<`a b`:bigint,c:bigint>", [("v.a b", "int", "bigint", True), ("v.c", "int", "bigint", True)]),
    ],
)  # fmt: skip
def test_a_wider_type(before: str, after: str, parts: list[tuple[str, str, str, bool]]) -> None:
    """The stored column evolves; nothing else is claimed to be kept, as rows may be added."""
    found = change_of_type(before, after)

    assert (found.how, found.category) == (How.EVOLVE, Category.METADATA)
    assert found.derivation is not None
    assert [
        (".".join(one.path), one.before, one.after, one.keeps_hash)
        for one in found.derivation.retyped
    ] == parts
    assert (found.columns_kept, found.kept_if_followed) == (frozenset(), frozenset({"id", "at"}))
    assert (found.losses, found.destroys) == ((), ())


@pytest.mark.parametrize(
    ("before", "after", "sql", "format_"),
    [
        ("bigint", "int", PASSED, "json"),
        ("int", "decimal(12,0)", PASSED, "json"),
        ("decimal(9,2)", "decimal(12,3)", PASSED, "json"),
        ("int", "string", PASSED, "json"),
        ("struct<a:int>", "struct<a:bigint,b:int>", PASSED, "json"),
        ("struct<a:int,b:int>", "struct<b:int,a:int>", PASSED, "json"),
        ("map<int,int>", "map<bigint,int>", PASSED, "json"),
        ("float", "double", PASSED, "json"),
        ("array<float>", "array<double>", PASSED, "csv"),
        ("int", "bigint", "SELECT id, at, v FROM raw.clicks WHERE v > 1", "json"),
        ("int", "bigint", "SELECT id, at, v + 1 AS v FROM raw.clicks", "json"),
        ("int", "bigint", "SELECT id, at, v, v * v AS w FROM raw.clicks", "json"),
        ("int", "bigint", "SELECT id, at, cast(v AS string) AS v FROM raw.clicks", "json"),
        ("struct<a:int>", "struct<a:bigint>", "SELECT id, at, v.a FROM raw.clicks", "json"),
    ],
)  # fmt: skip
def test_what_is_built(before: str, after: str, sql: str, format_: str) -> None:
    """Other values, numbers that were rounded, and whatever is made of the column."""
    assert change_of_type(before, after, sql, format_).how is How.REBUILD


def test_what_is_widened_all_the_same() -> None:
    """Typed files have the digits of a float; the order of declared columns does not matter; a
    star passes all on. A model that does not name an optional column has no change.
    """
    assert change_of_type("float", "double", format_="parquet").how is How.EVOLVE
    assert (
        change_of_type("int", "bigint", "SELECT v AS w, at, id FROM raw.clicks AS c").how
        is How.EVOLVE
    )
    assert change_of_type("int", "bigint", "SELECT * FROM raw.clicks").how is How.EVOLVE
    old, new = (files(type_, "SELECT id, at FROM raw.clicks") for type_ in ("int", "string"))
    assert redefinitions(old, new) == {}


FILE = IngestedFile(1, "a", 1, "f", 0, rows=3)


@pytest.mark.parametrize(
    ("after", "file", "action", "why"),
    [
        ("decimal(12,2)", FILE, Action.EVOLVE, WIDENS),
        ("decimal(12,2)", replace(FILE, dropped=1), Action.EVOLVE, WIDENS),
        ("decimal(12,2)", replace(FILE, set_aside=1), Action.BUILD, "its definition changed"),
        ("decimal(12,2)", replace(FILE, rows=0, set_aside=1), Action.BUILD, "its definition changed"),
        ("decimal(12,2)", replace(FILE, rows=0, set_aside=1, fingerprint="f|p"), Action.EVOLVE, WIDENS),
        ("decimal(20,2)", FILE, Action.EVOLVE, REHASHES),
        ("decimal(20,2)", replace(FILE, dropped=1), Action.BUILD, "its definition changed"),
    ],
)  # fmt: skip
def test_what_the_ledger_tells(after: str, file: IngestedFile, action: Action, why: str) -> None:
    """A row that was set aside may fit now; where the hash is another one, so may be the copy that
    is kept. A file that was set aside as a whole is read again after the step.
    """
    change = change_of_type("decimal(9,2)", after)
    assert change.before is not None
    seen = ModelObservation(
        trace=Trace("clicks", change.before.fingerprint),
        version=1,
        files=FileDiff("raw.clicks", ingested=(file,)),
        rows=3,
        redefined=change,
    )
    now = project(files(after, PASSED))

    [step] = plan(now, Observations(0, {"clicks": seen}), PlanOptions()).steps

    assert (step.action, step.reasons[0].detail) == (action, why)
    assert step.derivation == (change.derivation if action is Action.EVOLVE else None)
    assert step.cells == (Ranges() if action is Action.EVOLVE else Ranges.ever())


_LEAVES = st.sampled_from(
    ["int", "bigint", "smallint", "decimal(5,2)", "decimal(20,2)", "string", "float", "double"]
)
_NAMES = st.lists(st.sampled_from("abc"), min_size=1, max_size=3, unique=True)
TYPES = st.recursive(
    _LEAVES,
    lambda inner: st.one_of(
        inner.map("array<{}>".format),
        st.tuples(_LEAVES, inner).map(lambda pair: f"map<{pair[0]},{pair[1]}>"),
        _NAMES.flatmap(
            lambda names: st.tuples(*[inner for _ in names]).map(
                lambda types: (
                    "struct<"
                    + ",".join(f"{name}:{type_}" for name, type_ in zip(names, types, strict=True))
                    + ">"
                )
            )
        ),
    ),
    max_leaves=4,
)


@given(old=TYPES, new=TYPES)
def test_a_widening_loses_nothing(old: str, new: str) -> None:
    """Texts of types are read as they are written; what is called wider has every value. Keys of
    maps are told from values, whatever fields are called.
    """
    assert Retyping(("v", "key"), "int", "bigint").is_in_a_key
    assert not Retyping(("key",), "int", "bigint").is_in_a_key
    one, two = type_of_text(old), type_of_text(new)

    assert shown(one) == old
    found = list(widenings(one, two, ("v",)))
    if None not in found:
        assert not list(type_losses(one, two, "v"))
    if not found:
        assert old == new
    assert list(widenings(one, one, ("v",))) == []
