"""A model under another name is the model that the same query under that name declares."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.declare.shop import SHOP, project

from infold.analysis.renamed_tables import renamed
from infold.core.project import Node, Project

pytestmark = pytest.mark.deep

MODELS = {
    "clicks": SHOP["models/clicks.sql"],
    "paid": "---\nmaterialization: view\n---\nSELECT * FROM {clicks} WHERE amount > 0\n",
    "sessions": SHOP["models/sessions.sql"].replace("FROM clicks", "FROM {paid}"),
    "daily": SHOP["models/daily.sql"].replace("FROM sessions", "FROM {sessions}"),
    "rolling": """\
---
materialization: table
timeseries: {{event_time_column: day, granularity: day}}
incremental: {{}}
---
SELECT a.day, sum(b.sessions) AS week FROM {daily} AS a JOIN {daily} b
ON b.day BETWEEN a.day - INTERVAL 6 DAYS AND a.day GROUP BY a.day
""",
    "countries": "---\nmaterialization: table\n---\nSELECT raw.countries.* FROM raw.countries\n",
    "named": """\
---
materialization: table
timeseries: {{event_time_column: event_ts, granularity: day}}
incremental: {{}}
---
SELECT clicks.event_ts, countries.country FROM {clicks}
LEFT JOIN {countries} ON clicks.url = countries.code
""",
    "users": """\
---
materialization: cumulative_aggregate
---
SELECT clicks.user_id, count(*) AS n FROM {clicks} WHERE clicks.user_id <> '' GROUP BY 1
""",
    "whole": """\
---
materialization: table
---
WITH daily AS (SELECT 1 AS one) SELECT (SELECT max(day) FROM {rolling}) AS d, one FROM daily
""",
}
"""Files of models; other models are named in braces."""


def shop(names: Mapping[str, str]) -> Project:
    """The project with models under other names, declared so in its files."""
    aliases = {name: f"`{names[name]}` AS `{name}`" if name in names else name for name in MODELS}
    aliased = {name: f"`{names[name]}`" if name in names else name for name in MODELS}
    files = {}
    for name, text in MODELS.items():
        sql = text.replace("{daily} AS a", aliased["daily"] + " AS a")
        sql = sql.replace("{daily} b", aliased["daily"] + " b")
        for other, alias in aliases.items():
            sql = sql.replace(f"{{{other}}}", alias)
        files[f"models/{names.get(name, name)}.sql"] = sql.replace("{{", "{").replace("}}", "}")
    return project({"infold.yml": SHOP["infold.yml"], **files})


def but_for_words(node: Node) -> Node:
    """A model without its fingerprint, which is made of names too."""
    return replace(node, fingerprint="")


@given(st.sets(st.sampled_from(sorted(MODELS))))
def test_as_if_it_were_declared_so(chosen: set[str]) -> None:
    """Whichever models have other names, each is the node that its renamed file compiles to."""
    names = {name: f"{name}__12ab34cd" for name in chosen}

    declared = shop({})
    by_files = shop(names)

    for node in declared:
        name = names.get(node.name, node.name)
        found = renamed(node, name, names)
        assert but_for_words(found) == but_for_words(by_files[name])
        assert found.fingerprint == node.fingerprint
        # without a name for anything that it reads, a query stays to the letter
        assert renamed(node, "other", {}).model.sql == node.model.sql


def test_the_source_of_an_events_model_keeps_its_name() -> None:
    """A source that also lands as a table is renamed for readers of the table, not where it is
    ingested.
    """
    rules = "updated_at: at, columns: '*', invalidate_hard_deletes: true"
    head = f"materialization: scd_type_2\nunique_key: [code]\nscd_type_2: {{{rules}}}"
    path = "path: countries.csv"
    both = {
        **SHOP,
        "infold.yml": SHOP["infold.yml"].replace(path, f"{path}\n    file_time_column: at"),
        "models/urls.sql": "---\nmaterialization: table\n---\nSELECT url FROM raw.clicks\n",
        "models/known.sql": f"---\n{head}\n---\nSELECT * FROM raw.countries",
    }
    declared = project(both)
    names = {"raw.clicks": "raw.clicks__1", "raw.countries": "raw.countries__1"}

    clicks, landed, urls, known = (
        renamed(declared[name], names.get(name, name), names)
        for name in ("clicks", "raw.clicks", "urls", "known")
    )

    assert (clicks.source, clicks.references[0].name) == ("raw.clicks", "raw.clicks")
    assert (landed.name, landed.references[0].name) == ("raw.clicks__1", "raw.clicks")
    assert urls.model.sql.strip() == "SELECT url FROM `raw`.`clicks__1` AS `clicks`"
    assert known.versions is not None
    assert known.versions.grouped.input == "raw.countries__1"
    assert known.versions.snapshot_files is not None
    assert known.versions.snapshot_files.source == "raw.countries__1"
