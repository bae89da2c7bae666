"""The silence that a large build keeps, of events in buckets that are not in order."""

from __future__ import annotations

from itertools import pairwise
from random import Random

import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from infold.core.interval import MINUTE, SECOND
from infold.spark.sessions.cuts.silence import silence_between_slots, slots_with_events
from infold.spark.sessions.frames import END, SILENCE, START, TIME
from infold.spark.sessions.micro_islands import LONGEST_BUCKET

pytestmark = pytest.mark.spark


@pytest.mark.parametrize("bucket", [1, 61, 62, 63, SECOND, 30 * MINUTE, LONGEST_BUCKET])
def test_a_silence_in_a_bucket_is_the_longest_or_a_little_more(
    spark: SparkSession, bucket: int
) -> None:
    """No silence is longer than what is kept; this is longer by two of 62 slots at most."""
    random = Random(bucket)
    slot = -(-bucket // 62)
    cases: list[list[int]] = []
    for _ in range(400):
        start = random.randint(-(10**6), 10**6) * bucket
        edges = (0, bucket - 1, min(random.randint(0, 61) * slot, bucket - 1))
        drawn = range(random.choice([1, 2, 2, 3, 5, 9, 30]))
        drawn_times = (start + random.choice([*edges, random.randrange(bucket)]) for _ in drawn)
        cases.append(sorted(drawn_times))
    rows = [(case, at) for case, times in enumerate(cases) for at in times]
    found = (
        spark.createDataFrame(rows, f"case int, {TIME} bigint")
        .groupBy("case")
        .agg(
            F.min(TIME).alias(START),
            F.max(TIME).alias(END),
            F.expr(slots_with_events(bucket)).alias("used"),
        )
        .select("*", *map(F.expr, silence_between_slots("used", bucket)))
        .select("case", SILENCE)
    )
    for case, kept in found.collect():
        times = cases[case]
        longest = max((after - before for before, after in pairwise(times)), default=0)
        length = times[-1] - times[0]
        assert longest <= kept <= length
        assert length <= bucket // 4 or kept <= longest + 2 * slot, (times, kept)
