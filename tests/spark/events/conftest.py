"""What the tests of events tables share."""

from __future__ import annotations

import pytest


@pytest.fixture(params=["small", "large"])
def size(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """The ways for few rows and for many, on the same few rows."""
    if request.param == "large":
        monkeypatch.setattr("infold.spark.events.build.IN_MEMORY", -1)
        monkeypatch.setattr("infold.spark.events.table_change.TWO_PHASES", -1)
        monkeypatch.setattr("infold.spark.events.table_change.BROADCAST", -1)
        monkeypatch.setattr("infold.spark.events.table_change.MOST_TIMES", 1)
        monkeypatch.setattr("infold.spark.events.build.ROWS_FOR_PARTITIONS", 0)
        monkeypatch.setattr("infold.spark.events.build.ROWS_OF_A_TASK", 2)
    return str(request.param)
