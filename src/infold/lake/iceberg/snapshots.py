"""
Stored tables as they were: a few rows of one kept snapshot, found by the values of columns.

``ports.SnapshotReader`` over Iceberg. Reads are narrow: the metadata is read once, files are pruned
by times, and technical columns are read only if they are named.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from infold.core.interval import DAY
from infold.core.snapshot_reader import TimeSpan
from infold.lake.iceberg.static_table import open_table
from infold.lake.iceberg.tables import IcebergLake

if TYPE_CHECKING:
    import pyarrow as pa
    from pyiceberg.expressions import BooleanExpression
    from pyiceberg.schema import Schema
    from pyiceberg.table import StaticTable
    from pyiceberg.types import IcebergType


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
        """See ``ports.SnapshotReader``."""
        stored = self._open(table)
        if stored is None or (snapshot is not None and not stored.snapshot_by_id(snapshot)):
            return None
        from infold.lake.iceberg.scan import scan_rows

        schema = _schema(stored, snapshot)
        known = {entry.name.lower(): entry.name for entry in schema.fields}
        needed = {name for match in any_of for name in match}
        needed |= {near.first, near.last} if near else set()
        if not {name.lower() for name in needed} <= known.keys():
            return None
        every = [name for name in known.values() if not name.startswith("_")]
        wanted = [name for name in (every if columns is None else columns) if name.lower() in known]
        own = [known[name.lower()] for name in wanted]
        rows = equal_to(schema, any_of, near, where)
        try:
            found = scan_rows(stored, rows, own, snapshot=snapshot)
        except FileNotFoundError:  # expired by a run since the metadata was read
            return None
        return found.select(own).rename_columns(wanted)

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


def equal_to(
    schema: Schema, any_of: Sequence[Mapping[str, Any]], near: TimeSpan | None, where: str | None
) -> BooleanExpression:
    """What ``rows_equal_to`` asks of a row of a table with these columns."""
    from pyiceberg.expressions import AlwaysFalse, AlwaysTrue, And, Or

    from infold.lake.iceberg.filter import predicate

    alternatives: BooleanExpression = AlwaysFalse() if any_of else AlwaysTrue()
    for match in any_of:
        alternatives = Or(alternatives, _equal_columns(schema, match))
    parts = And(alternatives, _overlaps(schema, near)) if near else alternatives
    return parts if where is None else And(parts, predicate(where, schema))


def _equal_columns(schema: Schema, match: Mapping[str, Any]) -> BooleanExpression:
    """Every column has its value; none has, where a value is none of the column's type."""
    from pyiceberg.expressions import AlwaysFalse, AlwaysTrue, And
    from pyiceberg.expressions.literals import literal

    found: BooleanExpression = AlwaysTrue()
    for column, value in match.items():
        own = schema.find_field(column, case_sensitive=False)
        name = own.name
        if value is None:
            found = And(found, _column_predicate("IsNull", name))
            continue
        try:
            given = literal(value).to(own.field_type)
        except (ValueError, TypeError):
            return AlwaysFalse()
        found = And(found, _column_predicate("EqualTo", name, given))
    return found


def _overlaps(schema: Schema, near: TimeSpan) -> BooleanExpression:
    from pyiceberg.expressions import And

    first, last = (
        schema.find_field(name, case_sensitive=False) for name in (near.first, near.last)
    )
    return And(
        _column_predicate("LessThanOrEqual", first.name, _instant(first.field_type, near.end)),
        _column_predicate("GreaterThanOrEqual", last.name, _instant(last.field_type, near.start)),
    )


def _column_predicate(how: str, *words: Any) -> BooleanExpression:
    """A predicate over a column; pyiceberg's own types do not know its positional form."""
    from pyiceberg import expressions

    found: BooleanExpression = getattr(expressions, how)(*words)
    return found


def _instant(kind: IcebergType, at: int) -> Any:
    """An instant as a literal of a column: microseconds, or days in a column of dates."""
    from pyiceberg.expressions.literals import literal
    from pyiceberg.types import DateType

    return literal(at // DAY if isinstance(kind, DateType) else at).to(kind)
