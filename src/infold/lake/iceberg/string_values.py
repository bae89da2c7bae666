"""The distinct values of a column of strings, by the data files of an Iceberg table."""

from __future__ import annotations

from typing import TYPE_CHECKING

from infold.lake.dictionaries import distinct_values

if TYPE_CHECKING:
    import pyarrow as pa
    from pyiceberg.table import StaticTable


def column_values(stored: StaticTable, column: str, snapshot: int, limit: int) -> pa.Array | None:
    """
    The values of a column of strings at a snapshot, each once, NULL left out.

    Values of rows that were deleted may be among them: data files are read, not delete files. When
    there are more than ``limit``, some that are more than that. None: there is no such snapshot, no
    such column of strings, or a file was written when it had another name.
    """
    from pyiceberg.types import StringType

    if stored.snapshot_by_id(snapshot) is None:
        return None
    then = stored.scan(snapshot_id=snapshot)
    field = {field.name.lower(): field for field in then.projection().fields}.get(column.lower())
    if field is None or not isinstance(field.field_type, StringType):
        return None
    files = (
        stored.io.new_input(task.file.file_path).open()
        for task in then.select(field.name).plan_files()
    )
    return distinct_values(files, field.name, limit)
