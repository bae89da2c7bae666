"""Production with Spark: runs go by the applied definitions, `infold apply` rebuilds."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.spark.time_range.daily_project import DAILY, ROLLING, DailyProject, model

from infold import api
from infold.core.project import Project
from infold.core.report import RunResult
from infold.messages.errors import InfoldError

pytestmark = pytest.mark.spark

TARGETS = """
dev_target: dev
targets:
  dev: {}
  prod: {warehouse: tables, ledger: "sqlite:///prod.db"}
"""


class Shop(DailyProject):
    """A project with a target for production, where definitions are applied by hand."""

    def __init__(self, root: Path) -> None:
        super().__init__(root)
        with (root / "infold.yml").open("a", encoding="utf-8") as file:
            file.write(TARGETS)
        self.models(daily=model(DAILY), rolling=model(ROLLING))
        self.land("2024-03-01T10:00:00", "2024-03-02T10:00:00")

    def project(self, *, downgrade: bool = False) -> Project:
        """The project as commands on production read it."""
        return api.open_project(self.root, "prod", downgrade=downgrade)

    def apply(self, *terms: str) -> RunResult:
        """`infold apply`."""
        declared = api.open_project(self.root, "prod", declared=True)
        return api.run(api.to_apply(declared, terms), select=terms, command="apply")

    def numbers(self) -> list[int]:
        """The counts of each day."""
        return sorted(api.show(self.project(), "daily").column("n").to_pylist())


def built(result: RunResult) -> list[str]:
    """The models that a run built."""
    return [step.model for step, _ in result.steps]


def test_what_spark_refuses_is_not_applied(tmp_path: Path) -> None:
    """A definition that Spark does not accept is refused before it is applied, and so is another
    one that was to be applied with it; runs go on as before.
    """
    shop = Shop(tmp_path / "shop")
    assert built(shop.apply()) == ["raw.clicks", "daily", "rolling"]
    before = api.ledger(shop.project()).applied()
    wrong = DAILY.replace("count(*) AS n", "length(ts, ts) AS n, count(*) AS m")
    shop.models(daily=model(wrong), rolling=model(ROLLING.replace("6 DAYS", "2 DAYS")))

    with pytest.raises(InfoldError) as caught:
        shop.apply()

    assert (caught.value.slug, caught.value.exit_code) == ("refused-by-spark", 2)
    assert "daily" in str(caught.value)
    assert api.ledger(shop.project()).applied() == before
    shop.land("2024-03-01T11:00:00")
    done = api.run(shop.project())
    assert (built(done), done.unapplied) == (
        ["raw.clicks", "daily", "rolling"],
        ("daily", "rolling"),
    )
    assert shop.numbers() == [1, 2]
    shop.verify()
