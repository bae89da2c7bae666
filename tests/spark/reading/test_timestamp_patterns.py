"""What is said of patterns of times at ``check`` is what Spark's parser says."""

from __future__ import annotations

from random import Random
from string import ascii_letters
from typing import TYPE_CHECKING, Any

import pytest
from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException

from infold.declare.sources import find_pattern_fault

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark

PIECES = (
    *(
        "yyyy",
        "MM",
        "dd",
        "HH",
        "mm",
        "ss",
        "SSS",
        "S",
        "a",
        "h",
        "VV",
        "XXX",
        "Z",
        "G",
        "D",
        "MMM",
    ),
    *("'", "''", "'T'", "[", "]", " ", ":", ".", "-", "/", "{", "#", "é", "E", "T", "yyyyyyy", "n"),
)


def test_each_letter_and_what_is_between_them(spark: SparkSession) -> None:
    """Each letter, as often in a row as any may be there; and two thousand patterns by chance."""
    jvm: Any = spark._jvm
    util = jvm.org.apache.spark.sql.catalyst.util
    formatters = getattr(getattr(util, "TimestampFormatter$"), "MODULE$")
    zone = jvm.java.time.ZoneId.of("UTC")

    def spark_reads(pattern: str) -> bool:
        try:
            formatters.apply(pattern, zone, True)
        except (Py4JJavaError, PySparkException):
            return False
        return True

    draw = Random(1)
    patterns = [letter * count for letter in ascii_letters for count in range(1, 21)]
    patterns += ["".join(draw.choices(PIECES, k=draw.randint(1, 8))) for _ in range(2_000)]
    ours = ("z:", "v:", "it has no letter", "digits finer")
    wrong = {pattern: find_pattern_fault(pattern) for pattern in patterns}
    both = {one: why for one, why in wrong.items() if not why.startswith(ours)}

    assert {one: why for one, why in both.items() if spark_reads(one) is bool(why)} == {}
    assert len(patterns) // 10 < sum(map(bool, both.values())) < len(both) * 9 // 10
