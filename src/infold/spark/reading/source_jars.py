"""The jars by which Spark reads formats of sources that it does not know by itself."""

from __future__ import annotations

from infold.core.formats import Format
from infold.core.project import Project
from infold.spark.tables.catalog import Jar

AVRO = Jar(
    "org.apache.spark",
    "spark-avro_2.13",
    "4.1.1",
    "6a19d90bc3b6e88d8db0fa36a19273aa10fea2dbd7a62bb60e4cedd73051b32d",
)
"""Spark's own reader of Avro, 0.1 MB. It fits all of Spark 4.1."""


def source_jars(project: Project) -> tuple[Jar, ...]:
    """Those of the formats that a project has sources of."""
    return (AVRO,) if any(one.format is Format.AVRO for one in project.sources.values()) else ()
