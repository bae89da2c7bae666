"""What a file is by its first bytes, whatever its name says."""

from __future__ import annotations

from infold.lake.reading.source_file import SourceFile

_BEGINNINGS = {
    b"PAR1": "a Parquet file",
    b"ORC": "an ORC file",
    b"Obj\x01": "an Avro file",
    b"\x1f\x8b": "a gzip file",
    b"BZh": "a bzip2 file",
    b"\x28\xb5\x2f\xfd": "a zstd file",
    b"PK\x03\x04": "a ZIP archive",
}


def looks_like(file: SourceFile) -> str | None:
    """What a file begins as; None for text, and for what cannot be opened."""
    try:
        with file.raw() as opened:
            first = opened.read(4)
    except OSError:
        return None
    return next((what for sign, what in _BEGINNINGS.items() if first.startswith(sign)), None)
