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


@pytest.mark.parametrize("more", ["", ", 'x' AS more"])
def test_a_frame_that_fits_passes(spark: SparkSession, more: str) -> None:
    """A frame may have any type where the schema leaves it open, and may lack optional columns."""
    SCHEMA.check(spark.sql(f"SELECT {FITS}{more}"))


@pytest.mark.parametrize(
    ("columns", "what"),
    [
        ("1L AS id, named_struct('a', 1) AS key", "no of"),
        (FITS.replace("1L AS", "1 AS"), "id is int"),
        (FITS.replace("'a', 1", "'b', 1"), "key is struct<b:int>"),
        (f"{FITS}, 1 AS more", "more is int"),
        (f"{FITS}, 1 AS other", "is not declared"),
    ],
)
def test_a_frame_that_does_not_fit_is_an_error(
    spark: SparkSession, columns: str, what: str
) -> None:
    """A missing column, another type and an undeclared column each fail the check."""
    with pytest.raises(AssertionError, match=what):
        SCHEMA.check(spark.sql(f"SELECT {columns}"))


def test_frames_of_these_tests_are_checked(
    spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Frames are checked in the tests with Spark, and not in a run."""

    @returns(SCHEMA)
    def wrong() -> DataFrame:
        return spark.range(1)

    with pytest.raises(AssertionError, match="no of"):
        wrong()
    monkeypatch.setattr(frame_schema, "CHECKED", False)
    assert wrong().columns == ["id"]


@pytest.mark.usefixtures("spark")
def test_a_function_may_return_no_frame() -> None:
    """Where a function returns None instead of a frame, there is nothing to compare."""

    @returns(SCHEMA)
    def nothing() -> DataFrame | None:
        return None

    assert nothing() is None
