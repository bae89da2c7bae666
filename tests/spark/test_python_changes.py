"""What is there for all models, with models in Python: changes, environments, audits, tests."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.running.commands import infold
from tests.spark.test_python_models import DAYS, NAMES, NEAR
from tests.spark.test_python_rows import RowShop

from infold import api
from infold.api import environment_runs, promoting
from infold.core.report import RunFailed

pytestmark = pytest.mark.spark

TEST = """# Days and people

## Arrival

raw.clicks:

| id | who | ts               | amount |
|----|-----|------------------|--------|
| 1  | ann | 2024-03-01 10:00 | 1      |
| 2  | bob | 2024-03-01 12:00 | 2      |

expect near:

| day        | names      | users |
|------------|------------|-------|
| 2024-03-01 | ["ANN","BOB"] | 2     |
| 2024-03-02 | ["ANN","BOB"] | 2     |

expect people:

| who | first            | ids | paid |
|-----|------------------|-----|------|
| ANN | 2024-03-01 10:00 | [1] | 1.00 |
| BOB | 2024-03-01 12:00 | [2] | 2.00 |

## Arrival

raw.clicks in late:

| id | who | ts               | amount |
|----|-----|------------------|--------|
| 3  | ann | 2024-03-01 09:00 | NULL   |

expect people:

| who | first            | ids    | paid |
|-----|------------------|--------|------|
| ANN | 2024-03-01 09:00 | [3, 1] | 1.00 |
| BOB | 2024-03-01 12:00 | [2]    | 2.00 |
"""


def test_changes(tmp_path: Path) -> None:
    """Forward-only code leaves earlier cells as they are; an environment has its own code, and a
    promote and a rollback change the code with the tables; an audit keeps bad rows out.
    """
    shop = RowShop(tmp_path / "shop")
    near = NEAR.replace("import names", "import words as names")
    near = near.replace("incremental={}", 'incremental={"forward_only": True}') % "1 day"
    shop.write(models__near=near, lib__days=DAYS, lib__words=NAMES % "")
    (shop.root / "tests").mkdir()
    (shop.root / "tests/people.md").write_text(TEST, encoding="utf-8")
    code, printed = infold(shop.project(), "test", "--no-shuffle")
    assert code == 0, printed
    shop.apply()
    for name in ("near", "visits", "people"):
        code, printed = infold(shop.project(), "explain", name)
        assert (code, f"def {name}(" in printed) == (0, True), printed

    shop.write(models__near=near.replace("on_days(clicks, 2)", "on_days(clicks, 1)"))
    shop.apply()
    shop.land("2024-03-01T11:00:00", who="eve")
    shop.land("2024-03-07T11:00:00", who="eve")
    api.run(shop.project())
    assert shop.near() == [
        ("03-01", ["ANN", "EVE"]), ("03-02", ["ANN", "EVE"]), ("03-03", ["ANN"]),
        ("03-07", ["EVE"]),
    ]  # fmt: skip

    people = (shop.root / "models/people.py").read_text()
    shop.write(models__people=people.replace('"ids": [row', '"ids": [-row'))
    declared = api.open_project(shop.root, "prod", declared=True)
    environment_runs.run_environment(declared, "dev")
    code, printed = infold(shop.project(), "explain", "people", "--env", "dev")
    assert (code, "[-row" in printed) == (0, True), printed
    assert shop.people()["EVE"] == ("01 11", [3, 4])
    promoting.promote(shop.project(), promoting.find_promotion(shop.project(), "dev"))
    shop.land("2024-03-02T11:00:00", who="eve")
    api.run(shop.project())
    assert shop.people()["EVE"] == ("01 11", [-3, -5, -4])
    promoting.rollback(shop.project(), promoting.find_rollback(shop.project()))
    api.run(shop.project())
    assert shop.people()["EVE"] == ("01 11", [3, 5, 4])
    assert shop.judge() == {}

    shop.write(models__people=people.replace("[row", "None and [row"))
    with pytest.raises(RunFailed) as caught:
        shop.apply("people")
    assert [one.error.slug for one in caught.value.result.failures] == ["audit-failed"]
    assert shop.people()["EVE"] == ("01 11", [3, 5, 4])
