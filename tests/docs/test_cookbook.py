"""The recipes of the cookbook, built from late rows, equal plain Spark SQL over all rows."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime, timedelta
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING, Any

import pytest
from tests.docs.pages import DOCS, files_of, query_of, write_project

from infold import api

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

PAGE = DOCS / "cookbook.md"
BEGIN = datetime(2024, 3, 1, tzinfo=UTC)

Row = dict[str, Any]

SCHEMAS = {
    "clicks": "event_id string, device_id string, user_id string, ts timestamp, url string, "
    "campaign string",
    "order_events": "event_id string, order_id string, user_id string, at timestamp, "
    "status string, sku string, amount decimal(18,2)",
    "prices": "sku string, valid_from timestamp, price decimal(18,2)",
    "refunds": "refund_id string, order_id string, refunded_at timestamp, amount decimal(18,2)",
}
FOLDERS = {"order_events": "orders"}

VISITS = """
WITH marked AS (
  SELECT *, if(ts - lag(ts) OVER w <= INTERVAL 30 MINUTES, 0, 1) AS starts
  FROM {events} WINDOW w AS (PARTITION BY {who} ORDER BY ts, event_id)),
numbered AS (
  SELECT *, sum(starts) OVER (PARTITION BY {who} ORDER BY ts, event_id) AS number FROM marked)
SELECT {who}, min(ts) AS session_start, max(ts) AS session_end, {columns}
FROM numbered GROUP BY {who}, number
"""

SESSIONS = {
    "visits": VISITS.format(
        events="clicks",
        who="device_id",
        columns="""number AS session_number, number = 1 AS is_first_session, count(*) AS clicks,
        min_by(url, struct(ts, event_id)) AS entry_url,
        min_by(campaign, struct(ts, event_id)) FILTER (WHERE campaign IS NOT NULL) AS campaign,
        min(if(url LIKE '/item%', ts, NULL)) AS saw_item_at,
        max(if(url = '/cart', ts, NULL)) AS saw_cart_at,
        max(if(url = '/pay', ts, NULL)) AS paid_at""",
    ),
    "visits_of_people": VISITS.format(
        events="stitched_clicks",
        who="person",
        columns="""count(*) AS clicks, min_by(url, struct(ts, event_id)) AS entry_url,
        max_by(url, struct(ts, event_id)) AS exit_url""",
    ),
    "orders": """
SELECT order_id AS session_identifier, min(at) AS session_start, max(at) AS session_end,
  max_by(status, struct(at, event_id)) AS status, max(amount) AS amount,
  min(if(status = 'placed', at, NULL)) AS placed_at,
  min(if(status = 'shipped', at, NULL)) AS shipped_at, bool_or(status = 'returned') AS is_returned
FROM order_events GROUP BY order_id""",
}
"""Sessions in plain SQL, by the columns that are compared."""


def drawn(chance: Random) -> Mapping[str, list[Row]]:
    """Rows of every source, in the order in which they happened."""

    def at(days: float) -> str:
        moment = BEGIN + timedelta(minutes=round(days * 288) * 5)  # of few times, so that some tie
        return moment.isoformat().replace("+00:00", "Z")

    clicks, orders, refunds = [], [], []
    for number in range(120):
        device = chance.randrange(9)
        start = chance.uniform(0, 45)
        clicks += [
            {
                "event_id": f"c{number}.{step}",
                "device_id": f"d{device}",
                "user_id": chance.choice([None, None, f"u{chance.choice([device, 3]) % 6}"]),
                "ts": at(start + step / 96),
                "url": chance.choice(["/", "/item/1", "/item/2", "/cart", "/pay"]),
                "campaign": chance.choice([None, None, "spring", "mail"]),
            }
            for step in range(chance.randrange(1, 6))
        ]
    for number in range(60):
        placed, order = chance.uniform(0, 45), f"o{number}"
        common = {"order_id": order, "user_id": f"u{chance.randrange(6)}"}
        sku, amount = f"s{chance.randrange(4)}", f"{chance.randrange(100, 9_000) / 100:.2f}"
        for step, status in enumerate(("placed", "shipped", "returned")[: chance.randrange(1, 4)]):
            known = {"sku": sku, "amount": amount} if step == 0 else {"sku": None, "amount": None}
            event = {"event_id": f"{order}.{step}", "at": at(placed + step * chance.uniform(0, 9))}
            orders.append(common | event | {"status": status} | known)
        if chance.random() < 0.4:
            refund = {"refund_id": f"r{number}", "order_id": order, "amount": "1.50"}
            refunds.append(refund | {"refunded_at": at(placed + chance.uniform(1, 30))})
    prices = [
        {"sku": f"s{sku}", "valid_from": at(change), "price": f"{chance.randrange(1, 99)}.00"}
        for sku in range(4)
        for change in chance.sample(range(0, 40, 3), 4)
    ]
    return {"clicks": clicks, "order_events": orders, "prices": prices, "refunds": refunds}


def deliver(folder: Path, source: str, name: str, rows: Iterable[Row]) -> Path:
    """A file of a source."""
    path = folder / "landing" / FOLDERS.get(source, source) / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return path


def beside(spark: SparkSession, folder: Path) -> SparkSession:
    """Another session in which each model's name is its rows, from plain SQL over all files."""
    session = spark.newSession()
    for source, schema in SCHEMAS.items():
        landed = str(folder / "landing" / FOLDERS.get(source, source))
        _view(session, source, session.read.schema(schema).json(landed).distinct())
    models = {Path(name).stem: text for name, text in files_of(PAGE).items()}
    left = [name for name in models if name not in ("infold", *SCHEMAS)]
    for name in left:  # the page has each model after those that it reads
        _view(session, name, session.sql(SESSIONS.get(name) or query_of(models[name])))
    return session


def _view(session: SparkSession, name: str, rows: DataFrame) -> None:
    """Rows by a name, computed once: several queries read them."""
    rows.coalesce(1).localCheckpoint().createOrReplaceTempView(name)


def as_text(rows: Iterable[Row]) -> list[str]:
    """Rows in one order, whatever the classes of their values."""
    return sorted(str([str(value) for value in row.values()]) for row in rows)


@pytest.mark.spark
def test_recipes_equal_plain_spark_over_all_rows(tmp_path: Path) -> None:
    """After late rows, a file's second copy and a deleted file, recipes equal plain Spark SQL."""
    folder = write_project(PAGE, tmp_path)
    chance = Random(7)
    late, gone = {}, []
    for source, rows in drawn(chance).items():
        chance.shuffle(rows)
        few = len(rows) // 10
        late[source], kept = rows[: 2 * few], rows[3 * few :]
        deliver(folder, source, "first.json", kept)
        gone.append(deliver(folder, source, "gone.json", rows[2 * few : 3 * few] + kept[:few]))
    project = api.open_project(folder)
    api.run(project)
    for source, rows in late.items():
        deliver(folder, source, "late.json", rows)
        deliver(folder, source, "again.json", rows[::2])
    for path in gone:
        path.unlink()

    result = api.run(project)
    plain = beside(api.session(project), folder)

    assert result.receipt.deduplicated > 0
    wrong = []
    for name, text in files_of(PAGE).items():
        model = Path(name).stem
        if "materialization:" not in text or "materialization: view" in text:
            continue
        expected = plain.sql(f"SELECT * FROM {model}").toArrow()
        found = api.show(project, model, columns=expected.column_names)
        assert found.num_rows > 0
        if as_text(found.to_pylist()) != as_text(expected.to_pylist()):
            wrong.append(model)
    assert wrong == []
