"""Requests to erase in a table of a database, which are read where they are: no file has a key."""

from __future__ import annotations

from collections import Counter
from datetime import UTC, date, datetime
from decimal import Decimal

from infold.core.erasure import AskedKey, RequestColumns, RequestRows
from infold.core.interval import MAX, micros_of
from infold.lake.databases.columns import OpenTable
from infold.lake.databases.extraction import wanted_columns


def read_requests(columns: RequestColumns, table: OpenTable) -> RequestRows:
    """
    The keys in the rows of a table, of each the earliest row, and how many rows have none.

    Raises what :func:`wanted_columns` raises.
    """
    wanted = wanted_columns(columns.source_read, table)
    first: dict[str, tuple[int, str]] = {}
    unusable: Counter[tuple[str, str]] = Counter()
    for batch in table.rows(wanted, None):
        for values in batch:
            row = {one.name: value for one, value in zip(wanted, values, strict=True)}
            key = row[columns.key]
            if not isinstance(key, str | int | Decimal) or key == "":
                why = "null" if key is None else "empty" if key == "" else "unparsable:"
                unusable["", f"{why} {columns.key}"] += 1
                continue
            at = _instant(row[columns.requested_at]) if columns.requested_at else MAX
            id_ = row[columns.id] if columns.id else None
            told = (at, "" if id_ is None else str(id_))
            first[str(key)] = min(told, first.get(str(key), told))
    asked = tuple(
        AskedKey(key, None if at == MAX else at, id_ or None) for key, (at, id_) in first.items()
    )
    return RequestRows(asked, unusable)


def _instant(value: object) -> int:
    """A time in microseconds; one that is none is after all others."""
    if isinstance(value, datetime):
        return micros_of(value if value.tzinfo else value.replace(tzinfo=UTC))
    if isinstance(value, date):
        return micros_of(datetime(value.year, value.month, value.day, tzinfo=UTC))
    return MAX
