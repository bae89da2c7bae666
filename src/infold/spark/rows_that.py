"""Which of some conditions any of a few rows meets, as Spark evaluates them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql import types as T

from infold.core.queries import quoted


def conditions_met(
    spark: SparkSession,
    columns: Mapping[str, str],
    rows: Sequence[Mapping[str, Any]],
    conditions: Sequence[str],
) -> tuple[bool | None, ...]:
    """
    For each condition whether it is true for any row; None where Spark cannot evaluate it.

    ``columns`` have types as Spark SQL writes them; ``rows`` have values as ``typed_text`` has.
    """
    ddl = ", ".join(f"{quoted(name)} {of}" for name, of in columns.items())
    values: Any = [tuple(row.get(name) for name in columns) for row in rows]
    make: Any = spark.createDataFrame  # its annotations know no list of tuples
    frame: DataFrame = make(values, T.StructType.fromDDL(ddl))
    answers: list[bool | None] = []
    for condition in conditions:
        try:
            # One row.
            counted = frame.agg(F.expr(f"count_if({condition})").alias("n")).toArrow()
        except (PySparkException, Py4JError):
            answers.append(None)
        else:
            answers.append(bool(counted["n"][0].as_py()))
    return tuple(answers)
