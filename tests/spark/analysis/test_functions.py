"""An expanded call has the values that the same function has in Spark."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from pyspark.sql import SparkSession
from tests.spark.analysis.functions_in_spark import ANSWERS, FUNCTIONS, QUERIES, result

from infold.declare.folder import Folder
from infold.declare.functions import ProjectFunctions, read_functions
from infold.messages.errors import InfoldError

pytestmark = pytest.mark.spark


def functions() -> ProjectFunctions:
    """The functions as a project reads them."""
    errors: list[InfoldError] = []
    files = ((f"functions/{name}.sql", text.encode()) for name, text in FUNCTIONS.items())
    found = read_functions(Folder(Path("shop"), tuple(files)), errors)
    assert not errors, errors[0]
    return found


def test_calls_have_the_values_that_they_have_in_spark(spark: SparkSession) -> None:
    """Each query's expansion gives the columns, types and rows of Spark's own functions."""
    known, wrong = functions(), []
    answers = json.loads(ANSWERS.read_text(encoding="utf-8"))
    for sql in QUERIES:
        parsed, called = known.parse("a.sql", sql, 0)
        assert called
        found = result(spark, parsed.text.sql)
        if found != answers[sql]:
            wrong.append(f"{sql}\n  Spark:    {answers[sql]}\n  expanded: {found}")

    assert not wrong, "\n".join(wrong)
