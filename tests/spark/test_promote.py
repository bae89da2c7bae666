"""An environment becomes production, and goes again, while files arrive."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.spark.promoted_shop import CHANGED, FILTERED, MODELS, Shop

from infold import api
from infold.core.model import table_name

pytestmark = pytest.mark.spark


def test_production_and_back(tmp_path: Path) -> None:
    """
    A promote exchanges the tables that differ. Readers shared by proof are not built again.

    Runs go on with the new tables; a rollback gives the names back to the old ones, which the next
    run brings up to date. After each step all tables are what plain Python makes of the clicks. A
    second promote follows the first, and what is not kept any more is dropped.
    """
    shop = Shop(tmp_path / "shop")
    shop.land(
        ("ann", "2024-03-01T10:00:00", 1),
        ("ann", "2024-03-01T10:45:00", 2),
        ("bob", "2024-03-02T10:00:00", 3),
        ("bob", "2024-03-03T10:00:00", 4),
    )
    shop.apply()
    shop.write(CHANGED)
    shop.run_environment()
    shop.exact(changed=False)
    book, tables = api.ledger(shop.project()), api.lake(shop.project())
    own = book.environments()["dev"].own
    at = {model: tables.location(key) for model, key in own.items()}

    promoted = shop.promote()

    assert {one.model for one in promoted.tables} == {"daily", "visits", "people", "tops"}
    assert promoted.readers == ()
    assert {model: tables.location(model) for model in own} == at
    assert [step for run in book.runs(1) for step in run.steps if step.action == "promote"]
    shop.exact(changed=True)
    assert shop.run() == []

    shop.land(("ann", "2024-03-01T11:40:00", 5), ("cyd", "2024-03-05T09:00:00", 6))
    assert shop.run() == sorted([*MODELS, "tops"])
    shop.exact(changed=True)

    rolled = shop.rollback()

    assert set(rolled.readers) == {"rolling"}
    assert tables.location("tops") is None
    assert set(shop.run()) == {"daily", "visits", "people", "rolling"}
    shop.exact(changed=False)

    shop.write(FILTERED)
    shop.land(("bob", "2024-03-02T10:20:00", 7))
    shop.run()
    shop.run_environment()
    shop.land(("cyd", "2024-03-05T09:20:00", 2), ("cyd", "2024-03-05T10:10:00", 9))
    everything = shop.promote()
    assert {one.model for one in everything.tables} == {*MODELS, "tops"}
    shop.run()

    kept = [key for swap in book.swaps() for key in swap.kept.values() if key is not None]
    there = [key for key in kept if tables.location(table_name(key)) is not None]
    assert there == kept
    yml = shop.root / "infold.yml"
    yml.write_text(yml.read_text().replace("apply: manual", "apply: manual, keep_old: 1 second"))
    notes = api.run(shop.project()).notes
    assert [note for note in notes if "replaced were dropped" in note]
    assert book.swaps() == ()
    assert [key for key in there if tables.location(table_name(key)) is not None] == []
    folders = {path.name for path in (shop.root / "tables" / "shop").iterdir()}
    used = {Path(at).parent.parent.name for at in book.locations().values() if "/" in at}
    assert folders == used
    shop.exact(changed=True, filtered=True)
    assert api.verify(shop.project()).equal
