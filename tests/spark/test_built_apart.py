"""A changed table that takes several runs, in production, while clicks arrive."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.running.commands import infold
from tests.spark.promoted_shop import EVENTS, TABLE, Shop

from infold import api
from infold.core.environment import APART
from infold.core.model import table_name

pytestmark = pytest.mark.spark

UNLIMITED = TABLE.replace("event_time_column: day", "event_time_column: ts")
LIMITED = UNLIMITED.replace("{}", "{backfill_limit: 2 days}")
MODELS = {
    "clicks": (EVENTS, "SELECT id, who, ts, amount FROM raw.clicks"),
    "known": ("materialization: view", "SELECT ts, amount FROM clicks WHERE who IS NOT NULL"),
    "daily": (
        LIMITED,
        "SELECT cast(ts AS date) AS day, count(*) AS n, 0 AS old FROM known GROUP BY 1",
    ),
    "copied": (TABLE, "SELECT day, n FROM daily"),
}
CHANGED = {
    "known": (MODELS["known"][0], MODELS["known"][1].replace("who IS NOT NULL", "who <> 'bob'")),
    "daily": (LIMITED, MODELS["daily"][1].replace("0 AS old", "max(amount) AS top")),
}


def test_readers_have_the_old_table_until_the_new_one_is_complete(tmp_path: Path) -> None:
    """
    `infold apply` begins it, and later runs go on.

    Late clicks go into both tables, each is equal to its definition, and what reads the table
    follows once it was replaced. Afterwards nothing of it is left but the replaced table.
    """
    shop = Shop(tmp_path / "shop")
    shop.write({**MODELS, "daily": (UNLIMITED, MODELS["daily"][1])})
    for name in ("rolling", "visits", "people", "spenders"):
        (shop.root / "models" / f"{name}.sql").unlink()
    days = [f"2024-03-0{day}T10:00:00" for day in range(1, 6)]
    shop.land(*(("ann", at, 1) for at in days), ("bob", days[0], 9))
    shop.apply()
    before = shop.rows("daily")
    assert [n for _, n, _ in before] == [2, 1, 1, 1, 1]

    shop.write(CHANGED)
    declared = api.open_project(shop.root, "prod", declared=True)
    code, planned = infold(declared, "plan")
    assert code == 0, planned
    assert "daily: being built apart: 0 of 5 days, replaces daily when complete" in planned
    plan = str(tmp_path / "plan.json")
    assert infold(declared, "plan", "--save", plan)[0] == 0
    code, refused = infold(declared, "apply", plan)
    assert (code, "column old is dropped" in refused) == (3, True), refused
    assert APART not in api.ledger(declared).environments()
    code, done = infold(declared, "apply", plan, "--allow-destructive", "daily")
    assert code == 0, done
    assert shop.rows("daily") == before
    said = infold(shop.project(), "status")[1]
    assert "being built apart: 2 of 5 days" in said
    assert "no environment" in infold(shop.project(), "env", "list")[1]
    shop.land(("ann", "2024-03-01T12:00:00", 5))
    shop.run()
    assert [n for _, n, _ in shop.rows("daily")] == [3, 1, 1, 1, 1]
    assert [n for _, n in shop.rows("copied")] == [3, 1, 1, 1, 1]
    verdicts = api.verify(shop.project())
    assert verdicts.equal, verdicts
    [own] = api.ledger(shop.project()).environments()[APART].tables
    assert own.key in {one.model for one in verdicts.models}

    shop.run()

    assert [row[1:] for row in shop.rows("daily")] == [(2, 5), (1, 1), (1, 1), (1, 1), (1, 1)]
    assert [n for _, n in shop.rows("copied")] == [2, 1, 1, 1, 1]
    book = api.ledger(shop.project())
    assert not book.environments()[APART].tables
    assert api.lake(shop.project()).location(table_name(own.key)) is None
    assert [s for run in book.runs(5) for s in run.steps if s.action == "exchange"]
    assert shop.run() == []
