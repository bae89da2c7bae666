"""What goes wrong in functions that make tables, events or rows by key: errors at their places."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from tests.spark.test_apply import built
from tests.spark.test_python_models import BUSIEST, PythonShop

from infold import api
from infold.core.report import RunFailed
from infold.messages.errors import InfoldError

pytestmark = pytest.mark.spark

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
        shop.write(**{f"models__{name}": text.replace("failing", name).replace("BODY", body)})

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

    shop.write(models__busiest=BUSIEST)
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
