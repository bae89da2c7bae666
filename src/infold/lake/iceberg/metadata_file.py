"""The metadata file of a table, read directly: no Iceberg library is needed for that."""

from __future__ import annotations

import gzip
import json
import zlib
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from infold.lake.chosen_rows import truth_of
from infold.lake.stores import places
from infold.messages import run_errors

if TYPE_CHECKING:
    import pyarrow as pa
    from pyiceberg.table import StaticTable


def read_metadata(location: str) -> dict[str, Any]:
    """The metadata file of a table. Raises ``metadata_missing`` where it cannot be read."""
    try:
        raw = places.read(location)
        if raw[:2] == b"\x1f\x8b":
            raw = gzip.decompress(raw)
        found = json.loads(raw)
        if not isinstance(found, dict):
            raise TypeError("it is no JSON object")
    except OSError as error:
        why = error.strerror or str(error)
        raise run_errors.metadata_missing(path=places.shown(location), why=why) from error
    except (EOFError, TypeError, ValueError, zlib.error) as error:
        why = f"it is damaged: {error}"
        raise run_errors.metadata_missing(path=places.shown(location), why=why) from error
    return found


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
