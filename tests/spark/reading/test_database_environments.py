"""Tables of databases as sources of production and of an environment, with tables in Delta Lake."""

from __future__ import annotations

import sqlite3
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from tests.spark.reading.bought import MODELS, SOURCES

from infold import api
from infold.api.environment_runs import run_environment
from infold.api.environments import show_environment, verify_environment
from infold.api.promoting import find_promotion, find_rollback, promote, rollback
from infold.core.project import Project

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark

PROJECT = f"""{SOURCES.replace("DAYS", "3")}targets:
  dev: {{storage: delta, warehouse: 'WAREHOUSE', apply: manual}}
"""
LARGE = " WHERE amount > 5"
CHANGED = {
    "orders": MODELS["orders"] + LARGE,
    "payments": MODELS["payments"].replace("state FROM", "upper(state) AS state FROM"),
    "daily": MODELS["daily"].replace("sum(o.amount", "max(r.rate) AS top, sum(o.amount"),
}
ORACLE = {
    "orders": "SELECT id, currency, amount FROM orders",
    "payments": "SELECT id, state FROM payments",
    "daily": "SELECT date(o.at), sum(o.amount * r.rate) FROM orders o"
    " JOIN rates r USING (currency) GROUP BY 1",
}
CHANGED_ORACLE = {
    "orders": ORACLE["orders"] + LARGE,
    "payments": "SELECT id, upper(state) FROM payments",
    "daily": "SELECT date(o.at), max(r.rate), sum(o.amount * r.rate) FROM orders o"
    f" JOIN rates r USING (currency){LARGE} GROUP BY 1",
}
"""Plain SQL over the database; all changes of it are such as are declared to be seen."""


class Shop:
    """A project over a database, with production and an environment `dev`."""

    def __init__(self, root: Path, warehouse: Path) -> None:
        self.root = root
        (root / "models").mkdir(parents=True)
        self.declare(PROJECT.replace("WAREHOUSE", str(warehouse)))
        self.write(MODELS)

    def declare(self, text: str) -> None:
        """The project's file."""
        (self.root / "infold.yml").write_text(text, encoding="utf-8")

    def write(self, models: dict[str, str]) -> None:
        """The files of models."""
        for name, text in models.items():
            (self.root / "models" / f"{name}.sql").write_text(text, encoding="utf-8")

    def sql(self, *statements: str) -> list[tuple[Any, ...]]:
        """Statements in the database; the rows of the last one, in an order."""
        with sqlite3.connect(self.root / "shop.db") as connection:
            for text in statements:
                found = connection.execute(text).fetchall()
        connection.close()
        return sorted(found)

    @property
    def production(self) -> Project:
        """By its applied definitions."""
        return api.open_project(self.root)

    @property
    def declared(self) -> Project:
        """By the files."""
        return api.open_project(self.root, declared=True)

    def rows(self, name: str, environment: bool = False) -> list[tuple[Any, ...]]:
        """The rows of a table as the oracles have them."""
        found = (
            show_environment(self.declared, "dev", name)
            if environment
            else api.show(self.production, name)
        )
        rows = [
            tuple(
                str(value) if column == "day" else value
                for column, value in row.items()
                if column not in ("at", "changed_at")
            )
            for row in found.to_pylist()
        ]
        return sorted(rows)

    def check(self, oracle: dict[str, str]) -> None:
        """Production is what plain SQL gives."""
        assert {name: self.rows(name) for name in oracle} == self.expected(oracle)

    def expected(self, oracle: dict[str, str]) -> dict[str, list[tuple[Any, ...]]]:
        """What plain SQL gives now."""
        return {name: self.sql(text) for name, text in oracle.items()}


def test_production_and_an_environment_share_what_is_read(
    tmp_path: Path, warehouse: Path, spark: SparkSession
) -> None:
    """
    Either adds to the files what it reads, and both are exact; so they are promoted, and back.

    An environment that would read other columns is refused, and production goes on.
    """
    shop = Shop(tmp_path / "shop", warehouse / "of a database")
    shop.sql(
        "CREATE TABLE orders (id INTEGER, at DATETIME, currency TEXT, amount INTEGER, by TEXT)",
        "CREATE TABLE payments (id INTEGER, at DATETIME, changed_at DATETIME NOT NULL, state TEXT)",
        "CREATE TABLE rates (currency TEXT, rate REAL)",
        "INSERT INTO rates VALUES ('eur', 1.0), ('chf', 2.0)",
        "INSERT INTO orders VALUES (5, '2024-03-01 10:00', 'eur', 10, 'ann'),"
        " (7, '2024-03-02', 'chf', 5, 'bob')",
        "INSERT INTO payments VALUES (5, '2024-03-01', '2024-03-01', 'open')",
        "INSERT INTO payments VALUES (7, '2024-03-02', '2024-03-04', 'open')",
    )
    api.run(api.to_apply(shop.declared), command="apply")
    shop.check(ORACLE)
    was = shop.expected(ORACLE)

    shop.write(CHANGED)
    shop.sql(
        "INSERT INTO orders VALUES (8, '2024-03-01', 'chf', 4, 'cyd'),"
        " (9, '2024-03-03', 'eur', 7, 'ann')",
        "UPDATE payments SET state = 'paid', changed_at = '2024-03-05' WHERE id = 7",
        "UPDATE rates SET rate = 3.0 WHERE currency = 'chf'",
    )
    run_environment(shop.declared, "dev")

    assert {name: shop.rows(name) for name in ORACLE} == was, "production has not run"
    found = {name: shop.rows(name, environment=True) for name in CHANGED_ORACLE}
    assert found | {"daily": []} == shop.expected(CHANGED_ORACLE) | {"daily": []}
    assert all(one.equal for one in verify_environment(shop.declared, "dev").models)

    text = (shop.root / "infold.yml").read_text(encoding="utf-8")
    shop.declare(text.replace("amount: bigint", "amount: bigint, by: string"))
    shop.write({"orders": CHANGED["orders"].replace("currency, amount", "currency, amount, by")})
    shop.sql("INSERT INTO orders VALUES (10, '2024-03-03', 'chf', 9, 'dan')")
    with pytest.raises(api.RunFailed) as failed:
        run_environment(shop.declared, "dev")
    slugs = {one.error.slug for one in failed.value.result.failures}
    assert slugs == {"source-declared-otherwise"}
    api.run(shop.production)
    shop.check(ORACLE)

    shop.declare(text)
    shop.write(CHANGED)
    run_environment(shop.declared, "dev")
    promote(shop.production, find_promotion(shop.production, "dev"))
    api.run(shop.production)
    shop.check(CHANGED_ORACLE)

    shop.sql(
        "INSERT INTO orders VALUES (11, '2024-03-03', 'eur', 6, '')",
        "DELETE FROM payments WHERE id = 7",
        "DELETE FROM rates WHERE currency = 'chf'",
    )
    api.run(shop.production, allow_removals=True)
    shop.check(CHANGED_ORACLE)
    assert all(one.equal for one in api.verify(shop.production).models)
    rollback(shop.production, find_rollback(shop.production))
    api.run(shop.production, allow_removals=True)
    shop.check(ORACLE)
