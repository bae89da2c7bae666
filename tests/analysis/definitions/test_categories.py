"""What a change of a project's files does to each of its models, and which events stay the same."""

from __future__ import annotations

from collections.abc import Mapping

import pytest
from tests.analysis.fingerprints import ALL, WITH_VERSIONS, fingerprints, redefinitions
from tests.analysis.test_fingerprint import DEFINES
from tests.declare.shop import SHOP, project

from infold.analysis.definitions.compare import same_events
from infold.analysis.definitions.meanings import Meanings
from infold.core.definition import Category, How, Redefinition, SameEvents

# ruff: noqa: E501 (one case is one row of a table)


def redefined(files: dict[str, str], before: dict[str, str] = ALL) -> dict[str, Redefinition]:
    """The changed models of a project by name."""
    return redefinitions(before, files)


def changed(file: str, old: str, new: str) -> dict[str, str]:
    """The category of every model that is not the same after a change of one file."""
    assert old in ALL[file], old
    found = redefined({**ALL, file: ALL[file].replace(old, new)})
    return {name: str(one.category) for name, one in found.items()}


def test_nothing_changes_without_a_change() -> None:
    """The same files have no changed models."""
    assert redefined(ALL) == {}


@pytest.mark.parametrize("key", DEFINES)
def test_a_key_that_defines_breaks(key: str) -> None:
    """
    Another value of a key that defines content is breaking for each model with another fingerprint.

    But rows do not depend on how they are divided into cells, if these begin at the same start: a
    week from Sunday on has a day before the project's, which is a Monday.
    """
    name, old, new = DEFINES[key]
    file = name if "." in name else f"models/{name}.sql"
    every = WITH_VERSIONS if file not in ALL else ALL
    files = {**every, file: every[file].replace(old, new)}
    before, after = fingerprints(every), fingerprints(files)
    other = {model for model in before if before[model] != after[model]}

    found = redefined(files, every)

    assert other
    of_cells = key == "timeseries.granularity"
    assert {found[model].category for model in other} == {
        Category.METADATA if of_cells else Category.BREAKING
    }
    assert {found[model].how is How.REBUCKET for model in other} == {of_cells}
    assert all(found[model].differences for model in other)


@pytest.mark.parametrize(
    ("file", "old", "new", "categories"),
    [
        ("models/daily.sql", "incremental: {}", "incremental: {}\ntags: [x]", {"daily": "metadata"}),
        ("models/daily.sql", "incremental: {}", "incremental: {}\ndescription: days", {"daily": "metadata"}),
        ("models/daily.sql", "incremental: {}", "incremental: {enabled: true}", {}),
        ("models/daily.sql", "incremental: {}", "incremental: {unique_key: [day]}", {"daily": "metadata"}),
        ("models/daily.sql", "incremental: {}", "incremental: {batch_size: 7}", {"daily": "metadata"}),
        ("models/daily.sql", "incremental: {}", "incremental: {batch_concurrency: 2}", {"daily": "metadata"}),
        ("models/daily.sql", "incremental: {}", "incremental: {cron: '@daily'}", {"daily": "metadata"}),
        ("models/daily.sql", "incremental: {}", "incremental: {cron: '@daily', cron_tz: Europe/Berlin}", {"daily": "metadata"}),
        ("models/daily.sql", "incremental: {}", "incremental: {cron: '@daily', allow_partials: true}", {"daily": "metadata"}),
        ("models/daily.sql", "incremental: {}", "incremental: {strategy: append}", {"daily": "metadata"}),
        ("models/daily.sql", "incremental: {}", "incremental: {backfill_limit: 30 days}", {"daily": "metadata"}),
        ("models/daily.sql", "incremental: {}", "incremental: {on_definition_change: rebuilt_cells}", {"daily": "metadata"}),
        ("infold.yml", "start: 2024-01-01", "start: 2024-01-01\nbackfill_limit: 30 days", {"daily": "metadata"}),
        ("infold.yml", "format: json", "settle: 5 minutes", {"clicks": "metadata"}),
        ("infold.yml", "format: json", "removal_limit: 5%", {"clicks": "metadata"}),
        ("infold.yml", "format: json", "retain: 40 days", {"clicks": "metadata"}),
        ("models/clicks.sql", "unique_key:", "retain: 40 days\nunique_key:", {"clicks": "metadata"}),
        ("infold.yml", "format: json", "may_be_empty: true", {"clicks": "metadata"}),
        ("infold.yml", "format: json", "on_new_columns: ignore", {"clicks": "metadata"}),
        ("infold.yml", "format: json", "on_unreadable: set_aside", {"clicks": "metadata"}),
        ("infold.yml", "path: landing/clicks/*.json", "path: elsewhere/**/*.json", {"clicks": "metadata"}),
        ("models/clicks.sql", "unique_key: [event_id]", "unique_key: EVENT_ID", {}),
        ("models/clicks.sql", "url, amount", "amount, url", {"clicks": "none", "paid": "none", "totals": "none"}),
        ("models/clicks.sql", "url, amount", "url, amount, seen_at", {"clicks": "breaking", "paid": "additive", "totals": "none"}),
        ("models/clicks.sql", "IS NOT NULL", "IS NOT NULL AND TRUE", {"clicks": "none"}),
        ("models/clicks.sql", "IS NOT NULL", "<> ''", {"clicks": "breaking"}),
        ("models/sessions.sql", "sum(amount)", "sum(amount) /* in euros */", {"sessions": "none"}),
        ("models/sessions.sql", "sum(amount) AS revenue,", "sum(amount) AS revenue, max(url) AS last_url,", {"sessions": "additive"}),
        ("models/sessions.sql", "FROM clicks", "FROM clicks WHERE amount > 0", {"sessions": "breaking"}),
        ("models/sessions.sql", "FROM clicks", "FROM clicks AS c WHERE (TRUE)", {"sessions": "none"}),
        ("models/paid.sql", "amount > 0", "(amount > 0)", {"paid": "none", "totals": "none"}),
        ("models/paid.sql", "amount > 0", "amount > 1", {"paid": "breaking", "totals": "breaking"}),
        ("models/paid.sql", "SELECT *", "SELECT *, amount * 2 AS twice", {"paid": "additive", "totals": "none"}),
        ("models/totals.sql", "GROUP BY user_id", "GROUP BY 1", {"totals": "none"}),
        ("models/totals.sql", "sum(amount) AS total", "sum(amount) AS total, count(*) AS n", {"totals": "additive"}),
        ("models/totals.sql", "FROM paid", "FROM (SELECT user_id, amount FROM clicks WHERE amount > 0)", {"totals": "none"}),
    ],
)  # fmt: skip
def test_categories(file: str, old: str, new: str, categories: dict[str, str]) -> None:
    """Each model has the category that its change has, and a reader of a view has its own."""
    assert changed(file, old, new) == categories


def test_new_and_removed_models() -> None:
    """A file that comes is a new model; one that goes is removed, with its table as the loss."""
    files = {key: text for key, text in ALL.items() if key != "models/totals.sql"}
    files["models/others.sql"] = ALL["models/totals.sql"]

    found = redefined(files)

    assert {name: one.category for name, one in found.items()} == {
        "others": Category.NEW,
        "totals": Category.REMOVED,
    }
    assert found["totals"].losses == ("totals",)
    assert found["others"].before is None
    assert found["totals"].after is None


def test_what_is_shown_of_a_change() -> None:
    """A breaking change has its differences, places, losses, and the columns that stay; a key's
    difference has its name and both values as people write them, and no column stays.
    """
    sql = ALL["models/totals.sql"].replace("sum(amount) AS total", "avg(amount) AS mean")
    gap = ALL["models/sessions.sql"].replace("30 minutes", "20 minutes")
    found = redefined({**ALL, "models/totals.sql": sql, "models/sessions.sql": gap})
    one, other = found["totals"], found["sessions"]

    assert (one.category, one.how) == (Category.BREAKING, How.REBUILD)
    assert [(d.part, d.name, d.before, d.after) for d in one.differences] == [
        ("column", "total", "sum(amount)", ""),
        ("column", "mean", "", "avg(amount)"),
    ]
    assert str(one.differences[1].at) == "models/totals.sql:4"
    assert one.columns_kept == {"user_id"}
    assert one.losses == ("total",)
    (d,) = other.differences
    assert (d.part, d.before, d.after) == ("gap", "30 minutes", "20 minutes")
    assert (str(d.at), other.columns_kept) == ("models/sessions.sql:1", frozenset())
    for length, shown in (("960 hours", "40 days"), ("forever", "forever")):
        clicks = ALL["models/clicks.sql"].replace("unique_key:", f"retain: {length}\nunique_key:")
        (d,) = redefined({**ALL, "models/clicks.sql": clicks})["clicks"].differences
        assert (d.part, d.before, d.after) == ("retain", "", shown)


def test_how_changes_are_carried_out() -> None:
    """What means the same is noted in the ledger, a table is rebuilt, and a view needs nothing."""
    files = {**ALL, "models/paid.sql": ALL["models/paid.sql"].replace("> 0", "> 0 AND TRUE")}
    found = redefined(files)

    assert found["paid"].how is How.NOTHING
    assert found["totals"].how is How.RESTAMP


@pytest.mark.parametrize(
    ("old", "new", "how"),
    [
        ("sum(amount) AS revenue, first(url) AS entry_url", "first(url) AS entry_url, sum(amount) AS revenue", How.DERIVE),
        ("sum(amount) AS revenue, first(url)", "(sum(c.amount)) AS revenue, FIRST(url)", How.RESTAMP),
        ("FROM clicks", "FROM clicks WHERE TRUE", How.RESTAMP),
    ],
)  # fmt: skip
def test_states_of_sessions_are_those_of_the_same_order(old: str, new: str, how: How) -> None:
    """Aggregates in another order give the same rows, but stored states are named by their order."""
    sql = ALL["models/sessions.sql"].replace("FROM clicks", "FROM clicks AS c")
    other = sql.replace(old, new).replace("TRUE AS c", "TRUE")
    before, after = ({**ALL, "models/sessions.sql": one} for one in (sql, other))

    (found,) = redefined(after, before).values()

    assert found.category is Category.NONE
    assert found.how is how


EVENTS = "---\nmaterialization: view\n---\nSELECT {} FROM clicks"
COLUMNS = "event_id, user_id, event_ts, url, amount"


@pytest.mark.parametrize(
    ("columns", "category"),
    [
        ("url, event_id, user_id, event_ts, amount", "none"),
        ("event_id, user_id, event_ts, url, amount, 1 AS one", "none"),
        ("event_id, user_id, event_ts, url, amount * 2 AS amount", "none"),
        ("event_id, lower(user_id) AS user_id, event_ts, url, amount", "breaking"),
        ("event_id, user_id, event_ts, lower(url) AS url, amount", "breaking"),
    ],
)
def test_sessions_read_columns_that_their_query_does_not_name(columns: str, category: str) -> None:
    """Owner and cuts of a view's events decide about sessions; columns that nobody reads do not."""
    sessions = (
        "---\nmaterialization: sessions\n"
        "sessions: {user: user_id, gap: 30 minutes, cuts: {start_events: url = 'x'}}\n---\n"
        "SELECT count(*) AS events FROM seen"
    )
    files = {**SHOP, "models/sessions.sql": sessions, "models/seen.sql": EVENTS.format(COLUMNS)}
    del files["models/daily.sql"]

    found = redefined({**files, "models/seen.sql": EVENTS.format(columns)}, files)

    assert str(found["sessions"].category) == category


@pytest.mark.parametrize(("call", "category"), [("any_value", "breaking"), ("max", "none")])
def test_what_a_person_vouches_for_is_the_same_in_the_same_words_only(
    call: str, category: str
) -> None:
    """Where a value may be any of several, other words of a query may bring another one."""
    vouched = "incremental: {safety_overrides: {allow_nondeterministic: true}}"
    sql = ALL["models/daily.sql"].replace("incremental: {}", vouched)
    sql = sql.replace("sum(revenue) AS revenue", f"{call}(entry_url) AS url")
    again = sql.replace("GROUP BY 1", "WHERE TRUE GROUP BY 1")
    before, after = ({**ALL, "models/daily.sql": one} for one in (sql, again))

    assert redefined(after, before)["daily"].category == category


def test_letters_of_a_maps_key_in_a_view() -> None:
    """A view that takes another key of a map is another view, and so is what reads it."""
    view = "---\nmaterialization: view\n---\nSELECT user_id, map('a', 1, 'A', 2).{} AS amount FROM clicks"
    before, after = ({**ALL, "models/paid.sql": view.format(key)} for key in "aA")

    found = redefined(after, before)

    assert {name: str(one.category) for name, one in found.items()} == {
        "paid": "breaking",
        "totals": "breaking",
    }


def test_a_column_of_a_source_is_shown_with_its_type_and_place() -> None:
    """A source's column that has another type, or is new, is a difference at the source's place."""
    yaml = ALL["infold.yml"].replace("url: string", "url: string\n      browser: string")
    yaml = yaml.replace("amount: decimal(18,2)", "amount: decimal(18,3)")
    one = redefined({**ALL, "infold.yml": yaml})["clicks"]

    assert one.category is Category.BREAKING
    assert {(d.part, d.name, d.before, d.after) for d in one.differences} == {
        ("source column", "browser", "", "string"),
        ("source column", "amount", "decimal(18,2)", "decimal(18,3)"),
    }
    assert {one.at.file for one in one.differences if one.at} == {"infold.yml"}


def test_a_catalog_of_a_source_is_shown_by_where_it_is() -> None:
    """As infold.yml has it; the source is the same one wherever it is found."""
    one, two = (
        {
            **ALL,
            "infold.yml": ALL["infold.yml"].replace(
                "path: landing/clicks/*.json\n    format: json",
                f"table: a.b\n    format: delta\n    catalog: {{type: hive, uri: 'thrift://{host}:9083'}}",
            ),
        }
        for host in ("one", "two")
    )

    found = redefined(two, one)["clicks"]

    assert found.category is Category.METADATA
    assert [(d.part, d.before, d.after) for d in found.differences] == [
        ("catalog", "thrift://one:9083", "thrift://two:9083")
    ]


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
        ([("event_ts\n", "event_ts\n    timestamp_format: epoch_millis\n")], "timestamp_format"),
        ([("decimal(18,2)", "decimal(20,2)")], "column amount of its source"),
        ([("      url: string\n", "      url: string\n      more: string\n")], ""),
    ],
    ids=str,
)
def test_other_events(changed: list[tuple[str, str]], why: str) -> None:
    """Another key, event time or identity may make a row another event, and a source that is read
    in another way may give other times; more columns of it are all right.
    """
    file = "models/clicks.sql" if changed[0][0] in CLICKS else "infold.yml"
    found = compared({}, spoilt(*changed, file=file))
    assert why in found.other
    assert bool(found.other) is bool(why)
    assert not (why and found.rows)


def test_what_has_other_events_or_none() -> None:
    """Columns of equal names and places in two lookups are not the same values. The newest
    definition reads all that the earlier ones read. Only two events models are compared so.
    """
    text = CLICKS.replace("[event_id]", "[section]")
    text = text.replace("url, amount FROM raw.clicks", LOOKED_UP.replace("LEFT JOIN", "JOIN"))
    other = text.replace("raw.pages", "raw.users")
    found = compared({"models/clicks.sql": text}, {"models/clicks.sql": other})
    assert "other values" in found.other
    old = spoilt(("url, amount", "url, amount, coupon"))
    assert "column coupon of its source no longer" in compared(old, {}).other
    shop = project()
    of = Meanings.of(shop, shop.sources)
    assert "models/daily.sql" in SHOP
    assert same_events(of["daily"], of["daily"]) is None
