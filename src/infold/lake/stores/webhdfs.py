"""
Requests to WebHDFS, the protocol by which HDFS is spoken to without a JVM.

A NameNode answers what is asked about names. For content it names a DataNode, which is asked then.
What fails for a reason that may pass is asked again a few times; all requests here can be repeated.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from typing import Any
from urllib.parse import quote, urlsplit
from uuid import uuid4

import requests
from requests.adapters import HTTPAdapter

from infold.lake.stores.bucket import (
    ANSWER_SECONDS,
    AT_ONCE,
    CONNECT_SECONDS,
    TRIES,
    Listed,
    ReplacedError,
)
from infold.messages import store_errors
from infold.messages.errors import InfoldError

_FIRST_PAUSE, _LONGEST_PAUSE = 0.1, 2.0
_MAY_PASS = (500, 502, 503, 504)
_REDIRECTED = 307
_RETRIABLE, _STANDBY = "RetriableException", "StandbyException"

JsonObject = Mapping[str, Any]


class RefusedError(Exception):
    """
    An answer that is a failure.

    ``kind`` is Java's name of it, or empty where what answers is no WebHDFS.
    """

    def __init__(self, status: int, kind: str, message: str) -> None:
        super().__init__(f"{kind}: {message}" if kind else message)
        self.status = status
        self.kind = kind

    def may_pass(self, *, several: bool) -> bool:
        """Whether it is worth asking again, where there may be ``several`` NameNodes."""
        return self.status in _MAY_PASS or self.kind in (
            _RETRIABLE,
            *((_STANDBY,) if several else ()),
        )


class SilentError(Exception):
    """A server that cannot be reached, or does not answer."""


class WebHdfs:
    """
    NameNodes by the addresses of their HTTP servers, asked by a user who says no more than a name.

    One of them is active. It is asked until it is silent, or says that it is not.
    """

    def __init__(self, addresses: Sequence[str], user: str) -> None:
        self._addresses = addresses
        self._active = 0
        self._user = user
        self._session = requests.Session()
        for scheme in ("http://", "https://"):
            self._session.mount(scheme, HTTPAdapter(pool_maxsize=AT_ONCE))

    def status(self, path: str) -> JsonObject:
        """What the NameNode knows of a file or a folder."""
        status: JsonObject = self._json_answer("GET", path, "GETFILESTATUS")["FileStatus"]
        return status

    def listed(self, path: str) -> Iterator[JsonObject]:
        """What is right in a folder, with a request for each thousand; of a file, itself."""
        last: str | None = None
        while True:
            after = {} if last is None else {"startAfter": last}
            page = self._json_answer("GET", path, "LISTSTATUS_BATCH", **after)["DirectoryListing"]
            entries = page["partialListing"]["FileStatuses"]["FileStatus"]
            yield from entries
            if not page["remainingEntries"] or not entries:
                return
            last = entries[-1]["pathSuffix"]

    def read(self, path: str, start: int, length: int | None) -> bytes:
        """The bytes of a file from ``start`` on; all, or so many."""
        more: dict[str, Any] = {} if length is None else {"length": length}
        return self._ask_datanode("GET", path, "OPEN", offset=start, **more)

    def create(self, path: str, content: bytes) -> None:
        """Have a file, and the folders above it; it is there before its content is."""
        self._ask_datanode("PUT", path, "CREATE", content, overwrite="true")

    def rename(self, path: str, to: str) -> None:
        """Have a file under another name at one instant, in place of what had that name."""
        self._json_answer("PUT", path, "RENAME", destination=to, renameoptions="OVERWRITE")

    def delete(self, path: str, *, recursive: bool) -> None:
        """Delete a file or a folder, if it is there."""
        self._json_answer("DELETE", path, "DELETE", recursive=str(recursive).lower())

    def _json_answer(self, method: str, path: str, op: str, **options: Any) -> JsonObject:
        """The answer of the NameNode, asked again while that may help; an empty one is {}."""
        for pause in _pauses():
            try:
                answer = self._ask_namenode(method, path, op, options)
                return _json(answer) if answer.content else {}
            except (RefusedError, SilentError) as error:
                self._pause_or_raise(error, pause)
        raise AssertionError

    def _ask_namenode(
        self, method: str, path: str, op: str, options: Mapping[str, Any]
    ) -> requests.Response:
        """The answer of the one that is taken for active; if it is not, the next one is asked."""
        number = self._active
        url = f"{self._addresses[number]}/webhdfs/v1/{quote(path)}"
        try:
            return self._request(method, url, {"op": op, "user.name": self._user, **options})
        except (RefusedError, SilentError) as error:
            standby = isinstance(error, SilentError) or error.kind == _STANDBY
            if standby and self._active == number:  # no other thread has turned to the next one
                self._active = (number + 1) % len(self._addresses)
            raise

    def _pause_or_raise(self, error: RefusedError | SilentError, pause: float | None) -> None:
        """Wait before something is asked again, or raise."""
        several = len(self._addresses) > 1
        refused = isinstance(error, RefusedError) and not error.may_pass(several=several)
        if pause is None or refused:
            raise error
        time.sleep(pause)

    def _ask_datanode(
        self, method: str, path: str, op: str, content: bytes | None = None, **options: Any
    ) -> bytes:
        """The answer of the DataNode that the NameNode names; another one if that is silent."""
        silent: list[str] = []
        for pause in _pauses():
            more = {"excludedatanodes": ",".join(silent)} if silent else {}
            place = ""
            try:
                answer = self._ask_namenode(method, path, op, options | more)
                if answer.status_code != _REDIRECTED:  # a gateway that has the content itself
                    raise RefusedError(answer.status_code, "", "it names no DataNode")
                place = answer.headers["Location"]
                return self._request(method, place, {}, content).content
            except (RefusedError, SilentError) as error:
                host = urlsplit(place).hostname
                if host and isinstance(error, SilentError) and host not in silent:
                    silent.append(host)
                self._pause_or_raise(error, pause)
        raise AssertionError

    def _request(
        self, method: str, url: str, query: Mapping[str, Any], content: bytes | None = None
    ) -> requests.Response:
        head = {"Content-Type": "application/octet-stream"} if method == "PUT" else None
        try:
            answer = self._session.request(
                method,
                url,
                params=query,
                data=content,
                headers=head,
                timeout=(CONNECT_SECONDS, ANSWER_SECONDS),
                allow_redirects=False,
            )
        except requests.RequestException as error:
            raise SilentError(f"{urlsplit(url).netloc}: {_cause(error)}") from error
        if answer.status_code < 300 or answer.status_code == _REDIRECTED:
            return answer
        raise _refused(answer)


def _pauses() -> Iterator[float | None]:
    """How long to wait after each try; nothing after the last, which is not forgiven."""
    for number in range(TRIES):
        yield min(_FIRST_PAUSE * 2**number, _LONGEST_PAUSE)
    yield None


def _json(answer: requests.Response) -> JsonObject:
    try:
        document: JsonObject = answer.json()
    except ValueError:
        raise _refused(answer) from None
    return document


def _refused(answer: requests.Response) -> RefusedError:
    """The failure that an answer is."""
    try:
        remote = answer.json()["RemoteException"]
        return RefusedError(answer.status_code, remote["exception"], _line(remote["message"]))
    except (ValueError, KeyError, TypeError):
        line = f"status {answer.status_code}: {_line(answer.text)}"
        return RefusedError(answer.status_code, "", line)


def _line(text: str | None) -> str:
    """The first line of a message that says something."""
    printed = ("".join(filter(str.isprintable, line)).strip() for line in (text or "").splitlines())
    return next((line[:300] for line in printed if line), "")


def _cause(error: BaseException) -> str:
    """The innermost reason, which has no address of an object in Python in it."""
    while (inner := error.__cause__ or error.__context__) is not None:
        error = inner
    return _line(str(error)) or type(error).__name__


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
                folders_now, above[-AT_ONCE:] = above[-AT_ONCE:], []
                for folders, files in pool.map(self._folder_contents, folders_now):
                    above += folders
                    yield from (one for one in files if one.key > after)

    def _folder_contents(self, folder: str) -> tuple[Sequence[str], Sequence[Listed]]:
        """The folders and the files right in a folder; none where it is none, or is gone."""
        folders, files = [], []
        for key, entry in self._entries(folder):
            if entry["type"] == _FOLDER:
                folders.append(key)
            elif entry["type"] == _FILE and not key.endswith(_COPYING):
                files.append(self._listed(key, entry))
        return folders, files

    def names(self, folder: str) -> Sequence[str]:
        """The names right below a folder: of folders, and of files."""
        return [key.rpartition("/")[2] for key, _ in self._entries(folder)]

    def _entries(self, folder: str) -> Iterator[tuple[str, Mapping[str, Any]]]:
        with suppress(FileNotFoundError), self._named(folder):
            for entry in self.server.listed(folder):
                if name := entry["pathSuffix"]:
                    yield f"{folder}/{name}" if folder else name, entry

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
            status = self.server.status(key)
        if status["type"] != _FILE:
            raise self._no_file(key)
        return self._listed(key, status)

    def read(self, key: str, *, start: int = 0, end: int | None = None, etag: str = "") -> bytes:
        """
        The bytes of a file, or of a part of it.

        WebHDFS reads whatever has that name. So it is looked at afterwards: a file that is as it
        was listed then was so while it was read.
        """
        length = None if end is None else end - start
        try:
            with self._named(key):
                content = self.server.read(key, start, length)
        except InfoldError:  # it may be too short by now
            if etag and self.head(key).etag != etag:
                raise ReplacedError(f"{self.url}/{key}") from None
            raise
        if etag and (self.head(key).etag != etag or length not in (None, len(content))):
            raise ReplacedError(f"{self.url}/{key}")
        return content

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

    def _listed(self, key: str, entry: Mapping[str, Any]) -> Listed:
        """A file as the NameNode shows it; a gateway shows less."""
        number, size, changed = entry.get("fileId"), entry["length"], entry["modificationTime"]
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
