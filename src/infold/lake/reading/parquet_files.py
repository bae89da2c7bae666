"""Parquet files without a JVM: single columns of them, and footers."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from infold.core.files import ListedFile
from infold.core.model import Source
from infold.core.project import Project
from infold.lake.reading import listing
from infold.lake.reading.source_file import SourceFile, source_file
from infold.lake.stores.bucket import ReplacedError

if TYPE_CHECKING:
    import pyarrow as pa
    from pyarrow.parquet import ParquetFile

list_files = listing.list_files


def event_times(file: SourceFile, _source: Source, column: str) -> Iterator[pa.Array]:
    """Of this column alone, in the chunks that Arrow reads."""
    from pyarrow import parquet

    yield from parquet.read_table(file.arrow_file(), columns=[column]).column(column).chunks


def row_counts(project: Project, files: Sequence[ListedFile]) -> Mapping[str, int]:
    """By their footers; files that cannot be read are left out: the ingest reports them."""
    import pyarrow as pa
    from pyarrow import parquet

    counts = {}
    for file in files:
        try:
            stored_file = source_file(project.root, file, project.target.stores)
            counts[file.path] = parquet.read_metadata(stored_file.arrow_file()).num_rows
        except (OSError, pa.ArrowInvalid, ReplacedError):
            continue
    return counts


# Spark cuts times of 96 bits to microseconds silently, and the footer of a file does not show
# whether that loses anything. So these columns are read in this process first.

_FITS = 9_223_372_036_000_000
"""Microseconds from 1970 up to which the nanoseconds fit 64 bits, before it and after."""


def int96_columns(footer: ParquetFile) -> list[bool]:
    """For each top-level column, whether it is a timestamp of the old 96-bit kind."""
    leaves = {
        footer.schema.column(i).path: footer.schema.column(i).physical_type
        for i in range(len(footer.schema.names))
    }
    return [leaves.get(name) == "INT96" for name in footer.schema_arrow.names]


def finer_int96(file: SourceFile, names: Sequence[str]) -> list[str]:
    """Those of the 96-bit columns that have parts of a microsecond."""
    if not names:
        return []
    from pyarrow import parquet

    finer: set[str] = set()
    with (
        parquet.ParquetFile(file.arrow_file()) as exact,
        parquet.ParquetFile(file.arrow_file(), coerce_int96_timestamp_unit="us") as cut,
    ):
        pairs = zip(
            exact.iter_batches(columns=list(names)),
            cut.iter_batches(columns=list(names)),
            strict=True,
        )
        for whole, short in pairs:
            finer.update(name for name in names if _differ(whole.column(name), short.column(name)))
    return [name for name in names if name in finer]


def _differ(nanos: pa.Array, micros: pa.Array) -> bool:
    """Whether an instant is no whole microsecond; beyond 64 bits that is unknown."""
    import pyarrow as pa
    import pyarrow.compute as pc

    at = micros.cast(pa.int64())
    same_second = pc.less(pc.abs(at), _FITS)
    rest = pc.subtract(nanos.cast(pa.int64()), pc.multiply(at, 1000))
    differs = pc.any(pc.and_(same_second, pc.not_equal(rest, 0))).as_py()
    return bool(differs)
