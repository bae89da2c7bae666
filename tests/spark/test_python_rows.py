"""Events and rows by key in Python, with Spark: what they build, and how they fail."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from tests.running.commands import infold
from tests.spark.test_apply import built
from tests.spark.test_python_models import DAYS, NEAR, PythonShop
from tests.spark.test_python_models import NAMES as FUNCTIONS

from infold import api
from infold.api import environment_runs, promoting
from infold.core.report import RunFailed
from infold.spark.events import arrivals

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark

VISITS = """from datetime import timedelta

from infold import model
from lib import names


@model(
    materialization="events",
    unique_key=["id", "part"],
    timeseries={"event_time_column": "at", "granularity": "day"},
    inputs={"raw.clicks": {"columns": ["id", "who", "ts", "amount"]}},
    columns={"id": "int", "part": "int", "who": "string", "at": "timestamp",
             "amount": "decimal(18,2)"},
)
def visits(row):
    print("in visits")
    if row["who"] == "bot":
        return None
    if row["id"] is None:
        return {"id": None, "part": 0, "who": None, "at": row["ts"], "amount": None}
    return (
        {
            "id": row["id"],
            "part": part,
            "who": names.shown(row["who"]),
            "at": row["ts"] + timedelta(hours=part),
            "amount": row["amount"],
        }
        for part in range(2 if row["who"] == "twin" else 1)
    )
"""
PEOPLE = """from infold import model


@model(
    materialization="cumulative_aggregate",
    group_by=["who"],
    inputs={"visits": {"columns": ["at", "id", "amount"]}},
    columns={"who": "string", "first": "timestamp", "ids": "array<int>", "paid": "decimal(28,2)"},
    audits=[{"not_null": ["ids"]}],
)
def people(rows):
    if rows[0]["at"].hour == 23:
        return None
    paid = sum(row["amount"] for row in rows if row["amount"] is not None)
    return {"first": rows[0]["at"], "ids": [row["id"] for row in rows], "paid": paid}
"""
FORWARD = (
    NEAR.replace("import names", "import words as names")
    .replace("incremental={}", 'incremental={"forward_only": True}')
    .replace("%s", "1 day")
)
TEST = """# A click of some days before

## Arrival

raw.clicks:

| id | who | ts               | amount |
|----|-----|------------------|--------|
| 1  | ann | 2024-03-01 10:00 | 1      |

## Arrival

raw.clicks in late:

| id | who | ts               | amount |
|----|-----|------------------|--------|
| 3  | ann | 2024-03-01 09:00 | NULL   |

expect people:

| who | first            | ids    | paid |
|-----|------------------|--------|------|
| ANN | 2024-03-01 09:00 | [3, 1] | 1.00 |

expect near:

| day        | names   | users |
|------------|---------|-------|
| 2024-03-01 | ["ANN"] | 1     |
| 2024-03-02 | ["ANN"] | 1     |
"""
NAMES = "def shown(name):\n    return name and name.upper()%s\n"


class RowShop(PythonShop):
    """A shop with events in Python, rows by key in Python over them, and a table of days."""

    def __init__(self, root: Path) -> None:
        super().__init__(root)
        self.write(models__visits=VISITS, models__people=PEOPLE, lib__names=NAMES % "")
        self.write(models__near=FORWARD, lib__days=DAYS, lib__words=FUNCTIONS % "")

    def people(self) -> dict[str | None, tuple[str, list[int]]]:
        """The first time and the events of each person."""
        rows = api.show(self.project(), "people").to_pylist()
        return {row["who"]: (f"{row['first']:%d %H}", row["ids"]) for row in rows}


def test_rows(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    """
    Rows of a source become none, one or several events; what is late, gone or changed by other
    code is followed through. Forward-only code leaves earlier cells.

    An environment has its own code, and a promote and a rollback change the code with the tables;
    an audit keeps bad rows out.
    """
    shop = RowShop(tmp_path / "shop")
    shop.land("2024-03-05T09:00:00", "2024-03-05T07:00:00", who="twin")
    shop.land("2024-03-05T09:00:00", who="bot")
    (shop.root / "landing/none.csv").write_text(
        "id,who,ts,day,amount\n,ann,2024-03-05T09:00:00,,\nx,ann,2024-03-05T09:00:00,,\n"
    )
    (shop.root / "tests").mkdir()
    (shop.root / "tests/people.md").write_text(TEST, encoding="utf-8")
    code, printed = infold(shop.project(), "test", "--no-shuffle")
    assert code == 0, printed
    done = shop.apply()
    [receipt] = [receipt for step, receipt in done.steps if step.model == "visits"]
    assert (receipt.arrived, receipt.written, receipt.set_aside) == (7, 6, 2)
    assert shop.people() == {
        "ANN": ("01 10", [1, 2]),
        "TWIN": ("05 07", [4, 4, 3, 3]),
    }
    assert "in visits" not in capfd.readouterr().out

    late = shop.land("2024-03-01T08:00:00", who="ann")
    shop.land("2024-03-01T23:00:00", who="eve")
    done = api.run(shop.project())
    assert set(built(done)) == {"raw.clicks", "daily", "visits", "people", "near"}
    assert shop.people()["ANN"] == ("01 08", [6, 1, 2])

    (shop.root / "landing" / late).unlink()
    shop.land("2024-03-01T22:00:00", who="eve")
    api.run(shop.project())
    assert shop.people()["ANN"] == ("01 10", [1, 2])
    assert shop.people()["EVE"] == ("01 22", [8, 7])

    days = shop.near()
    shop.write(
        lib__names=NAMES % ".title()", models__near=FORWARD.replace("clicks, 2", "clicks, 1")
    )
    assert shop.people().keys() == {"ANN", "TWIN", "EVE"}
    shop.apply()
    assert shop.people().keys() == {"Ann", "Twin", "Eve"}
    shop.land("2024-03-01T11:00:00", "2024-03-09T11:00:00", who="eve")
    api.run(shop.project())
    assert shop.near() == [*days, ("03-09", ["EVE"])]

    people = (shop.root / "models/people.py").read_text()
    shop.write(models__people=people.replace('"ids": [row', '"ids": [-row'))
    declared = api.open_project(shop.root, "prod", declared=True)
    environment_runs.run_environment(declared, "dev")
    code, printed = infold(shop.project(), "explain", "people", "--env", "dev")
    assert (code, "[-row" in printed) == (0, True), printed
    assert shop.people()["Eve"] == ("01 11", [9, 8, 7, 10])
    promoting.promote(shop.project(), promoting.find_promotion(shop.project(), "dev"))
    shop.land("2024-03-02T11:00:00", who="eve")
    api.run(shop.project())
    assert shop.people()["Eve"] == ("01 11", [-9, -8, -7, -11, -10])
    promoting.rollback(shop.project(), promoting.find_rollback(shop.project()))
    api.run(shop.project())
    assert shop.people()["Eve"] == ("01 11", [9, 8, 7, 11, 10])
    assert shop.judge() == {}

    shop.write(models__people=people.replace("[row", "None and [row"))
    with pytest.raises(RunFailed) as caught:
        shop.apply("people")
    assert [one.error.slug for one in caught.value.result.failures] == ["audit-failed"]
    assert shop.people()["Eve"] == ("01 11", [9, 8, 7, 11, 10])


def test_times_outside_the_calendar(spark: SparkSession) -> None:
    """Python has no such times, so rows with one are set aside and not shown to a function."""
    carried = "named_struct('problem', cast(NULL AS string)) AS _infold_row"
    late = "timestamp_micros(300000000000000000)"
    rows = spark.sql(
        f"SELECT 1 AS id, {late} AS at, DATE'2024-03-01' AS day, {carried} UNION ALL "
        f"SELECT 2, TIMESTAMP'2024-03-01', cast({late} AS date), {carried} UNION ALL "
        f"SELECT 3, NULL, NULL, {carried}"
    )

    found = arrivals._without_wrong_times(rows).select("id", "_infold_row.problem").collect()

    assert sorted(map(tuple, found)) == [
        (1, "invalid time: at"),
        (2, "invalid time: day"),
        (3, None),
    ]
