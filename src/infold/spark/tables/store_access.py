"""What a session needs beside its catalog to read and write objects in the stores of a target."""

from __future__ import annotations

from infold.core.object_store import StoreKind, kind_of
from infold.core.project import Project
from infold.lake.stores.hdfs import USER_SETTING
from infold.lake.stores.settings import hadoop_settings, hadoop_user
from infold.spark.tables.azure_jars import AZURE_JARS
from infold.spark.tables.catalog import SparkCatalog
from infold.spark.tables.gcs_jars import GCS_JARS
from infold.spark.tables.s3_jars import S3_JARS

JARS = {StoreKind.S3: S3_JARS, StoreKind.GCS: GCS_JARS, StoreKind.AZURE: AZURE_JARS}
"""The connector of each store, and what it uses; Spark has that of HDFS."""


def reaching_stores(project: Project, found: SparkCatalog) -> SparkCatalog:
    """The same with the project's stores, where it has any. Raises where a secret is not there."""
    if not project.uses_stores:
        return found
    store = hadoop_settings(project.target.stores, project.buckets, project.root)
    kinds = sorted({kind_of(bucket) for bucket in project.buckets})
    jars = (jar for kind in kinds for jar in JARS.get(kind, ()))
    user = hadoop_user(project.target.stores, project.buckets, project.root)
    settings = {**found.settings, USER_SETTING: user} if user else found.settings
    return SparkCatalog(settings, {**found.secrets, **store}, (*found.jars, *jars))
