"""What becomes of each part of a dbt project."""

from __future__ import annotations

import pytest
from tests.importing.conftest import Import, Imported

from infold.importing.draft import Outcome

PROJECT = "name: shop\nversion: '1.0'\n"
SOURCES = """
    sources:
      - name: raw
        tables:
          - name: payments
            columns:
              - {name: payment_id, data_type: varchar(20)}
              - {name: paid_at, data_type: timestamp}
              - {name: amount, data_type: "numeric(18,2)"}
"""
STAGING = """
    with source as (select * from {{ source('raw', 'payments') }})
    select payment_id, user_id, paid_at, amount from source
"""


@pytest.fixture
def dbt(imported: Import) -> Import:
    """Import models beside a source and a view of it."""

    def run(files: dict[str, str], dialect: str = "") -> Imported:
        given = {
            "dbt_project.yml": PROJECT,
            "models/sources.yml": SOURCES,
            "models/stg_payments.sql": STAGING,
        }
        return imported("dbt", {**given, **files}, dialect)

    return run


def test_sources_have_declared_columns_and_those_of_queries(dbt: Import) -> None:
    """Types that are declared are Spark's; a column that only a query names, through `*` and a
    CTE, is a string to fill in. `_loaded_at`, as loaders call it, has a name that a table may
    have, in the source and in every query, and in no text.
    """
    loaded = "select _loaded_at, '_loaded_at' as t from {{ source('raw', 'payments') }}"
    found = dbt({"models/m.sql": loaded})

    text = found.text("infold.yml")
    assert "payment_id: varchar(20)\n" in text
    assert "amount: 'decimal(18,2)'\n" in text
    assert "user_id: string  # to fill in: its type\n" in text
    assert "path: landing/raw/payments/*.parquet  # to fill in" in text
    assert found.query("m") == "select loaded_at, '_loaded_at' as t from raw.payments"
    assert "_loaded_at is loaded_at" in found.why("source raw.payments", Outcome.CHANGED)
    assert found.outcomes("source raw.payments") == {Outcome.TO_FILL, Outcome.CHANGED}


class TestIncremental:
    """A query says what the whole table is, so blocks and lookbacks are gone."""

    def test_a_lookback_in_a_block_is_gone_and_names_the_time_of_the_rows(
        self, dbt: Import
    ) -> None:
        """The column whose newest value the block asks for places the rows in days."""
        found = dbt(
            {
                "models/daily.sql": """
                    {{ config(materialized='incremental') }}
                    select paid_at, user_id, amount from {{ ref('stg_payments') }}
                    {% if is_incremental() %}
                    where paid_at > (select max(paid_at) - interval 3 days from {{ this }})
                    {% endif %}
                """
            }
        )

        assert found.query("daily") == "select paid_at, user_id, amount from stg_payments"
        assert "incremental: {}" in found.front("daily")
        assert "event_time_column: paid_at" in found.text("infold.yml")
        (line,) = [each for each in found.lines("model daily") if "is_incremental" in each.why]
        assert line.at == "models/daily.sql:3"

    def test_microbatch(self, dbt: Import) -> None:
        """Event time, batch size and begin come over; the lookback is gone, and said to be."""
        found = dbt(
            {
                "models/daily.sql": """
                    {{ config(materialized='incremental', incremental_strategy='microbatch',
                              event_time='paid_at', batch_size='hour', lookback=3,
                              begin='2024-01-01') }}
                    select paid_at, amount from {{ ref('stg_payments') }}
                """
            }
        )

        assert found.front("daily") == [
            "materialization: table",
            "timeseries: {event_time_column: paid_at, granularity: hour}",
            "incremental: {start: '2024-01-01'}",
        ]
        assert "lookback is gone" in found.why("model daily", Outcome.CAME)

    def test_what_is_not_built_cell_by_cell(self, dbt: Import) -> None:
        """A merge by key that groups is a cumulative aggregate; that it kept rows that are gone is
        said. Of a window dbt computed the maximum over the rows of a run: no day can be built
        alone. A query that reads `this` has no definition, and its readers go too.
        """
        found = dbt(
            {
                "models/users.sql": """
                    {{ config(materialized='incremental', unique_key='user_id') }}
                    select user_id, sum(amount) as paid
                    from {{ source('raw', 'payments') }} group by user_id
                """,
                "models/tops.sql": """
                    {{ config(materialized='incremental', event_time='paid_at') }}
                    select paid_at, max(amount) over () as top from {{ ref('stg_payments') }}
                """,
                "models/chain.sql": "select * from {{ this }}",
                "models/reader.sql": "select * from {{ ref('chain') }}",
            }
        )

        assert found.front("users") == ["materialization: cumulative_aggregate"]
        assert "where a merge keeps them" in found.why("model users", Outcome.CHANGED)
        assert found.front("tops") == ["materialization: table"]
        why = found.why("model tops", Outcome.CHANGED)
        assert "window functions over the rows of a run, infold over all rows" in why
        assert "cannot be built cell by cell" in why
        assert found.outcomes("model chain") == found.outcomes("model reader") == {Outcome.LEFT}
        assert "models/reader.sql" not in found.fitted.files
        assert "left_out/reader.sql" in found.fitted.files


class TestTemplates:
    """What is known without a warehouse is resolved; all else is named with its line."""

    def test_variables_macros_and_nodes_are_resolved(self, dbt: Import) -> None:
        """A macro of the project, with `return`, and a variable with a value and a default."""
        found = dbt(
            {
                "dbt_project.yml": PROJECT + "vars: {least: 5}\n",
                "macros/m.sql": "{% macro cents(c) %}{{ return(half(c) ~ ' * 50') }}{% endmacro %}"
                "{% macro half(c) %}{{ c }}{% endmacro %}",
                "models/m.sql": "select {{ cents('amount') }} as c from {{ ref('stg_payments') }} "
                "where amount > {{ var('least') }} and amount < {{ var('most', 9) }}",
            }
        )

        assert found.query("m") == (
            "select amount * 50 as c from stg_payments where amount > 5 and amount < 9"
        )

    @pytest.mark.parametrize(
        ("text", "named"),
        [
            ("{{ dbt_utils.star(ref('stg_payments')) }}", "dbt_utils.star()"),
            ("{% if execute %}1{% endif %}", "execute"),
            ("{{ run_query('select 1') }}", "run_query()"),
            ("{{ var('nothing') }}", "var('nothing'), which has no value"),
            ("{{ ref('nobody') }}", "ref('nobody')"),
            ("{{ ''.__class__.__mro__ }}", "__class__"),
            ("{% for a in b %}", "Unexpected end of template"),
        ],
    )
    def test_anything_else_is_named_with_its_line(self, dbt: Import, text: str, named: str) -> None:
        """The model is left out, and nothing of its text is guessed."""
        found = dbt({"models/m.sql": f"select 1 as a\n, {text} as b"})

        (line,) = found.lines("model m")
        assert line.outcome is Outcome.LEFT
        assert named in line.why
        assert line.at.startswith("models/m.sql:2")

    def test_another_dialect_is_translated(self, dbt: Import) -> None:
        """`--dialect` names it; a function that Spark lacks leaves the model out."""
        found = dbt(
            {
                "models/m.sql": "select paid_at::date as day from {{ ref('stg_payments') }}",
                "models/n.sql": "select st_point(amount, 1) as p from {{ ref('stg_payments') }}",
            },
            "snowflake",
        )

        assert found.query("m") == "SELECT CAST(paid_at AS DATE) AS day FROM stg_payments"
        assert found.outcomes("model n") == {Outcome.LEFT}


class TestOthers:
    """Tests, seeds, snapshots and unit tests."""

    def test_tests_are_audits(self, dbt: Import) -> None:
        """Generic tests by name; one with thresholds, or of no known name, is left out."""
        found = dbt(
            {
                "models/schema.yml": """
                    models:
                      - name: stg_payments
                        columns:
                          - name: payment_id
                            tests:
                              - not_null
                              - unique: {config: {severity: warn}}
                          - name: user_id
                            data_tests:
                              - accepted_values: {arguments: {values: [a, b]}}
                              - relationships: {to: ref('users'), field: user_id}
                              - not_null: {config: {error_if: ">10"}}
                              - own_test
                        tests:
                          - dbt_utils.accepted_range: {column_name: amount, min_value: 0}
                          - dbt_utils.expression_is_true: {expression: "amount < 100"}
                """,
                "models/users.sql": "{{ config(materialized='table') }}"
                "select distinct user_id from {{ source('raw', 'payments') }}",
            }
        )

        assert found.front("stg_payments")[1:] == [
            "audits:",
            "  - {not_null: [payment_id]}",
            "  - {unique: [payment_id], severity: warn}",
            "  - {accepted_values: {column: user_id, values: [a, b]}}",
            "  - {relationship: {column: user_id, to: users, to_column: user_id}}",
            "  - {accepted_range: {column: amount, min: 0}}",
            "  - {expression: amount < 100}",
        ]
        assert "thresholds" in found.why("test of stg_payments: not_null(user_id)", Outcome.LEFT)
        assert found.outcomes("test of stg_payments: own_test(user_id)") == {Outcome.LEFT}

    def test_singular_tests_seeds_and_snapshots(self, dbt: Import) -> None:
        """A test is an audit of the first model that it reads. A code with a leading zero stays
        text; what is declared goes before a guess. A snapshot by timestamp is a table of versions;
        one by check has no time of a row, and is left out.
        """
        types = "seeds: {shop: {+column_types: {rate: 'numeric(4,2)'}}}\n"
        found = dbt(
            {
                "dbt_project.yml": PROJECT + types,
                "tests/bad.sql": "select * from {{ ref('stg_payments') }} where amount < 0",
                "seeds/countries.csv": "code,people,rate,since\n01,5,1.5,2024-01-01\n",
                "snapshots/s.sql": """
                    {% snapshot prices %}
                    {{ config(unique_key='payment_id', strategy='timestamp',
                              updated_at='paid_at') }}
                    select * from {{ source('raw', 'payments') }}
                    {% endsnapshot %}
                    {% snapshot others %}
                    {{ config(unique_key='payment_id', strategy='check', check_cols='all') }}
                    select * from {{ source('raw', 'payments') }}
                    {% endsnapshot %}
                """,
            }
        )

        assert found.text("audits/bad.sql") == (
            "---\nmodel: stg_payments\n---\nselect * from stg_payments where amount < 0\n"
        )
        types = "columns: {people: bigint, rate: 'decimal(4,2)', since: date}"
        assert types in found.text("infold.yml")
        assert found.why("seed countries", Outcome.CHANGED).endswith(": people, since")
        assert found.front("prices") == [
            "materialization: scd_type_2",
            "unique_key: [payment_id]",
            "scd_type_2: {updated_at: paid_at}",
        ]
        assert found.outcomes("snapshot others") == {Outcome.LEFT}

    def test_unit_tests_are_tables_of_rows(self, dbt: Import) -> None:
        """Rows of inputs arrive, rows of the model are expected; overrides have no equal."""
        found = dbt(
            {
                "models/schema.yml": """
                    unit_tests:
                      - name: sums
                        model: users
                        given:
                          - input: source('raw', 'payments')
                            rows:
                              - {user_id: a, amount: 2}
                              - {user_id: "", amount: 3, note: "x|y"}
                        expect:
                          rows: [{user_id: a, paid: 2}]
                      - name: forced
                        model: users
                        overrides: {macros: {is_incremental: true}}
                        given: []
                        expect: {rows: []}
                """,
                "models/users.sql": "{{ config(materialized='table') }}"
                "select user_id, sum(amount) as paid from {{ ref('stg_payments') }} group by 1",
            }
        )

        assert found.text("tests/sums.md") == (
            "From models/schema.yml.\n\n# sums\n\n## Arrival\n\n"
            "raw.payments:\n\n"
            "| user_id | amount | note |\n"
            "|---------|--------|------|\n"
            "| a       | 2      | NULL |\n"
            '| ""      | 3      | x\\|y |\n'
            "\nexpect users:\n\n"
            "| user_id | paid |\n|---------|------|\n| a       | 2    |\n"
        )
        assert "note: string" in found.text("infold.yml")
        assert found.outcomes("test forced") == {Outcome.LEFT}
