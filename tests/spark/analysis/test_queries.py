"""The admitted queries of tests/queries give the rows of
plain Spark over all data, after every round.

The rows are drawn (INFOLD_QUERY_SEED draws others): ties, midnights, changes of clocks, NULLs;
they are late, repeated, corrected, and removed with their files. Several themes are one project.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from tests.queries.arrivals import Arrivals
from tests.queries.beside import Beside, runnable

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark

PROJECTS = {
    "days": ("daily_totals", "unions", "strings"),
    "windows": ("rolling", "session_flags", "to_date", "top"),
    "joins": ("retention", "attribution", "as_of"),
    "shapes": ("nested", "statistics", "pivots", "dedup"),
    "calendars": ("buckets", "calendar", "zones", "subqueries"),
    "others": ("whole", "by_key", "kinds", "refused"),
}


@pytest.mark.parametrize("name", PROJECTS)
def test_tables_equal_plain_spark(name: str, tmp_path: Path, spark: SparkSession) -> None:
    """Tables equal plain Spark after a first load, and after every kind of change to rows."""
    chosen, session = runnable(PROJECTS[name]), spark.newSession()
    beside = Beside(tmp_path / name, chosen)
    wrong = []
    for arrive in (Arrivals.first, Arrivals.later):
        arrive(beside.arrivals)
        wrong += beside.run()
    wrong += beside.wrong(session)

    assert not wrong, "\n".join(wrong)
    print(f"{name}: {len(chosen)} queries equal plain Spark")
