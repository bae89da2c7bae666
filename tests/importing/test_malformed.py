"""Files of other tools that are not as they should be: a report, never a traceback."""

from __future__ import annotations

import pytest
from tests.importing.conftest import Import

NAME = "name: s\n"
DBT: list[dict[str, str]] = [
    {"dbt_project.yml": "- a\n- b\n"},
    {"dbt_project.yml": "name: [1, 2]\nmodels: 5\nvars: x\n", "models/a.sql": "select 1 as a"},
    {
        "dbt_project.yml": NAME,
        "models/a.yml": "models: x\nsources: [1, {name: r, tables: 5}, {tables: [{}]}]\n"
        "unit_tests: [{}, {name: x, given: 5, expect: []}]\nsnapshots: [{relation: 5}]\n",
    },
    {
        "dbt_project.yml": NAME,
        "models/s.yml": "models: [{name: a, columns: [5, {name: x, tests: [5, [1], {a: 5}, "
        "{accepted_values: {}}, {relationships: {}}, {not_null: {config: 5}}]}]}]\n",
        "models/a.sql": "select 1 as x",
    },
    {"dbt_project.yml": NAME, "models/a.sql": "{{ config(5) }} select 1"},
    {"dbt_project.yml": NAME, "models/a.sql": "{% set x = 1/0 %} select 1"},
    {
        "dbt_project.yml": NAME,
        "macros/m.sql": "{% macro a() %}{{ a() }}{% endmacro %}{% macro b( %}{% endmacro %}",
        "models/a.sql": "select {{ a() }}",
        "models/b.sql": "select {{ b() }}",
    },
    {"dbt_project.yml": NAME, "seeds/a.csv": "", "seeds/b.csv": "x,x\n1,2\n"},
    {
        "dbt_project.yml": NAME,
        "models/s.yml": "sources: [{name: 'a b', tables: [{name: 'x-y'}, {name: 'x y'}]}]",
        "models/a.sql": "select z from {{ source('a b', 'x-y') }} "
        "join {{ source('a b', 'x y') }} using (z)",
    },
]
SQLMESH: list[dict[str, str]] = [
    {"config.yaml": "- 1\n"},
    {"config.yaml": "", "models/a.sql": "MODEL (); SELECT 1"},
    {"config.yaml": "", "models/a.sql": "MODEL (name x, kind FULL, dialect foo); SELECT 1 AS a"},
    {"config.yaml": "", "models/a.sql": "MODEL (name x; SELECT '"},
    {
        "config.yaml": "",
        "tests/t.yaml": "t: {model: '', inputs: 5, outputs: {query: 5}}\n"
        "u: {inputs: {'a b;': []}, outputs: {query: []}}\n",
        "external_models.yaml": "5\n",
        "schema.yaml": "- {name: ''}\n- {name: 'a b c'}\n",
    },
]
SNOWPLOW: list[dict[str, str]] = [
    {"dbt_project.yml": "5"},
    {
        "dbt_project.yml": "vars: {snowplow__start_date: [1], snowplow__app_id: {a: b}, "
        "snowplow__session_identifiers: x, snowplow__user_sql: 'x; drop', "
        "snowplow__max_session_days: abc, snowplow__heartbeat: -1, "
        "snowplow__session_timestamp: [a]}"
    },
]
CASES = [
    *(("dbt", files) for files in DBT),
    *(("sqlmesh", files) for files in SQLMESH),
    *(("snowplow", files) for files in SNOWPLOW),
]


@pytest.mark.parametrize(("tool", "files"), CASES)
def test_a_project_comes_out_of_it_that_passes_check(
    imported: Import, tool: str, files: dict[str, str]
) -> None:
    """What cannot be read is left out; `imported` asserts that check finds nothing in the rest."""
    found = imported(tool, files)

    assert "infold.yml" in found.fitted.files
