"""An Iceberg catalog like the engine's, made without an engine."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from infold.lake.iceberg.sql_catalog import sqlite_catalog
from infold.lake.iceberg.tables import IcebergLake

Snapshots = list[dict[str, Any]]
Put = Callable[..., str]

TABLES = """
CREATE TABLE iceberg_tables (
    catalog_name TEXT, table_namespace TEXT, table_name TEXT,
    metadata_location TEXT, previous_metadata_location TEXT, iceberg_type TEXT,
    PRIMARY KEY (catalog_name, table_namespace, table_name)
)
"""


@pytest.fixture
def catalog_db(tmp_path: Path) -> Path:
    """An empty catalog."""
    path = tmp_path / "catalog.db"
    with closing(sqlite3.connect(path)) as connection:
        connection.execute(TABLES)
    return path


@pytest.fixture
def lake(catalog_db: Path) -> IcebergLake:
    """The tables of the namespace ``shop``."""
    return IcebergLake(sqlite_catalog(catalog_db), "shop", catalog_db.parent, alone=True)


@pytest.fixture
def put(catalog_db: Path) -> Put:
    """Puts a table into the catalog: its snapshots, and which of them is current."""

    def put(
        name: str,
        snapshots: Snapshots,
        current: int | None,
        *,
        namespace: str = "shop",
        prefix: str = "",
    ) -> str:
        file = catalog_db.parent / f"{name}-{current}.metadata.json"
        file.write_text(json.dumps({"snapshots": snapshots, "current-snapshot-id": current}))
        location = f"{prefix}{file}"
        with closing(sqlite3.connect(catalog_db)) as connection, connection:
            connection.execute(
                "DELETE FROM iceberg_tables WHERE table_namespace = ? AND table_name = ?",
                (namespace, name),
            )
            connection.execute(
                "INSERT INTO iceberg_tables VALUES ('infold', ?, ?, ?, NULL, 'TABLE')",
                (namespace, name, location),
            )
        return location

    return put


def snapshot(
    id_: int, parent: int | None, operation: str = "append", **summary: str
) -> dict[str, Any]:
    """A snapshot as the metadata file has it; ``step`` and ``run`` are our properties."""
    ours = {f"infold.{name}": value for name, value in summary.items()}
    return {
        "snapshot-id": id_,
        **({} if parent is None else {"parent-snapshot-id": parent}),
        "timestamp-ms": id_ * 10,
        "summary": {"operation": operation, **ours},
    }
