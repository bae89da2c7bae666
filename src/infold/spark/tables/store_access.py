"""What a session needs beside its catalog to read and write objects in the stores of a target."""

from __future__ import annotations

from infold.core.project import Project
from infold.lake.stores.settings import hadoop_settings
from infold.spark.tables.catalog import SparkCatalog
from infold.spark.tables.s3_jars import S3_JARS


def reaching_stores(project: Project, found: SparkCatalog) -> SparkCatalog:
    """The same with the project's stores, where it has any. Raises where a secret is not there."""
    if not project.uses_stores:
        return found
    store = hadoop_settings(project.target.stores, project.buckets, project.root)
    return SparkCatalog(found.settings, {**found.secrets, **store}, (*found.jars, *S3_JARS))
