"""``show --where`` gives the rows that Spark SQL finds in a table that Spark wrote."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from pyspark.sql.functions import partitioning
from tests.lake.iceberg import filters

from infold.lake.iceberg.metadata_file import open_table
from infold.lake.iceberg.sql_catalog import sqlite_catalog
from infold.lake.iceberg.tables import IcebergLake

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark


def test_every_part_of_the_language(spark: SparkSession, warehouse: Path) -> None:
    """Some 900 predicates over NULLs select Spark's rows;
    nested ones also after pruning of files.
    """
    spark.sql("CREATE NAMESPACE IF NOT EXISTS infold.filters")
    drawn = spark.createDataFrame(filters.rows())
    drawn.writeTo("infold.filters.rows").partitionedBy(partitioning.months("day")).create()
    lake = IcebergLake(sqlite_catalog(warehouse / "catalog.db"), "filters", warehouse)
    location = lake.location("rows")
    assert location is not None
    schema, in_files = open_table(location).schema(), list(filters.nested(seed=3, count=40))

    nested = filters.nested(seed=4, count=100)
    every = [*filters.simple(), *filters.AS_SPARK_WRITES, *nested, *in_files]

    expected = by_spark(spark, list(dict.fromkeys(every)))

    assert {where: filters.ids(where, schema) for where in expected} == expected
    for where in in_files:
        found = lake.rows("rows", columns=["id"], where=where)["id"].to_pylist()
        assert sorted(found) == expected[where], where


def by_spark(spark: SparkSession, wheres: Sequence[str]) -> Mapping[str, list[int]]:
    """The ids of the rows for which each predicate is true, many predicates in one query."""
    stored = spark.table("infold.filters.rows").orderBy("id").coalesce(1).cache()
    found: dict[str, list[int]] = {where: [] for where in wheres}
    for at in range(0, len(wheres), 300):
        part = wheres[at : at + 300]
        for id_, *true in stored.selectExpr("id", *part).collect():
            for where, holds in zip(part, true, strict=True):
                if holds:
                    found[where].append(id_)
    stored.unpersist()
    return found
