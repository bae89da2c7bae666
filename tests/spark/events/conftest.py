"""What the tests of events tables share."""

from __future__ import annotations

import pytest


@pytest.fixture
def many_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    """Few rows go the ways of many."""
    monkeypatch.setattr("infold.spark.events.build.IN_MEMORY", -1)
    monkeypatch.setattr("infold.spark.events.table_change.TWO_PHASES", -1)
    monkeypatch.setattr("infold.spark.events.table_change.BROADCAST", -1)
    monkeypatch.setattr("infold.spark.events.table_change.MOST_TIMES", 1)
    monkeypatch.setattr("infold.spark.events.build.ROWS_FOR_PARTITIONS", 0)
    monkeypatch.setattr("infold.spark.events.build.ROWS_OF_A_TASK", 2)
