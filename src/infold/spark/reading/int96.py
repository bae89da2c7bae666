"""
Timestamps of the old 96-bit kind in Parquet files, which count nanoseconds.

Spark cuts them to microseconds silently, and the footer of a file does not show whether that loses
anything. So these columns are read in this process first.
"""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import parquet

from infold.lake.reading.source_file import SourceFile

_FITS = 9_223_372_036_000_000
"""Microseconds from 1970 up to which the nanoseconds fit 64 bits, before it and after."""


def int96_columns(footer: parquet.ParquetFile) -> list[bool]:
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
    at = micros.cast(pa.int64())
    same_second = pc.less(pc.abs(at), _FITS)
    rest = pc.subtract(nanos.cast(pa.int64()), pc.multiply(at, 1000))
    differs = pc.any(pc.and_(same_second, pc.not_equal(rest, 0))).as_py()
    return bool(differs)
