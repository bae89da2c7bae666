"""Sessions cut at midnight, where clocks are set back over it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from tests.reference.compare import difference, stored
from tests.reference.drawn import at, drawn, table
from tests.reference.tables import Ends
from tests.spark.sessions.folding import FoldedSessions
from tests.spark.sessions.random_folds import COUNT, large_builds_equal_the_reference, named_events

from infold.core.session_cuts import Midnight
from infold.spark.verify import sessions_from_scratch

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark

ZONE = "America/St_Johns"
"""A minute after midnight, at 02:31 UTC on 2010-11-07, its clocks showed 23:01 once more."""


def test_a_day_begins_once_though_clocks_are_set_back_over_midnight(spark: SparkSession) -> None:
    """
    Clock times of the previous day that occur again after midnight belong to the new day.

    | UTC      | clock    | day         |
    |----------|----------|-------------|
    | 02:20    | 23:50    | the old one |
    | 02:30:30 | 00:00:30 | the new one |
    | 02:50    | 23:20    | the same    |
    | 03:15    | 23:45    | the same    |
    | 03:40    | 00:10    | the same    |
    """
    clocks = ("02:20", "02:30:30", "02:50", "03:15", "03:40")
    events = named_events("s", "ann", [at(f"2010-11-07T{clock}") for clock in clocks])
    shop, large = (
        FoldedSessions(spark, COUNT, ends=Ends(zone=ZONE), cuts=(Midnight(ZONE),)) for _ in "sl"
    )
    shop.arrive([*events[:3], events[4]]).run().arrive([events[3]]).run()
    large.arrive(events)

    assert drawn(shop.rows(), "events") == table("""
        | start            | end              | events |
        |------------------|------------------|-------:|
        | 2010-11-07 02:20 | 2010-11-07 02:20 |      1 |
        | 2010-11-07 02:30 | 2010-11-07 03:40 |      4 |
    """)
    judged = sessions_from_scratch.sessions(shop.frame(len(shop.versions) - 1), shop.query)
    rows = stored(judged.toArrow().to_pylist())
    for row in rows:
        row.pop("session_id")
    assert difference(shop.expected(), rows) == ""
    large_builds_equal_the_reference(large, large.query, 1)
