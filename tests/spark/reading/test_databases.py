"""Tables of a database as sources: what a run reads becomes known as files of a folder do."""

from __future__ import annotations

import sqlite3
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest

from infold import api
from infold.api import doctor
from infold.api.environment_runs import run_environment
from infold.api.environments import show_environment
from infold.api.promoting import find_promotion, promote
from infold.core.project import Project

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark

PROJECT = """
name: bought
sources:
  db.orders:
    url: sqlite:///shop.db
    table: orders
    key: id
    corrections: none
    event_time_column: at
    columns: {id: bigint, at: timestamp, currency: string, amount: bigint}
  db.payments:
    url: sqlite:///shop.db
    table: payments
    key: changed_at
    corrections: reread 2 days
    event_time_column: at
    columns: {id: bigint, at: timestamp, changed_at: timestamp, state: string}
  db.rates:
    url: sqlite:///shop.db
    table: rates
    columns: {currency: string, rate: double}
targets:
  dev: {warehouse: 'WAREHOUSE', apply: manual}
"""
EVENTS = """---
materialization: events
unique_key: [id]
timeseries: {event_time_column: at}
---
"""
MODELS = {
    "orders": f"{EVENTS}SELECT id, at, currency, amount FROM db.orders",
    "payments": EVENTS.replace("timeseries", "prefer: [changed_at desc]\ntimeseries")
    + "SELECT id, at, changed_at, state FROM db.payments",
    "daily": """---
materialization: table
timeseries: {event_time_column: at, partition_column: day}
incremental: {}
---
SELECT cast(o.at AS date) AS day, sum(o.amount * r.rate) AS amount
FROM orders o JOIN db.rates r ON r.currency = o.currency GROUP BY 1""",
}
TABLES = (
    "CREATE TABLE orders (id INTEGER PRIMARY KEY, at DATETIME, currency TEXT, amount INTEGER)",
    "CREATE TABLE payments (id INTEGER, at DATETIME, changed_at DATETIME NOT NULL, state TEXT)",
    "CREATE TABLE rates (currency TEXT, rate REAL)",
    "INSERT INTO rates VALUES ('eur', 1.0), ('chf', 2.0)",
    "INSERT INTO orders VALUES (5, '2024-03-01 10:00', 'eur', 10), (7, '2024-03-02', 'chf', 10)",
    "INSERT INTO payments VALUES (5, '2024-03-01', '2024-03-01', 'paid')",
    "INSERT INTO payments VALUES (7, '2024-03-02', '2024-03-04', 'open')",
    "INSERT INTO payments VALUES (8, '2024-03-01', '2024-03-01', 'open')",
)
NOTES = """\
db.orders: a run first reads the rows of orders with a greater id than any before; not seen are \
rows that are committed later with a smaller or equal one, changes and deletions
db.payments: a run first reads the rows of payments from 2 days before the greatest changed_at on; \
not seen are changes, deletions and new rows before that
db.rates: a run first reads all of rates; not seen are rows that come and go between two runs"""
LARGE = " WHERE amount > 5"
CHANGED = {
    "orders": MODELS["orders"] + LARGE,
    "daily": MODELS["daily"].replace("sum(o.amount", "max(r.rate) AS top, sum(o.amount"),
}


class Shop:
    """A project over a database."""

    def __init__(self, root: Path, text: str) -> None:
        self.root = root
        (root / "models").mkdir(parents=True)
        (root / "infold.yml").write_text(text, encoding="utf-8")
        self.write(MODELS)
        self.sql(*TABLES)

    def write(self, models: Mapping[str, str]) -> None:
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

    def project(self, *, declared: bool = False) -> Project:
        """By its applied definitions, or by the files."""
        return api.open_project(self.root, declared=declared)

    def rows(self, name: str) -> list[tuple[Any, ...]]:
        """The rows of a table of production."""
        return without_times(api.show(self.project(), name))


def without_times(rows: pa.Table) -> list[tuple[Any, ...]]:
    """Rows in an order, as plain SQL gives them."""
    found = rows.drop_columns({"at", "changed_at"} & {*rows.column_names}).to_pylist()
    return sorted(tuple(str(v) if k == "day" else v for k, v in row.items()) for row in found)


def test_what_is_read_becomes_known_as_files_do(
    tmp_path: Path, warehouse: Path, spark: SparkSession
) -> None:
    """
    New, changed and deleted rows follow as far as was declared, and no farther; a run without any
    builds nothing. Production and an environment add to the files what they read, and both are
    exact; so they are promoted. A table that cannot be read stops its readers alone.
    """
    shop = Shop(tmp_path / "shop", PROJECT.replace("WAREHOUSE", str(warehouse)))
    assert "\n".join(api.plan(shop.project(declared=True)).notes) == NOTES

    api.run(api.to_apply(shop.project(declared=True)), command="apply")
    assert shop.rows("orders") == [(5, "eur", 10), (7, "chf", 10)]
    assert shop.rows("payments") == [(5, "paid"), (7, "open"), (8, "open")]
    assert [amount for _, amount in shop.rows("daily")] == [10.0, 20.0]
    assert api.run(shop.project()).steps == ()

    shop.sql(
        "INSERT INTO orders VALUES (6, '2024-03-01', 'eur', 1), (9, '2024-03-01', 'eur', 5)",
        "DELETE FROM orders WHERE id = 7",
        "UPDATE payments SET state = 'lost' WHERE id = 5",
        "UPDATE payments SET state = 'paid', changed_at = '2024-03-05' WHERE id = 7",
        "UPDATE payments SET state = 'back', changed_at = '2024-03-06' WHERE id = 8",
        "INSERT INTO payments VALUES (9, '2024-03-01', '2024-03-02 23:59', 'late')",
        "UPDATE rates SET rate = 3.0 WHERE currency = 'chf'",
    )
    api.run(shop.project())
    assert shop.rows("orders") == [(5, "eur", 10), (7, "chf", 10), (9, "eur", 5)]
    assert shop.rows("payments") == [(5, "paid"), (7, "paid"), (8, "back"), (9, "late")]
    assert [amount for _, amount in shop.rows("daily")] == [15.0, 30.0]

    was = {name: shop.rows(name) for name in MODELS}
    shop.write(CHANGED)
    shop.sql(
        "INSERT INTO orders VALUES (12, '2024-03-01', 'chf', 4), (13, '2024-03-03', 'eur', 7)",
        "UPDATE rates SET rate = 4.0 WHERE currency = 'chf'",
    )
    run_environment(shop.project(declared=True), "dev")
    assert {name: shop.rows(name) for name in MODELS} == was, "production has not run"
    orders = without_times(show_environment(shop.project(declared=True), "dev", "orders"))
    assert orders == [*shop.rows("orders")[:2], (13, "eur", 7)]
    promote(shop.project(), find_promotion(shop.project(), "dev"))

    shop.sql(
        "ALTER TABLE payments RENAME COLUMN state TO status",
        "INSERT INTO orders VALUES (14, '2024-03-03', 'eur', 6)",
    )
    with pytest.raises(api.RunFailed) as failed:
        api.run(shop.project())
    assert [(one.model, one.error.slug) for one in failed.value.result.failures] == [
        ("payments", "source-column-missing")
    ]
    assert [row[1:] for row in shop.rows("daily")] == [(1.0, 10.0), (4.0, 40.0), (1.0, 13.0)]
    checks = {one.name: one.found for one in doctor.examine(shop.root)}
    assert checks["source db.orders"].startswith("orders has the 4 columns; 4 files, ")
    assert "has no column state" in checks["source db.payments"]
