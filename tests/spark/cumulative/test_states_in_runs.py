"""Runs of cumulative aggregates with states: what they read, what readers see, older tables."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from tests.crash.scenario import living
from tests.spark.cumulative.clicks_by_user import CLICKS, SOURCE, put
from tests.spark.events.clicks_project import NOW, ClicksProject, shop_with

from infold import api
from infold.core.interval import parse_instant_text
from infold.core.plan import Action
from infold.core.record import Receipt
from infold.spark import key_filter
from infold.spark.cumulative import fold_states

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark

HEAD = "---\nmaterialization: cumulative_aggregate\n---\n"
TOPS = "SELECT user_id, max(amount) AS top, min(at) AS first_at FROM clicks GROUP BY user_id"
GROUPS = "SELECT top, count(*) AS users FROM tops GROUP BY top HAVING count(*) > 1"
CROWD = 30
FINISHING = "ledger finish_step: before commit"
ANN = ("1,ann,2024-03-02 09:00:00,/a,5", "2,ann,2024-03-02 10:00:00,/b,3")


@pytest.fixture
def shop(tmp_path: Path, warehouse: Path, spark: SparkSession) -> ClicksProject:
    """What a crowd and Ann paid at most, and how many paid the same."""
    made = shop_with(tmp_path, warehouse, CLICKS, SOURCE)
    made.model("tops", HEAD + TOPS)
    made.model("groups", HEAD + GROUPS)
    put(made, "crowd.csv", *(f"c{n},u{n:02},2024-03-01 10:00:00,/,5" for n in range(CROWD)))
    put(made, "ann.csv", *ANN)
    made.run()
    return made


def run(shop: ClicksProject) -> dict[str, Receipt]:
    """What a run did to each model; the one of users folds, if it is due."""
    result = api.run(
        api.open_project(shop.root), as_of=parse_instant_text(NOW), allow_removals=True
    )
    assert {s.action for s, _ in result.steps if s.model == "tops"} <= {Action.FOLD}
    return {step.model: receipt for step, receipt in result.steps}


def top(shop: ClicksProject) -> tuple[object, ...]:
    """Ann's row."""
    return next((row for row in shop.rows("tops") if row[0] == "ann"), ())


def test_runs(shop: ClicksProject, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each run reads what changed, and the rows of keys that lost their greatest value alone."""
    put(shop, "more.csv", "3,ann,2024-03-03 09:00:00,/c,4")
    put(shop, "u00.csv", "5,u00,2024-03-03 09:00:00,/c,4")
    with living() as life:
        steps = run(shop)
    # The rows show what they showed, and their states have one row more: readers need not look.
    assert steps.keys() == {"clicks", "tops"}
    assert (steps["tops"].read, steps["tops"].written, steps["tops"].removed) == (4, 2, 2)
    assert steps["tops"].cells_cut_off == 1
    planned = api.plan(api.open_project(shop.root), as_of=parse_instant_text(NOW))
    assert not planned.steps

    finishing = [at for at, (_, name) in enumerate(life.passed, 1) if name == FINISHING]
    put(shop, "even.csv", "4,ann,2024-03-03 10:00:00,/d,2")
    with living(at=finishing[-1]) as life:
        run(shop)
    assert life.dead, "a state alone was committed, and the ledger does not know it yet"
    assert run(shop) == {}

    monkeypatch.setattr(key_filter, "pays", lambda *_: True)  # as in a large table
    put(shop, "ann.csv", ANN[1])  # the greatest and the first are gone
    steps = run(shop)
    assert top(shop) == ("ann", 4, "2024-03-02 10:00")
    assert steps["tops"].read == 1 + 1 + 3, "one click went, one row is stored, three are read"
    # Nor do they later, when another row has changed.
    assert steps["groups"].read == 2 + 1 + 1, "its group is stored; another may be left out"
    for name in ("more.csv", "even.csv", "ann.csv"):
        shop.drop(name)
    assert run(shop)["tops"].removed == 1
    assert top(shop) == ()

    for name, patch in {"other": lambda _: "of_0_0", "none": None}.items():
        with monkeypatch.context() as older:
            if patch is None:
                older.setattr(fold_states, "states_of", lambda *_: None)
            else:
                older.setattr(fold_states, "state_mark", patch)
            put(shop, f"{name}.csv", f"{name},{name},2024-03-03 09:00:00,/c,4")
            assert run(shop)["tops"].written == CROWD + (1 if name == "other" else 2)
        put(shop, "ann.csv", *ANN)
        assert run(shop)["tops"].written > CROWD, "a table of an older form is built once"
        assert top(shop) == ("ann", 5, "2024-03-02 09:00")
        shop.drop("ann.csv")
    assert run(shop)["tops"].read == 3
    assert shop.proven()
