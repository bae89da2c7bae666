"""What becomes of each part of a SQLMesh project."""

from __future__ import annotations

import pytest
from tests.importing.conftest import Import, Imported

from infold.importing.draft import Outcome

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
            (
                "SCD_TYPE_2_BY_TIME (unique_key user_id, updated_at_name paid_at)",
                "scd_type_2\nunique_key: [user_id]\nscd_type_2: {updated_at: paid_at}",
                "user_id, paid_at FROM raw.payments",
                "",
            ),
            (
                "INCREMENTAL_BY_UNIQUE_KEY (unique_key amount)",
                "table",
                "user_id, amount FROM raw.payments",
                "vanish upstream vanish here",
            ),
            (
                "INCREMENTAL_BY_UNIQUE_KEY (unique_key user_id)",
                "cumulative_aggregate",
                "user_id, sum(amount) AS paid FROM raw.payments GROUP BY user_id",
                "vanish upstream vanish here",
            ),
        ],
    )
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
