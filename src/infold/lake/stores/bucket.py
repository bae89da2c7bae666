"""What one bucket of a store does, whosever protocol it speaks, and how a store is asked."""

from __future__ import annotations

import io
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING, Any, Protocol

from infold.messages import store_errors
from infold.messages.errors import InfoldError

if TYPE_CHECKING:
    from obstore.store import RetryConfig


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


TRIES = 5
CONNECT_SECONDS = 10
ANSWER_SECONDS = 60

RETRIES: RetryConfig = {
    "max_retries": TRIES,
    "retry_timeout": timedelta(seconds=60),
    "backoff": {
        "init_backoff": timedelta(milliseconds=100),
        "max_backoff": timedelta(seconds=2),
        "base": 2,
    },
}


def client_options(endpoint: str) -> Any:
    """What obstore is told of its connections to a server; without one, to that of the store."""
    return {
        "allow_http": endpoint.startswith("http:"),
        "connect_timeout": timedelta(seconds=CONNECT_SECONDS),
        "timeout": timedelta(seconds=ANSWER_SECONDS),
    }


def deltalake_options(endpoint: str) -> Mapping[str, str]:
    """The same limits of time and tries under the names that deltalake has for them."""
    return {
        "allow_http": str(endpoint.startswith("http:")).lower(),
        "connect_timeout": f"{CONNECT_SECONDS}s",
        "timeout": f"{ANSWER_SECONDS}s",
        "max_retries": str(TRIES),
        "retry_timeout": "60s",
    }


_CODE = re.compile(r"<Code>(\w+)</Code>")
_MESSAGE = re.compile(r"<Message>([^<]*)</Message>")
_STATUS = re.compile(r"(?:status code: |\(code: |↳ )(\d{3})\b")
"""In the words of obstore, of its deletions of several, and of Delta's kernel in deltalake."""

_COLOURS = re.compile(r"\x1b\[[0-9;]*m")

_BAD_KEY = re.compile(r'Path "(.+)"(?: contained|: Encountered)', re.DOTALL)
"""What obstore says of a key in a listing, and of one that it is asked for."""

_NO_BUCKET = ("NoSuchBucket", "ContainerNotFound")
_NO_OBJECT = ("NoSuchKey", "BlobNotFound")
_MACHINE = ("169.254.", "metadata.google.internal")
"""Addresses of the service that gives a cloud's machine its keys."""

_CREDENTIALS = (
    *("InvalidAccessKeyId", "SignatureDoesNotMatch", "ExpiredToken", "InvalidToken"),
    *("TokenRefreshRequired", "RequestTimeTooSkewed", "InvalidSecurity"),
    *("AuthenticationRequired", "AuthenticationFailed", "InvalidAuthenticationInfo"),
)
_REGION = ("PermanentRedirect", "AuthorizationHeaderMalformed", "TemporaryRedirect")


def no_bucket(text: str) -> bool:
    """Whether a failure says that there is no such bucket."""
    return any(code in text for code in _NO_BUCKET)


def no_object(text: str) -> bool:
    """Whether a failure says that there is no such object."""
    return any(code in text for code in _NO_OBJECT)


def refused(error: Exception, *, key: str, at: str) -> InfoldError:
    """The error of a failed request; ``key`` is what infold.yml calls the options of the bucket."""
    text = _COLOURS.sub("", str(error))
    message_text = text.partition("\n\nDebug source")[0]
    if bad := _BAD_KEY.search(message_text):
        return store_errors.bad_key(at=at, name=ascii(bad[1]).strip("'"))
    line = " ".join(message_text.split())
    code, message, status_in = _CODE.search(text), _MESSAGE.search(text), _STATUS.search(line)
    why = f"{code[1]}: {message[1]}" if code and message else line[:300]
    kind, status = code[1] if code else "", status_in[1] if status_in else ""
    if kind in _NO_BUCKET:
        return store_errors.bucket_missing(key=key, at=at, why=why)
    if kind in _CREDENTIALS or status == "401":
        return store_errors.credentials_refused(key=key, at=at, why=why)
    if kind in _REGION or status in ("301", "307") or "configured region" in line:
        return store_errors.wrong_region(key=key, at=at, why=why)
    if any(place in line for place in _MACHINE):
        return store_errors.no_credentials(key=key, at=at, why=why)
    if status == "403":
        return store_errors.denied(key=key, at=at, why=why)
    if "credential" in line.lower():
        return store_errors.no_credentials(key=key, at=at, why=why)
    if "error sending request" in line or "connect" in line.lower():
        return store_errors.unreachable(key=key, at=at, why=why)
    return store_errors.failed(key=key, at=at, why=why)
