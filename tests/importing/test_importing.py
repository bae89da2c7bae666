"""Projects of dbt, SQLMesh and Snowplow become projects of infold."""

from __future__ import annotations

import pytest
from tests.importing.conftest import Import, Imported

from infold.importing.draft import Outcome
from infold.importing.snowplow import COLUMNS

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
                    select user_id, sum(amount) as paid, max(paid_at) as paid_at
                    from {{ source('raw', 'payments') }}
                    {% if is_incremental() %}
                    where paid_at > (select max(paid_at) from {{ this }})
                    {% endif %}
                    group by user_id
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
        assert "built whole" not in found.why("model users", Outcome.CHANGED)
        assert found.front("tops") == ["materialization: table"]
        why = found.why("model tops", Outcome.CHANGED)
        assert "window functions over the rows of a run, infold over all rows" in why
        assert "cannot be built cell by cell" in why
        assert found.outcomes("model chain") == found.outcomes("model reader") == {Outcome.LEFT}
        assert "models/reader.sql" not in found.fitted.files
        assert "left_out/reader.sql" in found.fitted.files
        assert found.why("model reader", Outcome.LEFT) == "it reads chain, which is left out"


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


CONFIG = "model_defaults: {dialect: duckdb, start: 2024-01-01}\nvariables: {least: 5}\n"
EXTERNAL = """
    - name: raw.payments
      columns: {payment_id: int, user_id: text, paid_at: timestamp, amount: "decimal(18,2)"}
"""


@pytest.fixture
def mesh(imported: Import) -> Import:
    """Import models beside an external table with its columns."""

    def run(files: dict[str, str]) -> Imported:
        given = {"config.yaml": CONFIG, "external_models.yaml": EXTERNAL}
        return imported("sqlmesh", {**given, **files})

    return run


def model(head: str, query: str) -> dict[str, str]:
    """One model, by the name `shop.m`."""
    return {"models/m.sql": f"MODEL (name shop.m, {head});\n{query};\n"}


class TestKinds:
    """Each kind has its materialization, or is left out with the reason."""

    def test_by_time_range(self, mesh: Import) -> None:
        """Time, cron and key come over; filters by the interval and the lookback are gone."""
        found = mesh(
            model(
                "kind INCREMENTAL_BY_TIME_RANGE (time_column paid_at, lookback 3, batch_size 7), "
                "cron '@daily', start '2024-02-01', grain payment_id",
                "SELECT payment_id::INT, amount, paid_at FROM raw.payments "
                "WHERE paid_at BETWEEN @start_ts AND @end_ts AND amount > @least",
            )
        )

        assert found.front("m") == [
            "materialization: table",
            "timeseries: {event_time_column: paid_at, granularity: day}",
            (
                "incremental: {cron: '@daily', batch_size: 7, start: '2024-02-01', "
                "unique_key: [payment_id]}"
            ),
        ]
        assert found.query("m") == (
            "SELECT CAST(payment_id AS INT) AS payment_id, amount, paid_at "
            "FROM raw.payments WHERE amount > 5"
        )
        assert "lookback is gone" in found.why("model m", Outcome.CHANGED)
        assert "@start_…" in found.why("model m", Outcome.CAME)

    @pytest.mark.parametrize(
        "query",
        [
            "SELECT @end_ds AS ds, user_id FROM raw.payments",
            "SELECT paid_at FROM raw.payments WHERE paid_at = @end_ts",
            "SELECT paid_at FROM raw.payments WHERE paid_at < @start_ts",
            "SELECT paid_at FROM raw.payments WHERE NOT paid_at >= @start_ts",
            "SELECT paid_at FROM raw.payments WHERE paid_at >= @start_ts OR amount > 1",
        ],
    )
    def test_rows_that_depend_on_the_interval_of_a_run_do_not_come_over(
        self, mesh: Import, query: str
    ) -> None:
        """Only a lower bound by the start and an upper one by the end say nothing of the table."""
        found = mesh(model("kind INCREMENTAL_BY_TIME_RANGE (time_column paid_at)", query))

        assert "depend on the interval of a run" in found.why("model m", Outcome.LEFT)

    @pytest.mark.parametrize(
        ("kind", "front", "query", "why"),
        [
            ("FULL", "table", "user_id FROM raw.payments", ""),
            ("VIEW", "view", "user_id FROM raw.payments", ""),
            ("EMBEDDED", "view", "user_id FROM raw.payments", ""),
            ("SCD_TYPE_2_BY_TIME (unique_key user_id, updated_at_name paid_at)",
             "scd_type_2\nunique_key: [user_id]\nscd_type_2: {updated_at: paid_at}",
             "user_id, paid_at FROM raw.payments", ""),
            ("INCREMENTAL_BY_UNIQUE_KEY (unique_key amount)", "table",
             "user_id, amount FROM raw.payments", "vanish upstream vanish here"),
            ("INCREMENTAL_BY_UNIQUE_KEY (unique_key user_id)", "cumulative_aggregate",
             "user_id, sum(amount) AS paid FROM raw.payments GROUP BY user_id",
             "vanish upstream vanish here"),
        ],
    )  # fmt: skip
    def test_other_kinds(self, mesh: Import, kind: str, front: str, query: str, why: str) -> None:
        """By unique key it is folded where the query groups by the key, else a table: both keep
        what the query gives, and a merge does not.
        """
        found = mesh(model(f"kind {kind}", f"SELECT {query}"))

        assert "\n".join(found.front("m")) == f"materialization: {front}"
        assert why in found.why("model m", Outcome.CHANGED)

    @pytest.mark.parametrize(
        ("kind", "why"),
        [
            ("SCD_TYPE_2_BY_COLUMN (unique_key user_id, columns [amount])", "time of a run"),
            ("INCREMENTAL_UNMANAGED", "has no definition"),
            ("CUSTOM (materialization 'own')", "infold has none like it"),
        ],
    )
    def test_kinds_without_an_equal(self, mesh: Import, kind: str, why: str) -> None:
        """They are left out."""
        found = mesh(model(f"kind {kind}", "SELECT user_id, amount FROM raw.payments"))

        assert why in found.why("model m", Outcome.LEFT)


class TestRest:
    """Names, audits, tests, macros."""

    def test_names_are_the_last_part_unless_two_models_share_it(self, mesh: Import) -> None:
        """Readers follow, in FROM and in columns that are named in full."""
        found = mesh(
            {
                "models/a.sql": "MODEL (name a.m, kind FULL); SELECT user_id FROM raw.payments",
                "models/b.sql": "MODEL (name b.m, kind FULL); SELECT m.user_id FROM a.m",
                "models/c.sql": "MODEL (name b.n, kind VIEW); SELECT x.user_id FROM b.m AS x",
            }
        )

        assert found.query("b_m") == "SELECT m.user_id FROM a_m AS m"
        assert found.query("n") == "SELECT x.user_id FROM b_m AS x"

    def test_audits(self, mesh: Import) -> None:
        """Built-in ones by their equals, own ones as files, with their arguments."""
        found = mesh(
            {
                **model(
                    "kind FULL, audits (not_null(columns := (user_id, amount)), "
                    "unique_values(columns = [payment_id]), forall(criteria := (amount > 0)), "
                    "accepted_range_non_blocking(column := amount, max_v := 9), "
                    "below(column := amount, limit := 100), valid_uuid(column := user_id))",
                    "SELECT payment_id, user_id, amount FROM raw.payments",
                ),
                "audits/a.sql": "AUDIT (name below); "
                "SELECT * FROM @this_model WHERE @column > @limit",
            }
        )

        assert found.front("m")[1:] == [
            "audits:",
            "  - {not_null: [user_id, amount]}",
            "  - {unique: [payment_id]}",
            "  - {expression: amount > 0}",
            "  - {accepted_range: {column: amount, max: 9}, severity: warn}",
        ]
        assert " ".join(found.text("audits/below_of_m.sql").split()) == (
            "--- model: m --- SELECT * FROM m WHERE amount > 100"
        )
        assert found.outcomes("audit of m: valid_uuid") == {Outcome.LEFT}

    def test_seeds_tests_and_macros(self, mesh: Import) -> None:
        """A seed's file comes along, with the types of the model; a path outside is no file. Rows
        of a test's inputs and query do; rows of CTEs have no place. An @ in a text is no macro.
        """
        found = mesh(
            {
                **model("kind FULL", "SELECT user_id, amount FROM raw.payments"),
                "tests/t.yaml": """
                    test_m:
                      model: shop.m
                      inputs: {raw.payments: {rows: [{user_id: a, amount: 1.5}]}}
                      outputs: {ctes: {c: []}, query: [{user_id: a, amount: 1.5}]}
                """,
                "models/s.sql": "MODEL (name shop.rates, kind SEED (path '../seeds/r.csv'), "
                "columns (currency TEXT, rate DOUBLE));",
                "models/o.sql": "MODEL (name shop.other, kind SEED (path '../../../etc/passwd'));",
                "seeds/r.csv": "currency,rate\nEUR,1.5\n",
                "models/p.sql": "MODEL (name p, kind FULL); SELECT @own(user_id) AS u "
                "FROM raw.payments",
                "models/n.sql": "MODEL (name n, kind FULL); SELECT 'a@b' AS mail FROM raw.payments",
            }
        )

        assert found.text("seeds/rates.csv") == "currency,rate\nEUR,1.5\n"
        assert "columns: {rate: double}" in found.text("infold.yml")
        assert found.outcomes("seed other") == {Outcome.LEFT}
        assert "expect m:\n\n| user_id | amount |\n" in found.text("tests/test_m.md")
        assert found.outcomes("ctes of test test_m") == {Outcome.LEFT}
        assert "macro @own(user_id)" in found.why("model p", Outcome.LEFT)
        assert found.query("n") == "SELECT 'a@b' AS mail FROM raw.payments"


def project(**variables: str) -> dict[str, str]:
    """A dbt project with these variables of the unified package."""
    lines = "\n".join(f"    snowplow__{name}: {value}" for name, value in variables.items())
    return {"dbt_project.yml": f"name: web\nvars:\n  snowplow_unified:\n{lines}\n"}


def test_what_becomes_of_each_variable(imported: Import) -> None:
    """Each is in a key or a query, as the report says; a lookback is not needed."""
    found = imported(
        "snowplow",
        project(
            start_date="'2024-03-01'", app_id="[shop, 'it''s']", session_timestamp="derived_tstamp",
            max_session_days="5", heartbeat="15", user_sql="e.network_userid",
            session_lookback_days="730", enable_consent="true", enable_cwv="false",
        ),
    )  # fmt: skip

    assert "start: '2024-03-01'" in found.text("infold.yml")
    assert "WHERE app_id IN ('shop', 'it''s')" in found.query("events")
    assert "timeseries: {event_time_column: derived_tstamp, granularity: day}" in found.front(
        "events"
    )
    (sessions,) = [line for line in found.front("sessions") if line.startswith("sessions:")]
    assert "identifier: [domain_sessionid], user: network_userid" in sessions
    assert "quarantine_after: 5 days" in sessions
    assert "/ 15) END) * 15" in found.query("sessions")
    assert "GROUP BY network_userid" in found.query("users")
    assert found.outcomes("variable snowplow__user_sql") == {Outcome.CAME}
    assert "no lookback" in found.why("variable snowplow__session_lookback_days", Outcome.CAME)
    assert found.outcomes("variable snowplow__enable_consent") == {Outcome.LEFT}
    assert found.outcomes("variable snowplow__enable_cwv") == {Outcome.CAME}


def test_identifiers_in_contexts_have_no_place(imported: Import) -> None:
    """The columns of a context are not those of enriched events."""
    found = imported("snowplow", project(session_identifiers="[{schema: a_1, field: id}]"))

    assert found.outcomes("variable snowplow__session_identifiers") == {Outcome.LEFT}


def test_a_line_of_enriched_events_has_131_fields() -> None:
    """Without a header the number and the order of the columns are the file's."""
    assert len(COLUMNS) == 131
    assert list(COLUMNS)[:3] == ["app_id", "platform", "etl_tstamp"]
    assert list(COLUMNS)[-1] == "true_tstamp"
