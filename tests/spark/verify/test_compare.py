"""The rows that verify shows of a difference."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from infold.render.json_shapes import pair_rows
from infold.spark.verify.compare import compare

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark


@pytest.mark.parametrize("key", [("id",), ()])
def test_each_row_beside_its_rebuild(spark: SparkSession, key: tuple[str, ...]) -> None:
    """Of many different rows verify shows some, each beside
    its rebuild, with the one value that differs.
    """
    same = "id, concat('user ', id % 7) AS user, TIMESTAMP '2024-03-09 12:00:00+00:00' AS at"
    stored = spark.sql(f"SELECT {same}, id AS n FROM range(50)")
    rebuilt = spark.sql(f"SELECT {same}, id + 1 AS n FROM range(50)")

    found = compare(stored, rebuilt, None, None, key)

    pairs = pair_rows(found.sample, key)
    assert [list(pair.differing) for pair in pairs] == [["n"]] * 5
    assert all(
        pair.stored and pair.stored["at"].isoformat()[10:] == "T12:00:00+00:00" for pair in pairs
    )


def test_columns_that_are_left_out(spark: SparkSession) -> None:
    """They are not compared, though they count in what is known of stored rows; the others are."""
    stored = spark.sql("SELECT id, rand() AS r FROM range(50)").cache()
    rebuilt = spark.sql("SELECT id, rand() AS r FROM range(50)")
    other = spark.sql("SELECT id + 1 AS id, rand() AS r FROM range(50)")
    alone = compare(stored, stored, None, None)

    for left_out in (("R",), ("*",)):
        found = compare(stored, rebuilt, None, None, ("id",), left_out=left_out)
        assert (found.rows, found.content, found.differing) == (50, alone.content, ())
    assert compare(stored, other, None, None, left_out=("r",)).differing
    assert not compare(stored, other, None, None, left_out=("*",)).differing
