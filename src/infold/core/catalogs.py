"""The catalog of a target: which table is where, and how whoever reads tables finds it."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class CatalogType(StrEnum):
    """What keeps the names of tables: the values of ``catalog.type`` in infold.yml."""

    SQLITE = "sqlite"
    """A file: in the warehouse, unless that is in an object store."""
    JDBC = "jdbc"
    """A database on a PostgreSQL server."""
    REST = "rest"
    """A server of Iceberg's REST protocol."""
    HIVE = "hive"
    """A Hive metastore."""


SQLITE_FILE = "sqlite:///"
"""What the URI of a SQLite file begins with; a relative path is the project's."""

CATALOG_FILE = "catalog.db"
"""The catalog of a target that names none, in its warehouse."""

NOT_PERMITTED = "catalog-not-permitted"
"""The slug of the error that may be one table's, and may be that of all."""

PLANNED_CATALOGS = ("glue",)
"""Catalogs that infold knows by name and does not have yet."""


@dataclass(frozen=True, slots=True)
class Catalog:
    """
    Where a target's tables are found by their names.

    The texts are those of infold.yml: with references to secrets, and no secret.
    """

    type: CatalogType = CatalogType.SQLITE
    uri: str = ""
    namespace: str = ""
    """Where the tables are in the catalog; empty for a namespace named after the project."""
    warehouse: str = ""
    """The name by which a REST server knows one of its catalogs."""
    token: str = ""
    credential: str = ""
    scope: str = ""
    oauth2_server_uri: str = ""
    """Where a credential is exchanged for a token; empty for the server itself."""

    @property
    def is_in_warehouse(self) -> bool:
        """Whether it is the file that a warehouse in a folder has."""
        return self.type is CatalogType.SQLITE and not self.uri

    @property
    def at_once(self) -> bool:
        """Whether several tables can change at one instant."""
        return self.type not in (CatalogType.REST, CatalogType.HIVE)
