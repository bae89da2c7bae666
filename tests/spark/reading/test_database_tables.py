"""Tables of a database as sources: what a run reads becomes known as files of a folder do."""

from __future__ import annotations

import sqlite3
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from tests.spark.reading.bought import MODELS, SOURCES

from infold import api
from infold.api import doctor

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark

PROJECT = f"""{SOURCES.replace("DAYS", "2")}targets:
  dev: {{warehouse: WAREHOUSE}}
"""

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


class Shop:
    """A project over a database."""

    def __init__(self, root: Path, warehouse: Path) -> None:
        self.root = root
        (root / "models").mkdir()
        text = PROJECT.replace("WAREHOUSE", f"'{warehouse}'")
        (root / "infold.yml").write_text(text, encoding="utf-8")
        for name, model in MODELS.items():
            (root / "models" / f"{name}.sql").write_text(model, encoding="utf-8")

    def write(self, *statements: str) -> None:
        """Change the database."""
        with sqlite3.connect(self.root / "shop.db") as connection:
            for text in statements:
                connection.execute(text)
        connection.close()

    def run(self) -> list[str]:
        """The models that a run had something to do for."""
        return [step.model for step, _ in api.run(api.open_project(self.root)).steps]

    def rows(self, table: str) -> list[tuple[Any, ...]]:
        """The rows of a table, without times."""
        found = api.lake(api.open_project(self.root)).rows(table).to_pylist()
        return sorted(
            tuple(v for k, v in row.items() if k not in ("at", "changed_at")) for row in found
        )

    def proven(self) -> bool:
        """Whether all tables equal a rebuild from what was extracted."""
        return all(one.equal for one in api.verify(api.open_project(self.root)).models)


def test_what_is_read_becomes_known_as_files_do(
    tmp_path: Path, warehouse: Path, spark: SparkSession
) -> None:
    """
    New, changed and deleted rows follow as far as was declared, and no farther; a run without any
    builds nothing; a table that cannot be read stops its readers alone.
    """
    shop = Shop(tmp_path, warehouse)
    shop.write(*TABLES)
    notes = api.plan(api.open_project(tmp_path)).notes

    assert "\n".join(notes) == NOTES

    shop.run()

    assert shop.rows("orders") == [(5, "eur", 10), (7, "chf", 10)]
    assert shop.rows("payments") == [(5, "paid"), (7, "open"), (8, "open")]
    assert [amount for _, amount in shop.rows("daily")] == [10.0, 20.0]
    assert shop.run() == []

    shop.write(
        "INSERT INTO orders VALUES (6, '2024-03-01', 'eur', 1), (9, '2024-03-01', 'eur', 5)",
        "DELETE FROM orders WHERE id = 7",
        "UPDATE payments SET state = 'lost' WHERE id = 5",
        "UPDATE payments SET state = 'paid', changed_at = '2024-03-05' WHERE id = 7",
        "UPDATE payments SET state = 'back', changed_at = '2024-03-06' WHERE id = 8",
        "INSERT INTO payments VALUES (9, '2024-03-01', '2024-03-02 23:59', 'late')",
        "UPDATE rates SET rate = 3.0 WHERE currency = 'chf'",
    )
    shop.run()

    assert shop.rows("orders") == [(5, "eur", 10), (7, "chf", 10), (9, "eur", 5)]
    assert shop.rows("payments") == [(5, "paid"), (7, "paid"), (8, "back"), (9, "late")]
    assert [amount for _, amount in shop.rows("daily")] == [15.0, 30.0]
    assert shop.proven()

    shop.write(
        "ALTER TABLE payments RENAME COLUMN state TO status",
        "INSERT INTO orders VALUES (10, '2024-03-03', 'eur', 1)",
    )
    with pytest.raises(api.RunFailed) as failed:
        shop.run()

    assert [(one.model, one.error.slug) for one in failed.value.result.failures] == [
        ("payments", "source-column-missing")
    ]
    assert [amount for _, amount in shop.rows("daily")] == [15.0, 30.0, 1.0]
    checks = {one.name: one.found for one in doctor.examine(tmp_path)}
    assert checks["source db.orders"].startswith("orders has the 4 columns; 3 files, ")
    assert "has no column state" in checks["source db.payments"]
