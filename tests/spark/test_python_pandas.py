"""Tables made with pandas, and what is said where it is missing."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from tests.spark.test_python_models import PythonShop, errors_of

from infold import api

pytestmark = pytest.mark.spark

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


def test_pandas(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A table is made with pandas, key by key. Without pandas the error says what is missing."""
    shop = PythonShop(tmp_path / "shop")
    (shop.root / "models/rolling.sql").unlink()
    shop.write(models__busiest=BUSIEST)
    shop.land("2024-03-02T09:00:00", "2024-03-02T11:00:00", who="bob")
    shop.apply()
    rows = api.show(shop.project(), "busiest").to_pylist()
    assert sorted(tuple(row.values()) for row in rows) == [("ann", 1), ("bob", 2)]
    shop.land("2024-03-01T11:00:00")
    api.run(shop.project())
    assert shop.judge() == {}

    monkeypatch.setitem(sys.modules, "pandas", None)
    error = errors_of(shop)["busiest"]
    assert (error.slug, error.at and error.at.line) == ("missing-module", 14)
    assert "needs pandas" in str(error).lower()
