"""A table as one metadata file describes it; pyiceberg is imported when its rows are read."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from infold.lake.chosen_rows import truth_of
from infold.lake.iceberg.metadata_file import read_metadata
from infold.lake.stores import places
from infold.messages import run_errors

if TYPE_CHECKING:
    import pyarrow as pa
    from pyiceberg.table import StaticTable


def open_table(location: str) -> StaticTable:
    """A table as one metadata file describes it. Raises ``metadata_missing``."""
    from pyiceberg.exceptions import ValidationError
    from pyiceberg.table import StaticTable

    try:
        return StaticTable.from_metadata(location, dict(places.properties(location)))
    except OSError as error:
        why = error.strerror or str(error).partition("\n")[0]
    except ValidationError as error:
        why = f"it is damaged: {str(error).partition(': ')[0].splitlines()[-1].strip()}"
        if "view-uuid" in read_metadata(location):
            why = "it is that of a view, which has no rows of its own"
    raise run_errors.metadata_missing(path=places.shown(location), why=why)


def scan_where(
    stored: StaticTable, columns: Sequence[str], where: str | None, limit: int | None
) -> pa.Table:
    """
    The rows of a table that a comparison of columns with values leaves; all without one.

    Raises ``command_errors.bad_filter``.
    """
    from pyiceberg.expressions import AlwaysTrue

    from infold.lake.iceberg.scan import scan_rows

    if where is None:
        return scan_rows(stored, AlwaysTrue(), columns, limit=limit)
    rows = truth_of(where, stored.schema())
    return scan_rows(stored, rows, columns, limit=limit)
