"""A table that was set back is one that other programs read and write on, as pyiceberg does."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest
from pyiceberg.table import Table
from tests.lake.iceberg.conftest import Warehouse

from infold.lake.iceberg.tables import IcebergLake
from infold.messages.errors import InfoldError


@pytest.fixture
def shop(tmp_path: Path) -> Warehouse:
    """Another program's, with an empty table; its paths are URLs."""
    found = Warehouse(tmp_path, "file://")
    found.write("daily", schema=pa.schema([("n", pa.int64())]))
    return found


def append(shop: Warehouse, *values: int) -> int:
    """Rows more; the snapshot."""
    shop.catalog.load_table("shop.daily").append(pa.table({"n": pa.array(values, pa.int64())}))
    return shop.snapshots("daily")[-1]


def rows(table: Table) -> list[int]:
    """The numbers in a table."""
    return sorted(table.scan().to_arrow()["n"].to_pylist())


def test_others_read_and_write_on(shop: Warehouse) -> None:
    """The rows are those of then; what is appended comes to them, and what was after is gone."""
    first = append(shop, 1, 2)
    last = append(shop, 3)

    assert shop.lake.can_set_back("daily", first)
    shop.lake.set_back("daily", first)

    table = shop.catalog.load_table("shop.daily")
    assert rows(table) == [1, 2]
    assert [entry.snapshot_id for entry in table.history()] == [first, last, first]
    again = append(shop, 4)
    table = shop.catalog.load_table("shop.daily")
    assert rows(table) == [1, 2, 4]
    snapshot = table.snapshot_by_id(again)
    assert snapshot is not None
    assert snapshot.parent_snapshot_id == first
    assert not shop.lake.can_set_back("daily", last)


def test_other_columns(shop: Warehouse) -> None:
    """A snapshot with other columns is none to go back to: the table would keep those of now. Nor
    is one of no table, and none is made of infold's.
    """
    first = append(shop, 1)
    with shop.catalog.load_table("shop.daily").update_schema() as change:
        change.rename_column("n", "number")
    shop.catalog.load_table("shop.daily").append(pa.table({"number": pa.array([2], pa.int64())}))

    assert not shop.lake.can_set_back("daily", first)
    with pytest.raises(ValueError, match="no snapshot"):
        shop.lake.set_back("daily", first)
    assert not shop.lake.can_set_back("weekly", 1)
    assert shop.lake.made_tables() == []


def test_a_commit_meanwhile(shop: Warehouse, monkeypatch: pytest.MonkeyPatch) -> None:
    """What somebody else commits between the look and the change is not overwritten."""
    first = append(shop, 1)
    append(shop, 2)
    before = shop.lake.location("daily")
    append(shop, 3)
    monkeypatch.setattr(IcebergLake, "location", lambda *_: before)

    with pytest.raises(InfoldError, match="foreign-write"):
        shop.lake.set_back("daily", first)

    assert rows(shop.catalog.load_table("shop.daily")) == [1, 2, 3]
