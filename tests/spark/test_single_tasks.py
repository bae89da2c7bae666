"""No stage of one task has work that grows with the data: a scale model of 10 million events."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from bench import runs, stages

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from infold.core.project import Project

pytestmark = pytest.mark.spark

SCALE = 1000
EVENTS = 10_000_000 // SCALE
LIMITS = {
    "infold.api.spark_sessions": ("MEDIUM_ROWS", "MEDIUM_BYTES", "MEDIUM_HISTORY", "LARGE_ROWS"),
    "infold.spark.tables.commit": ("ROWS_OF_A_FILE",),
    "infold.spark.events.build": (
        "ROWS_OF_A_FILE",
        "ROWS_FOR_PARTITIONS",
        "ROWS_OF_A_TASK",
        "_ROWS_OF_A_MONTH",
    ),
    "infold.spark.events.table_change": ("TWO_PHASES", "BROADCAST", "MOST_TIMES"),
    "infold.spark.step_commit": ("ROWS_PER_TASK", "MOST_BROADCAST_KEYS"),
    "infold.spark.inputs.changed_keys": ("MOST_BROADCAST_KEYS",),
    "infold.spark.key_filter": ("PAYS_FROM",),
    "infold.spark.sessions.build": (
        "QUICK_BUILD_EVENTS",
        "MOST_EVENTS_READ_HERE",
        "MOST_DIVIDED_ISLANDS",
    ),
    "infold.spark.sessions.micro_islands": ("MOST_TIES", "SLICE_ROWS"),
    "infold.spark.time_range.recompute": (
        *("_ROWS_FOR_OWN_PARTITION", "_ROWS_FOR_PARTITIONS", "_ROWS_TO_CARRY"),
        "FEW_ROWS",
    ),
}
"""From how many rows on the program does something in another way, or in several tasks."""
SETTINGS = {
    "spark.sql.adaptive.coalescePartitions.minPartitionSize": f"{1024 * 1024 // SCALE}b",
    "spark.sql.autoBroadcastJoinThreshold": f"{10 * 1024 * 1024 // SCALE}b",
}
"""The same limits of Spark's."""


def test_no_single_task_has_all_rows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """
    A first build, a day, an old event, a restatement and `verify`, with all limits a thousandth:
    no stage of one task is given more shuffled rows than a task may have.
    """
    for module, names in LIMITS.items():
        for name in names:
            limit: int = getattr(import_module(module), name)
            monkeypatch.setattr(f"{module}.{name}", limit // SCALE)
    for name in ("MODELS_AT_ONCE", "SMALL_AT_ONCE"):
        monkeypatch.setattr(f"infold.api.spark_sessions.{name}", 1)  # in the scaled session
    large_session = runs.large_session

    def scaled(project: Project) -> SparkSession:
        session = large_session(project)
        for key, value in SETTINGS.items():
            session.conf.set(key, value)
        return session

    monkeypatch.setattr(runs, "large_session", scaled)

    found = stages.largest_single_tasks(tmp_path / "shop", EVENTS, day=500, days=90)

    assert set(found) == {"first build", "a day", "an old event", "restate", "verify"}
    most = stages.ROWS_OF_ONE_TASK // SCALE
    assert {what: stage for what, stage in found.items() if stage.shuffled > most} == {}
