"""One file of a source as bytes, on a disk or in an object store."""

from __future__ import annotations

import io
import os
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, cast

from infold.core.files import IngestedFile, ListedFile, listed_fingerprint
from infold.core.formats import packing_of
from infold.core.object_store import NO_STORES, Stores, is_url, split
from infold.lake.stores.bucket import Bucket, ObjectReader
from infold.lake.stores.buckets import bucket_of

if TYPE_CHECKING:
    import pyarrow as pa


_BUFFER = 4 * 1024 * 1024
"""How much of an object is asked for at a time, where all of it is read."""
_GZIP, _NO_GZIP = b"\x1f\x8b", "it does not begin as a gzip file does"


@dataclass(frozen=True, slots=True)
class SourceFile:
    """
    A version of a file that can be opened.

    ``location`` is an absolute path or a URL. Of an object, every part that is read has the
    ``etag`` of this version; else ``ReplacedError`` is raised. Without one, any version is read.
    """

    location: str
    size: int
    bucket: Bucket | None = None
    etag: str = ""

    def exists(self) -> bool:
        """Whether it is there, in whatever version."""
        if self.bucket is None:
            return Path(self.location).exists()
        try:
            self.bucket.head(split(self.location)[1])
        except FileNotFoundError:
            return False
        return True

    def raw(self) -> io.BufferedReader:
        """Its bytes as they are stored."""
        if self.bucket is None:
            return open(self.location, "rb")  # noqa: PTH123 - for many small files half of the time
        return io.BufferedReader(self._reader(self.bucket), _BUFFER)

    def unpacked(self) -> BinaryIO:
        """Its bytes; those of a packed file unpacked. OSError for gzip that begins as no gzip."""
        packing, raw = packing_of(self.location), self.raw()
        if packing is None:
            return raw
        if packing == "gzip" and not _GZIP.startswith(raw.peek(2)[:2]):  # Arrow takes zlib for it
            raw.close()
            raise OSError(_NO_GZIP)
        import pyarrow as pa

        return cast("BinaryIO", _Unpacked(pa.input_stream(raw, compression=packing), raw))

    def arrow_file(self) -> Any:
        """What pyarrow opens a file by that it reads here and there."""
        return self.location if self.bucket is None else self._reader(self.bucket)

    def arrow_stream(self) -> pa.NativeFile:
        """A stream of pyarrow's, unpacked."""
        import pyarrow as pa

        from_ = self.location if self.bucket is None else self.raw()
        return pa.input_stream(from_, compression=packing_of(self.location))

    def _reader(self, bucket: Bucket) -> ObjectReader:
        return ObjectReader(bucket, split(self.location)[1], self.size, self.etag)


class _Unpacked(io.BufferedReader):
    """Unpacked bytes, and the file that they are from: it is closed with them."""

    def __init__(self, unpacked: Any, raw: BinaryIO) -> None:
        super().__init__(unpacked, _BUFFER)
        self._packed = raw

    def close(self) -> None:
        """Close the packed file as well: nothing else has a hold of it."""
        super().close()
        self._packed.close()


def location(root: Path, path: str) -> str:
    """A file of the project in an absolute folder, as ``root / path`` has it; for very many."""
    if "//" in path or "./" in path or path[-1:] in "/.":
        return str(root / path)
    return os.path.join(root, path)  # noqa: PTH118 - a tenth of pathlib's time


def source_file(
    root: Path,
    file: ListedFile | IngestedFile,
    stores: Stores = NO_STORES,
    *,
    of_table: bool = False,
) -> SourceFile:
    """
    A file of a source of the project in a folder.

    One of a table is never written twice, and its fingerprint has no ETag.
    """
    if not is_url(file.path):
        return SourceFile(location(root, file.path), file.size)
    bucket = bucket_of(file.path, stores, root)
    return SourceFile(file.path, file.size, bucket, "" if of_table else etag_of(file))


def etag_of(file: ListedFile | IngestedFile) -> str:
    """The ETag in the fingerprint of an object."""
    return listed_fingerprint(file.fingerprint).split(":")[1]


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
