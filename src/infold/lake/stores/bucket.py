"""What one bucket of a store does, whosever protocol it speaks."""

from __future__ import annotations

import io
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

PAGE = 1000
"""Objects that one request of a listing gives, at most."""

AT_ONCE = 16
"""Requests at the same time, where many things are asked for one by one."""


class ReplacedError(Exception):
    """An object is no longer the one that was asked for."""


@dataclass(frozen=True, slots=True)
class Listed:
    """An object: its key, size, ETag, and when it was written, in whole seconds since 1970."""

    key: str
    size: int
    etag: str
    seconds: int


class Bucket(Protocol):
    """
    A bucket that can be reached.

    What fails is an error with a name (``store_errors``), or ``FileNotFoundError`` for an object
    that is not there.
    """

    @property
    def url(self) -> str:
        """Scheme and name, without a slash at the end."""

    def list(self, folder: str, after: str = "") -> Iterator[Listed]:
        """
        All objects below a folder, at any depth; not the markers of folders.

        With ``after``, a key, those alone whose keys come later than it.
        """

    def names(self, folder: str) -> Sequence[str]:
        """The names right below a folder: of folders, and of objects."""

    def has_folder(self, folder: str) -> bool:
        """Whether there is such a folder; an object store has one if an object is below it."""

    def head(self, key: str) -> Listed:
        """An object as it is now."""

    def read(self, key: str, *, start: int = 0, end: int | None = None, etag: str = "") -> bytes:
        """
        The bytes of an object, or of a part of it.

        Raises :class:`ReplacedError` if it has another ETag than ``etag`` by now.
        """

    def write(self, key: str, content: bytes) -> None:
        """Have an object with this content: as a whole, or not at all."""

    def copy(self, key: str, to: str) -> None:
        """Have a copy of an object under another key."""

    def delete(self, keys: Sequence[str]) -> None:
        """Delete objects, as far as they are there."""

    def delete_folder(self, folder: str) -> None:
        """Delete all objects below a folder, and the folder."""

    def delete_folders(self, folder: str, keys: Sequence[str]) -> None:
        """Delete what the store has for the folders of deleted objects that were below one."""


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
        """True, which io.RawIOBase asks for."""
        return True

    def seekable(self) -> bool:
        """True: each read is a request of its own for a range."""
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
        part = self._part(len(buffer))
        buffer[: len(part)] = part
        return len(part)

    def readall(self) -> bytes:
        """Read all that is left."""
        return self._part(self._size)

    def _part(self, size: int) -> bytes:
        end = min(self._at + size, self._size)
        if end <= self._at:
            return b""
        part = self._bucket.read(self._key, start=self._at, end=end, etag=self._etag)
        self._at += len(part)
        return part
