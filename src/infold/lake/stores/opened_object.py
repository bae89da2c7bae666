"""One version of an object as a file to be read."""

from __future__ import annotations

import io
from typing import Any

from infold.lake.stores.bucket import Bucket


class ObjectReader(io.RawIOBase):
    """
    An object as a file: each read is one request.

    Every part that is read has the ``etag``; else ``ReplacedError`` is raised.
    """

    def __init__(self, bucket: Bucket, key: str, size: int, etag: str) -> None:
        self._bucket = bucket
        self._key = key
        self._size = size
        self._etag = etag
        self._at = 0

    def readable(self) -> bool:
        """It is."""
        return True

    def seekable(self) -> bool:
        """It is."""
        return True

    def tell(self) -> int:
        """Where the next read begins."""
        return self._at

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        """Let the next read begin elsewhere."""
        starts = {io.SEEK_SET: 0, io.SEEK_CUR: self._at, io.SEEK_END: self._size}
        self._at = starts[whence] + offset
        return self._at

    def readinto(self, buffer: Any) -> int:
        """Read as much as there is room for."""
        found = self._part(len(buffer))
        buffer[: len(found)] = found
        return len(found)

    def readall(self) -> bytes:
        """Read all that is left."""
        return self._part(self._size)

    def _part(self, size: int) -> bytes:
        end = min(self._at + size, self._size)
        if end <= self._at:
            return b""
        found = self._bucket.read(self._key, start=self._at, end=end, etag=self._etag)
        self._at += len(found)
        return found
