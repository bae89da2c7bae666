"""
The catalog of a target as Spark has it, by the same declaration as ``lake.iceberg.open_catalog``.

Secrets are apart from settings: those go with the start of a JVM, where every user of the machine
sees them. Secrets are set in the session, which nobody else reads.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from infold.core.project import Project
from infold.core.storages import CatalogType
from infold.lake.iceberg.sql_catalog import NAME
from infold.lake.stores.places import absolute
from infold.messages import faults
from infold.spark.tables.catalog import Jar, SparkCatalog
from infold.spark.tables.store_access import reaching_stores
from infold.system import failures

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


POSTGRESQL = Jar(
    "org.postgresql",
    "postgresql",
    "42.7.14",
    "73914527305a40cce504b0d3d90b23caf565136912d607ae8ae7c5895512332c",
)
"""PostgreSQL's driver for Java: only where a target's catalog is in such a database."""

PREFIX = f"spark.sql.catalog.{NAME}"


def spark_catalog(project: Project) -> SparkCatalog:
    """The catalog of a project's target, and its stores. Raises where a secret is not there."""
    return reaching_stores(project, _catalog(project))


def _catalog(project: Project) -> SparkCatalog:
    type_ = project.target.catalog.type
    if type_ is CatalogType.JDBC:
        return _jdbc(project)
    if type_ is CatalogType.REST:
        return _rest(project)
    if type_ is CatalogType.HIVE:
        return _hive(project)
    return SparkCatalog(catalog_settings(project.warehouse_location, project.catalog_db))


def _jdbc(project: Project) -> SparkCatalog:
    from infold.lake.iceberg.jdbc_catalog import jdbc_settings

    key = f"catalog of target {project.target.name}"
    uri, properties = jdbc_settings(project.target.catalog.uri, project.root, key)
    own = {f"{PREFIX}.jdbc.{name}": value for name, value in properties.items()}
    return SparkCatalog(
        {
            **_common(),
            f"{PREFIX}.catalog-impl": "org.apache.iceberg.jdbc.JdbcCatalog",
            f"{PREFIX}.jdbc.schema-version": "V1",
            f"{PREFIX}.warehouse": project.warehouse_location,
        },
        {f"{PREFIX}.uri": uri, **own},
        (POSTGRESQL,),
    )


def _rest(project: Project) -> SparkCatalog:
    from infold.lake.iceberg.rest_catalog import sent_secrets, server_url

    declared, root = project.target.catalog, project.root
    key = f"catalog of target {project.target.name}"
    named = {"warehouse": declared.warehouse, "scope": declared.scope}
    urls = {"uri": declared.uri, "oauth2-server-uri": declared.oauth2_server_uri}
    return SparkCatalog(
        {
            **_common(),
            f"{PREFIX}.type": "rest",
            # By itself it has a class for each kind of store, with credentials of its own.
            f"{PREFIX}.io-impl": "org.apache.iceberg.hadoop.HadoopFileIO",
            f"{PREFIX}.rest-metrics-reporting-enabled": "false",
            f"{PREFIX}.rest.client.connection-timeout-ms": "10000",
            f"{PREFIX}.rest.client.socket-timeout-ms": "120000",
            **{f"{PREFIX}.{name}": text for name, text in named.items() if text},
        },
        {
            **{
                f"{PREFIX}.{name}": server_url(at, root, key, query=name != "uri")
                for name, at in urls.items()
                if at
            },
            **{f"{PREFIX}.{name}": at for name, at in sent_secrets(declared, root, key).items()},
        },
    )


def _hive(project: Project) -> SparkCatalog:
    """By Spark's own client of a metastore, and Iceberg's catalog on it; no jar beside those."""
    from infold.lake.hive_client import hive_servers

    key = f"catalog of target {project.target.name}"
    servers = hive_servers(project.target.catalog.uri, project.root, key)
    return SparkCatalog(
        {
            **_common(),
            f"{PREFIX}.type": "hive",
            f"{PREFIX}.warehouse": project.warehouse_location,
            f"{PREFIX}.hadoop.hive.metastore.client.socket.timeout": "120s",
        },
        {f"{PREFIX}.uri": ",".join(servers)},
    )


def _common() -> Mapping[str, str]:
    return {
        PREFIX: "org.apache.iceberg.spark.SparkCatalog",
        # A cached table would hide another process's commit for half a minute.
        f"{PREFIX}.cache-enabled": "false",
        # A manifest never changes, and each step of a run reads those of the steps before: in a
        # store an eighth of all requests.
        f"{PREFIX}.io.manifest.cache-enabled": "true",
        f"{PREFIX}.io.manifest.cache.max-total-bytes": str(32 * 1024 * 1024),
        "spark.sql.defaultCatalog": NAME,
    }


def catalog_settings(warehouse: Path | str, catalog_db: Path) -> Mapping[str, str]:
    """The Iceberg catalog on SQLite, which pyiceberg reads without a JVM."""
    return {
        **_common(),
        f"{PREFIX}.catalog-impl": "org.apache.iceberg.jdbc.JdbcCatalog",
        # Two runs may write at once; SQLite lets one wait for the other.
        f"{PREFIX}.uri": f"jdbc:sqlite:{catalog_db.resolve()}?busy_timeout=30000",
        f"{PREFIX}.jdbc.schema-version": "V1",
        f"{PREFIX}.warehouse": absolute(str(warehouse)),
    }


def refuse_without_catalog(session: SparkSession) -> None:
    """Refuse a session that infold did not start if it cannot open infold's catalog."""
    from py4j.protocol import Py4JError
    from pyspark.errors import PySparkException

    try:
        session.sql(f"USE {NAME}")
    except (PySparkException, Py4JError) as error:
        if known := failures.known_failure(error):
            raise known from error
        # For a call into Java, the first line is the call and the cause is below it.
        lines = [line for line in str(error).splitlines() if line.strip()]
        caused = [line.removeprefix(": ") for line in lines if line.startswith(": ")]
        raise faults.spark_without_iceberg(why=next(iter((*caused, *lines)), "")) from error
