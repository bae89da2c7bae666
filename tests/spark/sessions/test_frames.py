"""Frames are compared with the schemas that their modules declare."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from infold.spark import frame_schema
from infold.spark.frame_schema import ANY, FrameColumn, FrameSchema, returns

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

pytestmark = pytest.mark.spark

SCHEMA = FrameSchema(
    "a row",
    (
        FrameColumn("id", "bigint", "a number"),
        FrameColumn("of", ANY, "of any type"),
        FrameColumn("key", "struct<a:…", "a struct"),
        FrameColumn("more", "string", "text", "some models"),
    ),
)

FITS = "1L AS id, 'a' AS of, named_struct('a', 1) AS key"


def test_frames_are_compared_with_schemas(spark: SparkSession) -> None:
    """A missing column, another type and an undeclared column each fail the check.

    A frame may have any type where the schema leaves it open, and may lack optional columns.
    """
    for more in ("", ", 'x' AS more"):
        SCHEMA.check(spark.sql(f"SELECT {FITS}{more}"))
    for columns, what in (
        ("1L AS id, named_struct('a', 1) AS key", "no of"),
        (FITS.replace("1L AS", "1 AS"), "id is int"),
        (FITS.replace("'a', 1", "'b', 1"), "key is struct<b:int>"),
        (f"{FITS}, 1 AS more", "more is int"),
        (f"{FITS}, 1 AS other", "is not declared"),
    ):
        with pytest.raises(AssertionError, match=what):
            SCHEMA.check(spark.sql(f"SELECT {columns}"))


def test_frames_of_these_tests_are_checked(
    spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Frames are checked in the tests with Spark, and not in a run; where there is one."""

    @returns(SCHEMA)
    def wrong() -> DataFrame:
        return spark.range(1)

    @returns(SCHEMA)
    def nothing() -> DataFrame | None:
        return None

    assert nothing() is None
    with pytest.raises(AssertionError, match="no of"):
        wrong()
    monkeypatch.setattr(frame_schema, "CHECKED", False)
    assert wrong().columns == ["id"]
