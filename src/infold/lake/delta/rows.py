"""
Rows of a Delta table at a version, read by deltalake into Arrow, without a JVM.

Deletion vectors are heeded by deltalake's own scan, and by none of its other ways to read. Rows are
chosen by the predicates of ``lake.filter``, so ``--where`` means the same in every storage.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from infold.core.object_store import kind_of, split
from infold.lake.chosen_rows import plain_schema
from infold.lake.stores import places
from infold.messages import delta_errors

if TYPE_CHECKING:
    import pyarrow as pa
    from deltalake import DeltaTable
    from pyiceberg.schema import Schema

    from infold.lake.chosen_rows import RowFilter


def need_reader(at: str) -> None:
    """Raise ``delta_errors.extra_missing`` where what reads tables is not installed."""
    try:
        import deltalake  # noqa: F401 (only whether it is there)
    except ImportError:
        raise delta_errors.extra_missing(at=at) from None


def open_table(folder: str, version: int | None = None) -> DeltaTable:
    """A table at a version. Raises ``delta_errors.extra_missing`` and ``unreadable``."""
    need_reader(folder)
    from deltalake import DeltaTable

    with named_errors(folder):
        return DeltaTable(_uri(folder), version, storage_options=dict(places.delta_options(folder)))


def _uri(folder: str) -> str:
    """A folder as deltalake takes it."""
    if not places.in_store(folder):
        return Path(folder).absolute().as_uri()
    bucket, key = split(folder)
    return f"{kind_of(folder)}://{bucket}/{quote(key)}"


@contextmanager
def named_errors(folder: str) -> Iterator[None]:
    """
    What deltalake raises about a table becomes ``delta_errors.unreadable``.

    What a store refused has the same names as elsewhere.
    """
    from deltalake.exceptions import DeltaError

    try:
        yield
    except (DeltaError, OSError, RuntimeError, ValueError) as error:
        raise _unreadable(folder, error) from error
    except BaseException as error:
        if type(error).__name__ != _PANIC:
            raise
        raise _unreadable(folder, error) from error


_PANIC = "PanicException"
"""What Rust raises for a path that its library does not take; it is no ``Exception``."""


def metadata_of(folder: str, version: int) -> Mapping[str, Any]:
    """The metadata at a version, by its checkpoint, as the protocol names what is in it."""
    stored = open_table(folder, version)
    metadata = stored.metadata()
    return {
        "id": metadata.id,
        "schemaString": stored.schema().to_json(),
        "partitionColumns": metadata.partition_columns,
    }


def columns_of(folder: str, version: int | None = None) -> Schema:
    """The columns of a table as the predicates of ``lake.filter`` take them."""
    import pyarrow as pa
    from pyiceberg.io.pyarrow import (
        _ConvertToIcebergWithoutIDs,
        visit_pyarrow,
    )
    from pyiceberg.schema import Schema, assign_fresh_schema_ids

    schema = pa.schema(open_table(folder, version).schema().to_arrow())
    numberless = visit_pyarrow(plain_schema(schema), _ConvertToIcebergWithoutIDs())
    assert isinstance(numberless, Schema), "a schema is visited"
    return assign_fresh_schema_ids(numberless)


def read_rows(
    folder: str,
    columns: Sequence[str],
    *,
    version: int | None = None,
    rows: RowFilter | None = None,
    limit: int | None = None,
) -> pa.Table:
    """Columns of the rows that a filter leaves, at most ``limit`` of them."""
    import pyarrow as pa

    stored = open_table(folder, version)
    needed = rows.needed if rows is not None else ()
    schema = pa.schema(stored.schema().to_arrow())
    read = list(dict.fromkeys((*columns, *(name for name in needed if name not in columns))))
    plain = plain_schema(pa.schema([schema.field(name) for name in (read or schema.names[:1])]))
    batches, count = [], 0
    with named_errors(folder):
        for batch in pa.RecordBatchReader.from_stream(stored.scan(columns=plain.names)):
            part = pa.Table.from_batches([batch]).select(plain.names).cast(plain)
            if rows is not None:
                part = rows(part)
            batches.append(part.select(list(columns)))
            count += part.num_rows
            if limit is not None and count >= limit:
                break
    empty = pa.schema([plain.field(name) for name in columns]).empty_table()
    table = pa.concat_tables([empty, *batches])
    return table if limit is None else table.slice(0, limit)


def _unreadable(folder: str, error: BaseException) -> Exception:
    if isinstance(error, Exception) and (failed := places.failure(folder, error)) is not None:
        return failed
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return delta_errors.unreadable(at=folder, why=next(iter(lines), type(error).__name__))
