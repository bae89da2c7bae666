"""``ports.SnapshotReader`` over Delta: a few rows of one kept version, by the values of columns."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from infold.core.ports import TimeSpan
from infold.lake.chosen_rows import RowFilter, columns_beside, truth_of_equality
from infold.lake.delta.rows import columns_of, read_rows
from infold.lake.delta.tables import DeltaLake
from infold.messages.delta_errors import UNREADABLE
from infold.messages.errors import InfoldError

if TYPE_CHECKING:
    import pyarrow as pa


@dataclass(frozen=True, slots=True)
class DeltaSnapshotReader:
    """The versions that tables still have."""

    lake: DeltaLake

    def kept_snapshots(self, table: str) -> frozenset[int]:
        """The snapshots that a table still has."""
        return frozenset(self.lake.history(table).main)

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
        """See ``ports.SnapshotReader``; None also where a run expires the version meanwhile."""
        log = self.lake.log(table)
        if log is None or (snapshot is not None and snapshot not in self.kept_snapshots(table)):
            return None
        version = log.newest if snapshot is None else log.version(snapshot)
        schema = columns_of(log.folder, version)
        chosen = columns_beside(schema, any_of, near, columns)
        if chosen is None:
            return None
        own, names = chosen
        rows = RowFilter(truth_of_equality(schema, any_of, near, where), schema)
        try:
            table_rows = read_rows(log.folder, own, version=version, rows=rows)
        except InfoldError as error:  # expired by a run since its log was read
            if error.slug != UNREADABLE:
                raise
            return None
        return table_rows.rename_columns(names)
