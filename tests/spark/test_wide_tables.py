"""
Tables of 150 columns, some of them structs and arrays of structs: each kind, each later run.

Trackers' events are as wide. What grows faster than the number of columns shows here by the time
that it takes, if it ends at all.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from tests.spark.wide_events import WideEvents

from infold import api

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark

DAY, HOUR = 24 * 60, 60


def test_each_kind_after_each_arrival(tmp_path: Path, warehouse: Path, spark: SparkSession) -> None:
    """Late, replaced and removed files, and copies at the same and at other times."""
    wide = WideEvents(tmp_path, str(warehouse))
    event = wide.event
    wide.put(
        "1.json",
        *(event(number, f"u{number % 4}", number * 17) for number in range(12)),
        event(3, "u3", 51),
        event(50, "nobody", DAY),
    )
    wide.put("2.json", *(event(number, "u1", DAY + number * 20) for number in range(20, 26)))
    wide.run()
    assert wide.difference() == {}

    wide.put("2.json", *(event(number, "u1", DAY + number * 21, 1) for number in range(20, 25)))
    wide.put("3.json", event(1, "u1", 17), event(30, "u0", 5), event(31, "u2", 2 * DAY))
    wide.run()
    assert wide.difference() == {}

    wide.drop("1.json")
    wide.put("4.json", event(30, "u0", 4), event(31, "u2", 3 * DAY), event(40, "u5", HOUR))
    wide.run()
    assert wide.difference() == {}
    project = api.open_project(wide.root)
    verdicts = api.verify(project, select=["anywhere", "visits", "daily", "users", "states"]).models
    assert [verdict.model for verdict in verdicts if not verdict.equal] == []
