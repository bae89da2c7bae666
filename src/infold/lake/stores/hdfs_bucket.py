"""
The files of an HDFS as a bucket: listed, read, written and deleted by WebHDFS.

The mark that takes the place of an ETag is made of what the NameNode says of a file: its number,
which each file that is created gets anew, its length, and when it was changed, in milliseconds.
Bytes that are written stay as they are: HDFS appends to a file, or cuts off its end, and both
change the time. So another content has another mark, under the same name.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from typing import Any
from uuid import uuid4

from infold.lake.stores.bucket import AT_ONCE, Listed, ReplacedError
from infold.lake.stores.webhdfs import RefusedError, SilentError, WebHdfs
from infold.messages import store_errors
from infold.messages.errors import InfoldError

_FILE, _FOLDER = "FILE", "DIRECTORY"
_COPYING = "._COPYING_"
"""How the name of a file ends that `hdfs dfs -put` has not written whole; then it is renamed."""
_MISSING = "FileNotFoundException"
_DENIED = ("AccessControlException", "SecurityException", "AuthorizationException")
_KERBEROS = 401


@dataclass(frozen=True, slots=True)
class HdfsBucket:
    """An HDFS that can be reached, by the URL of its NameNode."""

    url: str
    settings: str
    """What errors call its options."""
    server: WebHdfs

    def list(self, folder: str, after: str = "") -> Iterator[Listed]:
        """All files below a folder, at any depth: a request for each folder, more for a big one."""
        above = [folder]
        with ThreadPoolExecutor(AT_ONCE) as pool:
            while above:
                now, above[-AT_ONCE:] = above[-AT_ONCE:], []
                for folders, files in pool.map(self._in_folder, now):
                    above += folders
                    yield from (one for one in files if one.key > after)

    def _in_folder(self, folder: str) -> tuple[Sequence[str], Sequence[Listed]]:
        """The folders and the files right in a folder; none where it is none, or is gone."""
        folders, files = [], []
        for key, one in self._entries(folder):
            if one["type"] == _FOLDER:
                folders.append(key)
            elif one["type"] == _FILE and not key.endswith(_COPYING):
                files.append(self._listed(key, one))
        return folders, files

    def names(self, folder: str) -> Sequence[str]:
        """The names right below a folder: of folders, and of files."""
        return [key.rpartition("/")[2] for key, _ in self._entries(folder)]

    def _entries(self, folder: str) -> Iterator[tuple[str, Mapping[str, Any]]]:
        with suppress(FileNotFoundError), self._named(folder):
            for one in self.server.listed(folder):
                if name := one["pathSuffix"]:
                    yield f"{folder}/{name}" if folder else name, one

    def has_folder(self, folder: str) -> bool:
        """Whether there is such a folder, be it empty."""
        try:
            with self._named(folder):
                return bool(self.server.status(folder)["type"] == _FOLDER)
        except FileNotFoundError:
            return False

    def head(self, key: str) -> Listed:
        """A file as it is now."""
        with self._named(key):
            found = self.server.status(key)
        if found["type"] != _FILE:
            raise self._no_file(key)
        return self._listed(key, found)

    def read(self, key: str, *, start: int = 0, end: int | None = None, etag: str = "") -> bytes:
        """
        The bytes of a file, or of a part of it.

        WebHDFS reads whatever has that name. So it is looked at afterwards: a file that is as it
        was listed then was so while it was read.
        """
        length = None if end is None else end - start
        try:
            with self._named(key):
                found = self.server.read(key, start, length)
        except InfoldError:  # it may be too short by now
            if etag and self.head(key).etag != etag:
                raise ReplacedError(f"{self.url}/{key}") from None
            raise
        if etag and (self.head(key).etag != etag or length not in (None, len(found))):
            raise ReplacedError(f"{self.url}/{key}")
        return found

    def write(self, key: str, content: bytes) -> None:
        """
        Have a file with this content: as a whole, or not at all.

        It is written under a name that nobody reads, and renamed.
        """
        part = "/".join((*key.split("/")[:-1], f".{uuid4().hex}.part"))
        with self._named(key):
            try:
                self.server.create(part, content)
                number = self.server.status(part)["fileId"]
                self._rename(part, key, number)
            except RefusedError:
                with suppress(RefusedError, SilentError):
                    self.server.delete(part, recursive=False)
                raise

    def _rename(self, part: str, key: str, number: int) -> None:
        try:
            self.server.rename(part, f"/{key}")
        except RefusedError as error:
            # The answer of the first try was lost, and the second one finds nothing to rename.
            if error.kind != _MISSING or self.server.status(key)["fileId"] != number:
                raise

    def copy(self, key: str, to: str) -> None:
        """Have a copy of a file under another name; its content passes by here."""
        self.write(to, self.read(key))

    def delete(self, keys: Sequence[str]) -> None:
        """Delete files, as far as they are there."""
        if keys:
            with ThreadPoolExecutor(min(AT_ONCE, len(keys))) as pool:
                list(pool.map(partial(self._delete, recursive=False), keys))

    def delete_folder(self, folder: str) -> None:
        """Delete a folder with all that is in it: one request."""
        self._delete(folder, recursive=True)

    def delete_folders(self, folder: str, keys: Sequence[str]) -> None:  # noqa: ARG002 (of others)
        """Delete what is left of a folder whose files were deleted."""
        self._delete(folder, recursive=True)

    def _delete(self, key: str, *, recursive: bool) -> None:
        with self._named(key):
            self.server.delete(key, recursive=recursive)

    def _listed(self, key: str, one: Mapping[str, Any]) -> Listed:
        """A file as the NameNode shows it; a gateway shows less."""
        number, size, changed = one.get("fileId"), one["length"], one["modificationTime"]
        if not number:
            raise store_errors.no_number_of_file(key=self.settings, at=f"{self.url}/{key}")
        return Listed(key, size, f"{number}-{size}-{changed}", changed // 1000)

    def _no_file(self, key: str) -> FileNotFoundError:
        return FileNotFoundError(2, "there is no such file", f"{self.url}/{key}")

    @contextmanager
    def _named(self, key: str) -> Iterator[None]:
        """Failures in the block as named errors."""
        at = f"{self.url}/{key}"
        try:
            yield
        except SilentError as error:
            raise store_errors.unreachable(key=self.settings, at=at, why=str(error)) from None
        except RefusedError as error:
            if error.kind == _MISSING:
                raise self._no_file(key) from error
            raise self._refused(error, at) from None

    def _refused(self, error: RefusedError, at: str) -> InfoldError:
        key, why = self.settings, str(error)
        if error.status == _KERBEROS:
            return store_errors.kerberos(key=key, at=at, why=why)
        if error.kind in _DENIED:
            return store_errors.denied(key=key, at=at, why=why)
        if error.kind == "StandbyException":
            return store_errors.standby(key=key, at=at, why=why)
        if not error.kind and error.status < 500:
            return store_errors.no_webhdfs(key=key, at=at, why=why)
        return store_errors.failed(key=key, at=at, why=why)
