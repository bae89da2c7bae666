"""Functions of a project in runs: SQL and Python ones, in models of every kind and in audits."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.spark.audits.audited_project import MODELS, AuditedProject
from tests.spark.time_range.daily_project import PRODUCTION

from infold import api

pytestmark = pytest.mark.spark

NET = "CREATE FUNCTION net(amount DECIMAL(18,2)) RETURNS DECIMAL(18,2) RETURN amount / 2"
OWNER = """from infold import function
from lib.names import shouted


@function(parameters=["STRING", "TIMESTAMP"], returns="STRING", deterministic=True)
def owner(who, at):
    if who == "eve":
        raise ValueError("not eve")
    assert who is None or at.tzinfo is not None
    return shouted(who) if who else None
"""
SCORE = """import pyarrow.compute as pc

from infold import function


@function(parameters=["DECIMAL(18,2)"], returns="DOUBLE", deterministic=True, over="arrow")
def score(amounts):
    return pc.multiply(pc.cast(amounts, "double"), 3.0)
"""
CHANGED = {
    "clicks": MODELS["clicks"].replace("who, ts, amount", "owner(who, ts) AS who, ts, amount"),
    "visits": MODELS["visits"]
    .replace(
        "sessions: {user: who", "on_destructive_change: warn\nsessions: {user: 'owner(who, ts)'"
    )
    .replace("sum(amount)", "sum(net(amount))"),
    "daily": MODELS["daily"].replace("sum(amount)", "sum(net(amount))"),
    "large": MODELS["large"].replace("*", "*, owner(who, ts) AS owner"),
    "totals": MODELS["totals"]
    .replace("FROM clicks", "FROM large")
    .replace("count(*) AS n", "sum(score(amount)) AS n, max(owner) AS owner"),
}


class Shop(AuditedProject):
    """A project whose models call functions, where definitions are applied by hand."""

    target = "prod"

    def __init__(self, root: Path) -> None:
        super().__init__(root, "people")
        self.configure("", PRODUCTION)
        self.write("functions/net.sql", NET)
        self.write("functions/owner.py", OWNER)
        self.write("functions/score.py", SCORE)
        self.write("lib/names.py", "def shouted(text):\n    return text.upper()\n")
        self.audit("daily", "expression: net(amount) < 100000")
        self.audit("clicks", "expression: owner(who, ts) IS NOT NULL", "not_null: [amount]")

    def text(self, model: str) -> str:
        """A model without audits."""
        return CHANGED.get(model, MODELS[model])

    def values(self, model: str, column: str) -> list[object]:
        """The values of a column, sorted."""
        return sorted(row[column] for row in self.shown(model))


def test_functions_in_every_kind_of_model(tmp_path: Path) -> None:
    """
    Functions that changed are not applied, so late rows are folded by the earlier ones, also where
    the files are broken by now. The plan names the functions, and applying them rebuilds the models
    that call them. One that raises fails its model with the author's line, and nothing is written.
    """
    shop = Shop(tmp_path / "shop")
    shop.land("1", "1,ann,2024-03-01T10:00:00,1.00", "2,bob,2024-03-01T11:00:00,200.00")
    shop.apply()
    shop.write("functions/net.sql", NET.replace("/ 2", "/ 4"))
    shop.write("lib/names.py", "raise RuntimeError('this version is broken')\n")
    shop.land("2", "3,ann,2024-03-01T10:10:00,5.00", "4,cid,2024-03-02T10:10:00,300.00")
    shop.go()
    assert shop.values("clicks", "who") == ["ANN", "ANN", "BOB", "CID"]
    assert shop.values("visits", "user_identifier") == ["ANN", "BOB", "CID"]
    assert [float(str(one)) for one in shop.values("daily", "amount")] == [103.0, 150.0]
    assert [*shop.values("totals", "n"), *shop.values("totals", "owner")] == [1500.0, "CID"]

    shop.write("lib/names.py", "def shouted(text):\n    return text.upper() + '!'\n")
    plan = api.plan(shop.project(declared=True))
    named = {
        change.model: names
        for change in plan.redefinitions
        if (names := [one.name for one in change.differences if one.part == "function"])
    }
    assert named == {
        "clicks": ["owner"],
        "visits": ["net", "owner"],
        "large": ["owner"],
        "daily": ["net"],
    }
    shop.apply()
    assert shop.values("clicks", "who") == ["ANN!", "ANN!", "BOB!", "CID!"]
    assert [float(str(one)) for one in shop.values("daily", "amount")] == [51.5, 75.0]

    shop.land("3", "5,eve,2024-03-03T10:00:00,1.00")
    [(failed, error)] = shop.failures().items()
    assert (failed, error.slug) == ("clicks", "function-failed")
    assert str(error.at) == "functions/owner.py:8"
    assert "'eve'" in dict(error.facts)["arguments"]
    assert shop.count("clicks") == 4
