"""
One bucket: objects are listed, read, written and deleted by obstore, which needs no JVM.

Every method is one request, but for listings, which take one for each thousand objects. A request
that fails for a reason that may pass is repeated a few times. Whatever fails then is an error with
a name (``errors``), or ``FileNotFoundError`` for an object that is not there.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass
from datetime import timedelta
from functools import partial
from pathlib import Path
from typing import Any

from infold.core.object_store import Stores, split
from infold.lake.stores.errors import refused
from infold.lake.stores.settings import Access, access_of
from infold.messages import store_errors

PAGE = 1000
"""Objects that one request of a listing gives, at most."""

_RETRIES = 5
_RETRY_SECONDS = 60


class ReplacedError(Exception):
    """An object is no longer the one that was asked for."""


@dataclass(frozen=True, slots=True)
class Listed:
    """An object: its key, size, ETag, and when it was written, in whole seconds since 1970."""

    key: str
    size: int
    etag: str
    seconds: int


@dataclass(frozen=True, slots=True)
class Bucket:
    """A bucket that can be reached."""

    name: str
    settings: str
    """What errors call its options."""
    store: Any

    def list(self, folder: str) -> Iterator[Listed]:
        """All objects below a folder, at any depth; not the markers of folders."""
        import obstore

        last, prefix = None, folder or None
        with self._named(folder):
            for cut in _cuts():
                with cut:
                    for page in obstore.list(self.store, prefix, offset=last, chunk_size=PAGE):
                        for one in page:
                            last = one["path"]
                            yield _listed(one)
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
        return [key.rpartition("/")[2] for key in keys]

    def head(self, key: str) -> Listed:
        """An object as it is now."""
        import obstore

        with self._named(key):
            return _listed(obstore.head(self.store, key))

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

        if keys:
            with self._named(keys[0]):
                obstore.delete(self.store, list(keys))

    @contextmanager
    def _named(self, key: str) -> Iterator[None]:
        """Failures in the block as named errors."""
        from obstore.exceptions import BaseError, PreconditionError

        at = f"s3://{self.name}/{key}"
        try:
            yield
        except PreconditionError as error:
            raise ReplacedError(at) from error
        except FileNotFoundError as error:
            if "NoSuchBucket" in str(error):
                raise refused(error, key=self.settings, at=at) from None
            raise FileNotFoundError(2, "there is no such object", at) from error
        except (BaseError, PermissionError, OSError, ValueError) as error:
            raise refused(error, key=self.settings, at=at) from None


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

    for _ in range(_RETRIES):
        yield forgiven()
    yield nullcontext()


def _listed(one: Mapping[str, Any]) -> Listed:
    etag = one["e_tag"] or one["version"] or ""
    return Listed(one["path"], one["size"], etag, int(one["last_modified"].timestamp()))


_opened: dict[tuple[str, Access], Bucket] = {}


def bucket_of(url: str, stores: Stores, root: Path) -> Bucket:
    """The bucket of a URL. Raises where obstore, a secret or a profile is not there."""
    name = split(url)[0]
    access = access_of(stores, name, root)
    found = _opened.get((name, access))
    if found is None:
        found = _opened[name, access] = Bucket(name, stores.key(name), _store(name, access, url))
    return found


def _store(name: str, access: Access, url: str) -> Any:
    try:
        from obstore.store import S3Store
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] != "obstore":
            raise
        raise store_errors.extra_missing(at=url) from None
    more: dict[str, Any] = {"endpoint": access.endpoint} if access.endpoint else {}
    if access.access_key_id:
        # By itself obstore would add a token of the environment to a key of infold.yml.
        more["credential_provider"] = partial(_credential, access)
    return S3Store(
        name,
        region=access.region,
        virtual_hosted_style_request=not access.path_style,
        client_options={
            "allow_http": access.endpoint.startswith("http:"),
            "connect_timeout": timedelta(seconds=10),
            "timeout": timedelta(seconds=60),
        },
        retry_config={
            "max_retries": _RETRIES,
            "retry_timeout": timedelta(seconds=_RETRY_SECONDS),
            "backoff": {
                "init_backoff": timedelta(milliseconds=100),
                "max_backoff": timedelta(seconds=2),
                "base": 2,
            },
        },
        **more,
    )


def _credential(access: Access) -> dict[str, Any]:
    return {
        "access_key_id": access.access_key_id,
        "secret_access_key": access.secret_access_key,
        "token": access.session_token or None,
        "expires_at": None,
    }
