"""
Queries of tests/queries, one of each way to read and to keep rows, give the rows of plain Spark
over all data, when most rows have come and when they are corrected.

The rows are drawn (INFOLD_QUERY_SEED draws others): ties, midnights, changes of clocks, NULLs;
they are late, repeated, corrected, and removed with their files. All queries are one project.
What each of the others is read for follows from what the analysis says of it: ``test_admitted``.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from tests.queries.arrivals import Arrivals
from tests.queries.beside import Beside
from tests.queries.catalog import admitted
from tests.spark.analysis.at_once import interpreted

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark

CHOSEN = {
    "price_by_max_by",
    "source_read_directly",
    "last_touch_in_thirty_days",
    "weeks_from_sunday_as_cells",
    "totals_of_two_keys",
    "last_status_with_a_whole_order",
    "month_before_by_add_months",
    "key_that_holds_everywhere",
    "events_joined",
    "visits_of_days",
    "cohorts_by_signup_lookup",
    "centred_mean",
    "except_all",
    "berlin_hours_as_a_key",
}
"""By their names."""


def test_tables_equal_plain_spark(tmp_path: Path, spark: SparkSession) -> None:
    """Tables equal plain Spark after a first load, and after every kind of change to rows."""
    chosen = [query for query in admitted() if query.name in CHOSEN]
    assert {query.name for query in chosen} == CHOSEN
    beside = Beside(tmp_path / "chosen", chosen)
    wrong = []
    for arrive in (Arrivals.first, Arrivals.later):
        arrive(beside.arrivals)
        wrong += beside.run()
    wrong += beside.wrong(interpreted(spark))

    assert not wrong, "\n".join(wrong)
