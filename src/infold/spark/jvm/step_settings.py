"""Settings of a running session for one step, whatever the size of the run."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_TASKS = "spark.sql.shuffle.partitions"

_UNSHUFFLED = {
    _TASKS: "1",
    "spark.sql.adaptive.enabled": "false",
    # The query contains dates, so each day's code would be new, and compiled for one use.
    "spark.sql.codegen.wholeStage": "false",
}


@contextmanager
def settings_for_few_rows(session: SparkSession) -> Iterator[None]:
    """
    Settings for a step over few rows, each input read by one task, whatever the run's size.

    Such a plan needs no shuffle, so adaptive execution has nothing to adapt; it would only run each
    stage as a job of its own.
    """
    with _with_settings(session, _UNSHUFFLED):
        yield


@contextmanager
def settings_of_one_plan(session: SparkSession, most_tasks: int) -> Iterator[None]:
    """
    Settings for actions over few rows, of large tables: each is planned once, as one job.

    Adaptive execution would run each stage as a job of its own, planned when those before it are
    over. That takes longer than what it could improve. It would also choose few tasks for few rows;
    here their number is given.
    """
    tasks = min(most_tasks, int(session.conf.get(_TASKS) or most_tasks))
    with _with_settings(session, {"spark.sql.adaptive.enabled": "false", _TASKS: str(tasks)}):
        yield


@contextmanager
def settings_for_union(session: SparkSession) -> Iterator[None]:
    """
    Settings for a union of frames of one partition each, to keep these as partitions.

    By default Spark makes them one partition, which a single task reads.
    """
    with _with_settings(session, {"spark.sql.unionOutputPartitioning": "false"}):
        yield


@contextmanager
def _with_settings(session: SparkSession, settings: Mapping[str, str]) -> Iterator[None]:
    before = {key: session.conf.get(key) or "" for key in settings}
    for key, value in settings.items():
        session.conf.set(key, value)
    try:
        yield
    finally:
        for key, value in before.items():
            session.conf.set(key, value)
