"""Models in Python with Spark: what they build, what they keep, and how they fail."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from tests.running.commands import infold
from tests.spark.project import built, model
from tests.spark.time_range.daily_project import DAILY, Production, cells

from infold import api
from infold.api import environments
from infold.core.report import RunFailed
from infold.messages.errors import InfoldError
from infold.spark.events import arrivals

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

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
    audits=[{"not_null": ["day"]}],
)
def near(clicks):
    print("in near")
    every = on_days(clicks, 2).withColumn("who", names.shown("who"))
    return every.groupBy("day").agg(
        F.sort_array(F.collect_set("who")).alias("names"), F.countDistinct("who").alias("users")
    )
"""
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


class PythonShop(Production):
    """A shop with models in Python."""

    def __init__(self, root: Path) -> None:
        super().__init__(root)
        self.models(daily=model(DAILY))
        self.land("2024-03-01T10:00:00", "2024-03-02T10:00:00")

    def python(self, **files: str) -> None:
        """Write Python files, by their paths with underscores twice for a folder."""
        for name, text in files.items():
            self.write(f"{name.replace('__', '/')}.py", text)

    def judge(self, *models: str) -> dict[str, str]:
        """Which of some models differ from their rebuild, with what is noted about them."""
        report = api.verify(self.project(), select=models)
        return {verdict.model: verdict.note for verdict in report.models if not verdict.equal}

    def near(self) -> list[tuple[str, list[str]]]:
        """The names on each day."""
        rows = self.shown("near")
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
    shop.python(models__near=NEAR % "1 day", models__short=short, models__loud=LOUD)
    shop.python(models__seen=SEEN, models__busiest=BUSIEST, lib__days=DAYS, lib__names=NAMES % "")
    shop.land("2024-03-05T09:00:00", "2024-03-05T11:00:00", who="bob")
    shop.apply()
    printed = capfd.readouterr()
    assert "in near" in printed.err
    assert "in near" not in printed.out
    assert shop.near() == [
        ("03-01", ["ANN"]), ("03-02", ["ANN"]), ("03-03", ["ANN"]),
        ("03-05", ["BOB"]), ("03-06", ["BOB"]),
    ]  # fmt: skip
    busiest = shop.shown("busiest")
    assert sorted(tuple(row.values()) for row in busiest) == [("ann", 1), ("bob", 2)]

    shop.python(models__near="def half(", lib__names=NAMES % "!")
    shop.land("2024-03-02T11:00:00", who="eve")
    done = shop.go()
    assert set(built(done)) == {
        *("raw.clicks", "daily", "near", "short", "loud", "top", "busiest"),
    }
    assert cells(done, "near") == 2
    assert shop.near()[1:3] == [("03-02", ["ANN", "EVE"]), ("03-03", ["ANN", "EVE"])]
    wrong = shop.judge("near", "short")
    assert list(wrong) == ["short"]
    assert "beyond its declared bounds it differs in 2024-03-03 and 1 more" in wrong["short"]
    assert "raw.clicks: {before: 1 day} is enough" in wrong["short"]

    short = NEAR.replace("def near", "def short") % "1 day"
    shop.python(models__near=NEAR % "1 day", models__short=short)
    shop.apply()
    assert shop.near()[1] == ("03-02", ["ANN!", "EVE!"])
    [top] = shop.shown("top")
    assert top == {"n": 1, "who": "DAY!"}


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
TEST = """# Two clicks of a day

## Arrival

raw.clicks:

| id | who | ts               | amount |
|----|-----|------------------|--------|
| 1  | ann | 2024-03-01 10:00 | 1      |
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
UPPER = "def shown(name):\n    return name and name.upper()%s\n"


class RowShop(PythonShop):
    """A shop with events in Python, rows by key in Python over them, and a table of days."""

    def __init__(self, root: Path) -> None:
        super().__init__(root)
        self.python(models__visits=VISITS, models__people=PEOPLE, lib__names=UPPER % "")
        self.python(models__near=FORWARD, lib__days=DAYS, lib__words=NAMES % "")

    def people(self) -> dict[str | None, tuple[str, list[int]]]:
        """The first time and the events of each person."""
        rows = self.shown("people")
        return {row["who"]: (f"{row['first']:%d %H}", row["ids"]) for row in rows}

    def explains(self, *of: str) -> bool:
        """Whether the code that makes `people` now is that of the environment."""
        code, printed = infold(self.project(), "explain", "people", *of)
        assert code == 0, printed
        return "[-row" in printed


def test_rows(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    """
    Rows of a source become none, one or several events; what is late, gone or changed by other
    code is followed through. Forward-only code leaves earlier cells.

    An environment has its own code, and a promote and a rollback change the code with the tables;
    an audit keeps bad rows out.
    """
    shop = RowShop(tmp_path / "shop")
    gone = shop.land("2024-03-01T09:00:00", who="ann")
    shop.land("2024-03-05T09:00:00", "2024-03-05T07:00:00", who="twin")
    shop.land("2024-03-05T09:00:00", who="bot")
    shop.land("2024-03-01T23:00:00", who="eve")
    odd = "id,who,ts,day,amount\n,ann,2024-03-05T09:00:00,,\nx,ann,2024-03-05T09:00:00,,\n"
    shop.write("landing/none.csv", odd)
    shop.write("tests/people.md", TEST)
    code, printed = infold(shop.project(), "test", "--no-shuffle")
    assert code == 0, printed
    done = shop.apply()
    [receipt] = [receipt for step, receipt in done.steps if step.model == "visits"]
    assert (receipt.arrived, receipt.written, receipt.set_aside) == (9, 8, 2)
    assert shop.people() == {
        "ANN": ("01 09", [3, 1, 2]),
        "TWIN": ("05 07", [5, 5, 4, 4]),
    }
    assert "in visits" not in capfd.readouterr().out

    shop.drop(gone)
    shop.land("2024-03-01T08:00:00", who="ann")
    shop.land("2024-03-01T22:00:00", who="eve")
    done = shop.go()
    assert set(built(done)) == {"raw.clicks", "daily", "visits", "people", "near"}
    assert shop.people()["ANN"] == ("01 08", [8, 1, 2])
    assert shop.people()["EVE"] == ("01 22", [9, 7])

    days = shop.near()
    shop.python(
        lib__names=UPPER % ".title()",
        models__near=FORWARD.replace("clicks, 2", "clicks, 1"),
    )
    assert shop.people().keys() == {"ANN", "TWIN", "EVE"}
    shop.apply()
    assert shop.people().keys() == {"Ann", "Twin", "Eve"}
    shop.land("2024-03-01T11:00:00", "2024-03-09T11:00:00", who="eve")
    shop.go()
    assert shop.near() == [*days, ("03-09", ["EVE"])]
    assert shop.judge("visits", "people") == {}

    people = (shop.root / "models/people.py").read_text()
    shop.python(models__people=people.replace('"ids": [row', '"ids": [-row'))
    declared = shop.project(declared=True)
    environments.run_environment(declared, "dev")
    assert shop.explains("--env", "dev")
    assert shop.people()["Eve"] == ("01 11", [10, 9, 7, 11])
    environments.promote(shop.project(), environments.find_promotion(shop.project(), "dev"))
    shop.land("2024-03-02T11:00:00", who="eve")
    shop.go()
    assert shop.people()["Eve"] == ("01 11", [-10, -9, -7, -12, -11])
    environments.rollback(shop.project(), environments.find_rollback(shop.project()))
    assert not shop.explains()

    shop.python(models__people=people.replace("[row", "None and [row"))
    with pytest.raises(RunFailed, match="audit-failed"):
        shop.apply("people")
    assert shop.people()["Eve"] == ("01 11", [10, 9, 7, 11])


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


TABLE = """from infold import model
from pyspark.sql import functions as F


@model(materialization="table", columns={"day": "date", "n": "bigint"},
       inputs={"daily": {"columns": ["day", "n"]}})
def failing(daily):
    days = daily
    BODY
"""
EVENT = """from infold import model


@model(
    materialization="events",
    unique_key=["id"],
    timeseries={"event_time_column": "ts"},
    inputs={"raw.clicks": {"columns": ["id", "ts"]}},
    columns={"id": "int", "ts": "timestamp"},
)
def failing(row):
    BODY
"""
KEY = """from infold import model


@model(
    materialization="cumulative_aggregate",
    group_by=["day"],
    inputs={"daily": {"columns": ["n"]}},
    columns={"day": "date", "n": "bigint"},
)
def failing(rows):
    BODY
"""
SOME = "days.mapInArrow(lambda some: [1 / 0], 'day date, n bigint')"
FRAME = "getattr(days, 'spark' + 'Session').createDataFrame([], 'day date, n bigint')"
TODAY = "days.where('day <= (SELECT max(current_date()) FROM VALUES (1))')"
FAILING = {
    "raises": (TABLE, "return days.limit(1 // 0)", "python-failed", 9, ""),
    "nothing": (TABLE, "days.count()", "python-result", 7, ""),
    "others": (TABLE, "return days.withColumn('n', F.lit('1')).drop('day')", "python-columns", 7,
               "n is string, declared bigint"),
    "unknown": (TABLE, "return days.select('x')", "python-failed", 9, ""),
    "chance": (TABLE, "return days.withColumn('n', F.expr('rand()').cast('bigint'))",
               "not-deterministic", 7, ""),
    "clock": (TABLE, "return days.withColumn('n', F.expr('1 + unix_timestamp(now())'))",
              "not-deterministic", 7, ""),
    "today": (TABLE, f"return {TODAY}", "not-deterministic", 7, ""),
    "outside": (TABLE, f"return {FRAME}", "reads-unseen", 7, ""),
    "worker": (TABLE, f"return {SOME}", "python-failed", 9, "ZeroDivisionError"),
    "of_an_event": (EVENT, "return row['nothing']", "function-failed", 12, "raised KeyError"),
    "importing": (EVENT.replace("from", "import nowhere\nfrom", 1), "return row",
                  "missing-module", 1, "needs nowhere"),
    "of_a_key": (KEY, "return {'n': rows}", "function-failed", 10, "which is no bigint"),
    "another_key": (KEY.replace('"date"', '"string"'), "return {'n': 1}",
                    "python-columns", 10, "day is date, declared string"),
}  # fmt: skip
"""By its name a model's text and body, and the error: its name, its line, and what it says."""


def test_failures(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """
    What goes wrong in a function is an error at its place; the other models are built.

    Where pandas is not there, the error says so.
    """
    shop = PythonShop(tmp_path / "shop")
    for name, (text, body, *_) in FAILING.items():
        shop.python(**{f"models__{name}": text.replace("failing", name).replace("BODY", body)})

    built_models, found = failed(shop)

    assert built_models == ["raw.clicks", "daily"]
    places = {
        name: (one.slug, one.at and (one.at.file, one.at.line)) for name, one in found.items()
    }
    assert places == {
        name: (slug, (f"models/{name}.py", line)) for name, (_, _, slug, line, _) in FAILING.items()
    }
    for name, (*_, said) in FAILING.items():
        assert said in str(found[name])
        (shop.root / "models" / f"{name}.py").unlink()

    shop.python(models__busiest=BUSIEST)
    monkeypatch.setitem(sys.modules, "pandas", None)
    _, found = failed(shop)
    error = found["busiest"]
    assert (error.slug, error.at and error.at.line) == ("missing-module", 14)
    assert "needs pandas" in str(error).lower()


def failed(shop: PythonShop) -> tuple[list[str], dict[str, InfoldError]]:
    """What a run on the target for development builds, and what its failures are."""
    with pytest.raises(RunFailed) as caught:
        api.run(api.open_project(shop.root, "dev"))
    result = caught.value.result
    return built(result), {one.model: one.error for one in result.failures}
