"""
Stored tables as they were: a few rows of one kept snapshot, found by the values of columns.

``ports.SnapshotReader`` over Iceberg. Reads are narrow: the metadata is read once, files are pruned
by times, and technical columns are read only if they are named.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from infold.core.ports import TimeSpan
from infold.lake.chosen_rows import columns_beside, truth_of_equality
from infold.lake.iceberg.metadata_file import open_table
from infold.lake.iceberg.tables import IcebergLake

if TYPE_CHECKING:
    import pyarrow as pa
    from pyiceberg.schema import Schema
    from pyiceberg.table import StaticTable


@dataclass(frozen=True, slots=True)
class IcebergSnapshotReader:
    """The snapshots that tables still have; each table's metadata is read once."""

    lake: IcebergLake
    _opened: dict[str, StaticTable | None] = field(default_factory=dict)

    def kept_snapshots(self, table: str) -> frozenset[int]:
        """The snapshots that a table still has."""
        stored = self._open(table)
        if stored is None:
            return frozenset()
        return frozenset(snapshot.snapshot_id for snapshot in stored.metadata.snapshots)

    def rows_equal_to(
        self,
        table: str,
        any_of: Sequence[Mapping[str, Any]],
        *,
        columns: Sequence[str] | None = None,
        near: TimeSpan | None = None,
        where: str | None = None,
        snapshot: int | None = None,
    ) -> pa.Table | None:
        """See ``ports.SnapshotReader``; None also where a run expires the snapshot meanwhile."""
        stored = self._open(table)
        if stored is None or (snapshot is not None and not stored.snapshot_by_id(snapshot)):
            return None
        from infold.lake.iceberg.scan import scan_rows

        schema = _schema(stored, snapshot)
        chosen = columns_beside(schema, any_of, near, columns)
        if chosen is None:
            return None
        own, names = chosen
        rows = truth_of_equality(schema, any_of, near, where)
        try:
            table_rows = scan_rows(stored, rows, own, snapshot=snapshot)
        except FileNotFoundError:  # expired by a run since the metadata was read
            return None
        return table_rows.select(own).rename_columns(names)

    def _open(self, table: str) -> StaticTable | None:
        if table not in self._opened:
            location = self.lake.location(table)
            self._opened[table] = None if location is None else open_table(location)
        return self._opened[table]


def _schema(stored: StaticTable, snapshot: int | None) -> Schema:
    """The columns that a table had at a snapshot."""
    entry = stored.current_snapshot() if snapshot is None else stored.snapshot_by_id(snapshot)
    if entry is None or entry.schema_id is None:
        return stored.schema()
    return stored.schemas()[entry.schema_id]
