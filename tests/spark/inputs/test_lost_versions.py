"""Tables that were dropped by hand, or lost snapshots, which their readers have read."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from tests.running.standing_tables import drop
from tests.spark.cumulative.clicks_by_user import CLICKS, WITH_RATES, put
from tests.spark.events.clicks_project import NOW, ClicksProject, shop_with

from infold import api
from infold.core.interval import parse_instant_text
from infold.core.plan import Step

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark

MODELS = {
    "rated": """---
materialization: events
unique_key: [id]
timeseries: {event_time_column: at}
---
SELECT c.id, c.user_id, c.at, c.url, c.amount, r.rate
FROM raw.clicks c LEFT JOIN raw.rates r ON r.url = c.url""",
    "best": """---
materialization: table
---
SELECT url, max(rate) AS rate FROM raw.rates GROUP BY url""",
    "priced": """---
materialization: view
---
SELECT c.*, b.rate * c.amount AS price FROM clicks c LEFT JOIN best b ON b.url = c.url""",
    "visits": """---
materialization: sessions
sessions: {user: user_id, gap: 30 minutes}
---
SELECT count(*) AS events, sum(price) AS price, last(url) AS exit_url FROM priced""",
    "totals": """---
materialization: cumulative_aggregate
---
SELECT user_id, count(*) AS n, sum(price) AS price, max(price) AS dearest
FROM priced GROUP BY user_id""",
    "pages": """---
materialization: scd_type_2
unique_key: [user_id]
scd_type_2: {updated_at: at}
---
SELECT user_id, at, url FROM clicks""",
    "known": """---
materialization: table
timeseries: {event_time_column: at, partition_column: day}
incremental: {}
---
SELECT cast(c.at AS date) AS day, c.id, t.n, p.url AS page, b.rate
FROM clicks c LEFT JOIN totals t ON t.user_id = c.user_id
LEFT JOIN best b ON b.url = c.url
LEFT JOIN pages p ON p.user_id = c.user_id
  AND c.at >= p.valid_from AND (c.at < p.valid_to OR p.valid_to IS NULL)""",
}


def rates(shop: ClicksProject, *rows: str) -> None:
    """Replace the file of rates."""
    (shop.root / "rates" / "rates.csv").write_text("\n".join(["url,rate", *rows]) + "\n")


def other_rows(shop: ClicksProject) -> None:
    """Late clicks, and other rates."""
    rates(shop, "/0,10", "/1,21", "/3,9")
    late = ("l1,u03,2024-02-05 10:10:00,/1,2", "l2,u04,2024-02-07 10:10:00,/3,2")
    put(shop, "late.csv", *late)


def run(shop: ClicksProject, *select: str) -> dict[str, Step]:
    """One run; the steps by model."""
    result = api.run(
        api.open_project(shop.root),
        select=select,
        as_of=parse_instant_text(NOW),
        allow_removals=True,
    )
    return {step.model: step for step, _ in result.steps}


def test_inputs_that_were_dropped_or_lost_versions(
    tmp_path: Path, warehouse: Path, spark: SparkSession
) -> None:
    """
    Whoever reads a lookup that was dropped by hand is built, as what it was cannot be compared;
    one that is made again before its readers run is no other case. Readers of tables whose earlier
    snapshots somebody expired are built, too.
    """
    shop = shop_with(tmp_path, warehouse, CLICKS, WITH_RATES)
    (tmp_path / "rates").mkdir()
    rates(shop, "/0,10", "/1,11", "/2,12")
    crowd = (f"c{n},u{n % 9:02},2024-02-{n + 1:02} 10:00:00,/{n % 4},1" for n in range(20))
    put(shop, "crowd.csv", *crowd)
    for name, text in MODELS.items():
        shop.model(name, text)
    run(shop)

    project = api.open_project(shop.root)
    drop(project, "best")
    run(shop, "best")
    drop(project, "pages")
    drop(project, "raw__rates")
    rates(shop, "/0,10", "/1,21", "/3,9")
    put(shop, "late.csv", "l1,u03,2024-02-05 10:10:00,/1,2", "l2,u04,2024-02-07 10:10:00,/3,2")
    done = run(shop)
    assert {name: str(step.action) for name, step in done.items()} == {
        "raw.rates": "build",
        "best": "build",
        "clicks": "ingest",
        "visits": "build",
        "totals": "build",
        "pages": "build",
        "known": "build",
        "rated": "build",
    }
    why = "of best, dropped since it was read"
    assert any(reason.detail.endswith(why) for reason in done["visits"].reasons)

    rates(shop, "/0,10", "/1,11", "/3,9")
    put(shop, "later.csv", "l3,u05,2024-02-05 10:10:00,/1,2")
    run(shop, "clicks", "best")
    for name in ("raw__rates", "best", "clicks"):
        spark.sql(
            f"CALL infold.system.expire_snapshots(table => '{project.name}.{name}', "
            "older_than => TIMESTAMP '2100-01-01', retain_last => 1)"
        )
    assert set(run(shop)) == {"visits", "totals", "pages", "known", "rated"}
    assert shop.proven()
    assert not run(shop)
