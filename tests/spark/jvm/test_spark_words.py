"""What Spark says of an error is found where PySpark has not found it."""

from __future__ import annotations

from py4j.protocol import Py4JError

from infold.spark.engine import words_and_condition

BROADCAST = """An error occurred while calling o3521.localCheckpoint.
: java.util.concurrent.ExecutionException: org.apache.spark.SparkArithmeticException: \
[NUMERIC_VALUE_OUT_OF_RANGE.WITH_SUGGESTION] 5.25 is no Decimal(38, 6). SQLSTATE: 22003
\tat java.base/java.util.concurrent.FutureTask.report(FutureTask.java:122)
Caused by: org.apache.spark.SparkArithmeticException: [OTHER] later
"""


def test_what_a_broadcast_failed_of() -> None:
    """An error inside of another that Java has around it is Spark's own, with its condition."""
    assert words_and_condition(Py4JError(BROADCAST)) == (
        "[NUMERIC_VALUE_OUT_OF_RANGE.WITH_SUGGESTION] 5.25 is no Decimal(38, 6). SQLSTATE: 22003",
        "NUMERIC_VALUE_OUT_OF_RANGE.WITH_SUGGESTION",
    )
    assert words_and_condition(Py4JError("java.lang.ClassCastException: a is not b")) is None
