"""The buckets that this process has opened, each by one way."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any
from uuid import uuid4

from infold.core.object_store import StoreKind, Stores, bucket_url, kind_of, split
from infold.lake.stores.bucket import AT_ONCE, PAGE, Bucket, Listed, ReplacedError
from infold.lake.stores.hdfs import HdfsAccess
from infold.lake.stores.requests import TRIES, no_bucket, refused
from infold.lake.stores.settings import Access, access_of
from infold.lake.stores.webhdfs import RefusedError, SilentError, WebHdfs
from infold.messages import store_errors
from infold.messages.errors import InfoldError

_opened: dict[tuple[str, Access], Bucket] = {}


def bucket_of(url: str, stores: Stores, root: Path) -> Bucket:
    """The bucket of a URL. Raises where obstore, a secret or a profile is not there."""
    bucket, key = bucket_url(url), stores.key(url)
    access = access_of(stores, bucket, root)
    found = _opened.get((bucket, access))
    if found is None:
        if isinstance(access, HdfsAccess):
            found = HdfsBucket(bucket, key, access.open(split(bucket)[0]))
        else:
            found = open_bucket(bucket, access, url, key)
        _opened[bucket, access] = found
    return found


# The mark that takes the place of an ETag is made of what the NameNode says of a file: its number,
# which each file that is created gets anew, its length, and when it was changed, in milliseconds.
# Bytes that are written stay as they are: HDFS appends to a file, or cuts off its end, and both
# change the time. So another content has another mark, under the same name.

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


# Every method is one request, but for listings, which take one for each thousand objects. A request
# that fails for a reason that may pass is repeated a few times. Whatever fails then is an error
# with a name (`errors`), or `FileNotFoundError` for an object that is not there.

EXTRAS = {StoreKind.S3: "s3", StoreKind.GCS: "gcs", StoreKind.AZURE: "azure"}
"""What of infold brings obstore, by whose store it is for."""


@dataclass(frozen=True, slots=True)
class ObjectBucket:
    """A bucket that can be reached, by the URL of it."""

    url: str
    settings: str
    """What errors call its options."""
    store: Any

    def list(self, folder: str, after: str = "") -> Iterator[Listed]:
        """See ``Bucket``."""
        import obstore

        last, prefix = after or None, folder or None
        with self._named(folder):
            for cut in _cuts():
                with cut:
                    for page in obstore.list(self.store, prefix, offset=last, chunk_size=PAGE):
                        for one in page:
                            last = one["path"]
                            yield self._listed(one)
                    return

    def names(self, folder: str) -> Sequence[str]:
        """The names right below a folder: of folders, and of objects."""
        import obstore

        with self._named(folder):
            for cut in _cuts():
                with cut:
                    found = obstore.list_with_delimiter(self.store, folder or None)
                    break
        keys = [*found["common_prefixes"], *(one["path"] for one in found["objects"])]
        # One may be there twice: as a folder, and as an empty object that a connector made for it.
        return list(dict.fromkeys(key.rpartition("/")[2] for key in keys))

    def has_folder(self, folder: str) -> bool:
        """Whether an object is below it."""
        return next(self.list(folder), None) is not None

    def head(self, key: str) -> Listed:
        """An object as it is now."""
        import obstore

        with self._named(key):
            return self._listed(obstore.head(self.store, key))

    def read(self, key: str, *, start: int = 0, end: int | None = None, etag: str = "") -> bytes:
        """
        The bytes of an object, or of a part of it.

        Raises :class:`ReplacedError` if it has another ETag than ``etag`` by now.
        """
        import obstore

        options: obstore.GetOptions = {"if_match": etag} if etag else {}
        if end is not None:
            options["range"] = (start, end)
        with self._named(key):
            return bytes(obstore.get(self.store, key, options=options).bytes())

    def write(self, key: str, content: bytes) -> None:
        """Have an object with this content: as a whole, or not at all."""
        import obstore

        with self._named(key):
            obstore.put(self.store, key, content)

    def copy(self, key: str, to: str) -> None:
        """Have a copy of an object under another key; the store makes it by itself."""
        import obstore

        with self._named(key):
            obstore.copy(self.store, key, to)

    def delete(self, keys: Sequence[str]) -> None:
        """Delete objects, as far as they are there."""
        import obstore

        if not keys:
            return
        if kind_of(self.url) is not StoreKind.S3:
            with ThreadPoolExecutor(min(AT_ONCE, len(keys))) as pool:
                list(pool.map(self._delete_one, keys))
            return
        with self._named(keys[0]):
            obstore.delete(self.store, list(keys))

    def _delete_one(self, key: str) -> None:
        """Delete an object: others than S3 refuse all of a request for one that is not there."""
        import obstore

        with suppress(FileNotFoundError), self._named(key):
            obstore.delete(self.store, key)

    def delete_folder(self, folder: str) -> None:
        """Delete all objects below a folder, and the folder."""
        keys = [one.key for one in self.list(folder)]
        self.delete(keys)
        self.delete_folders(folder, keys)

    def delete_folders(self, folder: str, keys: Sequence[str]) -> None:
        """
        Delete the folders of objects that are deleted.

        Google's connector makes objects for some, with keys that end in a slash. They stay: obstore
        cannot name them.
        """
        if kind_of(self.url) is StoreKind.AZURE:
            known = {*keys}
            for folders in _folders_of(keys, folder):
                self.delete([one for one in folders if one not in known])

    def _listed(self, one: Mapping[str, Any]) -> Listed:
        """
        An object as obstore shows it.

        Others than S3 may put an ETag between quotes in one answer and not in another.
        """
        etag = one["e_tag"] or one["version"] or ""
        if kind_of(self.url) is not StoreKind.S3:
            etag = f'"{etag.strip(chr(34))}"'
        return Listed(one["path"], one["size"], etag, int(one["last_modified"].timestamp()))

    @contextmanager
    def _named(self, key: str) -> Iterator[None]:
        """Failures in the block as named errors."""
        from obstore.exceptions import BaseError, PreconditionError

        at = f"{self.url}/{key}"
        try:
            yield
        except PreconditionError as error:
            raise ReplacedError(at) from error
        except FileNotFoundError as error:
            if no_bucket(str(error)):
                raise refused(error, key=self.settings, at=at) from None
            raise FileNotFoundError(2, "there is no such object", at) from error
        except (BaseError, PermissionError, OSError, ValueError) as error:
            raise refused(error, key=self.settings, at=at) from None


def _folders_of(keys: Sequence[str], top: str) -> Iterator[Sequence[str]]:
    """
    The folders of some keys, from ``top`` on, the deepest first.

    Spark's connector for Azure makes them: empty objects, or real ones if the account has such.
    These can be deleted once they are empty.
    """
    found, above = {top}, set(keys)
    while above := {key.rpartition("/")[0] for key in above if key.count("/") > top.count("/") + 1}:
        found |= above
    for depth in sorted({key.count("/") for key in found}, reverse=True):
        yield [key for key in found if key.count("/") == depth]


def _cuts() -> Iterator[AbstractContextManager[None]]:
    """
    Tries of a listing, each but the last without its failure if a connection was cut.

    obstore repeats a request that fails, but no listing that ends before all of it has come.
    """
    from obstore.exceptions import GenericError

    @contextmanager
    def forgiven() -> Iterator[None]:
        try:
            yield
        except GenericError as error:
            if "response body" not in str(error):
                raise

    for _ in range(TRIES):
        yield forgiven()
    yield nullcontext()


def open_bucket(bucket: str, access: Access, url: str, key: str) -> ObjectBucket:
    """A bucket, by the URL of it. Raises where obstore is not there, or a key is none."""
    try:
        import obstore.store  # noqa: F401 (only whether it is there)
        from obstore.exceptions import BaseError
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] != "obstore":
            raise
        raise store_errors.extra_missing(at=url, extra=EXTRAS[kind_of(bucket)]) from None
    try:
        return ObjectBucket(bucket, key, access.open(split(bucket)[0]))
    except BaseError as error:  # a private key that is none
        why = str(error).partition("\n\nDebug source")[0]
        raise store_errors.credentials_refused(key=key, at=url, why=why) from None
