"""
A file of a source written again without some of its rows, in its place, as far as that is exact.

The new file is beside the old one until it is complete, under a name that no listing shows, and
takes its place at one instant, with its owner, its mode and the time when it was written. Lines of
text stay as they are, byte for byte; gzip is packed again. Parquet has the same schema, codecs and
groups of rows, and is written by pyarrow: its pages, statistics and "created by" are others.
"""

from __future__ import annotations

import gzip
import os
import shutil
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, cast

from infold.core.files import is_as_listed, stat_fingerprint
from infold.core.formats import Format, packing_of
from infold.core.model import Source
from infold.lake.reading.parquet_files import finer_int96, int96_columns
from infold.lake.reading.row_texts import (
    TEXT_FORMATS,
    IsErased,
    NotReadError,
    row_parts,
    stored_texts,
)

if TYPE_CHECKING:
    from pyarrow.parquet import ParquetFile

    from infold.lake.reading.source_file import SourceFile


def write_without(
    file: SourceFile, source: Source, columns: Sequence[str], erased: IsErased, fingerprint: str
) -> os.stat_result:
    """
    Replace a file on a disk by one without the rows that are ``erased``; that of the new one.

    ``fingerprint`` is what a listing showed of the file. Raises :class:`NotReadError` where it is
    left as it is, and what reading its rows raises.
    """
    if file.bucket is not None:
        raise NotReadError("it is in an object store")
    if source.multiline:
        raise NotReadError("its values extend over lines")
    if packing_of(file.location) not in (None, "gzip"):
        raise NotReadError("it is packed, and not by gzip")
    path = Path(file.location).resolve()
    part = path.with_name(f"_{path.name}.infold-part")
    _refuse_other(path, fingerprint)
    part.unlink(missing_ok=True)
    part.touch(0o600)  # nobody reads in it what the file itself would not show
    try:
        if source.format in TEXT_FORMATS:
            _write_text(part, file, source, columns, erased)
        else:
            _write_parquet(part, file, columns, erased)
        _give_away(part, path.stat())
        shutil.copystat(path, part)
        _sync(part)
        _refuse_other(path, fingerprint)
        part.replace(path)
        _sync(path.parent)
    finally:
        part.unlink(missing_ok=True)
    return path.stat()


def _give_away(part: Path, status: os.stat_result) -> None:
    """Let a file belong to whom another one does."""
    try:
        os.chown(part, status.st_uid, status.st_gid)
    except PermissionError:
        raise NotReadError("it belongs to another user or group") from None


def _refuse_other(path: Path, fingerprint: str) -> None:
    status = path.stat()
    if not is_as_listed(fingerprint, stat_fingerprint(status)):
        raise NotReadError("it changed meanwhile")
    if status.st_nlink > 1:
        raise NotReadError("the disk has it under another name as well")


def _sync(path: Path) -> None:
    opened = os.open(path, os.O_RDONLY)
    try:
        os.fsync(opened)
    finally:
        os.close(opened)


def _write_text(
    part: Path, file: SourceFile, source: Source, columns: Sequence[str], erased: IsErased
) -> None:
    """
    Write the lines that are kept.

    A file of JSON whose objects all lack a declared column is another file than one in which some
    have it: nobody may find that later, who reads the file for the first time.
    """
    if source.format is Format.JSON:
        columns = [*columns, *(name.name for name in source.of_files.columns if not name.optional)]
    before: set[int] = set()
    after: set[int] = set()
    rows = 0
    with _opened(part, file.location) as out:
        for line, texts in row_parts(file, source, columns):
            has = {at for at, text in enumerate(texts or ()) if text is not None}
            before |= has
            if texts is None or not erased(texts):
                out.write(line)
                after |= has
                rows += texts is not None
    if rows and source.format is Format.JSON and before > after:
        raise NotReadError(f"no row would have {columns[min(before - after)]} any more")


@contextmanager
def _opened(part: Path, location: str) -> Iterator[BinaryIO]:
    with part.open("wb") as out:
        if packing_of(location) is None:
            yield out
            return
        with gzip.GzipFile("", "wb", fileobj=out, mtime=0) as packed:
            yield cast("BinaryIO", packed)


def _write_parquet(part: Path, file: SourceFile, columns: Sequence[str], erased: IsErased) -> None:
    import pyarrow as pa
    from pyarrow import parquet

    # In microseconds old times have room in 64 bits, whatever their year.
    with parquet.ParquetFile(file.arrow_file(), coerce_int96_timestamp_unit="us") as old:
        names = old.schema_arrow.names
        old_times = [one for one, is_ in zip(names, int96_columns(old), strict=True) if is_]
        if _old_times(old) > len(old_times) or finer_int96(file, old_times):
            raise NotReadError("it has times of 96 bits that may have parts of a microsecond")
        with parquet.ParquetWriter(part, old.schema_arrow, **_as_before(old)) as out:
            for group in range(old.num_row_groups):
                kept = pa.array([not erased(texts) for texts in stored_texts(old, group, columns)])
                rows = old.read_row_group(group).filter(kept)
                if rows.num_rows:
                    out.write_table(rows, row_group_size=rows.num_rows)
        with parquet.ParquetFile(part) as new:
            if not new.schema.equals(old.schema):
                raise NotReadError("pyarrow would give its columns other types")


def _as_before(file: ParquetFile) -> dict[str, Any]:
    """How a file was written, in the words of its writer."""
    schema, metadata = file.schema, file.metadata
    leaves = [schema.column(at) for at in range(len(schema.names))]
    codecs: dict[str, str] | str = "NONE"
    if metadata.num_row_groups:
        first = metadata.row_group(0)
        packed = [first.column(at).compression for at in range(len(leaves))]
        codecs = {
            leaf.path: codec.replace("UNCOMPRESSED", "NONE").replace("LZ4_RAW", "LZ4")
            for leaf, codec in zip(leaves, packed, strict=True)
        }
    return {
        "compression": codecs,
        "use_deprecated_int96_timestamps": _old_times(file) > 0,
        "store_decimal_as_integer": any(
            leaf.logical_type.type == "DECIMAL" and leaf.physical_type in ("INT32", "INT64")
            for leaf in leaves
        ),
    }


def _old_times(file: ParquetFile) -> int:
    """How many columns of times of 96 bits there are, at any depth."""
    schema = file.schema
    return sum(schema.column(at).physical_type == "INT96" for at in range(len(schema.names)))
