"""The files of a Delta table at a version: which it needs, what is gone, going back, tidying up."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote

from infold.core import write_points
from infold.lake.delta.commit import SET_BACK
from infold.lake.delta.rows import named_errors, open_table
from infold.lake.plain_types import distinct_values
from infold.lake.stores import places
from infold.messages.delta_errors import UNREADABLE
from infold.messages.errors import InfoldError

if TYPE_CHECKING:
    import pyarrow as pa
    from deltalake import DeltaTable


def data_files(stored: DeltaTable) -> tuple[str, ...]:
    """The files with the rows of a table."""
    return tuple(unquote(uri.removeprefix("file://")) for uri in stored.file_uris())


def missing_files(folder: str, version: int | None = None) -> Sequence[str]:
    """The files that a version needs and that are not there."""
    try:
        stored = open_table(folder, version)
        names = data_files(stored)
    except InfoldError as error:
        if error.slug != UNREADABLE:
            raise
        return (folder,)
    return places.missing(names) or _missing_deletes(stored, folder)


def _missing_deletes(stored: DeltaTable, folder: str) -> tuple[str, ...]:
    """A file of deletion vectors that is not there: they are read, as nothing names them."""
    from deltalake.exceptions import DeltaError

    try:
        for _ in stored.deletion_vectors():
            pass
    except (DeltaError, OSError, RuntimeError, ValueError) as error:
        named = [word.strip("'\"`:,;()") for word in str(error).split() if ".bin" in word]
        return (next(iter(named), folder),)
    return ()


def string_values(folder: str, version: int, column: str, limit: int) -> pa.Array | None:
    """See ``ports.Lake.string_values``; None also for a column of another type."""
    stored = open_table(folder, version)
    own = {field.name.lower(): field for field in stored.schema().fields}.get(column.lower())
    if own is None or str(getattr(own.type, "type", "")) != "string":
        return None
    files = (_opened(file) for file in data_files(stored))
    return distinct_values(files, own.name, limit)


def _opened(file: str) -> Path | AbstractContextManager[Any]:
    """A file to read; of one in a store, all of it is read."""
    return BytesIO(places.read(file)) if places.in_store(file) else Path(file)


def restore(folder: str, table: str, *, expected: int, version: int) -> bool:
    """Let a table have the rows of a version again; False where somebody committed meanwhile."""
    from deltalake import CommitProperties
    from deltalake.exceptions import CommitFailedError

    properties = CommitProperties(custom_metadata={SET_BACK: str(version)})
    stored = open_table(folder)
    if stored.version() != expected:
        return False
    write_points.point(f"set back {table}: before")
    try:
        with named_errors(folder):
            stored.restore(version, commit_properties=properties)
    except InfoldError as error:
        if isinstance(error.__cause__, CommitFailedError):
            return False
        raise
    write_points.point(f"set back {table}: after")
    return True
