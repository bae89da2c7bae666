"""Events and rows by key in Python, with Spark: what they build, and how they fail."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from tests.running.commands import infold
from tests.spark.test_apply import built
from tests.spark.test_python_models import PythonShop

from infold import api
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
NAMES = "def shown(name):\n    return name and name.upper()%s\n"


class RowShop(PythonShop):
    """A shop with events in Python, rows by key in Python over them, and SQL over these."""

    def __init__(self, root: Path) -> None:
        super().__init__(root)
        self.write(models__visits=VISITS, models__people=PEOPLE, lib__names=NAMES % "")

    def people(self) -> dict[str | None, tuple[str, list[int]]]:
        """The first time and the events of each person."""
        rows = api.show(self.project(), "people").to_pylist()
        return {row["who"]: (f"{row['first']:%d %H}", row["ids"]) for row in rows}


def test_rows(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    """Rows of a source become none, one or several events; what is late, gone or changed by other
    code is followed through, and all equals a rebuild.
    """
    shop = RowShop(tmp_path / "shop")
    shop.land("2024-03-05T09:00:00", "2024-03-05T07:00:00", who="twin")
    shop.land("2024-03-05T09:00:00", who="bot")
    (shop.root / "landing/none.csv").write_text(
        "id,who,ts,day,amount\n,ann,2024-03-05T09:00:00,,\nx,ann,2024-03-05T09:00:00,,\n"
    )
    done = shop.apply()
    [receipt] = [receipt for step, receipt in done.steps if step.model == "visits"]
    assert (receipt.arrived, receipt.written, receipt.set_aside) == (7, 6, 2)
    assert shop.people() == {
        "ANN": ("01 10", [1, 2]),
        "TWIN": ("05 07", [4, 4, 3, 3]),
    }
    printed = capfd.readouterr()
    assert "in visits" not in printed.out

    late = shop.land("2024-03-01T08:00:00", who="ann")
    shop.land("2024-03-01T23:00:00", who="eve")
    done = api.run(shop.project())
    assert set(built(done)) == {"raw.clicks", "daily", "visits", "people"}
    assert shop.people()["ANN"] == ("01 08", [6, 1, 2])

    (shop.root / "landing" / late).unlink()
    shop.land("2024-03-01T22:00:00", who="eve")
    api.run(shop.project())
    assert shop.people()["ANN"] == ("01 10", [1, 2])
    assert shop.people()["EVE"] == ("01 22", [8, 7])

    shop.write(lib__names=NAMES % ".title()")
    assert shop.people().keys() == {"ANN", "TWIN", "EVE"}
    shop.apply()
    assert shop.people().keys() == {"Ann", "Twin", "Eve"}
    assert shop.judge() == {}


NUMBERED = """from infold import model

SEEN = []


@model(
    materialization="events",
    unique_key=["id"],
    timeseries={"event_time_column": "ts"},
    inputs={"raw.clicks": {"columns": ["id", "ts"]}},
    columns={"id": "int", "ts": "timestamp", "number": "int"},
)
def numbered(row):
    SEEN.append(row["id"])
    return dict(row, number=len(SEEN))
"""
TEST = """# Events are numbered

## Arrival

raw.clicks:

| id | ts               |
|----|------------------|
| 1  | 2024-03-01 10:00 |

## Arrival

raw.clicks in second:

| id | ts               |
|----|------------------|
| 2  | 2024-03-01 11:00 |
| 3  | 2024-03-01 12:00 |

expect numbered:

| id |
|----|
| 1  |
| 2  |
| 3  |
"""


def test_what_is_kept_between_rows_is_found(tmp_path: Path) -> None:
    """A function that remembers rows gives others when they come in another order, which the
    random orders of `infold test` show.
    """
    shop = PythonShop(tmp_path / "shop")
    shop.write(models__numbered=NUMBERED)
    (shop.root / "tests").mkdir()
    (shop.root / "tests/numbers.md").write_text(TEST, encoding="utf-8")

    code, printed = infold(shop.project(), "test", "--seed", "1", "--shuffles", "3")
    assert (code, "numbered" in printed) == (1, True), printed


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
