"""Which rows a name means, to be shown: those of a table, of a view, or what was set aside."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from infold import errors
from infold.manifest import TABLES
from infold.model import SET_ASIDE, Kind, table_name
from infold.ports import Lake
from infold.project import Project

if TYPE_CHECKING:
    import pyarrow as pa


def rows(
    project: Project,
    lake: Lake,
    table: str,
    columns: Sequence[str] | None,
    where: str | None,
    limit: int | None,
    evaluate: Callable[[Project, str], pa.Table],
) -> pa.Table:
    """Rows of a stored table; of a view what ``evaluate`` makes of it."""
    if table in {"set_aside", SET_ASIDE}:
        stored = SET_ASIDE
    elif table not in project:
        known = [*(node.name for node in project), "set_aside", *TABLES]
        raise errors.unknown_table(table, known)
    elif project[table].model.kind is Kind.VIEW:
        if where is not None:
            raise errors.bad_filter(where, f"{table} is a view, and of views all rows are shown")
        return some(evaluate(project, table), columns, limit)
    else:
        stored = table_name(table)
    try:
        return lake.rows(stored, columns=columns, where=where, limit=limit)
    except errors.InfoldError as error:
        if error.slug != "not-built":
            raise
        if stored != SET_ASIDE:
            raise errors.not_built(table) from None
        return some(_none_aside(), columns)


def _none_aside() -> pa.Table:
    """The table of rows set aside while there is none: it is made with its first row."""
    import pyarrow as pa

    types = {name: pa.string() for name in ("model", "source", "file", "reason", "raw")}
    types |= {"file_id": pa.int64(), "event_time": pa.timestamp("us", "UTC")}
    names = ("model", "source", "file", "file_id", "reason", "raw", "event_time")
    return pa.schema([(name, types[name]) for name in names]).empty_table()


def some(found: pa.Table, columns: Sequence[str] | None, limit: int | None = None) -> pa.Table:
    """These columns of some rows, in this order; at most so many rows."""
    if columns is not None:
        unknown = [name for name in columns if name not in found.column_names]
        if unknown:
            raise errors.unknown_columns(unknown, found.column_names)
        found = found.select(list(columns))
    return found if limit is None else found.slice(0, limit)
