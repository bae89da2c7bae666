"""A table that was set back is one that other programs read and write on, as pyiceberg does."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest
from pyiceberg.catalog.sql import SqlCatalog
from pyiceberg.table import Table

from infold.lake.iceberg.sqlite_catalog import sqlite_catalog
from infold.lake.iceberg.tables import IcebergLake
from infold.messages.errors import InfoldError


@pytest.fixture
def catalog(tmp_path: Path) -> SqlCatalog:
    """A catalog of another program's, with an empty table."""
    found = SqlCatalog(
        "infold",
        uri=f"sqlite:///{tmp_path / 'catalog.db'}",
        warehouse=f"file://{tmp_path}",
    )
    found.create_namespace("shop")
    found.create_table("shop.daily", schema=pa.schema([("n", pa.int64())]))
    return found


@pytest.fixture
def lake(tmp_path: Path) -> IcebergLake:
    """The same tables, as infold sees them."""
    return IcebergLake(sqlite_catalog(tmp_path / "catalog.db"), "shop", tmp_path)


def append(catalog: SqlCatalog, *values: int) -> int:
    """Rows more; the snapshot."""
    table = catalog.load_table("shop.daily")
    table.append(pa.table({"n": pa.array(values, pa.int64())}))
    found = catalog.load_table("shop.daily").current_snapshot()
    assert found is not None
    return found.snapshot_id


def rows(table: Table) -> list[int]:
    """The numbers in a table."""
    return sorted(table.scan().to_arrow()["n"].to_pylist())


def test_others_read_and_write_on(catalog: SqlCatalog, lake: IcebergLake) -> None:
    """The rows are those of then; what is appended comes to them, and what was after is gone."""
    first = append(catalog, 1, 2)
    last = append(catalog, 3)

    assert lake.can_set_back("daily", first)
    lake.set_back("daily", first)

    table = catalog.load_table("shop.daily")
    assert rows(table) == [1, 2]
    assert [entry.snapshot_id for entry in table.history()] == [first, last, first]
    again = append(catalog, 4)
    table = catalog.load_table("shop.daily")
    assert rows(table) == [1, 2, 4]
    snapshot = table.snapshot_by_id(again)
    assert snapshot is not None
    assert snapshot.parent_snapshot_id == first
    assert not lake.can_set_back("daily", last)


def test_other_columns(catalog: SqlCatalog, lake: IcebergLake) -> None:
    """A snapshot with other columns is none to go back to: the table would keep those of now. Nor
    is one of no table, and none is made of infold's.
    """
    first = append(catalog, 1)
    with catalog.load_table("shop.daily").update_schema() as change:
        change.rename_column("n", "number")
    catalog.load_table("shop.daily").append(pa.table({"number": pa.array([2], pa.int64())}))

    assert not lake.can_set_back("daily", first)
    with pytest.raises(ValueError, match="no snapshot"):
        lake.set_back("daily", first)
    assert not lake.can_set_back("weekly", 1)
    assert lake.made_tables() == []


def test_a_commit_meanwhile(
    catalog: SqlCatalog, lake: IcebergLake, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What somebody else commits between the look and the change is not overwritten."""
    first = append(catalog, 1)
    append(catalog, 2)
    before = lake.location("daily")
    append(catalog, 3)
    monkeypatch.setattr(IcebergLake, "location", lambda *_: before)

    with pytest.raises(InfoldError, match="foreign-write"):
        lake.set_back("daily", first)

    assert rows(catalog.load_table("shop.daily")) == [1, 2, 3]
