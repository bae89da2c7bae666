"""Audits where what is written is not at once what readers see, and where runs die between."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.crash.scenario import living
from tests.spark.audits.audited_project import MODELS, PROJECT, AuditedProject
from tests.spark.events.clicks_project import AllBut
from tests.spark.promoted_shop import MODELS as SHOP_MODELS
from tests.spark.promoted_shop import Shop

from infold import api
from infold.api import promoting
from infold.core.report import RunFailed
from infold.inspecting.audits import audits_found
from infold.messages.errors import InfoldError

pytestmark = pytest.mark.spark

FEW = "expression: n < 3"
"""Of the daily table: a day with three clicks is wrong."""


def days(*numbers: int, amount: str = "1.00", start: int = 0) -> list[str]:
    """A click on each of some days of March."""
    return [
        f"{start + at},ann,2024-03-{day:02}T10:{at:02}:00,{amount}"
        for at, day in enumerate(numbers)
    ]


def failed(shop: AuditedProject) -> set[str]:
    """The models of a run that has to fail, each by an audit."""
    failures = shop.fail().result.failures
    assert {one.error.slug for one in failures} == {"audit-failed"}
    return {one.model for one in failures}


def test_tables_that_are_published_together(tmp_path: Path) -> None:
    """
    One audit that fails keeps every table as readers know it, and `run` publishes all of them once
    its rows pass; a run that dies before the ledger knows of the commit changes nothing.
    """
    shop = AuditedProject(tmp_path / "shop")
    for name in ("visits", "people"):
        (shop.root / "models" / f"{name}.sql").unlink()
    (shop.root / "infold.yml").write_text(PROJECT + "targets:\n  dev: {publish: together}\n")
    shop.audit("daily", FEW)
    shop.land("1", *days(1, 2))
    shop.run()
    shop.land("2", *days(1, 1, start=10))

    def shown() -> tuple[int, int]:
        return tuple(
            sum(row["n"] for row in api.show(shop.project(), name).to_pylist())
            for name in ("daily", "totals")
        )

    assert failed(shop) == {"daily"}
    assert shown() == (2, 2)
    shop.land("2", *days(1, start=10))
    # The run dies where the rows have passed and are there, and the ledger does not know it.
    with living(met=AllBut([("daily", "table daily: after commit")])) as life:
        api.run(shop.project(), progress=life, jobs=1)
    assert life.dead
    assert shown() == (2, 2)
    shop.run()
    assert shown() == (3, 3)


def test_batches_at_the_same_time(tmp_path: Path) -> None:
    """
    Of batches that are computed side by side those that pass are there, and those that fail are
    pending: the next run builds these alone.
    """
    shop = AuditedProject(tmp_path / "shop")
    for name in ("visits", "people", "totals"):
        (shop.root / "models" / f"{name}.sql").unlink()
    text = MODELS["daily"].replace(
        "incremental: {}", "incremental: {batch_size: 1, batch_concurrency: 2}"
    )
    file = shop.root / "models" / "daily.sql"
    file.write_text(text.replace("---\n", f"---\naudits:\n  - {FEW}\n", 1))
    shop.land("1", *days(1, 2, 3, 4, 4, 4, 5, 6))
    assert failed(shop) == {"daily"}
    written = {str(row["day"]) for row in api.show(shop.project(), "daily").to_pylist()}
    assert "2024-03-04" not in written
    assert {"2024-03-01", "2024-03-02"} <= written
    [judged] = audits_found(shop.project(), api.ledger(shop.project()))
    assert judged.result.rows == ('{"day":"2024-03-04","n":3,"amount":3.00}',)

    file.write_text(text.replace("---\n", "---\naudits:\n  - expression: n < 4\n", 1))
    result = shop.run()
    assert 0 < sum(step.model == "daily" for step, _ in result.steps) <= 6 - len(written)
    found = api.show(shop.project(), "daily").to_pylist()
    assert sorted((row["day"].day, row["n"]) for row in found) == [
        (1, 1), (2, 1), (3, 1), (4, 3), (5, 1), (6, 1),
    ]  # fmt: skip


def test_an_environment(tmp_path: Path) -> None:
    """
    A table of an environment is judged before it is written, production does not notice, and
    an environment whose table could not be built is not promoted.
    """
    shop = Shop(tmp_path / "shop")
    for name in ("visits", "people", "spenders"):
        (shop.root / "models" / f"{name}.sql").unlink()
    shop.land(("ann", "2024-03-01T10:00:00", 1), ("bob", "2024-03-01T11:00:00", 2))
    shop.apply()
    before = {name: shop.rows(name) for name in ("daily", "rolling")}
    head, sql = SHOP_MODELS["daily"]
    changed = sql.replace("\nFROM", ", max(amount) AS top\nFROM")
    audited = f"audits:\n  - accepted_range: {{column: top, max: 1}}\n{head}"
    shop.write({"daily": (audited, changed)})

    with pytest.raises(RunFailed) as caught:
        shop.run_environment()

    [failure] = caught.value.result.failures
    assert (failure.model, failure.error.slug) == ("daily", "audit-failed")
    with pytest.raises(InfoldError) as refused:
        promoting.promote(shop.project(), promoting.find_promotion(shop.project(), "dev"))
    assert "daily" in str(refused.value)
    assert {name: shop.rows(name) for name in before} == before

    # The audit alone changes: the rows are those of the same definition, and pass now.
    shop.write({"daily": (audited.replace("max: 1", "max: 9"), changed)})
    shop.run_environment()
    shop.promote()
    assert [row[-1] for row in shop.rows("daily")] == [2]
    # What was promoted goes on to be judged, in production.
    shop.land(("ann", "2024-03-01T12:00:00", 10))
    with pytest.raises(RunFailed) as caught:
        api.run(shop.project())
    assert "daily" in {one.model for one in caught.value.result.failures}
    assert [row[-1] for row in shop.rows("daily")] == [2]
