"""Models in Python with Spark: what they build, what they keep, and how they fail."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.spark.test_apply import Shop, built

from infold import api
from infold.core.report import RunResult

pytestmark = pytest.mark.spark

NEAR = """from infold import model
from pyspark.sql import functions as F
from lib import names
from lib.days import on_days


@model(
    materialization="table",
    timeseries={"event_time_column": "ts", "partition_column": "day"},
    incremental={},
    inputs={"raw.clicks": {"before": "%s", "columns": ["ts", "who"]}},
    columns={"day": "date", "users": "bigint", "names": "array<string>"},
    audits=["not_null: day"],
)
def near(clicks):
    print("in near")
    every = on_days(clicks, 2).withColumn("who", names.shown("who"))
    return every.groupBy("day").agg(
        F.sort_array(F.collect_set("who")).alias("names"), F.countDistinct("who").alias("users")
    )
"""
NEAR = NEAR.replace('["not_null: day"]', '[{"not_null": ["day"]}]')
DAYS = """from pyspark.sql import functions as F

def on_days(rows, days):
    '''Each row on its day, and on those that follow.'''
    first = F.to_date("ts")
    return rows.withColumn("day", F.explode(F.sequence(first, F.date_add(first, days - 1))))
"""
NAMES = """from __future__ import annotations

from dataclasses import dataclass

from pyspark.sql import functions as F


@dataclass
class Name:
    text: str

def loud(name):
    return Name(name.upper() + "%s").text

@F.udf("string")
def shown(name):
    return loud(name)
"""
LOUD = """import pyarrow as pa
from infold import model
from lib import names


@model(
    materialization="table",
    incremental={"enabled": False, "safety_overrides": {"allow_nondeterministic": True}},
    columns={"who": "string", "n": "bigint"},
)
def loud(daily):
    def each(batches):
        for batch in batches:
            who = [names.loud("day") for _ in range(batch.num_rows)]
            yield pa.record_batch({"who": pa.array(who), "n": batch["n"]})

    return daily.mapInArrow(each, "who string, n bigint")
"""
SEEN = """from infold import model

@model(materialization="view", columns={"who": "string"})
def seen(loud):
    return loud.select("who").distinct()
"""
TOP = "---\nmaterialization: table\n---\nSELECT count(*) AS n, max(who) AS who FROM seen\n"

BUSIEST = """from infold import model


@model(
    materialization="table",
    inputs={"raw.clicks": {"columns": ["who", "ts"]}},
    columns={"who": "string", "most": "bigint"},
)
def busiest(clicks):
    def most(rows):
        days = rows.groupby([rows["who"], rows["ts"].dt.date]).size()
        return days.groupby("who").max().rename("most").reset_index()

    return clicks.groupBy("who").applyInPandas(most, "who string, most bigint")
"""


class PythonShop(Shop):
    """A shop with models in Python."""

    def __init__(self, root: Path) -> None:
        super().__init__(root)
        (root / "models/rolling.sql").unlink()

    def write(self, **files: str) -> None:
        """Write Python files, by their paths with underscores twice for a folder."""
        for name, text in files.items():
            path = self.root / f"{name.replace('__', '/')}.py"
            path.parent.mkdir(exist_ok=True)
            path.write_text(text, encoding="utf-8")

    def judge(self) -> dict[str, str]:
        """The models that differ from their rebuild, with what is noted about them."""
        report = api.verify(self.project())
        return {verdict.model: verdict.note for verdict in report.models if not verdict.equal}

    def near(self) -> list[tuple[str, list[str]]]:
        """The names on each day."""
        rows = api.show(self.project(), "near").to_pylist()
        return sorted((str(row["day"])[5:10], row["names"]) for row in rows)


def test_functions(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    """Functions make tables by cells, whole, with pandas and by views; what is late makes the cells
    stale that the declared bounds say; `verify` judges the bounds. Applied code goes on when its
    files change, one of them to half a file. A table that is built whole may vouch that any result
    will do.
    """
    shop = PythonShop(tmp_path / "shop")
    shop.models(top=TOP)
    short = NEAR.replace("def near", "def short") % "0 seconds"
    shop.write(models__near=NEAR % "1 day", models__short=short, models__loud=LOUD)
    shop.write(models__seen=SEEN, models__busiest=BUSIEST, lib__days=DAYS, lib__names=NAMES % "")
    shop.land("2024-03-05T09:00:00", "2024-03-05T11:00:00", who="bob")
    shop.apply()
    printed = capfd.readouterr()
    assert "in near" in printed.err
    assert "in near" not in printed.out
    assert shop.near() == [
        ("03-01", ["ANN"]), ("03-02", ["ANN"]), ("03-03", ["ANN"]),
        ("03-05", ["BOB"]), ("03-06", ["BOB"]),
    ]  # fmt: skip
    busiest = api.show(shop.project(), "busiest").to_pylist()
    assert sorted(tuple(row.values()) for row in busiest) == [("ann", 1), ("bob", 2)]

    shop.write(models__near="def half(", lib__names=NAMES % "!")
    shop.land("2024-03-02T11:00:00", who="eve")
    done = api.run(shop.project())
    assert set(built(done)) == {
        *("raw.clicks", "daily", "near", "short", "loud", "top", "busiest"),
    }
    assert _cells(done, "near") == 2
    assert shop.near()[1:3] == [("03-02", ["ANN", "EVE"]), ("03-03", ["ANN", "EVE"])]
    wrong = shop.judge()
    assert list(wrong) == ["short"]
    assert "beyond its declared bounds it differs in 2024-03-03 and 1 more" in wrong["short"]
    assert "raw.clicks: {before: 1 day} is enough" in wrong["short"]

    short = NEAR.replace("def near", "def short") % "1 day"
    shop.write(models__near=NEAR % "1 day", models__short=short)
    shop.apply()
    assert shop.near()[1] == ("03-02", ["ANN!", "EVE!"])
    [top] = api.show(shop.project(), "top").to_pylist()
    assert top == {"n": 1, "who": "DAY!"}


def _cells(result: RunResult, model: str) -> int:
    return sum(receipt.cells_built for step, receipt in result.steps if step.model == model)
