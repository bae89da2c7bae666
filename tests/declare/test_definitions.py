"""Definitions of a project's models: as JSON text, and as a project again."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import pytest
from tests.declare import test_functions, test_python_models
from tests.declare.shop import CLICKS, DAILY, INFOLD, SESSIONS, SHOP, model, project, spoilt
from tests.queries.catalog import project_of_admitted

from infold.core.definition import Definition, definition_of_text, definition_text, digest_of
from infold.core.project import Node, Project
from infold.declare.definitions import definitions_of
from infold.declare.from_definitions import project_of_definition, project_of_definitions
from infold.messages.errors import InfoldError

EVENTS_FULL = """\
---
materialization: events
unique_key: [event_id]
prefer: [seen_at desc, amount]
deduplicate: everywhere
start: 2024-02-01
tags: [raw, web]
description: every click
timeseries: {event_time_column: event_ts, granularity: hour}
---

SELECT event_id, user_id, event_ts, url, amount, seen_at FROM raw.clicks
"""

SESSIONS_FULL = """\
---
materialization: sessions
start: 2024-02-01
sessions:
  identifier: [user_id, "concat('x', url)"]
  user: user_id
  choose_user: last
  gap: 30 minutes
  without_identifier: {gap: 10 minutes}
  max_length: 6 hours
  cuts:
    midnight: Europe/Berlin
    campaign: {columns: [url], nulls: change, direct: [none]}
    start_events: "url = '/'"
---
SELECT count(*) AS events, sum(amount) AS revenue FROM clicks
"""

SESSIONS_KEPT = SESSIONS.replace(
    "30 minutes", "30 minutes, quarantine_after: 1 day, keep: head, session_number: true"
)

DAILY_FULL = """\
---
materialization: table
timeseries: {event_time_column: event_ts, partition_column: day, granularity: day}
incremental:
  unique_key: [day]
  batch_size: 3
  batch_concurrency: 2
  start: 2024-03-01 12:00
  exact_start: true
  cron: "0 6 * * *"
  cron_tz: Europe/Berlin
  allow_partials: true
  strategy: insert_overwrite
  backfill_limit: 30 days
  on_definition_change: rebuilt_cells
---
-- a comment
SELECT cast(event_ts AS date) AS day, count(*) AS clicks
FROM clicks WHERE event_ts >= @start_ts GROUP BY 1
"""

BOARD = "SELECT country, count(*) AS n FROM %s JOIN raw.countries ON code = url GROUP BY country"
TOTALS = "SELECT user_id, count(*) AS n, sum(amount) AS amount FROM clicks GROUP BY user_id"
OF_DEAR = DAILY_FULL.replace("FROM clicks", "FROM dear").replace("event_ts >= @start_ts", "true")
VIEWS = {
    **SHOP,
    "models/paid.sql": model("view", "SELECT * FROM clicks WHERE amount > 0"),
    "models/dear.sql": model("view", "SELECT * FROM paid WHERE amount > 9"),
    "models/daily.sql": OF_DEAR,
    "models/totals.sql": model("cumulative_aggregate", TOTALS),
    "models/board.sql": model("table", BOARD % "paid"),
}
NOTE = "country: string, note: {type: string, optional: true}"
OPTIONAL = {
    **spoilt("infold.yml", "country: string", NOTE),
    "models/board.sql": model("table", BOARD % "clicks"),
}

PROJECTS = {
    "shop": SHOP,
    "every key of events": {**SHOP, "models/clicks.sql": EVENTS_FULL},
    "every key of sessions": {
        **{name: text for name, text in SHOP.items() if "daily" not in name},
        "models/sessions.sql": SESSIONS_FULL,
    },
    "sessions in quarantine, numbered": {**SHOP, "models/sessions.sql": SESSIONS_KEPT},
    "every key of incremental tables": {**SHOP, "models/daily.sql": DAILY_FULL},
    "views over views, a lookup": VIEWS,
    "optional columns that nobody names": OPTIONAL,
    "a model in Python": test_python_models.FILES,
    "rows in Python": test_python_models.FILES_OF_ROWS,
    "functions and a session rule in Python": test_functions.files(),
}


def kept_of(declared: Project) -> dict[str, Definition]:
    """The definitions of a project, which went through JSON."""
    return {
        name: definition_of_text(definition_text(one))
        for name, one in definitions_of(declared).items()
    }


def essence(node: Node) -> Node:
    """A node without what is only shown, and without columns that its source has no longer."""
    return replace(node, filters=(), unread_columns=() if node.landed else node.unread_columns)


@pytest.mark.deep
@pytest.mark.parametrize("files", PROJECTS.values(), ids=PROJECTS)
def test_a_definition_as_text_loses_nothing(files: Mapping[str, str]) -> None:
    """A definition that was written as JSON and read again is equal, and has the same digest;
    from it alone each model, and from all the project is compiled to what it was.
    """
    declared = project(files)
    kept, definitions = kept_of(declared), definitions_of(declared)
    assert kept == definitions
    by_digest = {digest_of(one): one for one in kept.values()}
    assert set(by_digest) == {digest_of(one) for one in definitions.values()}

    empty = replace(declared, nodes=(), sources={}, start=None)
    for node in declared:
        found = project_of_definition(empty, kept[node.name], kept, by_digest)
        assert found is not None, f"the definition of {node.name} does not give its node again"
        assert essence(found[node.name]) == essence(node)

    again = again_of(declared)
    assert list(map(essence, again)) == list(map(essence, declared))
    assert definitions_of(again) == definitions


@pytest.mark.deep
def test_the_definitions_of_all_queries_give_their_project_again() -> None:
    """The same for the catalog of queries that are admitted."""
    declared = project_of_admitted()

    assert definitions_of(again_of(declared)) == definitions_of(declared)


def again_of(declared: Project) -> Project:
    """The project of all definitions of a project, in a folder without files."""
    empty = replace(declared, nodes=(), sources={})
    return project_of_definitions(empty, definitions_of(declared), {})


def test_definitions_that_do_not_fit_together() -> None:
    """Without the model that another one reads, there is no project, and the mistake is named."""
    declared = project()
    kept = {name: one for name, one in definitions_of(declared).items() if name != "sessions"}

    with pytest.raises(InfoldError, match="sessions"):
        project_of_definitions(declared, kept, {})


OTHER = {
    "a comment": ("models/sessions.sql", "AS events,", "AS events /* one each */,"),
    "a tag": ("models/daily.sql", "incremental: {}", "incremental: {}\ntags: [gold]"),
    "the query": ("models/clicks.sql", "IS NOT NULL", "IS NULL"),
    "the source": ("infold.yml", "amount: decimal(18,2)", "amount: decimal(18,3)"),
    "the project's start": ("infold.yml", "start: 2024-01-01", "start: 2024-01-02"),
    "the project's limit": ("infold.yml", "name: shop", "name: shop\nbackfill_limit: 9 days"),
}


@pytest.mark.parametrize(("file", "old", "new"), OTHER.values(), ids=OTHER)
def test_any_change_of_a_declaration_is_another_definition(file: str, old: str, new: str) -> None:
    """What somebody changed in a declaration is seen in a digest, comments and tags included."""
    before = {name: digest_of(one) for name, one in definitions_of(project()).items()}
    changed = definitions_of(project(spoilt(file, old, new)))

    assert before != {name: digest_of(one) for name, one in changed.items()}


def test_a_changed_view_is_another_definition_of_its_readers_only() -> None:
    """The digest of a view is in the definition of every model that reads it, and in no other."""
    before = definitions_of(project(VIEWS))
    changed = {**VIEWS, "models/paid.sql": VIEWS["models/paid.sql"].replace("> 0", "> 1")}
    after = definitions_of(project(changed))

    differing = {name for name in before if before[name] != after[name]}

    assert differing == {"paid", "dear", "daily", "board"}
    assert set(after["daily"].views) == {"paid", "dear"}


def test_the_place_of_a_source_is_no_part_of_a_definition() -> None:
    """A line above a source in infold.yml changes no definition."""
    moved = {**SHOP, "infold.yml": "# a remark\n" + INFOLD}

    assert definitions_of(project(moved)) == definitions_of(project())


def test_an_old_definition_is_compiled_over_the_definitions_that_built_its_inputs() -> None:
    """A model keeps its node though the files have another query, view and source, or none."""
    old = project(VIEWS)
    kept = definitions_of(old)
    by_digest = {digest_of(one): one for one in kept.values()}
    now = project(
        {
            "infold.yml": INFOLD,
            "models/clicks.sql": CLICKS.replace("url, amount", "url"),
            "models/paid.sql": "---\nmaterialization: view\n---\nSELECT user_id FROM clicks\n",
        }
    )

    found = project_of_definition(now, kept["daily"], kept, by_digest)

    assert found is not None
    assert essence(found["daily"]) == essence(old["daily"])


def test_a_definition_is_not_compiled_over_another_view() -> None:
    """Where the view that a definition read was not kept, today's view does not stand in for it;
    without an input of it, it gives no project either.
    """
    kept = definitions_of(project(VIEWS))
    now = project({**VIEWS, "models/paid.sql": VIEWS["models/paid.sql"].replace("> 0", "> 1")})

    assert project_of_definition(now, kept["daily"], definitions_of(now), {}) is None
    kept = definitions_of(project())
    clicks = {name: one for name, one in kept.items() if name == "clicks"}
    empty = project({"infold.yml": INFOLD, "models/clicks.sql": CLICKS})
    assert project_of_definition(empty, kept["daily"], clicks, {}) is None


def test_a_definition_over_an_input_with_other_columns_is_none() -> None:
    """Where an input was built again without a column that it had, a definition that names it
    gives no project, rather than a guess.
    """
    kept = dict(definitions_of(project()))
    other = spoilt("models/sessions.sql", "sum(amount) AS revenue, ", "")
    other["models/daily.sql"] = DAILY.replace(", sum(revenue) AS revenue", "")
    kept["sessions"] = definitions_of(project(other))["sessions"]

    assert project_of_definition(project(), kept["daily"], kept, {}) is None
