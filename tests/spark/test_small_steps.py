"""What a step of a small run may cost: Spark's queries, each of which is planned, and its jobs."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from tests.spark.project import CUMULATIVE, SparkProject, events, model, new_name, sessions

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark

CONFIG = """\
name: {name}
start: 2024-03-01
sources:
  raw.clicks:
    path: landing/*.json
    format: json
    columns: {{id: string, user_id: string, at: timestamp, amount: bigint}}
"""
MODELS = {
    "clicks": events("SELECT * FROM raw.clicks"),
    "visits": sessions(
        "user: user_id, gap: 30 minutes", "SELECT count(*) AS n, sum(amount) AS amount FROM clicks"
    ),
    "daily": model("SELECT CAST(at AS DATE) AS day, count(*) AS n FROM clicks GROUP BY 1"),
    "users": CUMULATIVE + "SELECT user_id, count(*) AS n, max(at) AS last FROM clicks GROUP BY 1",
    "buyers": CUMULATIVE + "SELECT user_id, count(DISTINCT amount) AS n FROM clicks GROUP BY 1",
}


MOST = {"clicks": (6, 4), "visits": (5, 3), "daily": (3, 2), "users": (4, 5), "buyers": (5, 8)}
"""Queries and jobs of a step of each model. A frame that a query reads by name is a query too."""


def asked_so_far(spark: SparkSession) -> tuple[int, int]:
    """Queries of Spark SQL and jobs of all sessions of the JVM."""
    java: Any = spark._jsparkSession
    context: Any = spark.sparkContext._jsc
    context.sc().listenerBus().waitUntilEmpty()
    jobs = spark.sparkContext.statusTracker().getJobIdsForGroup(None)
    return int(java.sharedState().statusStore().executionsCount()), max(jobs, default=-1) + 1


def test_each_kind_of_step(spark: SparkSession, tmp_path: Path) -> None:
    """
    One row more beside five: the queries and jobs of each model's step, and one commit. Each takes
    some 60 ms whatever it reads, so a small run takes as long as it has of them.
    """
    project = SparkProject(tmp_path, CONFIG.format(name=new_name("small")))
    project.models(**MODELS)
    for number, new in enumerate((5, 1)):
        rows = (
            f'{{"id": "{number}.{at}", "user_id": "u{at % 3}", "amount": {10 * number + at},'
            f' "at": "2024-03-0{at + 1}T1{number}:00:00Z"}}\n'
            for at in range(new)
        )
        project.write(f"landing/{number}.json", "".join(rows))
        taken, commits = {}, {}
        for name in MODELS:
            before = asked_so_far(spark)
            commits[name] = project.receipts(select=[name])[name].commits
            after = asked_so_far(spark)
            taken[name] = after[0] - before[0], after[1] - before[1]

    assert commits == dict.fromkeys(MODELS, 1)
    more = {name for name in MODELS for at in (0, 1) if taken[name][at] > MOST[name][at]}
    assert {name: taken[name] for name in more} == {}
