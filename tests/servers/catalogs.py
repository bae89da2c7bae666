"""Catalogs of every type, with tables that pyiceberg makes: so it finds what infold finds."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote

import pytest
from pyiceberg.catalog import Catalog as Pyiceberg
from tests.servers.gate import new_name
from tests.servers.hive_metastore import HiveMetastore
from tests.servers.postgresql import Postgresql
from tests.servers.rest_catalog import RestServer

from infold.core.storages import Catalog, CatalogType
from infold.lake.iceberg.hive_catalog import hive_catalog
from infold.lake.iceberg.jdbc_catalog import jdbc_catalog
from infold.lake.iceberg.rest_catalog import rest_catalog
from infold.lake.iceberg.sql_catalog import sqlite_catalog
from infold.lake.iceberg.table_catalog import TableCatalog
from infold.lake.iceberg.tables import IcebergLake

KEY = "catalog of target dev"
PASSWORD = "p@ss:w/ord?&%'\"ä"
TOKEN = "CATALOG_TOKEN"
SECRET = "CATALOG_SECRET"
JDBC_SECRET = "JDBC_SECRET"


@dataclass
class Shelf:
    """A catalog, as infold opens it and as pyiceberg does, and a namespace of it."""

    catalog: TableCatalog
    theirs: Pyiceberg
    namespace: str
    warehouse: Path
    declared: dict[str, str]

    def lake(self, **how: bool) -> IcebergLake:
        """The tables as infold has them."""
        how = {"alone": self.declared["type"] == "sqlite", **how}
        return IcebergLake(self.catalog, self.namespace, self.warehouse, **how)

    def make(self, name: str) -> str:
        """A table of one row; where its metadata is."""
        import pyarrow as pa

        rows = pa.table({"n": [1]})
        at = self.warehouse / self.namespace / name
        made = self.theirs.create_table((self.namespace, name), rows.schema, location=str(at))
        made.append(rows)
        return self.at(name)

    def commit(self, name: str) -> str:
        """One row more; where the metadata is then."""
        import pyarrow as pa

        self.theirs.load_table((self.namespace, name)).append(pa.table({"n": [1]}))
        return self.at(name)

    def at(self, name: str) -> str:
        """Where a table's metadata is, by pyiceberg."""
        return str(self.theirs.load_table((self.namespace, name)).metadata_location)

    def rows(self, name: str) -> int:
        """How many rows a reader finds, by pyiceberg."""
        return int(self.theirs.load_table((self.namespace, name)).scan().to_arrow().num_rows)

    def add_column(self, name: str, column: str) -> None:
        """A column more in a table."""
        from pyiceberg.types import LongType

        with self.theirs.load_table((self.namespace, name)).update_schema() as change:
            change.add_column(column, LongType())

    def drop_column(self, name: str, column: str) -> None:
        """A column less in a table."""
        with self.theirs.load_table((self.namespace, name)).update_schema() as change:
            change.delete_column(column)

    def names(self) -> set[str]:
        """The tables of the namespace, by pyiceberg."""
        return {name for _, name in self.theirs.list_tables((self.namespace,))}


def new_database(postgresql: Postgresql) -> str:
    """A database for a catalog, of a role of its own; its name is both."""
    name = f"catalog_{postgresql.schema()}"
    secret = PASSWORD.replace("'", "''")
    postgresql.run(
        f"CREATE ROLE {name} LOGIN PASSWORD '{secret}'",
        f"CREATE DATABASE {name} OWNER {name} TEMPLATE template0 ENCODING 'UTF8'",
    )
    return name


def jdbc_uri(postgresql: Postgresql, name: str) -> str:
    """What infold.yml has to say of such a database."""
    return f"postgresql://{name}:${{env:{JDBC_SECRET}}}@127.0.0.1:{postgresql.port}/{name}"


@contextmanager
def opened(kind: str, request: pytest.FixtureRequest, folder: Path) -> Iterator[Shelf]:
    """A catalog of a type, on its server."""
    with pytest.MonkeyPatch.context() as patch:
        if kind == "sqlite":
            yield in_sqlite(folder)
        elif kind == "jdbc":
            patch.setenv(JDBC_SECRET, PASSWORD)
            yield _jdbc(request.getfixturevalue("postgresql"), folder)
        elif kind == "hive":
            yield _hive(request.getfixturevalue("hive_metastore"), folder)
        else:
            server = request.getfixturevalue("rest_server")
            patch.setenv(TOKEN, server.token)
            patch.setenv(SECRET, server.secret)
            yield _rest(server, folder)


def in_sqlite(folder: Path, file: Path | None = None) -> Shelf:
    """A catalog in a file of its warehouse, or in another one."""
    from pyiceberg.catalog.sql import SqlCatalog

    file = file or folder / "catalog.db"
    theirs = SqlCatalog("infold", uri=f"sqlite:///{file}", warehouse=str(folder))
    theirs.create_namespace("shop")
    return Shelf(sqlite_catalog(file), theirs, "shop", folder, {"type": "sqlite"})


def _jdbc(postgresql: Postgresql, folder: Path) -> Shelf:
    from pyiceberg.catalog.sql import SqlCatalog

    name = new_database(postgresql)
    url = f"postgresql+psycopg://{name}:{quote(PASSWORD, safe='')}@127.0.0.1:{postgresql.port}"
    theirs = SqlCatalog("infold", uri=f"{url}/{name}", warehouse=str(folder))
    theirs.create_namespace("shop")
    uri = jdbc_uri(postgresql, name)
    declared = {"type": "jdbc", "uri": uri}
    return Shelf(jdbc_catalog(uri, Path("/"), KEY), theirs, "shop", folder, declared)


def _hive(server: HiveMetastore, folder: Path) -> Shelf:
    from pyiceberg.catalog.hive import HiveCatalog

    namespace = new_name("shop_")
    theirs = HiveCatalog("infold", uri=server.url, **{"hive.hive2-compatible": "true"})
    theirs.create_namespace(namespace, {"location": str(folder / namespace)})
    catalog = hive_catalog(Catalog(CatalogType.HIVE, uri=server.url), folder, KEY)
    declared = {"type": "hive", "uri": server.url, "namespace": namespace}
    return Shelf(catalog, theirs, namespace, folder, declared)


def _rest(server: RestServer, folder: Path) -> Shelf:
    from pyiceberg.catalog.rest import RestCatalog

    namespace = new_name("space_")
    theirs = RestCatalog("infold", uri=server.url, token=server.token)
    theirs.create_namespace(namespace)
    text = f"${{env:{TOKEN}}}"
    catalog = rest_catalog(
        Catalog(CatalogType.REST, uri=server.url, namespace=namespace, token=text), folder, KEY
    )
    declared = {"type": "rest", "uri": server.url, "token": text, "namespace": namespace}
    return Shelf(catalog, theirs, namespace, folder, declared)
