"""The buckets that this process has opened, each by one way."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from infold.core.object_store import StoreKind, Stores, bucket_url, kind_of, split
from infold.lake.stores.bucket import (
    AT_ONCE,
    PAGE,
    TRIES,
    Bucket,
    Listed,
    ReplacedError,
    no_bucket,
    refused,
)
from infold.lake.stores.settings import Access, access_of
from infold.messages import store_errors

_opened: dict[tuple[str, Access], Bucket] = {}


def bucket_of(url: str, stores: Stores, root: Path) -> Bucket:
    """The bucket of a URL. Raises where obstore, a secret or a profile is not there."""
    bucket, key = bucket_url(url), stores.key(url)
    access = access_of(stores, bucket, root)
    opened = _opened.get((bucket, access))
    if opened is None:
        if kind_of(bucket) is StoreKind.HDFS:
            # Its client of HTTP takes a tenth of a quick command to import.
            from infold.lake.stores.webhdfs import HdfsBucket

            opened = HdfsBucket(bucket, key, access.open(split(bucket)[0]))
        else:
            opened = open_bucket(bucket, access, url, key)
        _opened[bucket, access] = opened
    return opened


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
                        for entry in page:
                            last = entry["path"]
                            yield self._listed(entry)
                    return

    def names(self, folder: str) -> Sequence[str]:
        """The names right below a folder: of folders, and of objects."""
        import obstore

        with self._named(folder):
            for cut in _cuts():
                with cut:
                    listed = obstore.list_with_delimiter(self.store, folder or None)
                    break
        keys = [*listed["common_prefixes"], *(one["path"] for one in listed["objects"])]
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

    def _listed(self, entry: Mapping[str, Any]) -> Listed:
        """
        An object as obstore shows it.

        Others than S3 may put an ETag between quotes in one answer and not in another.
        """
        etag = entry["e_tag"] or entry["version"] or ""
        if kind_of(self.url) is not StoreKind.S3:
            etag = f'"{etag.strip(chr(34))}"'
        return Listed(entry["path"], entry["size"], etag, int(entry["last_modified"].timestamp()))

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
    folders, above = {top}, set(keys)
    while above := {key.rpartition("/")[0] for key in above if key.count("/") > top.count("/") + 1}:
        folders |= above
    for depth in sorted({key.count("/") for key in folders}, reverse=True):
        yield [key for key in folders if key.count("/") == depth]


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
